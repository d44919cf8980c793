//! Job rows, and what belongs to them.

use longshore_model::limits::ATTEMPTS_MAX;
use longshore_model::{Attempt, AttemptEnd, EndedAttempt, EndpointNo, JobKey, JobState, Millis};
use longshore_store::{OutcomeRow, Store, StreamRow, WebhookRow, Write};

use crate::rows::{attempt, chunk, claim, commit, full_job, inline, job, key, put, put_attempt};

pub async fn every_field_survives(store: &impl Store) {
    let epoch = claim(store).await;
    let rows = [full_job(1, 1), job(1, 2)];
    commit(store, epoch, rows.iter().cloned().map(put).collect()).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), rows);
}

pub async fn every_state_survives(store: &impl Store) {
    let epoch = claim(store).await;
    let rows = (1..).zip(JobState::ALL).map(|(seq, state)| {
        let mut row = job(1, seq);
        row.state = state;
        row
    });
    let rows: Vec<_> = rows.collect();
    commit(store, epoch, rows.iter().cloned().map(put).collect()).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), rows);
}

pub async fn a_row_is_replaced_whole(store: &impl Store) {
    let epoch = claim(store).await;
    commit(store, epoch, vec![put(full_job(1, 1))]).await.unwrap();
    commit(store, epoch, vec![put(job(1, 1))]).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
}

pub async fn pages_cover_all_jobs_once(store: &impl Store) {
    let epoch = claim(store).await;
    // Written in no order, with gaps.
    let seqs: Vec<u64> = (1..=50).map(|i| i * 7 % 53 * 3).collect();
    commit(store, epoch, seqs.iter().map(|&seq| put(job(1, seq))).collect()).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = store.jobs(EndpointNo(1), after, 8).await.unwrap();
        assert!(page.len() <= 8);
        let Some(last) = page.last() else { break };
        after = last.key.seq;
        seen.extend(page.iter().map(|row| row.key.seq));
    }
    let mut expected = seqs;
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert!(store.jobs(EndpointNo(1), 0, 0).await.unwrap().is_empty());
    assert!(store.jobs(EndpointNo(1), u64::MAX, 10).await.unwrap().is_empty());
}

pub async fn endpoints_do_not_mix(store: &impl Store) {
    let epoch = claim(store).await;
    commit(store, epoch, vec![put(job(1, 5)), put(job(2, 1)), put(job(2, 9)), put(job(3, 4))]).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(2), 0, 10).await.unwrap(), [job(2, 1), job(2, 9)]);
    assert!(store.jobs(EndpointNo(4), 0, 10).await.unwrap().is_empty());
}

pub async fn the_largest_keys_work(store: &impl Store) {
    let epoch = claim(store).await;
    let (last, next) = ((1 << 23) - 1, JobKey::SEQ_MAX - 1);
    let rows = [job(last, next), job(last, JobKey::SEQ_MAX)];
    commit(store, epoch, rows.iter().cloned().map(put).collect()).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(last), 0, 10).await.unwrap(), rows);
    assert_eq!(store.jobs(EndpointNo(last), next, 10).await.unwrap(), rows[1..]);
    assert!(store.jobs(EndpointNo(last), JobKey::SEQ_MAX, 10).await.unwrap().is_empty());
}

pub async fn deleting_removes_all_that_belongs_to_a_job(store: &impl Store) {
    let epoch = claim(store).await;
    let writes = (1..=3).flat_map(|seq| {
        let job_key = key(1, seq);
        [
            put(job(1, seq)),
            Write::PutInput(job_key, inline("in")),
            Write::PutOutcome(job_key, OutcomeRow { output: Some(inline("out")), error: Some("e".into()) }),
            put_attempt(job_key, attempt(1)),
            Write::PutStream(job_key, StreamRow { next: 1, consumed: 0, ..StreamRow::default() }),
            chunk(job_key, 0, "chunk"),
            Write::PutWebhook(WebhookRow { job: job_key, attempts: 1, due_at: Millis(5) }),
        ]
    });
    commit(store, epoch, writes.collect()).await.unwrap();
    commit(store, epoch, vec![Write::DeleteJob(key(1, 2))]).await.unwrap();

    let gone = key(1, 2);
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1), job(1, 3)]);
    assert_eq!(store.input(gone).await.unwrap(), None);
    assert_eq!(store.outcome(gone).await.unwrap(), None);
    assert!(store.attempts(gone).await.unwrap().is_empty());
    assert_eq!(store.stream(gone).await.unwrap(), None);
    assert!(store.chunks(gone, 0, 100).await.unwrap().is_empty());
    let owed: Vec<_> = store.webhooks(EndpointNo(1)).await.unwrap().iter().map(|hook| hook.job.seq).collect();
    assert_eq!(owed, [1, 3]);
    // The neighbours keep theirs.
    for neighbour in [key(1, 1), key(1, 3)] {
        assert!(store.input(neighbour).await.unwrap().is_some());
        assert!(store.outcome(neighbour).await.unwrap().is_some());
        assert_eq!(store.attempts(neighbour).await.unwrap(), [attempt(1)]);
        assert!(store.stream(neighbour).await.unwrap().is_some());
        assert_eq!(store.chunks(neighbour, 0, 100).await.unwrap().len(), 1);
    }
}

