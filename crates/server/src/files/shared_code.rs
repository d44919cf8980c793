//! Deployed code in object storage: what one computer was sent, the others fetch when they start workers of it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use longshore_http::{CodeError, CodeVersion};
use longshore_launch::CodeSource;
use longshore_model::CodeHash;
use longshore_objects::{CodeObjects, ObjectError};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::code::{self, VersionNote};

/// How long code must be unused before its objects are deleted.
const UNUSED_MIN: Duration = Duration::from_hours(24);
/// Versions that are kept of a name while one of its versions is used.
const VERSIONS_KEPT: usize = 10;

/// The note of an archive in object storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SharedNote {
    /// The name under which it was sent.
    name: String,
    #[serde(flatten)]
    version: VersionNote,
}

/// Deployed code in object storage, and its folder on this computer. All methods block, and must not be called by a task.
pub(crate) struct SharedCode {
    objects: CodeObjects,
    /// The folder of all names.
    dir: PathBuf,
    runtime: Handle,
    /// Notes that were read. Only the senders of a note change, which are read anew.
    notes: Mutex<HashMap<String, SharedNote>>,
    /// Unused code, and the time since when.
    unused: Mutex<HashMap<String, Instant>>,
}

impl SharedCode {
    /// The code of a storage, for the folder of code of this computer. Must be called inside a Tokio runtime.
    pub(crate) fn new(objects: CodeObjects, dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { objects, dir, runtime: Handle::current(), notes: Mutex::default(), unused: Mutex::default() }
    }

    /// Stores what this computer has of the version, unless it is stored already. Returns whether the storage had nothing of it.
    pub(super) fn put(&self, version: &CodeVersion, archive: Bytes) -> Result<bool, CodeError> {
        let unavailable =
            |why: String| CodeError::Unavailable(format!("the code was not put into object storage: {why}"));
        let hash = version.hash.as_str();
        let note = code::note(&self.dir.join(&version.name).join(hash));
        let note =
            note.ok_or_else(|| unavailable("the version was removed while it was stored".to_owned()))?;
        let note = SharedNote { name: version.name.clone(), version: note };
        let stored = self.read_note(hash).map_err(|error| unavailable(error.to_string()))?;
        if stored.as_ref() == Some(&note) {
            return Ok(false);
        }
        let text = serde_json::to_vec(&note).map_err(|error| unavailable(error.to_string()))?;
        let put = self.runtime.block_on(self.objects.put(hash, archive, text.into()));
        put.map_err(|error| unavailable(error.to_string()))?;
        self.notes().insert(hash.to_owned(), note);
        Ok(stored.is_none())
    }

    /// Stores the versions of this computer that the storage does not have, such as those from before it was set.
    pub(crate) fn put_local(&self) {
        let names =
            std::fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
        for name in names.filter_map(|name| name.into_string().ok()).filter(|name| is_folder_name(name)) {
            for version in code::versions(&self.dir.join(&name), &name) {
                let put = self.put_missing(&version);
                if let Err(error) = put {
                    tracing::warn!(%name, hash = %version.hash, %error, "deployed code not put into object storage");
                    return;
                }
            }
        }
    }

    fn put_missing(&self, version: &CodeVersion) -> Result<(), CodeError> {
        let unread = |error: &dyn std::fmt::Display| CodeError::Unavailable(error.to_string());
        if self.read_note(version.hash.as_str()).map_err(|error| unread(&error))?.is_some() {
            return Ok(());
        }
        let archive = code::archive_path(&self.dir.join(&version.name).join(version.hash.as_str()));
        // Code that an earlier version of the server stored has none until it is sent again.
        let Ok(archive) = std::fs::read(archive) else { return Ok(()) };
        self.put(version, archive.into()).map(drop)
    }

