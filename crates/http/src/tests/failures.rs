//! The groups of failed jobs.

use std::sync::Arc;

use longshore_history::History;
use longshore_model::Millis;
use serde_json::{Value, json};

use super::fixture::{Fixture, worker};
use crate::HttpSettings;

async fn server(members: &str) -> (Fixture, Arc<History>) {
    let history = Arc::new(History::in_memory(Millis(0)));
    let settings = HttpSettings { history: Some(Arc::clone(&history)), ..HttpSettings::default() };
    (Fixture::with(&settings, members).await, history)
}

async fn groups(server: &Fixture) -> Vec<Value> {
    let answer = server.ask("GET /v1/endpoints/demo/failures", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json().as_array().unwrap().clone()
}

async fn fail(server: &Fixture, error: &str) {
    let job = server.running().await;
    server.fail(job, error).await;
}

#[tokio::test]
async fn jobs_that_fail_for_one_reason_are_one_group() {
    let (server, _) = server("").await;
    assert_eq!(groups(&server).await, [] as [Value; 0]);
    for customer in [17, 4711] {
        let trace =
            "Traceback (most recent call last):\\n  File \\\"/x/handler.py\\\", line 3, in handler\\n";
        fail(&server, &format!(r#"{{"error_type": "<class 'KeyError'>", "error_message": "no customer {customer}", "error_traceback": "{trace}"}}"#)).await;
    }
    let lost = server.running().await;
    server.endpoint.workers().lose(worker(), true, "w-1 was switched off".to_owned()).await.unwrap();
    // Two retries follow.
    for _ in 0..2 {
        assert_eq!(server.take().await.row.id, lost);
        server.endpoint.workers().lose(worker(), true, "w-1 was switched off".to_owned()).await.unwrap();
    }
    let groups = groups(&server).await;
    assert_eq!(groups.len(), 2, "{groups:?}");
    let raised = &groups[0];
    assert_eq!((&raised["kind"], &raised["type"]), (&json!("handler"), &json!("KeyError")));
    assert_eq!((&raised["message"], &raised["place"]), (&json!("no customer #"), &json!("handler.py:3")));
    assert_eq!((&raised["count"], &raised["sinceVersion"]), (&json!(2), &json!(1)));
    let hours = raised["perHour"].as_array().unwrap();
    assert_eq!(hours.iter().filter_map(Value::as_u64).sum::<u64>(), 2);
    assert_eq!(hours.len(), 7 * 24 + 1);
    let gone = &groups[1];
    assert_eq!((&gone["kind"], &gone["job"]), (&json!("workerLost"), &json!(lost)));
    assert!(gone["message"].as_str().unwrap().ends_with("# was switched off"), "{gone}");
}

#[tokio::test]
async fn a_group_says_how_many_failed_in_the_present_version() {
    let (server, _) = server("").await;
    let told = async || {
        let groups = groups(&server).await;
        let numbers = ["count", "sinceVersion", "presentVersion", "presentVersionCount"];
        groups.iter().map(|group| numbers.map(|name| group[name].as_u64())).collect::<Vec<_>>()
    };
    fail(&server, "out of memory").await;
    fail(&server, "out of memory").await;
    assert_eq!(told().await, [[2, 1, 1, 2].map(Some)]);
    let template = server.ask("POST /v1/templates", r#"{"name":"next","imageName":"i"}"#).await.json();
    let change = json!({ "templateId": template["id"] }).to_string();
    assert_eq!(server.ask("PATCH /v1/endpoints/demo", &change).await.json()["version"], 2);
    assert_eq!(told().await, [[2, 1, 2, 0].map(Some)]);
    fail(&server, "out of memory").await;
    fail(&server, "no such file").await;
    assert_eq!(told().await, [[3, 1, 2, 1].map(Some), [1, 2, 2, 1].map(Some)]);
}

#[tokio::test]
async fn a_parameter_that_is_no_time_is_refused() {
    let (server, _) = server("").await;
    let refused = server.refusal("GET /v1/endpoints/demo/failures?since=yesterday", "").await;
    assert_eq!(refused, (400, "bad_parameter".to_owned()));
    assert_eq!(server.refusal("GET /v1/endpoints/none/failures", "").await.0, 404);
    fail(&server, "late").await;
    let path = "GET /v1/endpoints/demo/failures?since=2100-01-01T00:00:00Z";
    assert_eq!(server.ask(path, "").await.json(), json!([]));
}

#[tokio::test]
async fn an_endpoint_can_keep_no_messages() {
    let (server, _) = server(r#","keepFailureTexts":false"#).await;
    fail(&server, "the secret word").await;
    fail(&server, "another word").await;
    let told = groups(&server).await;
    assert_eq!((told.len(), &told[0]["message"], &told[0]["count"]), (1, &Value::Null, &json!(2)));
    let changed = server.ask("PATCH /v1/endpoints/demo", r#"{"keepFailureTexts":true}"#).await;
    assert_eq!((changed.status, &changed.json()["keepFailureTexts"]), (200, &json!(true)));
    fail(&server, "a word").await;
    assert!(groups(&server).await.iter().any(|group| group["message"] == "a word"));
    // What was stored before is removed.
    server.ask("PATCH /v1/endpoints/demo", r#"{"keepFailureTexts":false}"#).await;
    let told = groups(&server).await;
    assert_eq!((told.len(), &told[0]["message"], &told[0]["count"]), (1, &Value::Null, &json!(3)));
}

#[tokio::test]
async fn the_example_and_the_schema_come_back_as_they_were_sent() {
    let (server, _) = server(r#","example":{"input":{"a":[1,null]}},"inputSchema":{"type":"object"}"#).await;
    let endpoint = server.ask("GET /v1/endpoints/demo", "").await.json();
    assert_eq!(endpoint["example"], json!({ "input": { "a": [1, null] } }));
    assert_eq!(endpoint["inputSchema"], json!({ "type": "object" }));
    let path = "PATCH /v1/endpoints/demo";
    let changed = server.ask(path, r#"{"example":"a text","inputSchema":null}"#).await.json();
    assert_eq!((&changed["example"], changed.get("inputSchema")), (&json!("a text"), None));
    let large = format!(r#"{{"example":"{}"}}"#, "x".repeat(65_536));
    for body in [large.as_str(), r#"{"inputSchema":[]}"#, r#"{"inputSchema":"x"}"#] {
        assert_eq!(server.refusal(path, body).await, (400, "bad_field".to_owned()));
    }
    let kept = server.ask("GET /v1/endpoints/demo", "").await.json();
    assert_eq!(kept["example"], "a text");
}

#[tokio::test]
async fn the_example_and_the_schema_keep_their_order_and_digits() {
    let sent = r#", "example": {"input": {"seed": 9007199254740993123123, "a": 0.50, "A": "\u00e9\/"}},
        "inputSchema": {"type": "object", "properties": {"voice": {"type": "string"}, "speed": {"default": 1.0}}}"#;
    let (server, _) = server(sent).await;
    let example = r#""example":{"input":{"seed":9007199254740993123123,"a":0.50,"A":"é/"}}"#;
    let schema =
        r#""inputSchema":{"type":"object","properties":{"voice":{"type":"string"},"speed":{"default":1.0}}}"#;
    let shown = async || {
        let mut texts = Vec::new();
        for path in
            ["/v1/endpoints/demo", "/v1/endpoints", "/v1/endpoints?includeTemplate=true&includeWorkers=true"]
        {
            texts.push(server.ask(&format!("GET {path}"), "").await.text().to_owned());
        }
        texts
    };
    for text in shown().await {
        assert!(text.contains(example) && text.contains(schema), "{text}");
    }
    // Another order is another example, a deploy of the same one changes nothing, and an earlier version brings its own back.
    let other = r#"{"example":{"input":{"a":0.5,"seed":1}},"inputSchema":null,"executionTimeoutMs":5000}"#;
    let changed = server.ask("PATCH /v1/endpoints/demo", other).await.text().to_owned();
    assert!(changed.contains(r#""example":{"input":{"a":0.5,"seed":1}}"#), "{changed}");
    let deploy = r#"{"template":{"dockerStartCmd":["run"]},"endpoint":{"example":{"seed": 2, "a": {} }}}"#;
    for (version, is_changed) in [(2, true), (2, false)] {
        let deployed = server.ask("POST /v1/endpoints/demo/deploy", deploy).await.json();
        assert_eq!((&deployed["version"], &deployed["changed"]), (&json!(version), &json!(is_changed)));
    }
    let versions = server.ask("GET /v1/endpoints/demo/versions", "").await.json();
    let field =
        versions[0]["fields"].as_array().unwrap().iter().find(|field| field["name"] == "example").unwrap();
    assert_eq!(
        (&field["from"], &field["to"]),
        (&json!(r#"{"input":{"a":0.5,"seed":1}}"#), &json!(r#"{"seed":2,"a":{}}"#))
    );
    let text = server.ask("GET /v1/endpoints/demo", "").await.text().to_owned();
    assert!(text.contains(r#""example":{"seed":2,"a":{}}"#), "{text}");
    let restored = server.ask("POST /v1/endpoints/demo/versions/1/restore", "").await.text().to_owned();
    assert!(restored.contains(r#""example":{"input":{"a":0.5,"seed":1}}"#), "{restored}");
}

#[tokio::test]
async fn the_limit_of_an_example_counts_no_white_space() {
    let (server, _) = server("").await;
    let of = |text: &str| format!(r#"{{"example":{text}}}"#);
    let spaced = format!("[{}1]", " ".repeat(100_000));
    let changed = server.ask("PATCH /v1/endpoints/demo", &of(&spaced)).await;
    assert_eq!((changed.status, &changed.json()["example"]), (200, &json!([1])));
    let largest = format!("\"{}\"", "\\u00e9".repeat(32_767));
    let changed = server.ask("PATCH /v1/endpoints/demo", &of(&largest)).await;
    assert_eq!((changed.status, changed.json()["example"].as_str().map(str::len)), (200, Some(65_534)));
    let larger = of(&format!("\"{}\"", "x".repeat(65_535)));
    assert_eq!(server.refusal("PATCH /v1/endpoints/demo", &larger).await, (400, "bad_field".to_owned()));
    // A number that no program can calculate with, and more levels than programs read, are no JSON here.
    for text in ["1e400".to_owned(), format!("{}{}", "[".repeat(200), "]".repeat(200))] {
        assert_eq!(
            server.refusal("PATCH /v1/endpoints/demo", &of(&text)).await,
            (400, "bad_json".to_owned())
        );
    }
}

#[tokio::test]
async fn objectives_have_their_defaults_and_bounds() {
    let (server, _) = server(r#","slo":{"delayMs":5000}"#).await;
    let endpoint = server.ask("GET /v1/endpoints/demo", "").await.json();
    let slo = json!({ "delayMs": 5000, "delayTarget": 0.95, "successTarget": 0.99, "windowDays": 30 });
    assert_eq!(endpoint["slo"], slo);
    let path = "PATCH /v1/endpoints/demo";
    for (body, named) in [
        (r#"{"slo":{"delayMs":0}}"#, "`slo.delayMs`"),
        (r#"{"slo":{"successTarget":1}}"#, "`slo.successTarget`"),
        (r#"{"slo":{"windowDays":31}}"#, "`slo.windowDays`"),
        (r#"{"slo":{"window":3}}"#, "`slo.window`"),
        (r#"{"slo":7}"#, "`slo`"),
    ] {
        let answer = server.ask(path, body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.text().contains(named), "{}", answer.text());
    }
    let changed = server.ask(path, r#"{"slo":{"successTarget":0.9,"windowDays":7}}"#).await.json();
    assert_eq!(changed["slo"], json!({ "delayTarget": 0.95, "successTarget": 0.9, "windowDays": 7 }));
    assert_eq!(server.ask(path, r#"{"slo":null}"#).await.json().get("slo"), None);
}
