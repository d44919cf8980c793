//! The pulls in progress: one for each image and user, for all workers that need it. A pull ends when no worker waits for it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt;
use longshore_launch::{LaunchError, RegistryLogin};
use longshore_model::StartStage;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::daemon::{reason, status};
use crate::progress::Progress;
use crate::refusals;

/// The shortest time between two reports of progress: the daemon sends hundreds of messages.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// An image, and the user that pulls it.
type PullKey = (String, Option<RegistryLogin>);

/// The pulls in progress.
#[derive(Debug, Default)]
pub(crate) struct Pulls(Mutex<HashMap<PullKey, Weak<Pull>>>);

/// One pull. Its drop cancels it.
#[derive(Debug)]
struct Pull {
    state: watch::Receiver<PullState>,
    task: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct PullState {
    stage: StartStage,
    result: Option<Result<(), LaunchError>>,
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pulls {
    /// Pulls an image, or waits for the pull that another worker has begun. Reports its progress. If the returned future is
    /// dropped and no other worker waits for the pull, the pull is cancelled.
    ///
    /// # Errors
    ///
    /// Why the image could not be pulled.
    pub(crate) async fn pull(
        &self,
        docker: &Docker,
        image: &str,
        login: Option<&RegistryLogin>,
        stall: Duration,
        mut report: impl FnMut(StartStage),
    ) -> Result<(), LaunchError> {
        let pull = self.join(docker, image, login, stall);
        let mut state = pull.state.clone();
        loop {
            let PullState { stage, result } = state.borrow_and_update().clone();
            if let Some(result) = result {
                return result;
            }
            report(stage);
            if state.changed().await.is_err() {
                return Err(LaunchError(format!("the pull of the image {image} was interrupted")));
            }
        }
    }

    /// The pull in progress, or a new one.
    fn join(
        &self,
        docker: &Docker,
        image: &str,
        login: Option<&RegistryLogin>,
        stall: Duration,
    ) -> Arc<Pull> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, pull| pull.strong_count() > 0);
        let key = (image.to_owned(), login.cloned());
        let present = all.get(&key).and_then(Weak::upgrade);
        if let Some(pull) = present.filter(|pull| pull.state.borrow().result.is_none()) {
            return pull;
        }
        let nothing = StartStage::Pulling { done_bytes: 0, total_bytes: 0 };
        let (sender, state) = watch::channel(PullState { stage: nothing, result: None });
        let (docker, image, login) = (docker.clone(), image.to_owned(), login.cloned());
        let task = tokio::spawn(async move {
            let result = run(&docker, &image, login.as_ref(), stall, &sender).await.map_err(LaunchError);
            sender.send_modify(|state| state.result = Some(result));
        });
        let pull = Arc::new(Pull { state, task });
        all.insert(key, Arc::downgrade(&pull));
        pull
    }
}

async fn run(
    docker: &Docker,
    image: &str,
    login: Option<&RegistryLogin>,
    stall: Duration,
    publish: &watch::Sender<PullState>,
) -> Result<(), String> {
    let options = CreateImageOptionsBuilder::new().from_image(&with_tag(image)).build();
    let credentials = login.map(|login| DockerCredentials {
        username: Some(login.username.clone()),
        password: Some(login.password.clone()),
        ..DockerCredentials::default()
    });
    let refused = |status, reason: &str| refusals::of_pull(image, status, login.is_some(), reason);
    let mut messages = pin!(docker.create_image(Some(options), None, credentials));
    let mut progress = Progress::default();
    let mut reported: Option<Instant> = None;
    let mut has_news = false;
    loop {
        let wait = if has_news { REPORT_INTERVAL } else { stall };
        let message = match timeout(wait, messages.next()).await {
            // The last message before a pause must be reported, too.
            Err(_) if has_news => {
                has_news = false;
                publish.send_modify(|state| state.stage = progress.stage());
                continue;
            }
            Err(_) => return Err(refused(None, &format!("no progress for {} s", stall.as_secs()))),
            Ok(None) => return Ok(()),
            Ok(Some(Err(error))) => return Err(refused(status(&error), &reason(&error))),
            Ok(Some(Ok(message))) => message,
        };
        // The daemon reports some errors inside of a successful response.
        if let Some(error) = message.error_detail {
            return Err(refused(None, error.message.as_deref().unwrap_or("no reason given")));
        }
        progress.read(&message);
        has_news = true;
        if reported.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
            has_news = false;
            reported = Some(Instant::now());
            publish.send_modify(|state| state.stage = progress.stage());
        }
    }
}

/// The image with the tag `latest` if it has neither a tag nor a digest. Without one, the daemon would pull every tag.
fn with_tag(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_tag_or_digest_is_the_latest_one() {
        for (image, expected) in [
            ("python", "python:latest"),
            ("registry:5000/x/y", "registry:5000/x/y:latest"),
            ("registry:5000/x/y:1", "registry:5000/x/y:1"),
            ("x@sha256:00", "x@sha256:00"),
        ] {
            assert_eq!(with_tag(image), expected);
        }
    }
}
