//! Deployed code in containers: the folder is mounted into the base image, whose Python runs it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_launch::{CodeFolders, LaunchError, WorkerDir, WorkerSpec};

/// Where a container has the code, which it cannot change.
pub(crate) const CODE: &str = "/longshore/code";
/// The current folder of a container with code. It shows the entries of the code, and is the worker's own.
pub(crate) const CWD: &str = "/longshore/work";

/// Returns the command line that runs the code in a folder, or why there is none.
pub type CodeCommand = dyn Fn(&Path) -> Result<Vec<String>, String> + Send + Sync;

/// How containers run deployed code.
#[derive(Clone)]
pub(crate) struct DeployedCode {
    pub(crate) folders: CodeFolders,
    pub(crate) command: Arc<CodeCommand>,
}

/// The folders of this computer that a container with code sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeMounts {
    /// Seen as [`CODE`], and read-only.
    pub(crate) code: PathBuf,
    /// The folder that the container sees as [`CWD`].
    pub(crate) cwd: PathBuf,
}

impl DeployedCode {
    /// Sets the command of a `spec` with code, unless it has one. Makes the worker's current folder in its folder `dir`.
    ///
    /// # Errors
    ///
    /// The code is not here, has no handler, or the folder could not be made.
    pub(crate) fn resolve(&self, spec: &mut WorkerSpec, dir: &WorkerDir) -> Result<CodeMounts, LaunchError> {
        let failed =
            |reason: String| LaunchError(format!("worker {} was not started: {reason}", spec.worker));
        let hash = spec.code.as_ref().map(ToString::to_string).unwrap_or_default();
        let code = spec.code.as_ref().map_or(Ok(None), |code| self.folders.obtain(code));
        let code = code.map_err(|why| failed(format!("code {hash} cannot be fetched: {why}")))?;
        let code = code.ok_or_else(|| {
            failed(format!("there is no code {hash} in {}: deploy it again", self.folders.path().display()))
        })?;
        let words = (self.command)(&code).map_err(failed)?;
        let cwd = dir.path().join("cwd");
        show(&code, &cwd).map_err(|error| failed(format!("cannot make its current folder: {error}")))?;
        if spec.entrypoint.is_empty() && spec.cmd.is_empty() {
            let mut words = words.into_iter();
            spec.entrypoint = words.next().into_iter().collect();
            spec.cmd = words.collect();
        }
        Ok(CodeMounts { code, cwd })
    }
}

/// Makes `cwd` show the entries of `code`, as a container sees both. Any user of a container may read the code and write
/// into `cwd`: the folders around both are the server's alone.
fn show(code: &Path, cwd: &Path) -> io::Result<()> {
    fs::create_dir(cwd)?;
    for (folder, mode) in [(code, 0o755), (cwd, 0o777)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    }
    for entry in fs::read_dir(code)? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b".runpod_jobs") {
            symlink(Path::new(CODE).join(&name), cwd.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_folder_shows_the_code_as_the_container_sees_it() {
        let dir = tempfile::tempdir().unwrap();
        let (code, cwd) = (dir.path().join("code"), dir.path().join("cwd"));
        fs::create_dir(&code).unwrap();
        for name in ["handler.py", ".runpod_jobs.pkl"] {
            fs::write(code.join(name), "").unwrap();
        }
        show(&code, &cwd).unwrap();
        let names: Vec<_> = fs::read_dir(&cwd).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["handler.py"]);
        assert_eq!(fs::read_link(cwd.join("handler.py")).unwrap(), Path::new("/longshore/code/handler.py"));
        assert_eq!(fs::metadata(&cwd).unwrap().permissions().mode() & 0o777, 0o777);
    }
}
