//! Other queues, measured like this server: the same bodies over 16 connections and 16 slots that complete jobs
//! immediately, durable where possible. Clients and workers run on the generator's processor, everything else on
//! the measured one.

mod beanstalkd;
mod bullmq;
mod celery;
mod finished;
mod local_api;
mod longshore;
mod postgres;
mod redis;
mod resp;
mod web_queue;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::load::{ClosedLoop, EventLoop, Role, Span, Tally, Target};
use crate::postgres_server::PostgresServer;
use crate::readings::Readings;
use crate::scenarios::{SMALL_BYTES, Scenario, ScenarioContext, job_body};

const CONNECTIONS: usize = 16;
const SLOTS: usize = 16;

/// All queues; Longshore is the first.
pub const PEERS: &[Scenario] = &[
    scenario("longshore", "this server", run::<longshore::Longshore>),
    scenario("beanstalkd", "beanstalkd, raw protocol, -b and -f 0", run::<beanstalkd::Beanstalkd>),
    scenario("redis-lists", "Redis lists, raw, appendfsync always", run::<redis::RedisLists>),
    scenario(
        "postgresql",
        "PostgreSQL, FOR UPDATE SKIP LOCKED, prepared statements",
        run::<postgres::Postgres>,
    ),
    scenario("bullmq", "BullMQ behind fastify, on Redis with appendfsync always", run::<bullmq::BullMq>),
    scenario("celery", "Celery behind FastAPI, on Redis with appendfsync always", run::<celery::Celery>),
    scenario(
        "sdk-local-api",
        "the worker SDK's own --rp_serve_api; nothing is durable there",
        local_api::run,
    ),
];

const fn scenario(
    name: &'static str,
    about: &'static str,
    run: fn(&ScenarioContext, &mut Readings) -> Result<(), String>,
) -> Scenario {
    Scenario { name, about, once: false, run }
}

/// A queue that is measured, running in a new directory.
trait Peer: Sized {
    /// Prefix of its readings.
    const NAME: &'static str;
    /// Starts the queue's server in a new directory. The error says what failed.
    fn start(ground: &ScenarioContext) -> Result<Self, String>;
    /// The server that jobs are submitted to.
    fn dial(&self) -> Target;
    /// The request that submits this body.
    fn submit(&self, body: &[u8]) -> Vec<u8>;
    /// Returns the role that runs the jobs, or observes their completion.
    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String>;
}

fn run<P: Peer>(ground: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let body = job_body(SMALL_BYTES);
    let peer = P::start(ground)?;
    let mut clients = ClosedLoop::new(peer.dial(), peer.submit(&body), CONNECTIONS, ground.span());
    EventLoop::run(&mut [&mut clients])?;
    readings.put(format!("{}.submit_per_s", P::NAME), clients.per_s());
    readings.put_times(&format!("{}.submit", P::NAME), clients.times());
    drop(peer);
    // A new instance for each measurement, so that jobs of the last one do not interfere.
    let per_s = jobs_per_s(&mut P::start(ground)?, ground)?;
    readings.put(format!("{}.jobs_per_s", P::NAME), per_s);
    Ok(())
}

/// Submits jobs and runs them. Returns the number of results a second.
fn jobs_per_s<P: Peer>(peer: &mut P, ground: &ScenarioContext) -> Result<f64, String> {
    let tally = Rc::new(Tally::submitting());
    let mut consumer = peer.consumer(Rc::clone(&tally))?;
    let span = Span { warm_up: Duration::ZERO, counted: ground.span().counted };
    let clients = ClosedLoop::new(peer.dial(), peer.submit(&job_body(SMALL_BYTES)), CONNECTIONS, span);
    let began = Instant::now();
    EventLoop::run(&mut [&mut *consumer, &mut clients.counting(Rc::clone(&tally))])?;
    Ok(tally.finished() as f64 / began.elapsed().as_secs_f64())
}

/// Measures a queue with `FOR UPDATE SKIP LOCKED` on a PostgreSQL that runs, in its database `postgres`. Returns the number of jobs
/// a second that were submitted, taken and reported.
///
/// # Errors
///
/// If the database fails.
pub fn skip_locked_jobs_per_s(ground: &ScenarioContext, server: Rc<PostgresServer>) -> Result<f64, String> {
    jobs_per_s(&mut postgres::Postgres::on(server)?, ground)
}

/// Creates an empty directory on the disk of the run.
fn folder(ground: &ScenarioContext) -> Result<TempDir, String> {
    let made = tempfile::tempdir_in(&ground.data);
    made.map_err(|error| format!("cannot create a directory in {}: {error}", ground.data.display()))
}

/// The directory where the queues' packages from pip and npm are installed.
fn installed(ground: &ScenarioContext) -> Result<&Path, String> {
    ground.peers.as_deref().ok_or_else(|| "run this as `cargo xtask bench --peers`".to_owned())
}

/// The path of a program in `bench/peers`.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(path)
}
