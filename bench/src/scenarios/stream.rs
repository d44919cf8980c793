//! Streams: the rate of chunks, their latency to readers, and what readers cost the worker.

use std::io::Write as _;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{SMALL_BYTES, Scenario, ScenarioContext, job_body};
use crate::load::{
    EventLoop, FirstChunk, Listeners, OpenLoop, Reading, Sink, Span, Tally, Yielding, ask, stamp,
};
use crate::process::ProcessUsage;
use crate::readings::Readings;
use crate::server::{Endpoint, Server};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "stream",
    about: "chunks from the worker's post to the client: polled, and as events at 1 000 a second; what readers cost in \
            memory, and the worker; time to the first chunk",
    once: false,
    run,
};

const WORKER: &str = "yielding";
/// Chunks per second on a schedule.
const CHUNKS_PER_S: f64 = 1_000.0;
/// Connections that post chunks.
const CONNECTIONS: usize = 16;
/// Readers of one job in the small scenario.
const SOME: usize = 16;

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    for jobs in [1, 16] {
        polled(context, readings, jobs)?;
        as_events(context, readings, jobs, 1)?;
    }
    as_events(context, readings, 1, SOME)?;
    crowd(context, readings)?;
    beside_readers(context, readings)?;
    let server = context.start_server()?;
    let mut first = FirstChunk::new(&server.endpoint()?, context.span());
    EventLoop::run(&mut [&mut first])?;
    readings.put_times("stream.first_chunk", first.times());
    Ok(())
}

/// Creates an endpoint with `jobs` jobs that a worker has taken.
fn taken(server: &Server, jobs: usize, durability: &str) -> Result<(Endpoint, Vec<String>), String> {
    let endpoint = server.endpoint_with_durability(durability)?;
    for _ in 0..jobs {
        ask(endpoint.address(), &endpoint.post("run").with_body(&job_body(SMALL_BYTES)))?;
    }
    let take = format!("job-take-batch/{WORKER}?gpu=none&job_in_progress=0&batch_size={jobs}");
    let taken = ask(endpoint.address(), &endpoint.worker_get(&take).bare())?;
    let taken: Vec<Value> = serde_json::from_slice(&taken).map_err(|error| format!("take: {error}"))?;
    let ids = taken.iter().filter_map(|job| job["id"].as_str()).map(str::to_owned).collect();
    Ok((endpoint, ids))
}

/// Chunks at the highest rate, read by polling.
fn polled(context: &ScenarioContext, readings: &mut Readings, jobs: usize) -> Result<(), String> {
    let server = context.start_server()?;
    let (endpoint, ids) = taken(&server, jobs, "synced")?;
    let (span, tally) = (context.span(), Rc::new(Tally::submitting()));
    let mut reading = Reading::new(&endpoint, &ids, span, Rc::clone(&tally));
    let mut yielding = Yielding::new(&endpoint, WORKER, ids, span, tally);
    EventLoop::run(&mut [&mut reading, &mut yielding])?;
    readings.put(format!("stream.j{jobs}.chunks_per_s"), reading.per_s());
    readings.put_times(&format!("stream.j{jobs}.chunk"), reading.times());
    Ok(())
}

/// Chunks on a schedule, each in its own post, read as server-sent events.
fn as_events(
    context: &ScenarioContext,
    readings: &mut Readings,
    jobs: usize,
    readers: usize,
) -> Result<(), String> {
    let server = context.start_server()?;
    let (endpoint, ids) = taken(&server, jobs, "synced")?;
    let times = follow(&endpoint, &ids, readers, CHUNKS_PER_S, context.span())?;
    let name = format!("stream.events.j{jobs}.r{readers}");
    readings.put(format!("{name}.per_s"), times.per_s());
    readings.put_times(&name, times.times());
    Ok(())
}

