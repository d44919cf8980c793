//! A disk that fails: no false acknowledgement, and service again when it works.

use std::time::Duration;

use longshore_engine::AskError;
use longshore_model::JobState;

use crate::ground::{Disks, done, eventually, job, one_endpoint, take};

#[tokio::test]
async fn a_submit_that_cannot_be_kept_is_refused_and_leaves_nothing() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let kept = demo.submit(job(&engine, "{}")).await.unwrap().row.id;
    disks.store.set_broken(true);
    let lost = job(&engine, "{}");
    let id = lost.id;
    assert!(matches!(demo.submit(lost).await, Err(AskError::Unavailable(_))));
    disks.store.set_broken(false);
    eventually(async || demo.status(kept).await.is_ok()).await;
    assert!(matches!(demo.status(id).await, Err(AskError::Refused(_))));
    assert_eq!(take(&demo, "w1", 5_000).await[0].row.id, kept);
}

#[tokio::test]
async fn a_wait_survives_a_failed_commit() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let waiting = tokio::spawn({
        let (demo, submission) = (demo.clone(), job(&engine, "{}"));
        async move { demo.submit_and_wait(submission, Duration::from_secs(20)).await.unwrap() }
    });
    let id = take(&demo, "w1", 10_000).await[0].row.id;
    disks.store.set_broken(true);
    let refused = demo.cancel(id).await;
    assert!(matches!(refused, Err(AskError::Unavailable(_))), "{refused:?}");
    disks.store.set_broken(false);
    eventually(async || demo.status(id).await.is_ok()).await;
    assert_eq!(demo.status(id).await.unwrap().row.state, JobState::InProgress, "the cancel did not happen");
    done(&demo, "w1", id, "7").await;
    assert_eq!(waiting.await.unwrap().row.state, JobState::Completed);
}
