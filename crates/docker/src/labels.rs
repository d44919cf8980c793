//! The labels of a container, by which a later server finds its worker again. No label has a secret.

use std::collections::HashMap;

use longshore_launch::{InstallationId, RunningWorker, WorkerSpec};

/// The label with the installation.
pub(crate) const INSTALLATION: &str = "dev.longshore.install";
const WORKER: &str = "dev.longshore.worker";
const ENDPOINT: &str = "dev.longshore.endpoint";
const VERSION: &str = "dev.longshore.version";
const PLACEMENT: &str = "dev.longshore.placement";
const SERVER_URL: &str = "dev.longshore.server-url";

/// The identity that a server's containers carry: the installation, and the number of its folder on disk. A copy of the data
/// directory has another number, so that it never touches the containers of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The value of [`INSTALLATION`].
    pub(crate) label: String,
    /// The beginning of the containers' names.
    prefix: String,
}

impl Owner {
    pub(crate) fn new(installation: InstallationId, folder: u64) -> Self {
        let InstallationId(id) = installation;
        // The low bits of the folder's number are those that differ between two folders.
        let short = (id ^ u128::from(folder).rotate_left(96)) >> 96;
        Self { label: format!("{id:032x}-{folder:x}"), prefix: format!("ls-{short:08x}") }
    }

    /// The name of a worker's container.
    pub(crate) fn container(&self, worker: &str) -> String {
        format!("{}-{worker}", self.prefix)
    }

    /// The labels of a worker's container.
    pub(crate) fn labels(&self, spec: &WorkerSpec) -> HashMap<String, String> {
        let placement = serde_json::to_string(&spec.placement).unwrap_or_default();
        HashMap::from(
            [
                (INSTALLATION, self.label.clone()),
                (WORKER, spec.worker.to_string()),
                (ENDPOINT, spec.endpoint.to_string()),
                (VERSION, spec.version.to_string()),
                (PLACEMENT, placement),
                (SERVER_URL, spec.server_url.clone()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        )
    }
}

/// The worker of a container with these labels; `None` if a label is missing or damaged.
pub(crate) fn worker(labels: &HashMap<String, String>) -> Option<RunningWorker> {
    let of = |name: &str| labels.get(name);
    Some(RunningWorker {
        worker: of(WORKER)?.parse().ok()?,
        endpoint: of(ENDPOINT)?.parse().ok()?,
        version: of(VERSION)?.parse().ok()?,
        is_stopping: false,
        placement: serde_json::from_str(of(PLACEMENT)?).ok()?,
        server_url: of(SERVER_URL).cloned(),
    })
}
