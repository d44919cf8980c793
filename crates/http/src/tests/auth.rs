//! Authentication: which requests are served, and what a request without a key reveals.

use longshore_model::{ApiKey, EndpointId, KeyScope, Millis};

use super::fixture::{Fixture, with_key};
use crate::mint_key;

const BODY: &[u8] = br#"{"input":{}}"#;
const JOB: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

/// Adds a key, and returns its text.
async fn add(fixture: &Fixture, scope: KeyScope, change: impl FnOnce(&mut ApiKey)) -> String {
    let mut minted = mint_key("a test's", vec![scope], Millis(0)).unwrap();
    change(&mut minted.record);
    fixture.engine.keys().put(minted.record).await.unwrap();
    minted.text
}

async fn status(fixture: &Fixture, head: &str, key: &str) -> u16 {
    let answer = fixture.server.ask(&format!("{head}\nauthorization: {key}"), BODY).await;
    if answer.status >= 400 {
        answer.code();
    }
    answer.status
}

fn every() -> Vec<EndpointId> {
    Vec::new()
}

#[tokio::test]
async fn a_bearer_or_bare_key_gets_in() {
    let fixture = Fixture::start().await;
    let key = add(&fixture, KeyScope::Jobs { endpoint_ids: every() }, |_| {}).await;
    for value in [format!("Bearer {key}"), format!("bearer {key}"), key.clone()] {
        assert_eq!(status(&fixture, "POST /v2/demo/run", &value).await, 200, "{value}");
    }
    for value in
        [format!("Basic {key}"), format!("{key}x"), key[..key.len() - 1].to_owned(), "Bearer".to_owned()]
    {
        assert_eq!(status(&fixture, "POST /v2/demo/run", &value).await, 401, "{value}");
    }
}

