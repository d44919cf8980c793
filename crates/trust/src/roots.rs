//! The set of trusted authorities, and the TLS configuration of a client that trusts it.

use std::env::split_paths;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::load_native_certs;

use crate::files::{TrustError, add_dir, add_file};

/// Names a PEM file with authorities, for many TLS programs.
const FILE_VARIABLE: &str = "SSL_CERT_FILE";
/// Names directories with authorities, separated by colons.
const DIR_VARIABLE: &str = "SSL_CERT_DIR";

/// Trusted certificate authorities. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Roots {
    store: Arc<RootCertStore>,
}

impl Roots {
    /// Returns the authorities of the system, of the files that the environment names, and of `ca_file`. Reads about
    /// 300 KB, so a program calls it once.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if `ca_file`, `SSL_CERT_FILE` or `SSL_CERT_DIR` cannot be read, or if one of the files has no
    /// valid certificate. The system's own files cause no error.
    pub fn load(ca_file: Option<&Path>) -> Result<Self, TrustError> {
        Self::load_with(ca_file, |name| std::env::var_os(name))
    }

    /// Returns the authorities of `ca_file` alone.
    ///
    /// # Errors
    ///
    /// [`TrustError`] if the file cannot be read, or has no valid certificate.
    pub fn only(ca_file: &Path) -> Result<Self, TrustError> {
        let mut store = RootCertStore::empty();
        add_file(&mut store, ca_file)?;
        Ok(Self { store: Arc::new(store) })
    }

    /// Returns the authorities that Mozilla trusts, as this version of the program contains them. Reads no file.
    pub fn bundled() -> Self {
        let mut store = RootCertStore::empty();
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        Self { store: Arc::new(store) }
    }

    /// Returns the PEM file with the authorities of the system, or the one that `SSL_CERT_FILE` names, for programs that
    /// read one file only. `None` if there is no such file.
    pub fn system_pem() -> Option<Vec<u8>> {
        std::fs::read(openssl_probe::probe().cert_file?).ok()
    }

    /// Returns no authorities, for a client that uses no TLS: every certificate is then refused. Reads no file.
    pub fn none() -> Self {
        Self { store: Arc::new(RootCertStore::empty()) }
    }

    /// Returns the configuration of TLS clients that trust these authorities alone and have no certificate themselves.
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::builder().with_root_certificates(Arc::clone(&self.store)).with_no_client_auth()
    }

    /// Returns the authorities, for a server that checks the certificates of its clients.
    pub fn store(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.store)
    }

    fn load_with(
        ca_file: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, TrustError> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let (file, dirs) = (variable(FILE_VARIABLE), variable(DIR_VARIABLE));
        let mut store = system(file.is_some() || dirs.is_some());
        if let Some(file) = file {
            add_file(&mut store, Path::new(&file))?;
        }
        for dir in dirs.iter().flat_map(split_paths).filter(|dir| !dir.as_os_str().is_empty()) {
            add_dir(&mut store, &dir)?;
        }
        if let Some(ca_file) = ca_file {
            add_file(&mut store, ca_file)?;
        }
        Ok(Self { store: Arc::new(store) })
    }
}

/// Returns the authorities of the system, or the bundled ones if the system has none.
fn system(is_environment_set: bool) -> RootCertStore {
    let mut store = RootCertStore::empty();
    if is_environment_set {
        // `load_native_certs` would read only what the environment names.
        for dir in openssl_probe::candidate_cert_dirs() {
            // An unreadable directory is the same as a missing one.
            let _ = add_dir(&mut store, dir);
        }
    } else {
        store.add_parsable_certificates(load_native_certs().certs);
    }
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    store
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    /// Returns an authority's certificate in PEM.
    fn authority() -> String {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    /// Returns the number of authorities with this file and these variables.
    fn count(ca_file: Option<&Path>, variables: &[(&str, &Path)]) -> Result<usize, TrustError> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, path)| path.into());
        Roots::load_with(ca_file, find).map(|roots| roots.store.len())
    }

    #[test]
    fn each_named_file_adds_to_the_authorities_of_the_system() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, three] = ["one.pem", "hashed/two.pem", "three.pem"].map(|name| dir.path().join(name));
        let hashed = dir.path().join("hashed");
        fs::create_dir(&hashed).unwrap();
        let unusable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        fs::write(&one, authority() + unusable + &authority()).unwrap();
        fs::write(&two, authority()).unwrap();
        fs::write(hashed.join("README"), "no certificate").unwrap();
        fs::write(&three, authority()).unwrap();
        // Set to an empty directory, so that the system's authorities are read in the same way.
        let empty = dir.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let system = count(None, &[(DIR_VARIABLE, &empty)]).unwrap();
        assert!(system > 0);
        assert_eq!(count(None, &[(FILE_VARIABLE, &one)]).unwrap(), system + 2);
        assert_eq!(count(None, &[(DIR_VARIABLE, &hashed)]).unwrap(), system + 1);
        let both: &[(&str, &Path)] = &[(FILE_VARIABLE, &one), (DIR_VARIABLE, &hashed)];
        assert_eq!(count(Some(&three), both).unwrap(), system + 4);
        assert!(count(Some(&three), &[(FILE_VARIABLE, Path::new(""))]).is_ok(), "empty is the same as unset");
    }

    #[test]
    fn an_unusable_file_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let [missing, empty, damaged] = ["missing", "empty", "damaged"].map(|name| dir.path().join(name));
        fs::write(&empty, "a text\n").unwrap();
        fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        let whole = [
            (&missing, "No such file"),
            (&empty, "has no certificate in PEM"),
            (&damaged, "has an invalid certificate"),
        ];
        for (path, reason) in whole {
            for (ca_file, variables) in
                [(Some(path.as_path()), vec![]), (None, vec![(FILE_VARIABLE, path.as_path())])]
            {
                let text = count(ca_file, &variables).unwrap_err().to_string();
                assert!(text.contains(reason) && text.contains(&path.display().to_string()), "{text}");
            }
        }
        let text = count(None, &[(DIR_VARIABLE, &missing)]).unwrap_err().to_string();
        assert!(text.contains("No such file") && text.contains("missing"), "{text}");
    }
}
