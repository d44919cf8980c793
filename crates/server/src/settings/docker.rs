//! The settings of containers.

use std::path::PathBuf;
use std::time::Duration;

use longshore_docker::{DockerSettings, PullPolicy};
use serde::Deserialize;

use super::{Settings, SettingsError};

/// The daemon's socket on most computers.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
/// The variable with the daemon's address, as of `docker` itself.
const HOST_VARIABLE: &str = "DOCKER_HOST";
/// How often containers are looked for that no server attends to.
const ORPHAN_INTERVAL: Duration = Duration::from_mins(10);
const BYTES_PER_GB: u64 = 1_000_000_000;
/// The value of `socket` that switches containers off.
const OFF: &str = "off";

/// The table `[docker]` of the configuration file, as it is written there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DockerTable {
    socket: String,
    server_url: String,
    network: String,
    pull: Pull,
    pull_stall_ms: u64,
    cap_drop: String,
    base_image: String,
    images_max_gb: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pull {
    Always,
    Missing,
}

impl Settings {
    /// The settings of containers; `None` if this computer has no Docker daemon, or must not use it.
    pub(crate) fn docker(&self) -> Option<DockerSettings> {
        let table = &self.docker;
        let own = |url: &str| (!url.is_empty()).then(|| url.trim_end_matches('/').to_owned());
        Some(DockerSettings {
            socket: self.docker_socket()?,
            server_url: own(&table.server_url).or_else(|| self.server_url()),
            network: table.network.clone(),
            pull: match table.pull {
                Pull::Always => PullPolicy::Always,
                Pull::Missing => PullPolicy::Missing,
            },
            pull_stall: Duration::from_millis(table.pull_stall_ms),
            cap_drop: table
                .cap_drop
                .split([',', ' '])
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect(),
            base_image: Some(table.base_image.clone()).filter(|image| !image.is_empty()),
            images_bytes_max: Some(table.images_max_gb.saturating_mul(BYTES_PER_GB))
                .filter(|bytes| *bytes > 0),
            orphan_interval: ORPHAN_INTERVAL,
        })
    }

    /// The address in `DOCKER_HOST` if containers are off because of it: it names no unix socket, and the settings name none.
    pub(crate) fn unused_docker_host(&self) -> Option<String> {
        docker_host().filter(|host| self.docker.socket.is_empty() && !host.starts_with("unix://"))
    }

    /// The daemon's socket: the configured one, or that of `DOCKER_HOST`, or the usual one if it exists.
    fn docker_socket(&self) -> Option<PathBuf> {
        let path = |address: &str| address.strip_prefix("unix://").unwrap_or(address).to_owned();
        match self.docker.socket.as_str() {
            OFF => None,
            "" => match docker_host() {
                Some(host) if host.starts_with("unix://") => Some(path(&host).into()),
                // Another daemon than the one that the variable names must not be used in its place.
                Some(_) => None,
                None => Some(PathBuf::from(DEFAULT_SOCKET)).filter(|socket| socket.exists()),
            },
            socket => Some(path(socket).into()),
        }
    }

    pub(super) fn check_docker(&self) -> Result<(), SettingsError> {
        let DockerTable { socket, server_url, pull_stall_ms, network, .. } = &self.docker;
        let refused = |text: String| Err(SettingsError::Value(text));
        if socket.contains("://") && !socket.starts_with("unix://") {
            return refused(format!(
                "`docker.socket` is {socket:?}; only a unix socket is supported, such as {DEFAULT_SOCKET}"
            ));
        }
        if !server_url.is_empty() && !server_url.starts_with("http://") && !server_url.starts_with("https://")
        {
            return refused(format!(
                "`docker.server_url` is {server_url:?}; it must start with http:// or https://"
            ));
        }
        if network.is_empty() {
            return refused("`docker.network` is empty; name a network, such as host or bridge".to_owned());
        }
        if *pull_stall_ms < 1_000 {
            return refused(format!("`docker.pull_stall_ms` is {pull_stall_ms}; it must be at least 1000"));
        }
        Ok(())
    }
}

/// The address of a daemon in the environment.
fn docker_host() -> Option<String> {
    std::env::var(HOST_VARIABLE).ok().filter(|host| !host.is_empty())
}
