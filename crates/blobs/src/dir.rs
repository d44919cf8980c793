//! Blobs as files of a local folder.
//!
//! A blob is written under a temporary name in `.tmp`, synced, renamed to its own name, and the folder that now
//! names it is synced too. What a crash left in `.tmp` is removed at the next opening.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use longshore_direct_io::{Direct, PAGE_BYTES, Pages};

use crate::name::checked;
use crate::{BlobError, BlobFuture, Blobs};

/// No blob's name starts with a dot.
const TEMPORARY: &str = ".tmp";
/// Whoever holds a shared lock of this file in the folder keeps every blob where it is: no blob's name starts with a dot.
pub const COPY_LOCK: &str = ".hold";
/// Blobs to delete when nobody holds them any more. More than these are found as orphans when the server starts.
const WAITING_MAX: usize = 100_000;
/// Written at once: disks are faster with more, up to this.
const PIECE_BYTES: usize = 2 << 20;

/// Blobs in a folder that no other process writes to. Must be used inside a Tokio runtime.
#[derive(Clone, Debug)]
pub struct DirBlobs {
    root: Arc<Path>,
    temporary: Arc<AtomicU64>,
    /// Folders whose names are known to be on disk.
    durable: Arc<Mutex<HashSet<PathBuf>>>,
    deletions: Arc<Mutex<Deletions>>,
}

/// What is to be deleted while somebody makes a copy.
#[derive(Debug)]
struct Deletions {
    /// See [`COPY_LOCK`].
    hold: File,
    waiting: HashSet<PathBuf>,
}

impl DirBlobs {
    /// Opens the folder, creating it if need be. Blocks shortly.
    pub fn open(root: &Path) -> Result<Self, BlobError> {
        let temporary = root.join(TEMPORARY);
        let cleared = match fs::remove_dir_all(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => DirBuilder::new().recursive(true).mode(0o700).create(&temporary),
        };
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let named = cleared.and_then(|()| sync_folder(parent.unwrap_or(Path::new("."))));
        named.map_err(|error| {
            let folder = root.display();
            BlobError::from_io(
                &format!("the folder {folder} cannot be used, check its owner and rights"),
                &error,
            )
        })?;
        let hold =
            File::options().write(true).create(true).truncate(false).mode(0o600).open(root.join(COPY_LOCK));
        let hold = hold.map_err(|error| BlobError::from_io(COPY_LOCK, &error))?;
        let deletions = Arc::new(Mutex::new(Deletions { hold, waiting: HashSet::new() }));
        Ok(Self { root: root.into(), temporary: Arc::default(), durable: Arc::default(), deletions })
    }

    /// Does file work on a blocking thread.
    fn blocking<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Self, &Path) -> io::Result<T> + Send + 'static,
    ) -> BlobFuture<'static, T> {
        let name = checked(name).map(str::to_owned);
        let blobs = self.clone();
        Box::pin(async move {
            let name = name?;
            let task = tokio::task::spawn_blocking(move || {
                work(&blobs, &blobs.root.join(&name)).map_err(|error| BlobError::from_io(&name, &error))
            });
            task.await.unwrap_or_else(|error| Err(BlobError::Io(format!("the work did not finish: {error}"))))
        })
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(TEMPORARY).join(number.to_string());
        let written = self.write_through(&temporary, path, bytes);
        if written.is_err() {
            // Gives the space back now; if even that fails, the next opening does.
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

    /// Creates a folder below the root so that a power cut cannot take it.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        if folder == &*self.root || self.durable_folders().contains(folder) {
            return Ok(());
        }
        let parent = folder.parent().unwrap_or(&self.root);
        self.create_folder(parent)?;
        match fs::create_dir(folder) {
            // That it is there does not mean that its name was synced.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(parent)?,
        }
        self.durable_folders().insert(folder.to_owned());
        Ok(())
    }

    /// Refuses to say of anything that it is missing while the whole folder is: its disk may not be mounted.
    fn check_there(&self) -> io::Result<()> {
        fs::metadata(self.root.join(TEMPORARY)).map(drop).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the folder {} is not as it was opened: {error}", self.root.display()),
            )
        })
    }

    fn deletions(&self) -> MutexGuard<'_, Deletions> {
        self.deletions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes a blob, and those that waited; or lets it wait, too, while somebody holds all of them.
    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut deletions = self.deletions();
        if deletions.hold.try_lock().is_err() {
            if deletions.waiting.len() < WAITING_MAX {
                deletions.waiting.insert(path.to_owned());
            }
            return Ok(());
        }
        for path in std::mem::take(&mut deletions.waiting) {
            // What stays is an orphan, and found at the next start.
            let _ = fs::remove_file(path);
        }
        let removed = fs::remove_file(path);
        // It goes with the file at the latest.
        let _ = deletions.hold.unlock();
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
        // Any name will do: the work looks at the root.
        self.blocking("root", |blobs, _| entries(&blobs.root, fs::FileType::is_dir))
    }
}

/// Makes a new file of these bytes. A blob is large, and nobody gains from a copy of it in the kernel's cache that takes
/// longer to make than the disk to write.
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
        // A part of the path that is a file means the same: no such blob.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of a folder's entries of one kind, sorted; those that no blob can have are not ours and left out.
fn entries(folder: &Path, kind: impl Fn(&fs::FileType) -> bool) -> io::Result<Vec<String>> {
    let Some(entries) = absent_is_none(fs::read_dir(folder))? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if kind(&entry.file_type()?) {
            names.extend(entry.file_name().into_string().ok().filter(|name| checked(name).is_ok()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
