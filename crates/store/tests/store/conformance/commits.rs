//! Commits, epochs and claims.

use longshore_model::{Durability, EndpointNo, Epoch, JobState, ShardId};
use longshore_store::{Batch, Store, StoreError, Write};

use crate::rows::{SHARD, batch, claim, commit, inline, job, key, put};

pub async fn a_commit_is_visible_to_the_next_read(store: &impl Store) {
    let epoch = claim(store).await;
    for seq in 1..=20 {
        commit(store, epoch, vec![put(job(1, seq))]).await.unwrap();
        assert_eq!(store.jobs(EndpointNo(1), seq - 1, 10).await.unwrap(), [job(1, seq)]);
    }
}

pub async fn changes_apply_in_order(store: &impl Store) {
    let epoch = claim(store).await;
    let mut running = job(1, 1);
    running.state = JobState::InProgress;
    let writes = vec![
        put(job(1, 1)),
        put(running.clone()),
        Write::PutInput(key(1, 1), inline("first")),
        Write::PutInput(key(1, 1), inline("second")),
        put(job(1, 2)),
        Write::DeleteJob(key(1, 2)),
        Write::DeleteJob(key(1, 3)),
        put(job(1, 3)),
    ];
    commit(store, epoch, writes).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [running, job(1, 3)]);
    assert_eq!(store.input(key(1, 1)).await.unwrap(), Some(inline("second")));
}

pub async fn a_stale_epoch_commits_nothing(store: &impl Store) {
    let ours = claim(store).await;
    let current = claim(store).await;
    let writes = vec![put(job(1, 1)), Write::PutSetting("a".into(), "b".into())];
    let refused = commit(store, ours, writes).await.unwrap_err();
    match refused {
        StoreError::StaleEpoch { shard, ours: told, current: now } => {
            assert_eq!((shard, told, now), (SHARD, ours, current));
        }
        other => panic!("{other}"),
    }
    assert!(store.jobs(EndpointNo(1), 0, 10).await.unwrap().is_empty());
    assert!(store.catalog().await.unwrap().settings.is_empty());
    commit(store, current, vec![put(job(1, 1))]).await.unwrap();
}

pub async fn a_stale_batch_does_not_hinder_its_neighbours(store: &impl Store) {
    let stale = claim(store).await;
    let epoch = claim(store).await;
    // Handed over together, so that a store that groups them groups these.
    let commits: Vec<_> = (1..=30)
        .map(|seq| {
            let epoch = if seq % 3 == 0 { stale } else { epoch };
            store.commit(
                SHARD,
                epoch,
                batch(vec![put(job(1, seq)), Write::PutInput(key(1, seq), inline("x"))]),
            )
        })
        .collect();
    for (seq, commit) in (1..=30).zip(commits) {
        assert_eq!(commit.await.is_ok(), seq % 3 != 0, "batch {seq}");
    }
    let kept: Vec<_> =
        store.jobs(EndpointNo(1), 0, 100).await.unwrap().iter().map(|job| job.key.seq).collect();
    assert_eq!(kept, (1..=30).filter(|seq| seq % 3 != 0).collect::<Vec<_>>());
    assert_eq!(store.input(key(1, 3)).await.unwrap(), None);
}

pub async fn every_claim_raises_the_epoch(store: &impl Store) {
    let first = claim(store).await;
    assert_eq!(claim(store).await, Epoch(first.0 + 1));
}

pub async fn shards_are_claimed_one_by_one(store: &impl Store) {
    let epochs = store.claim_shards(vec![ShardId(3), ShardId(5)]).await.unwrap();
    let three_again = store.claim_shards(vec![ShardId(3)]).await.unwrap()[0];
    assert!(three_again > epochs[0]);
    store.commit(ShardId(5), epochs[1], batch(vec![put(job(5, 1))])).await.unwrap();
    assert!(store.commit(ShardId(3), epochs[0], batch(vec![put(job(3, 1))])).await.is_err());
    // The answers come in the order of the question.
    assert_eq!(
        store.claim_shards(vec![ShardId(5), ShardId(3)]).await.unwrap(),
        [Epoch(epochs[1].0 + 1), Epoch(three_again.0 + 1)]
    );
}

pub async fn a_released_shard_takes_no_commits(store: &impl Store) {
    let epoch = claim(store).await;
    store.release_shards(vec![(SHARD, epoch)]).await.unwrap();
    let refused = commit(store, epoch, vec![put(job(1, 1))]).await;
    assert!(matches!(refused, Err(StoreError::StaleEpoch { .. })), "{refused:?}");
    let next = claim(store).await;
    assert!(next > epoch);
    commit(store, next, vec![put(job(1, 1))]).await.unwrap();
}

pub async fn a_stale_release_changes_nothing(store: &impl Store) {
    let stale = claim(store).await;
    let epoch = claim(store).await;
    store.release_shards(vec![(SHARD, stale)]).await.unwrap();
    commit(store, epoch, vec![put(job(1, 1))]).await.unwrap();
}

pub async fn an_empty_batch_is_checked_too(store: &impl Store) {
    let stale = claim(store).await;
    let epoch = claim(store).await;
    commit(store, epoch, Vec::new()).await.unwrap();
    assert!(commit(store, stale, Vec::new()).await.is_err());
}

pub async fn many_tasks_commit_concurrently(store: &impl Store) {
    const TASKS: u32 = 16;
    const COMMITS: u64 = 40;
    let shards: Vec<_> = (0..TASKS as u8).map(ShardId).collect();
    let epochs = store.claim_shards(shards.clone()).await.unwrap();
    let committers = shards.into_iter().zip(epochs).map(|(shard, epoch)| async move {
        let endpoint = u32::from(shard.0) + 1;
        for seq in 1..=COMMITS {
            let writes = vec![put(job(endpoint, seq)), Write::PutInput(key(endpoint, seq), inline("{}"))];
            store.commit(shard, epoch, batch(writes)).await.unwrap();
            let seen = store.jobs(EndpointNo(endpoint), seq - 1, 5).await.unwrap();
            assert_eq!(seen.len(), 1, "endpoint {endpoint}, job {seq}");
        }
    });
    join_all(committers).await;
    for endpoint in 1..=TASKS {
        assert_eq!(store.jobs(EndpointNo(endpoint), 0, 1_000).await.unwrap().len() as u64, COMMITS);
    }
}

pub async fn buffered_commits_are_visible_too(store: &impl Store) {
    let epoch = claim(store).await;
    for seq in 1..=20 {
        let durability = if seq % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        let buffered = Batch { durability, writes: vec![put(job(1, seq))], chain: None };
        store.commit(SHARD, epoch, buffered).await.unwrap();
        assert_eq!(store.jobs(EndpointNo(1), 0, 100).await.unwrap().len() as u64, seq);
    }
}

/// Polls all of them until all are done.
async fn join_all(futures: impl IntoIterator<Item = impl Future<Output = ()>>) {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
