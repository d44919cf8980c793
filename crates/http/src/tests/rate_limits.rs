//! Rate and concurrency limits over HTTP.

use std::time::Duration;

use tokio::time::timeout;

use super::fixture::{Fixture, with_key};
use super::wire::DEADLINE;
use crate::gate::rate_limits::{Limit, RateLimits, RateTable};
use crate::{HttpSettings, admin_key};

fn settings(change: impl FnOnce(&mut RateTable)) -> HttpSettings {
    let mut table = RateTable::default();
    change(&mut table);
    HttpSettings { rate_limits: RateLimits::On(table), ..HttpSettings::default() }
}

fn limit(per_10_s: u32, concurrent: u32) -> Limit {
    Limit { per_10_s, concurrent }
}

#[tokio::test]
async fn a_third_purge_in_ten_seconds_is_429() {
    let fixture = Fixture::start().await;
    for left in ["1", "0"] {
        let answer = fixture.ask("POST /v2/demo/purge-queue", "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"purge-queue\";q=2;w=10"));
        assert!(answer.header("ratelimit").unwrap().starts_with(&format!("\"purge-queue\";r={left};t=")));
    }
    let answer = fixture.ask("POST /v2/demo/purge-queue", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate_limited"));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait));
    assert!(answer.header("ratelimit").unwrap().starts_with("\"purge-queue\";r=0;t="));
    // Other operations and other owners have limits of their own; mounts of one operation share one.
    assert_eq!(fixture.ask("POST /sdk/v2/demo/purge-queue", "").await.status, 429);
    assert_eq!(fixture.ask("GET /v2/demo/health", "").await.status, 200);
    let mut other = admin_key("another", longshore_model::Millis(0));
    other.id = "another".to_owned();
    fixture.engine.keys().put(other).await.unwrap();
    let asked =
        async || fixture.server.ask("POST /v2/demo/purge-queue\nauthorization: another", b"").await.status;
    // Keys of the same owner share limits; a key of another owner has its own.
    assert_eq!(asked().await, 429);
    for (owner, status) in [("acme", 200), ("server", 429), ("acme", 200), ("acme", 429)] {
        let update = format!("{{\"owner\":\"{owner}\"}}");
        assert_eq!(fixture.ask("PATCH /v1/apikeys/another", &update).await.status, 200);
        assert_eq!(asked().await, status, "{owner}");
    }
}

#[tokio::test]
async fn some_operations_share_a_row() {
    let settings = settings(|table| {
        table.status = limit(2, 0);
        table.cancel = limit(2, 0);
    });
    let fixture = Fixture::with(&settings, "").await;
    let job = fixture.running().await;
    fixture.fail(job, "e").await;
    let asked = async |head: &str| fixture.ask(&format!("{head}/{job}"), "").await.status;
    assert_eq!(asked("GET /v2/demo/status").await, 200);
    assert_eq!(asked("GET /v2/demo/status-sync").await, 200);
    assert_eq!(asked("GET /v2/demo/status").await, 429);
    assert_eq!(asked("POST /v2/demo/cancel").await, 200);
    assert_eq!(asked("POST /v2/demo/retry").await, 200);
    assert_eq!(asked("POST /v2/demo/cancel").await, 429);
}

