//! Clients against a server whose responses the test chooses.

use std::time::Duration;

use crate::endpoints::{Endpoints, KnownEndpoint};
use crate::fixture::{serve, wait_for_trace, world};
use crate::operator;

const JOB: &str = "0190ffff-ffff-7fff-bfff-0123456789ab";

fn one_endpoint() -> Endpoints {
    let endpoints = Endpoints::default();
    endpoints.publish(KnownEndpoint { id: "ep".into(), slug: None, external: None });
    endpoints
}

#[tokio::test(start_paused = true)]
async fn clients_follow_what_they_hand_in_and_fall_silent_when_it_is_calm() {
    let (world, mut rng) = world(3);
    serve(&world, |_, uri, _| {
        let status = if uri.path().contains("/status") { "COMPLETED" } else { "IN_QUEUE" };
        (200, format!(r#"{{"id":"{JOB}","status":"{status}"}}"#))
    });
    super::start(&world, &mut rng, &["key".to_owned()], &one_endpoint());
    wait_for_trace(&world, &["/ep/run", &format!("/ep/status/{JOB}")]).await;
    world.faults.end();
    // Requests in flight may arrive, and pauses end.
    tokio::time::sleep(Duration::from_mins(10)).await;
    world.record.take_trace();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let trace = world.record.take_trace();
    for change in ["/run", "/cancel", "/retry", "/purge", "ttl="] {
        assert!(!trace.contains(change), "{change} in\n{trace}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_tells_which_endpoints_there_are() {
    let (world, mut rng) = world(1);
    serve(&world, |_, uri, _| match uri.path() {
        path if path.ends_with("/worker-token") => (200, r#"{"token":"t","env":{"A":"1"}}"#.to_owned()),
        _ => (200, r#"{"category":"x","id":"abcdefghijklm1","templateId":"t"}"#.to_owned()),
    });
    let endpoints = Endpoints::default();
    operator::start(&world, &mut rng, "key", &endpoints);
    wait_for_trace(&world, &["POST\", path: \"/v1/templates\"", "POST\", path: \"/v1/endpoints\""]).await;
    let told = async {
        while endpoints.present().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), told).await.unwrap();
    assert_eq!(&*endpoints.present()[0].id, "abcdefghijklm1");
}
