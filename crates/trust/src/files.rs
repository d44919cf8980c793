//! Files and directories with certificate authorities.

use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls_native_certs::load_certs_from_paths;

/// Why the certificate authorities that a user or an operator named cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file or the directory cannot be read.
    #[error("cannot read certificate authorities from {}: {cause}", path.display())]
    Unreadable {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the read.
        cause: io::Error,
    },
    /// The file has no certificate in PEM.
    #[error("{} has no certificate in PEM (`-----BEGIN CERTIFICATE-----`)", path.display())]
    NoCertificate {
        /// The file without a certificate.
        path: PathBuf,
    },
    /// The file has a damaged certificate, or one that cannot be an authority's.
    #[error("{} has an invalid certificate: {cause}", path.display())]
    Invalid {
        /// The file with the certificate.
        path: PathBuf,
        /// The error of the TLS library.
        cause: String,
    },
}

/// Adds every certificate of a PEM file.
///
/// # Errors
///
/// Each variant of [`TrustError`]: the file was named on purpose, so nothing in it is skipped.
pub(crate) fn add_file(store: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let unreadable = |cause| TrustError::Unreadable { path: path.to_owned(), cause };
    let invalid = |cause| TrustError::Invalid { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let mut is_empty = true;
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error: pem::Error| invalid(error.to_string()))?;
        store.add(certificate).map_err(|error| invalid(error.to_string()))?;
        is_empty = false;
    }
    if is_empty { Err(TrustError::NoCertificate { path: path.to_owned() }) } else { Ok(()) }
}

/// Adds the certificates of all files in a directory. Files without a usable certificate are skipped, since such
/// directories also contain other files.
///
/// # Errors
///
/// [`TrustError::Unreadable`] if the directory cannot be read.
pub(crate) fn add_dir(store: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    std::fs::read_dir(path).map_err(|cause| TrustError::Unreadable { path: path.to_owned(), cause })?;
    store.add_parsable_certificates(load_certs_from_paths(None, Some(path)).certs);
    Ok(())
}
