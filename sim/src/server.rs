//! The server's processes, one after another: each starts, serves, and is killed or stopped in the end.

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

/// How long requests may take to end when the server is stopped; the default of the real one.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// How often somebody may think of an orderly restart, or pull the plug.
const WHIM_MS_MAX: u64 = 120_000;
/// Milliseconds until a dead server is started again, at most.
const DOWN_MS_MAX: u64 = 120_000;

/// What runs workers, as one process of the server holds it.
pub type LauncherOf = Box<dyn Fn(&Process) -> Arc<dyn Launcher> + Send + Sync>;

/// Everything that the server's machine has beside the server.
pub struct ServerMachine {
    /// Its disk.
    pub disk: Disk,
    /// What runs workers there.
    pub launcher: LauncherOf,
    /// How webhook calls leave it.
    pub post: Arc<dyn WebhookTransport>,
    /// Where the server notes what became of them.
    pub hook_log: Arc<dyn WebhookLog>,
    /// How the server is set up.
    pub settings: ServerSettings,
}

/// Keeps a server running for as long as the world lasts.
pub async fn keep(world: World, machine: ServerMachine, mut rng: Rng) {
    loop {
        let faults = world.faults.clone();
        let process = world.tasks.mortal_process(move || faults.inject(Fault::ServerKilled));
        let ended_itself = live(&world, &machine, &process, &mut rng).await;
        process.kill();
        world.network.connect(None);
        let killed = !ended_itself;
        machine.disk.crash(killed && rng.chance(0.5));
        world.record.see(&Observation::ServerDown(killed));
        sleep(Duration::from_millis(rng.skewed(0..=DOWN_MS_MAX))).await;
    }
}

/// One life of the server. Answers whether it ended in order.
async fn live(world: &World, machine: &ServerMachine, process: &Process, rng: &mut Rng) -> bool {
    let stop = Arc::new(Notify::new());
    let (ended, end) = oneshot::channel();
    let parts = parts(world, machine, process, rng);
    let (inner, asked, settings) = (world.clone(), Arc::clone(&stop), machine.settings.clone());
    let own = process.clone();
    world.record.see(&Observation::ServerUp);
    process.spawn(async move {
        if let Err(error) = serve(&inner, own, parts, &settings, &asked).await {
            inner.record.note(|| format!("the server could not start: {error}"));
        }
        let _ = ended.send(());
    });
    let whims = async {
        loop {
            sleep(Duration::from_millis(rng.skewed(1_000..=WHIM_MS_MAX))).await;
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
        () = whims => false,
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
    }
}

/// What the program does between its start and its end.
async fn serve(
    world: &World,
    process: Process,
    parts: EngineParts,
    settings: &ServerSettings,
    stop: &Notify,
) -> Result<(), StoreError> {
    let engine = Engine::start(parts).await?;
    keys::admit(&engine).await?;
    let edge = longshore_http::router(HttpState::new(engine.clone(), &settings.http));
    let router = Router::new().fallback_service(edge);
    world.network.connect(Some((process, router)));
    stop.notified().await;
    world.network.close();
    engine.release_waits().await;
    // Those that take longer are cut off.
    let _ = timeout(STOP_GRACE, world.network.until_idle()).await;
    engine.close().await;
    Ok(())
}