#[tokio::test]
async fn without_a_key_everything_is_401() {
    let fixture = Fixture::start().await;
    for head in [
        "POST /v2/demo/run",
        "POST /v2/demo/runsync",
        "GET /v2/demo/health",
        "GET /v2/demo/requests",
        "POST /v2/demo/purge-queue",
        &format!("GET /v2/demo/status/{JOB}"),
        &format!("GET /sdk/v2/demo/status-sync/{JOB}"),
        &format!("GET /sdk/v2/demo/stream/{JOB}"),
        &format!("POST /v2/demo/cancel/{JOB}"),
        &format!("POST /v2/demo/retry/{JOB}"),
        // A resource that does not exist is refused like one that does.
        "POST /v2/no-such-endpoint/run",
        "GET /v2/demo/no-such-operation",
        "GET /v2",
        "PUT /v2/demo/run",
        "GET /v1/no-such-thing",
        "GET /v1/endpoints/%ff",
        "DELETE /v1/templates/%ff",
        "GET /sdk/v2/demo",
    ] {
        for authorization in ["", "\nauthorization:", "\nauthorization: Bearer ls_x_y"] {
            let answer = fixture.server.ask(&format!("{head}{authorization}"), BODY).await;
            assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{head}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[tokio::test]
async fn a_key_that_ended_is_401() {
    let fixture = Fixture::start().await;
    let scope = || KeyScope::Jobs { endpoint_ids: every() };
    let expired = add(&fixture, scope(), |key| key.expires_at = Some(Millis(1))).await;
    let disabled = add(&fixture, scope(), |key| key.disabled = true).await;
    let alive = add(&fixture, scope(), |key| key.expires_at = Some(Millis(u64::MAX))).await;
    assert_eq!(status(&fixture, "POST /v2/demo/run", &expired).await, 401);
    assert_eq!(status(&fixture, "POST /v2/demo/run", &disabled).await, 401);
    assert_eq!(status(&fixture, "POST /v2/demo/run", &alive).await, 200);
    let id = alive.split('_').nth(1).unwrap();
    fixture.engine.keys().delete(id, |_| true).await.unwrap();
    assert_eq!(status(&fixture, "POST /v2/demo/run", &alive).await, 401);
}

#[tokio::test]
async fn a_changed_key_is_judged_anew_on_an_open_connection() {
    let fixture = Fixture::start().await;
    let key = mint_key("k", vec![KeyScope::Jobs { endpoint_ids: every() }], Millis(1)).unwrap();
    let run = format!("POST /v2/demo/run\nauthorization: {}", key.text);
    let mut wire = fixture.server.connect().await;
    assert_eq!(wire.ask(&run, BODY).await.status, 401);
    for (change, status) in [
        (ApiKey { name: "new".to_owned(), ..key.record.clone() }, 200),
        (ApiKey { disabled: true, ..key.record.clone() }, 401),
        (ApiKey { rate_limit: Some(100), ..key.record.clone() }, 200),
        (ApiKey { expires_at: Some(Millis(2)), ..key.record.clone() }, 401),
        (ApiKey { scopes: vec![KeyScope::Read { endpoint_ids: every() }], ..key.record.clone() }, 401),
        (key.record.clone(), 200),
        // Another key with the same text replaces the first one.
        (ApiKey { id: "other".to_owned(), disabled: true, ..key.record.clone() }, 401),
        (key.record.clone(), 200),
    ] {
        fixture.engine.keys().put(change.clone()).await.unwrap();
        assert_eq!(wire.ask(&run, BODY).await.status, status, "{change:?}");
    }
    fixture.engine.keys().delete(&key.record.id, |_| true).await.unwrap();
    assert_eq!(wire.ask(&run, BODY).await.status, 401);
}

#[tokio::test]
async fn each_request_of_a_connection_is_judged_by_its_own_credential() {
    let fixture = Fixture::start().await;
    let key = add(&fixture, KeyScope::Jobs { endpoint_ids: every() }, |_| {}).await;
    let token = fixture.engine.worker_token(&fixture.endpoint.record().id);
    let (run, ping) = ("POST /v2/demo/run", "GET /v2/demo/ping/w-1");
    let mut wire = fixture.server.connect().await;
    for (head, credential, status) in [
        (run, key.as_str(), 200),
        (run, &key[..key.len() - 1], 401),
        (run, token.as_str(), 401),
        (ping, token.as_str(), 200),
        (ping, key.as_str(), 401),
        ("GET /v2/other/ping/w-1", token.as_str(), 401),
    ] {
        let head = format!("{head}\nauthorization: {credential}");
        assert_eq!(wire.ask(&head, BODY).await.status, status, "{head}");
    }
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    let here = vec![fixture.endpoint.record().id];
    let elsewhere = vec!["abcdefghijklmn".parse().unwrap()];
    let jobs_here = add(&fixture, KeyScope::Jobs { endpoint_ids: here.clone() }, |_| {}).await;
    let jobs_elsewhere = add(&fixture, KeyScope::Jobs { endpoint_ids: elsewhere }, |_| {}).await;
    let read = add(&fixture, KeyScope::Read { endpoint_ids: every() }, |_| {}).await;
    let manage = add(&fixture, KeyScope::manage_all(), |_| {}).await;
    let reads = [
        "GET /v2/demo/health".to_owned(),
        format!("GET /v2/demo/status/{job}"),
        format!("POST /v2/demo/status/{job}"),
        "GET /v2/demo/requests".to_owned(),
        format!("GET /v2/demo/stream/{job}?wait=0"),
    ];
    let writes = [
        "POST /v2/demo/run".to_owned(),
        format!("GET /v2/demo/status/{job}?ttl=604800000"),
        format!("POST /v2/demo/cancel/{job}"),
        "POST /v2/demo/purge-queue".to_owned(),
    ];
    for head in &reads {
        assert_eq!(status(&fixture, head, &jobs_here).await, 200, "{head}");
        assert_eq!(status(&fixture, head, &read).await, 200, "{head}");
        assert_eq!(status(&fixture, head, &jobs_elsewhere).await, 401, "{head}");
        assert_eq!(status(&fixture, head, &manage).await, 401, "{head}");
    }
    for head in &writes {
        assert_eq!(status(&fixture, head, &read).await, 401, "{head}");
        assert_eq!(status(&fixture, head, &jobs_elsewhere).await, 401, "{head}");
        assert_eq!(status(&fixture, head, &manage).await, 401, "{head}");
        assert_eq!(status(&fixture, head, &jobs_here).await, 200, "{head}");
    }
    // A key for some endpoints does not learn which others exist.
    assert_eq!(status(&fixture, "POST /v2/no-such/run", &jobs_here).await, 401);
}

#[tokio::test]
async fn a_worker_token_is_for_the_worker_routes_alone() {
    let fixture = Fixture::start().await;
    let token = fixture.engine.worker_token(&fixture.endpoint.record().id);
    for head in ["POST /v2/demo/run", "GET /v2/demo/health", "GET /v1/endpoints"] {
        assert_eq!(status(&fixture, head, &token).await, 401, "{head}");
    }
    assert_eq!(status(&fixture, "GET /v2/demo/no-such-operation", &token).await, 404);
}

#[tokio::test]
async fn with_a_key_one_learns_what_does_not_exist() {
    let fixture = Fixture::start().await;
    for (head, status, code) in [
        ("POST /v2/no-such/run", 404, "endpoint_not_found"),
        ("GET /v2/no-such/health", 404, "endpoint_not_found"),
        ("GET /v2/%ff/health", 404, "endpoint_not_found"),
        ("GET /v1/endpoints/%ff", 404, "endpoint_not_found"),
        ("GET /v1/templates/%ff", 404, "template_not_found"),
        ("GET /v2/demo/no-such", 404, "route_not_found"),
        ("GET /no-such", 404, "route_not_found"),
        ("GET /v2/demo/run", 405, "method_not_allowed"),
        ("DELETE /v2/demo/health", 405, "method_not_allowed"),
    ] {
        assert_eq!(fixture.refusal(head, "").await, (status, code.to_owned()), "{head}");
    }
    let answer = fixture.ask("GET /v2/demo/run", "").await;
    assert_eq!(answer.header("allow"), Some("POST"));
}

#[tokio::test]
async fn a_browser_gets_a_page_at_the_root_and_other_clients_an_error() {
    let fixture = Fixture::start().await;
    let page = fixture.ask("GET /\naccept: text/html,application/xhtml+xml,*/*;q=0.8", "").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").is_some());
    let text = String::from_utf8(page.body).unwrap();
    assert!(text.contains("/v1/docs") && text.contains("longshore login"), "{text}");
    for head in ["GET /", "GET /\naccept: */*", "POST /\naccept: text/html"] {
        assert_eq!(fixture.refusal(head, "").await, (404, "route_not_found".to_owned()), "{head}");
    }
}

#[tokio::test]
async fn a_body_is_not_read_before_the_key_is_checked() {
    let fixture = Fixture::start().await;
    for (head, status) in [
        ("POST /v2/demo/run".to_owned(), 401),
        (with_key("POST /v2/no-such/run"), 404),
        (with_key("POST /v2/demo/runsync?wait=1"), 400),
        (with_key("POST /v2/demo/run\nidempotency-key:"), 400),
    ] {
        let mut wire = fixture.server.connect().await;
        // The client sends the head only.
        wire.send(&format!("{head}\nexpect: 100-continue\ncontent-length: 1000"), None).await;
        assert_eq!(wire.answer(false).await.status, status, "{head}");
    }
}
