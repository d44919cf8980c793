//! `longshore backup` and `longshore restore`.
//!
//! ```text
//! data folder ──► source: log as it is durable now, then everything that rows name
//!                    └──► entries ──► folder or archive, under another name ──► read back and compared ──► renamed
//! ```
//!
//! A backup is a folder, or an archive of one:
//!
//! ```text
//! backup.json     what it is a backup of, and in which form (`manifest.rs`); written last
//! backup.list     a line for each entry of `data`, with its length and its SHA-256 (`list.rs`)
//! data/           a data folder
//! ```

mod archive;
mod entry;
mod folder;
mod list;
mod manifest;
mod partial;
mod progress;
mod source;
mod verify;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longshore_cli::{BackupArgs, RestoreArgs, ServeArgs};
use longshore_store::StoreError;

use self::archive::{ArchiveReader, ArchiveWriter};
use self::entry::{Entry, Sink};
use self::folder::{FolderReader, FolderWriter};
use self::list::ListWriter;
use self::manifest::Manifest;
use self::partial::Partial;
use self::progress::Progress;
use self::verify::CheckedData;
use crate::serve;
use crate::settings::Settings;
use crate::startup_error::StartupError;

/// What an archive's name ends with.
const ARCHIVE: &str = ".tar.zst";
/// The data folder in a backup.
const DATA: &str = "data";

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("{} is there already; choose another name", .0.display())]
    Exists(PathBuf),
    #[error("{} is being written by another process", .0.display())]
    Busy(PathBuf),
    #[error("cannot {what} {}: {cause}", path.display())]
    Io { what: &'static str, path: PathBuf, cause: io::Error },
    #[error("{} is no whole backup: {what}", path.display())]
    NotWhole { path: PathBuf, what: String },
    #[error("what was read back is not what was written: {0}; check the disk")]
    Differs(String),
    #[error("the data folder is damaged: {0}; `longshore store verify` shows everything")]
    Damaged(String),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl BackupError {
    fn io<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |cause| Self::Io { what, path: path.to_owned(), cause }
    }
}

type Done<T> = Result<T, BackupError>;

/// `longshore backup`.
pub(crate) fn backup(args: &BackupArgs) -> ExitCode {
    ended(run_backup(args))
}

/// `longshore restore`.
pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    ended(run_restore(args))
}

fn ended(done: Result<(), StartupError>) -> ExitCode {
    done.map_or_else(|fatal| fatal.report(), |()| ExitCode::SUCCESS)
}

fn run_backup(args: &BackupArgs) -> Result<(), StartupError> {
    let serve_args =
        ServeArgs { data_dir: args.data_dir.clone(), config: args.config.clone(), ..ServeArgs::default() };
    let settings = Settings::load(&serve_args, serve::environment())?;
    let data = settings.data_dir;
    let made = make(&data, &args.to, args.without_volumes)?;
    tell(&format!("backup of {} in {}: {made}", data.display(), args.to.display()));
    Ok(())
}

fn run_restore(args: &RestoreArgs) -> Result<(), StartupError> {
    let restored = put_back(&args.from, &args.data_dir)?;
    tell(&format!("{} restored in {}: {restored}", args.from.display(), args.data_dir.display()));
    tell(&format!("start it: longshore serve --data-dir {}", args.data_dir.display()));
    Ok(())
}

/// It is done also where nobody reads it.
fn tell(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// What there is in a backup.
struct Made {
    manifest: Manifest,
    jobs: u64,
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Manifest { files, bytes, volumes, .. } = &self.manifest;
        write!(f, "{files} files, {:.1} MB, {} jobs, all of it read back", *bytes as f64 / 1e6, self.jobs)?;
        if *volumes { Ok(()) } else { f.write_str("; without what is in volumes") }
    }
}

fn is_archive(path: &Path) -> bool {
    path.to_string_lossy().ends_with(ARCHIVE)
}

fn make(data: &Path, to: &Path, without_volumes: bool) -> Done<Made> {
    let held = source::hold(data)?;
    let mut progress = Progress::new("copying", source::bytes_in(data, &held, !without_volumes));
    let (partial, manifest) = if is_archive(to) {
        let partial = Partial::file(to)?;
        let mut writer = ArchiveWriter::new(&partial)?;
        let manifest = fill(data, held, without_volumes, &mut writer, &mut progress)?;
        (partial, manifest)
    } else {
        let partial = Partial::folder(to)?;
        let mut writer = FolderWriter::new(partial.path());
        let manifest = fill(data, held, without_volumes, &mut writer, &mut progress)?;
        (partial, manifest)
    };
    progress.end();
    let mut progress = Progress::new("reading back", manifest.bytes);
    let parent = partial::parent(partial.path());
    let scratch = tempfile::Builder::new().prefix(".longshore-backup-").tempdir_in(parent);
    let scratch = scratch.map_err(BackupError::io("write", parent))?;
    let mut checked = CheckedData::in_folder(scratch.path());
    let read = read_back(partial.path(), is_archive(to), &mut checked, &mut progress)?;
    progress.end();
    if read != manifest {
        return Err(BackupError::Differs("it has other entries".to_owned()));
    }
    let jobs = checked.check()?;
    drop(scratch);
    partial.publish()?;
    Ok(Made { manifest, jobs })
}

/// Writes a whole backup: the data, then the list of it, then what it is.
fn fill(
    data: &Path,
    held: source::Held,
    without_volumes: bool,
    sink: &mut dyn Sink,
    progress: &mut Progress,
) -> Done<Manifest> {
    let mut list = ListWriter::new(sink, progress);
    source::copy(data, held, !without_volumes, &mut list)?;
    let (text, files, bytes) = list.end();
    let manifest = Manifest::new(files, bytes, !without_volumes, &text);
    sink.put(&Entry::text(list::NAME, text.len()), &mut text.as_slice())?;
    let json = manifest.json();
    sink.put(&Entry::text(manifest::NAME, json.len()), &mut json.as_slice())?;
    sink.end()?;
    Ok(manifest)
}

/// Reads a whole backup into `data`, and compares it with what it says of itself.
fn read_back(
    backup: &Path,
    is_archive: bool,
    data: &mut dyn Sink,
    progress: &mut Progress,
) -> Done<Manifest> {
    let mut list = ListWriter::new(data, progress);
    let (kept_list, manifest) = if is_archive {
        ArchiveReader::open(backup)?.read(&mut list)?
    } else {
        FolderReader::of(backup).read(&mut list)?
    };
    let (found, ..) = list.end();
    data.end()?;
    let not_whole = |what: String| BackupError::NotWhole { path: backup.to_owned(), what };
    let manifest = Manifest::read(&manifest).map_err(not_whole)?;
    if !manifest.is_of(&kept_list) {
        return Err(not_whole(format!("`{}` is damaged", list::NAME)));
    }
    match list::first_difference(&kept_list, &found) {
        None => Ok(manifest),
        Some(line) => Err(not_whole(format!("this is damaged or missing: {line}"))),
    }
}

fn put_back(from: &Path, to: &Path) -> Done<Made> {
    let partial = Partial::folder(to)?;
    let mut progress = Progress::new("restoring", 0);
    let mut writer = FolderWriter::new(partial.path());
    let manifest = read_back(from, !from.is_dir(), &mut writer, &mut progress)?;
    progress.end();
    let data = partial.path().join(DATA);
    let jobs = verify::store_in(&data)?;
    partial.publish_folder(&data)?;
    Ok(Made { manifest, jobs })
}

/// Removes what nobody needs; what is left is found by its name.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
