//! A node: its processes, one after another, as standby and as owner.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use longshore_engine::{Engine, EngineParts};
use longshore_http::{Cluster, HttpState, PeerSecret, Surface, is_gone_by};
use longshore_launch::Launchers;
use longshore_model::Provider;
use longshore_postgres::{IsGone, Membership};
use longshore_store::StoreError;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::SharedParts;
use super::member::Member;
use super::peers::Peers;
use super::serving::Serving;
use crate::database::{NodeView, SharedStore};
use crate::faults::Fault;
use crate::host::SimHost;
use crate::keys;
use crate::observation::Observation;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::world::World;

/// How long requests may run after a stop; the default of the real server.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// How long a node may take to stop.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);
/// Longest interval of the points at which a node may be stopped in order or suspended, in ms.
const CHANCE_MS_MAX: u64 = 30_000;
/// Longest time for which a node is suspended, in ms.
const PAUSE_MS_MAX: u64 = 180_000;
/// Longest time until a dead node is started again, in ms.
const DOWN_MS_MAX: u64 = 20_000;
/// The secret of the cluster.
const SECRET: &str = "the-simulated-secret-of-peers";

/// The computer of a node.
pub(super) struct NodeMachine {
    pub(super) number: usize,
    pub(super) world: World,
    pub(super) database: NodeView,
    pub(super) peers: Peers,
    pub(super) serving: Serving,
    pub(super) parts: Arc<SharedParts>,
    /// How far its wall clock is ahead, in ms.
    pub(super) skew_ms: i64,
}

impl NodeMachine {
    /// Keeps a node running as long as the world lasts.
    pub(super) async fn keep(self, mut rng: Rng) {
        let machine = Arc::new(self);
        loop {
            let faults = machine.world.faults.clone();
            let process = machine.world.tasks.mortal_process(move || faults.inject(Fault::ServerKilled));
            let is_needed = machine.run_process(&process, &mut rng).await;
            process.kill();
            machine.world.network.connect_node(machine.number, None);
            if !is_needed {
                return;
            }
            sleep(Duration::from_millis(rng.skewed(0..=DOWN_MS_MAX))).await;
        }
    }

    /// Runs one process of the node, until it ends. Returns whether the node is to start again.
    async fn run_process(self: &Arc<Self>, process: &Process, rng: &mut Rng) -> bool {
        let stop = Arc::new(Notify::new());
        let (ended, end) = oneshot::channel();
        let (joined, id) = watch::channel(None);
        let start = NodeStart {
            machine: Arc::clone(self),
            process: process.clone(),
            host: Arc::new(SimHost::skewed(
                self.world.clock.clone(),
                process.clone(),
                rng.fork(),
                self.skew_ms,
            )),
            stop: Arc::clone(&stop),
        };
        process.spawn(async move {
            let served = start.serve(joined).await;
            if let Err(error) = &served {
                start.machine.world.record.note(|| format!("node {}: {error}", start.machine.number));
            }
            let _ = ended.send(served.is_ok());
        });
        let killed = tokio::select! {
            biased;
            () = process.death() => true,
            // An error means that the process died in the same step.
            ended = end => ended != Ok(true),
            () = self.disturb(process, &stop, &id, rng) => false,
        };
        let id = *id.borrow();
        let Some(id) = id else { return true };
        self.serving.end(id, killed);
        !self.is_superfluous(id)
    }

    /// Whether the world needs the node no more: nothing can happen to the owner.
    fn is_superfluous(&self, id: i32) -> bool {
        self.world.faults.are_over() && self.serving.is_other(id)
    }

    /// Stops the node in order, or suspends it, from time to time.
    async fn disturb(
        &self,
        process: &Process,
        stop: &Notify,
        id: &watch::Receiver<Option<i32>>,
        rng: &mut Rng,
    ) {
        loop {
            sleep(Duration::from_millis(rng.skewed(1_000..=CHANCE_MS_MAX))).await;
            let id = *id.borrow();
            if id.is_some_and(|id| self.is_superfluous(id)) {
                stop.notify_one();
            }
            if self.world.faults.inject(Fault::ServerRestarted) {
                stop.notify_one();
            }
            if self.world.faults.inject(Fault::NodePaused) {
                let lasts = Duration::from_millis(rng.skewed(100..=PAUSE_MS_MAX));
                self.world.record.note(|| format!("node {} is suspended for {lasts:?}", self.number));
                process.pause();
                // A client that is connected to this node waits as during an outage.
                self.world.record.observe(&Observation::DiskFailed);
                sleep(lasts).await;
                process.go_on();
                self.world.record.observe(&Observation::DiskFailed);
                self.world.record.note(|| format!("node {} goes on", self.number));
            }
        }
    }
}

