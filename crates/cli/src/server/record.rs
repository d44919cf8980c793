//! The record of a server as lines for people: sizes, times and counts with their units.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::{CommandResult, cannot};
use crate::human::{count, size, time_cell, with_ages};
use crate::output::{Styles, cell, harmless};
use crate::screen::span;

/// Returns the record, one fact a line. What the server does not know is left out.
///
/// # Errors
///
/// The record is no JSON object.
pub(super) fn shown(record: &RawValue, styles: Styles) -> CommandResult<String> {
    let record: Value =
        serde_json::from_str(record.get()).map_err(|error| cannot("read the server's record", error))?;
    let lines = facts(&record);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, text): &(&str, String)| {
        let text = text.replace('\n', &format!("\n{:width$}  ", ""));
        format!("{}  {text}\n", styles.dim(&format!("{name:width$}")))
    };
    Ok(lines.iter().map(line).collect())
}

fn facts(record: &Value) -> Vec<(&'static str, String)> {
    let known = |name: &str| record.get(name).filter(|value| !value.is_null());
    let facts = [
        ("state", known("state").map(cell)),
        ("reason", known("reason").and_then(Value::as_str).map(|text| harmless(&with_ages(text)))),
        ("version", known("version").map(cell)),
        ("started", known("startedAt").map(time_cell)),
        ("draining", known("drainingSince").map(|since| format!("since {}", time_cell(since)))),
        ("endpoints", known("endpoints").map(cell)),
        ("workers", workers(record)),
        ("disk", disk(record)),
        ("memory", memory(record)),
        ("connections", connections(record)),
        ("files", files(record)),
        ("commits", commits(record)),
        ("damage", damage(record)),
        ("secrets", known("secretsSealed").map(|sealed| secrets(sealed == &Value::Bool(true)).to_owned())),
        ("certificate", known("tlsEndsAt").map(|end| format!("ends {}", time_cell(end)))),
        ("settings", settings(record)),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// The whole number at this path, such as `/bytes/resident`.
fn number(record: &Value, path: &str) -> Option<u64> {
    record.pointer(path)?.as_u64()
}

fn workers(record: &Value) -> Option<String> {
    let (managed, busy) = (number(record, "/managedWorkers")?, number(record, "/busyWorkers")?);
    let verb = if busy == 1 { "runs a job" } else { "run jobs" };
    Some(format!("{managed} managed; {} {verb}", count(busy, "worker")))
}

fn disk(record: &Value) -> Option<String> {
    let free = format!("{} free", size(number(record, "/bytes/diskFree")?));
    let full = record.get("diskFullAt").filter(|at| at.is_string()).map(time_cell);
    Some(full.map_or_else(|| free.clone(), |full| format!("{free}; full {full} at this rate")))
}

fn memory(record: &Value) -> Option<String> {
    let resident = size(number(record, "/bytes/resident")?);
    let bodies = number(record, "/bytes/inFlight").zip(number(record, "/bytes/inFlightMax"));
    let bodies = bodies.map_or_else(String::new, |(bytes, most)| {
        format!("; {} of bodies in flight, at most {}", size(bytes), size(most))
    });
    Some(resident + &bodies)
}

fn connections(record: &Value) -> Option<String> {
    let open = number(record, "/connections/open")?;
    let readers = number(record, "/connections/eventReaders").unwrap_or_default();
    Some(format!("{open} open; {} of events", count(readers, "reader")))
}

fn files(record: &Value) -> Option<String> {
    let (open, most) =
        (number(record, "/connections/openFiles")?, number(record, "/connections/openFilesMax")?);
    Some(format!("{open} open, at most {most}"))
}

fn commits(record: &Value) -> Option<String> {
    let (all, failed) = (number(record, "/commits/count")?, number(record, "/commits/failed")?);
    let took = number(record, "/commits/p50Us").zip(number(record, "/commits/p99Us"));
    let took = took.filter(|_| all > 0).map_or_else(String::new, |(half, most)| {
        let [half, most] = [half, most].map(span_of_us);
        format!("; half within {half}, 99 % within {most}")
    });
    Some(format!("{all}, {failed} failed{took}"))
}

/// A span in µs; below 10 ms with a tenth of a millisecond.
fn span_of_us(us: u64) -> String {
    if us < 10_000 { format!("{:.1} ms", us as f64 / 1_000.0) } else { span(Duration::from_micros(us)) }
}

fn damage(record: &Value) -> Option<String> {
    let (damaged, bytes) = (number(record, "/scrub/damaged")?, number(record, "/scrub/bytes")?);
    let passes = number(record, "/scrub/passes").unwrap_or_default();
    Some(format!("{} in {} of {}", count(damaged, "place"), count(passes, "reading"), size(bytes)))
}

fn secrets(are_sealed: bool) -> &'static str {
    if are_sealed { "encrypted" } else { "stored unencrypted; `longshore secret new-key` makes a key" }
}

/// The settings that are not the default, one a line.
fn settings(record: &Value) -> Option<String> {
    let changed = record.get("changedSettings")?.as_object().filter(|changed| !changed.is_empty())?;
    let lines: Vec<String> =
        changed.iter().map(|(name, value)| format!("{} = {}", harmless(name), cell(value))).collect();
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(record: &str) -> String {
        shown(&RawValue::from_string(record.to_owned()).unwrap(), Styles::plain()).unwrap()
    }

    #[test]
    fn sizes_times_and_counts_have_their_unit() {
        let record = r#"{"busyWorkers": 1, "bytes": {"diskFree": 64198279168, "inFlight": 0, "inFlightMax": 256000000,
            "resident": 53788672}, "changedSettings": {"listen": "0.0.0.0:80", "tls_cert": "a\u001b.pem"},
            "commits": {"count": 8, "failed": 1, "meanCommands": 2.3, "p50Us": 2500, "p99Us": 250000},
            "connections": {"eventReaders": 1, "open": 3, "openFiles": 32, "openFilesMax": 20000},
            "drainingSince": null, "endpoints": 2, "managedWorkers": 4, "reason": null,
            "scrub": {"bytes": 1200, "damaged": 0, "passes": 1}, "secretsSealed": false, "state": "READY",
            "tlsEndsAt": "2999-01-31T00:00:00Z", "version": "0.1.0", "later": {}}"#;
        expect_test::expect![[r"
            state        READY
            version      0.1.0
            endpoints    2
            workers      4 managed; 1 worker runs a job
            disk         64 GB free
            memory       54 MB; 0 bytes of bodies in flight, at most 256 MB
            connections  3 open; 1 reader of events
            files        32 open, at most 20000
            commits      8, 1 failed; half within 2.5 ms, 99 % within 250 ms
            damage       0 places in 1 reading of 1.2 kB
            secrets      stored unencrypted; `longshore secret new-key` makes a key
            certificate  ends 2999-01-31
            settings     listen = 0.0.0.0:80
                         tls_cert = a�.pem
        "]]
        .assert_eq(&text(record));
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let record = r#"{"state": "LOADING", "reason": "it loads", "commits": {"count": 0, "failed": 0}, "bytes": {}}"#;
        expect_test::expect![[r"
            state    LOADING
            reason   it loads
            commits  0, 0 failed
        "]]
        .assert_eq(&text(record));
    }
}
