//! A queue that is corrupted on purpose is dropped and loaded from rows, and no acknowledged job is lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::JobState;
use longshore_store::Store as _;
use tokio::time::Instant;

use crate::actor::scene::{DEADLINE, Scene, eventually};
use crate::{EndpointError, TakeRequest};

#[tokio::test]
async fn a_broken_invariant_is_found_by_sampling_and_the_queue_loaded_from_rows() {
    let scene = Scene::start().await;
    let running = scene.submit().await;
    assert_eq!(scene.take().await.row.id, running);
    let queued = scene.submit().await;
    let waiting = tokio::spawn({
        let (demo, submission) = (scene.demo.clone(), scene.job());
        async move { demo.jobs().submit_and_wait(submission, DEADLINE).await.unwrap() }
    });
    eventually(async || scene.demo.jobs().health().await.unwrap().in_queue == 2).await;

    let stray = scene.corrupt_with_a_stray(scene.demo.jobs().status(queued).await.unwrap().row);
    // Each round checks the invariants of one job.
    eventually(async || {
        let _ = scene.demo.jobs().status(running).await;
        scene.engine.metrics().invariants_broken() == 1
    })
    .await;
    let lines = scene.log.lines();
    let line = lines.iter().find(|line| line.contains("invariant broken, reloading queue")).unwrap();
    assert!(line.contains("ERROR") && line.contains(scene.demo.id().as_str()), "{line}");
    assert!(line.contains(&format!("job {stray} belongs to this endpoint")), "{line}");

    scene.until_mutable(queued).await;
    assert_eq!(scene.state(running).await, JobState::InProgress);
    assert_eq!(scene.state(queued).await, JobState::InQueue);
    assert!(
        matches!(scene.demo.jobs().status(stray).await, Err(EndpointError::Refused(_))),
        "a job without a row is not in the loaded queue"
    );
    scene.finish(running).await;
    for _ in 0..2 {
        let job = scene.take().await.row.id;
        scene.finish(job).await;
    }
    assert_eq!(waiting.await.unwrap().row.state, JobState::Completed, "a wait survives the reload");
    let health = scene.demo.jobs().health().await.unwrap();
    assert_eq!((health.counters.completed, health.in_queue, health.in_progress), (3, 0, 0));
    assert_eq!(scene.engine.metrics().invariants_broken(), 1, "the loaded queue has no broken invariant");
}

#[tokio::test]
async fn a_round_with_a_broken_invariant_is_void() {
    let scene = Scene::start().await;
    let kept = scene.submit().await;
    let lost = scene.job();
    let id = lost.id;
    // Both requests are in the mailbox before the actor runs, so they are one round.
    let (refused, ()) = tokio::join!(scene.demo.jobs().submit(lost), async {
        scene.corrupt(|_| panic!("an invariant that a verb found broken"));
    });
    assert!(matches!(refused, Err(EndpointError::Unavailable(_))), "{refused:?}");
    assert_eq!(scene.engine.metrics().invariants_broken(), 1);
    scene.until_mutable(kept).await;
    assert!(matches!(scene.demo.jobs().status(id).await, Err(EndpointError::Refused(_))));
    let stored = scene.store.jobs(scene.demo.no(), 0, 9).await.unwrap();
    assert_eq!(stored.iter().map(|row| row.id).collect::<Vec<_>>(), [kept]);
}

#[tokio::test]
async fn a_reload_is_told_as_a_change_of_every_job() {
    let scene = Scene::start().await;
    let kept = scene.submit().await;
    scene.engine.watch_jobs(true);
    assert_eq!(scene.demo.take_job_changes(), None);
    scene.corrupt(|_| panic!("an invariant that a verb found broken"));
    scene.until_mutable(kept).await;
    let told = scene.demo.take_job_changes().unwrap();
    assert_eq!((told.more, told.counts.queued), (1, 1));
}

