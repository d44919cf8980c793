//! Inputs, outcomes, streams and chunks.

use bytes::Bytes;
use longshore_model::RequestNo;
use longshore_store::{BlobRef, ChunkRow, OutcomeRow, Payload, Store, StreamRow, Write};

use crate::rows::{chunk, claim, commit, inline, key};

pub async fn inputs_and_outcomes_survive(store: &impl Store) {
    let epoch = claim(store).await;
    let blob = |name: &str| Payload::Blob(BlobRef { name: name.into(), bytes: 1 << 40 });
    // Bytes are bytes: no text is assumed, and none is not the same as nothing.
    let payloads = [
        inline("\"input\":1.10"),
        inline(""),
        Payload::Inline(vec![0, 0xff, 0xfe].into()),
        blob("1/2.input"),
    ];
    for (seq, payload) in (1..).zip(&payloads) {
        let outcome = OutcomeRow { output: Some(payload.clone()), error: None };
        let writes =
            vec![Write::PutInput(key(1, seq), payload.clone()), Write::PutOutcome(key(1, seq), outcome)];
        commit(store, epoch, writes).await.unwrap();
    }
    for (seq, payload) in (1..).zip(&payloads) {
        assert_eq!(store.input(key(1, seq)).await.unwrap().as_ref(), Some(payload));
        let outcome = store.outcome(key(1, seq)).await.unwrap().unwrap();
        assert_eq!((outcome.output.as_ref(), outcome.error), (Some(payload), None));
    }
    assert_eq!(store.input(key(1, 99)).await.unwrap(), None);
    assert_eq!(store.outcome(key(1, 99)).await.unwrap(), None);
}

pub async fn an_outcome_is_replaced_whole_and_cleared(store: &impl Store) {
    let epoch = claim(store).await;
    let rows = [
        OutcomeRow { output: Some(inline("50%")), error: None },
        OutcomeRow { output: None, error: Some("no\0text — \"ü\"".into()) },
        OutcomeRow { output: None, error: Some("".into()) },
        OutcomeRow::default(),
    ];
    for row in rows {
        commit(store, epoch, vec![Write::PutOutcome(key(1, 1), row.clone())]).await.unwrap();
        assert_eq!(store.outcome(key(1, 1)).await.unwrap(), Some(row));
    }
    commit(store, epoch, vec![Write::ClearOutcome(key(1, 1))]).await.unwrap();
    assert_eq!(store.outcome(key(1, 1)).await.unwrap(), None);
}

pub async fn five_megabytes_inline_survive(store: &impl Store) {
    let epoch = claim(store).await;
    let bytes: Bytes = (0..5_000_000_u32).map(|i| ((i * 31) >> 3) as u8).collect::<Vec<_>>().into();
    let outcome = OutcomeRow { output: Some(Payload::Inline(bytes.clone())), error: None };
    let writes = vec![
        Write::PutInput(key(1, 1), Payload::Inline(bytes.clone())),
        Write::PutOutcome(key(1, 1), outcome.clone()),
        chunk(key(1, 1), 0, bytes.clone()),
    ];
    commit(store, epoch, writes).await.unwrap();
    assert!(store.input(key(1, 1)).await.unwrap() == Some(Payload::Inline(bytes.clone())));
    assert!(store.outcome(key(1, 1)).await.unwrap() == Some(outcome));
    assert!(store.chunks(key(1, 1), 0, 1).await.unwrap()[0].bytes == bytes);
}

pub async fn streams_and_chunks_survive(store: &impl Store) {
    let epoch = claim(store).await;
    let job = key(1, 1);
    for offset in 0..5 {
        let stream = StreamRow { next: offset + 1, consumed: offset / 2, ..StreamRow::default() };
        let writes = vec![chunk(job, offset, format!("\"{offset}\"")), Write::PutStream(job, stream)];
        commit(store, epoch, writes).await.unwrap();
        assert_eq!(store.stream(job).await.unwrap(), Some(stream));
    }
    let mut posted = StreamRow { next: 5, consumed: 2, ..StreamRow::default() };
    for number in 1..=6 {
        posted.posts.push(RequestNo::from_entropy(number << 60 | number));
        commit(store, epoch, vec![Write::PutStream(job, posted)]).await.unwrap();
        assert_eq!(store.stream(job).await.unwrap(), Some(posted));
    }
    let chunks = store.chunks(job, 3, usize::MAX).await.unwrap();
    let expected = [3, 4].map(|offset| ChunkRow { offset, bytes: format!("\"{offset}\"").into() });
    assert_eq!(chunks, expected);
    assert_eq!(store.stream(key(1, 2)).await.unwrap(), None);
    assert!(store.chunks(key(1, 2), 0, 100).await.unwrap().is_empty());
}

pub async fn chunks_come_in_pages_of_bytes(store: &impl Store) {
    let epoch = claim(store).await;
    let job = key(1, 1);
    commit(store, epoch, (0..10).map(|offset| chunk(job, offset, "0123456789")).collect()).await.unwrap();
    let page = async |offset, bytes_max| {
        let chunks = store.chunks(job, offset, bytes_max).await.unwrap();
        chunks.iter().map(|chunk| chunk.offset).collect::<Vec<_>>()
    };
    // At least one, even when it is too big; then until the limit is reached.
    assert_eq!(page(0, 0).await, [0]);
    assert_eq!(page(0, 10).await, [0]);
    assert_eq!(page(0, 11).await, [0, 1]);
    assert_eq!(page(0, 30).await, [0, 1, 2]);
    assert_eq!(page(8, 1_000).await, [8, 9]);
    assert!(page(10, 1_000).await.is_empty());
    assert!(page(u64::MAX, 1_000).await.is_empty());
}

pub async fn dropped_chunks_leave_the_stream(store: &impl Store) {
    let epoch = claim(store).await;
    let (job, other) = (key(1, 1), key(1, 2));
    let stream = StreamRow { next: 2, consumed: 2, ..StreamRow::default() };
    let writes =
        vec![chunk(job, 0, "a"), chunk(job, 1, "b"), chunk(other, 0, "c"), Write::PutStream(job, stream)];
    commit(store, epoch, writes).await.unwrap();
    commit(store, epoch, vec![Write::DropChunks(job), chunk(job, 2, "d")]).await.unwrap();
    assert_eq!(store.stream(job).await.unwrap(), Some(stream));
    let offsets: Vec<_> = store.chunks(job, 0, 100).await.unwrap().iter().map(|chunk| chunk.offset).collect();
    assert_eq!(offsets, [2]);
    assert_eq!(store.chunks(other, 0, 100).await.unwrap().len(), 1);
}

pub async fn a_deleted_stream_takes_its_chunks_along(store: &impl Store) {
    let epoch = claim(store).await;
    let job = key(1, 1);
    let writes = vec![
        chunk(job, 0, "a"),
        Write::PutStream(job, StreamRow { next: 1, consumed: 0, ..StreamRow::default() }),
    ];
    commit(store, epoch, writes).await.unwrap();
    commit(store, epoch, vec![Write::DeleteStream(job)]).await.unwrap();
    assert_eq!(store.stream(job).await.unwrap(), None);
    assert!(store.chunks(job, 0, 100).await.unwrap().is_empty());
}
