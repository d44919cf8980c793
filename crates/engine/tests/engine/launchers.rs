//! Engines with several launchers, each of which runs the workers of its provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use longshore_engine::{CatalogError, EndpointHandle, Engine, WorkerSettings};
use longshore_launch::{Launcher, Launchers, MemoryLauncher, RunningWorker};
use longshore_model::{Endpoint, Millis, NetworkVolume, Placement, Provider, VolumeId, WorkerId};

use crate::fleet::{first_worker, start_on, start_with};
use crate::harness::{Disks, accept, endpoint, eventually, job, take, template};

/// The two launchers of one server.
#[derive(Default)]
struct TwoLaunchers {
    process: Arc<MemoryLauncher>,
    docker: Arc<MemoryLauncher>,
}

impl TwoLaunchers {
    async fn start(&self, disks: &Disks) -> Engine {
        let process: Arc<dyn Launcher> = self.process.clone();
        let docker: Arc<dyn Launcher> = self.docker.clone();
        start_with(disks, Launchers::from([(Provider::Process, process), (Provider::Docker, docker)])).await
    }
}

/// Creates an endpoint that always has one worker.
async fn with_one_worker(engine: &Engine, slug: &str, provider: Provider) -> EndpointHandle {
    let template = engine.catalog().create_template(template(slug)).await.unwrap();
    let resource = Endpoint { provider, workers_min: 1, workers_max: 1, ..endpoint(template.id, slug) };
    engine.create_endpoint(resource).await.unwrap();
    engine.endpoint(slug).unwrap()
}

async fn change_provider(engine: &Engine, slug: &str, provider: Provider) {
    engine
        .update_endpoint(slug, "key-1", accept(|record: &mut Endpoint| record.provider = provider))
        .await
        .unwrap();
}

/// A worker that an earlier server started for an endpoint.
fn running_worker(endpoint: &Endpoint, worker: &str) -> RunningWorker {
    RunningWorker {
        worker: worker.parse().unwrap(),
        endpoint: endpoint.id,
        version: endpoint.version,
        is_stopping: false,
        placement: Placement::default(),
        server_url: None,
    }
}

#[tokio::test]
async fn each_launcher_runs_the_workers_of_its_provider() {
    let (disks, launchers) = (Disks::new(), TwoLaunchers::default());
    let engine = launchers.start(&disks).await;
    let one = with_one_worker(&engine, "one", Provider::Process).await.record().id;
    let two = with_one_worker(&engine, "two", Provider::Docker).await.record().id;
    first_worker(&launchers.process).await;
    first_worker(&launchers.docker).await;
    let endpoints = |launcher: &MemoryLauncher| -> Vec<_> {
        launcher.started().iter().map(|spec| spec.endpoint).collect()
    };
    assert_eq!((endpoints(&launchers.process), endpoints(&launchers.docker)), (vec![one], vec![two]));
}

#[tokio::test]
async fn a_token_of_another_machine_is_valid_while_its_worker_can_run_without_its_server() {
    let disks = Disks::new();
    let on = async |machine: &str, launcher: &Arc<MemoryLauncher>, orphan_ms: Option<u64>| {
        let launcher: Arc<dyn Launcher> = launcher.clone();
        let workers = WorkerSettings { machine: machine.to_owned(), orphan_ms, ..WorkerSettings::default() };
        start_on(&disks, Launchers::from([(Provider::Process, launcher)]), workers).await
    };
    let (ours, theirs) = (Arc::<MemoryLauncher>::default(), Arc::default());
    let engine = on("a", &ours, Some(0)).await;
    let demo = with_one_worker(&engine, "demo", Provider::Process).await;
    let worker = first_worker(&ours).await;
    let token = ours.started()[0].env["RUNPOD_AI_API_KEY"].clone();
    assert!(engine.is_worker_token(&demo, &token, Some(worker.as_str())));
    assert!(!engine.is_worker_token(&demo, &token, Some("other")));
    engine.close().await;

    for (orphan_ms, is_valid) in [(None, true), (Some(600_000), true), (Some(0), false)] {
        let engine = on("b", &theirs, orphan_ms).await;
        let demo = engine.endpoint("demo").unwrap();
        assert_eq!(engine.is_worker_token(&demo, &token, Some(worker.as_str())), is_valid, "{orphan_ms:?}");
        assert!(!engine.is_worker_token(&demo, &token, Some("other")));
        engine.close().await;
    }
    let ours = Arc::new(ours.successor());
    let engine = on("renamed", &ours, Some(0)).await;
    let demo = engine.endpoint("demo").unwrap();
    assert!(engine.is_worker_token(&demo, &token, Some(worker.as_str())), "it was adopted");
    ours.exit(&worker, Some(0), None, 1_000);
    eventually(async || !engine.is_worker_token(&demo, &token, None)).await;
}

