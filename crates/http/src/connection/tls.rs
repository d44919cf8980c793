//! TLS on the listening side: a certificate from files, and from newer files when they change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls::Error as RustlsError};

/// How often it is looked whether the files have changed.
const LOOK: Duration = Duration::from_secs(2);
/// How long a client may take to agree on a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One of them cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// There is no certificate in the one, or something else.
    #[error("{} holds no certificate in PEM (`-----BEGIN CERTIFICATE-----`)", path.display())]
    NoCertificate {
        /// Which one.
        path: PathBuf,
    },
    /// There is no key in the other, or one with a password.
    #[error("{} holds no private key in PEM without a password (PKCS#8, PKCS#1 or SEC1)", path.display())]
    NoKey {
        /// Which one.
        path: PathBuf,
    },
    /// They do not go together.
    #[error("the certificate in {} and the key in {} cannot be used together: {cause}", certificate.display(), key.display())]
    Unfit {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        cause: RustlsError,
    },
}

/// What connections are encrypted with. Cheap to clone; every clone has the latest certificate.
#[derive(Clone)]
pub struct Tls {
    files: Arc<CertificatePaths>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

struct CertificatePaths {
    certificate: PathBuf,
    key: PathBuf,
}

/// The bytes of both files. The key's are a secret.
#[derive(PartialEq, Eq)]
struct CertificateBytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads the certificate (and those that vouch for it, in the same file) and its key. Must be called inside a
    /// tokio runtime: a task reads them again when they change.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = CertificatePaths { certificate: certificate.to_owned(), key: key.to_owned() };
        let content = files.read()?;
        let config = files.config(&content)?;
        let tls = Self { files: Arc::new(files), config: Arc::new(RwLock::new(config)) };
        tokio::spawn(follow(tls.clone(), content));
        Ok(tls)
    }

    /// Agrees with a client on an encrypted connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await?
    }
}

/// Takes over what the files say whenever that changes and makes sense. Connections keep what they began with.
async fn follow(tls: Tls, mut seen: CertificateBytes) {
    // Ends when nobody accepts connections any more.
    while Arc::strong_count(&tls.config) > 1 {
        tokio::time::sleep(LOOK).await;
        let files = Arc::clone(&tls.files);
        let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await else { continue };
        let content = match read {
            Ok(content) if content == seen => continue,
            Ok(content) => content,
            Err(error) => {
                // In the middle of being replaced, mostly.
                tracing::warn!(%error, "the certificate's files cannot be read, going on with the one before");
                continue;
            }
        };
        match tls.files.config(&content) {
            Ok(config) => {
                *tls.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                tracing::info!(path = %tls.files.certificate.display(), "new connections get the new certificate");
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate is no good, going on with the one before");
            }
        }
        seen = content;
    }
}

impl CertificatePaths {
    fn read(&self) -> Result<CertificateBytes, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|cause| TlsError::Unreadable { path: path.to_owned(), cause })
        };
        Ok(CertificateBytes { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn config(&self, content: &CertificateBytes) -> Result<Arc<ServerConfig>, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate { path: self.certificate.clone() })?;
        let key = PrivateKeyDer::from_pem_slice(&content.key)
            .map_err(|_| TlsError::NoKey { path: self.key.clone() })?;
        let unfit =
            |cause| TlsError::Unfit { certificate: self.certificate.clone(), key: self.key.clone(), cause };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
