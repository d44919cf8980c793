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
    /// The file has damaged PEM, or no certificate that can be an authority's.
    #[error("{} has an invalid certificate: {cause}", path.display())]
    Invalid {
        /// The file with the certificate.
        path: PathBuf,
        /// The error of the TLS library.
        cause: String,
    },
}

/// Adds the certificates of a PEM file. Certificates that cannot be an authority's are skipped if another one can:
/// bundles of systems contain very old ones.
///
/// # Errors
///
/// Each variant of [`TrustError`].
pub(crate) fn add_file(store: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let unreadable = |cause| TrustError::Unreadable { path: path.to_owned(), cause };
    let invalid = |cause| TrustError::Invalid { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let mut result = Err(TrustError::NoCertificate { path: path.to_owned() });
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error: pem::Error| invalid(error.to_string()))?;
        match store.add(certificate) {
            Ok(()) => result = Ok(()),
            Err(error) if result.is_err() => result = Err(invalid(error.to_string())),
            Err(_) => {}
        }
    }
    result
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
