//! `stream` as server-sent events.

use std::time::Duration;

use longshore_blobs::Blobs as _;
use longshore_engine::{EndpointError, FollowEvent};
use longshore_model::JobId;
use tokio::time::timeout;

use super::fixture::{Fixture, with_key, worker};
use super::wire::{DEADLINE, Wire};
use crate::admin_key;

/// One event: its fields.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    id: Option<u64>,
    name: Option<String>,
    data: String,
}

fn parse(text: &str) -> Vec<Event> {
    let events = text.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
    events
        .map(|event| {
            let mut parsed = Event::default();
            for line in event.lines() {
                match line.split_once(": ").unwrap() {
                    ("id", id) => parsed.id = Some(id.parse().unwrap()),
                    ("event", name) => parsed.name = Some(name.to_owned()),
                    ("data", data) => parsed.data = data.to_owned(),
                    other => panic!("{other:?}"),
                }
            }
            parsed
        })
        .collect()
}

fn chunk(id: u64, output: &str) -> Event {
    Event { id: Some(id), name: None, data: format!("{{\"output\":{output}}}") }
}

fn head(job: JobId, query: &str, headers: &str) -> String {
    format!("GET /v2/demo/stream/{job}{query}\naccept: text/event-stream{headers}")
}

/// The whole response for a terminal job.
async fn read(fixture: &Fixture, job: JobId, query: &str, headers: &str) -> Vec<Event> {
    let answer = fixture.ask(&head(job, query, headers), "").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    parse(answer.text())
}

/// A client that follows a job.
struct Reader {
    wire: Wire,
    seen: String,
}

impl Reader {
    async fn of(fixture: &Fixture, job: JobId) -> Self {
        let mut wire = fixture.server.connect().await;
        wire.send(&with_key(&head(job, "", "")), None).await;
        assert_eq!(wire.head().await.0, 200);
        Self { wire, seen: String::new() }
    }

    /// Everything up to and including the next event that has this text.
    async fn until(&mut self, text: &str) -> Vec<Event> {
        let reading = async {
            while !self.seen.contains(text) {
                let piece = self.wire.piece().await;
                self.seen.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        timeout(DEADLINE, reading).await.expect("the event comes in time");
        parse(&std::mem::take(&mut self.seen))
    }
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_deref().unwrap_or("chunk")).collect()
}

#[tokio::test]
async fn a_job_that_is_over_shows_its_chunks_and_its_record() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.yield_chunks(job, &["\"a\\n\"", "{\n\"b\": 1.0\r\n}"]).await;
    fixture.complete(job, "[1e400]").await;
    let all = read(&fixture, job, "", "").await;
    assert_eq!(all[..2], [chunk(0, "\"a\\n\""), chunk(1, "{ \"b\": 1.0  }")]);
    assert_eq!((all.len(), all[2].name.as_deref(), all[2].id), (3, Some("done"), None));
    assert!(all[2].data.contains("\"status\":\"COMPLETED\"") && all[2].data.ends_with("\"output\":[1e400]}"));
    for (query, headers, count) in [
        ("?offset=1", "", 2),
        ("", "\nlast-event-id: 0", 2),
        ("", "\nlast-event-id: 1", 1),
        ("", "\nlast-event-id: 7", 1),
        ("", "\nlast-event-id:", 3),
        ("?offset=0", "\nlast-event-id: 0", 2),
    ] {
        let some = read(&fixture, job, query, headers).await;
        assert_eq!(some, all[3 - count..], "{query} {headers}");
    }
    assert_eq!(
        fixture.ask(&format!("GET /v2/demo/stream/{job}"), "").await.json().as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_larger_output_than_wanted_is_named_by_its_size() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.complete(job, "\"12345678\"").await;
    let done = async |query| read(&fixture, job, query, "").await.pop().unwrap().data;
    let whole = done("").await;
    assert!(whole.ends_with(",\"output\":\"12345678\"}"), "{whole}");
    assert_eq!(done("?outputBytesMax=10").await, whole);
    let without = whole.replace("\"output\":\"12345678\"", "\"outputBytes\":10");
    assert_eq!(done("?outputBytesMax=9").await, without);
    assert_eq!(done("?outputBytesMax=0").await, without);
    for wrong in ["-1", "x", "18446744073709551616"] {
        let answer = fixture.ask(&head(job, &format!("?outputBytesMax={wrong}"), ""), "").await;
        assert_eq!((answer.status, answer.json()["code"].as_str()), (400, Some("bad_parameter")), "{wrong}");
    }
}

#[tokio::test]
async fn damage_is_the_last_word_or_a_refusal_where_nothing_came_before_it() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    fixture.yield_chunks(job, &["1"]).await;
    let output = format!("\"{}\"", "x".repeat(400_000));
    fixture.complete(job, output.leak()).await;
    let files = fixture.blobs.list("1").await.unwrap();
    let file = files.iter().find(|file| file.contains(".output.")).unwrap();
    fixture.blobs.put(file, "no".into()).await.unwrap();

