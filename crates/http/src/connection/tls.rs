//! TLS for a listener: certificate and key come from files, and are read again when the files change.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use longshore_model::Millis;
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::client::{ResolvesClientCert, WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, CertificateError, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls::Error as RustlsError};

use crate::services::certificate_end::CertificateEnd;

/// Time between two checks of the files for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// A time after the end of every certificate, since 1970: the year 9999 is the last one that a certificate can have.
const FAR_FUTURE: Duration = Duration::from_hours(24 * 365 * 9_000);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error of the read.
        cause: io::Error,
    },
    /// The certificate's file has no certificate in PEM.
    #[error("{} holds no certificate in PEM (`-----BEGIN CERTIFICATE-----`)", path.display())]
    NoCertificate {
        /// The file without a certificate.
        path: PathBuf,
    },
    /// The key's file has no private key in PEM, or one with a password.
    #[error("{} holds no private key in PEM without a password (PKCS#8, PKCS#1 or SEC1)", path.display())]
    NoKey {
        /// The file without a key.
        path: PathBuf,
    },
    /// The certificate and the key do not belong together, or TLS rejects them.
    #[error("the certificate in {} and the key in {} cannot be used together: {cause}", certificate.display(), key.display())]
    Unfit {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The error of the TLS library.
        cause: RustlsError,
    },
    /// The other nodes would refuse the certificate.
    #[error("the other nodes would refuse the certificate in {}: the authorities in `cluster_ca_file` must have signed it, for servers and clients: {cause}", certificate.display())]
    Untrusted {
        /// The certificate's file.
        certificate: PathBuf,
        /// The error of the TLS library.
        cause: RustlsError,
    },
}

/// The TLS configuration of a listener. Cheap to clone; every clone uses the latest certificate.
#[derive(Clone)]
pub struct Tls {
    files: Arc<CertificatePaths>,
    config: Arc<RwLock<TlsConfig>>,
    certificate_end: CertificateEnd,
}

/// What is made from the files.
#[derive(Clone)]
struct TlsConfig {
    server: Arc<ServerConfig>,
    certified: Arc<CertifiedKey>,
}

struct CertificatePaths {
    certificate: PathBuf,
    key: PathBuf,
    /// Checks the certificates of clients; `None`: clients need none.
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

/// The bytes of both files. Those of the key are a secret.
#[derive(PartialEq, Eq)]
struct CertificateBytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads the certificate, with its chain in the same file, and the private key. Must be called inside a tokio
    /// runtime: a task reads the files again when they change.
    ///
    /// # Errors
    ///
    /// Returns [`TlsError`] if a file cannot be read or parsed, or if the two do not belong together.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::open(certificate, key, None)
    }

    /// As [`from_files`](Self::from_files), for the connections of nodes: each side shows a certificate that these authorities signed.
    ///
    /// # Errors
    ///
    /// Those of [`from_files`](Self::from_files), and [`TlsError::Untrusted`] if the authorities have not signed this certificate.
    pub fn of_nodes(
        certificate: &Path,
        key: &Path,
        authorities: Arc<RootCertStore>,
    ) -> Result<Self, TlsError> {
        let clients =
            WebPkiClientVerifier::builder_with_provider(authorities, Arc::new(default_provider())).build();
        let unfit = |cause: VerifierBuilderError| TlsError::Untrusted {
            certificate: certificate.to_owned(),
            cause: RustlsError::General(cause.to_string()),
        };
        Self::open(certificate, key, Some(clients.map_err(unfit)?))
    }

    /// The certificate that a client of other nodes shows. Follows replaced files.
    pub fn of_client(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::new(ShownCertificate { config: Arc::clone(&self.config) })
    }

    fn open(
        certificate: &Path,
        key: &Path,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, TlsError> {
        let files = CertificatePaths { certificate: certificate.to_owned(), key: key.to_owned(), clients };
        let content = files.read()?;
        let config = files.config(&content)?;
        let certificate_end = CertificateEnd::default();
        certificate_end.set(content.end());
        let tls = Self { files: Arc::new(files), config: Arc::new(RwLock::new(config)), certificate_end };
        tokio::spawn(follow(tls.clone(), content));
        Ok(tls)
    }

    /// When the certificate in use ends. Follows replaced files.
    pub fn certificate_end(&self) -> CertificateEnd {
        self.certificate_end.clone()
    }

    /// Whether the certificate's file is for this host name or IP address. A file that cannot be read is for none.
    pub fn is_for(&self, host: &str) -> bool {
        let Ok(host) = ServerName::try_from(host) else { return false };
        let Ok(leaf) = CertificateDer::from_pem_file(&self.files.certificate) else { return false };
        ParsedCertificate::try_from(&leaf).is_ok_and(|leaf| verify_server_name(&leaf, &host).is_ok())
    }

    /// Does the TLS handshake with a client, within 10 s.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner).server);
        tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await?
    }
}

