//! The connection to the daemon, and what the daemon says about itself.

use std::path::Path;
use std::time::Duration;

use bollard::errors::Error;
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
        })
    }
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