    /// Restarts the time of code, because a request is about to use it.
    pub(super) fn touch(&self, code: &CodeHash) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).remove(code.as_str());
    }

    /// Whether the storage has this code. `false` if it does not answer.
    pub(super) fn has(&self, code: &CodeHash) -> bool {
        matches!(self.read_note(code.as_str()), Ok(Some(_)))
    }

    /// Whether the key with this id has sent the code.
    pub(super) fn was_sent_by(&self, code: &CodeHash, key: &str) -> bool {
        matches!(self.read_note(code.as_str()), Ok(Some(note)) if note.version.names(key))
    }

    /// The versions of a name in the storage; none if it does not answer.
    pub(super) fn versions(&self, name: &str) -> Vec<CodeVersion> {
        let notes = self.all_notes().unwrap_or_else(|error| {
            tracing::warn!(%error, "deployed code in object storage not listed");
            Vec::new()
        });
        let of_name = notes.into_iter().filter(|(_, note, _)| note.name == name);
        of_name.filter_map(|(hash, note, _)| Some(note.version.version(name, &hash.parse().ok()?))).collect()
    }

    /// Deletes what was unused for a day: names without a used version, and the oldest versions over a limit of others.
    pub(super) fn forget(&self, now: Instant, is_used: &dyn Fn(&CodeHash) -> bool) {
        if let Err(error) = self.forget_unused(now, is_used) {
            tracing::warn!(%error, "unused code not removed from object storage");
        }
    }

    fn forget_unused(&self, now: Instant, is_used: &dyn Fn(&CodeHash) -> bool) -> Result<(), ObjectError> {
        let notes = self.all_notes()?;
        let is_used = |hash: &str| hash.parse().is_ok_and(|hash| is_used(&hash));
        let used_names: HashSet<&str> =
            notes.iter().filter(|(hash, ..)| is_used(hash)).map(|(_, note, _)| note.name.as_str()).collect();
        let mut newer: HashMap<&str, usize> = HashMap::new();
        let mut unused: HashSet<&str> = HashSet::new();
        // The newest ones come first.
        for (hash, note, _) in &notes {
            let newer = newer.entry(&note.name).or_default();
            let is_kept = used_names.contains(note.name.as_str()) && *newer < VERSIONS_KEPT;
            if !is_used(hash) && !is_kept {
                unused.insert(hash);
            }
            *newer += 1;
        }
        let clock_ms = self.runtime.block_on(self.objects.clock_ms())?;
        let mut found = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|hash, _| unused.contains(hash.as_str()));
        let mut gone = Vec::new();
        for (hash, _, modified_ms) in notes.iter().filter(|(hash, ..)| unused.contains(hash.as_str())) {
            let since = *found.entry(hash.clone()).or_insert(now);
            let is_old = modified_ms + UNUSED_MIN.as_millis() as u64 <= clock_ms;
            if is_old && now.duration_since(since) >= UNUSED_MIN {
                gone.push(hash.clone());
            }
        }
        drop(found);
        for hash in gone {
            self.runtime.block_on(self.objects.remove(&hash))?;
            self.notes().remove(&hash);
            tracing::info!(%hash, "removed unused code from object storage");
        }
        Ok(())
    }

    /// All notes with their hashes and times, the newest first. Notes that cannot be read as such are left out.
    fn all_notes(&self) -> Result<Vec<(String, SharedNote, u64)>, ObjectError> {
        let mut all = Vec::new();
        for (hash, modified_ms) in self.runtime.block_on(self.objects.hashes())? {
            let known = self.notes().get(&hash).cloned();
            let note = match known {
                None => self.read_note(&hash)?,
                known => known,
            };
            all.extend(note.map(|note| (hash, note, modified_ms)));
        }
        all.sort_by_key(|(hash, note, _)| std::cmp::Reverse((note.version.created_at(), hash.clone())));
        Ok(all)
    }

    fn read_note(&self, hash: &str) -> Result<Option<SharedNote>, ObjectError> {
        let Some(text) = self.runtime.block_on(self.objects.note(hash))? else { return Ok(None) };
        let note: Option<SharedNote> = serde_json::from_slice(&text).ok();
        // The name becomes a folder.
        let note = note.filter(|note| is_folder_name(&note.name));
        if let Some(note) = &note {
            self.notes().insert(hash.to_owned(), note.clone());
        }
        Ok(note)
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<String, SharedNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a name leads to a folder below that of all names.
fn is_folder_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=100).contains(&name.len()) && name.bytes().all(is_part)
}

