//! The operator's settings of containers.

use std::path::PathBuf;
use std::time::Duration;

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// Before each start of a worker. An image that has not changed is not downloaded again.
    Always,
    /// If the daemon does not have the image.
    Missing,
}

/// The operator's settings of containers.
#[derive(Clone, Debug)]
pub struct DockerSettings {
    /// The path of the daemon's unix socket.
    pub socket: PathBuf,
    /// The address under which containers reach the server; `None`: the server's own address for workers.
    pub server_url: Option<String>,
    /// The network of the containers, as for `docker run --network`.
    pub network: String,
    /// When an image is pulled.
    pub pull: PullPolicy,
    /// The longest time without progress of a pull.
    pub pull_stall: Duration,
    /// The capabilities that containers do not get.
    pub cap_drop: Vec<String>,
    /// The image in which deployed code runs; `None`: deployed code is refused.
    pub base_image: Option<String>,
    /// The size of all images that this server has pulled, in bytes, from which the least recently used ones are removed;
    /// `None`: none is removed.
    pub images_bytes_max: Option<u64>,
    /// How often containers are looked for that no server attends to.
    pub orphan_interval: Duration,
}

impl DockerSettings {
    /// Whether containers have the network of the computer itself.
    pub(crate) fn is_host_network(&self) -> bool {
        self.network == "host"
    }
}
