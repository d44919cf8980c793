//! The hidden command `code-worker`: a worker of deployed code. It makes the environment where it is missing, and then
//! becomes the handler.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use rustix::fs::{FlockOperation, flock};

use crate::dev::dev_dir::DevDir;
use crate::dev::error::DevError;
use crate::dev::project::Project;
use crate::dev::python;
use crate::screen::Screen;

/// Arguments of the hidden command.
#[derive(Debug, Args)]
pub struct CodeWorkerArgs {
    /// The folder with the code.
    pub(crate) dir: PathBuf,
}

/// Becomes the handler; returns only where that fails.
pub async fn code_worker(args: &CodeWorkerArgs) -> ExitCode {
    let screen = Screen::new(true);
    let command = match prepare(args, &screen).await {
        Ok(command) => command,
        Err(error) => return crate::dev::report(&screen, &error),
    };
    let Some((program, args)) = command.split_first() else { return ExitCode::FAILURE };
    let error = Command::new(program).args(args).exec();
    crate::dev::report(&screen, &DevError::new(format!("cannot run `{program}`: {error}")))
}

/// The command line of the handler, once its environment is there.
async fn prepare(args: &CodeWorkerArgs, screen: &Screen) -> Result<Vec<String>, DevError> {
    let project = Project::load(&args.dir)?;
    let home = DevDir::at(environment_dir(&project))?;
    let lock_path = home.lock();
    let cannot =
        |error: std::io::Error| DevError::new(format!("cannot lock {}: {error}", lock_path.display()));
    let lock = File::create(&lock_path).map_err(cannot)?;
    // Of several workers that start at once, one makes the environment.
    let wait =
        tokio::task::spawn_blocking(move || flock(&lock, FlockOperation::LockExclusive).map(|()| lock));
    let lock = wait.await.map_err(|error| cannot(error.into()))?.map_err(|error| cannot(error.into()))?;
    let command = python::prepare(&project, &home, screen).await;
    drop(lock);
    command
}

/// Beside the versions: those that need the same packages share an environment.
fn environment_dir(project: &Project) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    project.python.hash(&mut hasher);
    project.requirements().and_then(|path| std::fs::read(path).ok()).hash(&mut hasher);
    let name = format!("env-{:016x}", hasher.finish());
    project.dir.parent().unwrap_or(&project.dir).join(name)
}
