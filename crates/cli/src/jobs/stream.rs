//! `longshore stream`: prints the chunks of a job as they arrive.

use std::io::{IsTerminal as _, stdout};
use std::time::Duration;

use longshore_model::JobState;

use super::StreamArgs;
use super::chunks::text;
use super::follow::{Wait, show_end, still_going};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::{OutputFormat, harmless};
use crate::remote::Connection;
use crate::stop::StopRequest;

/// How long one request waits for a chunk.
const HOLD: Duration = Duration::from_secs(10);

/// Prints a job's chunks until the job has ended.
pub(crate) async fn stream(args: &StreamArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let mut stop = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    tokio::select! {
        outcome = chunks(&session, args) => outcome,
        () = stop.requested() => {
            still_going(&session, &args.at.endpoint, args.job, &Wait::Interrupted);
            Ok(CommandExit::Interrupted)
        }
    }
}

async fn chunks(session: &Connection, args: &StreamArgs) -> CommandResult {
    let mut offset = args.offset;
    let mut collected = Vec::new();
    loop {
        let page = session.client.stream(&args.at.endpoint, args.job, offset, HOLD).await?;
        for chunk in &page.stream {
            match session.output.format {
                // Control characters of a chunk must not reach a terminal.
                OutputFormat::Table if stdout().is_terminal() => {
                    session.output.line(&harmless(&text(chunk)))?;
                }
                OutputFormat::Table => session.output.line(&text(chunk))?,
                OutputFormat::Jsonl => session.output.line(chunk.output.get())?,
                OutputFormat::Json => collected.push(chunk.output.clone()),
            }
            offset += 1;
        }
        if page.stream.is_empty() && page.status.is_terminal() {
            break;
        }
    }
    if session.output.format == OutputFormat::Json {
        session.output.records(&[], &collected)?;
    }
    let job = session.client.status(&args.at.endpoint, args.job).await?;
    match (job.status, session.output.format) {
        (JobState::Completed, _) => Ok(CommandExit::Success),
        // The chunks went to standard output; the job's end goes to standard error.
        (_, OutputFormat::Table) => show_end(session, &job),
        _ => Ok(CommandExit::JobFailed),
    }
}
