//! The parts of a data directory that a database has no place for: they are copied from one directory to the other.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use longshore_cli::CopyArgs;

use super::tell;
use crate::startup_error::StartupError;

/// Deployed code, network volumes and the history.
const PARTS: [&str; 3] = ["code", "volumes", "history"];

/// What became of the files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The parts that were copied.
    copied: Vec<&'static str>,
    /// The parts that were not copied, because no directory was named for them.
    left: Vec<&'static str>,
}

impl Files {
    /// Copies the parts that `from` has.
    ///
    /// # Errors
    /// A file that cannot be read or written; the text names it.
    pub(super) fn copy(from: Option<&Path>, to: Option<PathBuf>) -> Result<Self, StartupError> {
        let Some(from) = from else { return Ok(Self::default()) };
        let present: Vec<&str> = PARTS.into_iter().filter(|part| from.join(part).is_dir()).collect();
        let Some(to) = to else { return Ok(Self { left: present, ..Self::default() }) };
        for part in &present {
            copy_all(&from.join(part), &to.join(part)).map_err(|(path, cause)| {
                StartupError::Copy(format!("cannot copy {}: {cause}", path.display()))
            })?;
        }
        Ok(Self { copied: present, left: Vec::new() })
    }

    /// Says what became of the files.
    pub(super) fn tell(&self, args: &CopyArgs) {
        let is_to_database = args.to.contains("://");
        if !self.copied.is_empty() {
            let to = args.files.as_deref().filter(|_| is_to_database).unwrap_or(Path::new(&args.to));
            tell(&format!("files in {}: {}", to.display(), self.copied.join(", ")));
        }
        if !self.left.is_empty() {
            tell(&format!(
                "not copied: {} of {}; copy what you need into the data directory of the next server",
                self.left.join(", "),
                args.from
            ));
        }
        if !is_to_database && args.files.is_none() {
            tell(&format!(
                "deployed code, volumes and history are in the data directory of the server that used the database: \
                 copy what you need of {} to {}",
                PARTS.join(", "),
                args.to
            ));
        }
    }
}

/// Copies a file, a link, or a directory with everything in it, with permissions. Sockets and pipes have no content.
fn copy_all(from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
    let failed = |cause| (from.to_owned(), cause);
    let facts = fs::symlink_metadata(from).map_err(failed)?;
    if facts.is_symlink() {
        return fs::read_link(from).and_then(|target| symlink(target, to)).map_err(failed);
    }
    if facts.is_file() {
        let modified = facts.modified();
        fs::copy(from, to).map_err(failed)?;
        // Unused code is removed by its age.
        let file = fs::File::options().write(true).open(to);
        if let (Ok(modified), Ok(file)) = (modified, file) {
            file.set_modified(modified).map_err(failed)?;
        }
        return Ok(());
    }
    if !facts.is_dir() {
        return Ok(());
    }
    fs::create_dir(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, Permissions::from_mode(facts.permissions().mode())).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_copied_as_it_is_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for part in ["code/a", "volumes", "workers"] {
            fs::create_dir_all(from.join(part)).unwrap();
        }
        fs::create_dir(&to).unwrap();
        fs::write(from.join("code/a/handler.py"), "pass").unwrap();
        fs::set_permissions(from.join("code/a/handler.py"), Permissions::from_mode(0o640)).unwrap();
        symlink("a/handler.py", from.join("code/link")).unwrap();
        let files = Files::copy(Some(&from), Some(to.clone())).unwrap();
        assert_eq!((files.copied, files.left), (vec!["code", "volumes"], vec![]));
        assert_eq!(fs::read_to_string(to.join("code/link")).unwrap(), "pass");
        assert_eq!(fs::read_link(to.join("code/link")).unwrap(), Path::new("a/handler.py"));
        let mode = fs::metadata(to.join("code/a/handler.py")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(!to.join("workers").exists());
        let files = Files::copy(Some(&from), None).unwrap();
        assert_eq!((files.copied, files.left), (vec![], vec!["code", "volumes"]));
    }
}