#[tokio::test]
async fn a_request_over_the_concurrency_limit_is_429_until_another_ends() {
    let fixture = Fixture::with(&settings(|table| table.runsync = limit(100, 1)), "").await;
    let mut holder = fixture.server.connect().await;
    holder.send(&with_key("POST /v2/demo/runsync"), Some(br#"{"input":{}}"#)).await;
    let job = fixture.take().await.row.id;
    // A running worker would raise the limit to 100. The job is requeued, so that no worker runs.
    fixture.endpoint.workers().lose("w-1".parse().unwrap(), false, "a test".to_owned()).await.unwrap();
    let answer = fixture.ask("POST /v2/demo/runsync?wait=1000", r#"{"input":{}}"#).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "concurrency_limited"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(fixture.take().await.row.id, job);
    fixture.complete(job, "1").await;
    assert_eq!(holder.answer(false).await.status, 200);
    let answer = fixture.ask("POST /v2/demo/runsync?wait=1000", r#"{"input":{}}"#).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn running_workers_raise_the_limit() {
    let fixture = Fixture::start().await;
    fixture.running().await;
    for _ in 0..3 {
        let answer = fixture.ask("POST /v2/demo/purge-queue", "").await;
        assert_eq!(answer.header("ratelimit-policy"), Some("\"purge-queue\";q=100;w=10"));
    }
}

#[tokio::test]
async fn limits_can_be_off() {
    let settings = HttpSettings { rate_limits: RateLimits::Off, ..HttpSettings::default() };
    let fixture = Fixture::with(&settings, "").await;
    for _ in 0..5 {
        let answer = fixture.ask("POST /v2/demo/purge-queue", "").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (200, None));
    }
}

#[tokio::test]
async fn a_client_that_disconnected_does_not_count() {
    let fixture = Fixture::with(&settings(|table| table.runsync = limit(1_000, 1)), "").await;
    let mut gone = fixture.server.connect().await;
    gone.send(&with_key("POST /v2/demo/runsync?wait=300000"), Some(br#"{"input":{}}"#)).await;
    let asked = async || {
        let answer = fixture.ask("POST /v2/demo/runsync?wait=1000", r#"{"input":{}}"#).await;
        answer.status
    };
    let until = async |status: u16| {
        while asked().await != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, until(429)).await.unwrap();
    drop(gone);
    timeout(DEADLINE, until(200)).await.unwrap();
}

#[tokio::test]
async fn an_answer_in_pieces_counts_until_its_end_or_until_its_reader_leaves() {
    let mut settings = settings(|table| table.openai = limit(1_000, 1));
    if let RateLimits::On(table) = &mut settings.rate_limits {
        // A running worker must not raise the limit.
        table.requests_per_worker = 0;
    }
    let fixture = Fixture::with(&settings, r#","models":["m"]"#).await;
    let other = async || fixture.ask("GET /v2/demo/openai/v1/models", "").await;
    let until_free = async || {
        while other().await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    for head in ["POST /v2/demo/openai/v1/chat/completions", "POST /openai/v1/chat/completions"] {
        for leaves in [false, true] {
            let mut wire = fixture.server.connect().await;
            wire.send(&with_key(head), Some(br#"{"model":"m","stream":true}"#)).await;
            let job = fixture.take().await.row.id;
            fixture.yield_chunks(job, &["\"data: 1\\n\\n\""]).await;
            assert_eq!(wire.head().await.0, 200);
            wire.piece().await;
            assert_eq!(other().await.json()["error"]["code"], "concurrency_limited", "{head}");
            if leaves {
                drop(wire);
            } else {
                fixture.complete(job, "[]").await;
                while !wire.piece().await.is_empty() {}
            }
            timeout(DEADLINE, until_free()).await.expect("the next is let in");
        }
    }
}

#[tokio::test]
async fn a_look_at_webhooks_takes_nothing_from_other_operations() {
    let fixture = Fixture::with(&settings(|table| table.webhooks = limit(2, 0)), "").await;
    let asked = async |head: &str| fixture.ask(head, "").await;
    let look = asked("GET /v2/demo/webhooks").await;
    assert_eq!((look.status, look.header("ratelimit-policy")), (200, Some("\"webhooks\";q=2;w=10")));
    assert_eq!(asked("POST /v2/demo/webhooks/redeliver").await.status, 200);
    assert_eq!(asked("GET /v2/demo/webhooks").await.status, 429);
    for (head, left) in [("GET /v2/demo/requests", "r=9"), ("POST /v2/demo/cancel/x", "r=99")] {
        assert!(asked(head).await.header("ratelimit").unwrap().contains(left), "{head}");
    }
}
