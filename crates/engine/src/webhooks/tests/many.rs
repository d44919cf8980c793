//! Many concurrent deliveries, to receivers that respond and to one that does not.
//!
//! Most tests use a receiver that disconnects: that is no response either, and needs no timeout.

use super::*;

/// The number of pending deliveries that the project promises to handle.
const DELIVERIES: u64 = 10_000;

/// Settings with which no delivery is given up.
fn without_giving_up() -> WebhookSettings {
    let retries = WebhookRetries { attempts_max: 1_000, ..settings().retries };
    WebhookSettings { retries, ..settings() }
}

#[tokio::test]
async fn a_dead_receiver_delays_no_other_one_among_ten_thousand_deliveries() {
    let dead = Receiver::start(&[Behaviour::Disconnect]).await;
    let healthy = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let webhooks = start(without_giving_up());
    for seq in 0..DELIVERIES {
        let receiver = if seq % 2 == 0 { &dead } else { &healthy };
        webhooks.enqueue(endpoint.pending_call(seq, &receiver.url()));
    }
    let settled = endpoint.settled(DELIVERIES as usize / 2).await;
    assert_eq!(healthy.calls().len() as u64, DELIVERIES / 2);
    let accepted = settled.iter().filter(|record| matches!(record, Recorded::Settled(_))).count();
    assert_eq!(accepted as u64, DELIVERIES / 2, "the calls to the dead receiver are still pending");
    // Ten calls until the circuit breaker opens, the ones in flight then, and probe calls.
    let calls = dead.calls().len();
    assert!(calls <= 40, "{calls} calls to the dead receiver");
}

#[tokio::test]
async fn parked_calls_are_made_when_their_receiver_responds_again() {
    let behaviours: Vec<Behaviour> =
        [Behaviour::Disconnect; 12].into_iter().chain([Behaviour::Status(200)]).collect();
    let receiver = Receiver::start(&behaviours).await;
    let endpoint = FakeEndpoint::new();
    let breaker = BreakerSettings {
        failures_max: 8,
        pause: Duration::from_millis(50),
        pause_max: Duration::from_millis(100),
        ..BreakerSettings::default()
    };
    let webhooks = start(WebhookSettings { breaker, ..without_giving_up() });
    for seq in 0..200 {
        webhooks.enqueue(endpoint.pending_call(seq, &receiver.url()));
    }
    let recorded = endpoint.settled(200).await;
    let attempted = recorded.iter().filter(|record| matches!(record, Recorded::Attempted(..))).count();
    assert_eq!(attempted, 12, "a parked call uses up no attempt");
    assert_eq!(receiver.calls().len(), 212);
}

#[tokio::test]
async fn a_call_parked_too_long_for_a_silent_receiver_is_given_up_and_logged() {
    let dead = Receiver::start(&[Behaviour::Silent]).await;
    let endpoint = FakeEndpoint::new();
    let breaker = BreakerSettings {
        failures_max: 2,
        pause: Duration::from_millis(50),
        pause_max: Duration::from_millis(50),
        patience: Duration::from_millis(500),
    };
    let log = Arc::new(MemoryWebhookLog::default());
    let timeout = Duration::from_millis(50);
    let webhooks = start_with_log(WebhookSettings { breaker, timeout, ..without_giving_up() }, log.clone());
    for seq in 0..50 {
        webhooks.enqueue(endpoint.pending_call(seq, &dead.url()));
    }
    endpoint.settled(50).await;
    let deliveries = log::deliveries(&log.read(endpoint.endpoint().id).await.unwrap());
    assert_eq!(deliveries.len(), 50);
    assert!(deliveries.iter().all(|delivery| delivery.state == DeliveryState::Failed));
    let last = deliveries[0].attempts.last().and_then(|attempt| attempt.error.clone());
    assert!(last.is_some_and(|text| text.contains("no response from the receiver")), "{deliveries:?}");
}
