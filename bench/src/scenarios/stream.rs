//! Streams: how many chunks pass, and how long the first one takes.

use std::rc::Rc;

use serde_json::Value;

use super::{Ground, SMALL_BYTES, Scenario, job_body};
use crate::load::{FirstChunk, Reading, Tally, Wire, Yielding, ask};
use crate::readings::Readings;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "stream",
    about: "chunks through 1 and 16 jobs at once, from the worker's post to the client's long poll; time to the first chunk",
    once: false,
    run,
};

const WORKER: &str = "yielding";

fn run(ground: &Ground, readings: &mut Readings) -> Result<(), String> {
    for jobs in [1, 16] {
        let server = ground.start_server()?;
        let endpoint = server.endpoint()?;
        for _ in 0..jobs {
            ask(endpoint.address(), &endpoint.post("run").with_body(&job_body(SMALL_BYTES)))?;
        }
        let take = format!("job-take-batch/{WORKER}?gpu=none&job_in_progress=0&batch_size={jobs}");
        let taken = ask(endpoint.address(), &endpoint.worker_get(&take).bare())?;
        let taken: Vec<Value> = serde_json::from_slice(&taken).map_err(|error| format!("take: {error}"))?;
        let ids: Vec<String> = taken.iter().filter_map(|job| job["id"].as_str()).map(str::to_owned).collect();
        let (span, tally) = (ground.span(), Rc::new(Tally::submitting()));
        let mut reading = Reading::new(&endpoint, &ids, span, Rc::clone(&tally));
        let mut yielding = Yielding::new(&endpoint, WORKER, ids, span, tally);
        Wire::run(&mut [&mut reading, &mut yielding])?;
        readings.put(format!("stream.j{jobs}.chunks_per_s"), reading.per_s());
        readings.put_times(&format!("stream.j{jobs}.chunk"), reading.times());
    }
    let server = ground.start_server()?;
    let mut first = FirstChunk::new(&server.endpoint()?, ground.span());
    Wire::run(&mut [&mut first])?;
    readings.put_times("stream.first_chunk", first.times());
    Ok(())
}
