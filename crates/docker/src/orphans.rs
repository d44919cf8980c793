//! Removes containers of this installation that no server attends to: what a killed server had asked the daemon to create
//! can appear after the next server has looked.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::ContainerSummary;
use longshore_launch::Starts;
use tokio::time::{MissedTickBehavior, interval};

use crate::adopt::listed;
use crate::attend::remove;
use crate::labels;
use crate::launcher::{Connection, Shared};

/// Looks for orphans at intervals, and removes images that are not needed. Never returns.
pub(crate) async fn look_at_intervals(shared: Arc<Shared>, starts: Starts, connection: Arc<Connection>) {
    let every = shared.settings.orphan_interval;
    let adopted_at = SystemTime::now();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate, and the adoption has just looked.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        remove_orphans(&shared, &starts, &connection, adopted_at).await;
        shared.images.prune(&connection.daemon, shared.settings.images_bytes_max).await;
    }
}

async fn remove_orphans(shared: &Shared, starts: &Starts, connection: &Connection, adopted_at: SystemTime) {
    let Ok(all) = listed(&connection.daemon, &connection.owner).await else {
        // The daemon is away; the next look finds the same.
        return;
    };
    let old_before = SystemTime::now().checked_sub(shared.settings.orphan_interval).unwrap_or(UNIX_EPOCH);
    for container in all {
        let Some(id) = orphan(&container, adopted_at.max(old_before)) else { continue };
        let worker = labels::worker(&container.labels.unwrap_or_default());
        // The list is older than this look: a start that has ended since is a worker that runs.
        let Some(worker) = worker.map(|found| found.worker) else { continue };
        if shared.attends(&worker) || starts.contains(&worker) {
            continue;
        }
        tracing::warn!(%worker, container = %id, "removing a container that no server attends to");
        remove(&connection.daemon, &id).await;
    }
}

/// The id of a container that was created before `limit`; `None` if it was created later, or the daemon does not say.
fn orphan(container: &ContainerSummary, limit: SystemTime) -> Option<String> {
    let created = UNIX_EPOCH + Duration::from_secs(u64::try_from(container.created?).ok()?);
    (created < limit).then(|| container.id.clone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_old_by_its_time_of_creation() {
        let limit = UNIX_EPOCH + Duration::from_secs(1_000);
        let at = |created| ContainerSummary { id: Some("c".into()), created, ..ContainerSummary::default() };
        assert_eq!(orphan(&at(Some(999)), limit).as_deref(), Some("c"));
        for created in [Some(1_000), Some(-1), None] {
            assert_eq!(orphan(&at(created), limit), None, "{created:?}");
        }
    }
}
