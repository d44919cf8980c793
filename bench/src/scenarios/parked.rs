//! Ten thousand parked requests: their memory, and the time to wake one.

use std::time::Duration;

use super::{Scenario, ScenarioContext};
use crate::load::{EventLoop, OpenLoop, Parked, Span, Taken, Taker, stamp};
use crate::process::ProcessUsage;
use crate::readings::Readings;
use crate::server::Server;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "parked",
    about: "10 000 workers that wait for a job, 10 000 clients that wait for a result: memory, and the time to wake one",
    once: true,
    run,
};

const WAKE_UPS_PER_S: f64 = 500.0;
/// Connections that cause the wake-ups.
const CONNECTIONS: usize = 16;

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    takes(context, readings)?;
    waits(context, readings)
}

/// Number of parked requests, and the time until the first wake-up.
fn size(context: &ScenarioContext) -> (usize, Duration, Span) {
    let (many, settling_ms, ms) = if context.quick { (200, 100, 100) } else { (10_000, 3_000, 4_000) };
    let span = Span { warm_up: Duration::ZERO, counted: Duration::from_millis(ms) };
    (many, Duration::from_millis(settling_ms), span)
}

fn wake_ups(span: Span) -> u64 {
    (span.counted.as_secs_f64() * WAKE_UPS_PER_S) as u64
}

fn takes(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let (many, settling, span) = size(context);
    let take = |at| format!("job-take/worker-{at}?gpu=none&job_in_progress=0");
    let requests = (0..many).map(|at| endpoint.worker_get(&take(at)).bare()).collect();
    let mut parked = Parked::new(endpoint.address(), requests, wake_ups(span));
    let run = endpoint.post("run");
    let submit = move |due| run.with_body(format!("{{\"input\":{}}}", stamp(due)).as_bytes());
    let clients = OpenLoop::new(endpoint.address(), submit, WAKE_UPS_PER_S, CONNECTIONS, span);
    EventLoop::run(&mut [&mut parked, &mut clients.starting_after(settling)])?;
    readings.put_times("parked.takes", parked.times());
    put_memory(readings, "parked.takes", &server)
}

fn waits(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let (many, settling, span) = size(context);
    let request = endpoint.post("runsync?wait=300000").with_body(b"{\"input\":{}}");
    let mut parked = Parked::new(endpoint.address(), vec![request; many], wake_ups(span));
    let taken = Taken::default();
    let mut worker = Taker::new(&endpoint, settling, wake_ups(span) as usize, taken.clone());
    let are_taken = {
        let taken = taken.clone();
        move || taken.borrow().len() as u64 >= wake_ups(span)
    };
    let finish = {
        let endpoint = endpoint.clone();
        move |due| {
            let job = taken.borrow_mut().pop_front().unwrap_or_default();
            let done = endpoint.worker_post(&format!("job-done/taker/{job}?gpu=none&isStream=false"));
            done.with_body(format!("{{\"output\":{}}}", stamp(due)).as_bytes())
        }
    };
    let reports = OpenLoop::new(endpoint.address(), finish, WAKE_UPS_PER_S, CONNECTIONS, span);
    EventLoop::run(&mut [&mut parked, &mut worker, &mut reports.starting_when(are_taken)])?;
    readings.put_times("parked.waits", parked.times());
    put_memory(readings, "parked.waits", &server)
}

fn put_memory(readings: &mut Readings, name: &str, server: &Server) -> Result<(), String> {
    let resident = ProcessUsage::by(server.pid())?.resident_bytes;
    readings.put(format!("{name}.resident_mib"), resident / f64::from(1 << 20));
    Ok(())
}