#[tokio::test]
async fn an_endpoint_moves_to_the_launcher_of_its_new_provider() {
    let (disks, launchers) = (Disks::new(), TwoLaunchers::default());
    let engine = launchers.start(&disks).await;
    let demo = with_one_worker(&engine, "demo", Provider::Process).await;
    let old = first_worker(&launchers.process).await;
    let job = demo.jobs().submit(job(&engine, "{}")).await.unwrap().id;
    assert_eq!(take(&demo, old.as_str(), 1_000).await[0].row.id, job);

    change_provider(&engine, "demo", Provider::Docker).await;
    first_worker(&launchers.docker).await;
    assert_eq!(launchers.process.living(), std::slice::from_ref(&old), "the worker finishes its job");
    crate::harness::done(&demo, old.as_str(), job, "1").await;
    eventually(async || launchers.process.living().is_empty()).await;

    change_provider(&engine, "demo", Provider::Kubernetes).await;
    eventually(async || launchers.docker.living().is_empty()).await;
    assert_eq!(
        (launchers.process.started().len(), launchers.docker.started().len()),
        (1, 1),
        "a provider without a launcher starts no worker"
    );
}

#[tokio::test]
async fn workers_are_adopted_from_every_launcher_and_stopped_if_their_endpoint_has_another_provider() {
    let disks = Disks::new();
    let engine = TwoLaunchers::default().start(&disks).await;
    let one = with_one_worker(&engine, "one", Provider::Process).await.record();
    let two = with_one_worker(&engine, "two", Provider::Docker).await.record();
    engine.release_waits().await;
    engine.close().await;

    let launchers = TwoLaunchers {
        process: Arc::new(MemoryLauncher::with_living(vec![
            running_worker(&one, "one"),
            running_worker(&two, "left"),
        ])),
        docker: Arc::new(MemoryLauncher::with_living(vec![running_worker(&two, "two")])),
    };
    let _engine = launchers.start(&disks).await;
    let left: WorkerId = "left".parse().unwrap();
    eventually(async || !launchers.process.living().contains(&left)).await;
    assert_eq!(launchers.process.living(), ["one".parse().unwrap()]);
    assert_eq!(launchers.docker.living(), ["two".parse().unwrap()]);
    assert_eq!((launchers.process.started().len(), launchers.docker.started().len()), (0, 0));
}

#[tokio::test]
async fn a_volume_is_created_and_deleted_by_every_launcher() {
    let (disks, launchers) = (Disks::new(), TwoLaunchers::default());
    let engine = launchers.start(&disks).await;
    let id = VolumeId::mint(1);
    let record = NetworkVolume {
        id,
        name: "data".into(),
        size_gb: 1,
        endpoints: longshore_model::SharedWith::default(),
        data_center_id: String::new(),
        created_at: Millis(0),
    };
    engine.catalog().create_volume(record).await.unwrap();
    let volumes = || (launchers.process.volumes(), launchers.docker.volumes());
    let both = (BTreeSet::from([id]), BTreeSet::from([id]));
    assert_eq!(volumes(), both);

    launchers.docker.refuse(Some("no room"));
    let refused = engine.catalog().delete_volume(&id, |_| true).await.unwrap_err();
    assert!(matches!(refused, CatalogError::Unavailable(_)), "{refused}");
    assert_eq!(volumes(), both, "a deletion that fails at one launcher is undone at the others");
    assert!(engine.catalog().volume(&id).is_some());

    launchers.docker.refuse(None);
    engine.catalog().delete_volume(&id, |_| true).await.unwrap();
    assert_eq!(volumes(), (BTreeSet::new(), BTreeSet::new()));
}