/// A thousand readers of one job: their memory.
fn crowd(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let readers = crowd_size(context);
    let server = context.start_server()?;
    let (endpoint, ids) = taken(&server, 1, "synced")?;
    let before = ProcessUsage::by(server.pid())?.resident_bytes;
    let times = follow(&endpoint, &ids, readers, 10.0, context.span())?;
    let grown = ProcessUsage::by(server.pid())?.resident_bytes - before;
    readings.put("stream.crowd.resident_mb", grown / 1e6);
    readings.put_times("stream.crowd", times.times());
    Ok(())
}

/// Number of readers of one job in a crowd.
fn crowd_size(context: &ScenarioContext) -> usize {
    if context.quick { 50 } else { 1_000 }
}

fn follow(
    endpoint: &Endpoint,
    ids: &[String],
    readers: usize,
    per_s: f64,
    span: Span,
) -> Result<Listeners, String> {
    let tally = Rc::new(Tally::submitting());
    // The readers connect before the first chunk.
    let settling = Duration::from_millis(readers as u64);
    let requests = ids.iter().flat_map(|job| std::iter::repeat_n(request(endpoint, job), readers)).collect();
    let listeners = Listeners::new(endpoint.address(), requests, readers as u64, span, Rc::clone(&tally));
    let mut listeners = listeners.counting_after(settling);
    let mut posts = ids.iter().cycle().map(|job| endpoint.worker_post(&chunk_path(job)));
    let post = move |due| {
        let chunk = format!("{{\"output\":{}}}", stamp(due));
        posts.next().map(|post| post.with_body(chunk.as_bytes())).unwrap_or_default()
    };
    let worker = OpenLoop::new(endpoint.address(), post, per_s, CONNECTIONS, span).counting(tally);
    EventLoop::run(&mut [&mut listeners, &mut worker.starting_after(settling)])?;
    Ok(listeners)
}

/// The rate of a worker's chunks without readers, with readers that receive nothing, and with readers that receive
/// all. Durability is `buffered`, because waiting for the disk would hide the cost of readers.
fn beside_readers(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let many = crowd_size(context);
    for (name, taking, deaf) in [("alone", 0, 0), ("stalled", 0, many), ("heard", many, 0)] {
        let server = context.start_server()?;
        let (endpoint, ids) = taken(&server, 1, "buffered")?;
        let request = request(&endpoint, &ids[0]);
        let stalled: Result<Vec<_>, _> = (0..deaf).map(|_| stalled(&endpoint, &request)).collect();
        let stalled = stalled.map_err(|error| format!("a reader cannot connect: {error}"))?;
        let may_leave = Arc::new(AtomicBool::new(taking == 0));
        let mut sink = Sink::new(endpoint.address(), request, taking, Arc::clone(&may_leave));
        let mut yielding =
            Yielding::new(&endpoint, WORKER, ids, context.span(), Rc::new(Tally::submitting()));
        // The readers run in a thread of their own, so that they do not slow the worker down.
        let (read, yielded) = thread::scope(|scope| {
            let reading = scope.spawn(|| EventLoop::run(&mut [&mut sink]));
            let yielded = EventLoop::run(&mut [&mut yielding]);
            may_leave.store(true, Ordering::Relaxed);
            (reading.join(), yielded)
        });
        yielded?;
        read.map_err(|_| "the readers' thread ended early")??;
        readings.put(format!("stream.worker.{name}.per_s"), yielding.per_s());
        drop(stalled);
    }
    Ok(())
}

/// Opens a reader that sends its request and then receives nothing.
fn stalled(endpoint: &Endpoint, request: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(endpoint.address())?;
    stream.write_all(request)?;
    Ok(stream)
}

fn request(endpoint: &Endpoint, job: &str) -> Vec<u8> {
    endpoint.get(&format!("stream/{job}")).header("Accept", "text/event-stream").bare()
}

fn chunk_path(job: &str) -> String {
    format!("job-stream/{WORKER}/{job}?gpu=none&isStream=false")
}
