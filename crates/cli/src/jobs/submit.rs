//! `longshore run` and `longshore runsync`.

use std::time::Duration;

use longshore_client::Job;
use longshore_model::JobState;
use longshore_model::limits::{RUN_BODY_BYTES_MAX, RUNSYNC_BODY_BYTES_MAX, WAIT_MS_MAX, WAIT_MS_MIN};

use super::follow::{Wait, still_going};
use super::{RunArgs, RunsyncArgs, follow};
use crate::exit::{CommandError, CommandExit, CommandResult};
use crate::human::size;
use crate::output::OutputFormat;
use crate::remote::Connection;
use crate::stop::StopRequest;

/// Submits a job, and with `--wait` waits for its end.
pub(crate) async fn run(args: &RunArgs) -> CommandResult {
    let body = args.request.body()?;
    check_size(body.len(), RUN_BODY_BYTES_MAX, "run")?;
    let session = args.remote.connect()?.whole_if(args.waiting.raw);
    let endpoint = &args.request.endpoint;
    let step = session.screen.step(format!("submitting the job ({})", size(body.len() as u64)));
    let job = session.client.run(endpoint, body, args.request.idempotency_key.as_deref()).await?;
    drop(step);
    if args.waiting.wait {
        return follow::to_the_end(&session, endpoint, job, args.waiting.timeout).await;
    }
    show_accepted(&session, endpoint, &job)
}

/// Submits a job and waits for its end in the same request.
pub(crate) async fn runsync(args: &RunsyncArgs) -> CommandResult {
    let wait_ms = args.timeout.as_millis() as u64;
    if !(WAIT_MS_MIN..=WAIT_MS_MAX).contains(&wait_ms) {
        return Err(CommandError::usage("--timeout must be between 1s and 300s")
            .next("`longshore run --wait` has no time limit"));
    }
    let body = args.request.body()?;
    check_size(body.len(), RUNSYNC_BODY_BYTES_MAX, "runsync")?;
    let session = args.remote.connect()?.whole_if(args.raw);
    let endpoint = &args.request.endpoint;
    let mut ctrl_c =
        StopRequest::listen().map_err(|error| crate::exit::cannot("listen for Ctrl-C", error))?;
    let step = session.screen.step(format!("waiting for {endpoint}"));
    let key = args.request.idempotency_key.as_deref();
    let job = tokio::select! {
        job = session.client.runsync(endpoint, body, Duration::from_millis(wait_ms), key) => job?,
        () = ctrl_c.requested() => {
            drop(step);
            session.screen.note("stopped waiting; an accepted job continues");
            session.screen.line(&format!("    longshore requests {endpoint}     # shows it"));
            return Ok(CommandExit::Interrupted);
        }
    };
    drop(step);
    if job.status.is_terminal() {
        return follow::show_end(&session, &job);
    }
    if session.output.format != OutputFormat::Table {
        follow::show_record(&session, &job)?;
    }
    still_going(&session, endpoint, job.id, &Wait::Over(args.timeout));
    Ok(CommandExit::TimedOut)
}

/// Checks the size before sending. The server would reject the request only after receiving it.
fn check_size(bytes: usize, most: usize, command: &str) -> CommandResult<()> {
    if bytes <= most {
        return Ok(());
    }
    let message =
        format!("the request has {}; `{command}` accepts at most {}", size(bytes as u64), size(most as u64));
    Err(CommandError::usage(message).next("upload the data and send its address in the input"))
}

fn show_accepted(session: &Connection, endpoint: &str, job: &Job) -> CommandResult {
    follow::show_record(session, job)?;
    if session.output.format == OutputFormat::Table && job.status == JobState::InQueue {
        let line = format!("follow it: longshore status {endpoint} {} --wait", job.id);
        session.screen.line(&session.screen.dim(&line));
    }
    Ok(CommandExit::Success)
}
