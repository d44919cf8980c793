//! The image of a worker: pulled if it has to be, and named by its content from then on.

use longshore_launch::{LaunchError, WorkerSpec};
use longshore_model::StartStage;

use crate::build;
use crate::daemon::{Daemon, reason, status};
use crate::image_record::ImageRecord;
use crate::pulls::Pulls;
use crate::settings::{DockerSettings, PullPolicy};

/// An image that the daemon has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The name of its content. A tag that moves afterwards does not change a container of this id.
    pub(crate) id: String,
    /// The folders that its own environment adds to Python's; `None` without any.
    pub(crate) python_path: Option<String>,
}

/// Returns the image `name` for a worker.
///
/// # Errors
///
/// Why the image is not here and could not be pulled, or why it cannot run here.
pub(crate) async fn ensure(
    daemon: &Daemon,
    pulls: &Pulls,
    record: &ImageRecord,
    settings: &DockerSettings,
    spec: &WorkerSpec,
    report: impl FnMut(StartStage),
) -> Result<Image, LaunchError> {
    let image = spec.image.as_str();
    if image.is_empty() {
        return Err(LaunchError("the template names no image; set its `imageName`".to_owned()));
    }
    let is_built = build::is_built(image);
    if (is_built || settings.pull == PullPolicy::Missing)
        && let Some(found) = find(daemon, image).await?
    {
        record.note_used(image);
        return Ok(found);
    }
    if is_built {
        return Err(LaunchError(format!(
            "the image {image} was built by a deploy, and the daemon no longer has it; deploy its folder again"
        )));
    }
    let was_here = settings.pull == PullPolicy::Always && find(daemon, image).await?.is_some();
    let login = spec.registry_login.as_ref();
    pulls.pull(&daemon.docker, image, login, settings.pull_stall, report).await?;
    if was_here {
        record.note_used(image);
    } else {
        record.note_made(image);
    }
    find(daemon, image)
        .await?
        .ok_or_else(|| LaunchError(format!("the image {image} was removed right after its pull; try again")))
}

/// An image, if the daemon has it.
async fn find(daemon: &Daemon, image: &str) -> Result<Option<Image>, LaunchError> {
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
        _ => {
            let env = found.config.and_then(|config| config.env).unwrap_or_default();
            let python_path = env.iter().find_map(|it| it.strip_prefix("PYTHONPATH=")).map(str::to_owned);
            Ok(found.id.map(|id| Image { id, python_path }))
        }
    }
}
