//! Waits for the end of one job and shows its state meanwhile.

use std::time::{Duration, Instant};

use longshore_client::{Client, ClientError, Explanation, Job, WaitCause};
use longshore_model::{JobId, JobState};
use serde_json::value::RawValue;

use super::chunks::Chunks;
use super::explain::log_lines;
use super::summary::{short_record, summary};
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
/// How long a job waits before its reason is printed.
const REASON_AFTER_MS: u64 = 2_000;
/// The code of a job that was taken meanwhile.
const NOT_WAITING: &str = "not_waiting";
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
    let mut chunks = Chunks::of(session, endpoint, id);
    let ended = tokio::select! {
        job = ended(session, endpoint, job, &step, chunks.as_mut()) => Ok(job?),
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
    session: &Connection,
    endpoint: &str,
    mut job: Job,
    step: &Step,
    mut chunks: Option<&mut Chunks<'_>>,
) -> Result<Job, ClientError> {
    let client = &session.client;
    let mut silent_since: Option<Instant> = None;
    let mut reason = WaitReason::default();
    while !job.status.is_terminal() {
        let answers = async {
            if job.status == JobState::InQueue && job.position.is_none() {
                // The response to a submit has no position in the queue.
                job = client.status(endpoint, job.id).await?;
            }
            let explanation = explanation(client, endpoint, &job).await;
            step.detail(stage(&job, explanation.as_ref()));
            reason.print(session, explanation.as_ref());
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

/// Why a queued job waits; `None` for any other job, and if the server does not say.
async fn explanation(client: &Client, endpoint: &str, job: &Job) -> Option<Explanation> {
    if job.status != JobState::InQueue {
        return None;
    }
    client.explain(endpoint, Some(job.id)).await.ok()
}

/// The reason that was printed last, as its code and the stage of the starting worker: its text changes with every
/// second.
#[derive(Default)]
struct WaitReason {
    code: String,
    stage: Option<String>,
}

impl WaitReason {
    /// Whether the reason is another one than before, and worth a line. A job that came a moment ago needs none, unless
    /// nothing would start it.
    fn is_new(&mut self, explanation: &Explanation) -> bool {
        let cause = &explanation.cause;
        let stage = stage_of(cause);
        let is_fresh = explanation.waiting_ms.is_none_or(|ms| ms < REASON_AFTER_MS);
        let is_same = cause.code == self.code && stage == self.stage.as_deref();
        if is_same || cause.code == NOT_WAITING || is_fresh && !cause.blocking {
            return false;
        }
        *self = Self { code: cause.code.clone(), stage: stage.map(str::to_owned) };
        true
    }

    /// Prints the reason on standard error if it is a new one.
    fn print(&mut self, session: &Connection, explanation: Option<&Explanation>) {
        let Some(explanation) = explanation.filter(|explanation| self.is_new(explanation)) else { return };
        let cause = &explanation.cause;
        session.screen.note(&harmless(&format!("{}: {}", cause.title, cause.text)));
        for line in log_lines(cause) {
            session.screen.line(&line);
        }
    }
}

/// The stage of the starting worker that a job waits for.
fn stage_of(cause: &WaitCause) -> Option<&str> {
    cause.details.get("stage")?.as_str()
}

/// The cause's title, with the stage of a starting worker.
pub(crate) fn title(cause: &WaitCause) -> String {
    let stage = match stage_of(cause) {
        Some("creating") => "creating its container",
        Some("starting") => "starting its container",
        Some("environment") => "making its Python environment",
        Some("packages") => "installing packages",
        Some("loading") => "loading",
        // The title of a pull has its progress.
        _ => return harmless(&cause.title),
    };
    format!("{}: {stage}", harmless(&cause.title))
}

/// Describes the job's state in a few words.
fn stage(job: &Job, explanation: Option<&Explanation>) -> String {
    match (job.status, explanation) {
        (JobState::InQueue, Some(explanation)) => {
            let in_line = in_line(explanation.position, explanation.queued.unwrap_or_default());
            format!("{in_line} · {}", title(&explanation.cause))
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
        let text = pretty(output);
        session.output.line(&if session.output.summarizes { summary(&text) } else { text })?;
    }
    Ok(exit)
}

/// Prints all fields of the job; on a terminal, large and binary ones are shortened.
pub(super) fn show_record(session: &Connection, job: &Job) -> CommandResult<()> {
    let text = String::from_utf8_lossy(&job.text).into_owned();
    let record = RawValue::from_string(text).map_err(|error| cannot("read the job's record", error))?;
    if !session.output.summarizes {
        return session.output.record(&record);
    }
    let short = RawValue::from_string(short_record(&record)?);
    session.output.record(&short.map_err(|error| cannot("shorten the job's record", error))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(code: &str, stage: &str, waiting_ms: u64) -> Explanation {
        let text = format!(
            r#"{{"position": 1, "queued": 3, "waitingMs": {waiting_ms}, "cause": {{"code": "{code}", "blocking": false,
                "title": "A worker is starting", "text": "…", "details": {{"stage": {stage}}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn every_stage_of_a_start_is_said_once() {
        let mut reason = WaitReason::default();
        let mut said = |code, stage, ms| reason.is_new(&explanation(code, stage, ms));
        assert!(!said("worker_starting", "null", 100), "a fresh job needs no reason");
        assert!(said("worker_starting", "null", 3_000));
        assert!(said("worker_starting", "\"packages\"", 4_000));
        assert!(!said("worker_starting", "\"packages\"", 5_000));
        assert!(said("worker_starting", "\"loading\"", 6_000));
        assert!(!said(NOT_WAITING, "null", 7_000));
        assert!(said("all_busy", "null", 8_000));
    }

    #[test]
    fn the_moving_line_has_the_stage() {
        let job = r#"{"id": "0190163d-8694-739b-aea5-966c26f8ad90", "status": "IN_QUEUE"}"#;
        let job: Job = serde_json::from_str(job).unwrap();
        let line = |stage_name| stage(&job, Some(&explanation("worker_starting", stage_name, 0)));
        assert_eq!(
            line("\"packages\""),
            "queued, position 1 of 3 · A worker is starting: installing packages"
        );
        assert_eq!(line("null"), "queued, position 1 of 3 · A worker is starting");
    }
}
