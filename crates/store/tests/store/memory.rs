//! The memory store.

use longshore_store::MemoryStore;

store_conformance!((MemoryStore::new(), ()));
