//! What is in the log of a data folder, as lines of JSON: `cargo run -p longshore-store --example dump -- FOLDER`.
//! Also while a server works on it.

use std::io::{BufWriter, stdout};
use std::path::PathBuf;

use longshore_store::StoreError;

fn main() -> Result<(), StoreError> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| StoreError::Unusable("usage: dump FOLDER".into()))?;
    longshore_store::dump(&folder, &mut BufWriter::new(stdout().lock()))
}
