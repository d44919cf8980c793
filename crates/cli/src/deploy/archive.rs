//! Packs a directory. The same files always give the same bytes, and so the same version.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use tar::{Builder, EntryType, Header};

use crate::exit::{CommandError, CommandResult, cannot};
use crate::human::size;

/// Most files of a deployed directory.
const FILES_MAX: usize = 10_000;

/// A packed directory, ready to upload.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) archive: Bytes,
    pub(super) files: usize,
}

/// Packs all files of `dir` except hidden ones, Python's compiled files, and environments.
pub(super) fn pack(dir: &Path) -> CommandResult<Packed> {
    let mut files = Vec::new();
    collect(dir, Path::new(""), &mut files)
        .map_err(|error| cannot(format_args!("read {}", dir.display()), error))?;
    if files.len() > FILES_MAX {
        return Err(CommandError::usage(format!("{} has more than {FILES_MAX} files", dir.display()))
            .next("name the folder that has only the handler"));
    }
    files.sort();
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for path in &files {
        add(&mut tar, dir, path).map_err(|error| cannot(format_args!("pack {}", path.display()), error))?;
    }
    let archive =
        tar.into_inner().and_then(GzEncoder::finish).map_err(|error| cannot("pack the folder", error))?;
    if archive.len() > CODE_BODY_BYTES_MAX {
        return Err(too_large(dir, &files, archive.len()));
    }
    Ok(Packed { archive: archive.into(), files: files.len() })
}

/// Collects files. Links to files are followed. Links to directories are skipped, because they can form cycles.
fn collect(dir: &Path, inner: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(inner))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = inner.join(&name);
        let name = name.to_string_lossy();
        // `.env` and `.git` may hold secrets.
        if name.starts_with('.') || matches!(&*name, "__pycache__" | "node_modules") || name.ends_with(".pyc")
        {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if !dir.join(&path).join("pyvenv.cfg").exists() {
                collect(dir, &path, files)?;
            }
        } else if fs::metadata(dir.join(&path)).is_ok_and(|facts| facts.is_file()) {
            files.push(path);
        }
    }
    Ok(())
}

/// Adds one file without its times and owner, so that the archive depends on names and contents only.
fn add(tar: &mut Builder<GzEncoder<Vec<u8>>>, dir: &Path, path: &Path) -> io::Result<()> {
    let file = File::open(dir.join(path))?;
    let facts = file.metadata()?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(facts.len());
    header.set_mode(if facts.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 });
    tar.append_data(&mut header, path, io::Read::take(file, facts.len()))
}

fn too_large(dir: &Path, files: &[PathBuf], bytes: usize) -> CommandError {
    let mut sizes: Vec<(u64, &PathBuf)> = files
        .iter()
        .map(|path| (fs::metadata(dir.join(path)).map_or(0, |facts| facts.len()), path))
        .collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let largest =
        sizes.iter().take(3).map(|(bytes, path)| format!("{:>9}  {}", size(*bytes), path.display()));
    let (packed, limit) = (size(bytes as u64), size(CODE_BODY_BYTES_MAX as u64));
    let message = format!("the packed folder has {packed}, the limit is {limit}; the largest files:");
    CommandError::usage(message).with_lines(largest).next("download models when the handler starts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_are_the_same_bytes_and_secrets_stay_here() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for dir in &dirs {
            let at = |path: &str| dir.path().join(path);
            for folder in ["lib/deep", "__pycache__", ".git", "env"] {
                fs::create_dir_all(at(folder)).unwrap();
            }
            for path in
                ["handler.py", "lib/deep/a.py", "__pycache__/x.pyc", ".git/config", ".env", "env/pyvenv.cfg"]
            {
                fs::write(at(path), path).unwrap();
            }
            std::os::unix::fs::symlink(at("handler.py"), at("linked.py")).unwrap();
            std::os::unix::fs::symlink(dir.path(), at("circle")).unwrap();
        }
        let [one, other] = dirs.map(|dir| pack(dir.path()).unwrap());
        assert_eq!(one.archive, other.archive);
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&one.archive[..]));
        let paths: Vec<_> =
            tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(paths, ["handler.py", "lib/deep/a.py", "linked.py"].map(PathBuf::from));
    }
}
