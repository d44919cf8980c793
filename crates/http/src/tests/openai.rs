//! The routes of OpenAI's clients, with workers that respond in every known way.

use bytes::Bytes;
use longshore_engine::TakenJob;
use longshore_model::JobId;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::fixture::{Fixture, with_key, worker};
use super::wire::{Answer, DEADLINE};
use crate::workers::split;

const CHAT: &str = "POST /v2/demo/openai/v1/chat/completions";
const STREAMED: &str = r#"{"model":"m","stream":true}"#;

/// Sends a request, and lets a worker do its part meanwhile.
async fn asked<F: Future<Output = ()>>(
    fixture: &Fixture,
    head: &str,
    body: &str,
    work: impl FnOnce(JobId) -> F,
) -> Answer {
    let working = async {
        let job = fixture.take().await;
        work(job.row.id).await;
    };
    timeout(DEADLINE, async { tokio::join!(fixture.ask(head, body), working).0 }).await.unwrap()
}

async fn input_of(fixture: &Fixture, head: &str, body: &str) -> Value {
    let mut seen = None;
    let working = async {
        let TakenJob { row, members, .. } = fixture.take().await;
        fixture.complete(row.id, "[{}]").await;
        seen = Some(members);
    };
    let answer = tokio::join!(fixture.ask(head, body), working).0;
    assert_eq!(answer.status, 200, "{answer:?}");
    let members = String::from_utf8(seen.unwrap().to_vec()).unwrap();
    let object: Value = serde_json::from_str(&format!("{{{members}}}")).unwrap();
    object["input"].clone()
}

