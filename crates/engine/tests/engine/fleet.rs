//! Managed workers of whole engines, with a launcher in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use longshore_engine::{
    EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, MemoryWebhookLog, TokioRuntime,
    WebhookSettings, WorkerSettings,
};
use longshore_launch::{Launcher, Launchers, MemoryLauncher, RunningWorker};
use longshore_model::{Endpoint, JobState, Millis, Placement, Provider, WorkerId};

use crate::harness::{Disks, accept, done, endpoint, eventually, job, take, template};

async fn start(disks: &Disks, launcher: &Arc<MemoryLauncher>) -> Engine {
    start_with(disks, [(Provider::Process, launcher.clone() as Arc<dyn Launcher>)].into()).await
}

/// Starts an engine with these launchers and waits until it is ready.
pub(crate) async fn start_with(disks: &Disks, launchers: Launchers) -> Engine {
    start_on(disks, launchers, WorkerSettings::default()).await
}

/// As [`start_with`], with settings of workers.
pub(crate) async fn start_on(disks: &Disks, launchers: Launchers, workers: WorkerSettings) -> Engine {
    let parts = EngineParts {
        store: disks.store.clone(),
        blobs: disks.blobs.clone(),
        launchers,
        runtime: Arc::new(TokioRuntime),
        webhook_transport: Arc::new(HttpTransport::new(&WebhookSettings::default())),
        vault: Arc::default(),
        webhook_log: Arc::new(MemoryWebhookLog::default()),
        settings: EngineSettings::default(),
        webhooks: WebhookSettings::default(),
        workers,
        traces: None,
    };
    let engine = Engine::start(parts).await.unwrap();
    eventually(async || engine.is_ready()).await;
    engine
}

/// An engine whose endpoint `demo` has managed workers.
async fn with_workers(
    disks: &Disks,
    launcher: &Arc<MemoryLauncher>,
    change: impl FnOnce(&mut Endpoint),
) -> (Engine, EndpointHandle) {
    let engine = start(disks, launcher).await;
    let template = engine.catalog().create_template(template("t")).await.unwrap();
    let mut resource = endpoint(template.id, "demo");
    resource.provider = Provider::Process;
    change(&mut resource);
    engine.create_endpoint(resource).await.unwrap();
    let demo = engine.endpoint("demo").unwrap();
    (engine, demo)
}

/// Waits until a worker runs and returns it.
pub(crate) async fn first_worker(launcher: &MemoryLauncher) -> WorkerId {
    eventually(async || !launcher.living().is_empty()).await;
    launcher.living().remove(0)
}

/// The metered worker time in ms, and the number of workers.
fn metered(engine: &Engine) -> (u64, usize) {
    let sheets = engine.usage(Millis(0), Millis::MAX);
    let usages: Vec<_> = sheets.iter().flat_map(|sheet| &sheet.usages).collect();
    (
        usages.iter().map(|usage| usage.ms).sum(),
        usages.iter().map(|usage| &usage.worker).collect::<BTreeSet<_>>().len(),
    )
}

#[tokio::test]
async fn worker_time_is_metered_over_restarts() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, demo) = with_workers(&disks, &launcher, |record| record.workers_min = 1).await;
    let worker = first_worker(&launcher).await;
    eventually(async || metered(&engine).0 >= 50).await;
    engine.note_usage().await.unwrap();
    let started_at = demo.workers().fleet_status().workers[0].placement.started_at;
    let adopted = RunningWorker {
        worker: worker.clone(),
        endpoint: demo.record().id,
        version: 1,
        is_stopping: false,
        placement: Placement { started_at, ..Placement::default() },
        server_url: None,
    };
    // The server is killed, and another one starts.
    drop((engine, demo));
    let launcher = Arc::new(MemoryLauncher::with_living(vec![adopted]));
    let engine = start(&disks, &launcher).await;
    let uptime_ms = || engine.now().since(started_at);
    eventually(async || {
        let before = uptime_ms();
        let (ms, workers) = metered(&engine);
        workers == 1 && (before..=uptime_ms()).contains(&ms)
    })
    .await;
    let ran_ms = uptime_ms();
    launcher.exit(&worker, Some(0), None, ran_ms);
    eventually(async || metered(&engine).1 == 2).await;
    let sheets = engine.usage(Millis(0), Millis::MAX);
    let usage =
        sheets.iter().flat_map(|sheet| &sheet.usages).filter(|usage| usage.worker.as_ref() == Some(&worker));
    let ms: u64 = usage.map(|usage| usage.ms).sum();
    assert!(ms >= ran_ms && ms < ran_ms + 10_000, "{ms} of {ran_ms}");
}

