//! Versions of deployed code, each under the hash of its archive.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longshore_http::{CodeError, CodeVersion};
use longshore_model::Millis;
use ring::digest::{SHA256, digest};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use super::archive::{BOUNDS, remove, unpack};
use super::compare::has_all;

/// The hidden subcommand of this program that makes a version's environment and becomes its handler.
pub(crate) const CODE_SUBCOMMAND: &str = "code-worker";
/// Versions beyond are removed, oldest first.
const VERSIONS_MAX: usize = 10;
/// What the name of a folder ends with that is being removed. No name of code has a dot.
const GONE: &str = "gone";
/// What the name of something begins with that is on its way.
const DRAFT: &str = ".draft-";

/// What is known of a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    files: u64,
    bytes: u64,
    created_at: Millis,
}

/// Keeps an archive below `dir`, the folder of its name. Where it is there already, what is there is compared with what
/// came, and replaced where something is missing or is not as it was sent.
pub(super) fn keep(
    dir: &Path,
    name: &str,
    archive: &[u8],
    program: &Path,
    is_used: &dyn Fn(&str) -> bool,
) -> Result<CodeVersion, CodeError> {
    let hash = hex(digest(&SHA256, archive).as_ref());
    let unavailable =
        |error: io::Error| CodeError::Unavailable(format!("cannot write to {}: {error}", dir.display()));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unavailable)?;
    // Two that send the same at once have drafts of their own; the second one finds the first one's folder.
    let draft = tempfile::Builder::new().prefix(DRAFT).tempdir_in(dir).map_err(unavailable)?;
    let unpacked = unpack(archive, draft.path(), BOUNDS)?;
    let is_new = put_in_place(draft.path(), &dir.join(&hash)).map_err(unavailable)?;
    if is_new || version(dir, name, &hash, program).is_none() {
        let created_at = version(dir, name, &hash, program)
            .map_or_else(|| now_after(dir, name, program), |version| version.created_at);
        let note = Note { files: unpacked.files, bytes: unpacked.bytes, created_at };
        write_note(dir, &hash, &note).map_err(unavailable)?;
    }
    forget_old(dir, name, program, is_used);
    version(dir, name, &hash, program)
        .ok_or_else(|| CodeError::Unavailable("the version is gone as soon as it was kept".to_owned()))
}

/// Makes `folder` what `draft` is, which is on the disk already, in one step. False where it was that before.
fn put_in_place(draft: &Path, folder: &Path) -> io::Result<bool> {
    match fs::rename(draft, folder) {
        Err(_) if fs::symlink_metadata(folder).is_ok() => {
            if has_all(folder, draft)? {
                return Ok(false);
            }
            tracing::warn!(path = %folder.display(), "deployed code was not whole any more and is replaced");
            exchange(draft, folder)?;
        }
        other => other?,
    }
    sync_parent(folder)?;
    Ok(true)
}

/// Workers that run never see the folder missing, where the file system can do that.
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

/// The note is written last: a version without one is none.
fn write_note(dir: &Path, hash: &str, note: &Note) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(dir)?;
    file.write_all(&serde_json::to_vec(note)?)?;
    file.as_file().sync_all()?;
    let path = dir.join(format!("{hash}.json"));
    file.persist(&path).map_err(|error| error.error)?;
    sync_parent(&path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// The present, and later than what is there: the oldest ones are removed, whatever the clock says.
fn now_after(dir: &Path, name: &str, program: &Path) -> Millis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let newest = versions(dir, name, program).first().map_or(0, |newest| newest.created_at.0);
    Millis(newest.saturating_add(1).max(now.as_millis() as u64))
}

/// The whole versions, newest first.
pub(super) fn versions(dir: &Path, name: &str, program: &Path) -> Vec<CodeVersion> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut versions: Vec<CodeVersion> = entries
        .filter_map(|entry| version(dir, name, entry.file_name().to_str()?.strip_suffix(".json")?, program))
        .collect();
    versions.sort_by_key(|version| std::cmp::Reverse((version.created_at, version.hash.clone())));
    versions
}

fn version(dir: &Path, name: &str, hash: &str, program: &Path) -> Option<CodeVersion> {
    let note: Note = serde_json::from_slice(&fs::read(dir.join(format!("{hash}.json"))).ok()?).ok()?;
    let folder = dir.join(hash);
    if !folder.is_dir() {
        return None;
    }
    let (workdir, program) = (folder.to_str()?.to_owned(), program.to_str()?.to_owned());
    let command = vec![program, CODE_SUBCOMMAND.to_owned(), workdir.clone()];
    let (files, bytes, created_at) = (note.files, note.bytes, note.created_at);
    Some(CodeVersion {
        name: name.to_owned(),
        hash: hash.to_owned(),
        workdir,
        command,
        files,
        bytes,
        created_at,
    })
}

fn forget_old(dir: &Path, name: &str, program: &Path, is_used: &dyn Fn(&str) -> bool) {
    for old in versions(dir, name, program).into_iter().skip(VERSIONS_MAX) {
        if !is_used(&old.workdir) && fs::remove_file(dir.join(format!("{}.json", old.hash))).is_ok() {
            remove(Path::new(&old.workdir));
        }
    }
}

