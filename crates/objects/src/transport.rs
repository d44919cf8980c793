//! The HTTP client of object storage: HTTP/1.1, the authorities of this program, limits of time.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use longshore_trust::Roots;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};

/// Longest time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time from a request to the head of its response. A request has at most a part of an upload.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an idle connection stays open. Shorter than providers keep them.
const IDLE: Duration = Duration::from_secs(15);
/// Idle connections to one host.
const IDLE_MAX: usize = 32;

/// Makes the clients of one storage, which share their connections.
#[derive(Clone)]
pub(crate) struct Transport {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
}

impl Transport {
    /// A client that trusts the authorities in `roots`.
    pub(crate) fn with_roots(roots: &Roots) -> Self {
        let mut tcp = TcpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(roots.client_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_MAX)
            .build(connector);
        Self { client }
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait::async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answered = tokio::time::timeout(RESPONSE_TIMEOUT, self.client.request(request)).await;
        let response = answered
            .map_err(|elapsed| HttpError::new(HttpErrorKind::Timeout, elapsed))?
            .map_err(|error| HttpError::new(kind_of_client(&error), error))?;
        Ok(response
            .map(|body| HttpResponseBody::new(body.map_err(|error| HttpError::new(kind_of(&error), error)))))
    }
}

fn kind_of_client(error: &hyper_util::client::legacy::Error) -> HttpErrorKind {
    if error.is_connect() { HttpErrorKind::Connect } else { kind_of(error) }
}

/// Whether a request that failed like this may be sent again.
fn kind_of(error: &(dyn Error + 'static)) -> HttpErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            if error.is_timeout() {
                return HttpErrorKind::Timeout;
            }
            if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
                return HttpErrorKind::Request;
            }
        }
        if error.is::<std::io::Error>() {
            return HttpErrorKind::Interrupted;
        }
        cause = error.source();
    }
    HttpErrorKind::Unknown
}
