//! The image of a worker: pulled if it has to be, and named by its content from then on.

use longshore_launch::{LaunchError, WorkerSpec};
use longshore_model::StartStage;

use crate::daemon::{Daemon, reason, status};
use crate::pulls::Pulls;
use crate::settings::{DockerSettings, PullPolicy};

/// Returns the id of the image of `spec`. A tag that moves afterwards does not change the container.
///
/// # Errors
///
/// Why the image is not here and could not be pulled, or why it cannot run here.
pub(crate) async fn ensure(
    daemon: &Daemon,
    pulls: &Pulls,
    settings: &DockerSettings,
    spec: &WorkerSpec,
    report: impl FnMut(StartStage),
) -> Result<String, LaunchError> {
    let image = spec.image.as_str();
    if image.is_empty() {
        return Err(LaunchError("the template names no image; set its `imageName`".to_owned()));
    }
    if settings.pull == PullPolicy::Missing
        && let Some(id) = find(daemon, image).await?
    {
        return Ok(id);
    }
    let login = spec.registry_login.as_ref();
    pulls.pull(&daemon.docker, image, login, settings.pull_stall, report).await?;
    find(daemon, image)
        .await?
        .ok_or_else(|| LaunchError(format!("the image {image} was removed right after its pull; try again")))
}

/// The id of an image that the daemon has; `None` if it does not have it.
async fn find(daemon: &Daemon, image: &str) -> Result<Option<String>, LaunchError> {
    let found = match daemon.docker.inspect_image(image).await {
        Ok(found) => found,
        Err(error) if status(&error) == Some(404) => return Ok(None),
        Err(error) => {
            return Err(LaunchError(format!("cannot inspect the image {image}: {}", reason(&error))));
        }
    };
    // Imported images may name no architecture.
    let of_image = found.architecture.filter(|name| !name.is_empty());
    let here = &daemon.architecture;
    match of_image {
        Some(other) if other != *here && !here.is_empty() => Err(LaunchError(format!(
            "the image {image} is for {other} processors, and this computer has {here}; build it for {here}"
        ))),
        _ => Ok(found.id),
    }
}
