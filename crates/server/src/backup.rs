//! `longshore backup` and `longshore restore`.
//!
//! ```text
//! data directory ──► source: the durable log, then the files that its rows name
//!                    └──► entries ──► directory or archive with a temporary name ──► read back, compared, renamed
//! ```
//!
//! A backup is a directory, or an archive of one:
//!
//! ```text
//! backup.json     the manifest (`manifest.rs`): format, time and the hash of the list; written last
//! backup.list     one line per entry of `data`, with its length and SHA-256 (`list.rs`)
//! data/           a data directory
//! ```

mod archive;
mod check;
mod entry;
mod folder;
mod list;
mod manifest;
pub(crate) mod partial;
mod progress;
mod source;
mod verify;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longshore_cli::{BackupArgs, RestoreArgs, ServeArgs, count, size};
use longshore_store::StoreError;

use self::archive::{ArchiveReader, ArchiveWriter};
pub(crate) use self::check::{check, is_backup};
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

/// Suffix of an archive's file name.
const ARCHIVE: &str = ".tar.zst";
/// Name of the data directory in a backup.
const DATA: &str = "data";

/// Why a backup or a restore failed. The target name does not exist afterwards.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("{} already exists; choose another name", .0.display())]
    Exists(PathBuf),
    #[error("{} is being written by another process", .0.display())]
    Busy(PathBuf),
    #[error("cannot {what} {}: {cause}", path.display())]
    Io { what: &'static str, path: PathBuf, cause: io::Error },
    #[error("{} is not a complete backup: {what}", path.display())]
    NotWhole { path: PathBuf, what: String },
    #[error("the backup differs from what was written: {0}; check the disk")]
    Differs(String),
    #[error("the data directory is damaged: {0}; `longshore store verify` lists all damage")]
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

/// Runs `longshore backup`.
pub(crate) fn backup(args: &BackupArgs) -> ExitCode {
    ended(run_backup(args))
}

/// Runs `longshore restore`.
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
    if settings.has_database() {
        return Err(StartupError::NotWithDatabase(
            "rows and payloads are in a database: back it up with `pg_dump`, or with the archive of its log",
        ));
    }
    let data = settings.data_dir;
    let made = make(&data, &args.to, args.without_volumes)?;
    tell(&format!("backup of {} in {}: {made}", data.display(), args.to.display()));
    Ok(())
}

fn run_restore(args: &RestoreArgs) -> Result<(), StartupError> {
    let restored = restore_to(&args.from, &args.data_dir)?;
    tell(&format!("{} restored in {}: {restored}", args.from.display(), args.data_dir.display()));
    tell(&format!("start it: longshore serve --data-dir {}", args.data_dir.display()));
    Ok(())
}

/// Prints a line. A closed standard output does not fail a finished backup.
fn tell(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// The contents of a backup, for the message.
struct Made {
    manifest: Manifest,
    jobs: u64,
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Manifest { files, bytes, volumes, .. } = &self.manifest;
        write!(
            f,
            "{}, {}, {}, verified by reading back",
            count(*files, "file"),
            size(*bytes),
            count(self.jobs, "job")
        )?;
        if *volumes { Ok(()) } else { f.write_str("; without network volumes") }
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
        return Err(BackupError::Differs("the entries differ".to_owned()));
    }
    let jobs = checked.check()?;
    drop(scratch);
    partial.publish()?;
    Ok(Made { manifest, jobs })
}

/// Writes a complete backup: data, list, manifest.
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

/// A backup that was read. Its manifest belongs to `kept_list`.
struct ReadEntries {
    manifest: Manifest,
    /// The list in the backup.
    kept_list: Vec<u8>,
    /// The list of the entries that were read.
    found_list: Vec<u8>,
}

/// Reads a complete backup into `data` and compares it with its list.
fn read_back(
    backup: &Path,
    is_archive: bool,
    data: &mut dyn Sink,
    progress: &mut Progress,
) -> Done<Manifest> {
    let read = read_entries(backup, is_archive, data, progress)?;
    match list::first_difference(&read.kept_list, &read.found_list) {
        None => Ok(read.manifest),
        Some(line) => Err(BackupError::NotWhole {
            path: backup.to_owned(),
            what: format!("damaged or missing entry: {line}"),
        }),
    }
}

/// Reads a backup into `data`.
fn read_entries(
    backup: &Path,
    is_archive: bool,
    data: &mut dyn Sink,
    progress: &mut Progress,
) -> Done<ReadEntries> {
    let mut list = ListWriter::new(data, progress);
    let (kept_list, manifest) = if is_archive {
        ArchiveReader::open(backup)?.read(&mut list)?
    } else {
        FolderReader::of(backup).read(&mut list)?
    };
    let (found_list, ..) = list.end();
    data.end()?;
    let not_whole = |what: String| BackupError::NotWhole { path: backup.to_owned(), what };
    let manifest = Manifest::read(&manifest).map_err(not_whole)?;
    if !manifest.is_of(&kept_list) {
        return Err(not_whole(format!("`{}` is damaged", list::NAME)));
    }
    Ok(ReadEntries { manifest, kept_list, found_list })
}

fn restore_to(from: &Path, to: &Path) -> Done<Made> {
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

/// Removes an unfinished backup. The next run finds and removes a leftover by its name.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
