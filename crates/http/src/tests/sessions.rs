//! Sessions of the console: sign-in with a key and with a code, the rules that make a cookie count, and their end.

use std::sync::Arc;

use http::Request;
use longshore_engine::SessionLimits;
use longshore_model::{ConsoleSession, Durability, JsonRowKind, KeyScope, Millis, ShardId};
use longshore_store::{Batch, MemoryStore, Store as _, Write};
use serde_json::{Value, json};

use super::direct::{ADMIN, Direct, Reply, request};
use super::fixture::Fixture;
use crate::{
    ConsoleSettings, HttpSettings, HttpState, Origins, RateLimits, TrustedProxies, mint_key, router,
};

/// A browser that is signed in.
struct Browser {
    cookie: String,
    csrf: String,
}

fn asked(
    method: &str,
    path: &str,
    body: &str,
    headers: &[(&'static str, &str)],
) -> Request<axum::body::Body> {
    let mut asked = request(method, path, None, body.to_owned());
    for (name, value) in headers {
        asked.headers_mut().insert(*name, value.parse().unwrap());
    }
    asked
}

async fn sign_in(server: &Direct, body: &Value) -> Reply {
    let json = ("content-type", "application/json");
    server.send(asked("POST", "/console/session", &body.to_string(), &[json])).await
}

/// The first pair of `Set-Cookie`.
fn cookie_of(reply: &Reply) -> String {
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

impl Browser {
    async fn with_key(server: &Direct, key: &str) -> Self {
        let reply = sign_in(server, &json!({ "key": key })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        Self { cookie: cookie_of(&reply), csrf: reply.json()["csrf"].as_str().unwrap().to_owned() }
    }

    async fn send(&self, server: &Direct, method: &str, path: &str, body: &str) -> Reply {
        self.send_with(server, method, path, body, &[]).await
    }

    async fn send_with(
        &self,
        server: &Direct,
        method: &str,
        path: &str,
        body: &str,
        more: &[(&'static str, &str)],
    ) -> Reply {
        let own = [("cookie", self.cookie.as_str()), ("x-longshore-console", self.csrf.as_str())];
        server.send(asked(method, path, body, &[&own, more].concat())).await
    }
}

/// Adds a key with these scopes, and returns its text.
async fn add_key(server: &Direct, scopes: Vec<KeyScope>) -> String {
    let minted = mint_key("a test's", scopes, Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    minted.text
}

#[tokio::test(start_paused = true)]
async fn a_key_signs_in_and_the_cookie_does_what_the_key_may() {
    let server = Direct::start().await;
    let reply = sign_in(&server, &json!({ "key": ADMIN })).await;
    assert_eq!((reply.status.as_u16(), reply.header("cache-control")), (200, Some("no-store")));
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.starts_with("longshore-") && cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(cookie.contains("; Path=/;") && !cookie.contains("Secure"), "{cookie}");
    let me = &reply.json()["me"];
    assert_eq!(
        (&me["may"]["manage"], &me["may"]["jobs"], &me["key"]["prefix"]),
        (&json!(true), &json!("*"), &json!(null))
    );
    assert!(me["session"]["expiresAt"].is_string());

    let browser = Browser::with_key(&server, ADMIN).await;
    assert_eq!(browser.send(&server, "GET", "/v1/endpoints", "").await.status, 200);
    assert_eq!(browser.send(&server, "POST", "/v2/demo/run", r#"{"input":{}}"#).await.status, 200);
    assert_eq!(browser.send(&server, "GET", "/v2/demo/requests", "").await.status, 200);
    let me = browser.send(&server, "GET", "/v1/me", "").await.json();
    assert!(me["session"].is_object());
    let page = browser.send(&server, "GET", "/v2/demo/requests", "").await;
    assert_eq!(
        (page.header("cache-control"), page.header("x-content-type-options")),
        (Some("no-store"), Some("nosniff"))
    );
    assert_eq!(server.ask("GET", "/v2/demo/requests", "").await.header("cache-control"), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_key_may_not_the_session_may_not() {
    let server = Direct::start().await;
    let (here, other) = (server.endpoint, server.other);
    let read =
        vec![KeyScope::Read { endpoint_ids: vec![here] }, KeyScope::Jobs { endpoint_ids: vec![other] }];
    let key = add_key(&server, read).await;
    let browser = Browser::with_key(&server, &key).await;
    let me = browser.send(&server, "GET", "/v1/me", "").await.json();
    let expected = json!({
        "manage": false, "endpoints": [], "read": [here.to_string()],
        "requests": [here.to_string(), other.to_string()], "jobs": [other.to_string()],
    });
    assert_eq!(me["may"], expected);
    assert_eq!(me["key"]["prefix"], json!(format!("ls_{}", key.split('_').nth(1).unwrap())));
    for (method, path, status) in [
        ("GET", "/v2/demo/health", 200),
        ("POST", "/v2/demo/run", 401),
        ("POST", "/v2/other/run", 200),
        ("GET", "/v1/endpoints", 200),
        ("GET", "/v1/sessions", 401),
        ("POST", "/v1/templates", 401),
    ] {
        let reply = browser.send(&server, method, path, r#"{"input":{},"name":"n"}"#).await;
        assert_eq!(reply.status, status, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cookie_counts_only_with_the_header_of_its_page() {
    let server = Direct::start().await;
    let browser = Browser::with_key(&server, ADMIN).await;
    let other = Browser::with_key(&server, ADMIN).await;
    let cookie = ("cookie", browser.cookie.as_str());
    let path = "/v2/demo/stream/0190163d-8694-739b-aea5-966c26f8ad90";
    for headers in [
        &[cookie][..],
        &[cookie, ("x-longshore-console", "new")],
        &[cookie, ("x-longshore-console", "")],
        &[cookie, ("x-longshore-console", &other.csrf)],
        &[("x-longshore-console", &browser.csrf)],
        &[cookie, ("x-longshore-console", &browser.csrf), ("sec-fetch-site", "cross-site")],
        &[cookie, ("x-longshore-console", &browser.csrf), ("sec-fetch-site", "same-site")],
        &[cookie, ("x-longshore-console", &browser.csrf), ("authorization", "Bearer wrong")],
    ] {
        for (method, path) in
            [("GET", path), ("POST", "/v2/demo/run"), ("GET", "/v1/me"), ("GET", "/v1/none")]
        {
            let reply = server.send(asked(method, path, r#"{"input":{}}"#, headers)).await;
            assert_eq!((reply.status.as_u16(), reply.code().as_str()), (401, "unauthorized"), "{headers:?}");
        }
    }
    let same = [("sec-fetch-site", "same-origin")];
    assert_eq!(browser.send_with(&server, "GET", "/v1/me", "", &same).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_reloaded_page_gets_its_csrf_value_again() {
    let server = Direct::start().await;
    let browser = Browser::with_key(&server, ADMIN).await;
    let cookie = ("cookie", browser.cookie.as_str());
    let new = ("x-longshore-console", "new");
    let reply = server.send(asked("GET", "/console/session", "", &[cookie, new])).await;
    assert_eq!(reply.json()["csrf"], json!(browser.csrf));
    for headers in [&[cookie][..], &[new], &[cookie, new, ("sec-fetch-site", "cross-site")]] {
        assert_eq!(server.send(asked("GET", "/console/session", "", headers)).await.status, 401);
    }
}

#[tokio::test(start_paused = true)]
async fn no_other_origin_may_send_the_header_or_call_the_console() {
    let mut server = Direct::start().await;
    server.edge = server.edge.with_origins(Some(Origins::Any));
    let page = ("origin", "https://app.example");
    let method = ("access-control-request-method", "GET");
    let wanted = |names| ("access-control-request-headers", names);
    let allowed = "access-control-allow-headers";
    let preflight =
        |path, headers: &'static str| asked("OPTIONS", path, "", &[page, method, wanted(headers)]);
    assert!(server.send(preflight("/v1/me", "authorization")).await.header(allowed).is_some());
    for names in ["x-longshore-console", "authorization, X-Longshore-Console"] {
        assert_eq!(server.send(preflight("/v1/me", names)).await.header(allowed), None);
    }
    let reply = server.send(preflight("/console/session", "content-type")).await;
    assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("access-control-")));
    let reply = server.send(asked("GET", "/console", "", &[page])).await;
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[tokio::test(start_paused = true)]
async fn sign_out_ends_the_session_immediately() {
    let server = Direct::start().await;
    let browser = Browser::with_key(&server, ADMIN).await;
    let cookie = ("cookie", browser.cookie.as_str());
    assert_eq!(server.send(asked("DELETE", "/console/session", "", &[cookie])).await.status, 401);
    let reply = browser.send(&server, "DELETE", "/console/session", "").await;
    assert_eq!(reply.status, 204);
    assert!(reply.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(browser.send(&server, "GET", "/v1/me", "").await.status, 401);
    assert!(server.engine.sessions().list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_revoked_disabled_or_changed_ends_its_sessions() {
    let server = Direct::start().await;
    let key = add_key(&server, vec![KeyScope::manage_all()]).await;
    let id = key.split('_').nth(1).unwrap().to_owned();
    let browser = Browser::with_key(&server, &key).await;
    let path = format!("/v1/apikeys/{id}");
    let status = async || browser.send(&server, "GET", "/v1/me", "").await.status.as_u16();
    server.ask("PATCH", &path, r#"{"disabled":true}"#).await;
    assert_eq!(status().await, 401);
    let keys = server.engine.keys();
    let narrow = |key: &mut longshore_model::ApiKey| {
        key.disabled = false;
        key.scopes = vec![KeyScope::Jobs { endpoint_ids: Vec::new() }];
        Ok::<(), longshore_engine::CatalogError>(())
    };
    keys.update(&id, None, narrow).await.unwrap();
    assert_eq!(status().await, 200);
    assert_eq!(browser.send(&server, "GET", "/v1/endpoints", "").await.status, 401, "narrowed");
    server.ask("DELETE", &path, "").await;
    assert_eq!(status().await, 401);
    // The operator's key keeps its id when its text changes.
    let browser = Browser::with_key(&server, ADMIN).await;
    server.engine.keys().put(crate::admin_key("another text", Millis(0))).await.unwrap();
    assert_eq!(browser.send(&server, "GET", "/v1/me", "").await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_code_signs_in_once_with_the_key_that_made_it() {
    let server = Direct::start().await;
    let key = add_key(&server, vec![KeyScope::Jobs { endpoint_ids: vec![] }]).await;
    let mut request = request("POST", "/v1/console-codes", Some(&key), "");
    request.headers_mut().insert("host", "gpu.example:8080".parse().unwrap());
    let made = server.send(request).await.json();
    let code = made["code"].as_str().unwrap();
    assert_eq!(made["url"], json!(format!("http://gpu.example:8080/console/#code={code}")));
    assert_eq!(code.len(), 64);
    let reply = sign_in(&server, &json!({ "code": code })).await;
    assert_eq!(reply.json()["me"]["key"]["name"], json!("a test's"));
    assert_eq!(sign_in(&server, &json!({ "code": code })).await.status, 401, "used up");

    let browser = Browser::with_key(&server, ADMIN).await;
    let reply = browser.send(&server, "POST", "/v1/console-codes", "").await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "needs_a_key"));
    let made = server.ask("POST", "/v1/console-codes", "").await.json();
    server.engine.keys().put(crate::admin_key("another text", Millis(0))).await.unwrap();
    assert_eq!(sign_in(&server, &json!({ "code": made["code"] })).await.status, 401, "its key has changed");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_sign_in() {
    let server = Direct::start().await;
    let token = server.engine.worker_token(&server.endpoint);
    for body in [json!({ "key": "wrong" }), json!({ "key": token }), json!({ "code": "0".repeat(64) })] {
        let reply = sign_in(&server, &body).await;
        assert_eq!((reply.status.as_u16(), reply.header("set-cookie")), (401, None), "{body}");
    }
    let body = json!({ "key": ADMIN }).to_string();
    for (content_type, site, status) in [
        ("text/plain", "same-origin", 400),
        ("application/x-www-form-urlencoded", "same-origin", 400),
        ("application/json", "cross-site", 401),
        ("application/json; charset=utf-8", "same-origin", 200),
    ] {
        let headers = [("content-type", content_type), ("sec-fetch-site", site)];
        let reply = server.send(asked("POST", "/console/session", &body, &headers)).await;
        assert_eq!(reply.status, status, "{content_type} {site}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_failed_sign_ins_are_enough_for_a_minute() {
    let server = Direct::start().await;
    for _ in 0..10 {
        assert_eq!(sign_in(&server, &json!({ "key": "wrong" })).await.status, 401);
    }
    let reply = sign_in(&server, &json!({ "key": ADMIN })).await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (429, "rate_limited"));
    assert!(reply.header("retry-after").is_some());
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!(sign_in(&server, &json!({ "key": ADMIN })).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn signing_in_again_replaces_the_browsers_session() {
    let server = Direct::start().await;
    let browser = Browser::with_key(&server, ADMIN).await;
    let headers = [("content-type", "application/json"), ("cookie", browser.cookie.as_str())];
    let body = json!({ "key": ADMIN }).to_string();
    let reply = server.send(asked("POST", "/console/session", &body, &headers)).await;
    assert_ne!(cookie_of(&reply), browser.cookie, "a session is never taken over");
    assert_eq!(browser.send(&server, "GET", "/v1/me", "").await.status, 401);
    assert_eq!(server.engine.sessions().list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_listed_and_ended_by_who_manages() {
    let server = Direct::start().await;
    let own = Browser::with_key(&server, ADMIN).await;
    let key = add_key(&server, vec![KeyScope::Read { endpoint_ids: vec![] }]).await;
    let other = Browser::with_key(&server, &key).await;
    let listed = own.send(&server, "GET", "/v1/sessions", "").await.json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed.iter().filter(|session| session["current"] == json!(true)).count(), 1);
    let theirs = listed.iter().find(|session| session["key"]["name"] == json!("a test's")).unwrap();
    let path = format!("/v1/sessions/{}", theirs["id"].as_str().unwrap());
    assert_eq!(own.send(&server, "DELETE", &path, "").await.status, 204);
    assert_eq!(other.send(&server, "GET", "/v1/me", "").await.status, 401);
    assert_eq!(own.send(&server, "DELETE", &path, "").await.code(), "session_not_found");
    let text = String::from_utf8(own.send(&server, "GET", "/v1/sessions", "").await.body.to_vec()).unwrap();
    let secret = own.cookie.split('=').nth(1).unwrap();
    assert!(!text.contains(secret) && !text.contains("hash"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn one_key_has_at_most_twenty_sessions() {
    let server = Direct::start().await;
    let mut browsers = Vec::new();
    for _ in 0..21 {
        browsers.push(Browser::with_key(&server, ADMIN).await);
    }
    assert_eq!(server.engine.sessions().list().len(), 20);
    let mut open = 0;
    for browser in &browsers {
        open += u32::from(browser.send(&server, "GET", "/v1/me", "").await.status == 200);
    }
    assert_eq!(open, 20);
    // A browser that signs in again ends its own session, and no other one.
    let own = server.engine.sessions().list().swap_remove(7);
    let next = ConsoleSession { id: "next".into(), hash: "next".into(), ..ConsoleSession::clone(&own) };
    let opened = server.engine.sessions().open(next, Some(&own.id)).await.unwrap();
    assert_eq!(opened.ended.iter().map(|session| &session.id).collect::<Vec<_>>(), [&own.id]);
    assert_eq!(server.engine.sessions().list().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_session_lasts_over_a_restart_and_corrupt_rows_stop_no_start() {
    let store = Arc::new(MemoryStore::new());
    let server = Direct::start_on(Arc::<MemoryStore>::clone(&store)).await;
    let browser = Browser::with_key(&server, ADMIN).await;
    server.engine.close().await;
    let epoch = store.claim_shards(vec![ShardId::CATALOG]).await.unwrap()[0];
    let corrupt = |kind, id: &str, json: &'static str| Write::PutJsonRow(kind, id.to_owned(), json.into());
    let writes = vec![
        corrupt(JsonRowKind::ConsoleSession, "a", "{"),
        corrupt(JsonRowKind::ConsoleSession, "b", r#"{"id":1}"#),
        corrupt(JsonRowKind::ConsoleCode, "c", "null"),
    ];
    let batch = Batch { durability: Durability::Synced, writes, chain: None };
    store.commit(ShardId::CATALOG, epoch, batch).await.unwrap();
    let server = Direct::again_on(store).await;
    assert_eq!(browser.send(&server, "GET", "/v1/me", "").await.status, 200);
    assert_eq!(server.engine.sessions().list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_over_is_refused_and_removed() {
    let server = Direct::start().await;
    let limits = SessionLimits::default();
    let now = server.engine.now();
    let session = |id: &str, opened_at, used_at| ConsoleSession {
        id: id.to_owned(),
        hash: id.to_owned(),
        key: crate::gate::auth::OPERATOR.to_owned(),
        key_hash: crate::admin_key(ADMIN, Millis(0)).hash,
        opened_at,
        used_at,
        address: None,
        agent: None,
    };
    let ago = |ms: u64| Millis(now.0 - ms);
    for session in [
        session("idle", ago(limits.idle_ms), ago(limits.idle_ms)),
        session("old", ago(limits.max_ms), now),
        session("open", ago(limits.max_ms - 1), ago(limits.idle_ms - 1)),
    ] {
        server.engine.sessions().open(session, None).await.unwrap();
    }
    let listed = server.ask("GET", "/v1/sessions", "").await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!("open")));
    server.engine.sessions().note_use(&limits).await.unwrap();
    assert_eq!(server.engine.sessions().list().len(), 1);
}

#[tokio::test]
async fn over_tls_and_behind_a_proxy_the_cookie_is_secure_and_has_the_path() {
    let console = ConsoleSettings {
        trusted_proxies: TrustedProxies::parse("127.0.0.1").unwrap(),
        ..ConsoleSettings::default()
    };
    let fixture = Fixture::with(&HttpSettings { console, ..HttpSettings::default() }, "").await;
    let body = json!({ "key": "the operators key" }).to_string();
    let sign_in = async |headers: &str| {
        let head = format!("POST /console/session\ncontent-type: application/json{headers}");
        let answer = fixture.server.ask(&head, body.as_bytes()).await;
        answer.header("set-cookie").unwrap().to_owned()
    };
    assert!(sign_in("").await.starts_with("longshore-"));
    let cookie = sign_in("\nx-forwarded-proto: https").await;
    assert!(cookie.starts_with("__Host-longshore=") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = sign_in("\nx-forwarded-proto: https\nx-forwarded-prefix: /gpu/").await;
    assert!(cookie.starts_with("__Secure-longshore=") && cookie.contains("; Path=/gpu/;"), "{cookie}");
    let page = fixture.server.ask("GET /console\nx-forwarded-prefix: /gpu", b"").await;
    assert!(page.text().contains("\"/gpu/console/a/"));
    let listed = fixture.ask("GET /v1/sessions\nx-forwarded-for: 9.9.9.9", "").await.json();
    assert_eq!(listed[0]["address"], json!("127.0.0.1"));
}

#[tokio::test]
async fn a_header_of_a_stranger_is_not_believed() {
    let fixture = Fixture::start().await;
    let page = fixture.server.ask("GET /console\nx-forwarded-prefix: /evil", b"").await;
    assert!(!page.text().contains("/evil"));
    let head = "POST /console/session\ncontent-type: application/json\nx-forwarded-for: 9.9.9.9";
    let body = json!({ "key": "the operators key" }).to_string();
    assert_eq!(fixture.server.ask(head, body.as_bytes()).await.status, 200);
    let sessions = fixture.engine.sessions().list();
    assert_eq!(sessions[0].address, Some("127.0.0.1".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_counted_against_its_keys_limits() {
    let mut server = Direct::start().await;
    let settings = HttpSettings { rate_limits: RateLimits::default(), ..HttpSettings::default() };
    server.edge = router(HttpState::new(server.engine.clone(), &settings));
    let browser = Browser::with_key(&server, ADMIN).await;
    for _ in 0..400 {
        let reply = browser.send(&server, "GET", "/v2/demo/requests?limit=1", "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let reply = browser.send(&server, "GET", "/v1/me", "").await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (429, "rate_limited"));
    assert_eq!(server.ask("GET", "/v2/demo/requests?limit=1", "").await.status, 200, "the key has its own");
}

#[tokio::test(start_paused = true)]
async fn a_console_that_is_off_has_no_sessions() {
    let mut server = Direct::start().await;
    let browser = Browser::with_key(&server, ADMIN).await;
    let console = ConsoleSettings { is_on: false, ..ConsoleSettings::default() };
    let settings = HttpSettings { console, ..HttpSettings::default() };
    server.edge = router(HttpState::new(server.engine.clone(), &settings));
    assert_eq!(browser.send(&server, "GET", "/v1/me", "").await.status, 401);
    assert_eq!(sign_in(&server, &json!({ "key": ADMIN })).await.status, 404);
    assert_eq!(server.ask("POST", "/v1/console-codes", "").await.status, 404);
}
