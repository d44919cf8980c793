//! `longshore audit`: who changed what, newest first.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use longshore_client::{Client, segment};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{CommandExit, CommandResult, cannot, needing_for_all};
use crate::human::CLOCK;
use crate::input::{moment, whole};
use crate::jobs::{since, span};
use crate::output::{Output, OutputFormat, cell, parsed};
use crate::remote::ServerArgs;
use crate::table::Column;

/// Most entries that the server returns at a time.
const PAGE_MAX: u64 = 1_000;

const COLUMNS: &[Column] = &[
    Column::new("TIME", "at").shown_as(clock),
    Column::new("KEY", "key.name"),
    Column::new("KEY ID", "key.id"),
    Column::new("ADDRESS", "address"),
    Column::new("WHAT", "what"),
    Column::new("FIELDS", "fields").shown_as(fields),
    Column::new("OUTCOME", "outcome"),
];

/// Arguments of `longshore audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only what the key with this id did
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only endpoints/ID, or `endpoints` for all of them
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// Only entries of this time up to now
    #[arg(long, value_name = "TIME", value_parser = span, conflicts_with = "since")]
    last: Option<Duration>,
    /// Only since 2030-01-31 or 2030-01-31T12:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Timestamp>,
    /// Most entries to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<u64>)]
    limit: u64,
    /// List all entries that match
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// An entry, as far as the next page and the table need it.
#[derive(Deserialize)]
struct EntryId {
    id: u64,
}

/// Prints entries of the audit log. As JSON lines, each page is printed when it is there.
pub(crate) async fn audit(args: &AuditArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let output = session.output;
    let mut kept = Vec::new();
    let has_more = each_page(args, &session.client, |mut page| {
        if output.format == OutputFormat::Jsonl {
            return output.records(COLUMNS, &page);
        }
        kept.append(&mut page);
        Ok(())
    })
    .await?;
    if output.format != OutputFormat::Jsonl {
        print(output, &kept)?;
    }
    if has_more && output.format == OutputFormat::Table {
        let line = format!("the newest {}; --limit lists more, --all lists all", args.limit);
        session.screen.line(&session.screen.dim(&line));
    }
    Ok(CommandExit::Success)
}

fn print(output: Output, entries: &[Box<RawValue>]) -> CommandResult<()> {
    if output.format != OutputFormat::Table {
        return output.records(COLUMNS, entries);
    }
    let described = entries.iter().map(|entry| {
        let mut entry = parsed(entry);
        entry["what"] = Value::from(what(&entry));
        to_raw_value(&entry).map_err(|error| cannot("show an entry", error))
    });
    output.records(COLUMNS, &described.collect::<CommandResult<Vec<_>>>()?)
}

/// Reads pages until there are enough entries. Returns whether more of them match.
async fn each_page(
    args: &AuditArgs,
    client: &Client,
    mut show: impl FnMut(Vec<Box<RawValue>>) -> CommandResult<()>,
) -> CommandResult<bool> {
    let filter = filter(args)?;
    let mut left = if args.all { u64::MAX } else { args.limit };
    let mut cursor = String::new();
    loop {
        // One more than is shown tells whether there are more.
        let asked = left.saturating_add(1).min(PAGE_MAX);
        let query = format!("limit={asked}{cursor}{filter}");
        let mut page = client.audit(&query).await.map_err(needing_for_all("`manage`"))?;
        let got = page.len() as u64;
        page.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= page.len() as u64;
        if let Some(last) = page.last() {
            let last: EntryId = serde_json::from_str(last.get())
                .map_err(|error| cannot("read the server's answer", error))?;
            cursor = format!("&cursor={}", last.id);
        }
        let has_more = got > page.len() as u64;
        show(page)?;
        if has_more || got < asked {
            return Ok(has_more);
        }
    }
}

/// The conditions as the end of a query.
fn filter(args: &AuditArgs) -> CommandResult<String> {
    let mut filter = String::new();
    if let Some(key) = &args.key {
        filter = format!("{filter}&key={}", segment(key));
    }
    if let Some(resource) = &args.resource {
        filter = format!("{filter}&resource={}", segment(resource));
    }
    let since = args.last.map(since).transpose()?.or(args.since);
    if let Some(since) = since {
        filter = format!("{filter}&since={since}");
    }
    Ok(filter)
}

/// What an entry is about, in words.
fn what(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    match text("event") {
        "newAddress" => "first use from this address".to_owned(),
        "session" if text("outcome") == "ended" => "end of a session at the console".to_owned(),
        "session" if matches!(text("outcome"), "replaced" | "expired") => "session at the console".to_owned(),
        "session" => "sign-in at the console".to_owned(),
        _ => format!("{} {}", text("method"), text("resource")),
    }
}

/// Formats a time to the second, in UTC.
fn clock(value: &Value) -> String {
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    time.map_or_else(|| cell(value), |time| time.strftime(CLOCK).to_string())
}

fn fields(value: &Value) -> String {
    let names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    cell(&Value::from(names.join(" ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_says_what_it_is_about() {
        let change = json!({ "event": "change", "method": "PATCH", "resource": "endpoints/a" });
        assert_eq!(what(&change), "PATCH endpoints/a");
        assert_eq!(what(&json!({ "event": "newAddress" })), "first use from this address");
        let session = |outcome: &str| what(&json!({ "event": "session", "outcome": outcome }));
        assert_eq!([session("opened"), session("refused")], ["sign-in at the console"; 2]);
        assert_eq!(session("ended"), "end of a session at the console");
        assert_eq!(session("replaced"), "session at the console");
        assert_eq!(session("expired"), "session at the console");
        assert_eq!(clock(&json!("2030-01-31T12:00:00.195Z")), "2030-01-31 12:00:00Z");
        assert_eq!([fields(&json!(["a", "b"])), fields(&json!([]))], ["a b", "-"]);
    }
}
