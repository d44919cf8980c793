//! The embedded store.

mod folder;
mod killed;
mod power_cut;

use longshore_store::EmbeddedStore;
use tempfile::TempDir;

/// A store in a folder of its own; the folder goes after the store.
fn fresh() -> (EmbeddedStore, TempDir) {
    let dir = TempDir::new().unwrap();
    (EmbeddedStore::open(dir.path()).unwrap(), dir)
}

store_conformance!(fresh());
