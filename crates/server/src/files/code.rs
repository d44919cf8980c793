//! Versions of deployed code. A version is named by the hash of its archive.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_http::{CodeArchive, CodeError, CodeVersion, KeptCode};
use longshore_model::{CodeHash, Millis};
use ring::digest::{SHA256, digest};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::archive::{BOUNDS, remove, unpack};
use super::compare::has_all;

/// Suffix of a directory that is being removed. Names of code contain no dot.
pub(super) const GONE: &str = "gone";
/// Prefix of a directory that is being written.
pub(super) const DRAFT: &str = ".draft-";

/// The keys that sent the same archive and are noted.
const SENDERS_MAX: usize = 16;

/// The note of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VersionNote {
    files: u64,
    bytes: u64,
    created_at: Millis,
    /// The ids of the keys that sent it, the newest last.
    #[serde(default)]
    senders: Vec<String>,
}

/// Stores an archive below `dir`. If the version exists, its files are compared with the archive and replaced if
/// any is missing or differs. Notes that the key with the id `sender` has sent it.
pub(super) fn keep(dir: &Path, name: &str, archive: &[u8], sender: &str) -> Result<KeptCode, CodeError> {
    let hash = hash_of(archive)?;
    let unavailable =
        |error: io::Error| CodeError::Unavailable(format!("cannot write to {}: {error}", dir.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unavailable)?;
    // Concurrent uploads of one version have drafts of their own. The second one finds the first one's directory.
    let draft = tempfile::Builder::new().prefix(DRAFT).tempdir_in(dir).map_err(unavailable)?;
    let unpacked = unpack(archive, draft.path(), BOUNDS)?;
    let is_new = put_in_place(draft.path(), &dir.join(hash.as_str())).map_err(unavailable)?;
    let present = note(&dir.join(hash.as_str()));
    let is_known = present.as_ref().is_some_and(|note| note.senders.iter().any(|known| known == sender));
    if is_new || !is_known {
        let (created_at, mut senders) = match present {
            Some(present) => (present.created_at, present.senders),
            None => (now_after(dir, name), Vec::new()),
        };
        if !is_known {
            senders.drain(..(senders.len() + 1).saturating_sub(SENDERS_MAX));
            senders.push(sender.to_owned());
        }
        let note = VersionNote { files: unpacked.files, bytes: unpacked.bytes, created_at, senders };
        write_note(dir, &hash, &note).map_err(unavailable)?;
    }
    let is_archive_new = write_archive(dir, &hash, archive).map_err(unavailable)?;
    let version = version(dir, name, &hash)
        .ok_or_else(|| CodeError::Unavailable("the version was removed while it was stored".to_owned()))?;
    Ok(KeptCode { version, is_changed: is_new || is_archive_new })
}

/// Stores an archive that was sent through another computer, with its note. `dir` is the folder of its name.
pub(super) fn restore(dir: &Path, archive: &[u8], note: &VersionNote) -> Result<PathBuf, CodeError> {
    let hash = hash_of(archive)?;
    let unavailable =
        |error: io::Error| CodeError::Unavailable(format!("cannot write to {}: {error}", dir.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unavailable)?;
    let draft = tempfile::Builder::new().prefix(DRAFT).tempdir_in(dir).map_err(unavailable)?;
    unpack(archive, draft.path(), BOUNDS)?;
    let folder = dir.join(hash.as_str());
    put_in_place(draft.path(), &folder).map_err(unavailable)?;
    write_note(dir, &hash, note).map_err(unavailable)?;
    write_archive(dir, &hash, archive).map_err(unavailable)?;
    Ok(folder)
}

/// Moves `draft`, which is synced, to `folder` atomically. Returns false if `folder` had the same content.
fn put_in_place(draft: &Path, folder: &Path) -> io::Result<bool> {
    match fs::rename(draft, folder) {
        Err(_) if fs::symlink_metadata(folder).is_ok() => {
            if has_all(folder, draft)? {
                return Ok(false);
            }
            tracing::warn!(path = %folder.display(), "replacing damaged deployed code");
            exchange(draft, folder)?;
        }
        other => other?,
    }
    sync_parent(folder)?;
    Ok(true)
}

/// Swaps the directories if the file system supports this, so that running workers never miss a file.
fn exchange(draft: &Path, folder: &Path) -> io::Result<()> {
    if renameat_with(CWD, draft, CWD, folder, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let aside = draft.with_extension(GONE);
    fs::rename(folder, &aside)?;
    fs::rename(draft, folder)?;
    remove(&aside);
    Ok(())
}

/// Writes the note last: a version without it is incomplete.
fn write_note(dir: &Path, hash: &CodeHash, note: &VersionNote) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(dir)?;
    file.write_all(&serde_json::to_vec(note)?)?;
    file.as_file().sync_all()?;
    let path = dir.join(format!("{hash}.json"));
    file.persist(&path).map_err(|error| error.error)?;
    sync_parent(&path)
}

/// Stores what was sent, for workers of other computers. An archive that is there is complete: it gets its name last.
/// Returns false if it was there.
fn write_archive(dir: &Path, hash: &CodeHash, archive: &[u8]) -> io::Result<bool> {
    let path = archive_path(&dir.join(hash.as_str()));
    if fs::metadata(&path).is_ok_and(|facts| facts.len() == archive.len() as u64) {
        return Ok(false);
    }
    let mut file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(dir)?;
    file.write_all(archive)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    sync_parent(&path)?;
    Ok(true)
}

/// The archive beside the folder of a version.
pub(super) fn archive_path(folder: &Path) -> PathBuf {
    folder.with_extension("tgz")
}

/// Opens the archive beside the folder of a version; `None` if there is none.
pub(super) fn open_archive(folder: &Path) -> Option<CodeArchive> {
    let file = File::open(archive_path(folder)).ok()?;
    let bytes = file.metadata().ok()?.len();
    Some(CodeArchive { file, bytes })
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// The current time, but at least 1 ms after the newest version, because cleanup removes the oldest versions.
fn now_after(dir: &Path, name: &str) -> Millis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let newest = versions(dir, name).first().map_or(0, |newest| newest.created_at.0);
    Millis(newest.saturating_add(1).max(now.as_millis() as u64))
}

/// Returns all complete versions, newest first.
pub(super) fn versions(dir: &Path, name: &str) -> Vec<CodeVersion> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut versions: Vec<CodeVersion> = entries
        .filter_map(|entry| {
            version(dir, name, &entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()?)
        })
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse((version.created_at, version.hash.clone())));
    versions
}

