//! What a user could have taken instead, in the same harness: the same bodies over 16 connections, 16 slots that do the
//! jobs at once, durable where it can be. Clients and workers run beside the generator, everything else on the measured
//! processor.

mod beanstalkd;
mod bullmq;
mod celery;
mod finished;
mod local_api;
mod longshore;
mod pg_wire;
mod postgres;
mod redis;
mod resp;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::load::{ClosedLoop, EventLoop, Role, Span, Tally, Target};
use crate::readings::Readings;
use crate::scenarios::{SMALL_BYTES, Scenario, ScenarioContext, job_body};

const CONNECTIONS: usize = 16;
const SLOTS: usize = 16;

/// All of them, ours first.
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

/// A queue under measurement, running on a fresh folder.
trait Peer: Sized {
    /// For its readings.
    const NAME: &'static str;
    /// Starts it.
    fn start(ground: &ScenarioContext) -> Result<Self, String>;
    /// Where jobs are submitted.
    fn dial(&self) -> Target;
    /// Submits this body.
    fn submit(&self, body: &[u8]) -> Vec<u8>;
    /// Does what is submitted, or sees that it is done.
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
    // A fresh one: what was submitted just now must not be in the way.
    let mut peer = P::start(ground)?;
    let tally = Rc::new(Tally::submitting());
    let mut consumer = peer.consumer(Rc::clone(&tally))?;
    let span = Span { warm_up: Duration::ZERO, counted: ground.span().counted };
    let clients = ClosedLoop::new(peer.dial(), peer.submit(&body), CONNECTIONS, span);
    let began = Instant::now();
    EventLoop::run(&mut [&mut *consumer, &mut clients.counting(Rc::clone(&tally))])?;
    readings.put(format!("{}.jobs_per_s", P::NAME), tally.finished() as f64 / began.elapsed().as_secs_f64());
    Ok(())
}

/// A fresh folder on the disk of the run.
fn folder(ground: &ScenarioContext) -> Result<TempDir, String> {
    let made = tempfile::tempdir_in(&ground.data);
    made.map_err(|error| format!("cannot make a folder in {}: {error}", ground.data.display()))
}

/// Where what the peers need from pip and npm was installed.
fn installed(ground: &ScenarioContext) -> Result<&Path, String> {
    ground.peers.as_deref().ok_or_else(|| "run this as `cargo xtask bench --peers`".to_owned())
}

/// A program that the project has for a peer.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(path)
}
