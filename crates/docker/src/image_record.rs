//! The images that this server has pulled or built, and when each was last used: the least recently used ones are removed first.
//!
//! Only images in this record are removed, by the name under which they were pulled: those of other programs stay, and an
//! image with another name loses this name alone.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bollard::query_parameters::RemoveImageOptions;

use crate::build;
use crate::daemon::{Daemon, reason, status};

/// How many images of a folder stay that was built: no registry has them, and an endpoint may go back to the last one.
const BUILT_KEPT: usize = 2;

/// When each image was last used, in ms since the Unix epoch, by the name under which it was pulled or built.
type LastUses = BTreeMap<String, u64>;

/// The record, in memory and in a file.
#[derive(Debug)]
pub(crate) struct ImageRecord {
    path: PathBuf,
    state: Mutex<RecordState>,
}

#[derive(Debug, Default)]
struct RecordState {
    /// `None` before the file was read.
    images: Option<LastUses>,
    /// How many starts need each image at this moment.
    needed: HashMap<String, usize>,
}

/// A start that needs an image. The image is not removed before the drop.
#[derive(Debug)]
pub(crate) struct NeededImage {
    record: Arc<ImageRecord>,
    name: String,
}

impl ImageRecord {
    /// The record in a file, which is read at the first use.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// Notes that a start needs an image, until the drop of the returned value.
    pub(crate) fn need(self: &Arc<Self>, name: &str) -> NeededImage {
        *self.state().needed.entry(name.to_owned()).or_default() += 1;
        NeededImage { record: Arc::clone(self), name: name.to_owned() }
    }

    /// Notes that an image was pulled or built, and is used now.
    pub(crate) fn note_made(&self, name: &str) {
        self.change(|images| {
            images.insert(name.to_owned(), now_ms());
        });
    }

    /// Notes that an image is used now. Does nothing for an image that this server has neither pulled nor built.
    pub(crate) fn note_used(&self, name: &str) {
        self.change(|images| {
            if let Some(used_at) = images.get_mut(name) {
                *used_at = now_ms();
            }
        });
    }

    /// Removes the images that were used least recently, until the rest has at most `bytes_max`. Images that a start needs or
    /// that a container was made of stay.
    pub(crate) async fn prune(&self, daemon: &Daemon, bytes_max: Option<u64>) {
        let Some(bytes_max) = bytes_max else { return };
        let mut sizes = HashMap::new();
        for name in self.names() {
            match daemon.docker.inspect_image(&name).await {
                Ok(found) => {
                    let bytes = found.size.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
                    sizes.insert(name, bytes);
                }
                Err(error) if status(&error) == Some(404) => self.change(|images| {
                    images.remove(&name);
                }),
                // The daemon is away.
                Err(_) => return,
            }
        }
        let mut bytes: u64 = sizes.values().sum();
        for name in self.unneeded() {
            if bytes <= bytes_max {
                return;
            }
            let size = sizes.get(&name).copied().unwrap_or_default();
            match daemon.docker.remove_image(&name, None::<RemoveImageOptions>, None).await {
                Ok(_) => {
                    tracing::info!(image = %name, bytes = size, "image removed, it was used least recently");
                    self.change(|images| {
                        images.remove(&name);
                    });
                    bytes -= size;
                }
                // A container is made of it.
                Err(error) if status(&error) == Some(409) => {}
                Err(error) => tracing::warn!(image = %name, error = reason(&error), "image not removed"),
            }
        }
    }

    fn names(&self) -> Vec<String> {
        self.loaded(&mut self.state()).keys().cloned().collect()
    }

    /// The images that no start needs, the least recently used one first, without the last ones of each folder that was built.
    fn unneeded(&self) -> Vec<String> {
        let mut state = self.state();
        let mut images: Vec<(u64, String)> =
            self.loaded(&mut state).iter().map(|(name, used_at)| (*used_at, name.clone())).collect();
        images.sort();
        let mut kept: HashMap<String, usize> = HashMap::new();
        for at in (0..images.len()).rev() {
            let Some(folder) = build::folder_of(&images[at].1).map(str::to_owned) else { continue };
            let newer = kept.entry(folder).or_default();
            *newer += 1;
            if *newer <= BUILT_KEPT {
                images.remove(at);
            }
        }
        images.retain(|(_, name)| !state.needed.contains_key(name));
        images.into_iter().map(|(_, name)| name).collect()
    }

    fn change(&self, change: impl FnOnce(&mut LastUses)) {
        let mut state = self.state();
        let images = self.loaded(&mut state);
        let before = images.clone();
        change(images);
        if *images == before {
            return;
        }
        if let Err(error) = self.write(images) {
            tracing::warn!(%error, path = %self.path.display(), "the record of images was not written");
        }
    }

    /// The images; read from the file at the first call. A damaged file counts as empty: its images stay.
    fn loaded<'a>(&self, state: &'a mut RecordState) -> &'a mut LastUses {
        state.images.get_or_insert_with(|| {
            fs::read(&self.path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
        })
    }

    fn write(&self, images: &LastUses) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(images)?)?;
        fs::rename(beside, &self.path)
    }

    fn state(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for NeededImage {
    fn drop(&mut self) {
        let mut state = self.record.state();
        if let Some(count) = state.needed.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                state.needed.remove(&self.name);
            }
        }
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_images_of_each_folder_stay() {
        let dir = tempfile::tempdir().unwrap();
        let record = Arc::new(ImageRecord::at(dir.path().join("images.json")));
        let names = ["chat:1", "chat:2", "chat:3", "other:1"].map(build::name_of);
        for (at, name) in names.iter().enumerate() {
            record.note_made(name);
            record.change(|images| *images.get_mut(name).unwrap() = at as u64);
        }
        record.note_made("pulled:1");
        assert_eq!(record.unneeded(), [names[0].as_str(), "pulled:1"]);
        record.note_used(&names[0]);
        assert_eq!(
            record.unneeded(),
            [names[1].as_str(), "pulled:1"],
            "an endpoint went back to the first one"
        );
    }

    #[test]
    fn the_record_outlives_the_server_and_knows_only_what_was_pulled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images.json");
        let record = ImageRecord::at(path.clone());
        record.note_used("theirs:1");
        assert_eq!(record.names(), [] as [&str; 0]);
        for name in ["b:1", "a:1"] {
            record.note_made(name);
        }
        record.change(|images| *images.get_mut("b:1").unwrap() -= 5);
        let next = Arc::new(ImageRecord::at(path.clone()));
        assert_eq!(next.unneeded(), ["b:1", "a:1"], "the least recently used one first");
        let (one, other) = (next.need("b:1"), next.need("b:1"));
        drop(one);
        assert_eq!(next.unneeded(), ["a:1"]);
        drop(other);
        assert_eq!(next.unneeded().len(), 2);
        fs::write(&path, "damaged").unwrap();
        assert_eq!(ImageRecord::at(path).names(), [] as [&str; 0]);
    }
}
