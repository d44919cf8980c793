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
use super::dial::{Dialer, Forbidden, Resolve, SystemResolver};
use super::proxy::Proxies;

/// How much of an answer is kept.
pub(super) const ANSWER_BYTES_KEPT: usize = 1 << 10;
/// How much of an answer is read, so that its connection can serve the next call.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How long that may take.
const ANSWER_REST_MAX: Duration = Duration::from_secs(1);

/// What a receiver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostAnswer {
    /// Its status.
    pub status: StatusCode,
    /// The beginning of what else it said.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The call may not be made: nobody was called.
    Forbidden(String),
    /// Nobody answered.
    Silent(String),
}

/// What [`Post::post`] returns.
pub type PostFuture<'a> = Pin<Box<dyn Future<Output = Result<PostAnswer, PostError>> + Send + 'a>>;

/// Sends webhook calls to their receivers.
pub trait Post: Send + Sync + 'static {
    /// Sends one call. The chore ends it when it takes too long.
    fn post(&self, call: Request<Bytes>) -> PostFuture<'_>;
}

/// Sends them over HTTP, to addresses that may be called.
pub struct HttpPost {
    client: Client<HttpsConnector<Dialer>, Full<Bytes>>,
    proxies: Arc<Proxies>,
}

impl HttpPost {
    /// A client of its own, with connections that are kept for the next call to the same host.
    pub fn new(settings: &WebhookSettings) -> Self {
        Self::with(settings, Proxies::of(settings), Arc::new(SystemResolver))
    }

    /// The same; names are looked up by `resolver`.
    pub(super) fn with(settings: &WebhookSettings, proxies: Proxies, resolver: Arc<dyn Resolve>) -> Self {
        let proxies = Arc::new(proxies);
        let dialer = Dialer {
            allow_private: settings.allow_private,
            connect_timeout: settings.connect_timeout,
            proxies: Arc::clone(&proxies),
            resolver,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(dialer);
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

impl Post for HttpPost {
    fn post(&self, mut call: Request<Bytes>) -> PostFuture<'_> {
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
            Ok(PostAnswer { status, body: beginning.into() })
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
fn why(error: &(dyn Error + 'static)) -> PostError {
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
    if is_forbidden { PostError::Forbidden(text) } else { PostError::Silent(text) }
}
