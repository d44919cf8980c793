//! Servers that share a database: who owns the shards, who takes over, and what an earlier owner can still do.

use std::sync::Arc;
use std::time::Duration;

use longshore_postgres::{Database, Identity, IdentityTexts, IsGone, Membership, NewNode, PostgresStore};
use longshore_store::Store as _;

use crate::harness::shared;
use crate::rows::{SHARD, claim, commit, job, put};

/// What the probe of an owner says.
fn probe(is_gone: bool) -> IsGone {
    Arc::new(move |_| Box::pin(async move { is_gone }))
}

async fn join(database: &Database, name: &str, is_gone: bool) -> Membership {
    let texts = IdentityTexts { secret: "secret".to_owned(), canary: "canary".to_owned() };
    Identity::of(database, &texts).await.unwrap();
    let address = format!("{name}.example:8081");
    let node = NewNode { name: name.to_owned(), address, version: "1".to_owned() };
    Membership::join(database.clone(), &node, probe(is_gone)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over_from_an_owner_that_is_gone_and_the_owner_can_do_nothing_more() {
    let database = shared().database();
    let first = join(&database, "a", true).await;
    let earlier = within(first.owned()).await;
    let store = PostgresStore::of_owner(earlier.clone());
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![put(job(1, 1))]).await.unwrap();
    let second = join(&database, "b", true).await;
    assert!(!second.may_serve());
    drop(first);

    let owned = within(second.owned()).await;
    within(second.until_it_may_serve()).await;
    let later = PostgresStore::of_owner(owned);
    let claimed = claim(&later).await;
    assert!(claimed > epoch);
    // The earlier owner was paused, and wakes up now.
    let refusal = commit(&store, epoch, vec![put(job(1, 2))]).await.unwrap_err().to_string();
    assert!(refusal.contains("newer owner"), "{refusal}");
    let again = PostgresStore::of_owner(earlier);
    let refusal = again.claim_shards(vec![SHARD]).await.unwrap_err().to_string();
    assert!(refusal.contains("another node has taken over"), "{refusal}");
    assert_eq!(later.jobs(longshore_model::EndpointNo(1), 0, 10).await.unwrap(), [job(1, 1)]);
    commit(&later, claimed, vec![put(job(1, 2))]).await.unwrap();
    second.leave().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_answers_is_left_alone_until_its_lease_is_over() {
    let database = shared().database().with_schema("leases");
    let first = join(&database, "a", false).await;
    within(first.owned()).await;
    let second = join(&database, "b", false).await;
    let client = shared().client().await;
    let pid = "SELECT lock_pid FROM leases.node WHERE name = 'a'";
    let before: i32 = client.query_one(pid, &[]).await.unwrap().get(0);
    client.execute("SELECT pg_terminate_backend($1)", &[&before]).await.unwrap();
    // It gets its lock again, also if the other one tried it meanwhile.
    within(first.until_it_may_serve()).await;
    until(async || client.query_one(pid, &[]).await.unwrap().get::<_, i32>(0) != before).await;
    within(first.until_it_may_serve()).await;
    let owner = second.nodes().borrow().owner.clone().unwrap();
    assert_eq!((owner.name.as_str(), owner.id), ("a", first.id()));

    // Its renewals fail: its lease ends, again and again.
    let late =
        "UPDATE leases.node SET until = clock_timestamp() - interval '1 ms' WHERE name = 'a' AND NOT is_dead";
    until(async || client.execute(late, &[]).await.unwrap() == 0).await;
    within(second.owned()).await;
    assert!(within(first.lost()).await.to_string().contains("declared this one dead"));
    assert!(!first.may_serve());
}

/// What `future` gives. Panics after a minute: a test that waits for ever says nothing.
#[track_caller]
fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(Duration::from_mins(1), future).await;
        done.unwrap_or_else(|_| panic!("{caller}: nothing happened within a minute"))
    }
}

/// Waits until `condition` holds.
#[track_caller]
fn until(mut condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_living_nodes_have_different_names() {
    let database = shared().database();
    let _first = join(&database, "a", false).await;
    let node = NewNode {
        name: "a".to_owned(),
        address: "elsewhere.example:8081".to_owned(),
        version: "1".to_owned(),
    };
    let refusal = Membership::join(database, &node, probe(false)).await.unwrap_err().to_string();
    assert!(refusal.contains("a.example:8081") && refusal.contains("`node_name` of its own"), "{refusal}");
}
