//! TLS with private certificate authorities: the program as a server, as a client, and as a caller of webhooks and of a
//! collector of traces.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod authority;
mod program;
mod self_signed;
mod traces;
mod webhooks;

use std::path::Path;

use authority::{Authority, Valid};
use program::{Server, client, longshore};

/// Lists the endpoints of the server at `url`.
fn list(url: &str, flags: &[&str], variables: &[(&str, &str)], dir: &Path) -> (Option<i32>, String) {
    client(&[&["endpoint", "list", "--url", url], flags].concat(), variables, dir)
}

/// Starts a server with a certificate for `host`.
fn serve(authority: &Authority, file: &str, host: &str, valid: Valid, dir: &Path) -> Server {
    let [certificate, key] = authority.issue(file, host, valid).map(|path| path.display().to_string());
    Server::start(file, &["--tls-cert", &certificate, "--tls-key", &key], &[], dir)
}

#[test]
fn a_private_authority_is_trusted_once_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let server = serve(&Authority::new(dir), "good", "127.0.0.1", Valid::Now, dir);
    let url = format!("https://127.0.0.1:{}", server.port);

    let (code, said) = list(&url, &[], &[], dir);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("the server's certificate is not signed by a known authority"), "{said}");
    assert!(said.contains("--ca-file, or set SSL_CERT_FILE"), "{said}");

    for (flags, variables) in [
        (&["--ca-file", "ca.pem"][..], &[][..]),
        (&[], &[("LONGSHORE_CA_FILE", "ca.pem")]),
        (&[], &[("SSL_CERT_FILE", "ca.pem")]),
    ] {
        let (code, said) = list(&url, flags, variables, dir);
        assert_eq!(code, Some(0), "{said}");
    }

    // The profile stores the absolute path.
    let (code, said) = client(&["login", "--url", &url, "--ca-file", "ca.pem"], &[], dir);
    assert_eq!(code, Some(0), "{said}");
    let elsewhere = dir.join("good-data");
    let output =
        longshore(&["endpoint", "list"], &elsewhere).env("XDG_CONFIG_HOME", dir.join("config")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (code, said) = client(&["login", "--url", &url], &[], dir);
    assert_eq!(code, Some(0), "a new key for the same server: {said}");

    let (code, said) = list(&url, &["--ca-file", "none.pem"], &[], dir);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot read certificate authorities from none.pem: No such file"), "{said}");
    let (code, said) = list(&url, &[], &[("SSL_CERT_FILE", "good.key")], dir);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("good.key has no certificate in PEM"), "{said}");
}

#[test]
fn the_server_says_when_its_certificate_ends_also_after_it_was_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let authority = Authority::new(dir);
    let server = serve(&authority, "one", "127.0.0.1", Valid::Now, dir);
    let url = format!("https://127.0.0.1:{}", server.port);
    let ends = || {
        let (code, said) = client(&["server", "-o", "json", "--url", &url, "--ca-file", "ca.pem"], &[], dir);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    assert!(ends().contains("4096-01-01T00:00:00.000Z"), "{}", ends());
    authority.issue("one", "127.0.0.1", Valid::Until2100);
    let began = std::time::Instant::now();
    while !ends().contains("2100-02-01T00:00:00.000Z") {
        assert!(began.elapsed() < program::DEADLINE, "{}", ends());
    }
}

#[test]
fn a_certificate_that_does_not_fit_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let authority = Authority::new(dir);
    for (file, host, valid, reason) in [
        (
            "other",
            "gpu.example",
            Valid::Now,
            "the server's certificate is not for 127.0.0.1, but for gpu.example",
        ),
        ("old", "127.0.0.1", Valid::Until2020, "the server's certificate expired at 2020-02-01T00:00:00Z"),
        (
            "new",
            "127.0.0.1",
            Valid::From2090,
            "the server's certificate is not valid before 2090-02-01T00:00:00Z",
        ),
    ] {
        let server = serve(&authority, file, host, valid, dir);
        let url = format!("https://127.0.0.1:{}", server.port);
        let (code, said) = list(&url, &["--ca-file", "ca.pem"], &[], dir);
        assert_eq!(code, Some(6), "{said}");
        assert!(said.contains(reason) && said.contains("next: "), "{said}");
    }
}

#[test]
fn the_wrong_scheme_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let plain = Server::start("plain", &[], &[], dir);
    let (code, said) = list(&format!("https://127.0.0.1:{}/", plain.port), &[], &[], dir);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("the server does not speak TLS here"), "{said}");
    assert!(said.contains(&format!("use http://127.0.0.1:{}\n", plain.port)), "{said}");
    // Files with authorities are not read for http://.
    let (code, said) =
        list(&format!("http://127.0.0.1:{}", plain.port), &["--ca-file", "none.pem"], &[], dir);
    assert_eq!(code, Some(0), "{said}");

    let tls = serve(&Authority::new(dir), "good", "127.0.0.1", Valid::Now, dir);
    let (code, said) = list(&format!("http://127.0.0.1:{}", tls.port), &[], &[], dir);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("the server does not speak plain HTTP here"), "{said}");
    assert!(said.contains(&format!("use https://127.0.0.1:{}\n", tls.port)), "{said}");
}
