//! Jobs from submit to deletion, on stores that work.

use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_blobs::Blobs;
use longshore_engine::{EndpointError, JobConditions, JobFilter, Outcome, Refusal, RetryReason};
use longshore_model::{EndpointNo, JobState};
use longshore_store::Store as _;

use crate::harness::{Disks, done, eventually, job, one_endpoint, output, take, worker};

#[tokio::test]
async fn a_job_is_submitted_taken_completed_and_read() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let accepted = demo.jobs().submit(job(&engine, r#"{"n":1.0}"#)).await.unwrap();
    assert_eq!(accepted.state, JobState::InQueue);
    let taken = take(&demo, "w1", 0).await;
    assert_eq!(&taken[0].members[..], br#""input":{"n":1.0}"#);
    done(&demo, "w1", accepted.id, "1e400").await;
    let record = demo.jobs().status(accepted.id).await.unwrap();
    assert_eq!((record.row.state, output(&record)), (JobState::Completed, "1e400"));
    let health = demo.jobs().health().await.unwrap();
    assert_eq!((health.counters.completed, health.in_queue, health.in_progress), (1, 0, 0));
    assert_eq!(health.workers.idle, 1);
}

#[tokio::test]
async fn ids_ascend_also_within_a_millisecond() {
    let (engine, _) = one_endpoint(&Disks::new()).await;
    let ids: Vec<_> = (0..10_000).map(|_| engine.mint_job(false)).collect();
    assert!(ids.is_sorted_by(|one, next| one < next));
}

#[tokio::test]
async fn a_parked_take_gets_the_job_in_the_commit_of_its_submit() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let parked = tokio::spawn({
        let demo = demo.clone();
        async move { take(&demo, "w1", 60_000).await }
    });
    eventually(async || demo.workers().fleet_view().await.unwrap().workers.len() == 1).await;
    let commits = || *engine.metrics().commit_us.snapshot().cumulative.last().unwrap();
    let before = commits();
    let accepted = demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    let taken = parked.await.unwrap();
    assert_eq!(taken[0].row.id, accepted.id);
    assert_eq!(commits() - before, 1, "submit and take are one commit");
}

#[tokio::test]
async fn runsync_returns_the_end_or_the_state_after_its_wait() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let waiting = tokio::spawn({
        let (demo, submission) = (demo.clone(), job(&engine, "{}"));
        async move { demo.jobs().submit_and_wait(submission, Duration::from_mins(1)).await.unwrap() }
    });
    let taken = take(&demo, "w1", 60_000).await;
    done(&demo, "w1", taken[0].row.id, "\"hi\"").await;
    let record = waiting.await.unwrap();
    assert_eq!((record.row.state, output(&record)), (JobState::Completed, "\"hi\""));
    let short = demo.jobs().submit_and_wait(job(&engine, "{}"), Duration::from_millis(20)).await.unwrap();
    assert_eq!(short.row.state, JobState::InQueue);
    assert_eq!(
        demo.jobs().wait(short.row.id, Duration::from_millis(20)).await.unwrap().row.state,
        JobState::InQueue
    );
}

#[tokio::test]
async fn cancelling_a_running_job_reaches_its_worker_by_the_stop_channel() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let stop = tokio::spawn({
        let demo = demo.clone();
        async move { demo.workers().stops(worker("w1"), Duration::from_secs(10)).await.unwrap() }
    });
    assert_eq!(demo.jobs().cancel(id).await.unwrap().state, JobState::Cancelled);
    assert_eq!(stop.await.unwrap(), [id]);
    // The result of a job that was cancelled changes nothing.
    done(&demo, "w1", id, "1").await;
    let record = demo.jobs().status(id).await.unwrap();
    assert_eq!((record.row.state, record.output), (JobState::Cancelled, None));
}

#[tokio::test]
async fn large_payloads_are_blobs_that_are_deleted_with_their_job() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let big = format!("\"{}\"", "x".repeat(5000));
    let id = demo.jobs().submit(job(&engine, &big)).await.unwrap().id;
    let taken = take(&demo, "w1", 0).await;
    assert_eq!(taken[0].members.len(), big.len() + r#""input":"#.len());
    done(&demo, "w1", id, &big).await;
    assert_eq!(output(&demo.jobs().status(id).await.unwrap()), big);
    assert_eq!(disks.blobs.list("1").await.unwrap().len(), 2);
    demo.jobs().set_ttl(id, 20).await.unwrap();
    let is_deleted =
        async || matches!(demo.jobs().status(id).await, Err(EndpointError::Refused(Refusal::NoSuchJob)));
    eventually(is_deleted).await;
    eventually(async || disks.blobs.list("1").await.unwrap().is_empty()).await;
}

