//! Blobs as files of a local directory.
//!
//! A blob is written under a temporary name in `.tmp`, synced and renamed to its own name; then its directory is synced.
//! The next opening removes the files that a crash left in `.tmp`.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longshore_direct_io::{Direct, PAGE_BYTES, Pages};

use crate::name::check_name;
use crate::{BlobError, BlobFuture, Blobs};

/// The directory of temporary files. No blob's name starts with a dot.
const TEMPORARY: &str = ".tmp";
/// The file in the blob directory whose shared lock keeps the server from deleting blobs. No blob's name starts with a dot.
pub const COPY_LOCK: &str = ".hold";
/// Limit of the deletions that wait for the end of a copy. Further blobs are deleted as orphans at the next start.
const WAITING_MAX: usize = 100_000;
/// Bytes per write. Larger writes are not faster.
const PIECE_BYTES: usize = 2 << 20;

/// Blobs in a directory that no other process writes to. Clones share the directory. Must be used inside a Tokio runtime.
#[derive(Clone, Debug)]
pub struct DirBlobs {
    root: Arc<Path>,
    temporary: Arc<AtomicU64>,
    /// Folders whose directory entries are durable.
    durable: Arc<Mutex<HashSet<PathBuf>>>,
    deletions: Arc<Mutex<Deletions>>,
}

/// The deletions that wait for the end of a copy.
#[derive(Debug)]
struct Deletions {
    /// The file of [`COPY_LOCK`].
    copy_lock: File,
    waiting: HashSet<PathBuf>,
}

impl DirBlobs {
    /// Opens the directory, creating it if it is missing. Blocks while temporary files are removed.
    ///
    /// # Errors
    /// [`BlobError::Io`] or [`BlobError::Full`] if the directory cannot be created or written.
    pub fn open(root: &Path) -> Result<Self, BlobError> {
        let temporary = root.join(TEMPORARY);
        let cleared = match fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => DirBuilder::new().recursive(true).mode(0o700).create(&temporary),
        };
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let named = cleared.and_then(|()| sync_folder(parent.unwrap_or(Path::new("."))));
        named.map_err(|error| {
            let what = format!("the directory {} cannot be used, check its owner and rights", root.display());
            BlobError::from_io(&what, &error)
        })?;
        let copy_lock =
            File::options().write(true).create(true).truncate(false).mode(0o600).open(root.join(COPY_LOCK));
        let copy_lock = copy_lock.map_err(|error| BlobError::from_io(COPY_LOCK, &error))?;
        let deletions = Arc::new(Mutex::new(Deletions { copy_lock, waiting: HashSet::new() }));
        Ok(Self { root: root.into(), temporary: Arc::default(), durable: Arc::default(), deletions })
    }

    /// Runs file operations on a blocking thread.
    fn blocking<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Self, &Path) -> io::Result<T> + Send + 'static,
    ) -> BlobFuture<'static, T> {
        let name = check_name(name).map(str::to_owned);
        let blobs = self.clone();
        Box::pin(async move {
            let name = name?;
            let task = tokio::task::spawn_blocking(move || {
                work(&blobs, &blobs.root.join(&name)).map_err(|error| BlobError::from_io(&name, &error))
            });
            task.await.unwrap_or_else(|error| {
                Err(BlobError::Io(format!("a file operation did not finish: {error}")))
            })
        })
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(TEMPORARY).join(number.to_string());
        let written = self.write_through(&temporary, path, bytes);
        if written.is_err() {
            // Frees the space. If the removal fails too, the next opening removes the file.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write_through(&self, temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_durably(temporary, bytes)?;
        let folder = path.parent().unwrap_or(&self.root);
        self.create_folder(folder)?;
        self.deletions().waiting.remove(path);
        fs::rename(temporary, path)?;
        sync_folder(folder)
    }

    /// Creates a folder below the root, durably.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        if folder == &*self.root || self.durable_folders().contains(folder) {
            return Ok(());
        }
        let parent = folder.parent().unwrap_or(&self.root);
        self.create_folder(parent)?;
        match fs::create_dir(folder) {
            // The entry of an existing folder may not be synced yet.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(parent)?,
        }
        self.durable_folders().insert(folder.to_owned());
        Ok(())
    }

    /// Fails if the root is not the directory that was opened: a blob is not missing while its disk is not mounted.
    fn check_there(&self) -> io::Result<()> {
        fs::metadata(self.root.join(TEMPORARY)).map(drop).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the directory {} is not the one that was opened: {error}", self.root.display()),
            )
        })
    }

    fn deletions(&self) -> MutexGuard<'_, Deletions> {
        self.deletions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes a blob and the blobs of waiting deletions. While a copy is made, the deletion waits instead.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut deletions = self.deletions();
        if deletions.copy_lock.try_lock().is_err() {
            if deletions.waiting.len() < WAITING_MAX {
                deletions.waiting.insert(path.to_owned());
            }
            return Ok(());
        }
        for path in std::mem::take(&mut deletions.waiting) {
            // A file that stays is an orphan, which the next start deletes.
            let _ = fs::remove_file(path);
        }
        let removed = fs::remove_file(path);
        // The lock is released with the file at the latest.
        let _ = deletions.copy_lock.unlock();
        removed
    }

    fn durable_folders(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blobs for DirBlobs {
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()> {
        self.blocking(name, move |blobs, path| blobs.write(path, &bytes))
    }

    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>> {
        self.blocking(name, |blobs, path| {
            let bytes = absent_is_none(read(path))?;
            if bytes.is_none() {
                blobs.check_there()?;
            }
            Ok(bytes)
        })
    }

    fn delete(&self, name: &str) -> BlobFuture<'_, ()> {
        self.blocking(name, |blobs, path| absent_is_none(blobs.remove(path)).map(drop))
    }

    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>> {
        let prefix = folder.to_owned();
        self.blocking(folder, move |_, path| {
            let files = entries(path, fs::FileType::is_file)?;
            Ok(files.into_iter().map(|file| format!("{prefix}/{file}")).collect())
        })
    }

    fn folders(&self) -> BlobFuture<'_, Vec<String>> {
        // The name is only checked: the operation reads the root.
        self.blocking("root", |blobs, _| entries(&blobs.root, fs::FileType::is_dir))
    }
}

