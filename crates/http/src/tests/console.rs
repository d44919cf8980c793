//! The pages of the console: addresses, headers and encodings.

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use longshore_console::TREE_HASH;
use ring::digest::{SHA256, digest};

use super::direct::{Direct, Reply, request};
use super::fixture::Fixture;
use crate::{ConsoleSettings, HttpSettings};

fn asset(path: &str) -> String {
    format!("/console/a/{TREE_HASH}/{path}")
}

async fn get(server: &Direct, path: &str, headers: &[(&'static str, &str)]) -> Reply {
    let mut asked = request("GET", path, None, "");
    for (name, value) in headers {
        asked.headers_mut().insert(*name, value.parse().unwrap());
    }
    server.send(asked).await
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
    plain
}

#[tokio::test(start_paused = true)]
async fn the_page_is_the_same_at_every_address_and_is_guarded() {
    let server = Direct::start().await;
    let page = get(&server, "/console", &[]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.body, longshore_console::shell("").as_bytes());
    for path in ["/console/", "/console/endpoints/hello/requests/019a", "/console/index.html"] {
        assert_eq!(get(&server, path, &[]).await.body, page.body, "{path}");
    }
    let policy = page.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    for name in ["script", "style"] {
        let (_, inside) = text.split_once(&format!("<{name}>")).unwrap();
        let (inside, _) = inside.split_once(&format!("</{name}>")).unwrap();
        let hash = BASE64_STANDARD.encode(digest(&SHA256, inside.as_bytes()));
        assert!(policy.contains(&format!("{name}-src 'self' 'sha256-{hash}';")), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("vary", "Accept-Encoding"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert!(page.header("permissions-policy").unwrap().contains("camera=()"));
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_has_the_page_gets_no_second_one() {
    let server = Direct::start().await;
    let page = get(&server, "/console", &[]).await;
    let tag = page.header("etag").unwrap();
    let again = get(&server, "/console/keys", &[("if-none-match", tag)]).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert!(again.header("content-security-policy").is_some());
    assert_eq!(get(&server, "/console", &[("if-none-match", "W/\"other\"")]).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn files_are_kept_for_ever_and_come_packed_or_not() {
    let server = Direct::start().await;
    let plain = get(&server, &asset("main.js"), &[]).await;
    assert_eq!(plain.status, 200);
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("content-type"), Some("text/javascript"));
    assert_eq!(plain.header("cache-control"), Some("max-age=31536000, immutable"));
    assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(plain.header("content-security-policy"), None);
    assert_eq!(plain.header("x-request-id"), None, "it would be that of the first of all requests");
    let worker = get(&server, &asset("events_worker.js"), &[]).await;
    assert!(worker.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    for path in ["events_worker.js", "console.css"] {
        let guarded = get(&server, &asset(path), &[]).await;
        assert_eq!(guarded.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
    let shortest = get(&server, "/console", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(shortest.header("content-encoding"), Some("br"));
    assert_eq!(Some(&*shortest.body), longshore_console::shell_in_brotli(""));
    assert_eq!(longshore_console::shell_in_brotli("/longshore"), None);
    let page = get(&server, "/console", &[("accept-encoding", "gzip")]).await;
    assert_eq!(page.header("content-encoding"), Some("gzip"));
    assert_eq!(unpacked(&page.body), longshore_console::shell("").as_bytes());
    let packed = get(&server, &asset("main.js"), &[("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(unpacked(&packed.body), plain.body);
    let shorter = get(&server, &asset("main.js"), &[("accept-encoding", "gzip, deflate, br, zstd")]).await;
    assert_eq!(shorter.header("content-encoding"), Some("br"));
    assert_eq!(Some(&*shorter.body), longshore_console::asset("main.js").unwrap().brotli());
    let later = get(&server, &asset("pages/settings.js"), &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(later.header("content-encoding"), Some("gzip"), "no first visit loads it");
}

#[tokio::test(start_paused = true)]
async fn files_that_do_not_exist_are_404_and_not_kept() {
    let server = Direct::start().await;
    for path in ["none.js", "index.html", "../main.js", "%2e%2e/Cargo.toml"] {
        let answer = get(&server, &asset(path), &[]).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.code(), "route_not_found");
        assert_eq!(answer.header("cache-control"), None);
    }
    let other = get(&server, "/console/a/0123456789abcdef/main.js", &[]).await;
    assert_eq!(other.status, 404, "a file of another version");
}

#[tokio::test]
async fn behind_a_base_path_everything_is_found_with_and_without_it() {
    let console = ConsoleSettings { base: "/longshore".to_owned(), ..ConsoleSettings::default() };
    let fixture = Fixture::with(&HttpSettings { console, ..HttpSettings::default() }, "").await;
    for head in ["GET /console", "GET /longshore/console/keys", "GET //longshore//console/"] {
        let page = fixture.ask(head, "").await;
        assert_eq!(page.status, 200, "{head}");
        assert!(page.text().contains("\"/longshore/console/a/"), "{head}");
    }
    for head in ["GET /longshore/v1/endpoints", "GET /v1/endpoints", "GET /longshore/v2/demo/health"] {
        assert_eq!(fixture.ask(head, "").await.status, 200, "{head}");
    }
    assert_eq!(fixture.ask("GET /longshoreman/v1/endpoints", "").await.status, 404);
}

#[tokio::test]
async fn a_console_that_is_off_is_not_there() {
    let console = ConsoleSettings { is_on: false, ..ConsoleSettings::default() };
    let fixture = Fixture::with(&HttpSettings { console, ..HttpSettings::default() }, "").await;
    for path in ["/console", "/console/keys", &asset("main.js")] {
        assert_eq!(fixture.ask(&format!("GET {path}"), "").await.status, 404, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_the_page_are_packed_and_those_to_others_are_not() {
    let server = Direct::start().await;
    let gzip = ("accept-encoding", "gzip");
    let plain = get(&server, "/v1/openapi.json", &[gzip]).await;
    assert_eq!(plain.header("content-encoding"), None);
    let own = ("x-longshore-console", "new");
    let packed = get(&server, "/v1/openapi.json", &[gzip, own]).await;
    assert_eq!(
        (packed.header("content-encoding"), packed.header("vary")),
        (Some("gzip"), Some("accept-encoding"))
    );
    assert!(packed.body.len() * 3 < plain.body.len());
    assert_eq!(unpacked(&packed.body), plain.body);
    assert_eq!(get(&server, "/v1/openapi.json", &[own]).await.body, plain.body);
    let short = get(&server, "/readyz", &[gzip, own]).await;
    assert_eq!(short.header("content-encoding"), None);
}
