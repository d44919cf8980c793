//! Sends the calls.

use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::WebhookSettings;
use super::dial::Dialer;

/// How much of an answer is read, so that its connection can serve the next call.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How long that may take.
const ANSWER_REST_MAX: Duration = Duration::from_secs(1);

/// What [`Post::post`] returns: the receiver's status, or why there is none.
pub type PostFuture<'a> = Pin<Box<dyn Future<Output = Result<StatusCode, String>> + Send + 'a>>;

/// Sends webhook calls to their receivers.
pub trait Post: Send + Sync + 'static {
    /// Sends one call. The chore ends it when it takes too long.
    fn post(&self, call: Request<Bytes>) -> PostFuture<'_>;
}

/// Sends them over HTTP, to addresses that may be called.
pub struct HttpPost {
    client: Client<HttpsConnector<Dialer>, Full<Bytes>>,
}

impl HttpPost {
    /// A client of its own, with connections that are kept for the next call to the same host.
    pub fn new(settings: &WebhookSettings) -> Self {
        let dialer = Dialer { allow_private: settings.allow_private };
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
        Self { client }
    }
}

impl Post for HttpPost {
    fn post(&self, call: Request<Bytes>) -> PostFuture<'_> {
        Box::pin(async move {
            let response = self.client.request(call.map(Full::new)).await.map_err(|error| chain(&error))?;
            let status = response.status();
            // What it says beside the status is of no interest, and whether it ends well neither.
            let rest = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
            let _ = tokio::time::timeout(ANSWER_REST_MAX, rest).await;
            Ok(status)
        })
    }
}

/// An error with its causes: the outermost of the client's says nothing.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.ends_with(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}
