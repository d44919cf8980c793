//! Chunks: durable, ordered, drained once.

use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{EndpointHandle, FollowEvent, Follower, StreamFrom, StreamPage};
use longshore_model::{JobId, JobState};

use crate::harness::{Disks, done, job, one_endpoint, take, worker};

async fn append(demo: &EndpointHandle, id: JobId, chunks: &[&'static str]) {
    let chunks = chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()).into()).collect();
    demo.append(worker("w1"), id, chunks).await.unwrap();
}

async fn read(demo: &EndpointHandle, id: JobId, from: StreamFrom) -> Vec<(u64, Bytes)> {
    let StreamPage { chunks, .. } = demo.read_stream(id, from, Duration::ZERO).await.unwrap();
    chunks.into_iter().map(|chunk| (chunk.offset, chunk.chunk.output)).collect()
}

fn numbered(from: u64, chunks: &[&'static str]) -> Vec<(u64, Bytes)> {
    (from..).zip(chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()))).collect()
}

#[tokio::test]
async fn chunks_are_numbered_drained_and_read_again_by_offset() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["1", "2"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["1", "2"]));
    demo.consume(id, 2);
    append(&demo, id, &["3"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(2, &["3"]));
    assert_eq!(read(&demo, id, StreamFrom::Offset(1)).await, numbered(1, &["2", "3"]));
}

#[tokio::test]
async fn a_waiting_reader_hears_of_the_next_chunk_and_of_the_end() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
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
    let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["a", "b"]).await;
    let engine = {
        drop(engine);
        disks.start().await
    };
    let demo = engine.endpoint("demo").unwrap();
    append(&demo, id, &["c"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["a", "b", "c"]));
    demo.lose_worker(worker("w1"), true, "gone".to_owned()).await.unwrap();
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, []);
    take(&demo, "w1", 0).await;
    append(&demo, id, &["d"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(3, &["d"]));
}

/// Follows to the end; the offsets that came, and how many at a time.
async fn follow(mut follower: Follower) -> (Vec<u64>, usize) {
    let (mut offsets, mut times) = (Vec::new(), 0);
    loop {
        match follower.next().await.unwrap() {
            FollowEvent::Chunks(chunks) => {
                offsets.extend(chunks.iter().map(|chunk| chunk.offset));
                times += 1;
            }
            FollowEvent::Status(_) => {}
            FollowEvent::Ended(_) => return (offsets, times),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_takes_what_came_meanwhile_together_and_a_few_take_each_chunk_at_once() {
    for (followers, times_max) in [(3, 300), (200, 10)] {
        let (engine, demo) = one_endpoint(&Disks::new()).await;
        let id = demo.submit(job(&engine, "{}")).await.unwrap().id;
        take(&demo, "w1", 0).await;
        let mut following = tokio::task::JoinSet::new();
        for _ in 0..followers {
            following.spawn(follow(demo.follow(id, 0).await.unwrap()));
        }
        for _ in 0..300 {
            append(&demo, id, &["1"]).await;
        }
        // Nobody rests for longer than that.
        tokio::time::sleep(Duration::from_secs(1)).await;
        done(&demo, "w1", id, "[]").await;
        while let Some(followed) = following.join_next().await {
            let (offsets, times) = followed.unwrap();
            assert_eq!(offsets, (0..300).collect::<Vec<_>>());
            assert!(times <= times_max, "{times} times");
            assert!(followers > 100 || times > 10, "{times} times");
        }
    }
}
