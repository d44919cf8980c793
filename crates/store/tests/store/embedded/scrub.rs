//! Scrubbing in small steps while the store is used.

use std::fs;

use longshore_model::EndpointNo;
use longshore_store::{EmbeddedStore, Scrub, Store as _, Write};

use super::salvage::{SMALL, filled, segments};
use super::segment::Segment;
use crate::rows::{claim, commit, job, key, put};

/// One pass in small steps: how many there were, the bytes, and what is damaged.
fn pass(scrub: &mut Scrub) -> (u64, u64, Vec<String>) {
    let (mut steps, mut bytes, mut damages) = (0, 0, Vec::new());
    loop {
        let scrubbed = scrub.step(1_000);
        steps += 1;
        bytes += scrubbed.bytes;
        // A frame, or a large payload, more than was asked for.
        assert!(scrubbed.bytes < 3_000, "{} bytes in one step", scrubbed.bytes);
        damages.extend(scrubbed.damages.iter().map(ToString::to_string));
        if scrubbed.is_pass_over {
            return (steps, bytes, damages);
        }
        assert!(steps < 10_000, "it never ends");
    }
}

#[tokio::test]
async fn what_is_damaged_is_found_in_small_steps_and_once_a_pass() {
    let dir = filled().await;
    let files = segments(dir.path());
    let store = EmbeddedStore::open_with(dir.path(), SMALL).unwrap();
    let mut scrub = store.scrub(dir.path());
    let (steps, bytes, damages) = pass(&mut scrub);
    assert_eq!(damages, [""; 0]);
    assert!(steps > 5 && bytes > 10_000, "{steps} steps, {bytes} bytes");
    assert_eq!(pass(&mut scrub), (steps, bytes, Vec::new()));

    // A record of the first file, a payload of the second, a large payload.
    let mut first = Segment::new(fs::read(&files[0]).unwrap());
    let records = first.records()[3].clone();
    first.bytes[records.start] ^= 1;
    fs::write(&files[0], &first.bytes).unwrap();
    let mut second = fs::read(&files[1]).unwrap();
    let payload = second
        .windows(600)
        .position(|bytes| bytes.iter().all(|&byte| byte == bytes[0] && byte != 0))
        .unwrap();
    second[payload + 300] ^= 1;
    fs::write(&files[1], &second).unwrap();
    fs::remove_file(dir.path().join("blobs/1/b.output")).unwrap();
    for _ in 0..2 {
        let damages = pass(&mut scrub).2;
        assert_eq!(damages.len(), 3, "{damages:?}");
        assert!(
            damages[0].starts_with(&format!("log/0000000001.log, byte {}: ", records.start - 24)),
            "{damages:?}"
        );
        assert!(
            damages[1].contains("0000000002.log") && damages[1].contains("payload is damaged"),
            "{damages:?}"
        );
        assert!(damages[2].starts_with("blobs/1/b.output"), "{damages:?}");
    }
    // Dead payloads may be gone.
    let epoch = claim(&store).await;
    commit(&store, epoch, vec![Write::DeleteJob(key(1, 61))]).await.unwrap();
    assert_eq!(pass(&mut scrub).2.len(), 2);
}

#[tokio::test]
async fn segments_may_come_and_go_meanwhile() {
    let dir = filled().await;
    let store = EmbeddedStore::open_with(dir.path(), super::model::TINY).unwrap();
    let (epoch, mut scrub) = (claim(&store).await, store.scrub(dir.path()));
    for seq in 1..=1_500 {
        commit(&store, epoch, vec![put(job(2, seq)), Write::DeleteJob(key(2, seq))]).await.unwrap();
        assert_eq!(scrub.step(700).damages, []);
    }
    assert!(!dir.path().join("log/0000000001.log").exists(), "no segment went");
    assert_eq!(store.jobs(EndpointNo(2), 0, 10).await.unwrap(), []);
}
