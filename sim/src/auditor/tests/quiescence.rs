//! After the faults have stopped, everything comes to rest; and what a power cut takes.

use super::Script;
use crate::observation::Observation;

const ENDPOINT: &str =
    r#"{"id":"e","workersMin":1,"workersMax":3,"provider":"process","durability":"synced"}"#;

fn with_endpoint(record: &str) -> Script {
    let mut script = Script::default();
    script.ask("POST", "/v1/endpoints", "{}", 200, record);
    script
}

#[test]
fn every_job_ends() {
    let mut script = Script::default();
    script.submit("a", "{}").observe(&Observation::QuietPhaseBegan);
    script.wait(600_000).observe(&Observation::End);
    script.breaks("at rest every job has ended");
}

#[test]
fn every_handler_ends() {
    let mut script = with_endpoint(&ENDPOINT.replace(r#""workersMin":1"#, r#""workersMin":2"#));
    script.observe(&Observation::WorkerStarted("v".to_owned(), "e".to_owned()));
    script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
    script.submit("a", "{}").take("w", "a", "{}");
    script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
    script.done("w", "a", "{}").status("a", r#""status":"COMPLETED""#).observe(&Observation::End);
    script.breaks("at rest no handler runs");
}

#[test]
fn the_fleet_returns_to_its_minimum() {
    let mut script = with_endpoint(ENDPOINT);
    script.observe(&Observation::WorkerStarted("v".to_owned(), "e".to_owned()));
    script.observe(&Observation::End);
    script.is_fine();
    script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
    script.observe(&Observation::End);
    script.breaks("at rest the fleet is at its minimum");
}

#[test]
fn every_request_is_answered() {
    let mut script = Script::default();
    script.arrive("GET", "/v2/e/job-take/w?job_in_progress=0", "");
    script.wait(600_000).observe(&Observation::End);
    script.breaks("at rest every request was answered");
}

#[test]
fn a_power_cut_takes_the_last_moments_of_a_buffered_endpoint_alone() {
    let lost = |record: &str, ms: u64| {
        let mut script = with_endpoint(record);
        script.submit("a", "{}").wait(ms).observe(&Observation::ServerDown(true));
        script.observe(&Observation::ServerUp);
        script.missing("a");
        script
    };
    let buffered = ENDPOINT.replace("synced", "buffered");
    lost(&buffered, 50).is_fine();
    lost(&buffered, 150).breaks("an acknowledged job exists until its time has passed");
    lost(ENDPOINT, 50).breaks("an acknowledged job exists until its time has passed");
}
