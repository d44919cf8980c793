//! An operator's task that requests redelivery of failed webhooks, and sometimes of delivered ones.

use std::time::Duration;

use tokio::time::sleep;

use crate::endpoints::Endpoints;
use crate::observation::Party;
use crate::raw_http::{get, post, text_member};
use crate::rng::Rng;
use crate::world::World;

/// Probability that a world has this task.
const PRESENCE: f64 = 0.3;
/// Longest time between two passes, in ms.
const PAUSE_MS_MAX: u64 = 120_000;

/// Starts the task with this key, in some of the worlds.
pub fn start(world: &World, mut rng: Rng, key: &str, endpoints: &Endpoints) {
    if !rng.chance(PRESENCE) {
        return;
    }
    let (inner, credential, endpoints) = (world.clone(), format!("Bearer {key}"), endpoints.clone());
    world.tasks.process().spawn(async move {
        while !inner.faults.are_over() {
            sleep(Duration::from_millis(rng.skewed(1_000..=PAUSE_MS_MAX))).await;
            let Some(endpoint) = endpoints.pick(&mut rng) else { continue };
            let mount = format!("/v2/{}/webhooks", endpoint.id);
            let path = if rng.chance(0.5) {
                format!("{mount}/redeliver")
            } else {
                let list = get(format!("{mount}?limit=1"), &credential);
                let Ok(answer) = inner.network.ask(Party::Operator, list).await else { continue };
                let Some(id) = text_member(&answer.body, "id") else { continue };
                format!("{mount}/{id}/redeliver")
            };
            // The webhook calls show whether the redelivery took effect.
            let _ = inner.network.ask(Party::Operator, post(path, &credential, "")).await;
        }
    });
}
