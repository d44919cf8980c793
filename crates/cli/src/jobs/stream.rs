//! `longshore stream`: prints the chunks of a job as they arrive.

use std::time::Duration;

use longshore_model::JobState;

use super::StreamArgs;
use super::chunks::ChunkPrinter;
use super::follow::{Wait, show_end, still_going};
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::{OutputFormat, end_if_closed};
use crate::remote::Connection;
use crate::stop::StopRequest;

/// How long one request waits for a chunk.
const HOLD: Duration = Duration::from_secs(10);

/// Prints a job's chunks until the job has ended.
pub(crate) async fn stream(args: &StreamArgs) -> CommandResult {
    let session = args.at.remote.connect()?.whole_if(args.raw);
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
    let mut printer = ChunkPrinter::of(session);
    loop {
        let page = session.client.stream(&args.at.endpoint, args.job, offset, HOLD).await?;
        for chunk in &page.stream {
            match session.output.format {
                OutputFormat::Table => end_if_closed(printer.print(chunk))?,
                OutputFormat::Jsonl => session.output.line(chunk.output.get())?,
                OutputFormat::Json => collected.push(chunk.output.clone()),
            }
            offset += 1;
        }
        if page.stream.is_empty() && page.status.is_terminal() {
            break;
        }
    }
    drop(printer);
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
