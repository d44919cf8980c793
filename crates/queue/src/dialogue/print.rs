//! Prints results and effects as text for the dialogues.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use longshore_model::{Attempt, JobId, Millis};

use super::command::{Command, Reply};
use super::rows::{Note, Outcome};
use super::script::state;
use super::world::{START, World};
use crate::{Effects, JobConditions, Signal};

/// The largest number of notes that are printed one by one. More notes are counted by their text.
const NOTES_MAX: usize = 8;

/// Returns what a command did: its result, then the changes of rows and the signals; `ok` if there is nothing to print.
pub(super) fn describe(
    world: &World,
    command: &Command,
    result: &Reply,
    effects: &Effects,
    notes: &[Note],
) -> String {
    let mut said = Vec::new();
    said.extend(reply(world, result));
    let mut notes: Vec<_> = notes.iter().map(|note| (name(world, note.job), note.text.clone())).collect();
    for signal in &effects.signals {
        notes.extend(signal_note(world, command, signal));
    }
    if notes.len() > NOTES_MAX {
        said.extend(counted(&notes));
    } else {
        said.extend(notes.iter().map(|(who, what)| format!("{who} {what}").trim().to_string()));
    }
    if matches!(command, Command::Append { .. }) && matches!(result, Reply::Ignored) {
        assert!(effects.changes.is_empty());
    }
    let said = if said.is_empty() { "ok".to_string() } else { said.join("; ") };
    with_names(world, said)
}

/// Counts notes with the same text.
fn counted(notes: &[(String, String)]) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for (_, what) in notes {
        *counts.entry(what).or_insert(0) += 1;
    }
    counts.into_iter().map(|(what, count)| format!("{count} × {what}")).collect()
}

fn signal_note(world: &World, command: &Command, signal: &Signal) -> Option<(String, String)> {
    match signal {
        // Other commands that make a job ready show it by their result.
        Signal::JobReady if matches!(command, Command::Configure(_) | Command::Take(_)) => {
            Some((String::new(), "ready".to_string()))
        }
        // The audit checks `Ended`, `Requeued` and `Expired`; the others are implied or only hints.
        Signal::Ended { .. }
        | Signal::Requeued(_)
        | Signal::Expired(_)
        | Signal::LoadChanged
        | Signal::JobReady => None,
        Signal::Deleted(job, _) => Some((name(world, *job), "deleted".to_string())),
        Signal::StopJob(worker, job) => Some((name(world, *job), format!("stop at {worker}"))),
        Signal::ReplaceWorker(worker, why) => Some((String::new(), format!("replace {worker}: {why}"))),
        Signal::LetGo { worker, since, .. } => {
            Some((String::new(), format!("{worker} let go of its only job since {}", time(*since))))
        }
        Signal::WebhookDue(job, ..) => Some((name(world, *job), "webhook due".to_string())),
    }
}

fn reply(world: &World, reply: &Reply) -> Option<String> {
    match reply {
        Reply::Done => None,
        Reply::Accepted => Some("accepted".to_string()),
        Reply::Known(row) => Some(format!("known as {} {}", name(world, row.id), row.state)),
        Reply::Taken(rows) if rows.is_empty() => Some("nothing".to_string()),
        Reply::Taken(rows) => Some(rows.iter().map(|row| name(world, row.id)).collect::<Vec<_>>().join(", ")),
        Reply::Recorded => Some("recorded".to_string()),
        Reply::Ignored => Some("ignored".to_string()),
        Reply::MayAppend(_, attempt) => Some(format!("may append in attempt {}", attempt.0)),
        Reply::Job(row) => Some(row.state.to_string()),
        Reply::Purged(count) => Some(format!("{count} purged")),
        Reply::Left(count) => Some(format!("{count} left")),
        Reply::Refused(why) => Some(format!("refused, {why:?}")),
    }
}

