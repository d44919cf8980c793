//! Where a copy comes from and where it goes, each held against servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_blobs::Blobs;
use longshore_objects::ObjectBlobs;
use longshore_postgres::{Database, HeldTables, LogTable, NewTables};
use longshore_store::{EmbeddedStore, HeldDataDir, Store};

use super::rows::StoreRows;
use super::{CopyPlace, has_log};
use crate::backup::partial::Partial;
use crate::parts;
use crate::startup_error::StartupError;

/// Name of the new data directory below the temporary one, which is locked itself.
const DATA: &str = "data";

/// The store from which `longshore copy` reads.
pub(super) struct Source {
    rows: StoreRows,
    /// The data directory with what a database has no place for.
    files: Option<PathBuf>,
    /// The database; `None` for a data directory.
    database: Option<Database>,
    _held: (Option<HeldDataDir>, Option<HeldLock>),
}

/// Keeps servers away from the tables. The store that it came with is in the rows.
type HeldLock = longshore_postgres::HeldLock;

impl Source {
    /// Opens the data directory or the tables. `files` is the data directory of a server with a database.
    ///
    /// # Errors
    /// A server uses it, or it is none.
    pub(super) async fn open(
        place: CopyPlace,
        files: Option<&Path>,
        objects: Option<ObjectBlobs>,
    ) -> Result<Self, StartupError> {
        match place {
            CopyPlace::Folder(dir) => {
                if !has_log(&dir) {
                    let text = format!("{} is not a data directory: it has no `log`", dir.display());
                    return Err(StartupError::Copy(text));
                }
                let rows = folder_rows(&dir, usize::MAX, objects).await?;
                Ok(Self { rows, files: Some(dir), database: None, _held: (None, None) })
            }
            CopyPlace::Database(database) => {
                let held_dir = match files {
                    Some(files) => Some(hold(files).await?),
                    None => None,
                };
                let (store, lock) = HeldTables::open(Database::clone(&database)).await?.into_parts();
                let blobs = objects.map(shared);
                let rows = StoreRows { store: Arc::new(store), blobs, blob_bytes_min: usize::MAX };
                let files = files.map(Path::to_owned);
                Ok(Self { rows, files, database: Some(*database), _held: (held_dir, Some(lock)) })
            }
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.rows.store.as_ref()
    }

    pub(super) fn rows(&self) -> StoreRows {
        self.rows.clone()
    }

    pub(super) fn files(&self) -> Option<&Path> {
        self.files.as_deref()
    }

    /// The logs of a database.
    pub(super) fn logs(&self) -> Option<LogTable> {
        self.database.clone().map(LogTable::of)
    }
}

/// What is written: invisible until it is published.
pub(super) struct Target {
    rows: Option<StoreRows>,
    kind: Kind,
    objects: Option<ObjectBlobs>,
    /// Length in bytes above which a payload is a file or an object.
    blob_bytes_min: usize,
}

enum Kind {
    Folder { partial: Partial },
    Tables { tables: Box<NewTables>, files: Option<Partial> },
}

impl Target {
    /// Makes a new data directory, or new tables with a directory for what they have no place for.
    ///
    /// # Errors
    /// The place is not empty, or a server uses it.
    pub(super) async fn make(
        place: CopyPlace,
        files: Option<&Path>,
        blob_bytes_min: usize,
        objects: Option<ObjectBlobs>,
    ) -> Result<Self, StartupError> {
        let kind = match place {
            CopyPlace::Folder(dir) => Kind::Folder { partial: Partial::folder(&dir)? },
            CopyPlace::Database(database) => {
                let files = files.map(Partial::folder).transpose()?;
                if let Some(partial) = &files {
                    let data = partial.path().join(DATA);
                    std::fs::create_dir(&data).map_err(|cause| cannot_make(&data, &cause))?;
                }
                Kind::Tables { tables: Box::new(NewTables::make(*database).await?), files }
            }
        };
        let mut target = Self { rows: None, kind, objects, blob_bytes_min };
        target.open_again().await?;
        Ok(target)
    }

    /// Opens what was written, as a server does.
    pub(super) async fn open_again(&mut self) -> Result<(), StartupError> {
        self.rows = None;
        let objects = self.objects.clone();
        self.rows = Some(match &self.kind {
            Kind::Folder { partial } => {
                folder_rows(&partial.path().join(DATA), self.blob_bytes_min, objects).await?
            }
            Kind::Tables { tables, .. } => StoreRows {
                store: Arc::new(tables.open()),
                blobs: objects.map(shared),
                blob_bytes_min: self.blob_bytes_min,
            },
        });
        Ok(())
    }

    pub(super) fn rows(&self) -> Result<StoreRows, StartupError> {
        self.rows.clone().ok_or_else(|| StartupError::Copy("what was written is not open".to_owned()))
    }

    /// The data directory for what a database has no place for.
    pub(super) fn files(&self) -> Option<PathBuf> {
        match &self.kind {
            Kind::Folder { partial } => Some(partial.path().join(DATA)),
            Kind::Tables { files, .. } => files.as_ref().map(|partial| partial.path().join(DATA)),
        }
    }

    /// The logs of new tables.
    pub(super) fn logs(&self) -> Option<LogTable> {
        match &self.kind {
            Kind::Folder { .. } => None,
            Kind::Tables { tables, .. } => Some(tables.logs()),
        }
    }

    /// Gives it its name.
    pub(super) async fn publish(self) -> Result<(), StartupError> {
        drop(self.rows);
        match self.kind {
            Kind::Folder { partial } => {
                let data = partial.path().join(DATA);
                partial.publish_folder(&data)?;
            }
            Kind::Tables { tables, files } => {
                if let Some(partial) = files {
                    let data = partial.path().join(DATA);
                    partial.publish_folder(&data)?;
                }
                tables.publish().await?;
            }
        }
        Ok(())
    }

    /// Removes what was written.
    pub(super) async fn discard(self) {
        drop(self.rows);
        if let Kind::Tables { tables, .. } = self.kind {
            // The next copy removes what is left.
            let _ = tables.discard().await;
        }
    }
}

fn shared(objects: ObjectBlobs) -> Arc<dyn Blobs> {
    Arc::new(objects)
}

async fn folder_rows(
    dir: &Path,
    blob_bytes_min: usize,
    objects: Option<ObjectBlobs>,
) -> Result<StoreRows, StartupError> {
    let path = dir.to_owned();
    let store = parts::blocking(move || EmbeddedStore::open(&path)).await?;
    let blobs = match objects {
        Some(objects) => shared(objects),
        None => Arc::new(parts::open_folder(dir.join("blobs"))?),
    };
    Ok(StoreRows { store: Arc::new(store), blobs: Some(blobs), blob_bytes_min })
}

/// Holds the data directory of a server with a database.
async fn hold(files: &Path) -> Result<HeldDataDir, StartupError> {
    if !files.is_dir() {
        let text = format!("--files names {}, which is no directory", files.display());
        return Err(StartupError::Copy(text));
    }
    let files = files.to_owned();
    parts::blocking(move || HeldDataDir::hold(&files)).await
}

fn cannot_make(path: &Path, cause: &std::io::Error) -> StartupError {
    StartupError::Copy(format!("cannot make {}: {cause}", path.display()))
}
