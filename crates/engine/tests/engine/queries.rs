//! A query shows a job as it was at one moment, also when the job changes during the query.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{
    EndpointError, EndpointHandle, JobConditions, JobFilter, JobSnapshot, Outcome, StreamFrom,
};
use longshore_model::{JobId, JobState};
use longshore_queue::Refusal;

use crate::harness::{Disks, done, eventually, job, one_endpoint, output, take, worker};

/// Restarts the engine, so that no outcome is cached, and makes reads of the store slow.
async fn restarted(disks: &Disks) -> EndpointHandle {
    let endpoint = disks.start().await.endpoint("demo").unwrap();
    disks.store.set_read_ms(300);
    endpoint
}

/// Queries a job's status; `meanwhile` happens between the read of its row and the read of its outcome.
async fn status(
    disks: &Disks,
    endpoint: &EndpointHandle,
    job: JobId,
    meanwhile: impl Future<Output = ()>,
) -> Result<JobSnapshot, EndpointError> {
    let endpoint = endpoint.clone();
    query(disks, async move { endpoint.jobs().status(job).await }, meanwhile).await
}

/// Runs a query; `meanwhile` happens when the query has begun to read the store.
async fn query<T: Send + 'static>(
    disks: &Disks,
    query: impl Future<Output = T> + Send + 'static,
    meanwhile: impl Future<Output = ()>,
) -> T {
    let before = disks.store.reads.load(Ordering::SeqCst);
    let result = tokio::spawn(query);
    eventually(async || disks.store.reads.load(Ordering::SeqCst) > before).await;
    meanwhile.await;
    result.await.unwrap()
}

#[tokio::test]
async fn a_job_that_is_deleted_during_a_query_is_not_shown_without_its_output() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    done(&demo, "w1", id, "1").await;
    let demo = restarted(&disks).await;
    let seen = status(&disks, &demo, id, async {
        disks.clock.jump(61_000);
        // The first purge wakes the queue, which deletes the job; the second is durable after the deletion.
        demo.jobs().purge().await.unwrap();
        demo.jobs().purge().await.unwrap();
    });
    assert!(matches!(seen.await, Err(EndpointError::Refused(Refusal::NoSuchJob))));
    let everything = JobFilter { conditions: JobConditions::default(), limit: 10, before: None };
    assert!(demo.jobs().list(everything).await.unwrap().jobs.is_empty());
}

#[tokio::test]
async fn a_job_that_is_deleted_while_its_chunks_are_read_is_not_shown_without_them() {
    for follows in [false, true] {
        let disks = Disks::new();
        let (engine, demo) = one_endpoint(&disks).await;
        let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
        take(&demo, "w1", 0).await;
        demo.workers().append(worker("w1"), id, vec![Bytes::from_static(b"1").into()]).await.unwrap();
        demo.jobs().cancel(id).await.unwrap();
        disks.store.set_read_ms(300);
        let mut follower = demo.jobs().follow(id, 0).await.unwrap();
        let endpoint = demo.clone();
        let read = async move {
            if follows {
                follower.next().await.map(drop)
            } else {
                endpoint.jobs().read_stream(id, StreamFrom::Offset(0), Duration::ZERO).await.map(drop)
            }
        };
        let result = query(&disks, read, async {
            disks.clock.jump(61_000);
            // The first purge wakes the queue, which deletes the job; the second is durable after the deletion.
            demo.jobs().purge().await.unwrap();
            demo.jobs().purge().await.unwrap();
        });
        let result = result.await;
        assert!(matches!(result, Err(EndpointError::Refused(Refusal::NoSuchJob))), "{follows}: {result:?}");
    }
}

#[tokio::test]
async fn a_job_that_ends_during_a_query_does_not_show_its_result_as_progress() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.workers().progress(worker("w1"), id, Bytes::from_static(b"50")).await.unwrap();
    let demo = restarted(&disks).await;
    let seen = status(&disks, &demo, id, done(&demo, "w1", id, "\"the result\"")).await.unwrap();
    assert_eq!((seen.row.state, output(&seen)), (JobState::Completed, "\"the result\""));
}

#[tokio::test]
async fn a_running_job_is_shown_with_its_progress_value() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.workers().progress(worker("w1"), id, Bytes::from_static(b"50")).await.unwrap();
    let seen = demo.jobs().status(id).await.unwrap();
    assert_eq!((seen.row.state, output(&seen)), (JobState::InProgress, "50"));
}

#[tokio::test]
async fn a_cancel_returns_the_end_and_not_the_retry_after_it() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let failed = Outcome::Failed { error: "no".to_owned(), output: None };
    demo.workers().report(worker("w1"), id, failed).await.unwrap();
    let demo = restarted(&disks).await;
    let (cancelled, retried) = tokio::join!(demo.jobs().cancel(id), demo.jobs().retry(id));
    assert_eq!((cancelled.unwrap().state, retried.unwrap().state), (JobState::Failed, JobState::InQueue));
}
