//! Waits for the end of one job and shows its state meanwhile.

use std::io::{IsTerminal as _, stdout};
use std::time::{Duration, Instant};

use longshore_client::{Client, ClientError, Health, Job};
use longshore_model::{JobId, JobState};
use serde_json::value::RawValue;

use super::chunks::Chunks;
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::human::size;
use crate::output::{OutputFormat, harmless};
use crate::pretty::pretty;
use crate::remote::Connection;
use crate::screen::{Step, span};
use crate::stop::StopRequest;
use crate::traceback::readable;

/// How long one status request waits for a change; also the largest age of the displayed state.
const LOOK_WAIT: Duration = Duration::from_secs(1);
/// How long the server may be unreachable, for example during a restart, before waiting fails.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
const OUTAGE_PAUSE: Duration = Duration::from_millis(500);
/// Most characters of a progress value that the line shows.
const PROGRESS_CHARS_MAX: usize = 40;

/// Longest output in bytes that a terminal gets whole, and the length of the start of a longer one.
const SHOWN_BYTES_MAX: usize = 4_096;
const START_BYTES: usize = 1_024;

/// Why waiting stopped before the job ended.
pub(super) enum Wait {
    /// The time limit of `--timeout` is over.
    Over(Duration),
    /// Ctrl-C or another stop signal arrived.
    Interrupted,
}

/// Waits for the job's end and prints the job. The job continues if waiting fails or is interrupted.
pub(super) async fn to_the_end(
    session: &Connection,
    endpoint: &str,
    job: Job,
    timeout: Option<Duration>,
) -> CommandResult {
    let id = job.id;
    let mut ctrl_c = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let over = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let step = session.screen.step(format!("job {id}"));
    let mut chunks = Chunks::of(session, endpoint, id);
    let ended = tokio::select! {
        job = ended(&session.client, endpoint, job, &step, chunks.as_mut()) => Ok(job?),
        () = ctrl_c.requested() => Err((Wait::Interrupted, CommandExit::Interrupted)),
        () = over => Err((Wait::Over(timeout.unwrap_or_default()), CommandExit::TimedOut)),
    };
    drop(step);
    match ended {
        Ok(job) => {
            if let Some(chunks) = &mut chunks {
                // The chunks of a deleted job are gone; its end is shown anyway.
                let _ = chunks.print_rest().await;
            }
            let is_printed =
                |output: &RawValue| chunks.as_ref().is_some_and(|chunks| chunks.have_all_of(output));
            let output = job.output.as_deref().filter(|output| !is_printed(output));
            show_end_with(session, &job, output)
        }
        Err((why, exit)) => {
            still_going(session, endpoint, id, &why);
            Ok(exit)
        }
    }
}

