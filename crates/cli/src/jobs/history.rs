//! `longshore history`: what an endpoint did over time, as a table.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{endpoint_name, span};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::{CLOCK, age, at_clock, ms_cell};
use crate::output::{OutputFormat, cell};
use crate::remote::ServerArgs;
use crate::table::{Column, Table};

/// Rows of the table, about.
const ROWS: u128 = 12;

const COLUMNS: &[Column] = &[
    Column::new("TIME", "time"),
    Column::new("SUBMITTED", "submitted"),
    Column::new("COMPLETED", "completed"),
    Column::new("FAILED", "failed"),
    Column::new("TIMED OUT", "timedOut"),
    Column::new("WAITING", "queuedMax"),
    Column::new("DELAY P50", "delayP50Ms").shown_as(ms_cell),
    Column::new("P95", "delayP95Ms").shown_as(ms_cell),
    Column::new("RUN P50", "runP50Ms").shown_as(ms_cell),
    Column::new("P95", "runP95Ms").shown_as(ms_cell),
    Column::new("STARTS", "starts"),
];

/// Arguments of `longshore history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    endpoint: String,
    /// The time range up to now: 15m, 6h or 30d
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "1h")]
    last: Duration,
    /// The time of one row [default: a twelfth of the range]
    #[arg(long, value_name = "TIME", value_parser = span)]
    step: Option<Duration>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Prints what an endpoint did: a row per step, and the whole range.
pub(crate) async fn history(args: &HistoryArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let last_ms = args.last.as_millis();
    let step_ms = args.step.map_or(last_ms / ROWS, |step| step.as_millis()).max(1);
    let query = format!("last={last_ms}&step={step_ms}");
    let text = session.client.history_text(&args.endpoint, &query).await?;
    if session.output.format != OutputFormat::Table {
        session.output.record(&text)?;
        return Ok(CommandExit::Success);
    }
    let history: Value =
        serde_json::from_str(text.get()).map_err(|error| cannot("read the server's answer", error))?;
    let mut table = Table::new(COLUMNS);
    let times = history["t"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, time) in times.iter().enumerate() {
        let values = COLUMNS
            .iter()
            .map(|column| (column.member.to_owned(), history["series"][column.member][at].clone()));
        let mut row: Map<String, Value> = values.collect();
        row.insert("time".to_owned(), json!(clock(time)));
        table.add(&Value::Object(row));
    }
    let mut total = history["total"].clone();
    total["time"] = json!("all");
    table.add(&total);
    session.output.text(&table.show(session.output.styles))?;
    if let Some(before) = history["missingBefore"].as_str() {
        session.output.say(&missing(before))?;
    }
    Ok(CommandExit::Success)
}

/// Says since when there is data: in the form of the table's times, and how long ago.
fn missing(before: &str) -> String {
    before.parse::<jiff::Timestamp>().map_or_else(
        |_| format!("no data before {before}"),
        |time| format!("no data before {} ({})", time.strftime(CLOCK), age(time)),
    )
}

/// A time in ms since 1970 as date and time in UTC.
fn clock(time: &Value) -> String {
    time.as_i64().and_then(at_clock).unwrap_or_else(|| cell(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_data_has_its_age() {
        let said = missing("2001-01-02T03:04:05.678Z");
        assert!(
            said.starts_with("no data before 2001-01-02 03:04:05Z (") && said.ends_with(" days ago)"),
            "{said}"
        );
        assert_eq!(missing("some day"), "no data before some day");
    }
}