fn version(dir: &Path, name: &str, hash: &CodeHash) -> Option<CodeVersion> {
    let note = note(&dir.join(hash.as_str()))?;
    dir.join(hash.as_str()).is_dir().then(|| note.version(name, hash))
}

impl VersionNote {
    /// The version with this name and hash.
    pub(super) fn version(&self, name: &str, hash: &CodeHash) -> CodeVersion {
        let Self { files, bytes, created_at, .. } = *self;
        CodeVersion { name: name.to_owned(), hash: hash.clone(), files, bytes, created_at }
    }

    /// The time at which it was sent first.
    pub(super) fn created_at(&self) -> Millis {
        self.created_at
    }

    /// Whether the key with this id has sent it.
    pub(super) fn names(&self, key: &str) -> bool {
        self.senders.iter().any(|sender| sender == key)
    }
}

/// The note beside the folder of a version; `None` without a readable one.
pub(super) fn note(folder: &Path) -> Option<VersionNote> {
    serde_json::from_slice(&fs::read(folder.with_extension("json")).ok()?).ok()
}

/// Whether the key with this id has sent the version in `folder`.
pub(super) fn was_sent_by(folder: &Path, key: &str) -> bool {
    note(folder).is_some_and(|note| note.names(key))
}

pub(super) fn hash_of(archive: &[u8]) -> Result<CodeHash, CodeError> {
    let hash = const_hex::encode(digest(&SHA256, archive));
    hash.parse().map_err(|_| CodeError::Unavailable(format!("{hash} is not a valid hash")))
}

#[cfg(test)]
mod tests {
    use super::super::hostile::archive_of;
    use super::*;

