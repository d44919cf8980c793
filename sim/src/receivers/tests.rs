//! Receivers in a world without faults.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::timeout;

use super::{RECEIVERS, Receivers};
use crate::fixture::{quiet_world, wait_for_trace};

fn call(host: &str) -> http::Request<Bytes> {
    let uri = format!("http://{host}/1/2");
    http::Request::post(uri).body(Bytes::from_static(b"{}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn healthy_receivers_accept_and_others_do_not_exist() {
    let (world, mut rng) = quiet_world(1);
    let receivers = Receivers::new(&world, &mut rng);
    for number in 0..RECEIVERS {
        let answer = receivers.deliver(call(&format!("receiver-{number}.test"))).await;
        assert_eq!(answer, Ok(StatusCode::OK));
    }
    receivers.deliver(call("receiver-99.test")).await.unwrap_err();
    let marks = ["Called(1, \"http://receiver-0.test/1/2\"", "CallAnswered(1, 200)", "CallBroken(7)"];
    wait_for_trace(&world, &marks).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_breaks_the_call() {
    // In some of these worlds the receiver is slow.
    let mut broken = 0;
    for seed in 0..20 {
        let (world, mut rng) = quiet_world(seed);
        let receivers = Receivers::new(&world, &mut rng);
        let answered = timeout(Duration::from_millis(1), receivers.deliver(call("receiver-0.test"))).await;
        let mark = if answered.is_ok() { "CallAnswered(1" } else { "CallBroken(1" };
        wait_for_trace(&world, &[mark]).await;
        broken += u32::from(answered.is_err());
    }
    assert!(broken > 0);
}