/// Returns the job once it is terminal.
async fn ended(
    client: &Client,
    endpoint: &str,
    mut job: Job,
    step: &Step,
    mut chunks: Option<&mut Chunks<'_>>,
) -> Result<Job, ClientError> {
    let mut silent_since: Option<Instant> = None;
    while !job.status.is_terminal() {
        let answers = async {
            if job.status == JobState::InQueue && job.position.is_none() {
                // The response to a submit has no position in the queue.
                job = client.status(endpoint, job.id).await?;
            }
            step.detail(stage(&job, client.health(endpoint).await.ok().as_ref()));
            match &mut chunks {
                // The wait ends at each chunk, not only at a change of the state.
                Some(chunks) if job.status == JobState::InProgress => {
                    chunks.print_new(LOOK_WAIT).await?;
                    client.status(endpoint, job.id).await
                }
                _ => client.status_sync(endpoint, job.id, LOOK_WAIT).await,
            }
        };
        match answers.await {
            Ok(present) => {
                silent_since = None;
                job = present;
            }
            Err(error @ (ClientError::Unreachable { .. } | ClientError::TimedOut { .. })) => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() > OUTAGE_MAX {
                    return Err(error);
                }
                step.detail("the server does not respond; retrying");
                tokio::time::sleep(OUTAGE_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(job)
}

/// Describes the job's state in a few words.
fn stage(job: &Job, health: Option<&Health>) -> String {
    match (job.status, health) {
        (JobState::InQueue, Some(health)) => {
            let workers = &health.workers;
            let working = match (workers.running + workers.idle, workers.initializing) {
                (0, 0) if workers.unhealthy > 0 => "workers keep crashing".to_owned(),
                (0, 0) => "no worker is running".to_owned(),
                (0, starting) => format!("{starting} starting"),
                (1, _) => "1 worker is running".to_owned(),
                (up, _) => format!("{up} workers are running"),
            };
            format!("{} · {working}", in_line(job.position, health.jobs.in_queue))
        }
        (JobState::InQueue, None) => in_line(job.position, 0),
        (_, _) => match &job.output {
            Some(progress) => format!("running · {}", short(progress)),
            None => "running".to_owned(),
        },
    }
}

/// Describes a queued job's position among `waiting` queued jobs.
fn in_line(position: Option<u64>, waiting: u64) -> String {
    match position {
        // The counts come from two requests, so the position may exceed the number of queued jobs.
        Some(position) if waiting >= position => format!("queued, position {position} of {waiting}"),
        Some(position) => format!("queued, position {position}"),
        None => "queued".to_owned(),
    }
}

fn short(progress: &RawValue) -> String {
    let text = serde_json::from_str::<String>(progress.get()).unwrap_or_else(|_| progress.get().to_owned());
    harmless(text.lines().next().unwrap_or_default()).chars().take(PROGRESS_CHARS_MAX).collect()
}

/// Prints that the job continues, and how to follow it.
pub(super) fn still_going(session: &Connection, endpoint: &str, job: JobId, why: &Wait) {
    let why = match why {
        Wait::Over(time) => format!("not done after {}", span(*time)),
        Wait::Interrupted => "stopped waiting".to_owned(),
    };
    session.screen.note(&format!("{why}; the job continues"));
    session.screen.line(&format!("    longshore status {endpoint} {job} --wait     # waits for it again"));
    session.screen.line(&format!("    longshore cancel {endpoint} {job}            # ends it"));
}

/// Prints a terminal job. In a table format its output goes to standard output, everything else to standard error.
pub(super) fn show_end(session: &Connection, job: &Job) -> CommandResult {
    show_end_with(session, job, job.output.as_deref())
}

/// Prints a terminal job with `output` in place of its own, which is printed already if `output` is `None`.
fn show_end_with(session: &Connection, job: &Job, output: Option<&RawValue>) -> CommandResult {
    let completed = job.status == JobState::Completed;
    let exit = if completed { CommandExit::Success } else { CommandExit::JobFailed };
    if session.output.format != OutputFormat::Table {
        show_record(session, job)?;
        return Ok(exit);
    }
    let screen = &session.screen;
    let ms = |ms: Option<u64>| span(Duration::from_millis(ms.unwrap_or(0)));
    let times = match (job.delay_time, job.execution_time) {
        (None, None) => String::new(),
        (queued, ran) => format!("(queued {}, ran {})", ms(queued), ms(ran)),
    };
    let said = format!("{} {} {}", job.id, job.status, screen.dim(&times));
    if completed {
        screen.good(said.trim_end());
    } else {
        screen.bad(said.trim_end());
    }
    if let Some(error) = &job.error {
        for line in harmless(&readable(error)).lines() {
            screen.line(&format!("    {line}"));
        }
    }
    if let Some(output) = output {
        session.output.line(&shown(output, stdout().is_terminal()))?;
    }
    Ok(exit)
}

/// Returns the output as indented JSON. On a terminal, a long one is cut and a line tells how to get the rest.
fn shown(output: &RawValue, on_terminal: bool) -> String {
    let text = pretty(output);
    if !on_terminal || text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    let start = &text[..text.floor_char_boundary(START_BYTES)];
    let size = size(text.len() as u64);
    format!(
        "{start} …\n({size} of JSON; the start is shown. All of it goes to a file or a pipe: add `> output.json`)"
    )
}

/// Prints all fields of the job.
pub(super) fn show_record(session: &Connection, job: &Job) -> CommandResult<()> {
    let text = String::from_utf8_lossy(&job.text).into_owned();
    let record = RawValue::from_string(text).map_err(|error| cannot("read the job's record", error))?;
    session.output.record(&record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_is_cut_on_a_terminal_only() {
        let long = RawValue::from_string(format!("\"{}\"", "ü".repeat(3_000))).unwrap();
        assert_eq!(shown(&long, false), long.get());
        let cut = shown(&long, true);
        assert!(cut.len() < 1_200 && cut.contains("6.0 kB") && cut.contains("> output.json"), "{cut}");
        let short = RawValue::from_string("\"hi\"".to_owned()).unwrap();
        assert_eq!(shown(&short, true), "\"hi\"");
    }
}
