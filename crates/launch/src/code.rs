//! Deployed code as folders of this machine, and how workers run it.
//!
//! Templates name code by its hash. The launcher looks up the folder and the program when a worker starts. Neither path is
//! stored, so both may move.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_model::{CodeHash, StartStage};

use crate::worker_dir::WorkerDir;
use crate::{LaunchError, WorkerSpec};

/// Where code is that was deployed through another computer.
pub trait CodeSource: Send + Sync {
    /// Fetches the code, and returns its folder on this computer; `None` if the source does not have it. Blocks.
    ///
    /// # Errors
    ///
    /// The source does not answer, or the folder cannot be written. The text says which.
    fn fetch(&self, code: &CodeHash) -> Result<Option<PathBuf>, String>;
}

/// The folder of deployed code: `<name>/<hash>/` for each version.
#[derive(Clone)]
pub struct CodeFolders {
    path: PathBuf,
    source: Option<Arc<dyn CodeSource>>,
}

impl fmt::Debug for CodeFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CodeFolders").field(&self.path).finish()
    }
}

impl CodeFolders {
    /// The folders in `dir`, which may be created later.
    pub fn at(dir: &Path) -> Self {
        // Workers have folders of their own: a relative path would lead elsewhere from there.
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        Self { path, source: None }
    }

    /// Fetches code from there that is not here.
    #[must_use]
    pub fn with_source(mut self, source: Option<Arc<dyn CodeSource>>) -> Self {
        self.source = source;
        self
    }

    /// The folder that contains the folders of all names.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of this code, fetched if it is not here; `None` if there is no such code. May block for the time of a
    /// download.
    ///
    /// # Errors
    ///
    /// The code cannot be fetched, for the reason in the text.
    pub fn obtain(&self, code: &CodeHash) -> Result<Option<PathBuf>, String> {
        match (self.find(code), &self.source) {
            (None, Some(source)) => source.fetch(code),
            (found, _) => Ok(found),
        }
    }

    /// The folder of this code, under any name; `None` if the code is not here.
    pub fn find(&self, code: &CodeHash) -> Option<PathBuf> {
        let names = fs::read_dir(&self.path).ok()?.flatten().map(|entry| entry.path());
        // A folder that is being removed has an extension; names of code have none.
        let names = names.filter(|name| name.extension().is_none());
        names.map(|name| name.join(code.as_str())).find(|folder| folder.is_dir())
    }
}

/// How deployed code is run.
#[derive(Clone, Debug)]
pub(crate) struct DeployedCode {
    pub(crate) folders: CodeFolders,
    /// The command line to which the folder's path is added.
    pub(crate) runner: Vec<String>,
}

impl DeployedCode {
    /// Sets the `workdir` of a `spec` with code, and the command if it is empty. Only that command is told the file for
    /// its stage, in the folder `dir` of the worker.
    pub(crate) fn resolve(&self, spec: &mut WorkerSpec, dir: &WorkerDir) -> Result<(), LaunchError> {
        let Some(code) = &spec.code else { return Ok(()) };
        let deployed = self.folders.path().display();
        let failed = |why: String| LaunchError(format!("worker {} was not started: {why}", spec.worker));
        let found = self.folders.obtain(code);
        let found = found.map_err(|why| failed(format!("code {code} cannot be fetched: {why}")))?;
        let folder =
            found.ok_or_else(|| failed(format!("there is no code {code} in {deployed}: deploy it again")))?;
        if spec.entrypoint.is_empty() && spec.cmd.is_empty() {
            let text =
                folder.to_str().ok_or_else(|| LaunchError(format!("the path {deployed} is not text")))?;
            spec.cmd = self.runner.iter().cloned().chain([text.to_owned()]).collect();
            let stage_file = dir.stage_file().display().to_string();
            spec.env.insert(StartStage::FILE_VARIABLE.to_owned(), stage_file);
        }
        spec.workdir = Some(folder);
        Ok(())
    }
}
