//! Several nodes on one database: each starts, answers, takes over, and is killed, suspended or stopped.
//!
//! The membership, the lanes and the edges of the nodes are those of the server. What is simulated is the database, the network
//! between nodes, and the objects that all nodes read.

mod lost_take;
mod member;
mod node;
pub mod partitions;
mod peers;
mod rates;
mod serving;

use std::sync::Arc;
use std::time::Duration;

use longshore_engine::{WebhookLog, WebhookTransport};
use tokio::time::{Instant, sleep};

use self::node::NodeMachine;
use self::partitions::{Partitions, Place};
use self::peers::Peers;
pub use self::rates::rates;
use self::serving::Serving;
use crate::auditor::Rules;
use crate::database::{Database, UNFLUSHED_MS_MAX};
use crate::disk::Disk;
use crate::faults::Fault;
use crate::rng::Rng;
use crate::server::LauncherOf;
use crate::settings::ServerSettings;
use crate::world::World;

/// Longest time between two chances of a partition, in ms.
const PARTITION_INTERVAL_MS_MAX: u64 = 30_000;
/// Longest partition, in ms.
const PARTITION_MS_MAX: u64 = 60_000;
/// Largest difference of a node's wall clock, in ms.
const SKEW_MS_MAX: u64 = 10_000;

/// The parts that all nodes of a cluster share.
pub struct SharedParts {
    /// The objects that hold large payloads.
    pub objects: Disk,
    /// Creates the launcher of workers.
    pub launcher: LauncherOf,
    /// The transport of webhook calls.
    pub post: Arc<dyn WebhookTransport>,
    /// The log of webhook calls.
    pub hook_log: Arc<dyn WebhookLog>,
    /// The settings of all nodes.
    pub settings: ServerSettings,
}

/// What the auditor is told of a cluster.
pub fn rules(of_server: &Rules) -> Rules {
    Rules { requests_wait_for_owner: true, buffered_loss_ms: UNFLUSHED_MS_MAX, ..of_server.clone() }
}

/// Starts 2 to 5 nodes, their database and the faults between them.
pub fn start(world: &World, rng: &mut Rng, parts: SharedParts) {
    let partitions = Partitions::default();
    let database = Database::new(world, rng, partitions.clone());
    let peers = Peers::new(world, rng, partitions.clone());
    let serving = Serving::new(world.record.clone());
    let parts = Arc::new(parts);
    let nodes = rng.range(2..=5) as usize;
    let environment = world.tasks.process();
    for number in 0..nodes {
        let skew_ms = rng.range(0..=2 * SKEW_MS_MAX) as i64 - SKEW_MS_MAX as i64;
        let machine = NodeMachine {
            number,
            world: world.clone(),
            database: database.of_node(number),
            peers: peers.clone(),
            serving: serving.clone(),
            parts: Arc::clone(&parts),
            skew_ms,
        };
        environment.spawn(machine.keep(rng.fork()));
    }
    let sessions = database.clone();
    environment.spawn(database.crash_sometimes(rng.fork(), move |crash| {
        // Changes of buffered endpoints may be lost when computers lose their power. Then the owner loses its own, too: a
        // node that lives on would have in its memory what the database has lost.
        if crash.lost_buffered {
            serving.cut_power();
        }
    }));
    environment.spawn(part_sometimes(world.clone(), partitions, nodes as u64, rng.fork()));
    environment.spawn(sessions.end_sessions_sometimes(rng.fork()));
}

/// Cuts connections between nodes, and between nodes and the database, from time to time.
async fn part_sometimes(world: World, partitions: Partitions, nodes: u64, mut rng: Rng) {
    loop {
        sleep(Duration::from_millis(rng.skewed(1_000..=PARTITION_INTERVAL_MS_MAX))).await;
        let one = rng.range(0..=nodes - 1);
        let other = (one + rng.range(1..=nodes - 1)) % nodes;
        let pairs =
            [(Fault::NodesApart, Place::Node(other as usize)), (Fault::DatabaseApart, Place::Database)];
        for (fault, there) in pairs {
            if !world.faults.inject(fault) {
                continue;
            }
            let until = Instant::now() + Duration::from_millis(rng.skewed(100..=PARTITION_MS_MAX));
            let here = Place::Node(one as usize);
            let ways = rng.range(0..=3);
            if ways != 1 {
                partitions.cut(here, there, until);
            }
            if ways != 2 {
                partitions.cut(there, here, until);
            }
            world.record.note(|| format!("{here:?} and {there:?} are apart, ways {ways}"));
        }
    }
}
