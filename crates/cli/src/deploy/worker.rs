//! The hidden command `code-worker`: a worker of deployed code. It fetches the code if that is on another computer, creates
//! the Python environment if there is none, and then executes the handler in its place.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use longshore_model::StartStage;
use rustix::fs::{FlockOperation, flock};

use super::code_cache;
use super::fetch::fetched;
use crate::dev::dev_dir::DevDir;
use crate::dev::error::DevError;
use crate::dev::project::{Program, Project};
use crate::dev::python;
use crate::screen::Screen;

/// Arguments of the hidden command `code-worker`.
#[derive(Debug, Args)]
pub struct CodeWorkerArgs {
    /// The directory with the code of one version; without it, the code is fetched from its server.
    pub(crate) dir: Option<PathBuf>,
    /// The address of the code [or `LONGSHORE_CODE_URL`]
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    from: Option<String>,
    /// The folder for fetched code and Python environments [default: ~/.cache/longshore/code]
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    cache: Option<PathBuf>,
}

/// Replaces this process with the handler. Returns only after a failure.
pub async fn code_worker(args: &CodeWorkerArgs) -> ExitCode {
    let screen = Screen::new(true);
    let (dir, words) = match prepare(args, &screen).await {
        Ok(prepared) => prepared,
        Err(error) => return crate::dev::report(&screen, &error),
    };
    let Some((program, words)) = words.split_first() else { return ExitCode::FAILURE };
    let mut command = Command::new(program);
    command.args(words).env_remove(StartStage::FILE_VARIABLE);
    if args.dir.is_none() {
        command.current_dir(dir);
    }
    let error = command.exec();
    crate::dev::report(&screen, &DevError::new(format!("cannot run `{program}`: {error}")))
}

/// Returns the command line that runs the code of a folder with the `python3` of a container image, relative to the folder.
/// It installs no packages: those are the image's.
///
/// # Errors
///
/// The folder has no handler, or its `longshore.toml` is damaged.
pub fn code_command(dir: &Path) -> Result<Vec<String>, String> {
    let project = Project::load(dir).map_err(|error| error.to_string())?;
    Ok(match project.program {
        Program::Handler(file) => {
            let python = project.python.unwrap_or_else(|| "python3".to_owned());
            vec![python, "-u".to_owned(), file]
        }
        Program::Command(command) => command,
        Program::Image(..) | Program::Dockerfile(_) => return Err("deployed code names an image".to_owned()),
    })
}

/// Creates the environment. Returns the folder of the code and the handler's command line.
async fn prepare(args: &CodeWorkerArgs, screen: &Screen) -> Result<(PathBuf, Vec<String>), DevError> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => fetched(args.from.as_deref(), args.cache.as_deref(), screen).await?,
    };
    let project = Project::load(&dir)?;
    let environment = environment_dir(&project);
    let home = DevDir::at(environment.clone())?;
    if args.dir.is_none() {
        let kept = code_cache::keep(&environment);
        kept.map_err(|error| DevError::new(format!("cannot use {}: {error}", environment.display())))?;
    }
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
    Ok((project.dir, command?))
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
    let name = format!("{}{:016x}", code_cache::ENVIRONMENT, hasher.finish());
    project.dir.parent().unwrap_or(&project.dir).join(name)
}
