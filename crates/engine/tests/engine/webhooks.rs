//! The webhook calls for two ends of a job that was retried, while commits are slow.

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

/// Duration of a commit in ms, so that a webhook call ends while the commit is in flight.
const COMMIT_MS: u64 = 300;

/// The body of a call, and the channel for the status of its response.
type Call = (Bytes, oneshot::Sender<StatusCode>);

/// Sends every call to the test, which chooses the response.
struct Receiver(mpsc::UnboundedSender<Call>);

impl WebhookTransport for Receiver {
    fn post(&self, call: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let (reply, status) = oneshot::channel();
            let closed = || TransportError::NoResponse("the test is over".to_owned());
            self.0.send((call.into_body(), reply)).map_err(|_| closed())?;
            let status = status.await.map_err(|_| closed())?;
            Ok(TransportResponse { status, body: Bytes::new() })
        })
    }
}

async fn start(disks: &Disks) -> (Engine, EndpointHandle, mpsc::UnboundedReceiver<Call>) {
    let (calls, receiver) = mpsc::unbounded_channel();
    let engine = disks.start_with(Arc::new(Receiver(calls))).await;
    let template = engine.catalog().create_template(template("t")).await.unwrap();
    engine.create_endpoint(endpoint(template.id, "demo")).await.unwrap();
    let demo = engine.endpoint("demo").unwrap();
    (engine, demo, receiver)
}

/// Waits for the next call, which must report a job in this state. Returns the channel for the response.
async fn next_call(
    calls: &mut mpsc::UnboundedReceiver<Call>,
    state: JobState,
) -> oneshot::Sender<StatusCode> {
    let call = tokio::time::timeout(DEADLINE, calls.recv()).await;
    let (body, reply) = call.expect("a call is made in time").unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains(&format!(r#""status":"{state}""#)), "{body}");
    reply
}

/// Makes a job fail, and retries and completes it while the call for the failure is in flight. The response with
/// `status` arrives while the commit of the second end is in flight.
async fn respond_between_ends(
    engine: &Engine,
    demo: &EndpointHandle,
    calls: &mut mpsc::UnboundedReceiver<Call>,
    store: &BreakableStore,
    status: StatusCode,
) -> JobId {
    let members = Bytes::from_static(br#""input":{},"webhook":"http://h.example/""#);
    let submission = Submission { members, webhook: true, ..job(engine, "{}") };
    let id = demo.jobs().submit(submission).await.unwrap().id;
    take(demo, "w", 0).await;
    let failed = Outcome::Failed { error: "no".to_owned(), output: None };
    demo.workers().report(worker("w"), id, failed).await.unwrap();
    let reply = next_call(calls, JobState::Failed).await;
    demo.jobs().retry(id).await.unwrap();
    take(demo, "w", 0).await;
    store.set_commit_ms(COMMIT_MS);
    tokio::join!(done(demo, "w", id, "1"), async { reply.send(status).unwrap() });
    id
}

#[tokio::test]
async fn the_next_end_is_reported_after_an_earlier_one_was_accepted() {
    let disks = Disks::new();
    let (engine, demo, mut calls) = start(&disks).await;
    let ok = StatusCode::OK;
    let id = respond_between_ends(&engine, &demo, &mut calls, &disks.store, ok).await;
    next_call(&mut calls, JobState::Completed).await.send(ok).unwrap();
    eventually(async || !demo.jobs().status(id).await.unwrap().row.webhook_pending).await;
}

#[tokio::test]
async fn attempts_for_an_earlier_end_do_not_count_for_the_next() {
    let disks = Disks::new();
    let (engine, demo, mut calls) = start(&disks).await;
    let error = StatusCode::INTERNAL_SERVER_ERROR;
    let id = respond_between_ends(&engine, &demo, &mut calls, &disks.store, error).await;
    let _pending = next_call(&mut calls, JobState::Completed).await;
    // The reply follows the commits of all earlier requests.
    assert!(demo.jobs().status(id).await.unwrap().row.webhook_pending);
    let pending = disks.store.webhooks(demo.record().no).await.unwrap();
    assert_eq!(pending.iter().map(|row| row.attempts).collect::<Vec<_>>(), [0]);
}
