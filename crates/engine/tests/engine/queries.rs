//! Who looks at a job sees it as it was at one time, also when the job goes on during the look.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{EndpointError, EndpointHandle, JobFilter, JobSnapshot, Outcome, StreamFrom};
use longshore_model::{JobId, JobState};
use longshore_queue::Refusal;

use crate::harness::{Disks, done, eventually, job, one_endpoint, output, take, worker};

/// After a restart nothing is remembered: outcomes come from the store, which takes its time.
async fn restarted(disks: &Disks) -> EndpointHandle {
    let endpoint = disks.start().await.endpoint("demo").unwrap();
    disks.store.set_read_ms(300);
    endpoint
}

/// Looks at a job; `meanwhile` happens between the reading of its row and that of its outcome.
async fn look(
    disks: &Disks,
    endpoint: &EndpointHandle,
    job: JobId,
    meanwhile: impl Future<Output = ()>,
) -> Result<JobSnapshot, EndpointError> {
    let endpoint = endpoint.clone();
    read(disks, async move { endpoint.status(job).await }, meanwhile).await
}

/// Asks for something; `meanwhile` happens between the question and the reading of the store.
async fn read<T: Send + 'static>(
    disks: &Disks,
    question: impl Future<Output = T> + Send + 'static,
    meanwhile: impl Future<Output = ()>,
) -> T {
    let looks_before = disks.store.looks.load(Ordering::SeqCst);
    let answer = tokio::spawn(question);
    eventually(async || disks.store.looks.load(Ordering::SeqCst) > looks_before).await;
    meanwhile.await;
    answer.await.unwrap()
}

#[tokio::test]
async fn a_job_that_is_deleted_during_a_look_is_not_shown_without_its_output() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    done(&demo, "w1", id, "1").await;
    let demo = restarted(&disks).await;
    let seen = look(&disks, &demo, id, async {
        disks.clock.jump(61_000);
        // A command wakes the queue, and its answer is durable after the deletion.
        demo.purge().await.unwrap();
        demo.purge().await.unwrap();
    });
    assert!(matches!(seen.await, Err(EndpointError::Refused(Refusal::NoSuchJob))));
    let everything = JobFilter { state: None, limit: 10, before: None };
    assert!(demo.list(everything).await.unwrap().jobs.is_empty());
}

#[tokio::test]
async fn a_job_that_is_deleted_while_its_chunks_are_read_is_not_shown_without_them() {
    for follows in [false, true] {
        let disks = Disks::new();
        let (engine, demo) = one_endpoint(&disks).await;
        let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
        take(&demo, "w1", 0).await;
        demo.append(worker("w1"), id, vec![Bytes::from_static(b"1").into()]).await.unwrap();
        demo.cancel(id).await.unwrap();
        disks.store.set_read_ms(300);
        let mut follower = demo.follow(id, 0).await.unwrap();
        let endpoint = demo.clone();
        let question = async move {
            if follows {
                follower.next().await.map(drop)
            } else {
                endpoint.read_stream(id, StreamFrom::Offset(0), Duration::ZERO).await.map(drop)
            }
        };
        let answer = read(&disks, question, async {
            disks.clock.jump(61_000);
            // A command wakes the queue, and its answer is durable after the deletion.
            demo.purge().await.unwrap();
            demo.purge().await.unwrap();
        });
        let answer = answer.await;
        assert!(matches!(answer, Err(EndpointError::Refused(Refusal::NoSuchJob))), "{follows}: {answer:?}");
    }
}

#[tokio::test]
async fn a_job_that_ends_during_a_look_does_not_show_its_result_as_progress() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.progress(worker("w1"), id, Bytes::from_static(b"50")).await.unwrap();
    let demo = restarted(&disks).await;
    let seen = look(&disks, &demo, id, done(&demo, "w1", id, "\"the result\"")).await.unwrap();
    assert_eq!((seen.row.state, output(&seen)), (JobState::Completed, "\"the result\""));
}

#[tokio::test]
async fn a_job_that_shows_progress_is_seen_with_it() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.progress(worker("w1"), id, Bytes::from_static(b"50")).await.unwrap();
    let seen = demo.status(id).await.unwrap();
    assert_eq!((seen.row.state, output(&seen)), (JobState::InProgress, "50"));
}

#[tokio::test]
async fn whoever_cancels_is_told_of_the_end_and_not_of_the_retry_after_it() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let failed = Outcome::Failed { error: "no".to_owned(), output: None };
    demo.report(worker("w1"), id, failed).await.unwrap();
    let demo = restarted(&disks).await;
    let (cancelled, retried) = tokio::join!(demo.cancel(id), demo.retry(id));
    assert_eq!((cancelled.unwrap().state, retried.unwrap().state), (JobState::Failed, JobState::InQueue));
}
