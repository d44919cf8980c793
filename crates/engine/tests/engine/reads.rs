//! Reads that fail, of all payloads or of one job: only the jobs concerned are affected.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_blobs::Blobs as _;
use longshore_engine::{
    EndpointError, EndpointHandle, Engine, JobConditions, JobFilter, StreamFrom, TakeRequest, TakenJob,
};
use longshore_model::{JobId, JobKey, JobState};
use longshore_store::StoreError;

use crate::harness::{DEADLINE, Disks, done, eventually, job, one_endpoint, output, take, worker};

/// JSON that is stored as a blob.
fn large() -> String {
    format!("\"{}\"", "x".repeat(2_000))
}

fn eio() -> StoreError {
    StoreError::Io("input/output error".to_owned())
}

/// An engine with queued jobs after a restart: their inputs are not cached.
async fn stored_jobs(disks: &Disks, count: usize) -> (Engine, EndpointHandle, Vec<JobId>) {
    let (engine, demo) = one_endpoint(disks).await;
    let mut jobs = Vec::new();
    for n in 0..count {
        jobs.push(demo.jobs().submit(job(&engine, &n.to_string())).await.unwrap().id);
    }
    drop((engine, demo));
    let engine = disks.start().await;
    let demo = engine.endpoint("demo").unwrap();
    (engine, demo, jobs)
}

/// The blob of a job's input.
async fn input_blob(disks: &Disks, job: JobId) -> String {
    let blobs = disks.blobs.list("1").await.unwrap();
    blobs.into_iter().find(|blob| blob.starts_with(&format!("1/{job}.input"))).unwrap()
}

async fn key(demo: &EndpointHandle, job: JobId) -> JobKey {
    demo.jobs().status(job).await.unwrap().row.key
}

async fn batch(demo: &EndpointHandle, slots: u32) -> Result<Vec<TakenJob>, EndpointError> {
    demo.workers()
        .take(worker("w1"), TakeRequest { slots, says_busy: Some(false), hold_ms: 30_000, address: None })
        .await
}

fn ids(jobs: &[TakenJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.row.id).collect()
}

#[tokio::test]
async fn a_missing_blob_fails_its_job_alone() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let mut jobs = Vec::new();
    for _ in 0..7 {
        jobs.push(demo.jobs().submit(job(&engine, &large())).await.unwrap().id);
    }
    let lost = jobs.remove(3);
    disks.blobs.delete(&input_blob(&disks, lost).await).await.unwrap();
    let taken = batch(&demo, 10).await.unwrap();
    assert_eq!(ids(&taken), jobs);
    for job in jobs {
        done(&demo, "w1", job, "7").await;
        let job = demo.jobs().status(job).await.unwrap();
        assert_eq!((job.row.state, job.row.retries), (JobState::Completed, 0));
    }
    eventually(async || demo.jobs().status(lost).await.unwrap().row.state == JobState::Failed).await;
    let error = demo.jobs().status(lost).await.unwrap().error.unwrap();
    assert!(error.contains("input is damaged on the server's disk"), "{error}");
}

#[tokio::test]
async fn a_blob_of_another_length_fails_its_job() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let cut = demo.jobs().submit(job(&engine, &large())).await.unwrap().id;
    let good = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    let blob = input_blob(&disks, cut).await;
    disks.blobs.put(&blob, Bytes::from_static(b"\"input\":1")).await.unwrap();
    assert_eq!(take(&demo, "w1", 60_000).await[0].row.id, good, "the take returns the next job");
    eventually(async || demo.jobs().status(cut).await.unwrap().row.state == JobState::Failed).await;
}

#[tokio::test]
async fn a_job_with_an_unreadable_input_is_requeued_and_the_others_are_delivered() {
    let disks = Disks::new();
    let (_engine, demo, jobs) = stored_jobs(&disks, 3).await;
    let bad = key(&demo, jobs[1]).await;
    disks.store.set_unreadable(bad, Some(eio()));
    assert_eq!(ids(&batch(&demo, 3).await.unwrap()), [jobs[0], jobs[2]]);
    eventually(async || demo.jobs().status(jobs[1]).await.unwrap().row.state == JobState::InQueue).await;
    disks.store.set_unreadable(bad, None);
    let later = take(&demo, "w2", 60_000).await;
    assert_eq!(ids(&later), [jobs[1]]);
    assert_eq!((later[0].row.retries, later[0].row.redeliveries), (0, 0), "the requeue counts nothing");
    done(&demo, "w2", jobs[1], "7").await;
    assert_eq!(demo.jobs().status(jobs[1]).await.unwrap().row.state, JobState::Completed);
}

