//! Jobs, results and tokens after a restart.

use longshore_blobs::Blobs as _;
use longshore_engine::{Chunk, EndpointHandle, Engine};
use longshore_fleet::CauseCode;
use longshore_model::{AttemptEnd, Durability, Endpoint, EndpointNo, JobState, Millis};
use longshore_store::Store as _;

use crate::harness::{Disks, done, endpoint, eventually, job, one_endpoint, output, take, template, worker};

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
async fn ended_attempts_and_the_reason_of_a_retry_survive_a_restart() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&first, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    demo.workers().lose(worker("w1"), true, "exit code 137".to_owned()).await.unwrap();

    let second = disks.start().await;
    let demo = second.endpoint("demo").unwrap();
    let row = demo.jobs().status(id).await.unwrap().row;
    let attempts = demo.jobs().ended_attempts(&row).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].n, attempts[0].end), (row.attempt, AttemptEnd::WorkerLost));
    assert_eq!((attempts[0].worker.clone(), &*attempts[0].reason), (Some(worker("w1")), "exit code 137"));
    let explanation = second.explain(&demo, Some(id), &|_| true).await.unwrap();
    let retrying = explanation.also.iter().find(|cause| cause.code == CauseCode::Retrying).unwrap();
    assert!(retrying.text.contains("exit code 137"), "{}", retrying.text);
}

/// An engine with the endpoint `demo`, whose commits are buffered.
async fn one_buffered_endpoint(disks: &Disks) -> (Engine, EndpointHandle) {
    let engine = disks.start().await;
    let template = engine.catalog().create_template(template("t")).await.unwrap();
    let record = Endpoint { durability: Durability::Buffered, ..endpoint(template.id, "demo") };
    let record = engine.create_endpoint(record).await.unwrap();
    let handle = engine.endpoint(record.id.as_str()).unwrap();
    (engine, handle)
}

/// The number of payload files, once it is the expected one.
async fn wait_for_files(disks: &Disks, count: usize) {
    eventually(async || disks.blobs.list("1").await.unwrap().len() == count).await;
}

#[tokio::test]
async fn a_power_cut_brings_back_no_value_whose_file_was_deleted() {
    let disks = Disks::new();
    let (engine, demo) = one_buffered_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let value = |letter: &str| format!("\"{}\"", letter.repeat(2_000));
    for letter in ["a", "b"] {
        demo.workers().progress(worker("w1"), id, value(letter).into()).await.unwrap();
        // Catalogs are synced, and everything before with them.
        engine.catalog().create_template(template(letter)).await.unwrap();
    }
    demo.workers().progress(worker("w1"), id, value("c").into()).await.unwrap();
    wait_for_files(&disks, 1).await;
    let restarted = disks.after_power_cut().start().await;
    let shown = restarted.endpoint("demo").unwrap().jobs().status(id).await.unwrap();
    assert_eq!(output(&shown), value("c"));
}

#[tokio::test]
async fn a_power_cut_brings_back_no_job_whose_file_was_deleted() {
    let disks = Disks::new();
    let (engine, demo) = one_buffered_endpoint(&disks).await;
    let large = format!("\"{}\"", "x".repeat(2_000));
    let id = demo.jobs().submit(job(&engine, &large)).await.unwrap().id;
    engine.catalog().create_template(template("u")).await.unwrap();
    wait_for_files(&disks, 1).await;
    disks.clock.jump(8 * 24 * 3_600_000);
    // A request wakes the queue, whose timers do not know of the jump.
    assert!(demo.jobs().status(id).await.is_err());
    wait_for_files(&disks, 0).await;
    let after = disks.after_power_cut();
    assert_eq!(after.store.jobs(EndpointNo(1), 0, 10).await.unwrap(), []);
}

#[tokio::test]
async fn the_size_of_a_stream_and_the_time_of_its_first_chunk_survive_a_restart() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&first, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let none = demo.jobs().stream_size(id).await.unwrap();
    assert_eq!((none.chunks, none.bytes), (0, 0));
    for output in ["\"one\"", "\"three\""] {
        let chunk = Chunk { output: output.into(), ..Chunk::default() };
        demo.workers().append(worker("w1"), id, vec![chunk]).await.unwrap();
    }
    let (size, row) = (demo.jobs().stream_size(id).await.unwrap(), demo.jobs().status(id).await.unwrap().row);
    assert_eq!((size.chunks, size.bytes), (2, 12));
    assert!(row.first_chunk_at >= row.started_at);

    let second = disks.start().await;
    let demo = second.endpoint("demo").unwrap();
    assert_eq!(demo.jobs().stream_size(id).await.unwrap(), size);
    assert_eq!(demo.jobs().status(id).await.unwrap().row.first_chunk_at, row.first_chunk_at);
    // A further attempt begins without chunks.
    demo.workers().lose(worker("w1"), true, "exit code 1".to_owned()).await.unwrap();
    let size = demo.jobs().stream_size(id).await.unwrap();
    assert_eq!((size.chunks, size.bytes), (2, 0));
    assert_eq!(demo.jobs().status(id).await.unwrap().row.first_chunk_at, Millis(0));
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
