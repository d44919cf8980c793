//! Warm starts of workers as processes: which of them are forks, and what the others tell about their imports.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{StartStage, StopReason, WorkerId};
use rustix::process::Signal;
use tokio::sync::watch as condition;
use tokio::time::timeout;

use super::spawn::{Source, Started};
use super::{LauncherShared, ProcessLauncher, in_background, locked};
use crate::proc::ProcessId;
use crate::worker_dir::{ExitNote, WorkerDir};
use crate::zygote::{Imports, Recipe, Route, Zygotes};
use crate::{LaunchError, WorkerSpec, python_path};

/// The variable with the path at which a worker notes its imports.
const IMPORTS_VARIABLE: &str = "LONGSHORE_IMPORTS";
/// How often the launcher looks for a worker's note.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The signals that a broken fork ends with.
const CRASHES: [Signal; 5] = [Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL, Signal::SEGV];

/// A start that may be that of a fork.
pub(super) struct WarmStart {
    zygotes: Arc<Zygotes>,
    recipe: Arc<Recipe>,
    inherited: BTreeMap<String, String>,
}

/// How a worker was started.
pub(super) enum Outcome {
    /// The worker was started by its command.
    Plain,
    /// The worker was started by its command, and will note its imports.
    Learns(Arc<Recipe>),
    /// The worker was started as a fork of a zygote.
    Forked(Arc<Recipe>),
}

impl ProcessLauncher {
    /// The warm start of a worker; `None` if it is started by its command.
    pub(super) fn warm_start(&self, spec: &WorkerSpec) -> Option<WarmStart> {
        if self.worker_runtime.is_none() || python_path::is_off(&spec.env) {
            return None;
        }
        let inherited = inherited()?;
        let recipe = Arc::new(Recipe::of(spec, &inherited)?);
        Some(WarmStart { zygotes: self.shared.zygotes.clone(), recipe, inherited })
    }

    /// Waits for the note of a worker, and makes a zygote with its imports.
    pub(super) fn learn(
        &self,
        worker: &WorkerId,
        process: Option<ProcessId>,
        recipe: Arc<Recipe>,
        gone: condition::Receiver<bool>,
    ) {
        let (zygotes, path) = (self.shared.zygotes.clone(), self.shared.live(worker).imports());
        locked(&self.watches).spawn(async move {
            let Some(imports) = noted(path, gone).await else { return };
            // A program that the worker has started may have written the note.
            if process
                .and_then(|process| process.pid())
                .is_some_and(|own| own.as_raw_nonzero().get() == imports.pid)
            {
                zygotes.make(Recipe::clone(&recipe), imports).await;
            }
        });
    }

    /// Notes that a fork is replaced, for example because it never took a job.
    pub(super) fn note_replacement(&self, worker: &WorkerId, reason: &StopReason) {
        let StopReason::Replaced(reason) = reason else { return };
        let forked_for =
            locked(&self.shared.running).get(worker).and_then(|worker| worker.forked_for.clone());
        if let Some(recipe) = forked_for {
            self.shared.zygotes.note_failure(&recipe, reason);
        }
    }
}

impl WarmStart {
    /// Starts the worker with `start`, as a fork if there is a zygote.
    pub(super) fn start(
        self,
        mut spec: WorkerSpec,
        dir: &WorkerDir,
        start: impl Fn(&Source<'_>, WorkerSpec) -> Result<Started, LaunchError>,
    ) -> Result<(Started, Outcome), LaunchError> {
        match self.zygotes.route(&self.recipe) {
            Route::Plain => return Ok((start(&Source::Command, spec)?, Outcome::Plain)),
            Route::Learn => {}
            Route::Fork(zygote) => {
                let mut spec = spec.clone();
                // A fork is past the stages that it names.
                spec.env.remove(StartStage::FILE_VARIABLE);
                match start(&Source::Fork(&zygote, &self.inherited), spec) {
                    Ok(started) => return Ok((started, Outcome::Forked(self.recipe))),
                    Err(error) => self.zygotes.note_failure(&self.recipe, &error.to_string()),
                }
            }
        }
        spec.env.insert(IMPORTS_VARIABLE.to_owned(), dir.imports().display().to_string());
        Ok((start(&Source::Command, spec)?, Outcome::Learns(self.recipe)))
    }
}

impl LauncherShared {
    /// Notes that a fork has crashed, which its command might not have.
    pub(super) fn note_crash(&self, worker: &WorkerId, exit: &ExitNote) {
        let forked_for = locked(&self.running).get(worker).and_then(|worker| worker.forked_for.clone());
        let Some(recipe) = forked_for else { return };
        if exit.signal.is_some_and(|signal| CRASHES.iter().any(|crash| crash.as_raw() == signal)) {
            self.zygotes.note_failure(&recipe, "a fork of its zygote crashed");
        }
    }
}

/// The variables that workers inherit from this process; `None` if one of them is no text, which a fork could not get.
fn inherited() -> Option<BTreeMap<String, String>> {
    let all =
        std::env::vars_os().map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let all: Option<BTreeMap<String, String>> = all.collect();
    Some(all?.into_iter().filter(|(name, _)| !name.starts_with("LONGSHORE_")).collect())
}

/// Waits for a worker's note; `None` once the worker is gone.
async fn noted(path: PathBuf, mut gone: condition::Receiver<bool>) -> Option<Imports> {
    loop {
        let at = path.clone();
        if let Some(imports) = in_background(move || Imports::read(&at)).await.ok()? {
            return Some(imports);
        }
        if timeout(LOOK_EVERY, gone.wait_for(|gone| *gone)).await.is_ok() {
            return None;
        }
    }
}
