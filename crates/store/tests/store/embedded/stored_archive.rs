//! The archives of data directories that are stored in the repository.

use std::fs::File;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The path of an archive to write, see `tests/fixtures/README.md`.
const WRITE: &str = "LONGSHORE_WRITE_FIXTURE";

/// Writes the data directory as an archive to the file that the variable `LONGSHORE_WRITE_FIXTURE` names. Without the
/// variable it does nothing.
pub(super) fn write_archive(data: &Path) {
    let Some(path) = std::env::var_os(WRITE) else { return };
    let file = File::create_new(path).expect("the archive does not exist yet");
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    archive.mode(tar::HeaderMode::Deterministic);
    archive.append_dir_all("data", data).expect("the data directory can be read");
    archive.into_inner().and_then(GzEncoder::finish).expect("the archive can be written");
}
