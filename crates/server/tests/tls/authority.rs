//! A private certificate authority for tests.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// An authority that no system knows. Its files and those of its certificates are in one directory.
pub struct Authority {
    dir: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// When a certificate is valid, at the time of the test.
#[derive(Clone, Copy)]
pub enum Valid {
    Now,
    Until2020,
    Until2100,
    From2090,
}

impl Authority {
    /// Returns an authority with its certificate in `ca.pem`.
    pub fn new(dir: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.join("ca.pem"), issuer.pem()).unwrap();
        Self { dir: dir.to_owned(), issuer }
    }

    /// Writes a certificate for a host name or an address, `{file}.pem`, and its key, `{file}.key`.
    pub fn issue(&self, file: &str, host: &str, valid: Valid) -> [PathBuf; 2] {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        match valid {
            Valid::Now => {}
            Valid::Until2020 => params.not_after = date_time_ymd(2020, 2, 1),
            Valid::Until2100 => params.not_after = date_time_ymd(2100, 2, 1),
            Valid::From2090 => params.not_before = date_time_ymd(2090, 2, 1),
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths = ["pem", "key"].map(|end| self.dir.join(format!("{file}.{end}")));
        std::fs::write(&paths[0], certificate.pem()).unwrap();
        std::fs::write(&paths[1], key.serialize_pem()).unwrap();
        paths
    }
}
