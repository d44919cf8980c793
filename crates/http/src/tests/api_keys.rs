//! API keys, managed through the management API.

use serde_json::json;

use super::direct::{ADMIN, Direct, request};

async fn status(server: &Direct, key: &str, method: &str, path: &str) -> u16 {
    server.send(request(method, path, Some(key), r#"{"input":{}}"#)).await.status.as_u16()
}

async fn made(server: &Direct, body: &str) -> (String, String) {
    let answer = server.ask("POST", "/v1/apikeys", body).await.json();
    (answer["id"].as_str().unwrap().to_owned(), answer["key"].as_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_keys_text_is_shown_once() {
    let server = Direct::start().await;
    let body = r#"{"name":"site","scopes":[{"scope":"jobs","endpointIds":["demo"]}],"rateLimit":9,
                   "expiresAt":"2100-01-31T12:00:00+02:00"}"#;
    let mut answer = server.ask("POST", "/v1/apikeys", body).await.json();
    let (id, text) = (answer["id"].as_str().unwrap().to_owned(), answer["key"].as_str().unwrap().to_owned());
    assert_eq!(text.split('_').map(str::len).collect::<Vec<_>>(), [2, 16, 64]);
    assert!(text.starts_with(answer["prefix"].as_str().unwrap()) && text.contains(&id));
    let read = server.ask("GET", &format!("/v1/apikeys/{id}"), "").await.json();
    let expected = json!({
        "id": id, "name": "site", "owner": "server", "prefix": format!("ls_{id}_"), "disabled": false, "rateLimit": 9,
        "scopes": [{ "scope": "jobs", "endpointIds": [server.endpoint] }],
        "createdAt": "2023-11-14T22:13:20.000Z", "expiresAt": "2100-01-31T10:00:00.000Z",
    });
    assert_eq!(read, expected);
    assert_eq!(answer.as_object_mut().unwrap().remove("key").unwrap(), json!(text));
    assert_eq!(answer, expected);
    let list = server.ask("GET", "/v1/apikeys", "").await;
    let secret = text.rsplit('_').next().unwrap();
    let list = String::from_utf8(list.body.to_vec()).unwrap();
    assert!(!list.contains(secret) && !list.contains("hash\":") && list.contains(&id), "{list}");
    assert_eq!(status(&server, &text, "POST", "/v2/demo/run").await, 200);
    let read = server.ask("GET", &format!("/v1/apikeys/{id}"), "").await.json();
    assert_eq!(read["lastUsedAt"], "2023-11-14T22:13:20.000Z");
}

#[tokio::test(start_paused = true)]
async fn a_change_or_an_end_counts_from_the_answer_on() {
    let server = Direct::start().await;
    let (id, key) = made(&server, r#"{"name":"k","scopes":[{"scope":"jobs"}]}"#).await;
    let path = format!("/v1/apikeys/{id}");
    for (method, path, body, after) in [
        ("PATCH", path.clone(), r#"{"disabled":true}"#, 401),
        ("POST", format!("{path}/update"), r#"{"disabled":false,"name":"l"}"#, 200),
        ("PATCH", path.clone(), r#"{"expiresAt":"2030-01-01T00:00:00Z","rateLimit":100}"#, 200),
        ("PATCH", path.clone(), r#"{"expiresAt":null,"rateLimit":null}"#, 200),
        ("DELETE", path.clone(), "", 401),
    ] {
        let answer = server.ask(method, &path, body).await;
        assert!(answer.status.is_success(), "{answer:?}");
        assert_eq!(status(&server, &key, "POST", "/v2/demo/run").await, after, "{method} {body}");
    }
    assert_eq!(server.ask("DELETE", &path, "").await.code(), "key_not_found");
}

#[tokio::test(start_paused = true)]
async fn a_key_over_its_rate_is_told_when_to_come_again() {
    let server = Direct::start().await;
    let scopes = r#"[{"scope":"jobs"},{"scope":"read"}]"#;
    let (_, key) = made(&server, &format!(r#"{{"name":"k","rateLimit":3,"scopes":{scopes}}}"#)).await;
    for (method, path) in
        [("POST", "/v2/demo/run"), ("GET", "/v1/endpoints/demo"), ("GET", "/v2/demo/health")]
    {
        assert_eq!(status(&server, &key, method, path).await, 200);
    }
    for (method, path) in [("POST", "/v2/demo/run"), ("GET", "/v1/endpoints"), ("GET", "/v1/nowhere")] {
        let answer = server.send(request(method, path, Some(&key), "")).await;
        if path == "/v1/nowhere" {
            // The refusal reveals only that the key is valid.
            assert_eq!(answer.status, 401);
            continue;
        }
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (429, "rate_limited"), "{path}");
        assert_eq!(answer.header("ratelimit-policy"), Some("\"key\";q=3;w=10"));
        assert!(answer.header("retry-after").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_fields_of_a_key_are_refused_by_name() {
    let server = Direct::start().await;
    for (body, part) in [
        (r#"{"scopes":[{"scope":"jobs"}]}"#, "`name` is required"),
        (r#"{"name":" ","scopes":[{"scope":"jobs"}]}"#, "`name` must not be empty"),
        (r#"{"name":"k"}"#, "`scopes` is required"),
        (r#"{"name":"k","scopes":[]}"#, "`scopes` is required"),
        (r#"{"name":"k","scopes":["jobs"]}"#, "`scopes[0]` must be an object"),
        (r#"{"name":"k","scopes":[{"scope":"job"}]}"#, "`scopes[0].scope` is \"job\"; it must be one of"),
        (r#"{"name":"k","scopes":[{"scope":"jobs"},{}]}"#, "`scopes[1].scope` is required"),
        (r#"{"name":"k","scopes":[{"scope":"jobs","endpointIds":[]}]}"#, "which would permit nothing"),
        (r#"{"name":"k","scopes":[{"scope":"jobs","endpointIds":["*","demo"]}]}"#, "beside other names"),
        (
            r#"{"name":"k","scopes":[{"scope":"jobs","endpointIds":["dmeo"]}]}"#,
            "no endpoint has this id or slug",
        ),
        (
            r#"{"name":"k","scopes":[{"scope":"jobs","endpoints":[]}]}"#,
            "the nearest known field is `endpointIds`",
        ),
        (
            r#"{"name":"k","scopes":[{"scope":"jobs"}],"expiresAt":"2020-01-01T00:00:00Z"}"#,
            "`expiresAt` is in the past",
        ),
        (r#"{"name":"k","scopes":[{"scope":"jobs"}],"expiresAt":1}"#, "it must be a moment"),
        (r#"{"name":"k","scopes":[{"scope":"jobs"}],"rateLimit":0}"#, "an integer from 1"),
        (r#"{"name":"k","scopes":[{"scope":"jobs"}],"hash":"x"}"#, "`hash` is not a field"),
    ] {
        let answer = server.ask("POST", "/v1/apikeys", body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.json()["error"].as_str().unwrap().contains(part), "{answer:?}");
    }
    let change = server.ask("PATCH", "/v1/apikeys/admin", r#"{"scopes":[]}"#).await.json();
    assert!(change["error"].as_str().unwrap().contains("only be set when the resource is created"));
}

#[tokio::test(start_paused = true)]
async fn the_last_key_that_may_manage_all_stays() {
    let server = Direct::start().await;
    for (method, body) in [("DELETE", ""), ("PATCH", r#"{"disabled":true}"#)] {
        let answer = server.ask(method, "/v1/apikeys/admin", body).await;
        assert_eq!(answer.status, 400);
        assert!(
            answer.json()["error"].as_str().unwrap().contains("make another such key first"),
            "{answer:?}"
        );
    }
    let (_, key) = made(&server, r#"{"name":"k","scopes":[{"scope":"manage"}]}"#).await;
    assert_eq!(server.send(request("DELETE", "/v1/apikeys/admin", Some(&key), "")).await.status, 204);
    assert_eq!(status(&server, ADMIN, "GET", "/v1/apikeys").await, 401);
    assert_eq!(status(&server, &key, "GET", "/v1/apikeys").await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_key_has_an_owner_and_its_jobs_carry_both() {
    let server = Direct::start().await;
    let key = |name: &str| {
        format!(r#"{{"name":"{name}","scopes":[{{"scope":"jobs"}},{{"scope":"read"}}],"owner":"acme"}}"#)
    };
    let (id, text) = made(&server, &key("one")).await;
    let path = format!("/v1/apikeys/{id}");
    assert_eq!(server.ask("GET", &path, "").await.json()["owner"], "acme");
    let submitted = async |text: &str| {
        assert_eq!(status(&server, text, "POST", "/v2/demo/run").await, 200);
        let newest = server.ask("GET", "/v2/demo/requests?limit=1", "").await.json()["requests"][0].clone();
        (newest["owner"].clone(), newest["key"].clone())
    };
    assert_eq!(submitted(&text).await, (json!("acme"), json!(id)));
    assert_eq!(submitted(ADMIN).await, (json!("server"), json!("admin")));
    for owner in ["beta-1_x", "server", "acme"] {
        let answer = server.ask("PATCH", &path, &json!({ "owner": owner }).to_string()).await;
        assert_eq!((answer.status.as_u16(), answer.json()["owner"].clone()), (200, json!(owner)));
        assert_eq!(submitted(&text).await, (json!(owner), json!(id)));
    }
    // Jobs that were submitted before stay with the owner of that time.
    let all = server.ask("GET", "/v2/demo/requests", "").await.json();
    let owners: Vec<_> =
        all["requests"].as_array().unwrap().iter().map(|job| job["owner"].as_str().unwrap()).collect();
    assert_eq!(owners, ["acme", "server", "beta-1_x", "server", "acme"]);
}

#[tokio::test(start_paused = true)]
async fn an_owners_name_has_a_form_and_only_who_manages_everything_gives_it() {
    let server = Direct::start().await;
    let body =
        |owner: &str| json!({ "name": "k", "scopes": [{ "scope": "jobs" }], "owner": owner }).to_string();
    for bad in ["", "-a", "Acme", "a b", "a.b", &"a".repeat(64)] {
        let answer = server.ask("POST", "/v1/apikeys", &body(bad)).await;
        assert_eq!(answer.status.as_u16(), 400, "{bad:?}");
        assert!(String::from_utf8_lossy(&answer.body).contains("owner"), "{bad:?}");
    }
    assert_eq!(server.ask("POST", "/v1/apikeys", &body(&"a".repeat(63))).await.status.as_u16(), 200);
    let scopes = r#"{"name":"m","scopes":[{"scope":"manage","endpointIds":["demo"]}]}"#;
    let (id, limited) = made(&server, scopes).await;
    for (method, path) in [("POST", "/v1/apikeys".to_owned()), ("PATCH", format!("/v1/apikeys/{id}"))] {
        let answer = server.send(request(method, &path, Some(&limited), r#"{"owner":"acme"}"#)).await;
        assert_eq!(answer.status.as_u16(), 401, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_is_one_api_keys_at_one_endpoint() {
    let server = Direct::start().await;
    let (_, one) = made(&server, r#"{"name":"one","scopes":[{"scope":"jobs"}]}"#).await;
    let (_, two) = made(&server, r#"{"name":"two","scopes":[{"scope":"jobs"}]}"#).await;
    let submit = async |key: &str, body: &'static str| {
        let mut request = request("POST", "/v2/demo/run", Some(key), body);
        request.headers_mut().insert("idempotency-key", "same".parse().unwrap());
        let answer = server.send(request).await;
        (answer.status.as_u16(), answer.json()["id"].as_str().map(str::to_owned))
    };
    let (first, second) = (submit(&one, r#"{"input":{}}"#).await, submit(&two, r#"{"input":{"a":1}}"#).await);
    assert_eq!((first.0, second.0), (200, 200));
    assert_ne!(first.1, second.1);
    assert_eq!(submit(&one, r#"{"input":{}}"#).await, first);
    assert_eq!(submit(&two, r#"{"input":{"a":1}}"#).await, second);
    assert_eq!(submit(&two, r#"{"input":{}}"#).await.0, 409);
    let third = submit(ADMIN, r#"{"input":{}}"#).await;
    assert!(third.0 == 200 && third.1 != first.1 && third.1 != second.1);
}
