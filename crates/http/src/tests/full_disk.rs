//! What is refused and what is served while the disk has too little space.

use serde_json::{Value, json};

use super::fixture::Fixture;
use super::wire::Answer;

const SHORTAGE: &str = "the disk of /data is full. Delete jobs or endpoints";

/// The answer to a request with the text of a key.
async fn as_key(fixture: &Fixture, key: &str, head: &str) -> Answer {
    fixture.server.ask(&format!("{head}\nAuthorization: Bearer {key}"), b"{}").await
}

/// The text of a new key with this scope, as JSON.
async fn key(fixture: &Fixture, scope: Value) -> String {
    let body = json!({ "name": "k", "scopes": [scope] }).to_string();
    fixture.ask("POST /v1/apikeys", &body).await.json()["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn changes_that_store_more_are_refused_with_what_to_delete() {
    let fixture = Fixture::start().await;
    let own = [fixture.endpoint.id()];
    let limited = key(&fixture, json!({ "scope": "manage", "endpointIds": own })).await;
    let jobs = key(&fixture, json!({ "scope": "jobs", "endpointIds": own })).await;
    fixture.engine.set_space_shortage(Some(SHORTAGE.to_owned())).await;
    for head in [
        "POST /v1/code?name=one",
        "POST /v1/templates",
        "POST /v1/endpoints",
        "PATCH /v1/endpoints/demo",
        "POST /v1/endpoints/demo/update",
        "POST /v1/endpoints/demo/deploy",
        "POST /v1/endpoints/demo/versions/1/restore",
        "POST /v1/apikeys",
        "POST /v1/secrets",
    ] {
        let refused = fixture.ask(head, "not JSON").await;
        let body = refused.json();
        assert_eq!((refused.status, &body["code"]), (507, &Value::from("disk_full")), "{head}: {refused:?}");
        assert_eq!(body["error"], format!("nothing was changed: {SHORTAGE}"));
    }
    // Who manages one endpoint reads no name of a folder, and who manages none learns nothing.
    let refused = as_key(&fixture, &limited, "PATCH /v1/endpoints/demo").await;
    assert!(refused.status == 507 && !refused.text().contains("/data"), "{refused:?}");
    assert!(refused.text().contains("Delete jobs or endpoints"), "{refused:?}");
    for unknown in [jobs.as_str(), "nonsense"] {
        assert_eq!(as_key(&fixture, unknown, "PATCH /v1/endpoints/demo").await.status, 401);
    }
    let graphql = r#"{"query": "mutation { saveTemplate(input: {name: \"t\", imageName: \"i\"}) { id } }"}"#;
    let refused = fixture.ask("POST /graphql", graphql).await;
    assert!(refused.text().contains("/data is full"), "{refused:?}");

    // Reading, deleting and what stores nothing are served.
    assert_eq!(fixture.ask("GET /v1/endpoints/demo", "").await.status, 200);
    assert_eq!(fixture.ask("POST /v1/server/drain", "").await.status, 200);
    assert_eq!(fixture.ask("DELETE /v1/server/drain", "").await.status, 204);
    assert_eq!(fixture.ask("POST /v1/endpoints/demo/worker-token", "").await.status, 200);
    assert_eq!(fixture.ask("DELETE /v1/endpoints/demo", "").await.status, 204);
    fixture.engine.set_space_shortage(None).await;
    assert_eq!(fixture.ask("POST /v1/templates", r#"{"name":"later","imageName":"i"}"#).await.status, 200);
}

#[tokio::test]
async fn readiness_names_the_folder_only_to_keys_that_may_read() {
    let fixture = Fixture::start().await;
    let jobs = key(&fixture, json!({ "scope": "jobs" })).await;
    let read = key(&fixture, json!({ "scope": "read" })).await;
    fixture.engine.set_space_shortage(Some(SHORTAGE.to_owned())).await;
    for path in ["GET /readyz", "GET /readyz?verbose"] {
        for unknown in ["nonsense", &jobs] {
            let answer = as_key(&fixture, unknown, path).await;
            assert!(answer.status == 503 && answer.text().contains("disk is full"), "{answer:?}");
            assert!(!answer.text().contains("/data"), "{answer:?}");
        }
        let told = as_key(&fixture, &read, path).await;
        assert!(told.status == 503 && told.text().contains(SHORTAGE), "{told:?}");
    }
}
