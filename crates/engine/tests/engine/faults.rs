//! Commits that fail: no false acknowledgement, and service again when commits succeed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_blobs::Blobs as _;
use longshore_engine::{
    Accepted, CatalogError, EndpointError, EndpointHandle, Outcome, Submission, TakeRequest,
};
use longshore_model::{EndpointNo, Idempotency, JobId, JobState};
use longshore_store::Store as _;
use tokio::task::JoinHandle;

use crate::harness::{DEADLINE, Disks, done, eventually, job, one_endpoint, take, worker};

/// Waits until commits succeed and the pause after the reload is over.
async fn until_writable(endpoint: &EndpointHandle, job: JobId) {
    eventually(async || endpoint.jobs().set_ttl(job, 600_000).await.is_ok()).await;
}

#[tokio::test]
async fn a_submit_whose_commit_fails_is_an_error_and_leaves_no_job() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let lost = job(&engine, "{}");
    let id = lost.id;
    assert!(matches!(
        demo.jobs().submit(lost).await,
        Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))
    ));
    disks.store.set_broken(false);
    until_writable(&demo, kept).await;
    assert!(matches!(demo.jobs().status(id).await, Err(EndpointError::Refused(_))));
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, kept);
}

/// The row may be on the disk and reappear after a power cut. Then its input must be there.
#[tokio::test]
async fn the_file_of_a_large_input_outlives_a_failed_commit_until_the_next_start() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let lost = demo.jobs().submit(job(&engine, &format!("\"{}\"", "x".repeat(5000)))).await;
    assert!(matches!(lost, Err(EndpointError::CommitFailed(_))), "{lost:?}");
    disks.store.set_broken(false);
    until_writable(&demo, kept).await;
    assert_eq!(disks.blobs.list("1").await.unwrap().len(), 1);
    drop((engine, demo));
    let _restarted = disks.start().await;
    eventually(async || disks.blobs.list("1").await.unwrap().is_empty()).await;
}

#[tokio::test]
async fn a_rejection_that_depends_on_a_failed_commit_is_not_returned() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let keyed = |input: &str, fingerprint| {
        let idempotency = Some(Box::new(Idempotency { key: "once".into(), fingerprint: [fingerprint; 16] }));
        Submission { idempotency, ..job(&engine, input) }
    };
    disks.store.set_broken(true);
    let (first, second) = tokio::join!(demo.jobs().submit(keyed("1", 1)), demo.jobs().submit(keyed("2", 2)));
    assert!(
        matches!(first, Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))),
        "{first:?}"
    );
    assert!(
        matches!(second, Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))),
        "there is no first job: {second:?}"
    );
}

#[tokio::test]
async fn reads_are_served_while_commits_fail() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    for _ in 0..5 {
        assert!(matches!(
            demo.jobs().submit(job(&engine, "{}")).await,
            Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))
        ));
        assert_eq!(demo.jobs().status(kept).await.unwrap().row.state, JobState::InQueue);
        let seen = demo.jobs().wait(kept, Duration::from_millis(1)).await.unwrap();
        assert_eq!(seen.row.state, JobState::InQueue);
    }
    disks.store.set_broken(false);
    until_writable(&demo, kept).await;
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, kept);
}

#[tokio::test]
async fn a_wait_survives_a_failed_commit() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let waiting = tokio::spawn({
        let (demo, submission) = (demo.clone(), job(&engine, "{}"));
        async move { demo.jobs().submit_and_wait(submission, Duration::from_mins(10)).await.unwrap() }
    });
    let id = take(&demo, "w1", 60_000).await[0].row.id;
    disks.store.set_broken(true);
    let refused = demo.jobs().cancel(id).await;
    assert!(
        matches!(refused, Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))),
        "{refused:?}"
    );
    disks.store.set_broken(false);
    until_writable(&demo, id).await;
    assert_eq!(
        demo.jobs().status(id).await.unwrap().row.state,
        JobState::InProgress,
        "the cancel did not happen"
    );
    done(&demo, "w1", id, "7").await;
    assert_eq!(waiting.await.unwrap().row.state, JobState::Completed);
}

