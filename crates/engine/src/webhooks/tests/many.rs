//! Many deliveries at once, to receivers that answer and to one that does not.
//!
//! Most of the latter hang up: that is no answer either, and known at once, however busy the machine is.

use super::*;

/// As many as the project promises; what it takes is mostly the receiver's time.
const DELIVERIES: u64 = 10_000;

/// No delivery is given up.
fn stubborn() -> WebhookSettings {
    let retries = WebhookRetries { attempts_max: 1_000, ..settings().retries };
    WebhookSettings { retries, ..settings() }
}

#[tokio::test]
async fn one_dead_receiver_delays_nobody_among_ten_thousand_deliveries() {
    let dead = Receiver::start(&[Answer::HangUp]).await;
    let healthy = Receiver::start(&[Answer::Status(200)]).await;
    let endpoint = Endpoint::new();
    let webhooks = start(stubborn());
    for seq in 0..DELIVERIES {
        let receiver = if seq % 2 == 0 { &dead } else { &healthy };
        webhooks.enqueue(endpoint.owe(seq, &receiver.url()));
    }
    let began = Instant::now();
    let settled = endpoint.settled(DELIVERIES as usize / 2).await;
    let ms = began.elapsed().as_millis();
    assert_eq!(healthy.calls().len() as u64, DELIVERIES / 2);
    let accepted = settled.iter().filter(|record| matches!(record, Record::Settled(_))).count();
    assert_eq!(accepted as u64, DELIVERIES / 2, "those to the dead one are still owed");
    // Ten in a row, those that were under way meanwhile, and a try now and then.
    let tried = dead.calls().len();
    assert!(tried <= 40, "{tried} calls to the one that does not answer");
    println!("{} deliveries took {ms} ms beside a dead receiver, called {tried} times", DELIVERIES / 2);
}

#[tokio::test]
async fn what_waited_for_a_receiver_arrives_when_it_answers_again() {
    let answers: Vec<Answer> = [Answer::HangUp; 12].into_iter().chain([Answer::Status(200)]).collect();
    let receiver = Receiver::start(&answers).await;
    let endpoint = Endpoint::new();
    let breaker = BreakerSettings {
        failures_max: 8,
        pause: Duration::from_millis(50),
        pause_max: Duration::from_millis(100),
        ..BreakerSettings::default()
    };
    let webhooks = start(WebhookSettings { breaker, ..stubborn() });
    for seq in 0..200 {
        webhooks.enqueue(endpoint.owe(seq, &receiver.url()));
    }
    let records = endpoint.settled(200).await;
    let attempted = records.iter().filter(|record| matches!(record, Record::Attempted(..))).count();
    assert_eq!(attempted, 12, "a delivery that waits keeps its attempts");
    assert_eq!(receiver.calls().len(), 212);
}

#[tokio::test]
async fn what_waits_too_long_for_a_silent_receiver_is_given_up_and_noted() {
    let dead = Receiver::start(&[Answer::Silence]).await;
    let endpoint = Endpoint::new();
    let breaker = BreakerSettings {
        failures_max: 2,
        pause: Duration::from_millis(50),
        pause_max: Duration::from_millis(50),
        patience: Duration::from_millis(500),
    };
    let log = Arc::new(MemoryWebhookLog::default());
    let timeout = Duration::from_millis(50);
    let webhooks = start_with_log(WebhookSettings { breaker, timeout, ..stubborn() }, log.clone());
    for seq in 0..50 {
        webhooks.enqueue(endpoint.owe(seq, &dead.url()));
    }
    endpoint.settled(50).await;
    let deliveries = log::deliveries(&log.read(endpoint.endpoint().id).await.unwrap());
    assert_eq!(deliveries.len(), 50);
    assert!(deliveries.iter().all(|delivery| delivery.state == DeliveryState::Failed));
    let last = deliveries[0].attempts.last().and_then(|attempt| attempt.error.clone());
    assert!(last.is_some_and(|text| text.contains("has not answered")), "{deliveries:?}");
}
