//! The embedded store.

mod dumped;
mod folder;
mod foreign_bytes;
mod hostile;
mod killed;
mod model;
mod old_folder;
mod power_cut;
mod reclaim;
mod salvage;
mod scrub;
mod segment;
mod stored_archive;
mod stored_attempts;
mod stored_console;
mod stored_marks;
mod stored_secrets;
mod stored_version;
mod torn_log;

use longshore_store::EmbeddedStore;
use tempfile::TempDir;

/// A store in a folder of its own; the folder goes after the store.
fn fresh() -> (EmbeddedStore, TempDir) {
    let dir = TempDir::new().unwrap();
    (EmbeddedStore::open(dir.path()).unwrap(), dir)
}

store_conformance!(fresh());
