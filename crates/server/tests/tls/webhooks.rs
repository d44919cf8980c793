//! Webhooks to receivers with certificates of a private authority.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::{Authority, Valid};
use crate::program::{DEADLINE, KEY, Server, longshore};

/// Starts a receiver that answers each call with 200. Returns its port. Its thread ends with the test's process.
fn receiver(pair: [PathBuf; 2]) -> u16 {
    receiver_with(pair, |_| ())
}

/// Starts a receiver like [`receiver`], which passes the beginning of each request to `called`.
pub fn receiver_with([certificate, key]: [PathBuf; 2], called: impl Fn(&[u8]) + Send + 'static) -> u16 {
    let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            // The handshake fails if the caller does not trust the certificate.
            let mut head = [0; 8_192];
            if let Ok(bytes) = stream.read(&mut head) {
                called(&head[..bytes]);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer).and_then(|()| stream.flush());
            }
        }
    });
    port
}

/// Sends a request to the server and returns the body of the response.
pub fn request(server: &Server, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{method} {path}: {response}");
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Returns the first `id` in a JSON text.
pub fn id(json: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    json["id"].as_str().unwrap().to_owned()
}

/// Ends a job with this webhook, and returns the settled delivery.
fn deliver(server: &Server, endpoint: &str, url: &str) -> serde_json::Value {
    let body = format!(r#"{{"input": {{}}, "webhook": "{url}"}}"#);
    let job = id(&request(server, "POST", &format!("/v2/{endpoint}/run"), &body));
    request(server, "POST", &format!("/v2/{endpoint}/cancel/{job}"), "");
    let began = Instant::now();
    loop {
        let log = request(server, "GET", &format!("/v2/{endpoint}/webhooks?job={job}"), "");
        let log: serde_json::Value = serde_json::from_str(&log).unwrap();
        if let Some(call) = log["webhooks"].get(0).filter(|call| call["state"] != "PENDING") {
            return call.clone();
        }
        assert!(began.elapsed() < DEADLINE, "the call to {url} is not settled: {log}");
        std::thread::yield_now();
    }
}

/// Creates an endpoint with external workers, of which there are none.
pub fn an_endpoint(server: &Server) -> String {
    let template = id(&request(server, "POST", "/v1/templates", r#"{"name": "t", "imageName": "i"}"#));
    let body = format!(r#"{{"name": "e", "provider": "external", "templateId": "{template}"}}"#);
    id(&request(server, "POST", "/v1/endpoints", &body))
}

/// Starts a server that makes one attempt of each call, with these variables.
fn serve(name: &str, variables: &[(&str, &str)], dir: &Path) -> Server {
    let own = [("LONGSHORE_WEBHOOK_ATTEMPTS_MAX", "1"), ("LONGSHORE_RATE_LIMITS", "off")];
    Server::start(name, &["--allow-private-webhooks"], &[&own, variables].concat(), dir)
}

#[test]
fn receivers_of_a_private_authority_are_called_if_a_file_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let authority = Authority::new(dir);
    let port = receiver(authority.issue("good", "127.0.0.1", Valid::Now));
    let url = format!("https://127.0.0.1:{port}/done");
    for (name, variable) in [("setting", "LONGSHORE_WEBHOOK_CA_FILE"), ("environment", "SSL_CERT_FILE")] {
        let server = serve(name, &[(variable, "ca.pem")], dir);
        let call = deliver(&server, &an_endpoint(&server), &url);
        assert_eq!(call["state"], "DELIVERED", "{name}: {call}");
    }
    let server = serve("without", &[], dir);
    let call = deliver(&server, &an_endpoint(&server), &url);
    let error = "the receiver's certificate is not signed by a known authority";
    assert_eq!((&call["state"], &call["attempts"][0]["error"]), (&"FAILED".into(), &error.into()), "{call}");
}

#[test]
fn the_log_of_deliveries_says_why_a_certificate_was_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let authority = Authority::new(dir);
    let server = serve("server", &[("LONGSHORE_WEBHOOK_CA_FILE", "ca.pem")], dir);
    let endpoint = an_endpoint(&server);
    for (file, host, valid, error) in [
        (
            "other",
            "gpu.example",
            Valid::Now,
            "the receiver's certificate is not for 127.0.0.1, but for gpu.example",
        ),
        ("old", "127.0.0.1", Valid::Until2020, "the receiver's certificate expired at 2020-02-01T00:00:00Z"),
        (
            "new",
            "127.0.0.1",
            Valid::From2090,
            "the receiver's certificate is not valid before 2090-02-01T00:00:00Z",
        ),
    ] {
        let port = receiver(authority.issue(file, host, valid));
        let call = deliver(&server, &endpoint, &format!("https://127.0.0.1:{port}/"));
        assert_eq!(
            (&call["state"], &call["attempts"][0]["error"]),
            (&"FAILED".into(), &error.into()),
            "{call}"
        );
    }
    let call = deliver(&server, &endpoint, &format!("https://127.0.0.1:{}/", server.port));
    assert_eq!(call["attempts"][0]["error"], "the receiver does not speak TLS here", "{call}");
}

#[test]
fn an_unusable_file_keeps_the_server_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty.pem"), "").unwrap();
    for (file, reason) in
        [("none.pem", "none.pem: No such file"), ("empty.pem", "empty.pem has no certificate")]
    {
        let mut command = longshore(&["serve", "--listen", "127.0.0.1:0"], dir.path());
        let output = command.env("LONGSHORE_WEBHOOK_CA_FILE", file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("longshore: cannot check the certificates of webhook receivers"), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}
