//! `/v1/secrets`: what is stored and shown, and what keys that are limited to endpoints may do.

use longshore_model::{EndpointId, KeyScope, Millis};
use serde_json::{Value, json};

use super::direct::{Direct, Reply, request};
use crate::mint_key;

const HUSH: &str = "hush-7d1f";

async fn ask(server: &Direct, method: &str, path: &str, body: Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = server.ask(method, path, &body).await;
    assert!(!String::from_utf8_lossy(&reply.body).contains(HUSH), "{method} {path}: {reply:?}");
    reply
}

async fn ok(server: &Direct, method: &str, path: &str, body: Value) -> Value {
    let reply = ask(server, method, path, body).await;
    assert_eq!(reply.status, 200, "{method} {path}: {reply:?}");
    reply.json()
}

/// The status and the text of a refusal.
async fn refusal(server: &Direct, method: &str, path: &str, body: Value) -> (u16, String) {
    let reply = ask(server, method, path, body).await;
    reply.code();
    (reply.status.as_u16(), reply.json()["error"].as_str().unwrap().to_owned())
}

/// Makes a template that names secrets, and the endpoint `slug` use it. Returns the path of the template.
async fn use_in(server: &Direct, slug: &str, env: Value) -> String {
    let body = json!({ "name": format!("of {slug}"), "env": env });
    let template = ok(server, "POST", "/v1/templates", body).await["id"].clone();
    ok(server, "PATCH", &format!("/v1/endpoints/{slug}"), json!({ "templateId": template })).await;
    format!("/v1/templates/{}", template.as_str().unwrap())
}

