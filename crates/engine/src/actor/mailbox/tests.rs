//! Requests whose clients disconnect while the disk hangs: the request budget bounds them, and no acknowledged job is lost.

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobState};

use super::{CLIENTS_PERCENT, PAYLOAD_BYTES_MIN, REQUEST_BYTES, part, used};
use crate::actor::scene::{DEADLINE, Scene, eventually};
use crate::payload_budget::PayloadBudget;
use crate::{EndpointError, EngineSettings, Outcome};

const BUDGET_BYTES: usize = 1_000_000;

async fn scene() -> Scene {
    let settings = EngineSettings { request_bytes_max: BUDGET_BYTES, ..EngineSettings::default() };
    Scene::start_with(settings).await
}

fn budget(scene: &Scene) -> &PayloadBudget {
    &scene.demo.shared().services.requests
}

/// Starts a commit that hangs.
async fn hang(scene: &Scene) {
    let mut begun = scene.store.begun.subscribe();
    begun.borrow_and_update();
    scene.store.is_paused.send_replace(true);
    assert!(disconnect_after_submit(scene, input(10)).await.is_ok());
    begun.changed().await.unwrap();
}

fn input(bytes: usize) -> Bytes {
    Bytes::from(format!(r#""input":"{}""#, "x".repeat(bytes)))
}

/// Sends a submit, and disconnects before the reply. Returns the id, or the error if the submit was rejected.
async fn disconnect_after_submit(scene: &Scene, members: Bytes) -> Result<JobId, EndpointError> {
    let submission = scene.job_of(members);
    let id = submission.id;
    // The first poll sends the request.
    match tokio::time::timeout(Duration::ZERO, scene.demo.jobs().submit(submission)).await {
        Err(_) => Ok(id),
        Ok(replied) => replied.map(|accepted| accepted.id),
    }
}

/// Submits and disconnects until a submit is rejected. Returns the jobs whose submits were sent.
async fn fill(scene: &Scene, bytes: usize) -> Vec<JobId> {
    let mut sent = Vec::new();
    loop {
        match disconnect_after_submit(scene, input(bytes)).await {
            Ok(id) => sent.push(id),
            Err(error) => {
                assert!(matches!(error, EndpointError::Overloaded), "{error}");
                return sent;
            }
        }
        assert!(sent.len() <= BUDGET_BYTES / REQUEST_BYTES, "the budget has no bound");
    }
}

/// Sends requests and disconnects until one is rejected.
async fn until_overloaded<T, F>(request: impl Fn() -> F)
where
    F: Future<Output = Result<T, EndpointError>>,
{
    for _ in 0..BUDGET_BYTES / REQUEST_BYTES {
        // The first poll sends the request; the actor may reject it later.
        let replied = tokio::time::timeout(Duration::from_millis(2), request()).await;
        if let Ok(Err(error)) = replied {
            assert!(matches!(error, EndpointError::Overloaded), "{error}");
            return;
        }
    }
    panic!("the budget has no bound");
}

#[tokio::test]
async fn requests_of_disconnected_clients_stay_within_the_budget_while_the_disk_hangs() {
    let scene = scene().await;
    hang(&scene).await;
    let connected = tokio::spawn({
        let (demo, submission) = (scene.demo.clone(), scene.job());
        async move { demo.jobs().submit(submission).await }
    });
    eventually(async || used(budget(&scene)) > 2 * PAYLOAD_BYTES_MIN).await;
    for bytes in [100_000, 10] {
        let sent = fill(&scene, bytes).await;
        assert!(!sent.is_empty());
        // A client that goes on sending gets nothing of the budget back, also after the actor has served its requests.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert!(disconnect_after_submit(&scene, input(bytes)).await.is_err());
        }
        let used = used(budget(&scene));
        assert!(used <= part(budget(&scene), CLIENTS_PERCENT), "{used} bytes are in use");
        assert!(
            used + bytes.max(PAYLOAD_BYTES_MIN) + 2 * REQUEST_BYTES > BUDGET_BYTES / 100 * CLIENTS_PERCENT
        );
    }
    // A payload that becomes a file counts while the file is written.
    let rejected = disconnect_after_submit(&scene, input(300_000)).await;
    assert!(matches!(rejected, Err(EndpointError::Overloaded)), "{rejected:?}");
    // Requests without a payload are bounded too.
    until_overloaded(|| scene.demo.jobs().health()).await;

    scene.store.is_paused.send_replace(false);
    let accepted = connected.await.unwrap().unwrap();
    eventually(async || used(budget(&scene)) == 0).await;
    assert_eq!(scene.state(accepted.id).await, JobState::InQueue);
    assert!(disconnect_after_submit(&scene, input(10)).await.is_ok());
}

#[tokio::test]
async fn jobs_that_were_sent_before_the_disk_hung_are_stored_when_it_returns() {
    let scene = scene().await;
    hang(&scene).await;
    let sent = fill(&scene, 10_000).await;
    scene.store.is_paused.send_replace(false);
    eventually(async || used(budget(&scene)) == 0).await;
    for job in sent {
        assert_eq!(scene.state(job).await, JobState::InQueue);
    }
}

#[tokio::test]
async fn a_workers_report_has_a_part_of_the_budget_that_clients_cannot_use() {
    let scene = scene().await;
    let job = scene.submit().await;
    assert_eq!(scene.take().await.row.id, job);
    hang(&scene).await;
    fill(&scene, 10).await;
    let report = tokio::spawn({
        let demo = scene.demo.clone();
        let output = Some(Bytes::from(vec![b'1'; 100_000]));
        async move { demo.workers().report("w1".parse().unwrap(), job, Outcome::Completed { output }).await }
    });
    eventually(async || used(budget(&scene)) > part(budget(&scene), CLIENTS_PERCENT) + 90_000).await;
    scene.store.is_paused.send_replace(false);
    report.await.unwrap().unwrap();
    eventually(async || used(budget(&scene)) == 0).await;
    assert_eq!(scene.state(job).await, JobState::Completed);
}

#[tokio::test]
async fn a_report_that_does_not_fit_is_rejected_and_counts_when_it_is_repeated() {
    let scene = scene().await;
    let job = scene.submit().await;
    assert_eq!(scene.take().await.row.id, job);
    hang(&scene).await;
    // Reports of another job count against the budget too.
    let report = |job, bytes| {
        let output = Some(Bytes::from(vec![b'1'; bytes]));
        scene.demo.workers().report("w1".parse().unwrap(), job, Outcome::Completed { output })
    };
    let unknown = scene.engine.mint_job(false);
    until_overloaded(|| report(unknown, 10)).await;
    assert!(matches!(report(job, 100_000).await, Err(EndpointError::Overloaded)));
    until_overloaded(|| scene.demo.workers().ping("w1".parse().unwrap(), None)).await;

    scene.store.is_paused.send_replace(false);
    let repeated = async {
        while let Err(error) = report(job, 100_000).await {
            assert!(matches!(error, EndpointError::Overloaded), "{error}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, repeated).await.expect("the budget is free again");
    eventually(async || used(budget(&scene)) == 0).await;
    assert_eq!(scene.state(job).await, JobState::Completed);
}
