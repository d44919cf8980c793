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

use crate::dev::project::{MANIFEST, Project};
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

/// Packs all files of a project except hidden ones, Python's compiled files, and environments. Its `longshore.toml` has
/// only what starts a worker: a change of the endpoint's fields or variables is no change of the code, and a variable may
/// be confidential.
pub(super) fn pack(project: &Project) -> CommandResult<Packed> {
    let dir = &*project.dir;
    let mut files = Vec::new();
    collect(dir, Path::new(""), &mut files)
        .map_err(|error| cannot(format_args!("read {}", dir.display()), error))?;
    if files.len() > FILES_MAX {
        return Err(CommandError::usage(format!("{} has more than {FILES_MAX} files", dir.display()))
            .next("name the folder that has only the handler"));
    }
    files.sort();
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let manifest =
        project.worker_manifest().map_err(|error| cannot(format_args!("write {MANIFEST}"), error))?;
    if !manifest.is_empty() {
        append(&mut tar, Path::new(MANIFEST), 0o644, manifest.len() as u64, manifest.as_bytes())
            .map_err(|error| cannot(format_args!("pack {MANIFEST}"), error))?;
    }
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
        } else if path != Path::new(MANIFEST)
            && fs::metadata(dir.join(&path)).is_ok_and(|facts| facts.is_file())
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Adds one file without its times and owner, so that the archive depends on names and contents only.
fn add(tar: &mut Builder<GzEncoder<Vec<u8>>>, dir: &Path, path: &Path) -> io::Result<()> {
    let file = File::open(dir.join(path))?;
    let facts = file.metadata()?;
    let mode = if facts.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 };
    append(tar, path, mode, facts.len(), io::Read::take(file, facts.len()))
}

/// Adds a file with `bytes` of `contents`.
fn append(
    tar: &mut Builder<GzEncoder<Vec<u8>>>,
    path: &Path,
    mode: u32,
    bytes: u64,
    contents: impl io::Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(mode);
    tar.append_data(&mut header, path, contents)
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
        for (dir, workers) in dirs.iter().zip([1, 2]) {
            let at = |path: &str| dir.path().join(path);
            for folder in ["lib/deep", "__pycache__", ".git", "env"] {
                fs::create_dir_all(at(folder)).unwrap();
            }
            for path in [
                "handler.py",
                "lib/longshore.toml",
                "lib/deep/a.py",
                "__pycache__/x.pyc",
                ".git/config",
                ".env",
                "env/pyvenv.cfg",
            ] {
                fs::write(at(path), path).unwrap();
            }
            let fields = format!("env = {{ TOKEN = 'hush' }}\n[endpoint]\nworkersMax = {workers}");
            fs::write(at(MANIFEST), format!("command = ['sh', '-c', 'exit']\npython = 'python3'\n{fields}"))
                .unwrap();
            std::os::unix::fs::symlink(at("handler.py"), at("linked.py")).unwrap();
            std::os::unix::fs::symlink(dir.path(), at("circle")).unwrap();
        }
        let [one, other] = [&dirs[0], &dirs[1]].map(|dir| pack(&Project::load(dir.path()).unwrap()).unwrap());
        assert_eq!(one.archive, other.archive);
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&one.archive[..]));
        let packed: Vec<(PathBuf, String)> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let path = entry.path().unwrap().into_owned();
                (path, io::read_to_string(&mut entry).unwrap())
            })
            .collect();
        let paths = packed.iter().map(|(path, _)| path.to_str().unwrap());
        let expected = [MANIFEST, "handler.py", "lib/deep/a.py", "lib/longshore.toml", "linked.py"];
        assert_eq!(paths.collect::<Vec<_>>(), expected);
        assert_eq!(packed[0].1, "command = [\"sh\", \"-c\", \"exit\"]\npython = \"python3\"\n");
    }

    #[test]
    fn a_folder_with_only_a_handler_has_no_manifest() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("handler.py"), "").unwrap();
        fs::write(dir.path().join(MANIFEST), "name = 'echo'").unwrap();
        assert_eq!(pack(&Project::load(dir.path()).unwrap()).unwrap().files, 1);
    }
}
