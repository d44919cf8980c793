//! The files of a pair of certificates.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::pair::Pair;
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};

/// Permissions of a certificate's file.
const PUBLIC: u32 = 0o644;
/// Permissions of the key's file.
const SECRET: u32 = 0o600;

/// The paths of a pair.
pub(super) struct PairFiles {
    pub(super) authority: PathBuf,
    /// The authority and those of the system, for programs that read one file only.
    pub(super) authorities: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl PairFiles {
    /// Returns the paths of a pair in `dir`, which need not exist.
    pub(super) fn in_dir(dir: &Path) -> Self {
        let names = ["ca.pem", "authorities.pem", "server.pem", "server.key"];
        let [authority, authorities, certificate, key] = names.map(|name| dir.join(name));
        Self { authority, authorities, certificate, key }
    }

    /// Writes a pair to `dir`, which is created if it does not exist. `system` has the PEM texts of the authorities of the
    /// system.
    ///
    /// # Errors
    ///
    /// One of the files exists, or cannot be written. Then no file of this pair is left.
    pub(super) fn create(dir: &Path, pair: &Pair, system: &[u8]) -> CommandResult<Self> {
        fs::create_dir_all(dir).map_err(|error| cannot(format_args!("create {}", dir.display()), error))?;
        let files = Self::in_dir(dir);
        let authority = pair.authority.as_bytes();
        let authorities = [authority, system].concat();
        let wanted = [
            (&files.key, pair.key.as_bytes(), SECRET),
            (&files.certificate, pair.certificate.as_bytes(), PUBLIC),
            (&files.authority, authority, PUBLIC),
            (&files.authorities, &authorities, PUBLIC),
        ];
        for (count, (path, content, mode)) in wanted.iter().enumerate() {
            if let Err(error) = write_new(path, content, *mode) {
                for (path, _, _) in &wanted[..count] {
                    // The first error is the one to report.
                    let _ = fs::remove_file(path);
                }
                return Err(not_written(path, &error));
            }
        }
        Ok(files)
    }
}

/// Writes a file that does not exist yet; removes what a failed write leaves.
fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if written.is_err() {
        // The write's error is the one to report.
        let _ = fs::remove_file(path);
    }
    written
}

fn not_written(path: &Path, error: &io::Error) -> CommandError {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return cannot(format_args!("write {}", path.display()), error);
    }
    CommandError::new(CommandExit::Failure, format!("{} exists and is not overwritten", path.display()))
        .next("choose another directory with --out")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_existing_file_stays_and_no_half_of_a_pair_is_left() {
        let pair = Pair::create(&["localhost".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for existing in ["ca.pem", "authorities.pem", "server.pem", "server.key"] {
            let dir = dir.path().join(format!("with-{existing}"));
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join(existing), "mine").unwrap();
            let error = PairFiles::create(&dir, &pair, b"").err().unwrap();
            assert!(error.message.contains(existing) && error.next.is_some(), "{error}");
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "{existing}");
            assert_eq!(fs::read_to_string(dir.join(existing)).unwrap(), "mine");
        }
        let files = PairFiles::create(&dir.path().join("deep/new"), &pair, b"theirs").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.key), 0o600);
        assert!(fs::read_to_string(&files.key).unwrap().contains("PRIVATE KEY"));
        assert_eq!(fs::read_to_string(&files.authorities).unwrap(), format!("{}theirs", pair.authority));
        for path in [&files.certificate, &files.authority] {
            assert!(!fs::read_to_string(path).unwrap().contains("PRIVATE KEY"));
        }
    }
}