impl fmt::Debug for Tls {
    /// Names the certificate's file, and nothing of the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("certificate", &self.files.certificate).finish_non_exhaustive()
    }
}

/// The latest certificate of a node, as it shows it to others.
struct ShownCertificate {
    config: Arc<RwLock<TlsConfig>>,
}

impl ResolvesClientCert for ShownCertificate {
    fn resolve(&self, _authorities: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner).certified))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for ShownCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ShownCertificate").finish_non_exhaustive()
    }
}

/// Applies changed files. Open connections keep the certificate that they began with.
async fn follow(tls: Tls, mut seen: CertificateBytes) {
    // Ends when no listener uses the configuration.
    while Arc::strong_count(&tls.config) > 1 {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let files = Arc::clone(&tls.files);
        let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await else { continue };
        let content = match read {
            Ok(content) if content == seen => continue,
            Ok(content) => content,
            Err(error) => {
                // Usually the files are just being replaced.
                tracing::warn!(%error, "certificate files unreadable, keeping the certificate");
                continue;
            }
        };
        match tls.files.config(&content) {
            Ok(config) => {
                *tls.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                tls.certificate_end.set(content.end());
                tracing::info!(path = %tls.files.certificate.display(), "certificate replaced");
            }
            Err(error) => {
                tracing::error!(%error, "certificate unusable, keeping the previous one");
            }
        }
        seen = content;
    }
}

impl CertificateBytes {
    /// When the first certificate ends; `None` if that is unknown.
    fn end(&self) -> Option<Millis> {
        let leaf = CertificateDer::pem_slice_iter(&self.certificate).next()?.ok()?;
        end_of(&leaf).map(|at| Millis(at.as_secs() * 1_000))
    }
}

/// When a certificate ends. Verification in the far future says it: expiry is checked before trust.
fn end_of(leaf: &CertificateDer<'_>) -> Option<UnixTime> {
    let mut roots = RootCertStore::empty();
    roots.add(leaf.clone().into_owned()).ok()?;
    let provider = Arc::new(default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    let name = ServerName::try_from("localhost").ok()?;
    let far = UnixTime::since_unix_epoch(FAR_FUTURE);
    match verifier.verify_server_cert(leaf, &[], &name, &[], far) {
        Err(RustlsError::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(not_after)
        }
        _ => None,
    }
}

impl CertificatePaths {
    fn read(&self) -> Result<CertificateBytes, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|cause| TlsError::Unreadable { path: path.to_owned(), cause })
        };
        Ok(CertificateBytes { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn config(&self, content: &CertificateBytes) -> Result<TlsConfig, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate { path: self.certificate.clone() })?;
        let key = PrivateKeyDer::from_pem_slice(&content.key)
            .map_err(|_| TlsError::NoKey { path: self.key.clone() })?;
        let unfit =
            |cause| TlsError::Unfit { certificate: self.certificate.clone(), key: self.key.clone(), cause };
        if let (Some(nodes), [leaf, others @ ..]) = (&self.clients, &*chain) {
            let checked = nodes.verify_client_cert(leaf, others, UnixTime::now());
            checked.map_err(|cause| TlsError::Untrusted { certificate: self.certificate.clone(), cause })?;
        }
        let provider = Arc::new(default_provider());
        let certified = Arc::new(CertifiedKey::from_der(chain, key, &provider).map_err(unfit)?);
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::DEFAULT_VERSIONS)
            .map_err(unfit)?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),
        };
        let mut server = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&certified))));
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConfig { server: Arc::new(server), certified })
    }
}
