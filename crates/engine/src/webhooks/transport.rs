//! Sends calls over HTTP.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::PROXY_AUTHORIZATION;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use longshore_trust::{Roots, TlsProblem};

use super::WebhookSettings;
use super::connector::{Connector, Forbidden, Resolve, SystemResolver};
use super::proxy::Proxies;

/// Bytes of a response's body that are kept for the log of deliveries.
const RESPONSE_BYTES_KEPT: usize = 1 << 10;
/// Bytes of a response's body that are read, so that its connection can serve the next call.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// Longest time to read a response's body; then its connection is closed.
const RESPONSE_BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// The response of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportResponse {
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The beginning of the response's body, at most 1 KiB.
    pub body: Bytes,
}

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The settings forbid every address of the receiver; no connection was opened. A retry cannot help.
    Forbidden(String),
    /// The receiver did not respond: no connection, or the connection broke. The text names the cause.
    NoResponse(String),
}

/// The future of [`WebhookTransport::post`].
pub type TransportFuture<'a> =
    Pin<Box<dyn Future<Output = Result<TransportResponse, TransportError>> + Send + 'a>>;

/// Sends webhook calls to their receivers. A trait, so that tests and the simulator replace the network.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Sends one call and returns the response. The caller drops the future after [`WebhookSettings::timeout`].
    ///
    /// # Errors
    ///
    /// Each variant of [`TransportError`].
    fn post(&self, call: Request<Bytes>) -> TransportFuture<'_>;
}

/// Sends calls over HTTP/1.1, to permitted addresses. Follows no redirect.
pub struct HttpTransport {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    proxies: Arc<Proxies>,
}

impl HttpTransport {
    /// Returns a client with a connection pool of its own that trusts the bundled authorities. An idle connection stays
    /// open for 5 s.
    pub fn new(settings: &WebhookSettings) -> Self {
        Self::with_roots(settings, &Roots::bundled())
    }

    /// Returns a client with a connection pool of its own that trusts the authorities in `roots`.
    pub fn with_roots(settings: &WebhookSettings, roots: &Roots) -> Self {
        Self::with(settings, roots, Proxies::of(settings), Arc::new(SystemResolver))
    }

    /// Returns a client that chooses proxies by `proxies` and resolves names by `resolver`.
    pub(super) fn with(
        settings: &WebhookSettings,
        roots: &Roots,
        proxies: Proxies,
        resolver: Arc<dyn Resolve>,
    ) -> Self {
        let proxies = Arc::new(proxies);
        let connector = Connector {
            allow_private: settings.allow_private,
            connect_timeout: settings.connect_timeout,
            proxies: Arc::clone(&proxies),
            resolver,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(roots.client_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_max_idle_per_host(settings.calls_per_host_max)
            // Header names are case-insensitive, but simple receivers expect `Content-Type` in title case.
            .http1_title_case_headers(true)
            .build(connector);
        Self { client, proxies }
    }
}

impl WebhookTransport for HttpTransport {
    fn post(&self, mut call: Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            if let Some(credentials) = self.proxies.credentials_in_head(call.uri()) {
                call.headers_mut().insert(PROXY_AUTHORIZATION, credentials);
            }
            let response =
                self.client.request(call.map(Full::new)).await.map_err(|error| transport_error(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX);
            let mut beginning = Vec::new();
            // The status decides: a body that is late or cut off changes nothing.
            let _read = tokio::time::timeout(RESPONSE_BODY_TIMEOUT, read(body, &mut beginning)).await;
            Ok(TransportResponse { status, body: beginning.into() })
        })
    }
}

/// Reads a body to its end, and appends its first [`RESPONSE_BYTES_KEPT`] bytes to `kept`.
async fn read(mut body: Limited<hyper::body::Incoming>, kept: &mut Vec<u8>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let room = RESPONSE_BYTES_KEPT - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
    }
}

/// Converts an error of the client. The text names the problem with TLS, or else contains every cause, since the
/// client's own text names none.
fn transport_error(error: &(dyn Error + 'static)) -> TransportError {
    if let Some(problem) = TlsProblem::find(error) {
        return TransportError::NoResponse(problem.about("the receiver"));
    }
    let mut text = error.to_string();
    let mut is_forbidden = false;
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.ends_with(&inner) {
            text = format!("{text}: {inner}");
        }
        let io = error.downcast_ref::<io::Error>();
        let forbidden = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<Forbidden>());
        is_forbidden |= forbidden.is_some();
        cause = error.source();
    }
    if is_forbidden { TransportError::Forbidden(text) } else { TransportError::NoResponse(text) }
}