    let all = read(&fixture, job, "", "").await;
    assert_eq!((all.len(), &all[0]), (2, &chunk(0, "1")));
    assert_eq!((all[1].name.as_deref(), all[1].id), (Some("error"), None));
    let said: serde_json::Value = serde_json::from_str(&all[1].data).unwrap();
    assert_eq!(said["code"], "damaged", "{said}");
    assert!(said["error"].as_str().unwrap().contains("damaged on the server's disk"), "{said}");
    for head in [
        head(job, "", "\nlast-event-id: 0"),
        format!("GET /v2/demo/status/{job}"),
        format!("GET /v2/demo/status-sync/{job}"),
    ] {
        assert_eq!(fixture.refusal(&head, "").await, (500, "damaged".to_owned()), "{head}");
    }
}

#[tokio::test]
async fn a_last_event_that_is_no_number_is_refused() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    for value in ["x", "-1", "1.5", "99999999999999999999"] {
        let refusal = fixture.refusal(&head(job, "", &format!("\nlast-event-id: {value}")), "").await;
        assert_eq!(refusal, (400, "bad_parameter".to_owned()), "{value}");
    }
    let unknown = fixture.engine.mint_job(false);
    assert_eq!(fixture.refusal(&head(unknown, "", ""), "").await.0, 404);
}

#[tokio::test]
async fn nothing_follows_once_the_key_is_revoked() {
    let fixture = Fixture::start().await;
    let mut key = admin_key("theirs", longshore_model::Millis(0));
    key.id = "theirs".to_owned();
    fixture.engine.keys().put(key).await.unwrap();
    let job = fixture.running().await;
    let mut wire = fixture.server.connect().await;
    wire.send(&format!("{}\nauthorization: theirs", head(job, "", "")), None).await;
    assert_eq!(wire.head().await.0, 200);
    let mut theirs = Reader { wire, seen: String::new() };
    let mut ours = Reader::of(&fixture, job).await;
    fixture.yield_chunks(job, &["\"before\""]).await;
    for reader in [&mut theirs, &mut ours] {
        reader.until("before").await;
    }
    fixture.engine.keys().delete("theirs", |_| true).await.unwrap();
    fixture.yield_chunks(job, &["\"after\""]).await;
    ours.until("after").await;
    let rest = timeout(DEADLINE, theirs.wire.piece()).await.expect("the answer ends in time");
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn one_answer_shows_a_whole_life() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    let (mut one, mut other) = (Reader::of(&fixture, job).await, Reader::of(&fixture, job).await);
    assert!(one.until("IN_QUEUE").await[0].data.contains("\"status\":\"IN_QUEUE\""));
    fixture.take().await;
    assert_eq!(names(&one.until("IN_PROGRESS").await), ["status"]);
    fixture.yield_chunks(job, &["0"]).await;
    assert_eq!(one.until("output").await, [chunk(0, "0")]);
    let half = bytes::Bytes::from_static(b"\"half\"");
    fixture.endpoint.workers().progress(worker(), job, half).await.unwrap();
    let progress = one.until("half").await;
    assert_eq!(names(&progress), ["status"]);
    assert!(
        progress[0].data.contains("\"status\":\"IN_PROGRESS\"")
            && progress[0].data.contains("\"output\":\"half\"")
    );
    fixture.yield_chunks(job, &["1"]).await;
    fixture.complete(job, "2").await;
    assert_eq!(names(&one.until("done").await), ["chunk", "done"]);
    assert!(one.wire.piece().await.is_empty(), "nothing comes after `done`");
    let all = other.until("done").await;
    let chunks: Vec<_> = all.iter().filter_map(|event| event.id).collect();
    assert_eq!((chunks, all.last().unwrap().name.as_deref()), (vec![0, 1], Some("done")));
}