/// Removes the folders below `code` of which no template runs a version, unless something came into one a moment ago:
/// between the archive and the template that runs it there is a moment.
pub(super) fn forget_unused(code: &Path, fresh: Duration, is_used: &dyn Fn(&str) -> bool) {
    for folder in fs::read_dir(code).into_iter().flatten().flatten() {
        let path = folder.path();
        let changed = folder.metadata().and_then(|facts| facts.modified()).ok();
        let age = changed.and_then(|changed| changed.elapsed().ok());
        if is_gone(&path) || age.is_some_and(|age| age >= fresh) && !runs(&path, is_used) {
            forget(&path);
        }
    }
}

/// Whether a template runs one of the folders in this one.
fn runs(dir: &Path, is_used: &dyn Fn(&str) -> bool) -> bool {
    // What cannot be read is left alone.
    let Ok(entries) = fs::read_dir(dir) else { return true };
    entries.flatten().any(|entry| entry.path().to_str().is_some_and(is_used))
}

/// Renames it first: what comes meanwhile makes a folder of its own, and a removal that is cut short is known by the name.
fn forget(path: &Path) {
    let gone = if is_gone(path) { path.to_owned() } else { path.with_extension(GONE) };
    match fs::rename(path, &gone) {
        Ok(()) => {
            tracing::info!(path = %path.display(), "code that nothing runs any more is removed");
            remove(&gone);
        }
        Err(error) => tracing::warn!(path = %path.display(), %error, "code that nothing runs stays"),
    }
}

fn is_gone(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == GONE)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::hostile::archive_of;
    use super::*;

    #[test]
    fn the_same_archive_is_the_same_version_and_old_ones_go_unless_they_run() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("hello");
        let keep = |text: &str, is_used: &dyn Fn(&str) -> bool| {
            keep(&dir, "hello", &archive_of(&[("handler.py", text)]), Path::new("/bin/longshore"), is_used)
                .unwrap()
        };
        let first = keep("0", &|_| false);
        assert_eq!(keep("0", &|_| false), first);
        assert_eq!((first.files, first.bytes, first.hash.len()), (1, 1, 64));
        assert_eq!(first.command[1..], ["code-worker".to_owned(), first.workdir.clone()]);
        for number in 1..=VERSIONS_MAX {
            keep(&number.to_string(), &|workdir| workdir == first.workdir);
        }
        assert_eq!(fs::read_to_string(Path::new(&first.workdir).join("handler.py")).unwrap(), "0");
        keep("x", &|_| false);
        assert!(!Path::new(&first.workdir).exists());
        let kept = versions(&dir, "hello", Path::new("/bin/longshore"));
        assert_eq!(kept.len(), VERSIONS_MAX);
        assert!(kept.is_sorted_by_key(|version| std::cmp::Reverse(version.created_at)));
    }

    #[test]
    fn what_was_removed_emptied_or_changed_comes_back_with_the_same_archive() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let files = [("handler.py", "print()"), ("lib/a.py", "a"), ("lib/b.py", "bb")];
        let archive = archive_of(&files);
        let keep = || keep(dir, "hello", &archive, Path::new("/bin/longshore"), &|_| false).unwrap();
        let first = keep();
        let folder = Path::new(&first.workdir);
        let assert_whole = |what: &str| {
            assert_eq!(keep(), first, "{what}");
            for (path, text) in files {
                assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), text, "{what}");
            }
        };
        fs::create_dir(folder.join("__pycache__")).unwrap();
        assert_whole("nothing changed");
        assert!(folder.join("__pycache__").exists(), "what is whole stays as it is");

        let damages: [(&str, &dyn Fn()); 6] = [
            ("a file is gone", &|| fs::remove_file(folder.join("handler.py")).unwrap()),
            ("a folder is gone", &|| fs::remove_dir_all(folder.join("lib")).unwrap()),
            ("everything is gone", &|| fs::remove_dir_all(folder).unwrap()),
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
        assert_eq!(left.count(), 2, "no draft is left, only the folder and its note");
    }

    #[test]
    fn a_version_is_newer_than_those_before_whatever_the_clock_says() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, program) = (dir.path(), Path::new("/bin/longshore"));
        let keep = |text: &str| {
            keep(dir, "hello", &archive_of(&[("handler.py", text)]), program, &|_| false).unwrap()
        };
        let first = keep("1");
        let note = Note { files: 1, bytes: 1, created_at: Millis(9_000_000_000_000) };
        fs::write(dir.join(format!("{}.json", first.hash)), serde_json::to_vec(&note).unwrap()).unwrap();
        let mut kept = vec![first.hash];
        kept.extend(["2", "3", "4"].map(|text| keep(text).hash));
        let found = versions(dir, "hello", program).into_iter().rev().map(|version| version.hash);
        assert_eq!(found.collect::<Vec<_>>(), kept);
    }

    #[test]
    fn code_that_no_template_runs_is_removed_a_while_after_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let code = dir.path().join("code");
        let keep = |name: &str| {
            let archive = archive_of(&[("handler.py", name)]);
            keep(&code.join(name), name, &archive, Path::new("/bin/longshore"), &|_| false).unwrap().workdir
        };
        let (runs, _unused) = (keep("runs"), keep("unused"));
        fs::create_dir(code.join("half.gone")).unwrap();
        let names = || {
            let entries = fs::read_dir(&code).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let is_used = |workdir: &str| workdir == runs;
        forget_unused(&code, Duration::from_hours(1), &is_used);
        assert_eq!(names(), ["runs", "unused"]);
        forget_unused(&code, Duration::ZERO, &is_used);
        assert_eq!(names(), ["runs"]);
        assert!(Path::new(&runs).join("handler.py").exists());
        forget_unused(&dir.path().join("nothing"), Duration::ZERO, &is_used);
    }
}
