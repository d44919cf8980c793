//! A million jobs that are purged or expire together, while other jobs are served.

use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use super::{SMALL_BYTES, Scenario, ScenarioContext, fill, in_queue, job_body};
use crate::load::{EventLoop, OpenLoop, Span, Tally, Times, Worker};
use crate::readings::Readings;
use crate::server::Endpoint;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "mass-end",
    about: "1 000 /runsync jobs a second on one endpoint while 1 000 000 jobs of another are purged, then while as many expire",
    once: true,
    run,
};

const OTHERS_PER_S: f64 = 1000.0;
const OTHERS_CONNECTIONS: usize = 256;
const SLOTS: usize = 16;
/// How long the other jobs are measured before the purge or expiry.
const BEFORE: Duration = Duration::from_secs(1);
/// Shortest `ttl` of a job, in ms.
const TTL_MS_MIN: u128 = 10_000;

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let (crowd, others) = (server.endpoint()?, server.endpoint()?);
    let filled_in = fill(&crowd, context.many_jobs(), || job_body(SMALL_BYTES))?;
    let (others_times, purge) = while_purging(context, &crowd, &others)?;
    readings.put_times("mass-end.purge.others", &others_times);
    readings.put("mass-end.purge.answer_ms", purge.longest_us() / 1000.0);
    readings.put("mass-end.purge.left", in_queue(&crowd)? as f64);
    let end = Instant::now() + filled_in.mul_f64(1.3) + Duration::from_millis(TTL_MS_MIN as u64);
    fill(&crowd, context.many_jobs(), move || job_that_ends(end))?;
    readings.put("mass-end.expiry.waiting", in_queue(&crowd)? as f64);
    thread::sleep(end.saturating_duration_since(Instant::now() + BEFORE));
    readings.put_times("mass-end.expiry.others", &others_for(&others, watched(context), None)?.0);
    readings.put("mass-end.expiry.left", in_queue(&crowd)? as f64);
    Ok(())
}

fn watched(context: &ScenarioContext) -> Duration {
    if context.quick { BEFORE * 2 } else { Duration::from_secs(15) }
}

fn job_that_ends(end: Instant) -> Vec<u8> {
    let ttl_ms = end.saturating_duration_since(Instant::now()).as_millis().max(TTL_MS_MIN);
    format!(r#"{{"input":{{"prompt":"a job that no worker takes"}},"policy":{{"ttl":{ttl_ms}}}}}"#)
        .into_bytes()
}

fn while_purging(
    context: &ScenarioContext,
    crowd: &Endpoint,
    others: &Endpoint,
) -> Result<(Times, Times), String> {
    let request = crowd.post("purge-queue").with_body(b"");
    // A schedule with one request.
    let once = Span { warm_up: Duration::ZERO, counted: Duration::from_millis(1) };
    let purge = OpenLoop::new(crowd.address(), move |_| request.clone(), 1.0, 1, once).starting_after(BEFORE);
    others_for(others, watched(context), Some(purge))
}

/// Times of other endpoints' jobs during the purge, and the duration of the purge.
fn others_for(
    others: &Endpoint,
    counted: Duration,
    purge: Option<OpenLoop<'_>>,
) -> Result<(Times, Times), String> {
    let tally = Rc::new(Tally::submitting());
    let request = others.post("runsync").with_body(&job_body(SMALL_BYTES));
    let span = Span { warm_up: Duration::ZERO, counted };
    let clients =
        OpenLoop::new(others.address(), move |_| request.clone(), OTHERS_PER_S, OTHERS_CONNECTIONS, span);
    let mut clients = clients.counting(Rc::clone(&tally));
    let mut worker = Worker::new(others, "worker", SLOTS, tally);
    let Some(mut purge) = purge else {
        EventLoop::run(&mut [&mut worker, &mut clients])?;
        return Ok((clients.times().clone(), Times::new()));
    };
    EventLoop::run(&mut [&mut worker, &mut clients, &mut purge])?;
    Ok((clients.times().clone(), purge.times().clone()))
}
