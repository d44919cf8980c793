//! Builds images of folders with a `Dockerfile`, by the daemon's own builder.

use std::collections::HashMap;
use std::pin::pin;

use bollard::body_full;
use bollard::models::BuildInfo;
use bollard::query_parameters::BuildImageOptionsBuilder;
use futures_util::StreamExt as _;
use longshore_launch::LaunchError;
use tokio::sync::mpsc;

use crate::daemon::reason;
use crate::labels::INSTALLATION;
use crate::launcher::Connection;

/// What the names of built images begin with. No registry has them, so they are never pulled.
const BUILT: &str = "longshore-build/";
/// What the daemon says often of each layer that it pulls.
const PROGRESS: [&str; 4] = ["Downloading", "Extracting", "Waiting", "Verifying Checksum"];

/// The whole name of an image that was built here.
pub(crate) fn name_of(image: &str) -> String {
    format!("{BUILT}{image}")
}

/// Whether an image was built here.
pub(crate) fn is_built(image: &str) -> bool {
    image.starts_with(BUILT)
}

/// The name that all images of one folder have, without the version; `None` for an image that was not built here.
pub(crate) fn folder_of(image: &str) -> Option<&str> {
    is_built(image).then(|| image.rsplit_once(':').map_or(image, |(folder, _)| folder))
}

/// Builds the image `name` of the files in `context`, a tar archive with a `Dockerfile`. Its steps have the `network` of the
/// workers. The drop of the returned future ends the build.
///
/// # Errors
///
/// Why there is no image: the words of the daemon.
pub(crate) async fn run(
    connection: &Connection,
    name: &str,
    network: &str,
    context: Vec<u8>,
    print: &mpsc::Sender<String>,
) -> Result<(), LaunchError> {
    let labels = HashMap::from([(INSTALLATION, connection.owner.label.as_str())]);
    let options = BuildImageOptionsBuilder::new()
        .t(name)
        .rm(true)
        .forcerm(true)
        .networkmode(network)
        .labels(&labels)
        .build();
    let mut messages =
        pin!(connection.daemon.docker.build_image(options, None, Some(body_full(context.into()))));
    while let Some(message) = messages.next().await {
        let message = message.map_err(|error| LaunchError(reason(&error)))?;
        if let Some(error) = message.error_detail {
            return Err(LaunchError(error.message.unwrap_or_else(|| "no reason given".to_owned())));
        }
        if let Some(text) = text_of(&message) {
            // Without a reader, the caller drops the build.
            let _ = print.send(text).await;
        }
    }
    Ok(())
}

/// What a message says to people; `None` for the progress of a pull.
fn text_of(message: &BuildInfo) -> Option<String> {
    if let Some(text) = &message.stream {
        return Some(text.clone());
    }
    let status = message.status.as_ref()?;
    if PROGRESS.iter().any(|word| status.starts_with(word)) {
        return None;
    }
    let layer = message.id.as_ref().map_or_else(String::new, |id| format!("{id}: "));
    Some(format!("{layer}{status}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_has_steps_and_layers_without_their_progress() {
        let status = |text: &str| BuildInfo {
            id: Some("a1".to_owned()),
            status: Some(text.to_owned()),
            ..BuildInfo::default()
        };
        let step = BuildInfo { stream: Some("Step 1/2 : FROM x\n".to_owned()), ..BuildInfo::default() };
        assert_eq!(text_of(&step).as_deref(), Some("Step 1/2 : FROM x\n"));
        assert_eq!(text_of(&status("Pull complete")).as_deref(), Some("a1: Pull complete\n"));
        assert_eq!(text_of(&status("Downloading")), None);
        assert_eq!(text_of(&BuildInfo::default()), None);
        assert!(is_built(&name_of("chat:1")) && !is_built("chat:1"));
        assert_eq!(folder_of(&name_of("chat:1")), Some("longshore-build/chat"));
    }
}
