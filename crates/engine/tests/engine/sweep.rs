//! Payloads outside of the computer: the sweep of orphans, the place and its installation.

use std::collections::HashSet;
use std::time::Duration;

use longshore_blobs::Blobs as _;
use longshore_store::StoreError;
use longshore_vault::Keyring;

use crate::harness::{Disks, FakeRemote, done, eventually, job, one_endpoint, output, take};

/// Stores whose payloads are outside of the computer.
fn remote_disks() -> Disks {
    let disks = Disks::new();
    assert!(disks.blobs.remote.set(FakeRemote::default()).is_ok());
    disks
}

fn remote(disks: &Disks) -> &FakeRemote {
    disks.blobs.remote.get().unwrap()
}

/// A job's input over the size of a blob.
fn large() -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(2_000))
}

async fn names(disks: &Disks) -> HashSet<String> {
    let mut names = HashSet::new();
    for folder in disks.blobs.folders().await.unwrap() {
        names.extend(disks.blobs.list(&folder).await.unwrap());
    }
    names
}

#[tokio::test]
async fn old_orphans_are_deleted_and_what_is_left_goes_with_its_job() {
    let disks = remote_disks();
    let (first, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&first, &large())).await.unwrap().id;
    let other = job(&first, "{}").id;
    let own = names(&disks).await;
    assert_eq!(own.len(), 1);
    let orphans = [format!("1/{other}.input.old"), format!("9/{other}.input.old")];
    let kept = [format!("1/{other}.input.young"), "1/notes".to_owned(), "notes/x".to_owned()];
    for name in orphans.iter().chain(&kept) {
        disks.blobs.put(name, "x".into()).await.unwrap();
    }
    let old = orphans.iter().chain(&own).chain(&kept[1..]).cloned();
    remote(&disks).old.lock().unwrap().extend(old);

    let second = disks.start().await;
    let left: HashSet<String> = own.iter().chain(&kept).cloned().collect();
    eventually(async || names(&disks).await == left).await;
    let demo = second.endpoint("demo").unwrap();
    assert_eq!(take(&demo, "w1", 0).await[0].row.id, id);
    done(&demo, "w1", id, "1").await;
    second.delete_endpoint("demo", false, |_| true).await.unwrap();
    let left: HashSet<String> = kept.into_iter().collect();
    eventually(async || names(&disks).await == left).await;
}

#[tokio::test]
async fn a_server_that_lost_its_rows_deletes_no_payload_of_the_next_one() {
    let disks = remote_disks();
    remote(&disks).is_held.send_replace(true);
    let (_zombie, _) = one_endpoint(&disks).await;
    let listed = async |count: usize| eventually(async || *remote(&disks).waiting.borrow() == count).await;
    listed(1).await;
    let second = disks.start().await;
    listed(2).await;
    let demo = second.endpoint("demo").unwrap();
    let id = demo.jobs().submit(job(&second, &large())).await.unwrap().id;
    let put = names(&disks).await;
    remote(&disks).old.lock().unwrap().extend(put);
    // A third one tells when the first two are over.
    let third = disks.start().await;
    listed(3).await;
    remote(&disks).is_held.send_replace(false);
    let demo = third.endpoint("demo").unwrap();
    done(&demo, "w1", take(&demo, "w1", 0).await[0].row.id, "1").await;
    let ended = demo.jobs().status(id).await.unwrap();
    assert_eq!(output(&ended), "1");
    assert_eq!(names(&disks).await.len(), 1);
}

#[tokio::test]
async fn a_missing_object_is_waited_for() {
    let disks = remote_disks();
    let (engine, demo) = one_endpoint(&disks).await;
    let id = demo.jobs().submit(job(&engine, &large())).await.unwrap().id;
    let engine = disks.start().await;
    let demo = engine.endpoint("demo").unwrap();
    let name = names(&disks).await.into_iter().next().unwrap();
    let bytes = disks.blobs.get(&name).await.unwrap().unwrap();
    disks.blobs.delete(&name).await.unwrap();
    assert!(take(&demo, "w1", 0).await.is_empty());
    let row = demo.jobs().status(id).await.unwrap().row;
    assert_eq!(row.state, longshore_model::JobState::InQueue);
    disks.blobs.put(&name, bytes).await.unwrap();
    disks.clock.jump(60_000);
    eventually(async || !take(&demo, "w1", 100).await.is_empty()).await;
}

#[tokio::test]
async fn payloads_are_looked_for_in_one_place_only() {
    let disks = remote_disks();
    let (_, _) = one_endpoint(&disks).await;
    // The same rows without the place.
    let elsewhere = Disks { blobs: std::sync::Arc::default(), ..disks.after_power_cut() };
    let refused = elsewhere.start_sealing(&Keyring::default()).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Unusable(text) if text.contains("s3://fake")), "{refused}");
    // Other rows with the same place.
    let other = Disks { blobs: disks.blobs.clone(), ..Disks::new() };
    let refused = other.start_sealing(&Keyring::default()).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Unusable(text) if text.contains("another")), "{refused}");
    drop(disks.start().await);
}

#[tokio::test(start_paused = true)]
async fn orphans_of_later_are_deleted_once_a_day() {
    let disks = remote_disks();
    let (engine, demo) = one_endpoint(&disks).await;
    demo.jobs().submit(job(&engine, &large())).await.unwrap();
    let own = names(&disks).await;
    let swept = async |times: usize| eventually(async || *remote(&disks).waiting.borrow() == times).await;
    swept(1).await;
    let other = job(&engine, "{}").id;
    let orphan = format!("1/{other}.input.old");
    disks.blobs.put(&orphan, "x".into()).await.unwrap();
    remote(&disks).old.lock().unwrap().extend(own.iter().cloned().chain([orphan.clone()]));
    tokio::time::sleep(Duration::from_hours(23)).await;
    assert_eq!(*remote(&disks).waiting.borrow(), 1);
    assert!(names(&disks).await.contains(&orphan));
    tokio::time::sleep(Duration::from_mins(61)).await;
    swept(2).await;
    eventually(async || names(&disks).await == own).await;
}