impl CodeSource for SharedCode {
    fn fetch(&self, code: &CodeHash) -> Result<Option<PathBuf>, String> {
        let Some(note) = self.read_note(code.as_str()).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let archive = self.runtime.block_on(self.objects.archive(code.as_str()));
        let archive =
            archive.map_err(|error| error.to_string())?.ok_or("its archive is missing in object storage")?;
        if code::hash_of(&archive).map_err(|error| error.to_string())? != *code {
            return Err("its archive in object storage is damaged: deploy it again".to_owned());
        }
        let folder = code::restore(&self.dir.join(&note.name), &archive, &note.version);
        let folder = folder.map_err(|error| error.to_string())?;
        tracing::info!(%code, name = note.name, "fetched deployed code from object storage");
        Ok(Some(folder))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use longshore_objects::{Credentials, Place, Storage};
    use longshore_trust::Roots;
    use tempfile::TempDir;
    use tokio::runtime::Runtime;

    use super::super::code::keep;
    use super::super::hostile::archive_of;
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// Code in a directory that stands for object storage, and a clock that the test moves.
    struct Fixture {
        dir: TempDir,
        runtime: Runtime,
        shared: SharedCode,
        now: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            let (dir, runtime) = (TempDir::new().unwrap(), Runtime::new().unwrap());
            let shared = {
                let _inside = runtime.enter();
                SharedCode::new(CodeObjects::new(storage(&dir)), &dir.path().join("code"))
            };
            Self { dir, runtime, shared, now: Instant::now() }
        }

        /// Another start of the server.
        fn restart(&mut self) {
            let _inside = self.runtime.enter();
            let code = self.dir.path().join("code");
            self.shared = SharedCode::new(CodeObjects::new(storage(&self.dir)), &code);
        }

        fn put(&self, name: &str, text: &str) -> CodeHash {
            self.put_by("key-1", name, text).0
        }

        /// Returns whether the code was new to the storage, too.
        fn put_by(&self, sender: &str, name: &str, text: &str) -> (CodeHash, bool) {
            let archive = archive_of(&[("handler.py", text)]);
            let dir = self.dir.path().join("code").join(name);
            let version = keep(&dir, name, &archive, sender).unwrap().version;
            let is_new = self.shared.put(&version, archive.into()).unwrap();
            (version.hash, is_new)
        }

        /// Makes all objects as old as this by the clock of the storage.
        fn age(&self, hours: u32) {
            let then = SystemTime::now() - HOUR * hours;
            for entry in walk(&self.dir.path().join("objects")) {
                File::options().write(true).open(entry).unwrap().set_modified(then).unwrap();
            }
        }

        /// Looks once per hour.
        fn wait(&mut self, hours: u32, used: &[&CodeHash]) {
            for _ in 0..hours {
                self.now += HOUR;
                self.shared.forget(self.now, &|code| used.contains(&code));
            }
        }
    }

    fn storage(dir: &TempDir) -> Storage {
        let place = Place::parse(&format!("file://{}/objects", dir.path().display())).unwrap();
        Storage::open(&place, &Credentials::default(), &Roots::none()).unwrap()
    }

    fn walk(dir: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn code_goes_when_it_is_old_and_no_server_has_run_it_for_a_day() {
        let mut ground = Fixture::new();
        let (runs, unused) = (ground.put("runs", "1"), ground.put("unused", "2"));
        ground.wait(30, &[&runs]);
        assert!(
            ground.shared.has(&unused),
            "the storage has it for minutes only, as if another server had put it"
        );
        ground.age(30);
        ground.wait(1, &[&runs]);
        assert!(ground.shared.has(&runs) && !ground.shared.has(&unused));
        assert!(
            !walk(&ground.dir.path().join("objects"))
                .iter()
                .any(|path| { path.to_string_lossy().contains(unused.as_str()) })
        );
    }

    #[test]
    fn code_is_new_to_the_storage_if_that_had_nothing_of_it() {
        let ground = Fixture::new();
        let is_new = |sender: &str| ground.put_by(sender, "hello", "1").1;
        assert!(is_new("key-1") && !is_new("key-1"));
        assert!(!is_new("key-2"), "another sender is noted, and the code was there");
        for object in walk(&ground.dir.path().join("objects")) {
            std::fs::remove_file(object).unwrap();
        }
        assert!(is_new("key-1"));
    }

    #[test]
    fn a_start_and_a_use_of_shared_code_begin_the_day_anew() {
        let mut ground = Fixture::new();
        let code = ground.put("hello", "1");
        ground.age(100);
        ground.wait(24, &[]);
        assert!(ground.shared.has(&code), "unused for only 23 hours");
        ground.restart();
        ground.wait(24, &[]);
        ground.wait(1, &[&code]);
        ground.wait(24, &[]);
        ground.shared.touch(&code);
        ground.wait(24, &[]);
        assert!(ground.shared.has(&code));
        ground.wait(1, &[]);
        assert!(!ground.shared.has(&code));
    }

    #[test]
    fn ten_versions_are_kept_of_a_name_that_is_used() {
        let mut ground = Fixture::new();
        let used = ground.put("hello", "0");
        let later: Vec<CodeHash> = (1..=11).map(|text| ground.put("hello", &text.to_string())).collect();
        ground.age(100);
        ground.wait(25, &[&used]);
        let left: Vec<bool> = later.iter().map(|code| ground.shared.has(code)).collect();
        assert_eq!(left, [[false].as_slice(), &[true; 10]].concat());
        assert!(ground.shared.has(&used));
    }
}