/// One start of a node.
struct NodeStart {
    machine: Arc<NodeMachine>,
    process: Process,
    host: Arc<SimHost>,
    stop: Arc<Notify>,
}

impl NodeStart {
    /// Does what the program does between start and end.
    async fn serve(&self, joined: watch::Sender<Option<i32>>) -> Result<(), StoreError> {
        let NodeMachine { number, database, peers, parts, world, .. } = &*self.machine;
        let (me, session) = database.join(Peers::address(*number)).await?;
        joined.send_replace(Some(me.id));
        let net = peers.of_node(*number);
        let probe = net.clone();
        let is_gone: IsGone = Arc::new(move |node| {
            let net = probe.clone();
            Box::pin(async move { is_gone_by(node.id, net.find(&node)).await })
        });
        let (own, process) = (me.id, self.process.clone());
        let spawn = move |task| process.spawn(task);
        let membership = Arc::new(Membership::start(database.clone(), me, session, is_gone, &spawn));
        let member = Arc::new(Member(Arc::clone(&membership)));
        let http = &parts.settings.http;
        let secret = PeerSecret::new(SECRET);
        let cluster = Cluster::over(member, secret, http, Arc::new(net), Arc::clone(&self.host) as _);
        peers.listen(*number, own, &self.process, cluster.peer_edge());
        let edge = cluster.edge(Surface::All);
        let answer = move |request: axum::extract::Request| edge.clone().response(request);
        world.network.connect_node(*number, Some((self.process.clone(), Router::new().fallback(answer))));
        let turn = tokio::select! {
            biased;
            error = membership.lost() => return Err(error),
            epoch = membership.owned_epoch() => Some(epoch),
            () = self.stop.notified() => None,
        };
        let engine = match turn {
            None => None,
            Some(epoch) => {
                self.host.own(membership.clock(), membership.right());
                let engine = tokio::select! {
                    biased;
                    error = membership.lost() => return Err(error),
                    engine = self.take_over(&cluster, own, epoch) => engine?,
                };
                tokio::select! {
                    biased;
                    error = membership.lost() => return Err(error),
                    () = self.stop.notified() => {}
                }
                Some(engine)
            }
        };
        let _ = timeout(STOP_TIME_MAX, self.end(&cluster, engine)).await;
        membership.leave().await
    }

    /// Starts the engine, and answers with it.
    async fn take_over(&self, cluster: &Cluster, id: i32, epoch: i64) -> Result<Engine, StoreError> {
        let machine = &*self.machine;
        machine.world.record.note(|| format!("node {} is the owner {epoch} of the shards", machine.number));
        machine.serving.begin(id, &self.process);
        let began = Instant::now();
        let store = SharedStore::open(machine.database.clone(), id, epoch, &self.process);
        let settings = &machine.parts.settings;
        let parts = EngineParts {
            store: Arc::new(store),
            blobs: Arc::new(machine.parts.objects.blobs(&self.process)),
            launchers: Launchers::from([(Provider::Process, (machine.parts.launcher)(&self.process))]),
            runtime: Arc::clone(&self.host) as _,
            webhook_transport: Arc::clone(&machine.parts.post),
            vault: Arc::default(),
            webhook_log: Arc::clone(&machine.parts.hook_log),
            settings: settings.engine.clone(),
            webhooks: settings.webhooks.clone(),
            workers: settings.workers.clone(),
            traces: None,
        };
        let engine = Engine::start(parts).await?;
        keys::admit(&engine).await?;
        let routes = longshore_http::router(HttpState::new(engine.clone(), &settings.http));
        cluster.own(&routes, began.elapsed());
        Ok(engine)
    }

    async fn end(&self, cluster: &Cluster, engine: Option<Engine>) {
        let network = &self.machine.world.network;
        network.close_node(self.machine.number);
        cluster.release_polls();
        if let Some(engine) = &engine {
            engine.release_waits().await;
        }
        // Requests that take longer are disconnected.
        let _ = timeout(STOP_GRACE, network.until_node_idle(self.machine.number)).await;
        if let Some(engine) = engine {
            engine.close().await;
        }
    }
}
