//! `longshore deploy --list` and `--to`: the versions of an endpoint, and the return to one of them.

use longshore_client::{Endpoint, VersionEntry};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::short;
use crate::dev::project::Project;
use crate::exit::{CommandError, CommandExit, CommandResult};
use crate::human::time_cell;
use crate::output::OutputFormat;
use crate::remote::Connection;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("", "present").shown_as(mark),
    Column::new("VERSION", "version"),
    Column::new("CODE", "code"),
    Column::new("CHANGED", "at").shown_as(time_cell),
    Column::new("BY", "by"),
    Column::new("FIELDS", "fields"),
];
/// Fields of one change that the table names.
const FIELDS_MAX: usize = 4;

/// Prints the versions of an endpoint, newest first. The table marks the present one with `*`.
pub(super) async fn list(session: &Connection, project: &Project) -> CommandResult {
    let entries = session.client.versions(&project.slug).await?;
    if session.output.format != OutputFormat::Table {
        session.output.records(COLUMNS, &entries)?;
        return Ok(CommandExit::Success);
    }
    let rows: Vec<Box<RawValue>> =
        entries.iter().enumerate().filter_map(|(place, entry)| row(entry, place == 0)).collect();
    session.output.records(COLUMNS, &rows)?;
    Ok(CommandExit::Success)
}

/// The table cell that marks the present version.
fn mark(value: &Value) -> String {
    if *value == json!(true) { "*".to_owned() } else { " ".to_owned() }
}

/// An entry as the table shows it.
fn row(entry: &RawValue, is_present: bool) -> Option<Box<RawValue>> {
    let mut row: Value = serde_json::from_str(entry.get()).ok()?;
    row["present"] = json!(is_present);
    row["code"] = row["codeHash"].as_str().map_or(json!("-"), |hash| json!(short(hash)));
    row["by"] = json!(who(&row));
    row["fields"] = json!(field_names(&row["fields"]));
    serde_json::value::to_raw_value(&row).ok()
}

/// The name of the key that made the change, else its id; `-` if the change has none.
fn who(entry: &Value) -> &str {
    let names = [&entry["byName"], &entry["by"]];
    names.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty()).unwrap_or("-")
}

/// `workersMax, env.TOKEN`; `created` if the entry has no field.
fn field_names(fields: &Value) -> String {
    let fields = fields.as_array().map_or(&[][..], Vec::as_slice);
    let mut names: Vec<&str> =
        fields.iter().take(FIELDS_MAX).filter_map(|field| field["name"].as_str()).collect();
    let more = format!("{} more", fields.len().saturating_sub(FIELDS_MAX));
    if fields.len() > FIELDS_MAX {
        names.push(&more);
    }
    if names.is_empty() { "created".to_owned() } else { names.join(", ") }
}

/// Brings the version that `wanted` names back: a version number, or the beginning of its code's hash. `words` name the
/// endpoint on a command line. Returns the endpoint and the code of the version.
pub(super) async fn restore(
    session: &Connection,
    present: &Endpoint,
    wanted: &str,
    words: &str,
) -> CommandResult<(Endpoint, Option<String>)> {
    let entries = session.client.versions(&present.id.to_string()).await?;
    let entries: Vec<VersionEntry> =
        entries.iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect();
    let chosen = chosen(&entries, wanted)
        .map_err(|error| error.next(format!("`longshore deploy {words} --list` lists the versions")))?;
    let endpoint = session.client.restore_version(present.id, chosen.version).await?;
    Ok((endpoint, chosen.code_hash.clone()))
}

/// Fewer digits are no beginning of a hash: `9` is a version's number only.
const HASH_DIGITS_MIN: usize = 4;

/// The entry of the version that a text names.
fn chosen<'a>(entries: &'a [VersionEntry], wanted: &str) -> CommandResult<&'a VersionEntry> {
    if let Some(entry) = entries.iter().find(|entry| entry.version.to_string() == wanted) {
        return Ok(entry);
    }
    let mut with_code = entries
        .iter()
        .filter(|entry| entry.code_hash.as_deref().is_some_and(|hash| hash.starts_with(wanted)));
    // The newest version with the code.
    let first = with_code.next().filter(|_| wanted.len() >= HASH_DIGITS_MIN).ok_or_else(|| {
        CommandError::new(CommandExit::NotFound, format!("the endpoint has no version {wanted}"))
    })?;
    if with_code.any(|other| other.code_hash != first.code_hash) {
        let text =
            format!("{wanted} is the start of several hashes; give more digits, or the version's number");
        return Err(CommandError::usage(text));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: u32, code: Option<&str>) -> VersionEntry {
        VersionEntry { version, code_hash: code.map(str::to_owned) }
    }

    #[test]
    fn a_version_is_named_by_its_number_or_by_the_start_of_a_hash() {
        let entries = [
            entry(5, Some("1abcde")),
            entry(4, Some("99ff01")),
            entry(4, Some("99ff01")),
            entry(3, None),
            entry(2, Some("99ff02")),
            entry(1, Some("1abcde")),
        ];
        let version =
            |wanted| chosen(&entries, wanted).map(|entry| entry.version).map_err(|error| error.exit);
        for (wanted, expected) in [("1", 1), ("5", 5), ("3", 3), ("1abc", 5), ("99ff01", 4), ("99ff02", 2)] {
            assert_eq!(version(wanted).unwrap(), expected, "{wanted}");
        }
        assert_eq!(version("99ff"), Err(CommandExit::Usage));
        for unknown in ["6", "", "0", "9", "1ab", "abcd", "-1"] {
            assert_eq!(version(unknown), Err(CommandExit::NotFound), "{unknown}");
        }
    }

    #[test]
    fn a_row_shows_the_present_version_a_short_hash_and_some_fields() {
        let fields: Vec<Value> = (0..6).map(|number| json!({ "name": format!("f{number}") })).collect();
        let entry = json!({ "version": 2, "codeHash": "a".repeat(64), "fields": fields });
        let raw = serde_json::value::to_raw_value(&entry).unwrap();
        let row: Value = serde_json::from_str(row(&raw, true).unwrap().get()).unwrap();
        assert_eq!((&row["present"], &row["code"]), (&json!(true), &json!("a".repeat(12))));
        assert_eq!(row["fields"], "f0, f1, f2, f3, 2 more");
        assert_eq!(who(&json!({"by": "k7rt2m", "byName": "ci"})), "ci");
        assert_eq!([who(&json!({"by": "k7rt2m"})), who(&json!({"by": ""}))], ["k7rt2m", "-"]);
        assert_eq!(field_names(&json!([])), "created");
    }
}
