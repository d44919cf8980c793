//! Which targets are connected to, directly and through a proxy.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Resolves every name to the next of its replies; the last reply repeats.
struct ScriptedResolver(Mutex<VecDeque<Vec<&'static str>>>);

impl Resolve for ScriptedResolver {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> ResolveFuture<'a> {
        let mut replies = self.0.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        let reply = reply.unwrap_or_default();
        let addresses = reply.iter().map(|text| SocketAddr::new(text.parse().unwrap(), port)).collect();
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// A connector whose lookups return these replies.
fn with_replies(replies: &[&[&'static str]]) -> Connector {
    let replies = replies.iter().map(|reply| reply.to_vec()).collect();
    Connector { resolver: Arc::new(ScriptedResolver(Mutex::new(replies))), ..strict() }
}

/// A connector without proxies that uses the system's resolver and permits public addresses alone.
fn strict() -> Connector {
    Connector {
        allow_private: false,
        connect_timeout: Duration::from_secs(4),
        proxies: Arc::default(),
        resolver: Arc::new(SystemResolver),
    }
}

/// The error text of a URL without a permitted address.
async fn forbidden_text(connector: &Connector, url: &str) -> String {
    let error = connector.permitted(&url.parse().expect(url)).await.expect_err(url);
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{url}");
    error.to_string()
}

/// Spellings of private hosts. Each one that is a valid URL must fail: by the check of addresses, or because no
/// resolver reads the spelling as an address.
const PRIVATE: &str = "
    127.0.0.1 127.1 127.0.1 127.255.255.254 0.0.0.0 0 0.1.2.3
    2130706433 0x7f000001 0x7f.1 0x7f.0.0.1 017700000001 0177.0.0.1 127.0x1 0x0
    10.0.0.1 10.1 012.0.0.1 0xa.0.0.1 167772161 10.255.255.255
    172.16.0.1 172.31.255.255 172.1048577 0xac.0x10.0.1
    192.168.0.1 192.168.1 192.168.257 3232235521 0xc0a80001 0300.0250.0.1
    169.254.169.254 169.254.170.2 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518
    168.63.129.16 2822734096 [::ffff:168.63.129.16]
    100.64.0.1 100.100.100.200 100.127.255.254 1681915905
    192.0.0.1 192.0.0.192 192.0.2.1 198.18.0.1 198.19.255.254 198.51.100.1 203.0.113.1 192.88.99.1
    224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 4294967295
    [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1]
    [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:0:127.0.0.1]
    [64:ff9b::127.0.0.1] [64:ff9b::10.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::1]
    [2002:7f00:1::] [2002:a00:1::1] [2002:a9fe:a9fe::1] [2002:c0a8:1::]
    [fc00::1] [fd00::1] [fd00:ec2::254] [fe80::1] [fe80::a9fe:a9fe] [febf::1] [fec0::1]
    [ff02::1] [ff0e::1] [2001::1] [2001:db8::1] [2001:10::1] [2001:20::1] [3fff::1] [100::1] [5f00::1]
    localhost LOCALHOST
";

#[tokio::test]
async fn no_spelling_of_a_private_address_is_permitted() {
    let connector = strict();
    let mut forbidden = 0;
    for host in PRIVATE.split_whitespace() {
        for url in [format!("http://{host}/"), format!("https://u:p@{host}:8443/x?y")] {
            let Ok(uri) = url.parse::<Uri>() else { continue };
            let error = connector.permitted(&uri).await.expect_err(&url);
            // The other errors are failed lookups.
            forbidden += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
        }
    }
    assert!(forbidden >= 170, "{forbidden}");
}

#[tokio::test]
async fn an_address_with_a_zone_is_checked_too() {
    for url in
        ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%25lo]/", "http://[::1%lo]/"]
    {
        let Ok(uri) = url.parse::<Uri>() else { continue };
        strict().permitted(&uri).await.expect_err(url);
    }
    // A resolver may return an address with a zone.
    for scoped in ["fe80::1", "::1"] {
        let SocketAddr::V6(mut address) = SocketAddr::new(scoped.parse().unwrap(), 80) else { panic!() };
        address.set_scope_id(1);
        assert!(!strict().is_permitted(SocketAddr::V6(address).ip()));
    }
}

#[tokio::test]
async fn public_addresses_are_permitted() {
    for (url, expected) in [
        ("http://1.1.1.1/", "1.1.1.1:80"),
        ("https://1.1.1.1/", "1.1.1.1:443"),
        ("https://1.1.1.1:8443/", "1.1.1.1:8443"),
        ("http://93.184.215.14/", "93.184.215.14:80"),
        ("http://[2606:4700:4700::1111]/", "[2606:4700:4700::1111]:80"),
        ("http://[::ffff:8.8.8.8]/", "[::ffff:8.8.8.8]:80"),
        ("http://[64:ff9b::808:808]/", "[64:ff9b::808:808]:80"),
        ("http://100.63.255.255/", "100.63.255.255:80"),
        ("http://172.32.0.1/", "172.32.0.1:80"),
        ("http://16843009/", "1.1.1.1:80"),
    ] {
        let addresses = strict().permitted(&url.parse().unwrap()).await.expect(url);
        assert_eq!(addresses, [expected.parse::<SocketAddr>().unwrap()], "{url}");
    }
}

#[tokio::test]
async fn private_addresses_are_permitted_by_the_setting() {
    let connector = Connector { allow_private: true, ..strict() };
    let addresses = connector.permitted(&"http://127.0.0.1:81/".parse().unwrap()).await.unwrap();
    assert_eq!(addresses, [SocketAddr::new([127, 0, 0, 1].into(), 81)]);
}

#[tokio::test]
async fn of_a_names_addresses_only_the_public_ones_are_permitted() {
    let mixed = with_replies(&[&["127.0.0.1", "1.1.1.1", "::1", "fd00::1"]]);
    let addresses = mixed.permitted(&"http://mixed.test:81/".parse().unwrap()).await.unwrap();
    assert_eq!(addresses, ["1.1.1.1:81".parse::<SocketAddr>().unwrap()]);
    let text = forbidden_text(&with_replies(&[&["10.0.0.7", "::1"]]), "http://inside.test/").await;
    assert!(text.contains("10.0.0.7 is not a public address"), "{text}");
    let nothing = with_replies(&[&[]]).permitted(&"http://nothing.test/".parse().unwrap()).await.unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_later_is_not_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://rebinding.test:{}/", listener.local_addr().unwrap().port());
    let target: Uri = url.parse().unwrap();
    let mut connector = with_replies(&[&["1.1.1.1"], &["127.0.0.1"]]);
    // The first lookup returns a public address.
    assert!(connector.permitted(&target).await.is_ok());
    let error = connector.call(target).await.err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let accepted = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(accepted.is_err(), "no connection was opened");
}

/// Connects to `target` through a proxy that reads one request head and writes `response`, or closes the connection if
/// that is empty. Returns the head, and whether the connection was opened.
async fn proxied(
    response: &'static str,
    connector: impl FnOnce(String) -> Connector,
    target: &str,
) -> (String, bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://user:pass@{}", listener.local_addr().unwrap());
    let mut connector = connector(proxy);
    let connect = connector.call(target.parse().unwrap());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4_096];
        if response.is_empty() {
            return String::new();
        }
        let length = stream.read(&mut head).await.unwrap();
        stream.write_all(response.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    };
    let (opened, head) = tokio::join!(connect, serve);
    (head, opened.is_ok())
}

/// A connector that uses this proxy, except for `direct.test`. Every name resolves to a private address.
fn through(proxy: &str) -> Connector {
    Connector { proxies: Arc::new(Proxies::through(proxy, "direct.test")), ..with_replies(&[&["10.0.0.1"]]) }
}

#[tokio::test]
async fn a_proxy_may_have_a_private_address_and_connects_to_names() {
    let (head, is_ok) =
        proxied("HTTP/1.1 200 OK\r\n\r\n", |proxy| through(&proxy), "https://inside.test/").await;
    assert!(head.starts_with("CONNECT inside.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz"), "{head}");
    assert!(is_ok);
    let (_, is_ok) =
        proxied("HTTP/1.1 403 No\r\n\r\n", |proxy| through(&proxy), "https://inside.test/").await;
    assert!(!is_ok);
    let (_, is_ok) = proxied("", |proxy| through(&proxy), "http://inside.test/").await;
    assert!(is_ok);
    let target = "http://inside.test/".parse().unwrap();
    assert!(through("http://u:p@127.0.0.1:1").proxies.credentials_in_head(&target).is_some());
}

#[tokio::test]
async fn literal_addresses_and_direct_hosts_are_checked_with_a_proxy() {
    for url in ["http://127.0.0.1/", "https://[::1]/", "http://169.254.169.254/latest", "http://direct.test/"]
    {
        let error = through("http://127.0.0.1:1").call(url.parse().unwrap()).await.err().expect(url);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{url}");
    }
    let proxies = || Arc::new(Proxies::through("http://127.0.0.1:1", "direct.test"));
    let connector = || Connector { proxies: proxies(), ..strict() };
    for host in PRIVATE.split_whitespace().filter(|host| !host.eq_ignore_ascii_case("localhost")) {
        let Ok(target) = format!("http://{host}/").parse() else { continue };
        let error = connector().call(target).await.err().expect(host);
        // A connection to the proxy would be refused: its port is closed.
        assert_ne!(error.kind(), io::ErrorKind::ConnectionRefused, "{host} reached the proxy");
    }
    for host in ["inside.test", "1and1.test", "16843009", "1.1.1.1"] {
        let error = connector().call(format!("http://{host}/").parse().unwrap()).await.err().expect(host);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{host} is left to the proxy");
    }
    let error = through("https://127.0.0.1:1").call("http://a.test/".parse().unwrap()).await.err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}
