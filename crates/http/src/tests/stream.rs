//! `stream`.

use std::time::Instant;

use bytes::Bytes;
use longshore_model::{JobId, StreamShape};

use super::fixture::{Fixture, with_key, worker};
use crate::HttpSettings;

async fn read(fixture: &Fixture, job: JobId, query: &str) -> String {
    let answer = fixture.ask(&format!("GET /v2/demo/stream/{job}{query}"), "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    answer.text().to_owned()
}

async fn read_enveloped(fixture: &Fixture, job: JobId, query: &str) -> String {
    let answer = fixture.ask(&format!("POST /sdk/v2/demo/stream/{job}{query}"), "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    answer.text().to_owned()
}

#[tokio::test]
async fn a_poll_drains() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.yield_chunks(job, &["\"a\"", "null"]).await;
    assert_eq!(read(&fixture, job, "").await, r#"[{"output":"a"},{"output":null}]"#);
    assert_eq!(read(&fixture, job, "?wait=0").await, "[]");
    fixture.yield_chunks(job, &["[1.0,1e400]"]).await;
    assert_eq!(read(&fixture, job, "?wait=0").await, r#"[{"output":[1.0,1e400]}]"#);
    fixture.complete(job, "[]").await;
    assert_eq!(read(&fixture, job, "").await, "[]");
    assert_eq!(read(&fixture, job, "").await, "[]");
}

#[tokio::test]
async fn the_envelope_says_how_the_job_stands() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    assert_eq!(read_enveloped(&fixture, job, "?wait=0").await, r#"{"status":"IN_QUEUE","stream":[]}"#);
    fixture.take().await;
    fixture.yield_chunks(job, &["1"]).await;
    assert_eq!(
        read_enveloped(&fixture, job, "").await,
        r#"{"status":"IN_PROGRESS","stream":[{"output":1}]}"#
    );
    fixture.yield_chunks(job, &["2"]).await;
    fixture.fail(job, "e").await;
    assert_eq!(read_enveloped(&fixture, job, "").await, r#"{"status":"FAILED","stream":[{"output":2}]}"#);
    assert_eq!(read_enveloped(&fixture, job, "").await, r#"{"status":"FAILED","stream":[]}"#);
}

#[tokio::test]
async fn the_server_and_then_the_endpoint_choose_the_shape() {
    let object = HttpSettings { stream_shape: StreamShape::Object, ..HttpSettings::default() };
    for (settings, members, is_object) in [
        (HttpSettings::default(), "", false),
        (HttpSettings::default(), r#","streamShape":"object""#, true),
        (object.clone(), "", true),
        (object, r#","streamShape":"array""#, false),
    ] {
        let fixture = Fixture::with(&settings, members).await;
        let job = fixture.running().await;
        fixture.yield_chunks(job, &["1"]).await;
        let enveloped = r#"{"status":"IN_PROGRESS","stream":[{"output":1}]}"#;
        let shown = if is_object { enveloped } else { r#"[{"output":1}]"# };
        assert_eq!(read(&fixture, job, "?offset=0").await, shown);
        assert_eq!(read(&fixture, job, "").await, shown);
        assert_eq!(read_enveloped(&fixture, job, "?offset=0").await, enveloped);
        fixture.complete(job, "[]").await;
        let drained = if is_object { r#"{"status":"COMPLETED","stream":[]}"# } else { "[]" };
        assert_eq!(read(&fixture, job, "").await, drained);
    }
}

#[tokio::test]
async fn an_offset_reads_and_leaves_the_chunks() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.yield_chunks(job, &["0", "1", "2"]).await;
    for _ in 0..2 {
        assert_eq!(read(&fixture, job, "?offset=1").await, r#"[{"output":1},{"output":2}]"#);
    }
    assert_eq!(read(&fixture, job, "").await, r#"[{"output":0},{"output":1},{"output":2}]"#);
    assert_eq!(read(&fixture, job, "?offset=0&wait=0").await, r#"[{"output":0},{"output":1},{"output":2}]"#);
    assert_eq!(read(&fixture, job, "?offset=99&wait=0").await, "[]");
}

#[tokio::test]
async fn a_poll_waits_for_the_next_chunk_while_the_job_lives() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let began = Instant::now();
    assert_eq!(read(&fixture, job, "?wait=500").await, "[]");
    assert!(began.elapsed().as_millis() >= 500);
    let (text, ()) = tokio::join!(read(&fixture, job, "?wait=20000"), fixture.yield_chunks(job, &["1"]));
    assert_eq!(text, r#"[{"output":1}]"#);
    let (text, ()) = tokio::join!(read_enveloped(&fixture, job, "?wait=20000"), fixture.complete(job, "[]"));
    assert_eq!(text, r#"{"status":"COMPLETED","stream":[]}"#);
}

#[tokio::test]
async fn its_parameters_are_checked() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    for query in ["wait=300001", "wait=x", "offset=-1", "offset=x"] {
        let refusal = fixture.refusal(&format!("GET /v2/demo/stream/{job}?{query}"), "").await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_terminal_state_shows_with_the_last_chunk_and_not_before() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let chunk = Bytes::from(format!("\"{}\"", "x".repeat(999_990)));
    let total = 50;
    for _ in 0..total {
        fixture.endpoint.workers().append(worker(), job, vec![chunk.clone().into()]).await.unwrap();
    }
    fixture.complete(job, "[]").await;
    let mut seen = 0;
    loop {
        let answer = fixture.ask(&format!("GET /sdk/v2/demo/stream/{job}"), "").await;
        assert!(answer.body.len() < 22_000_000);
        let page = answer.json();
        let chunks = page["stream"].as_array().unwrap().len();
        assert!(chunks > 0);
        seen += chunks;
        if page["status"] == "COMPLETED" {
            break;
        }
        assert_eq!(page["status"], "IN_PROGRESS");
    }
    assert_eq!(seen, total);
    assert_eq!(read(&fixture, job, "").await, "[]");
}

#[tokio::test]
async fn a_reader_that_disconnects_finds_its_chunks_again() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let chunk = Bytes::from(format!("\"{}\"", "x".repeat(999_990)));
    for _ in 0..15 {
        fixture.endpoint.workers().append(worker(), job, vec![chunk.clone().into()]).await.unwrap();
    }
    let mut wire = fixture.server.connect().await;
    wire.send(&with_key(&format!("GET /v2/demo/stream/{job}")), None).await;
    let mut some = [0; 1_000];
    tokio::io::AsyncReadExt::read_exact(&mut wire.stream, &mut some).await.unwrap();
    drop(wire);
    let answer = fixture.ask(&format!("GET /v2/demo/stream/{job}"), "").await.json();
    assert_eq!(answer.as_array().unwrap().len(), 15);
}
