//! Deployed code as folders of this machine, and how workers run it.
//!
//! Templates name code by its hash. The launcher looks up the folder and the program when a worker starts. Neither path is
//! stored, so both may move.

use std::fs;
use std::path::{Path, PathBuf};

use longshore_model::{CodeHash, StartStage};

use crate::worker_dir::WorkerDir;
use crate::{LaunchError, WorkerSpec};

/// The folder of deployed code: `<name>/<hash>/` for each version.
#[derive(Clone, Debug)]
pub struct CodeFolders(PathBuf);

impl CodeFolders {
    /// The folders in `dir`, which may be created later.
    pub fn at(dir: &Path) -> Self {
        // Workers have folders of their own: a relative path would lead elsewhere from there.
        Self(std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()))
    }

    /// The folder that contains the folders of all names.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of this code, under any name; `None` if the code is not here.
    pub fn find(&self, code: &CodeHash) -> Option<PathBuf> {
        let names = fs::read_dir(&self.0).ok()?.flatten().map(|entry| entry.path());
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
        let folder = self.folders.find(code).ok_or_else(|| {
            LaunchError(format!(
                "worker {} was not started: there is no code {code} in {deployed}: deploy it again",
                spec.worker
            ))
        })?;
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