pub async fn the_last_attempts_survive(store: &impl Store) {
    let epoch = claim(store).await;
    let (one, other) = (key(1, 1), key(1, 2));
    commit(store, epoch, vec![put(job(1, 1)), put(job(1, 2)), put_attempt(other, attempt(3))]).await.unwrap();
    assert!(store.attempts(one).await.unwrap().is_empty());
    let bare = EndedAttempt {
        worker: None,
        gpu: None,
        taken_at: Millis(9),
        ended_at: Millis(0),
        end: AttemptEnd::Undelivered,
        reason: "".into(),
        n: Attempt(u32::MAX),
    };
    // Several of one job in one batch, and one in place of an earlier one.
    commit(store, epoch, vec![put_attempt(one, attempt(1)), put_attempt(one, attempt(2))]).await.unwrap();
    let replaced = EndedAttempt { gpu: None, ..attempt(2) };
    let writes = vec![put_attempt(one, bare.clone()), put_attempt(one, replaced.clone())];
    commit(store, epoch, writes).await.unwrap();
    assert_eq!(store.attempts(one).await.unwrap(), [attempt(1), replaced, bare.clone()]);

    for n in 5..=20 {
        commit(store, epoch, vec![put(job(1, 1)), put_attempt(one, attempt(n))]).await.unwrap();
    }
    let mut last: Vec<_> = (14..=20).map(attempt).collect();
    last.push(bare);
    assert_eq!(last.len(), ATTEMPTS_MAX as usize);
    assert_eq!(store.attempts(one).await.unwrap(), last);
    assert_eq!(store.attempts(other).await.unwrap(), [attempt(3)]);
}

/// As an expiry does: one batch deletes many jobs, most of them neighbours.
pub async fn deleting_many_spares_those_between(store: &impl Store) {
    let epoch = claim(store).await;
    let all = (1..=3).flat_map(|endpoint| (1..=20).map(move |seq| (endpoint, seq)));
    let writes = all.flat_map(|(endpoint, seq)| {
        let job_key = key(endpoint, seq);
        [put(job(endpoint, seq)), Write::PutInput(job_key, inline("in")), chunk(job_key, 0, "chunk")]
    });
    commit(store, epoch, writes.collect()).await.unwrap();
    let deleted = [3, 4, 5, 7, 9, 10, 2, 1, 15, 16, 18, 17, 20];
    let mut writes: Vec<_> = deleted.map(|seq| Write::DeleteJob(key(2, seq))).into();
    // One comes back within the batch, and its neighbour goes.
    writes.extend([put(job(2, 3)), Write::DeleteJob(key(2, 4)), Write::DeleteJob(key(2, 19))]);
    commit(store, epoch, writes).await.unwrap();

    let left: Vec<_> =
        store.jobs(EndpointNo(2), 0, 100).await.unwrap().iter().map(|row| row.key.seq).collect();
    assert_eq!(left, [3, 6, 8, 11, 12, 13, 14]);
    for seq in 1..=20 {
        let has_input = store.input(key(2, seq)).await.unwrap().is_some();
        let has_chunks = !store.chunks(key(2, seq), 0, 100).await.unwrap().is_empty();
        let stays = left.contains(&seq) && seq != 3;
        assert_eq!((has_input, has_chunks), (stays, stays), "job {seq}");
    }
    for endpoint in [1, 3] {
        assert_eq!(store.jobs(EndpointNo(endpoint), 0, 100).await.unwrap().len(), 20);
    }
}

pub async fn deleting_what_is_not_there_is_fine(store: &impl Store) {
    let epoch = claim(store).await;
    let nothing = key(9, 9);
    let writes = vec![
        Write::DeleteJob(nothing),
        Write::DeleteJob(nothing),
        Write::ClearOutcome(nothing),
        Write::DropChunks(nothing),
        Write::DeleteStream(nothing),
        Write::DeleteWebhook(nothing),
        Write::DeleteEndpoint(EndpointNo(9)),
        Write::DeleteTemplate(longshore_model::TemplateId::mint(9)),
        Write::DeleteKey("missing".into()),
        put(job(1, 1)),
    ];
    commit(store, epoch, writes).await.unwrap();
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
}

pub async fn hooks_are_kept_per_endpoint(store: &impl Store) {
    let epoch = claim(store).await;
    let hook =
        |endpoint, seq, attempts| WebhookRow { job: key(endpoint, seq), attempts, due_at: Millis(seq * 10) };
    let writes =
        [hook(1, 2, 0), hook(1, 1, 0), hook(2, 1, 0), hook(1, 1, 3), hook(1, 4, 0)].map(Write::PutWebhook);
    commit(store, epoch, writes.into()).await.unwrap();
    commit(store, epoch, vec![Write::DeleteWebhook(key(1, 4))]).await.unwrap();
    assert_eq!(store.webhooks(EndpointNo(1)).await.unwrap(), [hook(1, 1, 3), hook(1, 2, 0)]);
    assert_eq!(store.webhooks(EndpointNo(2)).await.unwrap(), [hook(2, 1, 0)]);
    assert!(store.webhooks(EndpointNo(3)).await.unwrap().is_empty());
}
