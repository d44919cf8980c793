//! Waits for the end of one job and shows its state meanwhile.

use std::time::{Duration, Instant};

use longshore_client::{Client, ClientError, Health, Job};
use longshore_model::{JobId, JobState};
use serde_json::value::RawValue;

use crate::exit::{CommandExit, CommandResult, cannot};
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
    let ended = tokio::select! {
        job = ended(&session.client, endpoint, job, &step) => Ok(job?),
        () = ctrl_c.requested() => Err((Wait::Interrupted, CommandExit::Interrupted)),
        () = over => Err((Wait::Over(timeout.unwrap_or_default()), CommandExit::TimedOut)),
    };
    drop(step);
    match ended {
        Ok(job) => show_end(session, &job),
        Err((why, exit)) => {
            still_going(session, endpoint, id, &why);
            Ok(exit)
        }
    }
}

/// Returns the job once it is terminal.
async fn ended(client: &Client, endpoint: &str, mut job: Job, step: &Step) -> Result<Job, ClientError> {
    let mut silent_since: Option<Instant> = None;
    while !job.status.is_terminal() {
        let answers = async {
            if job.status == JobState::InQueue && job.position.is_none() {
                // The response to a submit has no position in the queue.
                job = client.status(endpoint, job.id).await?;
            }
            step.detail(stage(&job, client.health(endpoint).await.ok().as_ref()));
            client.status_sync(endpoint, job.id, LOOK_WAIT).await
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
    if let Some(output) = &job.output {
        session.output.line(&pretty(output))?;
    }
    Ok(exit)
}

/// Prints all fields of the job.
pub(super) fn show_record(session: &Connection, job: &Job) -> CommandResult<()> {
    let text = String::from_utf8_lossy(&job.text).into_owned();
    let record = RawValue::from_string(text).map_err(|error| cannot("read the job's record", error))?;
    session.output.record(&record)
}
