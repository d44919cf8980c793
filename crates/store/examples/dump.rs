//! Prints the log of a data directory as lines of JSON: `cargo run -p longshore-store --example dump -- DIR`.
//! Also while a server works on it.

use std::io::{BufWriter, stdout};
use std::path::PathBuf;

use longshore_store::StoreError;

fn main() -> Result<(), StoreError> {
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = dir.ok_or_else(|| StoreError::Unusable("usage: dump DIR".into()))?;
    longshore_store::dump(&dir, &mut BufWriter::new(stdout().lock()))
}
