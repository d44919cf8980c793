//! Network volumes as directories of this computer, and the variables that name their paths.
//!
//! A deletion renames the directory, deletes the volume's row, and then removes the directory. After an interruption,
//! [`Volumes::recover`] brings the directory back if the row exists, and otherwise has it removed.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use longshore_model::VolumeId;

use crate::LaunchError;

/// The suffix of a directory that is set aside.
const DELETED: &str = ".deleted";

/// The folder that contains the directories of all volumes.
#[derive(Clone, Debug)]
pub struct Volumes(PathBuf);

impl Volumes {
    /// The volumes whose directories are in `dir`.
    pub fn at(dir: PathBuf) -> Self {
        Self(std::path::absolute(&dir).unwrap_or(dir))
    }

    /// The directory of a volume, which may not exist.
    pub fn path(&self, volume: &VolumeId) -> PathBuf {
        self.0.join(volume.as_str())
    }

    /// The path of a volume's directory that is set aside.
    fn aside(&self, volume: &VolumeId) -> PathBuf {
        self.0.join(format!("{volume}{DELETED}"))
    }

    /// Creates the directory, or renames it back if it is set aside.
    ///
    /// # Errors
    ///
    /// The directory could not be created or renamed.
    pub fn make(&self, volume: &VolumeId) -> Result<(), LaunchError> {
        let path = self.path(volume);
        let made = match fs::rename(self.aside(volume), &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(&path)
            }
            other => other,
        };
        made.map_err(|error| LaunchError(format!("cannot make the volume {}: {error}", path.display())))
    }

    /// Sets the directory aside by a rename; its contents stay.
    pub(crate) fn mark_deleted(&self, volume: &VolumeId) -> Result<(), LaunchError> {
        let path = self.path(volume);
        unless_missing(fs::rename(&path, self.aside(volume)))
            .map_err(|error| LaunchError(format!("cannot rename the volume {}: {error}", path.display())))
    }

    /// Removes a directory that was set aside, with its contents.
    pub(crate) fn remove(&self, volume: &VolumeId) -> Result<(), LaunchError> {
        let path = self.aside(volume);
        unless_missing(fs::remove_dir_all(&path))
            .map_err(|error| LaunchError(format!("cannot remove the volume {}: {error}", path.display())))
    }

    /// Brings back the directories of `known` volumes that are set aside. Returns the other volumes that are set aside. A
    /// directory of no known volume is removed if it is empty. A known volume without a directory, as after restoring a
    /// backup, gets an empty one.
    pub(crate) fn recover(&self, known: &[VolumeId]) -> Result<Vec<VolumeId>, LaunchError> {
        let deleted = self.take_up(known)?;
        for volume in known.iter().filter(|volume| !self.path(volume).is_dir()) {
            tracing::warn!(%volume, "the directory of a volume was missing: it is empty now");
            self.make(volume)?;
        }
        Ok(deleted)
    }

    fn take_up(&self, known: &[VolumeId]) -> Result<Vec<VolumeId>, LaunchError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| {
                LaunchError(format!("cannot list the volumes in {}: {error}", self.0.display()))
            })?,
        };
        let mut deleted = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (id, is_aside) = match name.strip_suffix(DELETED) {
                Some(id) => (id, true),
                None => (name, false),
            };
            let Ok(volume) = id.parse() else { continue };
            match (is_aside, known.contains(&volume)) {
                (true, true) => self.make(&volume)?,
                (true, false) => deleted.push(volume),
                (false, true) => {}
                (false, false) => {
                    if let Err(error) = fs::remove_dir(entry.path()) {
                        tracing::warn!(path = %entry.path().display(), %error, "a directory of no volume stays");
                    }
                }
            }
        }
        Ok(deleted)
    }

    /// Sets the variables with the id and path of the first volume, and with the paths of all, separated by `:`.
    pub(crate) fn link_into(&self, volumes: &[VolumeId], env: &mut BTreeMap<String, String>) {
        let Some(first) = volumes.first() else { return };
        let paths: Vec<_> = volumes.iter().map(|volume| self.path(volume).display().to_string()).collect();
        env.insert("RUNPOD_VOLUME_ID".to_owned(), first.to_string());
        env.insert("LONGSHORE_VOLUME_PATH".to_owned(), paths[0].clone());
        env.insert("LONGSHORE_VOLUME_PATHS".to_owned(), paths.join(":"));
    }
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_made_found_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let volumes = Volumes::at(dir.path().join("volumes"));
        let (one, two) = (VolumeId::mint(1), VolumeId::mint(2));
        volumes.make(&one).unwrap();
        volumes.make(&one).unwrap();
        let mut env = BTreeMap::new();
        volumes.link_into(&[], &mut env);
        assert!(env.is_empty());
        volumes.link_into(&[one, two], &mut env);
        let path = PathBuf::from(&env["LONGSHORE_VOLUME_PATH"]);
        assert_eq!(env["RUNPOD_VOLUME_ID"], one.as_str());
        assert_eq!(
            env["LONGSHORE_VOLUME_PATHS"],
            format!("{}:{}", path.display(), volumes.path(&two).display())
        );
        fs::write(path.join("weights"), "w").unwrap();
        volumes.remove(&one).unwrap();
        assert!(path.join("weights").exists(), "only what was set aside can be removed");
        for _ in 0..2 {
            volumes.mark_deleted(&one).unwrap();
            assert!(!path.exists());
        }
        for _ in 0..2 {
            volumes.remove(&one).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path().join("volumes")).unwrap().count(), 0);
    }

    #[test]
    fn a_deletion_that_was_cut_short_goes_on_or_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let volumes = Volumes::at(dir.path().join("volumes"));
        assert_eq!(volumes.recover(&[]).unwrap(), [], "there is no folder yet");
        let ids: [VolumeId; 5] = std::array::from_fn(|at| VolumeId::mint(at as u128 + 1));
        let [kept, still_known, deleted, never_made, unknown] = ids;
        for volume in [kept, still_known, deleted, never_made, unknown] {
            volumes.make(&volume).unwrap();
        }
        for volume in [kept, still_known, deleted, unknown] {
            fs::write(volumes.path(&volume).join("weights"), volume.as_str()).unwrap();
        }
        fs::write(dir.path().join("volumes/notes.txt"), "not ours").unwrap();
        volumes.mark_deleted(&still_known).unwrap();
        volumes.mark_deleted(&deleted).unwrap();

        assert_eq!(volumes.recover(&[kept, still_known]).unwrap(), [deleted]);
        volumes.remove(&deleted).unwrap();
        assert!(!volumes.path(&never_made).exists());
        assert_eq!(volumes.recover(&[kept, still_known, never_made]).unwrap(), []);
        assert!(volumes.path(&never_made).is_dir(), "a known volume has a directory");
        fs::remove_dir(volumes.path(&never_made)).unwrap();
        for volume in [kept, still_known, unknown] {
            assert_eq!(fs::read_to_string(volumes.path(&volume).join("weights")).unwrap(), volume.as_str());
        }
        let mut left: Vec<_> = fs::read_dir(dir.path().join("volumes"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected =
            vec![kept.to_string(), still_known.to_string(), unknown.to_string(), "notes.txt".into()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
