//! Requests to a server and their responses.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use longshore_trust::TlsProblem;
use serde::de::DeserializeOwned;

use crate::ClientError;
use crate::authorities::Authorities;
use crate::upload_body::UploadBody;

/// How long a call may take in addition to the wait that it asks for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

type Http = HttpClient<HttpsConnector<HttpConnector>, UploadBody>;

/// Sends requests to one server with one key.
#[derive(Clone)]
pub(crate) struct Transport {
    http: Http,
    base_url: String,
    authorization: HeaderValue,
    authorities: Authorities,
}

/// A request that is not sent yet.
pub(crate) struct RequestBuilder<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<Bytes>,
    /// How long the server may hold the request.
    pub(crate) wait: Duration,
    /// A second submit with the same key and body returns the first job.
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) content_type: &'static str,
    /// Counts the bytes of the body that were passed to the connection.
    pub(crate) sent: Option<Arc<AtomicU64>>,
}

impl<'a> RequestBuilder<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        let content_type = "application/json";
        Self {
            method,
            path,
            body: None,
            wait: Duration::ZERO,
            idempotency_key: None,
            content_type,
            sent: None,
        }
    }

    pub(crate) fn get(path: &'a str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &'a str, body: Bytes) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn held(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

/// The error body of every Longshore response.
#[derive(serde::Deserialize)]
struct ErrorBody {
    error: String,
    #[serde(default)]
    code: String,
}

impl Transport {
    pub(crate) fn new(base_url: &str, api_key: &str, authorities: Authorities) -> Result<Self, ClientError> {
        let base_url = base_url.trim_end_matches('/').to_owned();
        if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
            return Err(ClientError::Unusable(format!(
                "`{base_url}` is not a server address: it must start with http:// or https://"
            )));
        }
        let authorization = bearer(api_key)?;
        let http = http_client(&authorities, &base_url)?;
        Ok(Self { http, base_url, authorization, authorities })
    }

    /// Returns a transport with another key and connections of its own, for requests to whole addresses on the server
    /// of `url`.
    pub(crate) fn with_key(&self, api_key: &str, url: &str) -> Result<Self, ClientError> {
        let authorization = bearer(api_key)?;
        let http = http_client(&self.authorities, url)?;
        Ok(Self { http, authorization, ..self.clone() })
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Sends a call and reads the whole response. A status other than 2xx is an error.
    pub(crate) async fn bytes(&self, call: RequestBuilder<'_>) -> Result<Bytes, ClientError> {
        let url = self.url(&call);
        let limit = call.wait + ANSWER_TIMEOUT;
        let request = self.request(call)?;
        let exchange = async {
            let response = self.http.request(request).await.map_err(|error| unreachable(&url, &error))?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| unreachable(&url, &error))?;
            Ok((status, body.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(limit, exchange)
            .await
            .map_err(|_| ClientError::TimedOut { url: url.clone(), seconds: limit.as_secs() })??;
        if status.is_success() { Ok(body) } else { Err(refusal(&url, status, &body)) }
    }

    /// Sends a call and returns the response's body as a stream of pieces.
    pub(crate) async fn pieces(&self, call: RequestBuilder<'_>) -> Result<ResponseStream, ClientError> {
        let url = self.url(&call);
        let limit = call.wait + ANSWER_TIMEOUT;
        let sent = self.http.request(self.request(call)?);
        let response = tokio::time::timeout(limit, sent)
            .await
            .map_err(|_| ClientError::TimedOut { url: url.clone(), seconds: limit.as_secs() })?
            .map_err(|error| unreachable(&url, &error))?;
        let (status, body) = (response.status(), response.into_body());
        if status.is_success() {
            return Ok(ResponseStream { url, body });
        }
        let body = body.collect().await.map_err(|error| unreachable(&url, &error))?;
        Err(refusal(&url, status, &body.to_bytes()))
    }

    fn url(&self, call: &RequestBuilder<'_>) -> String {
        // Workers get whole addresses.
        if call.path.starts_with("http") {
            call.path.to_owned()
        } else {
            format!("{}{}", self.base_url, call.path)
        }
    }

    fn request(&self, call: RequestBuilder<'_>) -> Result<Request<UploadBody>, ClientError> {
        let url = self.url(&call);
        let mut request = Request::builder()
            .method(call.method)
            .uri(&url)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        request
            .body(UploadBody { left: call.body.unwrap_or_default(), sent: call.sent })
            .map_err(|error| ClientError::Unusable(format!("`{url}` is not an address: {error}")))
    }

    /// Sends a call and parses its JSON response.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: RequestBuilder<'_>) -> Result<T, ClientError> {
        let url = self.url(&call);
        let body = self.bytes(call).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ClientError::Unexpected { url, cause: error.to_string() })
    }
}

/// The body of a response, in pieces.
pub(crate) struct ResponseStream {
    url: String,
    body: Incoming,
}

impl ResponseStream {
    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| unreachable(&self.url, &error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// Returns the header with a key.
fn bearer(api_key: &str) -> Result<HeaderValue, ClientError> {
    let mut authorization = HeaderValue::from_str(&format!("Bearer {api_key}"))
        .map_err(|_| ClientError::Unusable("the API key has invalid characters".into()))?;
    authorization.set_sensitive(true);
    Ok(authorization)
}

/// Returns an HTTP client with the authorities for `url`.
fn http_client(authorities: &Authorities, url: &str) -> Result<Http, ClientError> {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(authorities.for_url(url)?.client_config())
        .https_or_http()
        .enable_http1()
        .build();
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
}

/// Returns the error of a request without a complete response.
fn unreachable(url: &str, error: &(dyn Error + 'static)) -> ClientError {
    if let Some(problem) = TlsProblem::find(error) {
        return ClientError::Tls { url: url.to_owned(), problem };
    }
    if url.starts_with("http://") && is_not_http(error) {
        return ClientError::NotHttp { url: url.to_owned() };
    }
    ClientError::Unreachable { url: url.to_owned(), cause: innermost(error) }
}

/// Returns whether an error means that a response was received that is not HTTP.
fn is_not_http(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The error of a response with an error status.
fn refusal(url: &str, status: StatusCode, body: &[u8]) -> ClientError {
    let refusal = serde_json::from_slice::<ErrorBody>(body);
    // Reverse proxies answer plain HTTP on their port for TLS with a text that names HTTPS.
    let names_https = || String::from_utf8_lossy(body).contains("HTTPS");
    if refusal.is_err() && status == StatusCode::BAD_REQUEST && url.starts_with("http://") && names_https() {
        return ClientError::NotHttp { url: url.to_owned() };
    }
    let refusal = refusal.unwrap_or_else(|_| ErrorBody {
        error: status.canonical_reason().unwrap_or("an error without a text").to_lowercase(),
        code: "no_code".into(),
    });
    ClientError::Refused { status: status.as_u16(), code: refusal.code, message: refusal.error }
}

/// The last cause of an error chain: the outer ones only say that a request failed.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use crate::{Client, ClientError};

    /// Starts a server that sends one response to the first connection; returns the server's address, and the request.
    async fn one_answer(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(request).unwrap()
        });
        (url, asked)
    }

    #[tokio::test]
    async fn a_refusal_carries_status_code_and_message() {
        let (url, asked) = one_answer(
            "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 55\r\n\r\n\
             {\"error\":\"no such endpoint\",\"code\":\"unknown_endpoint\"}\n",
        )
        .await;
        let error = Client::new(&url, "ls_key").unwrap().endpoint("hello").await.unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        assert_eq!(error.to_string(), "no such endpoint (HTTP 404, unknown_endpoint)");
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("GET /v1/endpoints/hello HTTP/1.1\r\n"), "{asked}");
        assert!(asked.to_lowercase().contains("authorization: bearer ls_key\r\n"), "{asked}");
    }

    #[tokio::test]
    async fn a_proxy_that_demands_https_is_recognized() {
        let (url, _asked) =
            one_answer("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
                .await;
        let error = Client::new(&url, "k").unwrap().health("hello").await.unwrap_err();
        assert!(matches!(error, ClientError::NotHttp { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn numbers_keep_their_digits() {
        let (url, _asked) = one_answer(
            "HTTP/1.1 200 OK\r\ncontent-length: 93\r\n\r\n\
             {\"id\":\"01901234-5678-7fff-bfff-ffffffffffff\",\"status\":\"COMPLETED\",\"output\":1.0,\"delayTime\":3}",
        )
        .await;
        let id = "01901234-5678-7fff-bfff-ffffffffffff".parse().unwrap();
        let job = Client::new(&url, "k").unwrap().status("hello", id).await.unwrap();
        assert_eq!(job.output.unwrap().get(), "1.0");
    }

    #[tokio::test]
    async fn an_unreachable_address_is_named_in_the_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let error = Client::new(&url, "k").unwrap().health("hello").await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains(&url), "{error}");
        assert!(Client::new("localhost:8080", "k").is_err());
    }
}