#[tokio::test]
async fn an_unreadable_disk_fails_no_job_and_is_retried_at_intervals() {
    let disks = Disks::new();
    let (_engine, demo, jobs) = stored_jobs(&disks, 10).await;
    disks.store.set_all_unreadable(true);
    let before = disks.store.inputs.load(Ordering::SeqCst);
    let began = Instant::now();
    let mut unreadable = 0;
    while began.elapsed() < Duration::from_millis(1_500) {
        // The worker sends its next take immediately.
        let request = TakeRequest { slots: 2, says_busy: Some(false), hold_ms: 100, address: None };
        match demo.workers().take(worker("w1"), request).await {
            Err(EndpointError::Unreadable(_)) => unreadable += 1,
            other => assert_eq!(other.unwrap().len(), 0),
        }
    }
    assert!(unreadable > 0, "takes return the error");
    let reads = disks.store.inputs.load(Ordering::SeqCst) - before;
    assert!(reads <= 40, "each job is read at 0 and 1 s: {reads} reads");
    disks.store.set_all_unreadable(false);
    for _ in 0..10 {
        let taken = take(&demo, "w1", 60_000).await;
        assert_eq!((taken[0].row.retries, taken[0].row.redeliveries), (0, 0));
        done(&demo, "w1", taken[0].row.id, "7").await;
    }
    for job in jobs {
        assert_eq!(demo.jobs().status(job).await.unwrap().row.state, JobState::Completed);
    }
}

#[tokio::test]
async fn an_undelivered_job_is_requeued_also_while_commits_fail() {
    let disks = Disks::new();
    let (_engine, demo, jobs) = stored_jobs(&disks, 2).await;
    let bad = key(&demo, jobs[0]).await;
    disks.store.set_unreadable(bad, Some(eio()));
    disks.store.set_held(true);
    let taking = tokio::spawn({
        let demo = demo.clone();
        async move { batch(&demo, 2).await }
    });
    let before = disks.store.commits.load(Ordering::SeqCst);
    eventually(async || disks.store.commits.load(Ordering::SeqCst) > before).await;
    disks.store.set_broken(true);
    disks.store.set_held(false);
    assert_eq!(ids(&taking.await.unwrap().unwrap()), [jobs[1]], "the readable job is delivered");
    eventually(async || disks.store.commits.load(Ordering::SeqCst) > before + 1).await;
    disks.store.set_unreadable(bad, None);
    disks.store.set_broken(false);
    let later = async || {
        let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 1_000, address: None };
        demo.workers().take(worker("w2"), request).await.is_ok_and(|taken| ids(&taken) == [jobs[0]])
    };
    eventually(later).await;
}

#[tokio::test]
async fn an_unreadable_output_is_an_error_and_no_empty_output() {
    let disks = Disks::new();
    let (_engine, demo, jobs) = stored_jobs(&disks, 2).await;
    for result in ["7", &large()] {
        let id = take(&demo, "w1", 60_000).await[0].row.id;
        demo.workers().append(worker("w1"), id, vec![Bytes::from_static(b"1").into()]).await.unwrap();
        done(&demo, "w1", id, result).await;
    }
    let (small, large) = (jobs[0], jobs[1]);
    let bad = key(&demo, small).await;
    drop(demo);
    let engine = disks.start().await;
    let demo = engine.endpoint("demo").unwrap();

    disks.store.set_unreadable(bad, Some(eio()));
    assert!(matches!(demo.jobs().status(small).await, Err(EndpointError::Unreadable(_))));
    assert!(matches!(demo.jobs().wait(small, DEADLINE).await, Err(EndpointError::Unreadable(_))));
    let stream = demo.jobs().read_stream(small, StreamFrom::Offset(0), Duration::ZERO).await;
    assert!(matches!(stream, Err(EndpointError::Unreadable(_))), "{stream:?}");
    let page = demo
        .jobs()
        .list(JobFilter { conditions: JobConditions::default(), limit: 9, before: None })
        .await
        .unwrap();
    assert_eq!(page.jobs.len(), 2, "a list shows the other job");
    assert!(page.jobs[1].error.as_deref().unwrap().contains("cannot be read"), "{page:?}");
    disks.store.set_unreadable(bad, Some(StoreError::Corrupt("byte 7".to_owned())));
    assert!(matches!(demo.jobs().status(small).await, Err(EndpointError::Damaged(_))));
    disks.store.set_unreadable(bad, None);
    assert_eq!(output(&demo.jobs().status(small).await.unwrap()), "7");

    for file in disks.blobs.list("1").await.unwrap() {
        if file.contains(".output.") {
            disks.blobs.delete(&file).await.unwrap();
        }
    }
    assert!(matches!(demo.jobs().status(large).await, Err(EndpointError::Damaged(_))));
}

