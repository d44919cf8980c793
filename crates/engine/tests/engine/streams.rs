//! Chunks: durable, ordered, and consumed once.

use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{EndpointHandle, FollowEvent, Follower, StreamFrom, StreamPage};
use longshore_model::{JobId, JobState, RequestNo};

use crate::harness::{Disks, done, job, one_endpoint, take, worker};

/// Appends chunks to the job of worker `w1`.
async fn append(demo: &EndpointHandle, id: JobId, chunks: &[&'static str]) {
    let chunks = chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()).into()).collect();
    demo.workers().append(worker("w1"), id, chunks).await.unwrap();
}

/// Reads the chunks that are stored now, with their offsets.
async fn read(demo: &EndpointHandle, id: JobId, from: StreamFrom) -> Vec<(u64, Bytes)> {
    let StreamPage { chunks, .. } = demo.jobs().read_stream(id, from, Duration::ZERO).await.unwrap();
    chunks.into_iter().map(|chunk| (chunk.offset, chunk.chunk.output)).collect()
}

/// Chunks with consecutive offsets.
fn numbered(from: u64, chunks: &[&'static str]) -> Vec<(u64, Bytes)> {
    (from..).zip(chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()))).collect()
}

#[tokio::test]
async fn chunks_are_numbered_consumed_and_read_again_by_offset() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["1", "2"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["1", "2"]));
    demo.jobs().consume(id, 2);
    append(&demo, id, &["3"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(2, &["3"]));
    assert_eq!(read(&demo, id, StreamFrom::Offset(1)).await, numbered(1, &["2", "3"]));
}

#[tokio::test]
async fn a_waiting_reader_gets_the_next_chunk_and_the_end() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let reader = |offset| {
        let demo = demo.clone();
        tokio::spawn(async move {
            demo.jobs().read_stream(id, StreamFrom::Offset(offset), Duration::from_secs(10)).await.unwrap()
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
async fn a_retry_drops_the_chunks_and_offsets_continue_also_over_a_restart() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    append(&demo, id, &["a", "b"]).await;
    let engine = {
        drop(engine);
        disks.start().await
    };
    let demo = engine.endpoint("demo").unwrap();
    append(&demo, id, &["c"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(0, &["a", "b", "c"]));
    demo.workers().lose(worker("w1"), true, "gone".to_owned()).await.unwrap();
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, []);
    take(&demo, "w1", 0).await;
    append(&demo, id, &["d"]).await;
    assert_eq!(read(&demo, id, StreamFrom::Drained).await, numbered(3, &["d"]));
}

/// Follows a stream to its end. Returns the offsets of all chunks, and the number of events with chunks.
async fn follow(mut follower: Follower) -> (Vec<u64>, usize) {
    let (mut offsets, mut events) = (Vec::new(), 0);
    loop {
        match follower.next().await.unwrap() {
            FollowEvent::Chunks(chunks) => {
                offsets.extend(chunks.iter().map(|chunk| chunk.offset));
                events += 1;
            }
            FollowEvent::Status(_) => {}
            FollowEvent::Ended(_) => return (offsets, events),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn many_followers_get_chunks_in_groups_and_few_followers_get_them_immediately() {
    for (followers, events_max) in [(3, 300), (200, 10)] {
        let (engine, demo) = one_endpoint(&Disks::new()).await;
        let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
        take(&demo, "w1", 0).await;
        let mut following = tokio::task::JoinSet::new();
        for _ in 0..followers {
            following.spawn(follow(demo.jobs().follow(id, 0).await.unwrap()));
        }
        for _ in 0..300 {
            append(&demo, id, &["1"]).await;
        }
        // The pause of a follower is shorter.
        tokio::time::sleep(Duration::from_secs(1)).await;
        done(&demo, "w1", id, "[]").await;
        while let Some(followed) = following.join_next().await {
            let (offsets, events) = followed.unwrap();
            assert_eq!(offsets, (0..300).collect::<Vec<_>>());
            assert!(events <= events_max, "{events} events");
            assert!(followers > 100 || events > 10, "{events} events");
        }
    }
}

#[tokio::test]
async fn a_post_that_is_sent_again_appends_nothing_also_after_a_restart() {
    let disks = Disks::new();
    let (first, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&first, "{}")).await.unwrap().id;
    take(&demo, "w1", 0).await;
    let post = |demo: &EndpointHandle, number: Option<u64>| {
        let (workers, post) = (demo.workers().clone(), number.map(RequestNo::from_entropy));
        async move {
            let chunks = vec![Bytes::from_static(b"1").into(), Bytes::from_static(b"2").into()];
            workers.append_once(worker("w1"), id, post, chunks).await.unwrap();
        }
    };
    let count = async |demo: &EndpointHandle| demo.jobs().stream_size(id).await.unwrap().chunks;
    for (number, chunks) in [(Some(7), 2), (Some(7), 2), (None, 4), (None, 6), (Some(8), 8), (Some(7), 8)] {
        post(&demo, number).await;
        assert_eq!(count(&demo).await, chunks, "{number:?}");
    }
    let second = disks.start().await;
    let demo = second.endpoint("demo").unwrap();
    for (number, chunks) in [(Some(8), 8), (Some(7), 8), (Some(9), 10)] {
        post(&demo, number).await;
        assert_eq!(count(&demo).await, chunks, "{number:?}");
    }
    // Another attempt of the same worker does not get what was sent to the one before.
    demo.workers().lose(worker("w1"), true, "exit code 1".to_owned()).await.unwrap();
    take(&demo, "w1", 0).await;
    post(&demo, Some(9)).await;
    assert_eq!(count(&demo).await, 10);
}
