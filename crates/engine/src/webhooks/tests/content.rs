//! Headers and bodies of calls, the events that cause one, and the log of deliveries.

use super::*;

/// The value of a header of a recorded call.
fn header(call: &str, name: &str) -> Option<String> {
    let head = call.split_once("\r\n\r\n")?.0;
    let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")))?;
    Some(line[name.len() + 2..].to_owned())
}

#[tokio::test]
async fn calls_have_an_id_a_timestamp_and_signatures() {
    let receiver = Receiver::start(&[Behaviour::Status(500), Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    let webhooks = start(settings());
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    endpoint.settled(1).await;
    endpoint.secrets.lock().unwrap().rotate([1, 2], Millis(0), 0);
    webhooks.enqueue(endpoint.pending_call(2, &receiver.url()));
    endpoint.settled(2).await;
    let calls = receiver.calls();
    let ids: Vec<_> = calls.iter().map(|call| header(call, "webhook-id").unwrap()).collect();
    assert_eq!(ids[0], ids[1], "all attempts of a call have one id");
    assert_ne!(ids[0], ids[2]);
    assert!(header(&calls[0], "webhook-timestamp").is_some());
    assert_eq!(header(&calls[0], "webhook-signature"), None);
    let signature = header(&calls[2], "webhook-signature").unwrap();
    assert!(signature.starts_with("v1,"), "{signature}");
}

#[tokio::test]
async fn an_end_that_is_not_among_the_webhook_events_is_settled_without_a_call() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    endpoint.resource.lock().unwrap().webhook_events = vec![WebhookEvent::Failed];
    let webhooks = start(settings());
    let failed = endpoint.pending_call(2, &receiver.url());
    endpoint.jobs.lock().unwrap().get_mut(&failed.job).unwrap().0.row.state = JobState::Failed;
    let end = JobEnd { state: JobState::Failed, ..failed.end };
    webhooks.enqueue(PendingCall { end, ..failed });
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    endpoint.settled(2).await;
    let calls = receiver.calls();
    assert!(calls.len() == 1 && calls[0].contains("FAILED"), "{calls:?}");
}

#[tokio::test]
async fn every_attempt_is_logged_with_the_response() {
    let receiver = Receiver::start(&[Behaviour::Status(503), Behaviour::Text("well done")]).await;
    let endpoint = FakeEndpoint::new();
    let log = Arc::new(MemoryWebhookLog::default());
    let webhooks = start_with_log(settings(), log.clone());
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    endpoint.settled(1).await;
    webhooks.enqueue(endpoint.pending_call(2, "nowhere"));
    endpoint.settled(2).await;
    let found = log::deliveries(&log.read(endpoint.endpoint().id).await.unwrap());
    assert_eq!(found.len(), 2);
    let [impossible, delivered] = [&found[0], &found[1]];
    assert_eq!(impossible.state, DeliveryState::Failed);
    assert_eq!((delivered.state, delivered.next_at), (DeliveryState::Delivered, None));
    let seen: Vec<_> = delivered
        .attempts
        .iter()
        .map(|attempt| (attempt.attempt, attempt.status, attempt.answer.as_deref(), attempt.error.as_deref()))
        .collect();
    assert_eq!(seen, [(1, Some(503), Some("ok"), None), (2, Some(200), Some("well done"), None)]);
    let line = String::from_utf8(log.read(endpoint.endpoint().id).await.unwrap()).unwrap();
    let failed = line.lines().find(|line| line.contains("503")).unwrap();
    let then =
        log::deliveries(failed.as_bytes())[0].next_at.expect("a failed attempt is followed by another");
    assert!(then >= delivered.attempts[0].at && then <= delivered.attempts[1].at, "{line}");
    assert!(!line.contains("token"), "a URL may hold secrets: {line}");
}

#[tokio::test]
async fn the_log_has_the_first_kibibyte_of_a_long_response() {
    const LONG: &str = match std::str::from_utf8(&[b'x'; 5_000]) {
        Ok(text) => text,
        Err(_) => "",
    };
    let receiver = Receiver::start(&[Behaviour::Text(LONG)]).await;
    let endpoint = FakeEndpoint::new();
    let log = Arc::new(MemoryWebhookLog::default());
    let webhooks = start_with_log(settings(), log.clone());
    webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
    endpoint.settled(1).await;
    let found = log::deliveries(&log.read(endpoint.endpoint().id).await.unwrap());
    assert_eq!(found[0].attempts[0].answer.as_ref().map(String::len), Some(1_024));
}

#[tokio::test]
async fn the_log_has_the_received_part_of_an_endless_response() {
    let dribble = Behaviour::Slow("HTTP/1.1 200 X\r\n\r\nno");
    for (behaviour, timeout_s, status, begins) in [
        (Behaviour::Endless, 30, Some(200), "xxx"),
        (dribble, 30, Some(200), "no"),
        // The response's head has no end.
        (Behaviour::Slow("HTTP/1.1 200 X\r\nx-long: "), 2, None, ""),
    ] {
        let receiver = Receiver::start(&[behaviour]).await;
        let endpoint = FakeEndpoint::new();
        let log = Arc::new(MemoryWebhookLog::default());
        let retries = WebhookRetries { attempts_max: 1, ..WebhookRetries::default() };
        let timeout = Duration::from_secs(timeout_s);
        let webhooks = start_with_log(WebhookSettings { retries, timeout, ..settings() }, log.clone());
        webhooks.enqueue(endpoint.pending_call(1, &receiver.url()));
        endpoint.settled(1).await;
        let found = log::deliveries(&log.read(endpoint.endpoint().id).await.unwrap());
        let attempt = &found[0].attempts[0];
        assert_eq!(attempt.status, status, "{attempt:?}");
        assert!(attempt.answer.as_deref().unwrap_or_default().starts_with(begins), "{attempt:?}");
    }
}

#[tokio::test]
async fn progress_is_sent_immediately_and_then_with_the_latest_value() {
    let receiver = Receiver::start(&[Behaviour::Status(200)]).await;
    let endpoint = FakeEndpoint::new();
    endpoint.resource.lock().unwrap().webhook_events = vec![WebhookEvent::Progress];
    let webhooks = start(WebhookSettings { progress_pause: Duration::from_millis(200), ..settings() });
    let job = endpoint.pending_call(1, &receiver.url()).job;
    for value in 0..50 {
        endpoint.set_progress(job, value);
        webhooks.progressed(endpoint.clone(), job);
    }
    let deadline = Instant::now() + DEADLINE;
    while receiver.calls().len() < 2 {
        assert!(Instant::now() < deadline, "the receiver is called in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let calls = receiver.calls();
    assert!(calls[0].contains(r#""status":"IN_PROGRESS""#), "{}", calls[0]);
    assert!(calls[1].contains(r#""output":49"#), "{}", calls[1]);
    // A terminal job has no progress.
    endpoint.jobs.lock().unwrap().get_mut(&job).unwrap().0.row.state = JobState::Completed;
    webhooks.progressed(endpoint.clone(), job);
    let third = tokio::time::timeout(Duration::from_millis(600), async {
        while receiver.calls().len() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(third.await.is_err(), "{:?}", receiver.calls());
}