#[tokio::test]
async fn chunks_of_a_lost_attempt_end_and_offsets_go_on() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let mut reader = Reader::of(&fixture, job).await;
    fixture.yield_chunks(job, &["0", "1"]).await;
    reader.until("id: 1").await;
    fixture.endpoint.workers().lose(worker(), true, "it crashed".to_owned()).await.unwrap();
    reader.until("retries").await;
    assert_eq!(fixture.take().await.row.id, job);
    fixture.yield_chunks(job, &["2"]).await;
    fixture.fail(job, "e").await;
    let events = reader.until("done").await;
    assert_eq!(events.iter().filter_map(|event| event.id).collect::<Vec<_>>(), [2]);
    let late = read(&fixture, job, "", "").await;
    assert_eq!(late[0], chunk(2, "2"), "what was dropped does not come again");
    let retried = fixture.ask(&format!("POST /v2/demo/retry/{job}"), "").await;
    assert_eq!(retried.status, 200);
    assert_eq!(fixture.take().await.row.id, job);
    fixture.yield_chunks(job, &["3"]).await;
    fixture.complete(job, "[]").await;
    assert_eq!(read(&fixture, job, "", "\nlast-event-id: 2").await[0], chunk(3, "3"), "also after a retry");
    assert_eq!(fixture.ask(&format!("GET /v2/demo/stream/{job}"), "").await.text(), r#"[{"output":3}]"#);
}

#[tokio::test]
async fn a_reader_that_disconnects_leaves_nothing_behind() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let mut follower = fixture.endpoint.jobs().follow(job, 0).await.unwrap();
    assert!(matches!(follower.next().await, Ok(FollowEvent::Status(_))));
    let cut = timeout(Duration::from_millis(10), follower.next()).await;
    assert!(cut.is_err(), "nothing happens");
    drop(follower);
    fixture.yield_chunks(job, &["0"]).await;
    let mut follower = fixture.endpoint.jobs().follow(job, 0).await.unwrap();
    assert!(matches!(follower.next().await, Ok(FollowEvent::Status(_))));
    assert!(matches!(follower.next().await, Ok(FollowEvent::Chunks(chunks)) if chunks.len() == 1));
}

#[tokio::test]
async fn a_job_that_is_deleted_ends_the_answer() {
    let fixture = Fixture::start().await;
    let job = fixture.submit().await;
    let mut follower = fixture.endpoint.jobs().follow(job, 0).await.unwrap();
    assert!(matches!(follower.next().await, Ok(FollowEvent::Status(_))));
    let mut reader = Reader::of(&fixture, job).await;
    reader.until("IN_QUEUE").await;
    assert_eq!(fixture.ask(&format!("GET /v2/demo/status/{job}?ttl=1000"), "").await.status, 200);
    let refused = timeout(DEADLINE, async {
        loop {
            // Each change of the row is an event; the last one is the deletion.
            if let Err(error) = follower.next().await {
                return error;
            }
        }
    });
    assert!(matches!(refused.await.unwrap(), EndpointError::Refused(_)));
    while !timeout(DEADLINE, reader.wire.piece()).await.unwrap().is_empty() {}
}

#[tokio::test]
async fn a_stream_over_its_limit_fails_the_job() {
    let fixture = Fixture::start().await;
    let job = fixture.running().await;
    let piece = bytes::Bytes::from(format!("\"{}\"", "x".repeat(899_998)));
    for _ in 0..2 {
        fixture.endpoint.workers().append(worker(), job, vec![piece.clone().into(); 140]).await.unwrap();
    }
    fixture.endpoint.workers().append(worker(), job, vec![piece.clone().into(); 20]).await.unwrap();
    let record = fixture.ask(&format!("GET /v2/demo/status/{job}"), "").await.json();
    assert_eq!(record["status"], "FAILED");
    assert!(
        record["error"].as_str().unwrap().contains("270000000 bytes, the limit is 256000000"),
        "{record}"
    );
    let stop = fixture.endpoint.workers().stops(worker(), Duration::from_secs(20)).await.unwrap();
    assert_eq!(stop, [job]);
    let kept = fixture.ask(&format!("GET /v2/demo/stream/{job}?offset=279"), "").await.json();
    assert_eq!(kept.as_array().unwrap().len(), 1);
}
