//! The server's processes, one after another: each starts, serves, and is killed or stopped.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use longshore_engine::{Engine, EngineParts, WebhookLog, WebhookTransport};
use longshore_http::HttpState;
use longshore_launch::{Launcher, Launchers};
use longshore_model::Provider;
use longshore_store::StoreError;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::disk::Disk;
use crate::faults::Fault;
use crate::host::SimHost;
use crate::keys;
use crate::observation::Observation;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::settings::ServerSettings;
use crate::world::World;

/// How long requests may run after a stop; the default of the real server.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// Longest interval of the points at which an orderly restart may be injected, in ms.
const RESTART_EVERY_MS_MAX: u64 = 120_000;
/// Longest time until a dead server is started again, in ms.
const DOWN_MS_MAX: u64 = 120_000;

/// Creates the launcher of one server process.
pub type LauncherOf = Box<dyn Fn(&Process) -> Arc<dyn Launcher> + Send + Sync>;

/// The parts of the server's computer outside the server.
pub struct ServerMachine {
    /// The disk with the server's data.
    pub disk: Disk,
    /// Creates the launcher of workers.
    pub launcher: LauncherOf,
    /// The transport of webhook calls.
    pub post: Arc<dyn WebhookTransport>,
    /// The log of webhook calls.
    pub hook_log: Arc<dyn WebhookLog>,
    /// The settings of all server processes.
    pub settings: ServerSettings,
}

/// Keeps a server running as long as the world lasts.
pub async fn keep(world: World, machine: ServerMachine, mut rng: Rng) {
    loop {
        let faults = world.faults.clone();
        let process = world.tasks.mortal_process(move || faults.inject(Fault::ServerKilled));
        let ended_itself = run_process(&world, &machine, &process, &mut rng).await;
        process.kill();
        world.network.connect(None);
        let killed = !ended_itself;
        machine.disk.crash(killed && rng.chance(0.5));
        world.record.observe(&Observation::ServerDown(killed));
        sleep(Duration::from_millis(rng.skewed(0..=DOWN_MS_MAX))).await;
    }
}

/// Runs one server process. Returns whether it ended in order.
async fn run_process(world: &World, machine: &ServerMachine, process: &Process, rng: &mut Rng) -> bool {
    let stop = Arc::new(Notify::new());
    let (ended, end) = oneshot::channel();
    let parts = parts(world, machine, process, rng);
    let (inner, asked, settings) = (world.clone(), Arc::clone(&stop), machine.settings.clone());
    let own = process.clone();
    world.record.observe(&Observation::ServerUp);
    process.spawn(async move {
        if let Err(error) = serve(&inner, own, parts, &settings, &asked).await {
            inner.record.note(|| format!("the server could not start: {error}"));
        }
        let _ = ended.send(());
    });
    let restarts = async {
        loop {
            sleep(Duration::from_millis(rng.skewed(1_000..=RESTART_EVERY_MS_MAX))).await;
            if world.faults.inject(Fault::ServerRestarted) {
                stop.notify_one();
            }
        }
    };
    tokio::select! {
        biased;
        () = process.death() => false,
        // An error means that the process died in the same step.
        ended = end => ended.is_ok(),
        () = restarts => false,
    }
}

fn parts(world: &World, machine: &ServerMachine, process: &Process, rng: &mut Rng) -> EngineParts {
    let host = SimHost::new(world.clock.clone(), process.clone(), rng.fork());
    EngineParts {
        store: Arc::new(machine.disk.store(process)),
        blobs: Arc::new(machine.disk.blobs(process)),
        launchers: Launchers::from([(Provider::Process, (machine.launcher)(process))]),
        runtime: Arc::new(host),
        webhook_transport: Arc::clone(&machine.post),
        vault: Arc::default(),
        webhook_log: Arc::clone(&machine.hook_log),
        settings: machine.settings.engine.clone(),
        webhooks: machine.settings.webhooks.clone(),
        workers: machine.settings.workers.clone(),
        traces: None,
    }
}

/// Does what the program does between start and end.
async fn serve(
    world: &World,
    process: Process,
    parts: EngineParts,
    settings: &ServerSettings,
    stop: &Notify,
) -> Result<(), StoreError> {
    let engine = Engine::start(parts).await?;
    keys::admit(&engine).await?;
    let router = longshore_http::router(HttpState::new(engine.clone(), &settings.http));
    let router = Router::new().fallback_service(router);
    world.network.connect(Some((process, router)));
    stop.notified().await;
    world.network.close();
    engine.release_waits().await;
    // Requests that take longer are disconnected.
    let _ = timeout(STOP_GRACE, world.network.until_idle()).await;
    engine.close().await;
    Ok(())
}
