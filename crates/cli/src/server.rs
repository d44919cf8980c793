//! `longshore server` and `longshore drain`.

mod record;

use std::time::{Duration, Instant};

use clap::Args;
use longshore_client::ClientError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exit::{CommandError, CommandExit, CommandResult, cannot, needing_for_all};
use crate::human::count;
use crate::jobs::span;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::screen;
use crate::stop::StopRequest;

/// Time between two looks at a drain.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long the server may be unreachable before the wait for its drain fails.
const OUTAGE_MAX: Duration = Duration::from_secs(30);

/// The scopes of keys that may read the server's state, and of those that may drain it.
const READERS: &str = "`read` or `manage`";
const CHANGERS: &str = "`manage`";

/// Arguments of `longshore server`.
#[derive(Debug, Args)]
pub struct ShowServerArgs {
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `longshore drain`.
#[derive(Debug, Args)]
pub struct DrainArgs {
    /// Wait until no job runs and no managed worker is left
    #[arg(long, conflicts_with = "end")]
    wait: bool,
    /// Longest wait, such as 10m; the drain goes on
    #[arg(long, value_name = "TIME", value_parser = span, requires = "wait")]
    timeout: Option<Duration>,
    /// End the drain: hand out jobs again
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// The part of a server's record that says how far its drain is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DrainState {
    draining_since: Option<String>,
    busy_workers: u64,
    managed_workers: u64,
}

impl DrainState {
    fn of(record: &RawValue) -> CommandResult<Self> {
        serde_json::from_str(record.get()).map_err(|error| cannot("read the server's record", error))
    }

    fn is_done(&self) -> bool {
        self.busy_workers == 0 && self.managed_workers == 0
    }

    /// Says what the drain waits for.
    fn rest(&self) -> String {
        let runs = if self.busy_workers == 1 { "runs a job" } else { "run jobs" };
        format!(
            "{} {runs}, {} left",
            count(self.busy_workers, "worker"),
            count(self.managed_workers, "managed worker")
        )
    }
}

/// Prints the version of the server, and whether it does all of its work.
pub(crate) async fn show(args: &ShowServerArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let record = session.client.server().await.map_err(needing_for_all(READERS))?;
    if session.output.format == OutputFormat::Table {
        session.output.text(&record::shown(&record, session.output.styles)?)?;
    } else {
        session.output.record(&record)?;
    }
    Ok(CommandExit::Success)
}

/// Drains the server, or ends its drain.
pub(crate) async fn drain(args: &DrainArgs) -> CommandResult {
    let session = args.remote.connect()?;
    if args.end {
        return end(&session).await;
    }
    let record = session.client.drain_server().await.map_err(needing_for_all(CHANGERS))?;
    let state = DrainState::of(&record)?;
    if args.wait {
        return wait(&session, record, args.timeout).await;
    }
    if session.output.format != OutputFormat::Table {
        session.output.record(&record)?;
        return Ok(CommandExit::Success);
    }
    session.output.line(&format!("draining: jobs are accepted and none is handed out; {}", state.rest()))?;
    session.screen.line("    longshore drain --wait     # waits until the computer can be rebooted");
    session.screen.line("    longshore drain --end      # hands out jobs again, as a restart does");
    Ok(CommandExit::Success)
}

/// Ends the drain, if there is one.
async fn end(session: &Connection) -> CommandResult {
    let before = session.client.server().await.map_err(needing_for_all(CHANGERS))?;
    let before = DrainState::of(&before)?;
    session.client.end_server_drain().await.map_err(needing_for_all(CHANGERS))?;
    session.output.say(match before.draining_since {
        Some(_) => "the drain ended: jobs are handed out",
        None => "the server was not draining: jobs are handed out",
    })?;
    Ok(CommandExit::Success)
}

/// Waits until the server is drained, and prints its record.
async fn wait(session: &Connection, first: Box<RawValue>, timeout: Option<Duration>) -> CommandResult {
    let mut ctrl_c = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let over = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let step = session.screen.step("draining");
    let drained = tokio::select! {
        record = until_drained(session, first, &step) => Ok(record?),
        () = ctrl_c.requested() => Err((CommandExit::Interrupted, "stopped waiting".to_owned())),
        () = over => {
            let time = screen::span(timeout.unwrap_or_default());
            Err((CommandExit::TimedOut, format!("not drained after {time}")))
        }
    };
    drop(step);
    match drained {
        Ok(record) => {
            match session.output.format {
                OutputFormat::Table => {
                    session.output.line("drained: no job runs, and no managed worker is left")?;
                }
                _ => session.output.record(&record)?,
            }
            Ok(CommandExit::Success)
        }
        Err((exit, why)) => {
            session.screen.note(&format!("{why}; the drain goes on"));
            session.screen.line("    longshore drain --end      # hands out jobs again");
            Ok(exit)
        }
    }
}

/// Returns the server's record when no job runs and no managed worker is left.
async fn until_drained(
    session: &Connection,
    mut record: Box<RawValue>,
    step: &screen::Step,
) -> CommandResult<Box<RawValue>> {
    let mut silent_since: Option<Instant> = None;
    loop {
        let state = DrainState::of(&record)?;
        if state.draining_since.is_none() {
            return Err(CommandError::new(CommandExit::Failure, "the drain was ended meanwhile").next(
                "a restart of the server or `longshore drain --end` ends it; `longshore drain` begins again",
            ));
        }
        if state.is_done() {
            return Ok(record);
        }
        step.detail(state.rest());
        tokio::time::sleep(LOOK_INTERVAL).await;
        match session.client.server().await {
            Ok(present) => (record, silent_since) = (present, None),
            Err(error @ (ClientError::Unreachable { .. } | ClientError::TimedOut { .. })) => {
                if silent_since.get_or_insert_with(Instant::now).elapsed() > OUTAGE_MAX {
                    return Err(error.into());
                }
                step.detail("the server does not respond; retrying");
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(busy_workers: u64, managed_workers: u64) -> DrainState {
        let text = format!(
            r#"{{"drainingSince":"2026-01-31T12:00:00Z","busyWorkers":{busy_workers},"managedWorkers":{managed_workers}}}"#
        );
        DrainState::of(&RawValue::from_string(text).unwrap()).unwrap()
    }

    #[test]
    fn a_drain_is_done_without_busy_and_managed_workers() {
        assert!(state(0, 0).is_done() && !state(1, 0).is_done() && !state(0, 1).is_done());
        assert_eq!(state(1, 2).rest(), "1 worker runs a job, 2 managed workers left");
        assert_eq!(state(2, 1).rest(), "2 workers run jobs, 1 managed worker left");
    }
}
