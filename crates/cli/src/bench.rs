//! `longshore bench`: measures a server with small jobs. This process is both the client and the worker.
//! The result covers the server, this computer and the network between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use longshore_client::{Client, ClientError, Collection, ExternalWorker};
use longshore_model::JobState;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::task::JoinSet;

use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::members::Members;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::screen::{Step, span};
use crate::stop::StopRequest;

const INPUT: &[u8] = br#"{"input":{"prompt":"a small job, as most are"}}"#;
const OUTPUT: &str = r#"{"text":"a small answer"}"#;
/// A job that has not completed after this time counts as lost.
const WAIT: Duration = Duration::from_mins(1);

/// Arguments of `longshore bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Number of jobs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jobs: u64,
    /// Number of concurrent jobs
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=256))]
    concurrency: u64,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Counts and times of the jobs of one run.
#[derive(Default)]
struct Tally {
    times: Vec<Duration>,
    refused: u64,
    lost: u64,
}

/// Creates an endpoint, runs the jobs on it, and deletes the endpoint.
pub(crate) async fn bench(args: &BenchArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let mut ctrl_c = StopRequest::listen().map_err(|error| cannot("listen for Ctrl-C", error))?;
    let (template, endpoint) = make(&session.client).await?;
    let step = session.screen.step(format!(
        "{}, {} concurrent",
        crate::human::count(args.jobs, "job"),
        args.concurrency
    ));
    let measured = tokio::select! {
        measured = measure(&session.client, &endpoint, args, &step) => Some(measured),
        () = ctrl_c.requested() => None,
    };
    step.detail("removing the endpoint");
    // The endpoint is deleted after a failed run, too.
    let removed = session.client.delete_from(Collection::Endpoints, &endpoint, false).await;
    let swept = session.client.delete_from(Collection::Templates, &template, false).await;
    drop(step);
    removed.and(swept)?;
    match measured {
        None => Ok(CommandExit::Interrupted),
        Some(measured) => {
            let (tally, took) = measured?;
            report(&session, args, tally, took)
        }
    }
}

async fn make(client: &Client) -> CommandResult<(String, String)> {
    let unique = format!("bench-{:x}-{:x}", std::process::id(), now_ns());
    let mut template = Members::default();
    template.set("name", Some(&unique))?;
    let template = Members::of(&client.create(Collection::Templates, template.body()?).await?)?;
    let template = template.text("id").unwrap_or_default();
    let mut endpoint = Members::default();
    endpoint.set("name", Some(&unique))?;
    endpoint.set("templateId", Some(&template))?;
    endpoint.set("provider", Some("external"))?;
    match client.create(Collection::Endpoints, endpoint.body()?).await {
        Ok(endpoint) => Ok((template, Members::of(&endpoint)?.text("id").unwrap_or_default())),
        Err(error) => {
            let _ = client.delete_from(Collection::Templates, &template, false).await;
            Err(error.into())
        }
    }
}

fn now_ns() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos())
}

/// Runs all jobs. The workers are stopped when the function returns.
async fn measure(
    client: &Client,
    endpoint: &str,
    args: &BenchArgs,
    step: &Step,
) -> CommandResult<(Tally, Duration)> {
    let mut workers = JoinSet::new();
    for _ in 0..args.concurrency {
        workers.spawn(work(client.external_worker(endpoint).await?));
    }
    let (left, done) = (Arc::new(AtomicU64::new(args.jobs)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..args.concurrency {
        let sender = send(client.clone(), endpoint.to_owned(), Arc::clone(&left), Arc::clone(&done));
        senders.spawn(sender);
    }
    let mut tally = Tally::default();
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        tokio::select! {
            one = senders.join_next() => match one {
                Some(one) => {
                    let one = one.map_err(|error| cannot("send jobs", error))??;
                    tally.times.extend(one.times);
                    tally.refused += one.refused;
                    tally.lost += one.lost;
                }
                None => break,
            },
            _ = ticks.tick() => step.detail(format!("{} done", done.load(Ordering::Relaxed))),
        }
    }
    Ok((tally, began.elapsed()))
}

/// Takes jobs and completes them until the future is dropped.
async fn work(worker: ExternalWorker) {
    loop {
        match worker.take().await {
            Ok(Some(job)) => {
                // A lost result is counted as a lost job.
                let _ = worker.done(&job.id, OUTPUT).await;
            }
            Ok(None) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Submits jobs one after the other until `args.jobs` are submitted.
async fn send(
    client: Client,
    endpoint: String,
    left: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
) -> Result<Tally, ClientError> {
    let mut tally = Tally::default();
    let more = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
        let began = Instant::now();
        match client.runsync(&endpoint, Bytes::from_static(INPUT), WAIT, None).await {
            Ok(job) if job.status == JobState::Completed => tally.times.push(began.elapsed()),
            Ok(_) => tally.lost += 1,
            Err(ClientError::Refused { status: 429, .. }) => {
                tally.refused += 1;
                // The rate limit counts over 10 s, so an immediate retry is refused again.
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(error) => return Err(error),
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(tally)
}

fn report(session: &Connection, args: &BenchArgs, mut tally: Tally, took: Duration) -> CommandResult {
    tally.times.sort();
    let Some(last) = tally.times.len().checked_sub(1) else {
        return Err(CommandError::new(CommandExit::Failure, "no job completed")
            .next("`longshore doctor` checks for causes"));
    };
    let at = |share: f64| tally.times[(last as f64 * share) as usize];
    let ms = |time: Duration| (time.as_secs_f64() * 100_000.0).round() / 100.0;
    let per_second = (tally.times.len() as f64 / took.as_secs_f64()).round();
    let lost_any = tally.lost > 0;
    if session.output.format == OutputFormat::Table {
        let line = |name: &str, text: String| session.output.line(&format!("{name:9} {text}"));
        line("server", session.client.base_url().to_owned())?;
        let all = format!("{} in {}, {} concurrent", tally.times.len(), span(took), args.concurrency);
        line("jobs", format!("{all} · {per_second} per second"))?;
        let times = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
        let times = times.map(|(name, share)| format!("{name} {} ms", ms(at(share))));
        line("each took", times.join(" · "))?;
        if tally.refused > 0 {
            line(
                "refused",
                format!("{} by the rate limit (429): the limit determines the figures", tally.refused),
            )?;
        }
        if lost_any {
            line("lost", format!("{} did not complete within {}", tally.lost, span(WAIT)))?;
        }
        let scope = "client and worker are this process; a handler adds its own time";
        session.screen.line(&session.screen.dim(scope));
    } else {
        let record = json!({
            "url": session.client.base_url(), "completed": tally.times.len(), "refused": tally.refused,
            "lost": tally.lost, "concurrency": args.concurrency, "seconds": ms(took) / 1_000.0,
            "perSecond": per_second, "p50Ms": ms(at(0.5)), "p90Ms": ms(at(0.9)), "p99Ms": ms(at(0.99)),
            "maxMs": ms(at(1.0)),
        });
        let record = to_raw_value(&record).map_err(|error| cannot("write the figures", error))?;
        session.output.record(&record)?;
    }
    Ok(if lost_any { CommandExit::Failure } else { CommandExit::Success })
}
