//! Sends the calls.

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

use super::WebhookSettings;
use super::connector::{Connector, Forbidden, Resolve, SystemResolver};
use super::proxy::Proxies;

/// How much of an answer is kept.
pub(super) const ANSWER_BYTES_KEPT: usize = 1 << 10;
/// How much of an answer is read, so that its connection can serve the next call.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How long that may take.
const ANSWER_REST_MAX: Duration = Duration::from_secs(1);

/// What a receiver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportResponse {
    /// Its status.
    pub status: StatusCode,
    /// The beginning of what else it said.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The call may not be made: nobody was called.
    Forbidden(String),
    /// Nobody answered.
    NoResponse(String),
}

/// What [`WebhookTransport::post`] returns.
pub type TransportFuture<'a> =
    Pin<Box<dyn Future<Output = Result<TransportResponse, TransportError>> + Send + 'a>>;

/// Sends webhook calls to their receivers.
pub trait WebhookTransport: Send + Sync + 'static {
    /// Sends one call. The chore ends it when it takes too long.
    fn post(&self, call: Request<Bytes>) -> TransportFuture<'_>;
}

/// Sends them over HTTP, to addresses that may be called.
pub struct HttpTransport {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    proxies: Arc<Proxies>,
}

impl HttpTransport {
    /// A client of its own, with connections that are kept for the next call to the same host.
    pub fn new(settings: &WebhookSettings) -> Self {
        Self::with(settings, Proxies::of(settings), Arc::new(SystemResolver))
    }

    /// The same; names are looked up by `resolver`.
    pub(super) fn with(settings: &WebhookSettings, proxies: Proxies, resolver: Arc<dyn Resolve>) -> Self {
        let proxies = Arc::new(proxies);
        let connector = Connector {
            allow_private: settings.allow_private,
            connect_timeout: settings.connect_timeout,
            proxies: Arc::clone(&proxies),
            resolver,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_max_idle_per_host(settings.calls_per_host_max)
            // Names are the same in any case, but receivers written in an afternoon may not know that.
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
            let response = self.client.request(call.map(Full::new)).await.map_err(|error| why(&error))?;
            let status = response.status();
            let rest = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            let mut beginning = Vec::new();
            // Whether it ends well, or in time, is of no interest.
            let _ended = tokio::time::timeout(ANSWER_REST_MAX, read(rest, &mut beginning)).await;
            Ok(TransportResponse { status, body: beginning.into() })
        })
    }
}

/// Reads a body to its end, and keeps how it began.
async fn read(mut body: Limited<hyper::body::Incoming>, kept: &mut Vec<u8>) {
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let room = ANSWER_BYTES_KEPT - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
    }
}

/// An error with its causes: the outermost of the client's says nothing.
fn why(error: &(dyn Error + 'static)) -> TransportError {
    let mut text = error.to_string();
    let mut is_forbidden = false;
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.ends_with(&inner) {
            text = format!("{text}: {inner}");
        }
        let io = error.downcast_ref::<io::Error>();
        let refusal = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<Forbidden>());
        is_forbidden |= refusal.is_some();
        cause = error.source();
    }
    if is_forbidden { TransportError::Forbidden(text) } else { TransportError::NoResponse(text) }
}
