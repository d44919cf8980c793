//! Traces to a collector with a certificate of a private authority.

use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use crate::authority::{Authority, Valid};
use crate::program::{DEADLINE, Server};
use crate::webhooks::{an_endpoint, id, receiver_with, request};

/// Starts a server with this collector, and ends a job, which is a trace.
fn server_with_a_trace(name: &str, collector: &str, variables: &[(&str, &str)], dir: &Path) -> Server {
    let server =
        Server::start(name, &[], &[&[("LONGSHORE_OTLP_ENDPOINT", collector)], variables].concat(), dir);
    let endpoint = an_endpoint(&server);
    let job = id(&request(&server, "POST", &format!("/v2/{endpoint}/run"), r#"{"input": {}}"#));
    request(&server, "POST", &format!("/v2/{endpoint}/cancel/{job}"), "");
    server
}

#[test]
fn a_collector_of_a_private_authority_gets_traces_if_a_file_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (called, calls) = mpsc::channel();
    let pair = Authority::new(dir).issue("good", "127.0.0.1", Valid::Now);
    let port = receiver_with(pair, move |head| called.send(head.to_vec()).unwrap());
    let collector = format!("https://127.0.0.1:{port}");
    for (name, variable) in [("setting", "LONGSHORE_WEBHOOK_CA_FILE"), ("environment", "SSL_CERT_FILE")] {
        let _server = server_with_a_trace(name, &collector, &[(variable, "ca.pem")], dir);
        let head = calls.recv_timeout(DEADLINE).unwrap();
        assert!(
            head.starts_with(b"POST /v1/traces HTTP/1.1\r\n"),
            "{name}: {}",
            String::from_utf8_lossy(&head)
        );
    }

    let _server = server_with_a_trace("without", &collector, &[], dir);
    let began = Instant::now();
    while !std::fs::read_to_string(dir.join("without.log"))
        .unwrap()
        .contains("not signed by a known authority")
    {
        assert!(began.elapsed() < DEADLINE, "no line says why the collector gets no spans");
        std::thread::yield_now();
    }
    assert!(calls.try_recv().is_err(), "the collector got spans over an untrusted connection");
}
