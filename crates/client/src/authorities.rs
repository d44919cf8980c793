//! The certificate authorities that a client trusts, read when the first `https://` address needs them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use longshore_trust::Roots;

use crate::ClientError;

/// The authorities of a client. Clones share what was read.
#[derive(Clone)]
pub(crate) struct Authorities {
    ca_file: Option<PathBuf>,
    roots: Arc<OnceLock<Roots>>,
}

impl Authorities {
    /// Returns the system's authorities, and those in `ca_file`. Reads no file yet.
    pub(crate) fn new(ca_file: Option<&Path>) -> Self {
        Self { ca_file: ca_file.map(Path::to_owned), roots: Arc::default() }
    }

    /// Returns the authorities for a server at this address: none for `http://`, which reads no file.
    pub(crate) fn for_url(&self, url: &str) -> Result<Roots, ClientError> {
        if !url.starts_with("https://") {
            return Ok(Roots::none());
        }
        if let Some(roots) = self.roots.get() {
            return Ok(roots.clone());
        }
        let roots =
            Roots::load(self.ca_file.as_deref()).map_err(|error| ClientError::Unusable(error.to_string()))?;
        Ok(self.roots.get_or_init(|| roots).clone())
    }
}
