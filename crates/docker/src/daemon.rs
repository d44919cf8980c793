//! The connection to the daemon, and what the daemon says about itself.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::DeviceInfo;
use bollard::{API_DEFAULT_VERSION, Docker};
use longshore_launch::LaunchError;
use tokio::time::timeout;

/// The longest time of one request, in seconds. Streams may last longer.
const REQUEST_TIMEOUT_S: u64 = 120;
/// How long the daemon may take to answer the first requests.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The header with the credentials for a registry.
const REGISTRY_AUTH: &str = "x-registry-auth";

/// A daemon that answers.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    pub(crate) docker: Docker,
    /// Processors of the daemon's computer as images name them, such as `amd64`.
    pub(crate) architecture: String,
    /// Whether the daemon has an init process for containers.
    pub(crate) has_init: bool,
    /// Whether the runtime of NVIDIA is installed.
    pub(crate) has_nvidia: bool,
    /// Whether the daemon enforces limits of memory, and of processors.
    pub(crate) enforces: (bool, bool),
    /// Whether the daemon's storage may be able to limit the disk of a container. The creation of one shows whether it is.
    pub(crate) may_limit_disk: bool,
    /// The devices that the daemon can give by the Container Device Interface, such as `nvidia.com/gpu=GPU-1`.
    pub(crate) cdi_devices: HashSet<String>,
}

impl Daemon {
    /// Connects to the daemon behind a socket.
    ///
    /// # Errors
    ///
    /// Why the daemon does not answer, with the socket.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, LaunchError> {
        let failed = |reason: String| {
            LaunchError(format!("the Docker daemon at {} does not answer: {reason}", socket.display()))
        };
        let connect = async {
            let path = socket.to_str().unwrap_or_default();
            let docker = Docker::connect_with_unix(path, REQUEST_TIMEOUT_S, API_DEFAULT_VERSION)?
                .with_request_modifier(|mut request| {
                    make_url_safe(request.headers_mut());
                    request
                });
            let docker = docker.negotiate_version().await?;
            let facts = docker.info().await?;
            Ok::<_, Error>((docker, facts))
        };
        let (docker, facts) = timeout(CONNECT_TIMEOUT, connect)
            .await
            .map_err(|_| failed(format!("no response within {} s", CONNECT_TIMEOUT.as_secs())))?
            .map_err(|error| failed(reason(&error)))?;
        let init = facts.init_commit.and_then(|commit| commit.id).unwrap_or_default();
        Ok(Self {
            docker,
            architecture: image_architecture(facts.architecture.as_deref().unwrap_or_default()).to_owned(),
            has_init: !init.is_empty() && init != "N/A",
            has_nvidia: facts.runtimes.is_some_and(|runtimes| runtimes.contains_key("nvidia")),
            enforces: (facts.memory_limit.unwrap_or_default(), facts.cpu_cfs_quota.unwrap_or_default()),
            may_limit_disk: may_limit_disk(
                facts.driver.as_deref().unwrap_or_default(),
                &facts.driver_status.unwrap_or_default(),
            ),
            cdi_devices: cdi_devices(facts.discovered_devices.unwrap_or_default()),
        })
    }
}

/// The devices of the Container Device Interface among all that the daemon has found.
fn cdi_devices(found: Vec<DeviceInfo>) -> HashSet<String> {
    let cdi = found.into_iter().filter(|device| device.source.as_deref() == Some("cdi"));
    cdi.filter_map(|device| device.id).collect()
}

/// Whether a storage driver can limit the disk of a container. The one with overlays can on XFS alone, and there only with a
/// mount option that the daemon does not tell.
fn may_limit_disk(driver: &str, facts: &[Vec<String>]) -> bool {
    let is_xfs = || facts.iter().any(|fact| fact.iter().eq(["Backing Filesystem", "xfs"]));
    matches!(driver, "btrfs" | "zfs") || driver == "overlay2" && is_xfs()
}

/// The text of an error and of its causes: the client names only the outermost one.
pub(crate) fn reason(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// The status code of the daemon's response; `None` if there was no response.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Rewrites the credentials from the standard alphabet of base64 to the URL-safe one. The daemon reads only that, and
/// ignores credentials that it cannot read: a right password with certain characters would be refused.
fn make_url_safe(headers: &mut http::HeaderMap) {
    let Some(sent) = headers.get(REGISTRY_AUTH).and_then(|value| value.to_str().ok()) else { return };
    if let Ok(safe) = sent.replace('+', "-").replace('/', "_").parse() {
        headers.insert(REGISTRY_AUTH, safe);
    }
}

/// The name of an architecture in images, for its name in the kernel.
fn image_architecture(kernel: &str) -> &str {
    match kernel {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_can_be_limited_by_few_storage_drivers() {
        let fact = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        let on = |filesystem| [fact("Supports d_type", "true"), fact("Backing Filesystem", filesystem)];
        assert!(may_limit_disk("overlay2", &on("xfs")) && may_limit_disk("zfs", &[]));
        assert!(!may_limit_disk("overlay2", &on("extfs")) && !may_limit_disk("vfs", &on("xfs")));
    }

    #[test]
    fn devices_of_other_sources_are_not_requested() {
        let device = |source: &str| DeviceInfo {
            source: Some(source.to_owned()),
            id: Some("nvidia.com/gpu=GPU-1".to_owned()),
        };
        assert_eq!(cdi_devices(vec![device("x"), device("cdi")]).len(), 1);
        assert!(cdi_devices(vec![device("x")]).is_empty());
    }
}