#[tokio::test]
async fn a_progress_value_is_replaced_by_the_next_and_by_the_result() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 1_000).await;
    let value = |letter: &str| format!("\"{}\"", letter.repeat(5000));
    for letter in ["a", "b"] {
        demo.workers().progress(worker("w1"), id, value(letter).into()).await.unwrap();
        eventually(async || disks.blobs.list("1").await.unwrap().len() == 1).await;
        assert_eq!(output(&demo.jobs().status(id).await.unwrap()), value(letter));
    }
    done(&demo, "w1", id, &value("c")).await;
    eventually(async || disks.blobs.list("1").await.unwrap().len() == 1).await;
    assert_eq!(output(&demo.jobs().status(id).await.unwrap()), value("c"));
}

#[tokio::test]
async fn an_output_over_the_limit_fails_the_job_with_the_reason() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    done(&demo, "w1", id, &format!("\"{}\"", "x".repeat(10_000_000))).await;
    let record = demo.jobs().status(id).await.unwrap();
    assert_eq!((record.row.state, record.output), (JobState::Failed, None));
    assert!(record.error.unwrap().contains("the limit is 10000000"));
}

#[tokio::test]
async fn progress_is_shown_as_output_until_the_result() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.workers().progress(worker("w1"), id, "0.5".into()).await.unwrap();
    assert_eq!(output(&demo.jobs().status(id).await.unwrap()), "0.5");
    let failed = Outcome::Failed { error: "boom".to_owned(), output: None };
    demo.workers().report(worker("w1"), id, failed).await.unwrap();
    demo.workers().progress(worker("w1"), id, "0.9".into()).await.unwrap();
    let record = demo.jobs().status(id).await.unwrap();
    assert_eq!((record.row.state, record.output), (JobState::Failed, None));
    assert_eq!(record.error.as_deref(), Some("boom"));
}

#[tokio::test]
async fn a_purge_cancels_queued_jobs_and_a_list_pages_through_them() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    for _ in 0..600 {
        demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    }
    assert_eq!(demo.jobs().purge().await.unwrap(), 600);
    assert_eq!(demo.jobs().health().await.unwrap().in_queue, 0);
    let mut filter = JobFilter {
        conditions: JobConditions { states: vec![JobState::Cancelled], ..JobConditions::default() },
        limit: 250,
        before: None,
    };
    let mut seen = 0;
    loop {
        let page = demo.jobs().list(filter.clone()).await.unwrap();
        seen += page.jobs.len();
        filter.before = page.cursor;
        if page.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, 600);
    eventually(async || demo.jobs().health().await.unwrap().counters.cancelled == 600).await;
}

#[tokio::test]
async fn the_job_of_a_lost_worker_is_requeued_until_no_retry_is_left() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    for retries in 1..=3 {
        take(&demo, "w1", 0).await;
        demo.workers().lose(worker("w1"), true, "exit code 1".to_owned()).await.unwrap();
        let record = demo.jobs().status(id).await.unwrap();
        if retries < 3 {
            assert_eq!((record.row.state, record.row.retries), (JobState::InQueue, retries));
        } else {
            assert_eq!(record.row.state, JobState::Failed);
            assert!(record.error.unwrap().contains("exit code 1"));
        }
    }
    demo.jobs().retry(id).await.unwrap();
    let events = &demo.metrics().events;
    // Failed, lost, not delivered, by a client.
    assert_eq!(RetryReason::ALL.map(|reason| events.retries(reason)), [0, 2, 0, 1]);
}

#[tokio::test]
async fn an_external_worker_that_requested_its_replacement_can_take_again() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let parked = tokio::spawn({
        let demo = demo.clone();
        async move { take(&demo, "w1", 20_000).await }
    });
    eventually(async || demo.workers().fleet_view().await.unwrap().workers.len() == 1).await;
    demo.workers().request_replacement(worker("w1")).await.unwrap();
    assert!(parked.await.unwrap().is_empty(), "a worker that may exit gets no job");
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, id);
}

#[tokio::test]
async fn a_job_that_is_assigned_as_the_hold_ends_is_delivered() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_commit_ms(100);
    assert_eq!(take(&demo, "w1", 10).await[0].row.id, id);
    assert!(take(&demo, "w1", 10).await.is_empty());
}

/// A mass expiry is cut into slices, so that a submit waits for one slice at most.
#[tokio::test]
async fn a_mass_expiry_is_committed_slice_by_slice() {
    const JOBS: u64 = 10_000;
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    for _ in 0..JOBS {
        // After one poll the request is in the mailbox; its reply is not awaited.
        let mut submit = Box::pin(demo.jobs().submit(job(&engine, "{}")));
        let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(submit.as_mut().poll(cx))).await;
    }
    demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    disks.store.largest.store(0, Ordering::SeqCst);
    disks.store.set_commit_ms(20);
    disks.clock.jump(25 * 3_600_000);
    demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    eventually(async || disks.store.jobs(EndpointNo(1), 0, 2).await.unwrap().len() == 1).await;
    let largest = disks.store.largest.load(Ordering::SeqCst);
    assert!((256..500).contains(&largest), "{largest} writes in one batch");
}
