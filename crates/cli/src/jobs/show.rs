//! `longshore status`, `longshore health` and `longshore requests`.

use longshore_client::Explanation;
use longshore_model::JobState;
use serde_json::value::RawValue;

use super::explain::{READERS, log_lines};
use super::{HealthArgs, RequestsArgs, StatusArgs, follow};
use crate::exit::{CommandExit, CommandResult, needing};
use crate::human::{ms_cell, time_cell};
use crate::output::{OutputFormat, harmless};
use crate::table::Column;

const REQUESTS: &[Column] = &[
    Column::new("JOB", "id"),
    Column::new("STATUS", "status"),
    Column::new("CREATED", "createdAt").shown_as(time_cell),
    Column::new("QUEUED", "delayTime").shown_as(ms_cell),
    Column::new("RAN", "executionTime").shown_as(ms_cell),
];

const ATTEMPTS: &[Column] = &[
    Column::new("TRY", "n"),
    Column::new("WORKER", "worker"),
    Column::new("GPU", "gpu"),
    Column::new("TAKEN", "takenAt").shown_as(time_cell),
    Column::new("ENDED", "endedAt").shown_as(time_cell),
    Column::new("END", "end"),
    Column::new("REASON", "reason"),
];

/// Parses a job state, in upper or lower case.
pub(super) fn state(text: &str) -> Result<String, String> {
    let name = text.to_ascii_uppercase();
    JobState::parse(&name)
        .map(|_| name)
        .ok_or_else(|| format!("one of {}", JobState::ALL.map(JobState::as_str).join(", ")))
}

/// Prints a job, or with `--wait` its end, or with `--attempts` its attempts.
pub(crate) async fn status(args: &StatusArgs) -> CommandResult {
    let session = args.at.remote.connect()?.whole_if(args.waiting.raw);
    if args.attempts {
        let life = session.client.job_life(&args.at.endpoint, args.job).await?;
        session.output.records(ATTEMPTS, &life.attempts)?;
        return Ok(CommandExit::Success);
    }
    let job = session.client.status(&args.at.endpoint, args.job).await?;
    if args.waiting.wait {
        return follow::to_the_end(&session, &args.at.endpoint, job, args.waiting.timeout).await;
    }
    follow::show_record(&session, &job)?;
    Ok(CommandExit::Success)
}

/// Prints the job and worker counts of an endpoint.
pub(crate) async fn health(args: &HealthArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let text = session.client.health_text(&args.at.endpoint).await;
    let text = text.map_err(needing(READERS, &args.at.endpoint))?;
    if session.output.format != OutputFormat::Table {
        session.output.record(&text)?;
        return Ok(CommandExit::Success);
    }
    let numbers = crate::output::parsed(&text);
    for name in ["jobs", "workers"] {
        let of = &numbers[name];
        let counts =
            of.as_object().into_iter().flatten().map(|(kind, count)| format!("{count} {}", words(kind)));
        let line = format!("{name:8} {}", counts.collect::<Vec<_>>().join(" · "));
        session.output.line(&line)?;
    }
    // An older server does not know the route, and the counts are worth showing without the reason.
    if let Ok(explanation) = session.client.explain(&args.at.endpoint, None).await {
        for line in reasons(&explanation) {
            session.output.line(&line)?;
        }
    }
    Ok(CommandExit::Success)
}

/// Why jobs wait or would wait: the cause, unless no job waits, and every further one that is blocking.
fn reasons(explanation: &Explanation) -> Vec<String> {
    let is_waiting = explanation.queued != Some(0);
    let cause = Some(&explanation.cause).filter(|_| is_waiting);
    let blocking = explanation.also.iter().filter(|cause| cause.blocking);
    let told = cause.into_iter().chain(blocking);
    told.flat_map(|cause| {
        let text = harmless(&format!("{}: {}", cause.title, cause.text));
        std::iter::once(format!("reason   {text}")).chain(log_lines(cause).collect::<Vec<_>>())
    })
    .collect()
}

/// Splits a JSON name into words: `inProgress` → `in progress`.
fn words(name: &str) -> String {
    name.chars().fold(String::new(), |mut words, c| {
        if c.is_uppercase() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        words
    })
}

/// Lists the jobs of an endpoint, newest first.
pub(crate) async fn requests(args: &RequestsArgs) -> CommandResult {
    let session = args.at.remote.connect()?;
    let mut query = format!("limit={}", args.limit);
    if let Some(state) = &args.status {
        query = format!("{query}&status={state}");
    }
    if let Some(cursor) = args.cursor {
        query = format!("{query}&cursor={cursor}");
    }
    let page = session.client.requests(&args.at.endpoint, &query).await?;
    let records: &[Box<RawValue>] = &page.requests;
    session.output.records(REQUESTS, records)?;
    if let Some(cursor) = page.cursor {
        session.screen.line(&session.screen.dim(&format!("more: add --cursor {cursor}")));
    }
    Ok(CommandExit::Success)
}
