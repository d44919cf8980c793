//! The memory budget of payloads that are read for clients and workers.

use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{EndpointError, EndpointHandle, Engine, Outcome, StreamFrom, TakeRequest, TakenJob};
use longshore_model::{JobId, JobState};

use crate::harness::{DEADLINE, Disks, done, eventually, job, one_endpoint, output, take, worker};

/// Size of a large payload in bytes. Payloads up to 64 KiB need no part of the budget.
const LARGE: usize = 100_000;

/// JSON that needs a part of the budget.
fn large() -> String {
    format!("\"{}\"", "x".repeat(LARGE - 20))
}

/// An engine with `count` queued jobs with large inputs, and a budget for three of them.
async fn with_large_jobs(disks: &mut Disks, count: usize) -> (Engine, EndpointHandle, Vec<JobId>) {
    disks.budget_bytes = 3 * LARGE;
    let (engine, demo) = one_endpoint(disks).await;
    let mut jobs = Vec::new();
    for _ in 0..count {
        jobs.push(demo.jobs().submit(job(&engine, &large())).await.unwrap().id);
    }
    (engine, demo, jobs)
}

async fn batch(demo: &EndpointHandle, name: &str, slots: u32, hold_ms: u64) -> Vec<TakenJob> {
    demo.workers()
        .take(worker(name), TakeRequest { slots, says_busy: None, hold_ms, address: None })
        .await
        .unwrap()
}

fn ids(jobs: &[TakenJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.row.id).collect()
}

#[tokio::test]
async fn a_take_gets_as_many_jobs_as_the_budget_allows_and_the_others_stay_queued() {
    let mut disks = Disks::new();
    let (_engine, demo, jobs) = with_large_jobs(&mut disks, 8).await;
    let first = batch(&demo, "w1", 10, 60_000).await;
    assert_eq!(ids(&first), jobs[..3]);
    for slots in [1, 10] {
        assert!(batch(&demo, "w2", slots, 50).await.is_empty(), "the budget is used up");
    }
    assert_eq!(demo.jobs().health().await.unwrap().in_queue, 5);
    let waiting = tokio::spawn({
        let demo = demo.clone();
        async move { batch(&demo, "w2", 10, 600_000).await }
    });
    tokio::task::yield_now().await;
    drop(first);
    let second = tokio::time::timeout(DEADLINE, waiting).await.unwrap().unwrap();
    let mut given = ids(&second);
    assert!(given[..] == jobs[3..3 + given.len()], "the parked take gets jobs when the budget is free");
    drop(second);
    while given.len() < 5 {
        given.extend(ids(&batch(&demo, "w3", 10, 60_000).await));
    }
    assert_eq!(given, jobs[3..]);
}

#[tokio::test]
async fn a_job_larger_than_the_budget_gets_all_of_it() {
    let mut disks = Disks::new();
    disks.budget_bytes = LARGE;
    let (engine, demo) = one_endpoint(&disks).await;
    let huge = format!("\"{}\"", "x".repeat(20 * LARGE));
    let first = demo.jobs().submit(job(&engine, &huge)).await.unwrap().id;
    let second = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    let taken = batch(&demo, "w1", 10, 60_000).await;
    assert_eq!(ids(&taken), [first]);
    assert_eq!(ids(&batch(&demo, "w2", 10, 60_000).await), [second], "a small payload needs no budget");
    done(&demo, "w1", first, &huge).await;
    assert_eq!(output(&demo.jobs().status(first).await.unwrap()), huge);
}

