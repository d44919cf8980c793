//! Load balancing beside nginx and `HAProxy`: the same worker behind each, in one repetition.

mod proxies;
mod raw;

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Scenario, ScenarioContext};
use crate::load::{ClosedLoop, EventLoop, OpenLoop, Span};
use crate::process::ProcessUsage;
use crate::readings::{Readings, spreads};
use proxies::{NginxWork, Proxy};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "lb",
    about: "requests through a load-balancing endpoint, nginx and HAProxy to the same worker: processor time, latency, \
            a stream, idle WebSockets; and requests while the workers are replaced",
    once: true,
    run,
};

/// Concurrent requests of the closed loop.
const CONNECTIONS: usize = 32;
/// Connections of a schedule; more are never busy concurrently.
const OPEN_CONNECTIONS: usize = 64;
/// Rolling replacements of all workers.
const REPLACEMENTS: u32 = 3;

/// How much is measured.
struct Sizes {
    /// Rounds in which processor time and latency are measured.
    rounds: usize,
    /// A round of one proxy.
    round: Span,
    stream_bytes: u64,
    /// Below half of 20 000 descriptors, a usual limit: each takes two of a proxy.
    sockets: usize,
    /// Requests during each replacement, at least.
    requests: u64,
}

impl Sizes {
    fn of(context: &ScenarioContext) -> Self {
        if context.quick {
            let round = context.span();
            return Self { rounds: 3, round, stream_bytes: 16 << 20, sockets: 50, requests: 200 };
        }
        Self {
            rounds: 15,
            round: Span { warm_up: Duration::from_millis(100), counted: Duration::from_millis(500) },
            stream_bytes: 1 << 30,
            sockets: 9_000,
            requests: 100_000 / u64::from(REPLACEMENTS),
        }
    }
}

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let worker = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let sizes = Sizes::of(context);
    let direct = proxies::direct(context, &worker)?;
    // As many as there are behind the other proxies.
    let longshore = proxies::longshore(context, &worker, 1)?;
    let key = longshore.authorization().to_owned();
    let nginx = |work| proxies::nginx(context, &direct, work, &key);
    let bare = nginx(NginxWork::Forward)?;
    let proxies = [longshore, nginx(NginxWork::CheckAndMark)?, proxies::haproxy(context, &direct)?];
    let all: Vec<&Proxy> = proxies.iter().chain([&direct, &bare]).collect();
    let slowest_per_s = requests(&sizes, &all, readings)?;
    drop(bare);
    let all: Vec<&Proxy> = std::iter::once(&direct).chain(&proxies).collect();
    // Half of what the slowest of the proxies manages is the load at which latencies are compared.
    latency(&sizes, &all, slowest_per_s / 2.0, readings)?;
    for proxy in all {
        stream(&sizes, proxy, readings)?;
        if proxy.name != "direct" {
            sockets(&sizes, proxy, readings)?;
        }
    }
    replacements(context, &worker, &sizes, readings)
}

/// The processor time of each proxy per request, as fast as the clients can. Returns the least rate per second.
fn requests(sizes: &Sizes, proxies: &[&Proxy], readings: &mut Readings) -> Result<f64, String> {
    in_turn(sizes.rounds, proxies, readings, |proxy, round| {
        let mut clients = ClosedLoop::new(proxy.address, proxy.get("/small"), CONNECTIONS, sizes.round);
        let before = ProcessUsage::by(proxy.pid)?;
        let began = Instant::now();
        EventLoop::run(&mut [&mut clients])?;
        let used = ProcessUsage::by(proxy.pid)?.since(before);
        // The warm-up costs as much as the counted time does.
        let all = clients.per_s() * began.elapsed().as_secs_f64();
        round.put(format!("lb.{}.per_s", proxy.name), clients.per_s());
        round.put(format!("lb.{}.cpu_us", proxy.name), used.cpu_s * 1e6 / all);
        Ok(())
    })?;
    let rates = proxies.iter().filter_map(|proxy| readings.get(&format!("lb.{}.per_s", proxy.name)));
    rates.reduce(f64::min).ok_or_else(|| "no proxies".to_owned())
}

/// The latency on a timetable.
fn latency(sizes: &Sizes, proxies: &[&Proxy], per_s: f64, readings: &mut Readings) -> Result<(), String> {
    in_turn(sizes.rounds, proxies, readings, |proxy, round| {
        let request = proxy.get("/small");
        let make = move |_| request.clone();
        let mut clients = OpenLoop::new(proxy.address, make, per_s, OPEN_CONNECTIONS, sizes.round);
        EventLoop::run(&mut [&mut clients])?;
        round.put_times(&format!("lb.{}", proxy.name), clients.times());
        Ok(())
    })
}

/// Measures the proxies one after the other in each round, so that a moment in which the computer is slow is one of all
/// of them. Stores the median of each number.
fn in_turn(
    rounds: usize,
    proxies: &[&Proxy],
    readings: &mut Readings,
    mut measure: impl FnMut(&Proxy, &mut Readings) -> Result<(), String>,
) -> Result<(), String> {
    let mut measured = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let mut round = Readings::default();
        for proxy in proxies {
            measure(proxy, &mut round)?;
        }
        measured.push(round);
    }
    for (name, spread) in spreads(&measured) {
        readings.put(name, spread.median);
    }
    Ok(())
}

/// The rate of one long response, and the memory that it takes.
fn stream(sizes: &Sizes, proxy: &Proxy, readings: &mut Readings) -> Result<(), String> {
    let before = ProcessUsage::by(proxy.pid)?.resident_bytes;
    let mut most = before;
    let began = Instant::now();
    let path = format!("/stream?{}", sizes.stream_bytes);
    raw::read_body(proxy.address, &proxy.get(&path), sizes.stream_bytes, || {
        most = most.max(ProcessUsage::by(proxy.pid)?.resident_bytes);
        Ok(())
    })?;
    let per_s = sizes.stream_bytes as f64 / began.elapsed().as_secs_f64();
    readings.put(format!("lb.{}.stream.bytes_per_s", proxy.name), per_s);
    readings.put(format!("lb.{}.stream.memory_bytes", proxy.name), most - before);
    Ok(())
}

/// The memory of idle upgraded connections.
fn sockets(sizes: &Sizes, proxy: &Proxy, readings: &mut Readings) -> Result<(), String> {
    let before = ProcessUsage::by(proxy.pid)?.resident_bytes;
    let open = raw::open_sockets(proxy.address, &proxy.upgrade("/ws"), sizes.sockets)?;
    let memory = ProcessUsage::by(proxy.pid)?.resident_bytes - before;
    drop(open);
    readings.put(format!("lb.{}.socket.memory_bytes", proxy.name), memory / sizes.sockets as f64);
    Ok(())
}

/// Requests while all workers are replaced, again and again. Counts those without a response with status 200.
fn replacements(
    context: &ScenarioContext,
    worker: &Path,
    sizes: &Sizes,
    readings: &mut Readings,
) -> Result<(), String> {
    let proxy = proxies::longshore(context, worker, 2)?;
    let (server, endpoint) = proxy.served().ok_or("no endpoint")?;
    let clients = raw::Askers::start(proxy.address, &proxy.post("/small"), CONNECTIONS / 4);
    for round in 1..=REPLACEMENTS {
        server.replace_workers(endpoint, round)?;
        clients.wait_for(sizes.requests * u64::from(round))?;
    }
    let (sent, lost) = clients.stop();
    readings.put("lb.replacement.requests", sent as f64);
    readings.put("lb.replacement.lost", lost as f64);
    Ok(())
}
