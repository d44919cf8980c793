//! After the faults have stopped, everything comes to rest; and what a power cut takes.

use super::Story;
use crate::observation::Observation;

const ENDPOINT: &str =
    r#"{"id":"e","workersMin":1,"workersMax":3,"provider":"process","durability":"synced"}"#;

fn with_endpoint(record: &str) -> Story {
    let mut story = Story::default();
    story.ask("POST", "/v1/endpoints", "{}", 200, record);
    story
}

#[test]
fn every_job_ends() {
    let mut story = Story::default();
    story.submit("a", "{}").see(&Observation::Calm);
    story.wait(600_000).see(&Observation::End);
    story.breaks("at rest every job has ended");
}

#[test]
fn every_handler_ends() {
    let mut story = with_endpoint(&ENDPOINT.replace(r#""workersMin":1"#, r#""workersMin":2"#));
    story.see(&Observation::WorkerStarted("v".to_owned(), "e".to_owned()));
    story.see(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
    story.submit("a", "{}").take("w", "a", "{}");
    story.see(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
    story.done("w", "a", "{}").status("a", r#""status":"COMPLETED""#).see(&Observation::End);
    story.breaks("at rest no handler runs");
}

#[test]
fn the_fleet_returns_to_its_minimum() {
    let mut story = with_endpoint(ENDPOINT);
    story.see(&Observation::WorkerStarted("v".to_owned(), "e".to_owned()));
    story.see(&Observation::End);
    story.is_fine();
    story.see(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
    story.see(&Observation::End);
    story.breaks("at rest the fleet is at its minimum");
}

#[test]
fn every_request_is_answered() {
    let mut story = Story::default();
    story.arrive("GET", "/v2/e/job-take/w?job_in_progress=0", "");
    story.wait(600_000).see(&Observation::End);
    story.breaks("at rest every request was answered");
}

#[test]
fn a_power_cut_takes_the_last_moments_of_a_buffered_endpoint_alone() {
    let lost = |record: &str, ms: u64| {
        let mut story = with_endpoint(record);
        story.submit("a", "{}").wait(ms).see(&Observation::ServerDown(true));
        story.see(&Observation::ServerUp);
        story.missing("a");
        story
    };
    let buffered = ENDPOINT.replace("synced", "buffered");
    lost(&buffered, 50).is_fine();
    lost(&buffered, 150).breaks("an acknowledged job is there until its time has passed");
    lost(ENDPOINT, 50).breaks("an acknowledged job is there until its time has passed");
}
