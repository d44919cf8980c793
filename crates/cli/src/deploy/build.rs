//! Builds the image of a folder with a `Dockerfile`, on the server's Docker daemon.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_client::BuildNews;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use tar::{Builder, EntryType, Header};

use super::dockerignore::Ignored;
use crate::dev::project::{DOCKERFILE, Project};
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::human::{count, size};
use crate::output::harmless;
use crate::remote::Connection;

/// The file with the patterns of files that are not sent.
const IGNORE_FILE: &str = ".dockerignore";
/// The folder of `dev`, which has keys.
const OWN_FOLDER: &str = ".longshore";
/// Most files and folders of a context.
const ENTRIES_MAX: usize = 20_000;

type Tar = Builder<GzEncoder<Vec<u8>>>;

/// Builds the image, shows the output, and returns the image's name.
pub(super) async fn build(session: &Connection, project: &Project) -> CommandResult<String> {
    let (context, entries) = pack(&project.dir)?;
    let sent = format!("{} ({})", count(entries as u64, "file"), size(context.len() as u64));
    session.screen.note(&format!("building the {DOCKERFILE} with {sent}"));
    let mut build = session.client.build_image(&project.code_name(), context).await?;
    let mut line = String::new();
    while let Some(news) = build.next().await? {
        match news {
            BuildNews::Text(text) => {
                line.push_str(&text);
                while let Some(end) = line.find('\n') {
                    let rest = line.split_off(end + 1);
                    session.screen.line(&format!("    {}", harmless(line.trim_end())));
                    line = rest;
                }
            }
            BuildNews::Image(image) => {
                session.screen.good(&format!("image {image} built"));
                return Ok(image);
            }
            BuildNews::Error(reason) => {
                let text = format!("the image was not built, and nothing was deployed: {}", reason.trim());
                return Err(CommandError::new(CommandExit::Failure, text)
                    .next(format!("mend the {DOCKERFILE} and deploy again")));
            }
        }
    }
    Err(CommandError::new(
        CommandExit::Unreachable,
        "the server ended before the image was built; deploy again",
    ))
}

/// Packs a folder as the builder takes it. Times and owners are left out, so that the same files are the same bytes.
fn pack(dir: &Path) -> CommandResult<(Bytes, usize)> {
    let ignored = match fs::read_to_string(dir.join(IGNORE_FILE)) {
        Ok(text) => Ignored::of(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ignored::default(),
        Err(error) => return Err(cannot(format_args!("read {IGNORE_FILE}"), error)),
    };
    let mut paths = Vec::new();
    collect(dir, Path::new(""), &ignored, &mut paths)
        .map_err(|error| cannot(format_args!("read {}", dir.display()), error))?;
    if paths.len() > ENTRIES_MAX {
        let text = format!("{} has more than {ENTRIES_MAX} files and folders", dir.display());
        return Err(CommandError::usage(text).next(format!("name what is not needed in {IGNORE_FILE}")));
    }
    paths.sort();
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for path in &paths {
        add(&mut tar, dir, path).map_err(|error| cannot(format_args!("pack {}", path.display()), error))?;
    }
    let archive =
        tar.into_inner().and_then(GzEncoder::finish).map_err(|error| cannot("pack the folder", error))?;
    if archive.len() > CODE_BODY_BYTES_MAX {
        let (packed, limit) = (size(archive.len() as u64), size(CODE_BODY_BYTES_MAX as u64));
        let text = format!("the packed folder has {packed}, the limit is {limit}");
        return Err(CommandError::usage(text).next(format!(
            "name what is not needed in {IGNORE_FILE}, and download models in the {DOCKERFILE}"
        )));
    }
    Ok((archive.into(), paths.len()))
}

/// Collects files, links and folders that are sent.
fn collect(dir: &Path, inner: &Path, ignored: &Ignored, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(inner))? {
        let entry = entry?;
        let path = inner.join(entry.file_name());
        if path == Path::new(OWN_FOLDER) {
            continue;
        }
        let kind = entry.file_type()?;
        let is_sent = !is_ignored(&path, ignored);
        if is_sent && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
            paths.push(path.clone());
        }
        if kind.is_dir() && (is_sent || ignored.has_exceptions()) {
            collect(dir, &path, ignored, paths)?;
        }
    }
    Ok(())
}

/// Whether a path is not sent. The builder needs the two files that it reads itself.
fn is_ignored(path: &Path, ignored: &Ignored) -> bool {
    if path == Path::new(DOCKERFILE) || path == Path::new(IGNORE_FILE) {
        return false;
    }
    let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    ignored.ignores(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Adds a file, a link as it is, or an empty folder.
fn add(tar: &mut Tar, dir: &Path, path: &Path) -> io::Result<()> {
    let at = dir.join(path);
    let facts = fs::symlink_metadata(&at)?;
    let mut header = Header::new_gnu();
    header.set_mode(mode(&facts));
    header.set_size(0);
    if facts.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        return tar.append_link(&mut header, path, fs::read_link(&at)?);
    }
    if facts.is_dir() {
        header.set_entry_type(EntryType::Directory);
        return tar.append_data(&mut header, path, io::empty());
    }
    header.set_entry_type(EntryType::Regular);
    header.set_size(facts.len());
    tar.append_data(&mut header, path, io::Read::take(File::open(&at)?, facts.len()))
}

/// Any user of the image may read the files, and run those that their owner may run.
fn mode(facts: &Metadata) -> u32 {
    if facts.is_dir() || facts.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_and_the_folder_of_dev_are_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["src/deep", "models", ".longshore"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["src/deep/a.py", "src/a.log", "models/large", "models/keep", ".longshore/key"] {
            fs::write(at(file), file).unwrap();
        }
        fs::write(at(DOCKERFILE), "FROM scratch").unwrap();
        fs::write(at(IGNORE_FILE), "**/*.log\nmodels\n!models/keep\nDockerfile\n").unwrap();
        std::os::unix::fs::symlink("src/deep", at("link")).unwrap();
        let (archive, entries) = pack(dir.path()).unwrap();
        assert_eq!(pack(dir.path()).unwrap().0, archive, "the same files are the same bytes");
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
        let paths: Vec<String> = tar
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let expected = [IGNORE_FILE, DOCKERFILE, "link", "models/keep", "src", "src/deep", "src/deep/a.py"];
        assert_eq!((paths, entries), (expected.map(str::to_owned).to_vec(), 7));
    }
}
