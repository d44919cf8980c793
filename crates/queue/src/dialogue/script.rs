//! Parses and runs the lines of a script.

use std::boxed::Box;
use std::fmt::Write;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use longshore_model::{
    Attempt, Idempotency, JobEnd, JobId, JobState, KeyId, OwnerNo, Submitter, TraceContext,
};

use super::command::{Command, Reply};
use super::print::{attempts, describe, page, status, time, workers};
use super::world::{World, worker};
use crate::{Report, Submit, Take};

/// Runs one line and appends its dialogue.
pub(super) fn play(world: &mut World, line: &str, dialogue: &mut String) {
    let at = time(world.now);
    let words: Vec<&str> = line.split_whitespace().collect();
    let said = match words[..] {
        ["wait", span] => return wait(world, span, dialogue),
        ["submit", count] if count.parse::<u32>().is_ok() => submit_many(world, count),
        ["restart"] => {
            world.restart(false);
            world.restart(true);
            format!("{} jobs", world.queue.len())
        }
        ["clock", "back", span] => {
            world.now = world.now - millis(span);
            format!("it is {}", time(world.now))
        }
        ["reload"] => {
            let before = world.restart(false);
            world.queue.adopt_workers(&before, world.now);
            format!("{} jobs", world.queue.len())
        }
        // Without ticks, as when the process is suspended.
        ["skip", span] => {
            world.now = world.now + millis(span);
            format!("it is {}", time(world.now))
        }
        ["status", job] => status(world, job),
        ["attempts", job] => attempts(world, job),
        ["position", job] => {
            let job = world.job(job, false);
            world.queue.position(job).map_or_else(|| "not in line".to_string(), |at| at.to_string())
        }
        ["load"] => {
            let load = world.queue.load();
            let since =
                load.oldest_normal_since.map(|since| format!(", oldest normal since {}", time(since)));
            let since = since.unwrap_or_default();
            format!("queued {} ({} normal), running {}{since}", load.queued, load.queued_normal, load.running)
        }
        ["workers"] => workers(world),
        ["counters"] => {
            let c = world.queue.counters();
            format!(
                "completed {}, failed {}, cancelled {}, retried {}",
                c.completed, c.failed, c.cancelled, c.retried
            )
        }
        ["list", ref rest @ ..] => page(world, rest),
        _ => {
            let command = command(world, line, &words);
            let (reply, effects, notes) = world.apply(command.clone());
            describe(world, &command, &reply, &effects, &notes)
        }
    };
    writeln!(dialogue, "{at} {line}: {said}").expect("writing to a string succeeds");
}

/// Advances the time, and appends a line for each tick that did something.
fn wait(world: &mut World, span: &str, dialogue: &mut String) {
    let until = world.now + millis(span);
    let mut rounds = vec![];
    world.pass_time(until, |world, effects, notes| {
        let said = describe(world, &Command::Tick, &Reply::Done, effects, &notes);
        if said != "ok" {
            rounds.push(format!("{} tick: {said}\n", time(world.now)));
        }
    });
    dialogue.extend(rounds);
}

/// Submits jobs with the names `j0`, `j1` and so on.
fn submit_many(world: &mut World, count: &str) -> String {
    let count: usize = count.parse().expect("a count");
    for _ in 0..count {
        let name = format!("j{}", world.names.len());
        let submit = submit(world, &name, &[]);
        let (reply, ..) = world.apply(Command::Submit(submit));
        assert!(matches!(reply, Reply::Accepted), "{reply:?}");
    }
    format!("{count} accepted")
}

/// Parses a line that calls a verb.
fn command(world: &mut World, line: &str, words: &[&str]) -> Command {
    match *words {
        ["submit", name, ref flags @ ..] => Command::Submit(submit(world, name, flags)),
        ["take", id, ref flags @ ..] => Command::Take(take(id, flags)),
        ["done", id, job] => report(world, id, job, Report::Completed { output_bytes: 10 }),
        ["done", id, job, bytes] => {
            let output_bytes = bytes.parse().expect("a size in bytes");
            report(world, id, job, Report::Completed { output_bytes })
        }
        ["error", id, job] => report(world, id, job, Report::Failed),
        ["progress", id, job] => Command::Progress { worker: worker(id), job: world.job(job, false) },
        ["append", id, job] => Command::Append { worker: worker(id), job: world.job(job, false) },
        ["ping", id] => Command::Ping { worker: worker(id), holds: None },
        ["ping", id, "-"] => Command::Ping { worker: worker(id), holds: Some(vec![]) },
        ["ping", id, jobs] => {
            let holds = jobs.split(',').map(|job| world.job(job, false)).collect();
            Command::Ping { worker: worker(id), holds: Some(holds) }
        }
        ["unread", job] => undelivered(world, job, None),
        ["unread", job, attempt] => {
            let attempt = Attempt(attempt.parse().expect("an attempt"));
            Command::Undelivered { job: world.job(job, false), attempt, damage: None }
        }
        ["damaged", job] => undelivered(world, job, Some("its input is damaged")),
        ["alive", id] => Command::TouchWorker(worker(id)),
        ["cancel", job] => Command::Cancel(world.job(job, false)),
        ["retry", job] => Command::Retry(world.job(job, false)),
        ["purge"] => Command::Purge,
        ["keep", job, ttl] => Command::SetTtl { job: world.job(job, false), ttl_ms: millis(ttl) },
        ["introduce", id] => Command::RegisterWorker(worker(id)),
        ["drain", id] => Command::DrainWorker(worker(id)),
        ["lose", id, how, ..] => Command::LoseWorker {
            worker: worker(id),
            counts_retry: how == "counted",
            reason: line.split('\'').nth(1).unwrap_or("exit code 1").to_string(),
        },
        ["forgive"] => Command::RenewLeases,
        ["settled", job] => {
            let (job, end) = end_of(world, job, <[JobEnd]>::last);
            Command::SettleWebhook { job, end }
        }
        ["settled", job, "first"] => {
            let (job, end) = end_of(world, job, <[JobEnd]>::first);
            Command::SettleWebhook { job, end }
        }
        ["repeat", job] => {
            let (job, end) = end_of(world, job, <[JobEnd]>::last);
            Command::RedeliverWebhook { job, end }
        }
        ["tick"] => Command::Tick,
        ["set", ref flags @ ..] => set(world, flags),
        ["demolish"] => Command::DeleteSlice,
        _ => panic!("a script says {line:?}"),
    }
}