/// An error in OpenAI's shape: its status, type, code and message.
fn error_of(answer: &Answer) -> (u16, String, Value, String) {
    let error = &answer.json()["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (answer.status, text("type"), error["code"].clone(), text("message"))
}

#[tokio::test]
async fn a_request_becomes_a_job_with_its_route_and_body() {
    let fixture = Fixture::start().await;
    let body = r#"{"model": "m", "temperature": 1.0, "seed": 12345678901234567890}"#;
    let input = input_of(&fixture, CHAT, body).await;
    assert_eq!(input["openai_route"], "/v1/chat/completions");
    let asked = &input["openai_input"];
    assert_eq!(asked["temperature"].to_string() + &asked["seed"].to_string(), "1.012345678901234567890");
    for (head, route) in [
        ("GET /v2/demo/openai/v1/models", "/v1/models"),
        ("GET /v2/demo/openai/v1/models/org%2Fm?x=%20y", "/v1/models/org%2Fm?x=%20y"),
        ("POST /v2/demo/openai/v1/reset", "/v1/reset"),
    ] {
        assert_eq!(input_of(&fixture, head, "").await, json!({"openai_route": route}), "{head}");
    }
}

#[tokio::test]
async fn one_piece_is_the_workers_json_without_any_envelope() {
    let fixture = Fixture::start().await;
    for (chunks, output, expected) in [
        (&["{\"a\": 1.0}"][..], "[{\"a\": 1.0}]", "{\"a\": 1.0}"),
        (&["{\"a\": 1.0}"], "[]", "{\"a\": 1.0}"),
        (&[], "{\"plain\": 1e400}", "{\"plain\": 1e400}"),
        (&[], "[]", "[]"),
        (&[], "[1, 2]", "[1, 2]"),
        (&[r#""{\"a\": 1.0}""#], "[]", "{\"a\": 1.0}"),
        (&[r#""{\"a\"""#, r#"": 1.0}""#], "[]", "{\"a\": 1.0}"),
        (&[], r#"["{\"a\"", ": 1.0}"]"#, "{\"a\": 1.0}"),
        (&[], r#""{\"a\": 1.0}""#, "{\"a\": 1.0}"),
        (&[r#""{""#, "{\"a\": 1.0}"], "[]", r#""{""#),
        (&["\"hello\""], "[]", "\"hello\""),
    ] {
        let answer = asked(&fixture, CHAT, r#"{"model":"m"}"#, |job| {
            let fixture = &fixture;
            async move {
                fixture.yield_chunks(job, chunks).await;
                fixture.complete(job, output).await;
            }
        });
        let answer = answer.await;
        assert_eq!((answer.status, answer.text()), (200, expected));
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn an_object_over_a_megabyte_comes_whole() {
    let fixture = Fixture::start().await;
    let image = format!(r#"{{"created":1,"data":[{{"b64_json":"{}"}}]}}"#, "x".repeat(2_500_000));
    for (body, expected) in
        [(r#"{"model":"m"}"#, image.clone()), (STREAMED, format!("data: {image}\n\ndata: [DONE]\n\n"))]
    {
        let answer = asked(&fixture, CHAT, body, |job| {
            let (fixture, image) = (&fixture, &image);
            async move {
                let parts = split(Bytes::copy_from_slice(image.as_bytes()).into(), 1_000_000);
                assert_eq!(parts.len(), 3);
                fixture.endpoint.workers().append(worker(), job, parts).await.unwrap();
                fixture.complete(job, "[]").await;
            }
        });
        let answer = answer.await;
        assert!(answer.status == 200 && answer.text() == expected, "{} bytes", answer.body.len());
    }
}

#[tokio::test]
async fn pieces_are_passed_on_byte_for_byte() {
    let fixture = Fixture::start().await;
    let one = "\"data: {\\\"id\\\":\\\"c\\\",\\\"spl\"";
    let other = "\"it\\\":true}\\n\\n\"";
    let end = "\"data: [DONE]\\n\\n\"";
    let body = "data: {\"id\":\"c\",\"split\":true}\n\ndata: [DONE]\n\n";
    for (path, chunks, output, expected) in [
        ("chat/completions", vec![one, other, end], "[]", body.to_owned()),
        (
            "completions",
            vec!["{\"a\":1.0}", "[{\"b\":2},{\"c\":3}]"],
            "[]",
            "data: {\"a\":1.0}\n\ndata: {\"b\":2}\n\ndata: {\"c\":3}\n\ndata: [DONE]\n\n".to_owned(),
        ),
        (
            "responses",
            vec![
                "\"event: response.created\\ndata: {}\\n\\n\"",
                "\"event: response.completed\\ndata: {}\\n\\n\"",
            ],
            "[]",
            "event: response.created\ndata: {}\n\nevent: response.completed\ndata: {}\n\n".to_owned(),
        ),
        ("chat/completions", vec![], "[{\"whole\":1}]", "data: {\"whole\":1}\n\ndata: [DONE]\n\n".to_owned()),
    ] {
        let head = format!("POST /v2/demo/openai/v1/{path}");
        let answer = asked(&fixture, &head, STREAMED, |job| {
            let fixture = &fixture;
            async move {
                if !chunks.is_empty() {
                    fixture.yield_chunks(job, &chunks).await;
                }
                fixture.complete(job, output).await;
            }
        });
        let answer = answer.await;
        assert_eq!((answer.status, answer.text()), (200, expected.as_str()));
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    }
}

#[tokio::test]
async fn what_fails_before_the_first_piece_is_a_real_error() {
    let fixture = Fixture::start().await;
    let vllm = r#"{'message': 'vLLM returned HTTP 400: {"error": {"message": "too long", "type": "BadRequestError", "param": "messages", "code": 400}}', 'type': 'worker_error', 'code': None}"#;
    for body in [r#"{"model":"m"}"#, STREAMED] {
        let failed = |text: &'static str| {
            let fixture = &fixture;
            asked(fixture, CHAT, body, move |job| async move { fixture.fail(job, text).await })
        };
        let answer = failed(vllm).await;
        assert_eq!(error_of(&answer), (400, "BadRequestError".to_owned(), json!(400), "too long".to_owned()));
        assert_eq!(answer.json()["error"]["param"], "messages");
        let answer = failed("handler: it broke").await;
        assert_eq!(error_of(&answer).0, 500);
        assert_eq!(answer.header("x-should-retry"), Some("false"), "the prompt is not run three times");
        let flat = r#"{"object":"error","message":"m","type":"NotFoundError","param":null,"code":404}"#;
        let answer = asked(&fixture, CHAT, body, |job| {
            let fixture = &fixture;
            async move {
                fixture.yield_chunks(job, &[flat]).await;
                fixture.complete(job, "[]").await;
            }
        });
        assert_eq!(error_of(&answer.await), (404, "NotFoundError".to_owned(), json!(404), "m".to_owned()));
        let text = r#""{\"object\":\"error\",\"message\":\"m\",\"type\":\"NotFoundError\",\"code\":404}""#;
        let answer = asked(&fixture, CHAT, body, |job| {
            let fixture = &fixture;
            async move {
                fixture.yield_chunks(job, &[text]).await;
                fixture.complete(job, "[]").await;
            }
        });
        assert_eq!(error_of(&answer.await), (404, "NotFoundError".to_owned(), json!(404), "m".to_owned()));
    }
}

#[tokio::test]
async fn what_fails_later_is_an_event() {
    let fixture = Fixture::start().await;
    let answer = asked(&fixture, CHAT, STREAMED, |job| {
        let fixture = &fixture;
        async move {
            fixture.yield_chunks(job, &["\"data: {\\\"half\""]).await;
            // The chunk is sent before the end is known.
            fixture.until_read(job).await;
            fixture.fail(job, "it broke").await;
        }
    });
    let answer = answer.await;
    assert_eq!(answer.status, 200);
    let (before, after) = answer.text().split_once("\n\n").unwrap();
    assert_eq!(before, "data: {\"half");
    let error: Value = serde_json::from_str(after.strip_prefix("data: ").unwrap().trim()).unwrap();
    assert_eq!(
        (&error["error"]["message"], &error["error"]["type"]),
        (&json!("it broke"), &json!("worker_error"))
    );
}

#[tokio::test]
async fn what_comes_before_an_error_is_part_of_the_answer() {
    let fixture = Fixture::start().await;
    let answer = asked(&fixture, CHAT, STREAMED, |job| {
        let fixture = &fixture;
        async move {
            fixture.yield_chunks(job, &["\"data: 1\\n\\nda\"", "{\"error\":{\"message\":\"m\"}}"]).await;
        }
    });
    let answer = answer.await;
    assert_eq!(answer.status, 200);
    let error = r#"data: {"error":{"code":null,"message":"m","param":null,"type":"server_error"}}"#;
    assert_eq!(answer.text(), format!("data: 1\n\nda\n\n{error}\n\n"));
}

#[tokio::test]
async fn an_attempt_that_takes_over_is_not_mixed_in() {
    let fixture = Fixture::start().await;
    let answer = asked(&fixture, CHAT, STREAMED, |job| {
        let fixture = &fixture;
        async move {
            fixture.yield_chunks(job, &["\"data: 1\\n\\n\""]).await;
            fixture.until_read(job).await;
            fixture.endpoint.workers().lose(worker(), true, "it crashed".to_owned()).await.unwrap();
        }
    });
    let text = answer.await.text().to_owned();
    assert!(text.starts_with("data: 1\n\ndata: {\"error\":") && text.contains("worker_lost"), "{text}");
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_end_cancels_and_one_after_it_does_not() {
    let fixture = Fixture::start().await;
    for (chunk, state) in [("\"data: 1\\n\\n\"", "CANCELLED"), ("\"data: [DONE]\\n\\n\"", "IN_PROGRESS")] {
        let mut wire = fixture.server.connect().await;
        wire.send(&with_key(CHAT), Some(STREAMED.as_bytes())).await;
        let job = fixture.take().await.row.id;
        fixture.yield_chunks(job, &[chunk]).await;
        assert_eq!(wire.head().await.0, 200);
        wire.piece().await;
        drop(wire);
        if state == "CANCELLED" {
            let stops = fixture.endpoint.workers().stops(worker(), DEADLINE).await.unwrap();
            assert_eq!(stops, [job], "its worker is told");
        }
        assert_eq!(fixture.state(job).await, state);
        fixture.complete(job, "[]").await;
    }
    let mut waiting = fixture.server.connect().await;
    waiting.send(&with_key(CHAT), Some(b"{\"model\":\"m\"}")).await;
    let job = fixture.take().await.row.id;
    drop(waiting);
    assert_eq!(fixture.endpoint.workers().stops(worker(), DEADLINE).await.unwrap(), [job]);
}

#[tokio::test]
async fn errors_of_the_server_have_the_shape_of_openai() {
    let fixture = Fixture::start().await;
    for (head, body, status, kind, code) in [
        (CHAT, "no json", 400, "invalid_request_error", "bad_json"),
        (CHAT, "[\"m\", true]", 400, "invalid_request_error", "bad_json"),
        (
            "POST /v2/missing/openai/v1/chat/completions",
            "{}",
            404,
            "invalid_request_error",
            "endpoint_not_found",
        ),
        ("DELETE /v2/demo/openai/v1/responses/1", "", 405, "invalid_request_error", "method_not_allowed"),
        ("GET /openai/v2", "", 404, "invalid_request_error", "route_not_found"),
        ("POST /openai/v1/chat/completions", "{}", 400, "invalid_request_error", "missing_model"),
        (
            "POST /openai/v1/chat/completions",
            "{\"model\":\"x\"}",
            404,
            "invalid_request_error",
            "model_not_found",
        ),
        ("GET /openai/v1/models/org%2Fx", "", 404, "invalid_request_error", "model_not_found"),
    ] {
        let answer = fixture.ask(head, body).await;
        let (shown, said, shown_code, message) = error_of(&answer);
        assert_eq!((shown, said.as_str(), &shown_code), (status, kind, &json!(code)), "{head}");
        assert!(!message.is_empty());
    }
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(20_000_000));
    assert_eq!(error_of(&fixture.ask(CHAT, &long).await).0, 413);
    let stranger = fixture.server.ask(CHAT, b"{}").await;
    assert_eq!(error_of(&stranger).1, "authentication_error");
    assert_eq!(stranger.header("www-authenticate"), Some("Bearer"));
}

#[tokio::test]
async fn models_choose_the_endpoint_and_are_listed_without_a_worker() {
    let fixture = Fixture::with(&crate::HttpSettings::default(), r#","models":["org/m","n"]"#).await;
    let names = |answer: &Answer| -> Vec<String> {
        answer.json()["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    };
    for head in ["GET /openai/v1/models", "GET /v2/demo/openai/v1/models"] {
        assert_eq!(names(&fixture.ask(head, "").await), ["org/m", "n"], "{head}");
    }
    for head in [
        "GET /openai/v1/models/org%2Fm",
        "GET /openai/v1/models/org/m",
        "GET /v2/demo/openai/v1/models/org%2Fm",
    ] {
        assert_eq!(fixture.ask(head, "").await.json()["id"], "org/m", "{head}");
    }
    assert_eq!(fixture.ask("GET /v2/demo/openai/v1/models/x", "").await.status, 404);
    let head = "POST /openai/v1/embeddings";
    let id = fixture.endpoint.record().id;
    for (asked, reached) in [("n", "n"), ("org/m", "org/m"), ("demo", "org/m"), (id.as_str(), "org/m")] {
        let input = input_of(&fixture, head, &format!(r#"{{"input": "x", "model": "{asked}"}}"#)).await;
        assert_eq!(input["openai_input"], json!({"input": "x", "model": reached}));
        assert_eq!(input["openai_route"], "/v1/embeddings");
    }
}

#[tokio::test]
async fn a_silent_wait_says_that_it_lives() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    fixture.take().await;
    let mut wire = fixture.server.connect().await;
    let head = format!("GET /v2/demo/stream/{job}\naccept: text/event-stream");
    wire.send(&with_key(&head), None).await;
    wire.head().await;
    assert!(wire.piece().await.starts_with(b"event: status"));
    assert_eq!(timeout(DEADLINE, wire.piece()).await.unwrap(), b": keep-alive\n\n");
    let mut cold = fixture.server.connect().await;
    cold.send(&with_key(CHAT), Some(STREAMED.as_bytes())).await;
    assert_eq!(timeout(DEADLINE, cold.head()).await.unwrap().0, 200, "held, and promised");
    assert_eq!(cold.piece().await, b": keep-alive\n\n");
    let late = fixture.take().await.row.id;
    fixture
        .endpoint
        .workers()
        .append(worker(), late, vec![Bytes::from_static(b"\"data: 1\\n\\n\"").into()])
        .await
        .unwrap();
    assert_eq!(cold.piece().await, b"data: 1\n\n");
    fixture.fail(late, "{'message': 'vLLM returned HTTP 400: no'}").await;
    assert!(String::from_utf8(cold.piece().await).unwrap().contains("\"no\""));
}