#[tokio::test]
async fn rounds_in_flight_are_in_the_reloaded_queue() {
    let scene = Scene::start().await;
    let first = scene.submit().await;
    let mut begun = scene.store.begun.subscribe();
    begun.borrow_and_update();
    scene.store.is_paused.send_replace(true);
    let in_flight = tokio::spawn({
        let (demo, submission) = (scene.demo.clone(), scene.job());
        async move { demo.jobs().submit(submission).await.unwrap().id }
    });
    begun.changed().await.unwrap();
    scene.corrupt(|_| panic!("an invariant that a verb found broken"));
    eventually(async || scene.engine.metrics().invariants_broken() == 1).await;
    scene.store.is_paused.send_replace(false);
    let second = in_flight.await.unwrap();
    scene.until_mutable(first).await;
    for job in [first, second] {
        assert_eq!(scene.take().await.row.id, job);
        scene.finish(job).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_returns_with_the_rows_waits_longer_before_each_reload() {
    let scene = Scene::start().await;
    let job = scene.submit().await;
    scene.store.has_corrupt_rows.store(true, Ordering::Relaxed);
    scene.corrupt(|_| panic!("an invariant that a verb found broken"));
    let faults = |count| {
        let metrics = scene.engine.metrics();
        move || metrics.invariants_broken() == count
    };
    let mut waits = Vec::new();
    for count in 1..=9 {
        let began = Instant::now();
        let is_counted = faults(count);
        eventually(async || is_counted()).await;
        waits.push(began.elapsed().as_millis() / 100 * 100);
        // The queue is not loaded yet: queries are rejected too.
        let rejected = scene.demo.jobs().status(job).await;
        assert!(matches!(rejected, Err(EndpointError::Unavailable(_))), "{rejected:?}");
    }
    assert_eq!(waits, [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    let lines = scene.log.lines();
    let logged = |retry_ms: &str| {
        let is_of_fault = |line: &&String| line.contains("invariant broken") && line.ends_with(retry_ms);
        lines.iter().filter(is_of_fault).count()
    };
    assert_eq!((logged("=500"), logged("=16000"), logged("=30000")), (1, 1, 3), "{lines:?}");

    scene.store.has_corrupt_rows.store(false, Ordering::Relaxed);
    scene.until_mutable(job).await;
    assert_eq!(scene.state(job).await, JobState::InQueue);
    for (sound, expected) in [(Duration::from_secs(50), 30_000), (Duration::from_secs(70), 500)] {
        tokio::time::sleep(sound).await;
        let began = Instant::now();
        scene.corrupt(|_| panic!("an invariant that a verb found broken"));
        eventually(async || scene.demo.jobs().status(job).await.is_err()).await;
        scene.until_mutable(job).await;
        let waited = began.elapsed().as_millis() / 100 * 100;
        assert_eq!(waited, expected, "after {sound:?} without a fault");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_releases_takes_before_the_wait_for_the_reload_is_over() {
    let scene = Scene::start().await;
    for count in 1..=6 {
        scene.corrupt(|_| panic!("an invariant that a verb found broken"));
        eventually(async || scene.engine.metrics().invariants_broken() == count).await;
        eventually(async || scene.demo.jobs().health().await.is_ok()).await;
    }
    let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 25_000, address: None };
    let take = tokio::spawn({
        let demo = scene.demo.clone();
        async move { demo.workers().take("w1".parse().unwrap(), request).await }
    });
    eventually(async || scene.demo.jobs().health().await.unwrap().workers.idle == 1).await;
    scene.corrupt(|_| panic!("an invariant that a verb found broken"));
    eventually(async || scene.engine.metrics().invariants_broken() == 7).await;
    let began = Instant::now();
    scene.engine.release_waits().await;
    assert!(take.await.unwrap().unwrap().is_empty());
    assert!(began.elapsed() < Duration::from_secs(1), "the reload waits for 30 s otherwise");
}
