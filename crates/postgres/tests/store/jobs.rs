//! Batches of what the usual lives of jobs change, which have a statement of their own.

use longshore_model::EndpointNo;
use longshore_store::{OutcomeRow, Store as _, Write};

use crate::harness::fresh_store;
use crate::rows::{claim, commit, inline, job, key, put};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_of_a_job_that_is_there_replaces_its_row_and_its_input() {
    let (store, ()) = fresh_store().await;
    let epoch = claim(&store).await;
    let submit = |endpoint, seq, input: &'static str| {
        [put(job(endpoint, seq)), Write::PutInput(key(endpoint, seq), inline(input))]
    };
    let done = OutcomeRow { output: Some(inline("7")), error: None };
    let first = [submit(1, 2, "first"), submit(2, 1, "first")].concat();
    commit(&store, epoch, first).await.unwrap();
    let ended = vec![put(job(1, 2)), Write::PutOutcome(key(1, 2), done.clone())];
    commit(&store, epoch, ended).await.unwrap();
    // Between the first and the last key of the batch, and beside keys of another endpoint.
    let second =
        [submit(1, 1, "second"), submit(1, 3, "second"), submit(2, 1, "second"), submit(3, 2, "second")]
            .concat();
    commit(&store, epoch, second).await.unwrap();
    for (endpoint, seq, input) in
        [(1, 1, "second"), (1, 2, "first"), (1, 3, "second"), (2, 1, "second"), (3, 2, "second")]
    {
        assert_eq!(store.input(key(endpoint, seq)).await.unwrap(), Some(inline(input)), "{endpoint}/{seq}");
    }
    assert_eq!(store.outcome(key(1, 2)).await.unwrap(), Some(done));
    assert_eq!(store.jobs(EndpointNo(1), 0, 10).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_batch_submits_changes_ends_and_deletes() {
    let (store, ()) = fresh_store().await;
    let epoch = claim(&store).await;
    let submits = (1..=3).flat_map(|seq| [put(job(1, seq)), Write::PutInput(key(1, seq), inline("in"))]);
    commit(&store, epoch, submits.collect()).await.unwrap();
    let done = OutcomeRow { output: None, error: Some("no".into()) };
    let writes = vec![
        Write::DeleteJob(key(1, 1)),
        put(job(1, 2)),
        put(job(1, 3)),
        Write::PutOutcome(key(1, 3), done.clone()),
        // Rows of jobs that are not there are put, too.
        put(job(1, 4)),
        put(job(1, 5)),
        Write::PutOutcome(key(1, 5), done.clone()),
        put(job(1, 6)),
        Write::PutInput(key(1, 6), inline("new")),
    ];
    commit(&store, epoch, writes).await.unwrap();
    let stored = store.jobs(EndpointNo(1), 0, 10).await.unwrap();
    assert_eq!(stored, (2..=6).map(|seq| job(1, seq)).collect::<Vec<_>>());
    assert_eq!(store.outcome(key(1, 3)).await.unwrap(), Some(done.clone()));
    assert_eq!(store.outcome(key(1, 5)).await.unwrap(), Some(done));
    assert_eq!(store.input(key(1, 2)).await.unwrap(), Some(inline("in")));
    assert_eq!(store.input(key(1, 6)).await.unwrap(), Some(inline("new")));
    assert_eq!(store.input(key(1, 1)).await.unwrap(), None);
}