#[tokio::test]
async fn a_parked_take_gets_the_job_of_a_take_whose_commit_failed() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let refused = async {
        let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 600_000, address: None };
        assert!(matches!(
            demo.workers().take(worker("w1"), request).await,
            Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))
        ));
        disks.store.set_broken(false);
    };
    let parked = tokio::time::timeout(DEADLINE, take(&demo, "w2", 600_000));
    let ((), taken) = tokio::join!(refused, parked);
    assert_eq!(taken.expect("the take gets the job before its hold ends")[0].row.id, id);
}

#[tokio::test]
async fn a_deletion_is_finished_after_a_failed_commit() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    let no = demo.record().no;
    engine.delete_endpoint("demo", false, |_| true).await.unwrap();
    disks.store.set_broken(true);
    eventually(async || engine.metrics().commits_failed() > 0).await;
    disks.store.set_broken(false);
    eventually(async || disks.store.catalog().await.unwrap().endpoints.is_empty()).await;
    assert_eq!(disks.store.jobs(no, 0, 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn an_endpoint_whose_deletion_the_disk_refused_delivers_jobs_as_before() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_broken(true);
    let refused = engine.delete_endpoint("demo", true, |_| true).await;
    assert!(matches!(refused, Err(CatalogError::Store(_))), "{refused:?}");
    disks.store.set_broken(false);
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, id);
}

#[tokio::test]
async fn a_result_whose_commit_failed_is_never_shown() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 60_000).await;
    disks.store.set_broken(true);
    // As many as one round has, so that the last replies are sent while the commit of the result is in flight.
    let queries: Vec<_> = (0..256)
        .map(|_| {
            let demo = demo.clone();
            tokio::spawn(async move { demo.jobs().status(id).await })
        })
        .collect();
    let finish = tokio::spawn({
        let (demo, output) = (demo.clone(), Some("7".into()));
        async move { demo.workers().report(worker("w1"), id, Outcome::Completed { output }).await }
    });
    let refused = finish.await.unwrap();
    assert!(
        matches!(refused, Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))),
        "{refused:?}"
    );
    for query in queries {
        if let Ok(seen) = query.await.unwrap() {
            assert_eq!((seen.row.state, seen.output), (JobState::InProgress, None));
        }
    }
}

/// Begins a submit and waits until its commit began.
async fn begin_submit(
    disks: &Disks,
    demo: &EndpointHandle,
    job: Submission,
) -> JoinHandle<Result<Accepted, EndpointError>> {
    let before = disks.store.commits.load(Ordering::SeqCst);
    let demo = demo.clone();
    let submit = tokio::spawn(async move { demo.jobs().submit(job).await });
    eventually(async || disks.store.commits.load(Ordering::SeqCst) == before + 1).await;
    submit
}

/// Commits are in flight concurrently, so that a client does not wait for the sync of another one's submit.
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
async fn a_commit_after_a_failed_one_of_its_chain_fails_too() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    disks.store.set_held(true);
    disks.store.set_broken(true);
    let first = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    disks.store.set_broken(false);
    let second = begin_submit(&disks, &demo, job(&engine, "{}")).await;
    disks.store.set_held(false);
    for refused in [first, second] {
        let refused = refused.await.unwrap();
        assert!(
            matches!(refused, Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))),
            "{refused:?}"
        );
    }
    until_writable(&demo, kept).await;
    let stored = disks.store.jobs(EndpointNo(1), 0, 9).await.unwrap();
    assert_eq!(stored.iter().map(|row| row.id).collect::<Vec<_>>(), [kept]);
}

#[tokio::test]
async fn a_fault_of_the_store_is_known_until_it_can_write_again() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    assert_eq!(engine.store_fault().await, None);
    disks.store.set_broken(true);
    assert!(matches!(
        demo.jobs().submit(job(&engine, "{}")).await,
        Err(EndpointError::Unavailable(_) | EndpointError::CommitFailed(_))
    ));
    let fault = engine.store_fault().await.unwrap();
    assert!(fault.contains("the disk is full"), "{fault}");
    disks.store.set_broken(false);
    // No client writes: the question finds out by itself.
    eventually(async || engine.store_fault().await.is_none()).await;
}
