//! Chunks: durable, ordered, drained once.

use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{EndpointHandle, StreamFrom, StreamPage};
use longshore_model::{JobId, JobState};

use crate::ground::{Disks, done, job, one_endpoint, take, worker};

async fn append(demo: &EndpointHandle, id: JobId, chunks: &[&'static str]) {
    let chunks = chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes())).collect();
    demo.append(worker("w1"), id, chunks).await.unwrap();
}

async fn read(demo: &EndpointHandle, id: JobId, from: StreamFrom) -> Vec<(u64, Bytes)> {
    let StreamPage { chunks, .. } = demo.read_stream(id, from, Duration::ZERO).await.unwrap();
    chunks.into_iter().map(|chunk| (chunk.offset, chunk.bytes)).collect()
}

fn numbered(from: u64, chunks: &[&'static str]) -> Vec<(u64, Bytes)> {
    (from..).zip(chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()))).collect()
}

#[tokio::test]
async fn chunks_are_numbered_drained_and_read_again_by_offset() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().row.id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["1", "2"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["1", "2"]));
    demo.drained(id, 2);
    append(&demo, id, &["3"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(2, &["3"]));
    assert_eq!(read(&demo, id, StreamFrom::Offset(1)).await, numbered(1, &["2", "3"]));
}

#[tokio::test]
async fn a_waiting_reader_hears_of_the_next_chunk_and_of_the_end() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().row.id;
    take(&demo, "w1", 0).await;
    let reader = |offset| {
        let demo = demo.clone();
        tokio::spawn(async move {
            demo.read_stream(id, StreamFrom::Offset(offset), Duration::from_secs(10)).await.unwrap()
        })
    };
    let first = reader(0);
    append(&demo, id, &["1"]).await;
    assert_eq!(first.await.unwrap().chunks.len(), 1);
    let second = reader(1);
    done(&demo, "w1", id, "[]").await;
    let page = second.await.unwrap();
    assert_eq!((page.chunks.len(), page.job.row.state, page.more), (0, JobState::Completed, false));
}

#[tokio::test]
async fn a_retried_job_drops_its_chunks_and_offsets_go_on_also_over_a_restart() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().row.id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["a", "b"]).await;
    let engine = {
        drop(engine);
        disks.start().await
    };
    let demo = engine.endpoint("demo").unwrap();
    append(&demo, id, &["c"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["a", "b", "c"]));
    demo.lose(worker("w1"), true, "gone".to_owned()).await.unwrap();
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, []);
    take(&demo, "w1", 0).await;
    append(&demo, id, &["d"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(3, &["d"]));
}