async fn version(server: &Direct, slug: &str) -> u64 {
    ok(server, "GET", &format!("/v1/endpoints/{slug}"), Value::Null).await["version"].as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_secret_lives_from_create_to_delete_and_never_shows_its_value() {
    let server = Direct::start().await;
    let made = ok(&server, "POST", "/v1/secrets", json!({ "name": "HF_TOKEN", "value": HUSH })).await;
    let nothing = json!({ "templates": [], "endpoints": [] });
    assert_eq!(
        (&made["name"], &made["endpoints"], &made["usedBy"]),
        (&json!("HF_TOKEN"), &json!([]), &nothing)
    );
    assert_eq!(made["sealed"], false, "the server has no key");
    let at = "/v1/secrets/HF_TOKEN";
    assert_eq!(ok(&server, "GET", at, Value::Null).await, made);
    assert_eq!(ok(&server, "GET", "/v1/secrets", Value::Null).await, json!([made]));
    let (status, text) =
        refusal(&server, "POST", "/v1/secrets", json!({ "name": "HF_TOKEN", "value": HUSH })).await;
    assert!(status == 400 && text.contains("exists already"), "{text}");

    let before = (version(&server, "demo").await, version(&server, "other").await);
    let template = use_in(&server, "demo", json!({ "T": { "secret": "HF_TOKEN" }, "A": "text" })).await;
    let shown = ok(&server, "GET", &template, Value::Null).await;
    assert_eq!(shown["env"], json!({ "T": { "secret": "HF_TOKEN" }, "A": "***" }));
    let used = ok(&server, "GET", at, Value::Null).await["usedBy"].clone();
    assert_eq!((&used["templates"], &used["endpoints"]), (&json!([shown["id"]]), &json!([server.endpoint])));

    // A new value, and nothing else, makes new versions of the endpoints that use it.
    ok(&server, "PATCH", at, json!({ "value": HUSH, "endpoints": "*" })).await;
    assert_eq!(version(&server, "demo").await, before.0 + 1, "of the new template");
    let changed = ok(&server, "POST", &format!("{at}/update"), json!({ "value": "another" })).await;
    assert_eq!(changed["endpoints"], json!(["*"]));
    assert_eq!((version(&server, "demo").await, version(&server, "other").await), (before.0 + 2, before.1));

    let (status, text) = refusal(&server, "DELETE", at, Value::Null).await;
    let names_users = text.contains(shown["id"].as_str().unwrap()) && text.contains(server.endpoint.as_str());
    assert!(status == 400 && names_users, "{text}");
    ok(&server, "PATCH", &template, json!({ "env": { "A": "***" } })).await;
    assert_eq!(ask(&server, "DELETE", at, Value::Null).await.status, 204);
    assert_eq!(ask(&server, "GET", at, Value::Null).await.status, 404);
    assert_eq!(ask(&server, "PATCH", at, json!({ "value": "x" })).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_a_secret_is_refused_with_the_reason() {
    let server = Direct::start().await;
    let long = format!("{HUSH}{}", "é".repeat(32_768));
    for (body, expected) in [
        (json!({ "value": HUSH }), "`name` is required"),
        (json!({ "name": "A" }), "`value` is required"),
        (json!({ "name": "1A", "value": HUSH }), "^[A-Za-z][A-Za-z0-9_-]{0,63}$"),
        (json!({ "name": "A", "value": [HUSH] }), "`value` must be a string"),
        (json!({ "name": "A", "value": format!("{HUSH}\0") }), "without NUL"),
        (json!({ "name": "A", "value": long }), "`value` has 65545 bytes; it must have at most 65536"),
        (json!({ "name": "A", "valeu": HUSH }), "the nearest known field is `value`"),
        (json!({ "name": "A", "value": HUSH, "sealed": true }), "`sealed` is set by the server"),
        (json!({ "name": "A", "value": HUSH, "endpoints": ["missing"] }), "no endpoint has this id"),
    ] {
        let (status, text) = refusal(&server, "POST", "/v1/secrets", body).await;
        assert!(status == 400 && text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(ok(&server, "GET", "/v1/secrets", Value::Null).await, json!([]));
    ok(&server, "POST", "/v1/secrets", json!({ "name": "A", "value": "x".repeat(65_536) })).await;
    let (_, text) = refusal(&server, "PATCH", "/v1/secrets/A", json!({ "name": "B" })).await;
    assert!(text.contains("only be set when"), "{text}");
    let (status, _) = refusal(&server, "PATCH", "/v1/secrets/A", json!({ "value": long })).await;
    assert_eq!(status, 400);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_secret_is_refused_with_the_nearest_name_and_a_known_one_is_kept() {
    let server = Direct::start().await;
    ok(&server, "POST", "/v1/secrets", json!({ "name": "HF_TOKEN", "value": HUSH })).await;
    let env = json!({ "T": { "secret": "HF_TOKN" } });
    let expected = "`env.T` names secret `HF_TOKN`, which does not exist; the nearest name is `HF_TOKEN`";
    let template = json!({ "name": "n", "env": env, "dockerStartCmd": ["run"] });
    for (path, body) in
        [("/v1/templates", template.clone()), ("/v1/endpoints", json!({ "template": template }))]
    {
        let (status, text) = refusal(&server, "POST", path, body).await;
        assert!(status == 400 && text.contains(expected), "{text}");
    }
    let template = use_in(&server, "demo", json!({ "T": { "secret": "HF_TOKEN" } })).await;
    let (status, text) = refusal(&server, "PATCH", &template, json!({ "env": env })).await;
    assert!(status == 400 && text.contains(expected), "{text}");
    // What a client has read can be sent back, with the mask in place of either kind of value, too.
    let before = version(&server, "demo").await;
    for env in [json!({ "T": { "secret": "HF_TOKEN" } }), json!({ "T": "***" })] {
        let changed = ok(&server, "PATCH", &template, json!({ "env": env })).await;
        assert_eq!(changed["env"], json!({ "T": { "secret": "HF_TOKEN" } }));
    }
    assert_eq!(version(&server, "demo").await, before);
}

#[tokio::test(start_paused = true)]
async fn graphql_names_secrets_and_shows_their_names_beside_a_text() {
    let server = Direct::start().await;
    ok(&server, "POST", "/v1/secrets", json!({ "name": "HF_TOKEN", "value": HUSH })).await;
    let save = "mutation M($in: X!) { saveTemplate(input: $in) { id env { key value secret } } }";
    let env = json!([{ "key": "T", "value": { "secret": "HF_TOKEN" } }, { "key": "A", "value": "text" }]);
    let body = json!({ "query": save, "variables": { "in": { "name": "g", "env": env } } });
    let saved = ok(&server, "POST", "/graphql", body).await["data"]["saveTemplate"].clone();
    let shown = json!([
        { "key": "A", "value": "***", "secret": null },
        { "key": "T", "value": "***", "secret": "HF_TOKEN" },
    ]);
    assert_eq!(saved["env"], shown);
    // A client that knows texts alone sends back what it has read.
    let body = json!({ "query": save, "variables": { "in": { "id": saved["id"], "env": [
        { "key": "T", "value": "***" }, { "key": "A", "value": "***" },
    ] } } });
    assert_eq!(ok(&server, "POST", "/graphql", body).await["data"]["saveTemplate"]["env"], shown);
}

#[tokio::test(start_paused = true)]
async fn a_tag_changes_with_the_value_and_guards_changes() {
    let server = Direct::start().await;
    let made = server.ask("POST", "/v1/secrets", &json!({ "name": "A", "value": "1" }).to_string()).await;
    let tag = made.header("etag").unwrap().to_owned();
    let with = |method, tag: &str| {
        let mut sent = request(method, "/v1/secrets/A", Some(super::direct::ADMIN), r#"{"value":"2"}"#);
        sent.headers_mut().insert("if-match", tag.parse().unwrap());
        sent
    };
    let changed = server.send(with("PATCH", &tag)).await;
    assert_eq!(changed.status, 200);
    assert_eq!(server.send(with("PATCH", &tag)).await.status, 412);
    assert_eq!(server.send(with("DELETE", &tag)).await.status, 412);
    // The tag of a GET covers what uses the secret, too, and is good for a change.
    let read = async || server.ask("GET", "/v1/secrets/A", "").await.header("etag").unwrap().to_owned();
    let before = read().await;
    use_in(&server, "demo", json!({ "T": { "secret": "A" } })).await;
    let after = read().await;
    assert_ne!(before, after);
    assert_eq!(server.send(with("PATCH", &after)).await.status, 200);
}

/// A key with `manage` for these endpoints.
async fn limited(server: &Direct, endpoint_ids: Vec<EndpointId>) -> String {
    let minted = mint_key("limited", vec![KeyScope::Manage { endpoint_ids }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record).await.unwrap();
    minted.text
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_a_limited_key_is_its_endpoints_alone() {
    let server = Direct::start().await;
    let here = limited(&server, vec![server.endpoint]).await;
    let there = limited(&server, vec![server.other]).await;
    let send = async |key: &str, method: &str, path: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(request(method, path, Some(key), body)).await
    };
    // Only endpoints of its own can share it.
    for endpoints in
        [json!("*"), json!(["*"]), json!([]), json!(["other"]), json!(["demo", "other"]), json!(["no"])]
    {
        let body = json!({ "name": "MINE", "value": HUSH, "endpoints": endpoints });
        assert_eq!(send(&here, "POST", "/v1/secrets", body).await.status, 401, "{endpoints}");
    }
    let made = send(&here, "POST", "/v1/secrets", json!({ "name": "MINE", "value": HUSH })).await;
    assert_eq!((made.status.as_u16(), &made.json()["endpoints"]), (200, &json!([server.endpoint])));
    let body = json!({ "name": "MINE-2", "value": HUSH, "endpoints": ["demo"] });
    assert_eq!(send(&here, "POST", "/v1/secrets", body).await.json()["endpoints"], json!([server.endpoint]));

    let at = "/v1/secrets/MINE";
    assert_eq!(send(&here, "GET", at, Value::Null).await.status, 200);
    assert_eq!(send(&here, "PATCH", at, json!({ "value": "new" })).await.status, 200);
    assert_eq!(send(&here, "PATCH", at, json!({ "endpoints": ["demo"] })).await.status, 401);
    for (method, body) in
        [("GET", Value::Null), ("PATCH", json!({ "value": "theirs" })), ("DELETE", Value::Null)]
    {
        for path in [at, "/v1/secrets/NOSUCH", "/v1/secrets/no%20name"] {
            let reply = send(&there, method, path, body.clone()).await;
            assert_eq!(
                (reply.status.as_u16(), reply.code().as_str()),
                (401, "unauthorized"),
                "{method} {path}"
            );
        }
    }
    assert_eq!(send(&there, "GET", "/v1/secrets", Value::Null).await.json(), json!([]));

    // Its endpoint uses it, and the key may still change it.
    let template = use_in(&server, "demo", json!({ "T": { "secret": "MINE" } })).await;
    let shown = send(&here, "GET", at, Value::Null).await.json();
    assert_eq!(shown["usedBy"]["endpoints"], json!([server.endpoint]));
    assert_eq!(send(&here, "PATCH", at, json!({ "value": "newer" })).await.status, 200);
    assert_eq!(send(&here, "DELETE", at, Value::Null).await.status, 400, "it is in use");
    // From the moment on that another owner's endpoint uses the template, it is not.
    let body = json!({ "templateId": template.rsplit('/').next() });
    ok(&server, "PATCH", "/v1/endpoints/other", body).await;
    assert_eq!(send(&here, "PATCH", at, json!({ "value": "newest" })).await.status, 401);
    assert_eq!(send(&here, "DELETE", at, Value::Null).await.status, 401);
    let shown = send(&here, "GET", at, Value::Null).await.json();
    assert_eq!(shown["usedBy"]["endpoints"], json!([server.endpoint]), "others are not shown");
    assert_eq!(send(&here, "DELETE", "/v1/secrets/MINE-2", Value::Null).await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn a_limited_key_reads_the_secrets_that_it_may_name_and_changes_none_of_others() {
    let server = Direct::start().await;
    for (name, endpoints) in [
        ("USED", json!([])),
        ("SHARED", json!(["demo"])),
        ("BOTH", json!(["demo", "other"])),
        ("EVERY", json!("*")),
        ("FOREIGN", json!(["other"])),
        ("SPARE", json!([])),
    ] {
        let body = json!({ "name": name, "value": HUSH, "endpoints": endpoints });
        ok(&server, "POST", "/v1/secrets", body).await;
    }
    use_in(&server, "demo", json!({ "T": { "secret": "USED" } })).await;
    use_in(&server, "other", json!({ "T": { "secret": "FOREIGN" } })).await;
    let here = limited(&server, vec![server.endpoint]).await;
    let send = async |method: &str, path: &str, body: &str| {
        server.send(request(method, path, Some(&here), body.to_owned())).await
    };
    let listed = send("GET", "/v1/secrets", "").await.json();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["BOTH", "EVERY", "SHARED", "USED"]);
    assert_eq!(listed[0]["endpoints"], json!([server.endpoint]), "others are not shown");
    for (name, read, changed) in [
        ("USED", 200, 401),
        ("SHARED", 200, 200),
        ("BOTH", 200, 401),
        ("EVERY", 200, 401),
        ("FOREIGN", 401, 401),
        ("SPARE", 401, 401),
        ("MISSING", 401, 401),
    ] {
        let at = format!("/v1/secrets/{name}");
        assert_eq!(send("GET", &at, "").await.status, read, "{name}");
        assert_eq!(send("PATCH", &at, r#"{"value":"x"}"#).await.status, changed, "{name}");
        assert_eq!(send("DELETE", &at, "").await.status, if changed == 200 { 204 } else { 401 }, "{name}");
    }
}
