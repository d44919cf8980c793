//! A reader of `/v1/events`, and what changes jobs meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use longshore_engine::{Outcome, TakeRequest};
use longshore_model::JobId;
use serde_json::Value;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::super::direct::{ADMIN, Direct, request};
use super::super::fixture::worker;

/// In the tests' time, which passes only while nothing happens.
const DEADLINE: Duration = Duration::from_secs(100);

/// One event as a reader gets it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToldEvent {
    pub(super) name: String,
    pub(super) id: u64,
    pub(super) data: Value,
}

/// A response of `/v1/events`.
pub(super) struct EventsReader {
    body: Body,
    text: String,
    pub(super) last: u64,
}

impl EventsReader {
    pub(super) async fn open(server: &Direct, path: &str, key: &str, last: Option<u64>) -> Self {
        let mut asked = request("GET", path, Some(key), "");
        if let Some(last) = last {
            asked.headers_mut().insert("last-event-id", last.to_string().parse().unwrap());
        }
        let response = server.edge.clone().oneshot(asked).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new(), last: 0 }
    }

    pub(super) async fn of(server: &Direct) -> Self {
        Self::open(server, "/v1/events", ADMIN, None).await
    }

    /// The next event; `None` if the stream has ended.
    pub(super) async fn next(&mut self) -> Option<ToldEvent> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                if let Some(event) = self.parse(&block) {
                    return Some(event);
                }
                continue;
            }
            let piece = self.piece().await?;
            self.text.push_str(&piece);
        }
    }

    /// The next piece of the response's text; `None` if the stream has ended.
    pub(super) async fn piece(&mut self) -> Option<String> {
        let frame = timeout(DEADLINE, self.body.frame()).await.expect("an event comes in time")?;
        let piece: Bytes = frame.unwrap().into_data().unwrap();
        Some(std::str::from_utf8(&piece).unwrap().to_owned())
    }

    /// The event of a block of lines; `None` if it has no data.
    fn parse(&mut self, block: &str) -> Option<ToldEvent> {
        let fields: BTreeMap<_, _> = block.lines().filter_map(|line| line.split_once(": ")).collect();
        self.last = fields["id"].parse().unwrap();
        let data = serde_json::from_str(fields.get("data")?).unwrap();
        Some(ToldEvent { name: fields["event"].to_owned(), id: self.last, data })
    }

    /// The next event for which `is_it` holds.
    pub(super) async fn until(&mut self, is_it: impl Fn(&ToldEvent) -> bool) -> ToldEvent {
        let reading = async {
            loop {
                let event = self.next().await.expect("the stream goes on");
                if is_it(&event) {
                    return event;
                }
            }
        };
        timeout(DEADLINE, reading).await.expect("the event comes in time")
    }

    pub(super) async fn named(&mut self, name: &str) -> ToldEvent {
        self.until(|event| event.name == name).await
    }
}

pub(super) async fn submit(server: &Direct) -> String {
    let made = server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
    made["id"].as_str().unwrap().to_owned()
}

pub(super) async fn take(server: &Direct) -> Option<JobId> {
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 0, address: None };
    let taken = server.engine.endpoint("demo").unwrap().workers().take(worker(), ask).await.unwrap();
    taken.first().map(|job| job.row.id)
}

pub(super) async fn complete(server: &Direct, job: JobId) {
    let outcome = Outcome::Completed { output: Some(Bytes::from_static(b"1")) };
    server.engine.endpoint("demo").unwrap().workers().report(worker(), job, outcome).await.unwrap();
}
