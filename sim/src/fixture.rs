//! A small world for tests, and a server that answers as a test says.

use std::time::Duration;

use axum::Router;
use axum::routing::any;
use http::{Method, StatusCode, Uri};
use tokio::time::timeout;

use crate::auditor::Auditor;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::network::Network;
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::scheduler::{Process, Scheduler};
use crate::world::World;

/// How long a test waits, in simulated time.
const DEADLINE: Duration = Duration::from_hours(1);

/// A world in which nothing goes wrong any more. What is seen is traced.
pub(crate) fn quiet_world(seed: u64) -> (World, Rng) {
    let (world, rng) = world(seed);
    world.faults.end();
    (world, rng)
}

/// A world in which anything may go wrong. What is seen is traced.
pub(crate) fn world(seed: u64) -> (World, Rng) {
    let mut rng = Rng::new(seed);
    let (clock, faults) = (Clock::default(), Faults::draw(&mut rng));

    let record = Recorder::new(clock.clone(), Auditor::default(), true);
    let network = Network::new(&mut rng, faults.clone(), record.clone());
    let tasks = Scheduler::new(&mut rng);
    (World { clock, faults, tasks, record, network }, rng)
}

/// From now on requests get what `answer` says: a status and a body.
pub(crate) fn serve<F>(world: &World, answer: F) -> Process
where
    F: Fn(&Method, &Uri, &str) -> (u16, String) + Clone + Send + Sync + 'static,
{
    let handler = move |method: Method, uri: Uri, body: String| async move {
        let (status, body) = answer(&method, &uri, &body);
        if status == 204 {
            wait_as_a_poll_is_held().await;
        }
        (StatusCode::from_u16(status).unwrap(), body)
    };
    let process = world.tasks.process();
    let router = Router::new().fallback(any(handler));
    world.network.connect(Some((process.clone(), router)));
    process
}

/// Polls are held by the real server, too; else whoever polls would turn in circles.
async fn wait_as_a_poll_is_held() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Waits until the trace holds all of these, in this order; answers the whole trace.
pub(crate) async fn wait_for_trace(world: &World, marks: &[&str]) -> String {
    let mut trace = String::new();
    let found = async {
        loop {
            trace += &world.record.take_trace();
            let mut rest = trace.as_str();
            let all = marks.iter().all(|mark| match rest.find(mark) {
                Some(at) => {
                    rest = &rest[at + mark.len()..];
                    true
                }
                None => false,
            });
            if all {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let found = timeout(DEADLINE, found).await;
    assert!(found.is_ok(), "{marks:?} in this order are not in\n{trace}");
    trace
}
