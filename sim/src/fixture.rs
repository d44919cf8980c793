//! A small world for tests, and a server whose responses the test chooses.

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

/// A traced world without faults.
pub(crate) fn quiet_world(seed: u64) -> (World, Rng) {
    let (world, rng) = world(seed);
    world.faults.end();
    (world, rng)
}

/// A traced world in which any fault may occur.
pub(crate) fn world(seed: u64) -> (World, Rng) {
    let mut rng = Rng::new(seed);
    let (clock, faults) = (Clock::default(), Faults::draw(&mut rng));

    let record = Recorder::new(clock.clone(), Auditor::default(), true);
    let network = Network::new(&mut rng, faults.clone(), record.clone());
    let tasks = Scheduler::new(&mut rng);
    (World { clock, faults, tasks, record, network }, rng)
}

/// Answers all requests with the status and body that `answer` returns.
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

/// Holds polls as the real server does; otherwise a poller would loop without time passing.
async fn wait_as_a_poll_is_held() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Waits until the trace has all of these texts in this order. Returns the whole trace.
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
