//! `longshore tls self-signed`, and a server and clients that use its files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::list;
use crate::program::{Server, client};

/// Whether the server with the name `server` wrote that its workers cannot trust it at the address that they get.
fn warns_of_server_url(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("server.log")).unwrap().contains("set `server_url` to https://")
}

#[test]
fn a_server_with_the_created_pair_is_trusted_with_its_authority() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (code, said) = client(&["tls", "self-signed", "--out", "pair"], &[], dir);
    assert_eq!(code, Some(0), "{said}");
    for part in
        ["localhost, 127.0.0.1, ::1", "--tls-cert", "--ca-file", "curl --cacert", "REQUESTS_CA_BUNDLE="]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("PRIVATE"), "{said}");
    let mode = std::fs::metadata(dir.join("pair/server.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let flags = ["--tls-cert", "pair/server.pem", "--tls-key", "pair/server.key"];
    let server = Server::start("server", &flags, &[], dir);
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("https://{host}:{}", server.port);
        let (code, said) = list(&url, &["--ca-file", "pair/ca.pem"], &[], dir);
        assert_eq!(code, Some(0), "{said}");
        let (code, said) = list(&url, &[], &[], dir);
        assert_eq!(code, Some(6), "{said}");
        assert!(said.contains("is not signed by a known authority"), "{said}");
    }
    assert!(!warns_of_server_url(dir), "the certificate is for the address that workers get");
    // The server's certificate is no authority.
    let url = format!("https://127.0.0.1:{}", server.port);
    assert_eq!(list(&url, &["--ca-file", "pair/server.pem"], &[], dir).0, Some(6));
}

#[test]
fn the_given_names_replace_those_of_this_computer() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let arguments = ["tls", "self-signed", "--name", "gpu.lan", "--name", "10.0.0.7"];
    let (code, said) = client(&arguments, &[], dir);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("certificate for gpu.lan, 10.0.0.7, valid until"), "{said}");
    let flags = ["--tls-cert", "longshore-tls/server.pem", "--tls-key", "longshore-tls/server.key"];
    let server = Server::start("server", &flags, &[], dir);
    let url = format!("https://127.0.0.1:{}", server.port);
    let (code, said) = list(&url, &["--ca-file", "longshore-tls/ca.pem"], &[], dir);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("certificate is not for 127.0.0.1, but for gpu.lan, 10.0.0.7"), "{said}");
    assert!(warns_of_server_url(dir), "workers get 127.0.0.1, which the certificate is not for");

    let key = || std::fs::read_to_string(dir.join("longshore-tls/server.key")).unwrap();
    let first = key();
    let (code, said) = client(&arguments, &[], dir);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("server.key exists and is not overwritten"), "{said}");
    assert_eq!(key(), first);
    let (code, said) =
        client(&["tls", "self-signed", "--name", "https://gpu.lan", "--out", "other"], &[], dir);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`https://gpu.lan` is not a host name or an IP address"), "{said}");
    assert!(!dir.join("other").exists());
}