/// Creates a file with these bytes and syncs it. Writes past the page cache, because a copy of a large blob there takes
/// longer than the disk's write and is seldom read.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = File::create(path)?;
    let (mut direct, mut pages, mut at) = (Direct::to_write(path), Pages::default(), 0);
    let (whole_pages, rest) = bytes.split_at(bytes.len() - bytes.len() % PAGE_BYTES);
    for piece in whole_pages.chunks(PIECE_BYTES) {
        pages.begin(piece.len()).extend_from_slice(piece);
        if !direct.write(pages.bytes(), at)? {
            file.write_all_at(piece, at)?;
        }
        at += piece.len() as u64;
    }
    file.write_all_at(rest, at)?;
    file.sync_all()
}

fn read(path: &Path) -> io::Result<Bytes> {
    let bytes = fs::metadata(path)?.len() as usize;
    let mut pages = Pages::default();
    pages.begin(bytes);
    pages.fill(bytes);
    match Direct::to_read(path).read(&mut pages)? {
        Some(read) => Ok(pages.into_bytes(read)),
        None => fs::read(path).map(Bytes::from),
    }
}

fn absent_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        // If a parent is a file, there is no such blob either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the names of a folder's entries of one kind, ascending. Leaves out names that are invalid for a blob.
fn entries(folder: &Path, kind: impl Fn(&fs::FileType) -> bool) -> io::Result<Vec<String>> {
    let Some(entries) = absent_is_none(fs::read_dir(folder))? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if kind(&entry.file_type()?) {
            names.extend(entry.file_name().into_string().ok().filter(|name| check_name(name).is_ok()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
