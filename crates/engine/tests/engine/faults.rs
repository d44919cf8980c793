//! A disk that fails: no false acknowledgement, and service again when it works.

use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_engine::{Accepted, EndpointError, EndpointHandle, Outcome, Submission, TakeRequest};
use longshore_model::{EndpointNo, Idempotency, JobId, JobState};
use longshore_store::Store as _;
use tokio::task::JoinHandle;

use crate::harness::{DEADLINE, Disks, done, eventually, job, one_endpoint, take, worker};

/// The disk works, and its pause is over.
async fn until_changes_are_kept(endpoint: &EndpointHandle, job: JobId) {
    eventually(async || endpoint.set_ttl(job, 600_000).await.is_ok()).await;
}

#[tokio::test]
async fn a_submit_that_cannot_be_kept_is_refused_and_leaves_nothing() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let lost = job(&engine, "{}");
    let id = lost.id;
    assert!(matches!(demo.submit(lost).await, Err(EndpointError::Unavailable(_))));
    disks.store.set_broken(false);
    until_changes_are_kept(&demo, kept).await;
    assert!(matches!(demo.status(id).await, Err(EndpointError::Refused(_))));
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, kept);
}

#[tokio::test]
async fn a_refusal_that_rests_on_what_cannot_be_kept_is_none() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let keyed = |input: &str, fingerprint| {
        let idempotency = Some(Box::new(Idempotency { key: "once".into(), fingerprint: [fingerprint; 16] }));
        Submission { idempotency, ..job(&engine, input) }
    };
    disks.store.set_broken(true);
    let (first, second) = tokio::join!(demo.submit(keyed("1", 1)), demo.submit(keyed("2", 2)));
    assert!(matches!(first, Err(EndpointError::Unavailable(_))), "{first:?}");
    assert!(matches!(second, Err(EndpointError::Unavailable(_))), "there is no first job: {second:?}");
}

#[tokio::test]
async fn who_only_looks_is_answered_while_the_disk_refuses_every_change() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    for _ in 0..5 {
        assert!(matches!(demo.submit(job(&engine, "{}")).await, Err(EndpointError::Unavailable(_))));
        assert_eq!(demo.status(kept).await.unwrap().row.state, JobState::InQueue);
        let seen = demo.wait(kept, Duration::from_millis(1)).await.unwrap();
        assert_eq!(seen.row.state, JobState::InQueue);
    }
    disks.store.set_broken(false);
    until_changes_are_kept(&demo, kept).await;
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, kept);
}

#[tokio::test]
async fn a_wait_survives_a_failed_commit() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let waiting = tokio::spawn({
        let (demo, submission) = (demo.clone(), job(&engine, "{}"));
        async move { demo.submit_and_wait(submission, Duration::from_mins(10)).await.unwrap() }
    });
    let id = take(&demo, "w1", 60_000).await[0].row.id;
    disks.store.set_broken(true);
    let refused = demo.cancel(id).await;
    assert!(matches!(refused, Err(EndpointError::Unavailable(_))), "{refused:?}");
    disks.store.set_broken(false);
    until_changes_are_kept(&demo, id).await;
    assert_eq!(demo.status(id).await.unwrap().row.state, JobState::InProgress, "the cancel did not happen");
    done(&demo, "w1", id, "7").await;
    assert_eq!(waiting.await.unwrap().row.state, JobState::Completed);
}

#[tokio::test]
async fn a_poll_that_stayed_open_gets_the_job_that_another_one_lost_to_the_disk() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let refused = async {
        let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 600_000 };
        assert!(matches!(demo.take(worker("w1"), ask).await, Err(EndpointError::Unavailable(_))));
        disks.store.set_broken(false);
    };
    let began = std::time::Instant::now();
    let ((), taken) = tokio::join!(refused, take(&demo, "w2", 600_000));
    assert_eq!(taken[0].row.id, id);
    assert!(began.elapsed() < DEADLINE, "it was given the job only at the end of its hold");
}

#[tokio::test]
async fn a_deletion_that_the_disk_interrupted_is_finished() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    demo.submit(job(&engine, "{}")).await.unwrap();
    let no = demo.record().no;
    engine.delete_endpoint("demo", false).await.unwrap();
    disks.store.set_broken(true);
    eventually(async || engine.metrics().commits_failed() > 0).await;
    disks.store.set_broken(false);
    eventually(async || disks.store.catalog().await.unwrap().endpoints.is_empty()).await;
    assert_eq!(disks.store.jobs(no, 0, 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_result_that_the_disk_refused_was_never_seen() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 60_000).await;
    disks.store.set_broken(true);
    // So many that the last of them are answered while the result is on its way to the disk.
    let looks: Vec<_> = (0..256)
        .map(|_| {
            let demo = demo.clone();
            tokio::spawn(async move { demo.status(id).await })
        })
        .collect();
    let finish = tokio::spawn({
        let (demo, output) = (demo.clone(), Some("7".into()));
        async move { demo.report(worker("w1"), id, Outcome::Completed { output }).await }
    });
    let refused = finish.await.unwrap();
    assert!(matches!(refused, Err(EndpointError::Unavailable(_))), "{refused:?}");
    for look in looks {
        if let Ok(seen) = look.await.unwrap() {
            assert_eq!((seen.row.state, seen.output), (JobState::InProgress, None));
        }
    }
}

/// Hands a submit over, and waits until the store has its commit.
async fn begin_submit(
    disks: &Disks,
    demo: &EndpointHandle,
    job: Submission,
) -> JoinHandle<Result<Accepted, EndpointError>> {
    let before = disks.store.commits.load(Ordering::SeqCst);
    let demo = demo.clone();
    let submit = tokio::spawn(async move { demo.submit(job).await });
    eventually(async || disks.store.commits.load(Ordering::SeqCst) == before + 1).await;
    submit
}

/// Few clients would otherwise spend most of their time behind each other's syncs.
#[tokio::test]
async fn a_commit_does_not_wait_for_the_one_before() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    disks.store.set_held(true);
    let first = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    let second = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    disks.store.set_held(false);
    let ids = [first.await.unwrap().unwrap().id, second.await.unwrap().unwrap().id];
    for id in ids {
        assert_eq!(take(&demo, "w1", 5_000).await[0].row.id, id);
    }
}

#[tokio::test]
async fn what_was_committed_behind_a_failure_is_refused_with_it() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_held(true);
    disks.store.set_broken(true);
    let first = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    disks.store.set_broken(false);
    let second = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    disks.store.set_held(false);
    for refused in [first, second] {
        let refused = refused.await.unwrap();
        assert!(matches!(refused, Err(EndpointError::Unavailable(_))), "{refused:?}");
    }
    until_changes_are_kept(&demo, kept).await;
    let stored = disks.store.jobs(EndpointNo(1), 0, 9).await.unwrap();
    assert_eq!(stored.iter().map(|row| row.id).collect::<Vec<_>>(), [kept]);
}