#[tokio::test]
async fn outputs_reserve_their_budget_before_the_read_and_return_it() {
    let mut disks = Disks::new();
    let (engine, demo, jobs) = with_large_jobs(&mut disks, 1).await;
    take(&demo, "w1", 60_000).await;
    done(&demo, "w1", jobs[0], &large()).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(demo.jobs().status(jobs[0]).await.unwrap());
    }
    let reads = disks.store.reads.load(std::sync::atomic::Ordering::SeqCst);
    assert!(matches!(demo.jobs().status(jobs[0]).await, Err(EndpointError::NoRoom)));
    assert_eq!(disks.store.reads.load(std::sync::atomic::Ordering::SeqCst), reads, "nothing was read");
    let small = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    take(&demo, "w1", 60_000).await;
    done(&demo, "w1", small, "7").await;
    assert_eq!(output(&demo.jobs().status(small).await.unwrap()), "7", "a small payload needs no budget");
    // A wait for the end also waits for the budget.
    let waiting = tokio::spawn({
        let (demo, job) = (demo.clone(), jobs[0]);
        async move { demo.jobs().wait(job, Duration::ZERO).await }
    });
    tokio::task::yield_now().await;
    let sent = seen.remove(0).output.unwrap();
    drop(seen.pop());
    assert_eq!(output(&waiting.await.unwrap().unwrap()), large());
    assert_eq!(sent.len(), large().len());
}

#[tokio::test]
async fn a_read_holds_its_part_of_the_budget_to_its_end_also_if_its_client_disconnects() {
    let mut disks = Disks::new();
    let (_engine, demo, jobs) = with_large_jobs(&mut disks, 1).await;
    take(&demo, "w1", 60_000).await;
    done(&demo, "w1", jobs[0], &large()).await;
    let reads = || disks.blobs.reads.load(std::sync::atomic::Ordering::SeqCst);
    let before = reads();
    disks.blobs.paused.send_replace(true);
    for count in 1..=3 {
        let demo = demo.clone();
        let id = jobs[0];
        let client = tokio::spawn(async move { demo.jobs().status(id).await });
        eventually(async || reads() == before + count).await;
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
    }
    let fourth = tokio::time::timeout(DEADLINE, demo.jobs().status(jobs[0])).await;
    assert!(matches!(fourth, Ok(Err(EndpointError::NoRoom))));
    assert_eq!(reads(), before + 3, "nothing is read without a part of the budget");
    disks.blobs.paused.send_replace(false);
    eventually(async || demo.jobs().status(jobs[0]).await.is_ok()).await;
}

#[tokio::test]
async fn a_page_of_a_stream_has_as_many_chunks_as_the_budget_allows() {
    let mut disks = Disks::new();
    disks.budget_bytes = 8_000_000;
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    take(&demo, "w1", 60_000).await;
    let chunks = (0..40).map(|_| Bytes::from(large()).into()).collect();
    demo.workers().append(worker("w1"), id, chunks).await.unwrap();
    let page =
        async |from| demo.jobs().read_stream(id, StreamFrom::Offset(from), Duration::ZERO).await.unwrap();
    let first = page(0).await;
    assert!((2..40).contains(&first.chunks.len()) && first.more, "{}", first.chunks.len());
    let (mut pages, mut next) = (vec![first], 0);
    while pages.len() < 200 {
        let Ok(page) = demo.jobs().read_stream(id, StreamFrom::Offset(0), Duration::ZERO).await else {
            break;
        };
        pages.push(page);
    }
    assert!(pages.len() < 200, "the budget is used up");
    pages.clear();
    while next < 40 {
        let page = page(next).await;
        assert_eq!(page.chunks[0].offset, next);
        next += page.chunks.len() as u64;
        assert_eq!(page.more, next < 40);
    }
}

#[tokio::test]
async fn a_long_error_is_cut_and_a_long_progress_value_dropped() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "1")).await.unwrap().id;
    take(&demo, "w1", 60_000).await;
    demo.workers().progress(worker("w1"), id, Bytes::from_static(b"\"half\"")).await.unwrap();
    let long = format!("\"{}\"", "x".repeat(1_000_000));
    demo.workers().progress(worker("w1"), id, Bytes::from(long)).await.unwrap();
    assert_eq!(output(&demo.jobs().status(id).await.unwrap()), "\"half\"", "the last value stays");
    let outcome = Outcome::Failed { error: "e".repeat(5_000_000), output: None };
    demo.workers().report(worker("w1"), id, outcome).await.unwrap();
    let failed = demo.jobs().status(id).await.unwrap();
    let error = failed.error.unwrap();
    assert_eq!(failed.row.state, JobState::Failed);
    assert!(
        error.len() < 1_000_100 && error.ends_with("the whole error has 5000000 bytes)"),
        "{}",
        error.len()
    );
}