#[tokio::test]
async fn chunks_can_be_appended_after_a_damaged_one() {
    let disks = Disks::new();
    let (_engine, demo, jobs) = stored_jobs(&disks, 1).await;
    let id = take(&demo, "w1", 60_000).await[0].row.id;
    demo.workers().append(worker("w1"), id, vec![Bytes::from_static(b"1").into()]).await.unwrap();
    let bad = key(&demo, jobs[0]).await;
    drop(demo);
    let engine = disks.start().await;
    let demo = engine.endpoint("demo").unwrap();
    disks.store.set_unreadable(bad, Some(eio()));
    let next = || vec![Bytes::from_static(b"2").into()];
    let refused = demo.workers().append(worker("w1"), id, next()).await;
    assert!(matches!(refused, Err(EndpointError::Unreadable(_))), "{refused:?}");
    disks.store.set_unreadable(bad, Some(StoreError::Corrupt("byte 7".to_owned())));
    demo.workers().append(worker("w1"), id, next()).await.unwrap();
    let stream = demo.jobs().read_stream(id, StreamFrom::Offset(0), Duration::ZERO).await;
    assert!(matches!(stream, Err(EndpointError::Damaged(_))), "{stream:?}");
    disks.store.set_unreadable(bad, None);
    let page = demo.jobs().read_stream(id, StreamFrom::Offset(0), Duration::ZERO).await.unwrap();
    let outputs: Vec<_> = page.chunks.iter().map(|chunk| &chunk.chunk.output[..]).collect();
    assert_eq!(outputs, [b"1", b"2"]);
}

#[tokio::test]
async fn a_job_whose_worker_disconnects_before_its_input_is_read_goes_to_the_next_worker() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let expected = demo.jobs().submit(job(&engine, &large())).await.unwrap().id;
    drop((engine, demo));
    let engine = disks.start().await;
    let demo = engine.endpoint("demo").unwrap();
    disks.blobs.paused.send_replace(true);
    let before = disks.blobs.reads.load(Ordering::SeqCst);
    let gone = tokio::spawn({
        let demo = demo.clone();
        async move { take(&demo, "gone", 30_000).await }
    });
    eventually(async || disks.blobs.reads.load(Ordering::SeqCst) > before).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    disks.blobs.paused.send_replace(false);
    let taken = take(&demo, "present", 30_000).await;
    assert_eq!(ids(&taken), [expected]);
    assert_eq!(taken[0].row.retries, 0);
}

#[tokio::test]
async fn a_job_whose_worker_disconnects_before_it_reads_the_reply_goes_to_the_next_worker() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let gone = demo.workers().take(
        worker("gone"),
        TakeRequest { slots: 1, says_busy: Some(false), hold_ms: 30_000, address: None },
    );
    let mut gone = Box::pin(gone);
    assert!(tokio::time::timeout(Duration::ZERO, &mut gone).await.is_err(), "it is parked");
    let expected = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    eventually(async || demo.jobs().status(expected).await.unwrap().row.state == JobState::InProgress).await;
    drop(gone);
    let taken = take(&demo, "present", 30_000).await;
    assert_eq!(ids(&taken), [expected]);
    assert_eq!(taken[0].row.retries, 0);
}

#[tokio::test]
async fn a_job_whose_worker_disconnects_before_the_delivery_is_durable_goes_to_the_next_worker() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let expected = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    disks.store.set_held(true);
    let before = disks.store.commits.load(Ordering::SeqCst);
    let request = TakeRequest { slots: 1, says_busy: Some(false), hold_ms: 30_000, address: None };
    let mut gone = Box::pin(demo.workers().take(worker("gone"), request));
    assert!(tokio::time::timeout(Duration::ZERO, &mut gone).await.is_err(), "it waits for the commit");
    eventually(async || disks.store.commits.load(Ordering::SeqCst) > before).await;
    drop(gone);
    disks.store.set_held(false);
    let taken = take(&demo, "present", 30_000).await;
    assert_eq!(ids(&taken), [expected]);
    assert_eq!(taken[0].row.retries, 0);
}
