//! Network volumes as directories of this machine, and how workers find them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use longshore_model::VolumeId;

use crate::LaunchError;

/// Where the directories are.
#[derive(Clone, Debug)]
pub(crate) struct Volumes(PathBuf);

impl Volumes {
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self(std::path::absolute(&dir).unwrap_or(dir))
    }

    fn path(&self, volume: &VolumeId) -> PathBuf {
        self.0.join(volume.as_str())
    }

    pub(crate) fn make(&self, volume: &VolumeId) -> Result<(), LaunchError> {
        let path = self.path(volume);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| LaunchError(format!("cannot make the volume {}: {error}", path.display())))
    }

    /// Renames it first: a removal that is cut short leaves nothing that looks like a volume.
    pub(crate) fn remove(&self, volume: &VolumeId) -> Result<(), LaunchError> {
        let path = self.path(volume);
        let gone = self.0.join(format!("{volume}.deleted"));
        let removed = fs::rename(&path, &gone).and_then(|()| fs::remove_dir_all(&gone));
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LaunchError(format!("cannot remove the volume {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Tells a worker where its volumes are: the first one by itself, and all of them like a search path.
    pub(crate) fn tell(&self, volumes: &[VolumeId], env: &mut BTreeMap<String, String>) {
        let Some(first) = volumes.first() else { return };
        let paths: Vec<_> = volumes.iter().map(|volume| self.path(volume).display().to_string()).collect();
        env.insert("RUNPOD_VOLUME_ID".to_owned(), first.to_string());
        env.insert("LONGSHORE_VOLUME_PATH".to_owned(), paths[0].clone());
        env.insert("LONGSHORE_VOLUME_PATHS".to_owned(), paths.join(":"));
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
        volumes.tell(&[], &mut env);
        assert!(env.is_empty());
        volumes.tell(&[one, two], &mut env);
        let path = PathBuf::from(&env["LONGSHORE_VOLUME_PATH"]);
        assert_eq!(env["RUNPOD_VOLUME_ID"], one.as_str());
        assert_eq!(
            env["LONGSHORE_VOLUME_PATHS"],
            format!("{}:{}", path.display(), volumes.path(&two).display())
        );
        fs::write(path.join("weights"), "w").unwrap();
        volumes.remove(&one).unwrap();
        volumes.remove(&one).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("volumes")).unwrap().count(), 0);
    }
}
