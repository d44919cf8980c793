//! A running server with the directory's endpoint.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use longshore_client::Client;
use longshore_model::EndpointType;

use super::deploy::{self, Deployment, Fleet};
use super::dev_dir::DevDir;
use super::error::DevError;
use super::forwarded;
use super::logs::Logs;
use super::project::{Program, Project};
use super::sample::{self, Sample, SampleResult};
use super::server_host::RunningServer;
use super::snippets::Snippets;
use super::watch::{self, Changes, FileTimes};
use super::{python, report};
use crate::image::{ImageArgs, registry_auth_id};
use crate::profile::running::RunningProfile;
use crate::screen::Screen;

/// Idle timeout of workers, in seconds: a warm worker runs the next sample sooner.
const IDLE_TIMEOUT_S: u32 = 300;
const SOURCES_ENV: &str = "LONGSHORE_DEV_SOURCES";

/// The server, the project and the terminal of one `longshore dev`.
pub(crate) struct DevSession {
    /// The directory as it was typed, for the commands that are printed.
    pub(crate) dir: PathBuf,
    /// Whether to exit after the sample job.
    pub(crate) once: bool,
    /// The image that is run in place of a handler, if the command line names one.
    pub(crate) image: ImageArgs,
    pub(crate) home: DevDir,
    pub(crate) project: Project,
    /// The command line of a worker.
    pub(crate) command: Vec<String>,
    pub(crate) client: Client,
    pub(crate) key: String,
    /// The stored address and key for other commands. `None` with `--once`, or if it cannot be stored.
    pub(crate) profile: Option<RunningProfile>,
    pub(crate) server: Arc<dyn RunningServer>,
    pub(crate) screen: Screen,
}

impl DevSession {
    /// Deploys and runs the sample. Without `--once`, repeats after each change of the files and never returns.
    pub(crate) async fn work(&mut self) -> Result<ExitCode, DevError> {
        let (server, screen) = (Arc::clone(&self.server), self.screen.clone());
        let mut logs = Logs::from_now(&*server);
        let outcome = tokio::select! {
            outcome = self.develop() => outcome,
            never = logs.follow(&*server, &screen) => match never {},
        };
        // The last log lines of a crashed worker are printed before the result.
        logs.show_news(&*server, &screen);
        outcome
    }

    /// Stops the server and its workers.
    pub(crate) async fn stop(&self) {
        let step = self.screen.step("stopping the workers and the server");
        self.server.stop().await;
        drop(step);
    }

    async fn develop(&mut self) -> Result<ExitCode, DevError> {
        let mut files = FileTimes::look(&self.project.dir);
        self.deploy(&files).await?;
        let verdict = self.try_sample().await?;
        if self.once {
            let completed = verdict == Some(SampleResult::Completed);
            return Ok(if completed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        self.show_snippets();
        self.show_console().await;
        loop {
            self.screen.line(&format!(
                "  {}",
                self.screen.dim("watching for changes · worker logs appear here · Ctrl-C stops everything")
            ));
            let changes = watch::changed(&self.project.dir, &mut files).await;
            // The next change of the files may fix the error.
            if let Err(error) = self.follow_up(changes, &files).await {
                report(&self.screen, &error);
            }
        }
    }

    async fn follow_up(&mut self, changes: Changes, files: &FileTimes) -> Result<(), DevError> {
        self.screen.line("");
        if changes.project {
            self.project = Project::to_run(&self.project.dir, &self.image)?;
            self.command = python::prepare(&self.project, &self.home, &self.screen, &|_| {}).await?;
        }
        if changes.project || changes.source {
            self.deploy(files).await?;
        }
        self.try_sample().await.map(|_| ())
    }

    async fn deploy(&self, files: &FileTimes) -> Result<(), DevError> {
        // One worker always runs, so that a mistake in the handler shows without a job.
        let workers_min = u32::from(!self.once);
        let is_image = matches!(self.project.program, Program::Image(..));
        let fingerprint = files.fingerprint();
        let deployment = Deployment {
            project: &self.project,
            template: format!("dev-{}", self.project.slug),
            workdir: (!is_image).then(|| self.project.dir.display().to_string()),
            command: &self.command,
            mark: (!is_image).then_some((SOURCES_ENV, fingerprint.as_str())),
            registry_auth: self.registry_auth_id().await?,
            fleet: Some(Fleet { workers_min, workers_max: 1, idle_timeout_s: IDLE_TIMEOUT_S }),
            is_local: true,
        };
        let present = deploy::present(&self.client, &self.project).await?;
        let endpoint = deploy::deploy(&self.client, &deployment, present.as_ref()).await?;
        let version = self.screen.dim(&format!("(version {})", endpoint.version));
        self.screen.good(&format!("endpoint {} is up {version}", self.screen.bold(&self.project.slug)));
        Ok(())
    }

    /// The id of the credentials for the image's registry, if the command line names some.
    async fn registry_auth_id(&self) -> Result<Option<String>, DevError> {
        let Some(wanted) = &self.image.registry_auth else { return Ok(None) };
        let found = registry_auth_id(&self.client, wanted).await;
        found.map(Some).map_err(|error| DevError::new(error.message))
    }

    /// Runs the sample, if there is one.
    async fn try_sample(&self) -> Result<Option<SampleResult>, DevError> {
        let Some(path) = self.project.sample() else { return Ok(None) };
        let sample = Sample::load(&path)?;
        let verdict = sample::run(&self.client, &self.project.slug, &sample, &self.screen).await?;
        Ok(Some(verdict))
    }

    /// Prints an address that signs the browser in. Without one, `dev` goes on.
    async fn show_console(&self) {
        let Ok(code) = self.client.console_code().await else { return };
        self.screen
            .line(&format!("  {}", self.screen.bold("console, within a minute (later: longshore console)")));
        self.screen.line(&format!("    {}", code.url));
        self.screen.line("");
    }

    fn show_snippets(&self) {
        if self.project.endpoint_type() == EndpointType::Lb {
            return forwarded::show(self.client.base_url(), &self.project.slug, &self.key, &self.screen);
        }
        let sample = self.project.sample().and_then(|path| std::fs::read(path).ok());
        let path = self.dir.join("test_input.json").display().to_string();
        let snippets = Snippets {
            base_url: self.client.base_url(),
            slug: &self.project.slug,
            key: &self.key,
            sample: sample.as_deref().map(|text| (text, path)),
        };
        snippets.show(&self.screen);
    }
}
