//! The hidden command `code-worker`: a worker of deployed code. It creates the Python environment if there is none,
//! and then executes the handler in its place.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use longshore_model::StartStage;
use rustix::fs::{FlockOperation, flock};

use crate::dev::dev_dir::DevDir;
use crate::dev::error::DevError;
use crate::dev::project::Project;
use crate::dev::python;
use crate::screen::Screen;

/// Arguments of the hidden command `code-worker`.
#[derive(Debug, Args)]
pub struct CodeWorkerArgs {
    /// The directory with the code of one version.
    pub(crate) dir: PathBuf,
}

/// Replaces this process with the handler. Returns only after a failure.
pub async fn code_worker(args: &CodeWorkerArgs) -> ExitCode {
    let screen = Screen::new(true);
    let command = match prepare(args, &screen).await {
        Ok(command) => command,
        Err(error) => return crate::dev::report(&screen, &error),
    };
    let Some((program, args)) = command.split_first() else { return ExitCode::FAILURE };
    let error = Command::new(program).args(args).env_remove(StartStage::FILE_VARIABLE).exec();
    crate::dev::report(&screen, &DevError::new(format!("cannot run `{program}`: {error}")))
}

/// Creates the environment and returns the handler's command line.
async fn prepare(args: &CodeWorkerArgs, screen: &Screen) -> Result<Vec<String>, DevError> {
    let project = Project::load(&args.dir)?;
    let home = DevDir::at(environment_dir(&project))?;
    let lock_path = home.lock();
    let cannot =
        |error: std::io::Error| DevError::new(format!("cannot lock {}: {error}", lock_path.display()));
    let lock = File::create(&lock_path).map_err(cannot)?;
    // One of several concurrently started workers creates the environment; the others wait for the lock.
    say(StartStage::Environment);
    let wait =
        tokio::task::spawn_blocking(move || flock(&lock, FlockOperation::LockExclusive).map(|()| lock));
    let lock = wait.await.map_err(|error| cannot(error.into()))?.map_err(|error| cannot(error.into()))?;
    let command = python::prepare(&project, &home, screen, &say).await;
    if command.is_ok() {
        say(StartStage::Loading);
    }
    drop(lock);
    command
}

/// Writes what this worker does now to the file that the launcher named. A failure is ignored: only people read it.
fn say(stage: StartStage) {
    if let Some(file) = std::env::var_os(StartStage::FILE_VARIABLE) {
        let _ = std::fs::write(file, stage.as_str());
    }
}

/// The directory of the environment. It lies beside the versions, because versions with equal requirements share
/// it.
fn environment_dir(project: &Project) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    project.python.hash(&mut hasher);
    project.requirements().and_then(|path| std::fs::read(path).ok()).hash(&mut hasher);
    let name = format!("env-{:016x}", hasher.finish());
    project.dir.parent().unwrap_or(&project.dir).join(name)
}
