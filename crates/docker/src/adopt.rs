//! Finds the containers of an earlier server again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::ListContainersOptionsBuilder;
use longshore_launch::{InstallationId, LaunchError, RunningWorker};
use tokio::time::Instant;

use crate::attend::{Attended, remove};
use crate::daemon::{Daemon, reason};
use crate::labels::{self, INSTALLATION, Owner};
use crate::launcher::{Connection, DockerLauncher};

/// A container of this installation.
struct Found {
    id: String,
    worker: RunningWorker,
    state: ContainerSummaryStateEnum,
}

impl DockerLauncher {
    /// Connects to the daemon and takes the containers of this installation over. Returns those that run.
    pub(crate) async fn adopt_all(
        &self,
        installation: InstallationId,
    ) -> Result<Vec<RunningWorker>, LaunchError> {
        self.check_address()?;
        let daemon = Daemon::connect(&self.shared.settings.socket).await?;
        let folder = self.shared.folders.identity().map_err(|error| {
            LaunchError(format!("cannot make the folder of the containers' logs: {error}"))
        })?;
        let owner = Owner::new(installation, folder);
        let found = list(&daemon, &owner).await?;
        let connection = Arc::new(Connection { daemon, owner });
        self.shared.set_connection(Arc::clone(&connection));
        let mut present = Vec::new();
        let known: HashSet<_> = found.iter().map(|found| found.worker.worker.clone()).collect();
        for Found { id, mut worker, state } in found {
            if state == ContainerSummaryStateEnum::CREATED {
                // The earlier server ended between the creation and the start: the worker never ran.
                remove(&connection.daemon, &id).await;
                self.shared.folders.live(&worker.worker).remove_quietly();
                continue;
            }
            self.shared.note(&worker)?;
            worker.is_stopping = self.shared.folders.live(&worker.worker).is_stopping();
            let runs = matches!(
                state,
                ContainerSummaryStateEnum::RUNNING
                    | ContainerSummaryStateEnum::PAUSED
                    | ContainerSummaryStateEnum::RESTARTING
            );
            let attended = Attended { worker: worker.clone(), id, memory_bytes: None, since: Instant::now() };
            self.attend(&connection, attended);
            if runs {
                if worker.is_stopping {
                    self.finish_stopping(&worker.worker);
                }
                present.push(worker);
            }
        }
        self.shared.folders.clear_unknown(&known);
        self.look_for_orphans(&connection);
        Ok(present)
    }
}

/// The containers that carry the label of this installation. One with damaged labels is no worker and stays.
async fn list(daemon: &Daemon, owner: &Owner) -> Result<Vec<Found>, LaunchError> {
    Ok(listed(daemon, owner).await?.into_iter().filter_map(found).collect())
}

/// The containers that carry the label of this installation, as the daemon lists them.
pub(crate) async fn listed(daemon: &Daemon, owner: &Owner) -> Result<Vec<ContainerSummary>, LaunchError> {
    let filters = HashMap::from([("label", vec![format!("{INSTALLATION}={}", owner.label)])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let listed = daemon.docker.list_containers(Some(options)).await;
    listed.map_err(|error| LaunchError(format!("cannot list the containers: {}", reason(&error))))
}

fn found(summary: ContainerSummary) -> Option<Found> {
    let id = summary.id?;
    let worker = labels::worker(&summary.labels.unwrap_or_default());
    if worker.is_none() {
        tracing::warn!(container = %id, "a container has the label of this server and no worker in its labels");
    }
    Some(Found { id, worker: worker?, state: summary.state? })
}