#[tokio::test]
async fn the_first_job_starts_a_worker_which_is_stopped_when_idle() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, demo) = with_workers(&disks, &launcher, |record| record.idle_timeout_s = 1).await;
    assert_eq!(launcher.living().len(), 0);
    let submitted = demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    let worker = first_worker(&launcher).await;
    let counts = async || demo.jobs().health().await.unwrap().workers;
    eventually(async || counts().await.initializing == 1).await;
    let taken = take(&demo, worker.as_str(), 1_000).await;
    assert_eq!(taken[0].row.id, submitted.id);
    done(&demo, worker.as_str(), submitted.id, "1").await;
    eventually(async || launcher.living().is_empty()).await;
    eventually(async || counts().await == longshore_model::WorkerCounts::default()).await;
    assert_eq!(launcher.started().len(), 1);
}

#[tokio::test]
async fn a_job_whose_worker_crashed_fails_with_the_reason() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, demo) = with_workers(&disks, &launcher, |record| record.max_retries = 0).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    let worker = first_worker(&launcher).await;
    take(&demo, worker.as_str(), 1_000).await;
    launcher.exit(&worker, None, Some(11), 2_000);
    eventually(async || demo.jobs().status(id).await.unwrap().row.state == JobState::Failed).await;
    let error = demo.jobs().status(id).await.unwrap().error.unwrap();
    assert!(
        error.contains("was killed by signal 11 after 2 s") && error.contains("the last words"),
        "{error}"
    );
}

#[tokio::test]
async fn an_adopted_worker_finishes_its_job() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, demo) = with_workers(&disks, &launcher, |_| ()).await;
    let id = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    let worker = first_worker(&launcher).await;
    take(&demo, worker.as_str(), 1_000).await;
    engine.release_waits().await;
    engine.close().await;
    assert_eq!(launcher.stopped(), []);

    let adopted = RunningWorker {
        worker: worker.clone(),
        endpoint: demo.record().id,
        version: demo.record().version,
        is_stopping: false,
        placement: Placement::default(),
        server_url: None,
    };
    let launcher = Arc::new(MemoryLauncher::with_living(vec![adopted]));
    let engine = start(&disks, &launcher).await;
    let demo = engine.endpoint("demo").unwrap();
    done(&demo, worker.as_str(), id, "1").await;
    assert_eq!(demo.jobs().status(id).await.unwrap().row.state, JobState::Completed);
    eventually(async || demo.workers().fleet_view().await.unwrap().workers.len() == 1).await;
    assert_eq!((launcher.living(), launcher.started().len()), (vec![worker], 0));
}

#[tokio::test]
async fn deleting_an_endpoint_stops_its_workers() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, _) = with_workers(&disks, &launcher, |record| record.workers_min = 2).await;
    eventually(async || launcher.living().len() == 2).await;
    engine.delete_endpoint("demo", false, |_| true).await.unwrap();
    eventually(async || launcher.living().is_empty()).await;
}

#[tokio::test]
async fn exits_are_reported_after_the_provider_changed_back_and_forth() {
    let (disks, launcher) = (Disks::new(), Arc::default());
    let (engine, demo) = with_workers(&disks, &launcher, |record| record.workers_max = 1).await;
    let first = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    let old = first_worker(&launcher).await;
    take(&demo, old.as_str(), 1_000).await;
    for provider in [Provider::External, Provider::Process] {
        engine
            .update_endpoint("demo", "key-1", accept(|record: &mut Endpoint| record.provider = provider))
            .await
            .unwrap();
    }
    done(&demo, old.as_str(), first, "1").await;
    eventually(async || launcher.living().is_empty()).await;

    let second = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    let new = first_worker(&launcher).await;
    assert_eq!(take(&demo, new.as_str(), 1_000).await[0].row.id, second);
    launcher.exit(&new, None, Some(9), 1_000);
    eventually(async || demo.jobs().status(second).await.unwrap().row.state == JobState::InQueue).await;
}

#[tokio::test]
async fn no_worker_is_started_before_the_adoption_at_its_provider() {
    let (disks, launcher) = (Disks::new(), Arc::<MemoryLauncher>::default());
    launcher.refuse(Some("the daemon does not answer"));
    let (engine, demo) = with_workers(&disks, &launcher, |record| record.workers_min = 1).await;
    demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    assert_eq!(launcher.started().len(), 0);
    let explanation = engine.explain(&demo, None, &|_| true).await.unwrap();
    let text = format!("{explanation:?}");
    assert!(text.contains("ProviderUnavailable") && text.contains("the daemon does not answer"), "{text}");
    launcher.refuse(None);
    first_worker(&launcher).await;
}