fn submit(world: &mut World, name: &str, flags: &[&str]) -> Submit {
    let value = |key: &str| flags.iter().find_map(|flag| flag.strip_prefix(key)?.strip_prefix('='));
    let idempotency = value("key").map(|key| {
        let mut fingerprint = [0; 16];
        let body = value("body").unwrap_or_default().as_bytes();
        fingerprint[..body.len()].copy_from_slice(body);
        Box::new(Idempotency { key: key.into(), fingerprint })
    });
    Submit {
        id: world.job(name, flags.contains(&"sync")),
        input_bytes: 10,
        low_priority: flags.contains(&"low"),
        webhook: flags.contains(&"hook"),
        execution_timeout_ms: value("timeout").map(|span| millis(span) as u32),
        ttl_ms: value("ttl").map(|span| millis(span) as u32),
        idempotency,
        submitter: value("by").map(by).unwrap_or_default(),
        trace: value("trace").map(|number| Box::new(trace(number))),
    }
}

/// A submitter whose key and owner have this number.
fn by(number: &str) -> Submitter {
    let number = number.parse().expect("the number of a key");
    Submitter { owner: OwnerNo(number), key: KeyId::from_number(u64::from(number)) }
}

/// A trace whose ids are bytes of this number.
fn trace(number: &str) -> TraceContext {
    let number = number.parse().expect("a number below 256");
    TraceContext::new([number; 16], [number; 8], true)
}

fn take(id: &str, flags: &[&str]) -> Take {
    let slots = flags.iter().find_map(|flag| flag.strip_prefix('x')).map(|n| n.parse().expect("slots"));
    let says_busy = flags.iter().find_map(|flag| match *flag {
        "idle" => Some(false),
        "busy" => Some(true),
        _ => None,
    });
    let overlapping = flags.contains(&"overlapping");
    let input_bytes_max = flags.iter().find_map(|flag| flag.strip_prefix("bytes="));
    let input_bytes_max = input_bytes_max.map_or(u64::MAX, |bytes| bytes.parse().expect("a size in bytes"));
    let gpu = flags.iter().find_map(|flag| flag.strip_prefix("gpu=")).map(Into::into);
    Take {
        worker: worker(id),
        slots: slots.unwrap_or(1),
        says_busy,
        overlapping,
        address: None,
        gpu,
        input_bytes_max,
    }
}

fn report(world: &mut World, id: &str, job: &str, report: Report) -> Command {
    Command::Report { worker: worker(id), job: world.job(job, false), report }
}

/// The verb undelivered for the present attempt of the job.
fn undelivered(world: &mut World, job: &str, damage: Option<&str>) -> Command {
    let job = world.job(job, false);
    let attempt = world.queue.find_stored(job).map_or(Attempt(0), |row| row.attempt);
    Command::Undelivered { job, attempt, damage: damage.map(ToString::to_string) }
}

/// A job, and the one of its ends with a webhook call that `pick` selects.
fn end_of(world: &mut World, job: &str, pick: impl Fn(&[JobEnd]) -> Option<&JobEnd>) -> (JobId, JobEnd) {
    let job = world.job(job, false);
    let none = JobEnd { state: JobState::Completed, attempt: Attempt(1) };
    let end = world.ends.get(&job).and_then(|ends| pick(ends)).copied().unwrap_or(none);
    (job, end)
}

/// Changes settings of the endpoint.
fn set(world: &mut World, flags: &[&str]) -> Command {
    for flag in flags {
        match flag.split_once('=') {
            None if *flag == "paused" => world.settings.paused = true,
            None if *flag == "running" => world.settings.paused = false,
            None if *flag == "retry-errors" => world.settings.retry_handler_errors = true,
            Some(("retries", n)) => world.settings.max_retries = n.parse().expect("a number"),
            Some(("jobs", n)) => world.settings.jobs_max = n.parse().expect("a number"),
            Some(("lease", span)) => world.settings.lease_ms = millis(span),
            Some(("grace", span)) => world.settings.stop_grace_ms = millis(span),
            Some(("retention", span)) => world.settings.retention_ms = millis(span),
            _ => panic!("a script sets {flag:?}"),
        }
    }
    Command::Configure(world.settings)
}

/// Parses a time span, for example `250ms`, `5s`, `30m` or `24h`, to milliseconds.
pub(super) fn millis(span: &str) -> u64 {
    let digits = span.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().expect("a span of time");
    match &span[digits.len()..] {
        "ms" => number,
        "s" => number * 1_000,
        "m" => number * 60_000,
        "h" => number * 3_600_000,
        unit => panic!("a script counts time in {unit:?}"),
    }
}

/// Parses the wire name of a state.
pub(super) fn state(name: &str) -> JobState {
    JobState::parse(name).expect("the name of a state")
}
