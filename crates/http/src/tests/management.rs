//! The management API over a socket.

use serde_json::{Value, json};

use super::direct::{Direct, request};
use super::fixture::with_key;
use super::server::Server;
use super::wire::DEADLINE;

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

async fn refusal(server: &Server, line: &str, body: Value) -> (u16, String) {
    let answer = server.manage(line, &body).await;
    answer.code();
    (answer.status, answer.json()["error"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_template_lives_from_create_to_delete() {
    let server = Server::start().await;
    let body = json!({ "name": "one", "imageName": "image:1", "env": { "TOKEN": "hush" }, "dockerStartCmd": ["run"] });
    let answer = server.manage("POST /v1/templates", &body).await;
    assert_eq!(answer.status, 200);
    let made = answer.json();
    assert_eq!((&made["env"], &made["volumeInGb"]), (&json!({ "TOKEN": "***" }), &json!(20)));
    assert!(made["createdAt"].as_str().unwrap().ends_with('Z'));
    let at = format!("/v1/templates/{}", id(&made));
    assert_eq!(server.manage(&format!("GET {at}"), &Value::Null).await.json(), made);
    let list = server.manage("GET /v1/templates", &Value::Null).await.json();
    assert!(list.as_array().unwrap().contains(&made));
    let changed = server.manage(&format!("PATCH {at}"), &json!({ "readme": "r" })).await.json();
    assert_eq!((&changed["readme"], &changed["imageName"]), (&json!("r"), &json!("image:1")));
    let changed = server.manage(&format!("POST {at}/update"), &json!({ "readme": "s" })).await.json();
    assert_eq!(changed["readme"], "s");
    let answer = server.manage(&format!("DELETE {at}"), &Value::Null).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(server.manage(&format!("GET {at}"), &Value::Null).await.status, 404);
    assert_eq!(server.manage(&format!("DELETE {at}"), &Value::Null).await.status, 404);
}

#[tokio::test]
async fn an_endpoint_lives_from_create_to_delete() {
    let server = Server::start().await;
    let body = json!({ "name": "t2", "dockerStartCmd": ["run"], "env": { "A": "hush" } });
    let template = server.manage("POST /v1/templates", &body).await.json();
    let body = json!({ "name": "e", "slug": "my-e", "templateId": id(&template), "workersMax": 0 });
    let made = server.manage("POST /v1/endpoints", &body).await.json();
    assert_eq!(
        (&made["provider"], &made["idleTimeout"], &made["version"]),
        (&json!("process"), &json!(5), &json!(1))
    );
    assert_eq!((&made["env"], &made["userId"]), (&json!({ "A": "***" }), &json!("admin")));
    assert!(
        made.get("no").is_none() && made.get("deleting").is_none() && made.get("minCudaVersion").is_none()
    );
    let at = format!("/v1/endpoints/{}", id(&made));
    assert_eq!(server.manage(&format!("GET {at}"), &Value::Null).await.json(), made);
    assert_eq!(server.manage("GET /v1/endpoints/my-e", &Value::Null).await.json(), made);
    let full =
        server.manage(&format!("GET {at}?includeTemplate=true&includeWorkers=true&x=1"), &Value::Null).await;
    let full = full.json();
    assert_eq!((&full["template"], &full["workers"]), (&template, &json!([])));
    let changed =
        server.manage(&format!("PATCH {at}"), &json!({ "idleTimeout": 60, "slug": null })).await.json();
    assert_eq!(
        (&changed["idleTimeout"], changed.get("slug"), &changed["name"]),
        (&json!(60), None, &json!("e"))
    );
    let answer = server.manage(&format!("DELETE /v1/templates/{}", id(&template)), &Value::Null).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains(&id(&made)) || answer.text().contains("`e`"), "{}", answer.text());
    assert_eq!(server.manage(&format!("DELETE {at}?drain=true"), &Value::Null).await.status, 204);
    assert_eq!(server.manage(&format!("GET {at}"), &Value::Null).await.status, 404);
    assert_eq!(server.manage("GET /v1/endpoints", &Value::Null).await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_grace_of_stopped_jobs_is_shown_with_what_holds_for_the_endpoint() {
    let server = Server::start().await;
    let at = format!("/v1/endpoints/{}", server.endpoint);
    let shown =
        async || server.manage(&format!("GET {at}"), &Value::Null).await.json()["stopGraceMs"].clone();
    assert_eq!(shown().await, 10_000, "the server's");
    for (sent, seen) in
        [(json!(0), json!(0)), (json!(3_600_000), json!(3_600_000)), (Value::Null, json!(10_000))]
    {
        let changed = server.manage(&format!("PATCH {at}"), &json!({ "stopGraceMs": sent })).await.json();
        assert_eq!((&changed["stopGraceMs"], shown().await), (&seen, seen.clone()));
    }
    for sent in [json!(-1), json!(3_600_001), json!(1.5), json!("1s")] {
        let (status, text) = refusal(&server, &format!("PATCH {at}"), json!({ "stopGraceMs": sent })).await;
        assert!(status == 400 && text.contains("`stopGraceMs`"), "{text}");
    }
}

#[tokio::test]
async fn limits_of_workers_are_set_for_an_endpoint_shown_and_unset() {
    let server = Server::start().await;
    let at = format!("/v1/endpoints/{}", server.endpoint);
    let shown = async || {
        let endpoint = server.manage(&format!("GET {at}"), &Value::Null).await.json();
        (endpoint["memoryBytes"].clone(), endpoint["vcpus"].clone())
    };
    assert_eq!(shown().await, (Value::Null, Value::Null));
    let limits = json!({ "memoryBytes": 16_777_216, "vcpus": 0.1 });
    assert_eq!(
        server.manage(&format!("PATCH {at}"), &limits).await.json()["version"],
        1,
        "no worker is replaced"
    );
    assert_eq!(shown().await, (json!(16_777_216), json!(0.1)));
    for (field, values) in [
        ("memoryBytes", [json!(16_777_215), json!(-1), json!(2e9), json!("2 GiB"), json!(u64::MAX)]),
        ("vcpus", [json!(0.09), json!(0), json!(-1), json!("1"), json!(5_000)]),
    ] {
        for sent in values {
            let (status, text) = refusal(&server, &format!("PATCH {at}"), json!({ field: sent })).await;
            assert!(status == 400 && text.contains(&format!("`{field}` is ")), "{text}");
        }
    }
    assert_eq!(shown().await, (json!(16_777_216), json!(0.1)), "refused requests change nothing");
    let whole = json!({ "memoryBytes": null, "vcpus": 2 });
    server.manage(&format!("PATCH {at}"), &whole).await;
    let (memory, vcpus) = shown().await;
    assert_eq!((memory, vcpus.as_f64()), (Value::Null, Some(2.0)));
}

#[tokio::test]
async fn the_shape_of_streams_is_set_for_an_endpoint_and_shown() {
    let server = Server::start().await;
    let at = format!("/v1/endpoints/{}", server.endpoint);
    let shown =
        async || server.manage(&format!("GET {at}"), &Value::Null).await.json()["streamShape"].clone();
    assert_eq!(shown().await, "array", "the server's");
    for (sent, seen) in [(json!("object"), "object"), (json!("array"), "array"), (Value::Null, "array")] {
        let changed = server.manage(&format!("PATCH {at}"), &json!({ "streamShape": sent })).await.json();
        assert_eq!((&changed["streamShape"], shown().await), (&json!(seen), json!(seen)));
    }
    for sent in [json!("Object"), json!(1), json!("")] {
        let (status, text) = refusal(&server, &format!("PATCH {at}"), json!({ "streamShape": sent })).await;
        assert!(status == 400 && text.contains("`streamShape`"), "{text}");
    }
}

#[tokio::test]
async fn a_draining_deletion_goes_on_when_its_client_disconnects() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    let mut wire = server.served().connect().await;
    let head = format!("DELETE /v1/endpoints/{}?drain=true", server.endpoint);
    wire.send(&with_key(&head), None).await;
    // The response to this request shows that the server has read the previous one.
    assert_eq!(server.record(&job).await["status"], "IN_PROGRESS");
    drop(wire);
    server.report(&format!("job-done/w1/{job}"), "{}").await;
    let gone = async {
        let line = format!("GET /v1/endpoints/{}", server.endpoint);
        while server.manage(&line, &Value::Null).await.status != 404 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, gone).await.unwrap();
}

#[tokio::test]
async fn refusals_name_the_field_and_change_nothing() {
    let server = Server::start().await;
    let count =
        async || server.manage("GET /v1/templates", &Value::Null).await.json().as_array().unwrap().len();
    let before = count().await;
    let inline = json!({ "name": "in" });
    for (body, part) in [
        (json!({}), "`templateId` is required"),
        (json!({ "templateId": "none" }), "no template has this id"),
        (json!({ "templateId": "x", "template": inline }), "not both"),
        (json!({ "template": inline, "workers_max": 1 }), "nearest known field is `workersMax`"),
        (
            json!({ "template": { "nam": "x" } }),
            "`template.nam` is not a field; the nearest known field is `name`",
        ),
        (json!({ "template": { "name": "in", "env": { "1A": "hush" } } }), "`template.env` has the name"),
        (json!({ "template": inline, "workersMin": 9 }), "`workersMin` is 9 and `workersMax` is 3"),
        (json!({ "template": inline, "slug": "demo" }), "demo"),
        (json!({ "template": inline, "slug": "no slug" }), "of the form ^[A-Za-z0-9]"),
        (json!({ "template": inline, "idleTimeout": 3_601 }), "from 1 to 3600"),
        (json!({ "template": inline, "startPatienceMs": 9_999 }), "from 10000 to 86400000"),
        (json!({ "template": inline, "startPatienceMs": 86_400_001 }), "from 10000 to 86400000"),
        (
            json!({ "template": inline, "provider": "process" }),
            "this server starts no processes; use `external`",
        ),
        (
            json!({ "template": inline, "provider": "docker" }),
            "`provider` is \"docker\", and this server starts no containers, because it has found no Docker daemon; \
             name its unix socket as `socket` in [docker] of the settings, or in DOCKER_HOST; use `external`",
        ),
        (json!({ "template": inline, "provider": "kubernetes" }), "this server starts no containers"),
        (json!({ "template": inline, "id": "x" }), "`id` is set by the server"),
    ] {
        let (status, text) = refusal(&server, "POST /v1/endpoints", body).await;
        assert!(status == 400 && text.contains(part), "{status} {text}");
    }
    assert_eq!(count().await, before);
    let at = format!("PATCH /v1/endpoints/{}", server.endpoint);
    let (status, text) = refusal(&server, &at, json!({ "workersMin": 5 })).await;
    assert!(status == 400 && text.contains("must not be larger"), "{text}");
    let (status, text) = refusal(&server, &at, json!({ "provider": "docker" })).await;
    assert!(status == 400 && text.contains("this server starts no containers"), "{text}");
    let (status, text) = refusal(&server, &at, json!({ "template": {} })).await;
    assert!(status == 400 && text.contains("only be set when"), "{text}");
    assert_eq!(refusal(&server, "PATCH /v1/endpoints/none", json!({})).await.0, 404);
    assert_eq!(refusal(&server, "GET /v1/templates/none", Value::Null).await.0, 404);
}

#[tokio::test]
async fn keys_open_what_their_scopes_say() {
    use longshore_model::{KeyScope, Millis};
    let server = Server::start().await;
    let endpoint = server.endpoint.parse().unwrap();
    let keys = [
        ("reads", KeyScope::Read { endpoint_ids: vec![] }, [200, 200, 401]),
        ("reads-one", KeyScope::Read { endpoint_ids: vec![endpoint] }, [200, 200, 401]),
        ("jobs", KeyScope::Jobs { endpoint_ids: vec![] }, [401, 401, 401]),
        ("manages", KeyScope::manage_all(), [200, 200, 200]),
    ];
    for (text, scope, expected) in keys {
        let mut key = crate::admin_key(text, Millis(0));
        (key.id, key.scopes) = (text.to_owned(), vec![scope]);
        server.fixture.engine.keys().put(key).await.unwrap();
        let at = format!("/v1/endpoints/{}", server.endpoint);
        let lines = ["GET /v1/endpoints".to_owned(), format!("GET {at}"), format!("PATCH {at}")];
        for (line, expected) in lines.iter().zip(expected) {
            let answer = server.served().ask(&format!("{line}\nauthorization: {text}"), b"{}").await;
            assert_eq!(answer.status, expected, "{text} {line}");
        }
    }
    assert_eq!(server.served().ask("GET /v1/endpoints", b"").await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_limited_key_lists_its_endpoints_alone() {
    use longshore_model::{KeyScope, Millis};
    let server = Direct::start().await;
    let mut key = crate::admin_key("one", Millis(0));
    (key.id, key.scopes) = ("one".to_owned(), vec![KeyScope::Read { endpoint_ids: vec![server.other] }]);
    server.engine.keys().put(key).await.unwrap();
    let listed =
        server.send(request("GET", "/v1/endpoints?includeTemplate=true", Some("Bearer one"), "")).await;
    let listed = listed.json();
    let ids: Vec<_> = listed.as_array().unwrap().iter().map(|endpoint| endpoint["id"].clone()).collect();
    assert_eq!(ids, [json!(server.other)]);
    assert_eq!(listed[0]["template"]["name"], json!("t"));
}

#[tokio::test]
async fn a_worker_token_comes_with_the_environment_to_use_it() {
    let server = Server::start().await;
    let line = format!("POST /v1/endpoints/{}/worker-token", server.endpoint);
    let first = server.manage(&line, &Value::Null).await.json();
    let second = server.manage(&line, &Value::Null).await.json();
    assert_eq!(first["token"], second["token"]);
    assert_ne!(first["env"]["RUNPOD_POD_ID"], second["env"]["RUNPOD_POD_ID"]);
    let address = first["env"]["RUNPOD_WEBHOOK_GET_JOB"].as_str().unwrap();
    assert_eq!(address, format!("http://test/v2/{}/job-take/$ID?gpu=gpu", server.endpoint));
}

#[tokio::test]
async fn the_document_needs_no_key() {
    let server = Server::start().await;
    let document = server.served().ask("GET /v1/openapi.json", b"").await.json();
    assert_eq!((&document["openapi"], &document["info"]["version"]), (&json!("3.0.3"), &json!("0.1.0")));
}

#[tokio::test]
async fn metrics_count_jobs_requests_and_commits() {
    let server = Server::start().await;
    let job = server.running("w1").await;
    server.report(&format!("job-done/w1/{job}"), r#"{"output": 1}"#).await;
    let page = server.fixture.ask("GET /metrics", "").await;
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = page.text();
    let endpoint = &server.endpoint;
    for line in [
        format!(r#"longshore_endpoint_info{{endpoint="{endpoint}",name="d",slug="demo"}} 1"#),
        format!(r#"longshore_jobs{{endpoint="{endpoint}",state="queued"}} 0"#),
        format!(r#"longshore_queue_oldest_age_seconds{{endpoint="{endpoint}"}} 0"#),
        format!(r#"longshore_jobs_submitted_total{{endpoint="{endpoint}",mode="async"}} 1"#),
        format!(r#"longshore_jobs_finished_total{{endpoint="{endpoint}",state="completed"}} 1"#),
        format!(r#"longshore_jobs_finished_total{{endpoint="{endpoint}",state="timed_out"}} 0"#),
        format!(r#"longshore_job_retries_total{{endpoint="{endpoint}",reason="worker_lost"}} 0"#),
        format!(r#"longshore_jobs_total{{endpoint="{endpoint}",event="completed"}} 1"#),
        format!(r#"longshore_workers{{endpoint="{endpoint}",condition="idle"}} 1"#),
        format!(r#"longshore_job_delay_seconds_count{{endpoint="{endpoint}"}} 1"#),
        format!(r#"longshore_job_execution_seconds_count{{endpoint="{endpoint}"}} 1"#),
        r#"longshore_http_requests_total{route="/v2/{endpoint}/run",method="POST",status="200"} 1"#
            .to_owned(),
        "longshore_commits_failed_total 0".to_owned(),
        "longshore_invariants_broken_total 0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    let commits = text.lines().find_map(|line| line.strip_prefix("longshore_commit_seconds_count "));
    assert!(commits.unwrap().parse::<u64>().unwrap() >= 3, "{text}");
}
