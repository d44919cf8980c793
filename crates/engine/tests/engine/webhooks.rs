//! The calls for two ends of a job that was retried, while commits take their time.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use longshore_engine::{
    EndpointHandle, Engine, Outcome, Submission, TransportError, TransportFuture, TransportResponse,
    WebhookTransport,
};
use longshore_model::{JobId, JobState};
use longshore_store::Store;
use tokio::sync::{mpsc, oneshot};

use crate::harness::{
    BreakableStore, DEADLINE, Disks, done, endpoint, eventually, job, take, template, worker,
};

/// Long enough for a call to end while a commit is under way.
const COMMIT_MS: u64 = 300;

/// A call, and where its answer goes.
type Call = (Bytes, oneshot::Sender<StatusCode>);

/// Hands every call to the test.
struct Receiver(mpsc::UnboundedSender<Call>);

impl WebhookTransport for Receiver {
    fn post(&self, call: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let silent = || TransportError::NoResponse("the test is over".to_owned());
            self.0.send((call.into_body(), answer)).map_err(|_| silent())?;
            let status = answered.await.map_err(|_| silent())?;
            Ok(TransportResponse { status, body: Bytes::new() })
        })
    }
}

async fn start(disks: &Disks) -> (Engine, EndpointHandle, mpsc::UnboundedReceiver<Call>) {
    let (calls, receiver) = mpsc::unbounded_channel();
    let engine = disks.start_with(Arc::new(Receiver(calls))).await;
    let template = engine.create_template(template("t")).await.unwrap();
    engine.create_endpoint(endpoint(template.id, "demo")).await.unwrap();
    let demo = engine.endpoint("demo").unwrap();
    (engine, demo, receiver)
}

async fn next_call(
    calls: &mut mpsc::UnboundedReceiver<Call>,
    state: JobState,
) -> oneshot::Sender<StatusCode> {
    let call = tokio::time::timeout(DEADLINE, calls.recv()).await;
    let (body, answer) = call.expect("a call is made in time").unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains(&format!(r#""status":"{state}""#)), "{body}");
    answer
}

/// A job fails, is retried while its receiver thinks, and completes; `status` is the answer to the call for the
/// failure. It comes when the engine has heard of the second end, and that is not on disk yet.
async fn answer_between_ends(
    engine: &Engine,
    demo: &EndpointHandle,
    calls: &mut mpsc::UnboundedReceiver<Call>,
    store: &BreakableStore,
    status: StatusCode,
) -> JobId {
    let members = Bytes::from_static(br#""input":{},"webhook":"http://h.example/""#);
    let submission = Submission { members, webhook: true, ..job(engine, "{}") };
    let id = demo.submit(submission).await.unwrap().id;
    take(demo, "w", 0).await;
    let failed = Outcome::Failed { error: "no".to_owned(), output: None };
    demo.report(worker("w"), id, failed).await.unwrap();
    let answer = next_call(calls, JobState::Failed).await;
    demo.retry(id).await.unwrap();
    take(demo, "w", 0).await;
    store.set_commit_ms(COMMIT_MS);
    tokio::join!(done(demo, "w", id, "1"), async { answer.send(status).unwrap() });
    id
}

#[tokio::test]
async fn a_receiver_that_accepts_an_earlier_end_is_told_of_the_next() {
    let disks = Disks::new();
    let (engine, demo, mut calls) = start(&disks).await;
    let ok = StatusCode::OK;
    let id = answer_between_ends(&engine, &demo, &mut calls, &disks.store, ok).await;
    next_call(&mut calls, JobState::Completed).await.send(ok).unwrap();
    eventually(async || !demo.status(id).await.unwrap().row.webhook_pending).await;
}

#[tokio::test]
async fn attempts_for_an_earlier_end_do_not_count_for_the_next() {
    let disks = Disks::new();
    let (engine, demo, mut calls) = start(&disks).await;
    let error = StatusCode::INTERNAL_SERVER_ERROR;
    let id = answer_between_ends(&engine, &demo, &mut calls, &disks.store, error).await;
    let _unanswered = next_call(&mut calls, JobState::Completed).await;
    // Answered when everything that came before is on disk.
    assert!(demo.status(id).await.unwrap().row.webhook_pending);
    let owed = disks.store.webhooks(demo.record().no).await.unwrap();
    assert_eq!(owed.iter().map(|hook| hook.attempts).collect::<Vec<_>>(), [0]);
}
