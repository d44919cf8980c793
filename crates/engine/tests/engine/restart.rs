//! Jobs, results and tokens after a restart.

use longshore_model::JobState;

use crate::harness::{Disks, done, job, one_endpoint, output, take, worker};

#[tokio::test]
async fn queued_running_and_completed_jobs_survive_a_restart() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(demo.jobs().submit(job(&first, &format!("{{\"n\":{n}}}"))).await.unwrap().id);
    }
    take(&demo, "w1", 0).await;
    take(&demo, "w1", 0).await;
    done(&demo, "w1", ids[0], "\"zero\"").await;

    let second = disks.start().await;
    let demo = second.endpoint("demo").unwrap();
    let finished = demo.jobs().status(ids[0]).await.unwrap();
    assert_eq!((finished.row.state, output(&finished)), (JobState::Completed, "\"zero\""));
    // The worker's job stays running.
    assert_eq!(demo.jobs().status(ids[1]).await.unwrap().row.state, JobState::InProgress);
    done(&demo, "w1", ids[1], "1").await;
    let record = demo.jobs().status(ids[1]).await.unwrap();
    assert_eq!((record.row.state, record.row.retries), (JobState::Completed, 0));
    let taken = take(&demo, "w2", 0).await;
    assert_eq!(&taken[0].members[..], br#""input":{"n":2}"#);
    assert_eq!(demo.jobs().health().await.unwrap().counters.completed, 2);
}

#[tokio::test]
async fn an_engine_that_lost_its_shards_changes_nothing() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let second = disks.start().await;
    assert!(demo.jobs().submit(job(&first, "{}")).await.is_err());
    let demo = second.endpoint("demo").unwrap();
    assert_eq!(demo.jobs().health().await.unwrap().in_queue, 0);
    demo.jobs().submit(job(&second, "{}")).await.unwrap();
}

#[tokio::test]
async fn worker_tokens_survive_a_restart() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let id = demo.record().id;
    let token = first.worker_token(&id);
    let second = disks.start().await;
    let demo = second.endpoint("demo").unwrap();
    assert!(second.is_worker_token(&demo, &token, Some("w1")));
    assert!(!second.is_worker_token(&demo, &token[..token.len() - 1], None));
    assert!(!second.is_worker_token(&demo, &token.replace("lsw_", "ls_"), None));
    let foreign = second.worker_token(&longshore_model::EndpointId::mint(9));
    assert!(!second.is_worker_token(&demo, &foreign, None));
}

#[tokio::test]
async fn worker_leases_are_renewed_after_a_suspension() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 1_000).await;
    demo.workers().ping(worker("w1"), Some(vec![id])).await.unwrap();
    disks.clock.jump(60_000);
    let row = demo.jobs().status(id).await.unwrap().row;
    assert_eq!((row.state, row.retries), (JobState::InProgress, 0));
    // The actor has checked the worker leases before its second reply.
    let row = demo.jobs().status(id).await.unwrap().row;
    assert_eq!((row.state, row.retries), (JobState::InProgress, 0));
}
