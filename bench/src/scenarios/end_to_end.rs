//! Complete jobs: submitted, taken and reported immediately. The time ends with the last result.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{SMALL_BYTES, Scenario, ScenarioContext, job_body};
use crate::load::{ClosedLoop, Role, Span, Tally, Worker, ask};
use crate::process::ProcessUsage;
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "end-to-end",
    about: "submit, take and done of 100 B over 16 connections, 1 worker with 16 slots and 16 workers with 1 slot",
    once: false,
    run,
};

const CONNECTIONS: usize = 16;
const SLOTS: usize = 16;

fn run(context: &ScenarioContext, readings: &mut Readings) -> Result<(), String> {
    measure(context, readings, "end-to-end")
}

/// Measures complete jobs under this name, and the echo.
pub(super) fn measure(
    context: &ScenarioContext,
    readings: &mut Readings,
    scenario: &str,
) -> Result<(), String> {
    readings
        .put(format!("{scenario}.echo.per_s"), context.echo(&job_body(SMALL_BYTES), CONNECTIONS)?.per_s());
    for workers in [1, 16] {
        let name = format!("{scenario}.w{workers}");
        let lives = live(context, workers)?;
        readings.put(format!("{name}.per_s"), lives.jobs as f64 / lives.took.as_secs_f64());
        let jobs = lives.jobs as f64;
        readings.put(format!("{name}.jobs_per_take"), jobs / lives.takes as f64);
        readings.put(format!("{name}.cpu_us_per_job"), lives.used.cpu_s * 1e6 / jobs);
        readings.put(format!("{name}.written_bytes_per_job"), lives.used.written_bytes / jobs);
        readings.put(format!("{scenario}.job_bytes"), lives.job_bytes as f64);
    }
    Ok(())
}

/// The results of one load.
struct JobRates {
    jobs: u64,
    takes: u64,
    took: Duration,
    used: ProcessUsage,
    /// Bytes of a job: input, output, and the record that clients get.
    job_bytes: usize,
}

fn live(context: &ScenarioContext, workers: usize) -> Result<JobRates, String> {
    let server = context.start_server()?;
    let endpoint = server.endpoint()?;
    let tally = Rc::new(Tally::submitting());
    let request = endpoint.post("run").with_body(&job_body(SMALL_BYTES));
    // No warm-up: jobs that it submitted would have to be completed as well.
    let span = Span { warm_up: Duration::ZERO, counted: context.span().counted };
    let mut clients =
        ClosedLoop::new(endpoint.address(), request, CONNECTIONS, span).counting(Rc::clone(&tally));
    let mut workers: Vec<Worker> = (0..workers)
        .map(|at| Worker::new(&endpoint, format!("worker-{at}"), SLOTS / workers, Rc::clone(&tally)))
        .collect();
    let mut roles: Vec<&mut dyn Role> = workers.iter_mut().map(|worker| worker as &mut dyn Role).collect();
    roles.push(&mut clients);
    let (began, before) = (Instant::now(), ProcessUsage::by(server.pid())?);
    context.drive(&mut roles)?;
    let (took, used) = (began.elapsed(), ProcessUsage::by(server.pid())?.since(before));
    let takes = workers.iter().map(Worker::takes).sum();
    let job = workers.iter().find_map(Worker::last_job).ok_or("no job was done")?;
    let record = ask(endpoint.address(), &endpoint.get(&format!("status/{job}")).bare())?;
    // The record contains the output.
    Ok(JobRates { jobs: tally.finished(), takes, took, used, job_bytes: SMALL_BYTES + record.len() })
}
