//! What the log has about requests, and what it must not have.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::level_filters::LevelFilter;

use longshore_store::MemoryStore;

use super::direct::Direct;
use super::fixture::Fixture;

/// The text that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_request_is_one_line_without_its_secrets() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let fixture = Fixture::start().await;
    // Another test may have reached the log line while this subscriber was being installed, and cached that no
    // subscriber wants it. The line is registered by now, so the cache is rebuilt.
    fixture.server.ask("GET /v2/demo/health", b"").await;
    tracing::callsite::rebuild_interest_cache();
    let body =
        r#"{"input":{"a":"hunter2"},"s3Config":{"accessSecret":"hunter2"},"webhook":"http://h/hunter2"}"#;
    let head = "POST /v2/demo/run?token=hunter2\nidempotency-key: hunter2\ncookie: hunter2";
    let accepted = fixture.ask(head, body).await;
    assert_eq!(accepted.status, 200);
    fixture.ask(head, &format!("{body} hunter2")).await;
    fixture.server.ask("GET /v2/demo/health\nauthorization: Bearer hunter2", b"").await;

    let text = log.text();
    let id = accepted.header("x-request-id").unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.contains(id)).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].contains("method=POST") && lines[0].contains("path=\"/v2/demo/run\""), "{text}");
    assert!(text.contains("status=400") && text.contains("status=401"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("operators"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_start_names_endpoints_with_a_reserved_slug_and_they_go_on() {
    let store = Arc::new(MemoryStore::new());
    let direct = Direct::start_on(Arc::clone(&store)).await;
    let template = direct.ask("GET", "/v1/templates", "").await.json()[0]["id"].clone();
    let body = format!(r#"{{"slug":"old","templateId":{template},"provider":"external"}}"#);
    let made = direct.ask("POST", "/v1/endpoints", &body).await.json();
    let id = made["id"].as_str().unwrap().to_owned();
    // As an older server wrote it.
    let rename = |endpoint: &mut longshore_model::Endpoint| {
        endpoint.slug = Some("serverless".to_owned());
        Ok::<_, longshore_engine::CatalogError>(())
    };
    direct.engine.update_endpoint("old", "key-1", rename).await.unwrap();
    drop(direct);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    Direct::again_on(Arc::clone(&store)).await;
    tracing::callsite::rebuild_interest_cache();
    let again = Direct::again_on(store).await;
    let text = log.text();
    let line = text.lines().find(|line| line.contains("WARN") && line.contains(&id));
    assert!(line.is_some_and(|line| line.contains("serverless") && line.contains("reserved")), "{text}");
    for name in [id.as_str(), "serverless"] {
        assert_eq!(again.ask("POST", &format!("/v2/{name}/run"), r#"{"input":{}}"#).await.status, 200);
        let kept = format!(r#"{{"name":"{name}","slug":"serverless"}}"#);
        assert_eq!(again.ask("PATCH", &format!("/v1/endpoints/{name}"), &kept).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_names_endpoints_whose_provider_has_no_launcher_and_they_go_on() {
    let store = Arc::new(MemoryStore::new());
    let direct = Direct::start_on(Arc::clone(&store)).await;
    let body = r#"{"slug":"old","provider":"external","template":{"name":"u","imageName":"i"}}"#;
    let made = direct.ask("POST", "/v1/endpoints", body).await.json();
    let id = made["id"].as_str().unwrap().to_owned();
    // As a server with a launcher of containers wrote it.
    let change = |endpoint: &mut longshore_model::Endpoint| {
        endpoint.provider = longshore_model::Provider::Docker;
        Ok::<_, longshore_engine::CatalogError>(())
    };
    direct.engine.update_endpoint("old", "key-1", change).await.unwrap();
    drop(direct);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    Direct::again_on(Arc::clone(&store)).await;
    tracing::callsite::rebuild_interest_cache();
    let again = Direct::again_on(store).await;
    let text = log.text();
    let line = text.lines().find(|line| line.contains("WARN") && line.contains(&id));
    assert!(line.is_some_and(|line| line.contains("no launcher") && line.contains("docker")), "{text}");
    assert_eq!(again.ask("POST", "/v2/old/run", r#"{"input":{}}"#).await.status, 200);
    let at = format!("/v1/endpoints/{id}");
    let kept = again.ask("PATCH", &at, r#"{"provider":"docker","idleTimeout":9}"#).await;
    assert_eq!(kept.status, 200, "{kept:?}");
    assert_eq!(again.ask("PATCH", &at, r#"{"provider":"kubernetes"}"#).await.status, 400);
}