/// Returns the job as a client sees it, with what is stored for it.
pub(super) fn status(world: &mut World, name: &str) -> String {
    let job = world.job(name, false);
    let Some(row) = world.queue.find_visible(job, world.now) else { return "no such job".to_string() };
    let mut said = Vec::from([row.state.to_string()]);
    if let (false, Some(worker)) = (row.ran(), &row.worker) {
        said[0] = format!("{} after {worker}", row.state);
    }
    if row.ran() {
        let by = row.worker.as_ref().map_or("no worker", |worker| worker.as_str());
        said[0] = format!("{} by {by}", row.state);
        said.push(format!("delay {}", seconds(row.delay_ms())));
        said.push(format!("execution {}", seconds(row.execution_ms(world.now))));
    }
    if row.first_chunk_at != Millis(0) {
        said.push(format!("first chunk {}", time(row.first_chunk_at)));
    }
    if let Some(gpu) = &row.gpu {
        said.push(format!("on {gpu}"));
    }
    if let Some(times) = &row.progress {
        let after: Vec<_> = times.iter().map(|ms| seconds(u64::from(*ms))).collect();
        said.push(format!("progress after {}", after.join(" ")));
    }
    if row.retries > 0 {
        said.push(format!("retries {}", row.retries));
    }
    said.extend(world.rows.streams.get(&row.key).map(|chunks| format!("chunks {chunks}")));
    said.extend(world.rows.outcomes.get(&row.key).map(|outcome| match outcome {
        Outcome::Reported => "outcome".to_string(),
        Outcome::Error(error) => format!("error {error:?}"),
    }));
    said.push(format!("until {}", time(row.delete_at)));
    with_names(world, said.join(", "))
}

/// Returns the stored attempts of a job.
pub(super) fn attempts(world: &mut World, name: &str) -> String {
    let job = world.job(name, false);
    let Some(row) = world.queue.find_visible(job, world.now) else { return "no such job".to_string() };
    let of_job = world.rows.attempts.range((row.key, Attempt(0))..=(row.key, Attempt(u32::MAX)));
    let all: Vec<_> = of_job
        .map(|((_, n), attempt)| {
            let by = attempt.worker.as_ref().map_or("no worker", |worker| worker.as_str());
            let (from, to) = (time(attempt.taken_at), time(attempt.ended_at));
            let on = attempt.gpu.as_ref().map_or_else(String::new, |gpu| format!(" on {gpu}"));
            format!("{} by {by}{on} from {from} to {to} {}: {}", n.0, attempt.end.as_str(), attempt.reason)
        })
        .collect();
    if all.is_empty() { "none".to_string() } else { with_names(world, all.join("; ")) }
}

/// Returns the load of every worker.
pub(super) fn workers(world: &World) -> String {
    let all: Vec<_> = world
        .queue
        .worker_loads()
        .map(|load| {
            assert_eq!(load.managed, world.queue.is_managed(&load.id));
            let kind = if load.managed { "managed" } else { "external" };
            let doing = match load.running {
                0 => format!("idle since {}", time(load.idle_since)),
                running => format!("holds {running}"),
            };
            format!("{} {kind} {:?} {doing}", load.id, load.phase)
        })
        .collect();
    if all.is_empty() { "none".to_string() } else { all.join("; ") }
}

/// Returns a page of jobs. The words after `list` are a state, a limit, a cursor and `oldest`, as in
/// `list FAILED 2 before=a`; each may be missing.
pub(super) fn page(world: &mut World, words: &[&str]) -> String {
    let limit = words.iter().find_map(|word| word.parse().ok()).unwrap_or(100);
    let before = words.iter().find_map(|word| word.strip_prefix("before=")).map(|job| world.job(job, false));
    let only = words.iter().find(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    let states = only.map(|name| state(name)).into_iter().collect();
    let is_ascending = words.contains(&"oldest");
    let conditions = JobConditions { states, is_ascending, ..JobConditions::default() };
    let page = world.queue.page(&conditions, limit, before, world.now);
    let jobs = page.jobs.iter().map(|row| format!("{} {}", name(world, row.id), row.state));
    let jobs = jobs.collect::<Vec<_>>().join(", ");
    match page.cursor {
        Some(cursor) if is_ascending => format!("{jobs}; more after {}", name(world, cursor)),
        Some(cursor) => format!("{jobs}; more before {}", name(world, cursor)),
        None => format!("{jobs}; the end"),
    }
}

fn name(world: &World, job: JobId) -> String {
    let name = world.names.iter().find(|(_, id)| **id == job).map(|(name, _)| name.clone());
    name.unwrap_or_else(|| job.to_string())
}

/// Replaces ids of jobs in a text by their names.
fn with_names(world: &World, mut text: String) -> String {
    if text.contains("-7000-") {
        for (name, id) in &world.names {
            text = text.replace(&id.to_string(), name);
        }
    }
    text
}

/// Returns a time relative to [`START`], for example `1.5s`.
pub(super) fn time(at: Millis) -> String {
    seconds(at.since(START))
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{}s", ms as f64 / 1000.0) }
}
