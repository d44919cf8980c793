//! How a worker ended, in words.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::screen::span;

/// Signals that end workers, by number, with the event that usually sends them.
const SIGNALS: &[(i64, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL, an invalid instruction"),
    (6, "SIGABRT, it aborted itself"),
    (7, "SIGBUS, an invalid memory access"),
    (8, "SIGFPE, an invalid calculation"),
    (9, "SIGKILL, often because the memory was full"),
    (11, "SIGSEGV, an invalid memory access"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
];

/// Returns how a worker ended: `code 1 after 3.0 s`, `signal 9 (SIGKILL, …)`, `stopped: idle for longer than idleTimeout`.
/// `lived_ms`: from its start to its end.
pub(super) fn in_words(exit: &Value, lived_ms: Option<u64>) -> String {
    let stopped = exit["stopped"] == true;
    let reason = exit["stopReason"].as_str();
    let reason = reason.map_or_else(|| " by the server".to_owned(), |reason| format!(": {reason}"));
    let how = match (exit["because"].as_str(), exit["code"].as_i64(), exit["signal"].as_i64()) {
        (Some(because), _, _) => because.to_owned(),
        (None, Some(0), _) | (None, None, Some(15)) if stopped => format!("stopped{reason}"),
        (None, Some(code), _) => format!("code {code}"),
        // The server sends SIGKILL itself when the stop grace is over.
        (None, None, Some(9)) if stopped => format!("stopped with SIGKILL{reason}"),
        (None, None, Some(signal)) => {
            let name =
                SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| format!(" ({name})"));
            format!("signal {signal}{}", name.unwrap_or_default())
        }
        (None, None, None) => "unknown: its supervising process was killed".to_owned(),
    };
    match lived_ms {
        Some(ms) => format!("{how}, after {}", span(Duration::from_millis(ms))),
        None => how,
    }
}

/// Returns the time from a worker's start to its end, in ms; `None` if one of them is unknown.
pub(super) fn lived_ms(worker: &Value) -> Option<u64> {
    let at = |name: &str| worker[name].as_str()?.parse::<Timestamp>().ok();
    let ms = at("endedAt")?.as_millisecond() - at("startedAt")?.as_millisecond();
    u64::try_from(ms).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exits_are_said_in_words() {
        let idle = json!({"code": 0, "signal": null, "because": null, "stopped": true, "stopReason": "idle"});
        assert_eq!(in_words(&idle, None), "stopped: idle");
        let said = |code: Option<i32>, signal: Option<i32>, because: Option<&str>, stopped: bool| {
            in_words(&json!({"code": code, "signal": signal, "because": because, "stopped": stopped}), None)
        };
        assert_eq!(said(Some(3), None, None, false), "code 3");
        assert_eq!(said(Some(0), None, None, true), "stopped by the server");
        assert_eq!(said(None, Some(9), None, false), "signal 9 (SIGKILL, often because the memory was full)");
        assert_eq!(said(None, Some(9), None, true), "stopped with SIGKILL by the server");
        assert_eq!(said(None, Some(40), None, false), "signal 40");
        assert_eq!(said(None, Some(9), Some("killed: out of memory"), false), "killed: out of memory");
        let worker = json!({"startedAt": "2026-01-31T12:00:00.000Z", "endedAt": "2026-01-31T12:00:02.500Z"});
        assert_eq!(in_words(&json!({"code": 1}), lived_ms(&worker)), "code 1, after 2.5 s");
        assert_eq!(lived_ms(&json!({"endedAt": "2026-01-31T12:00:02.500Z"})), None);
    }
}