    #[test]
    fn the_same_archive_is_the_same_version() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("hello");
        let keep = |text: &str| {
            let kept = keep(&dir, "hello", &archive_of(&[("handler.py", text)]), "key-1").unwrap();
            (kept.version, kept.is_changed)
        };
        let (first, is_changed) = keep("0");
        assert!(is_changed, "a new version");
        assert_eq!(keep("0"), (first.clone(), false));
        assert_eq!((first.files, first.bytes), (1, 1));
        let (second, _) = keep("1");
        assert_eq!(versions(&dir, "hello"), [second, first.clone()]);
        fs::remove_dir_all(dir.join(first.hash.as_str())).unwrap();
        assert_eq!(versions(&dir, "hello").len(), 1, "a note without a directory is no version");
    }

    #[test]
    fn the_newest_senders_are_noted() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let archive = archive_of(&[("handler.py", "1")]);
        let first = keep(dir, "hello", &archive, "key-0").unwrap().version;
        let folder = dir.join(first.hash.as_str());
        for number in 1..=SENDERS_MAX {
            let kept = keep(dir, "hello", &archive, &format!("key-{number}")).unwrap();
            assert_eq!(kept, KeptCode { version: first.clone(), is_changed: false });
            assert!(was_sent_by(&folder, &format!("key-{number}")));
        }
        assert!(!was_sent_by(&folder, "key-0") && was_sent_by(&folder, "key-1"));
        assert!(!was_sent_by(&dir.join("missing"), "key-1"));
        // A note of an earlier version names no sender.
        fs::write(folder.with_extension("json"), r#"{"files":1,"bytes":1,"created_at":5}"#).unwrap();
        assert!(!was_sent_by(&folder, "key-1"));
        assert_eq!(keep(dir, "hello", &archive, "key-2").unwrap().version.created_at, Millis(5));
        assert!(was_sent_by(&folder, "key-2"));
    }

    #[test]
    fn what_was_removed_emptied_or_changed_comes_back_with_the_same_archive() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let files = [("handler.py", "print()"), ("lib/a.py", "a"), ("lib/b.py", "bb")];
        let archive = archive_of(&files);
        let keep = || keep(dir, "hello", &archive, "key-1").unwrap();
        let first = keep().version;
        let folder = &dir.join(first.hash.as_str());
        let assert_whole = |what: &str| {
            let is_changed = what != "nothing changed";
            assert_eq!(keep(), KeptCode { version: first.clone(), is_changed }, "{what}");
            for (path, text) in files {
                assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), text, "{what}");
            }
        };
        fs::create_dir(folder.join("__pycache__")).unwrap();
        assert_whole("nothing changed");
        assert!(folder.join("__pycache__").exists(), "complete code is not replaced");

        let damages: [(&str, &dyn Fn()); 6] = [
            ("a file is missing", &|| fs::remove_file(folder.join("handler.py")).unwrap()),
            ("a directory is missing", &|| fs::remove_dir_all(folder.join("lib")).unwrap()),
            ("everything is missing", &|| fs::remove_dir_all(folder).unwrap()),
            ("a file is empty", &|| fs::write(folder.join("lib/a.py"), "").unwrap()),
            ("a file has other bytes", &|| fs::write(folder.join("lib/b.py"), "bc").unwrap()),
            ("a file is a folder", &|| {
                fs::remove_file(folder.join("lib/a.py")).unwrap();
                fs::create_dir(folder.join("lib/a.py")).unwrap();
            }),
        ];
        for (what, damage) in damages {
            damage();
            assert_whole(what);
        }
        let left = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.count(), 3, "only the directory, its archive and its note are left");
        let mut sent = Vec::new();
        io::Read::read_to_end(&mut open_archive(folder).unwrap().file, &mut sent).unwrap();
        assert_eq!(sent, archive);
        fs::remove_file(archive_path(folder)).unwrap();
        assert!(open_archive(folder).is_none());
        assert_whole("the archive is missing");
        assert!(open_archive(folder).is_some());
    }

    #[test]
    fn a_version_is_newer_than_those_before_although_the_clock_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let keep =
            |text: &str| keep(dir, "hello", &archive_of(&[("handler.py", text)]), "key-1").unwrap().version;
        let first = keep("1");
        let note = VersionNote { files: 1, bytes: 1, created_at: Millis(9_000_000_000_000), senders: vec![] };
        fs::write(dir.join(format!("{}.json", first.hash)), serde_json::to_vec(&note).unwrap()).unwrap();
        let mut kept = vec![first.hash];
        kept.extend(["2", "3", "4"].map(|text| keep(text).hash));
        let found = versions(dir, "hello").into_iter().rev().map(|version| version.hash);
        assert_eq!(found.collect::<Vec<_>>(), kept);
    }
}
