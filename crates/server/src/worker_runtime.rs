//! The worker runtime: Python files that are part of this program, written into the data directory for workers.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

/// The files by their path in the folder. `python/` of the repository has them too.
const FILES: &[(&str, &str)] = &[
    ("sitecustomize.py", include_str!("../../../python/sitecustomize.py")),
    ("longshore_runtime/__init__.py", include_str!("../../../python/longshore_runtime/__init__.py")),
    (
        "longshore_runtime/deferred_paramiko.py",
        include_str!("../../../python/longshore_runtime/deferred_paramiko.py"),
    ),
    ("longshore_runtime/edits.py", include_str!("../../../python/longshore_runtime/edits.py")),
    ("longshore_runtime/finder.py", include_str!("../../../python/longshore_runtime/finder.py")),
    ("longshore_runtime/imports.py", include_str!("../../../python/longshore_runtime/imports.py")),
    ("longshore_runtime/known.py", include_str!("../../../python/longshore_runtime/known.py")),
    ("longshore_runtime/pace.py", include_str!("../../../python/longshore_runtime/pace.py")),
    ("longshore_runtime/processor.py", include_str!("../../../python/longshore_runtime/processor.py")),
    ("longshore_runtime/zygote.py", include_str!("../../../python/longshore_runtime/zygote.py")),
];

/// How many hexadecimal digits of the files' hash name the folder.
const NAME_DIGITS: usize = 16;

/// Returns the folder of the worker runtime in `cache`, an absolute path. Writes the files unless they are there.
///
/// The folder is named by the hash of its files, so that workers of an earlier version of the program keep theirs.
///
/// # Errors
///
/// The files could not be written.
pub(crate) fn prepare(cache: &Path) -> io::Result<PathBuf> {
    let cache = std::path::absolute(cache)?;
    let folder = cache.join(format!("worker-runtime-{}", &hash()[..NAME_DIGITS]));
    if is_complete(&folder) {
        return Ok(folder);
    }
    // It is in the data directory, which this may create, and which is for this user alone.
    DirBuilder::new().recursive(true).mode(0o700).create(&cache)?;
    let new = tempfile::Builder::new().prefix("worker-runtime.").tempdir_in(&cache)?;
    let root = new.path().join("files");
    for (path, text) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&root))?;
        fs::write(path, text)?;
    }
    // A folder that is there lacks a file or has a changed one.
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::rename(root, &folder)?,
    }
    Ok(folder)
}

fn is_complete(folder: &Path) -> bool {
    FILES.iter().all(|(path, text)| fs::read(folder.join(path)).is_ok_and(|found| found == text.as_bytes()))
}

/// Returns the hash of all files and their paths, as hexadecimal digits.
fn hash() -> String {
    let mut context = Context::new(&SHA256);
    for part in FILES.iter().flat_map(|(path, text)| [path, text]) {
        context.update(&part.len().to_be_bytes());
        context.update(part.as_bytes());
    }
    const_hex::encode(context.finish())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_file_of_the_package_is_in_the_program() {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let package = fs::read_dir(python.join("longshore_runtime")).unwrap();
        let mut found: Vec<String> = package
            .map(|entry| PathBuf::from(entry.unwrap().file_name()))
            .filter(|name| name.extension().is_some_and(|extension| extension == "py"))
            .map(|name| format!("longshore_runtime/{}", name.display()))
            .collect();
        found.push("sitecustomize.py".to_owned());
        found.sort();
        let mut embedded: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        embedded.sort_unstable();
        assert_eq!(found, embedded);
    }

    #[test]
    fn a_data_directory_that_it_creates_is_for_this_user_alone() {
        let parent = tempfile::tempdir().unwrap();
        prepare(&parent.path().join("data/cache")).unwrap();
        let mode = |path: &str| fs::metadata(parent.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("data"), mode("data/cache")), (0o700, 0o700));
    }

    #[test]
    fn the_files_are_written_once_and_repaired() {
        let data = tempfile::tempdir().unwrap();
        let cache = data.path().join("cache");
        let folder = prepare(&cache).unwrap();
        let package = folder.join("longshore_runtime");
        fs::write(package.join("compiled.pyc"), "").unwrap();
        assert_eq!(prepare(&cache).unwrap(), folder);
        assert!(package.join("compiled.pyc").exists(), "a complete folder stays as it is");

        fs::write(package.join("pace.py"), "").unwrap();
        assert_eq!(prepare(&cache).unwrap(), folder);
        assert!(is_complete(&folder));
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing temporary is left");
    }
}
