//! What holds for every route: connections, bodies, paths, panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::wire::{DEADLINE, Served};
use crate::gate::peer;
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, BodyBudget};
use crate::wire::json_body::JsonBody;

const BODY_BYTES_MAX: usize = 1_000_000;

async fn count(body: Body, budget: &BodyBudget) -> Result<String, ApiError> {
    let read = body::read(body, BODY_BYTES_MAX, budget).await?;
    Ok(read.bytes.len().to_string())
}

async fn serve_routes(routes: Router) -> Served {
    Served::start(crate::Edge::around(routes)).await
}

/// A server that reads the body at `/read` and refuses without reading at `/refuse`.
async fn reader() -> Served {
    // A sixteenth of the budget is for small bodies.
    let budget = BodyBudget::new(2 * BODY_BYTES_MAX * 16 / 15 + 1);
    let read = move |body: Body| async move { count(body, &budget).await };
    let routes = Router::new()
        .route("/read", post(read))
        .route("/refuse", post(async || ApiError::unauthorized()))
        .route("/quick", get(async || "quick"))
        .route("/panic", get(async || -> Response { panic!("a test's panic") }));
    serve_routes(routes).await
}

#[tokio::test]
async fn a_path_may_have_double_slashes_and_one_at_its_end() {
    let server = serve_routes(Router::new().route("/a/{b}", get(async || "here"))).await;
    for path in ["/a/b", "//a/b", "/a//b", "/a/b/", "//a///b//?x=//", "http://test/a//b/"] {
        let answer = server.ask(&format!("GET {path}"), b"").await;
        assert_eq!((answer.status, answer.text()), (200, "here"), "{path}");
    }
    assert_eq!(server.ask("GET /", b"").await.status, 404);
    assert_eq!(server.ask("GET //", b"").await.status, 404);
}

#[tokio::test]
async fn a_host_is_named_from_http_1_1_on() {
    let server = reader().await;
    for target in ["/quick", "http://test/quick", "/nowhere"] {
        let mut wire = server.connect().await;
        wire.write(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await;
        let answer = wire.answer(false).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "missing_host"), "{target}");
        assert_eq!(answer.header("connection"), Some("close"), "{target}");
    }
    let mut wire = server.connect().await;
    wire.write(b"GET /quick HTTP/1.0\r\n\r\n").await;
    assert_eq!(wire.answer(false).await.text(), "quick");
}

#[tokio::test]
async fn a_body_with_a_length_and_chunks_is_the_last_of_its_connection() {
    let server = reader().await;
    for framing in
        ["content-length: 5\ntransfer-encoding: chunked", "transfer-encoding: chunked\ncontent-length: 5"]
    {
        let mut wire = server.connect().await;
        wire.send(&format!("POST /read\n{framing}"), None).await;
        wire.write(b"3\r\nabc\r\n0\r\n\r\nGET /quick HTTP/1.1\r\nhost: test\r\n\r\n").await;
        let answer = wire.answer(false).await;
        assert_eq!((answer.text(), answer.header("connection")), ("3", Some("close")), "{framing}");
        assert!(timeout(DEADLINE, wire.is_closed()).await.unwrap(), "{framing}");
    }
}

#[tokio::test]
async fn a_panic_is_one_requests_misfortune() {
    let server = reader().await;
    let mut wire = server.connect().await;
    let answer = wire.ask("GET /panic", b"").await;
    assert_eq!((answer.status, answer.code().as_str()), (500, "internal"));
    assert_eq!(wire.ask("POST /read", b"abc").await.text(), "3");
}

#[tokio::test]
async fn a_refused_sender_can_finish_and_reads_the_refusal() {
    let server = reader().await;
    let body = vec![b'x'; 20_000_000];
    for route in ["/refuse", "/read"] {
        let mut wire = server.connect().await;
        // Writes all of it before reading anything, as simple clients do.
        let answer = timeout(DEADLINE, wire.ask(&format!("POST {route}"), &body)).await.unwrap();
        let expected = if route == "/refuse" { (401, "unauthorized") } else { (413, "body_too_large") };
        assert_eq!((answer.status, answer.code().as_str()), expected);
        assert_eq!(wire.ask("POST /read", b"ab").await.text(), "2");
    }
}

#[tokio::test]
async fn a_sender_that_asks_first_is_refused_before_it_sends() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /refuse\nexpect: 100-continue\ncontent-length: 9000000", None).await;
    assert_eq!(wire.answer(false).await.status, 401);

    let mut wire = server.connect().await;
    wire.send("POST /read\nexpect: 100-continue\ncontent-length: 9000000", None).await;
    assert_eq!(wire.answer(false).await.status, 413);

    let mut wire = server.connect().await;
    wire.send("POST /read\nexpect: 100-continue\ncontent-length: 3", None).await;
    assert_eq!(wire.answer(false).await.status, 100);
    wire.write(b"abc").await;
    assert_eq!(wire.answer(false).await.text(), "3");
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_as_soon_as_that_is_known() {
    let server = reader().await;
    let at_limit = vec![b'x'; BODY_BYTES_MAX];
    assert_eq!(server.ask("POST /read", &at_limit).await.text(), "1000000");
    let mut wire = server.connect().await;
    wire.send("POST /read\ncontent-length: 1000001", None).await;
    assert_eq!(wire.answer(false).await.code(), "body_too_large");
    let mut wire = server.connect().await;
    wire.send("POST /read\ntransfer-encoding: chunked", None).await;
    wire.write(b"f4241\r\n").await;
    wire.write(&[at_limit.as_slice(), b"x"].concat()).await;
    assert_eq!(wire.answer(false).await.code(), "body_too_large");
}

#[tokio::test]
async fn a_body_in_chunks_is_put_together() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /read\ntransfer-encoding: chunked", None).await;
    wire.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(wire.answer(false).await.text(), "5");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_is_408() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /read\ncontent-length: 10", None).await;
    wire.write(b"abc").await;
    let answer = wire.answer(false).await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_408() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /read\ncontent-length: 100", None).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(11)).await;
        wire.write(b"x").await;
    }
    let answer = wire.answer(false).await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "body_timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_but_steady_body_is_read() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /read\ncontent-length: 800000", None).await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(9)).await;
        wire.write(&vec![b'x'; 200_000]).await;
    }
    assert_eq!(wire.answer(false).await.text(), "800000");
}

#[tokio::test]
async fn a_body_in_broken_chunks_is_400() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.send("POST /read\ntransfer-encoding: chunked", None).await;
    wire.write(b"3\r\nabcd\r\n").await;
    let answer = wire.answer(false).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "body_incomplete"));
}

#[tokio::test]
async fn a_workers_report_waits_for_room_where_a_client_is_turned_away() {
    let budget = BodyBudget::new(BODY_BYTES_MAX);
    let whole = Body::from(vec![0; BODY_BYTES_MAX]);
    let reports = budget.for_reports();
    let held = body::read(whole, BODY_BYTES_MAX, &reports).await.unwrap();
    body::read(Body::from("x"), BODY_BYTES_MAX, &budget).await.unwrap_err();
    let mut report = Box::pin(body::read(Body::from("result"), BODY_BYTES_MAX, &reports));
    assert!(timeout(Duration::ZERO, &mut report).await.is_err(), "it waits");
    drop(held);
    let read = timeout(DEADLINE, report).await.unwrap().unwrap();
    assert_eq!(read.bytes, "result");
}

#[tokio::test]
async fn bytes_over_the_servers_budget_are_turned_away() {
    let server = reader().await;
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut holder = server.connect().await;
        // The 100 shows that the server has begun to read and has charged the bytes.
        holder.send("POST /read\nexpect: 100-continue\ncontent-length: 1000000", None).await;
        assert_eq!(holder.answer(false).await.status, 100);
        holders.push(holder);
    }
    let answer = server.ask("POST /read", &vec![b'x'; 70_000]).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.ask("POST /read", b"x").await.text(), "1", "small ones have a part of their own");
    let mut holder = holders.remove(0);
    holder.write(&vec![b'x'; 1_000_000]).await;
    assert_eq!(holder.answer(false).await.text(), "1000000");
    assert_eq!(server.ask("POST /read", &vec![b'x'; 70_000]).await.text(), "70000");
}

#[tokio::test]
async fn small_bodies_count_as_they_come() {
    let server = reader().await;
    let mut holders = Vec::new();
    for _ in 0..100 {
        let mut holder = server.connect().await;
        holder.send("POST /read\nexpect: 100-continue\ncontent-length: 60000", None).await;
        assert_eq!(holder.answer(false).await.status, 100);
        holders.push(holder);
    }
    assert_eq!(server.ask("POST /read", b"x").await.text(), "1");
}

#[tokio::test]
async fn a_head_over_the_limit_is_431() {
    let server = reader().await;
    let answer = server.ask(&format!("GET /read\nx-long: {}", "x".repeat(100_000)), b"").await;
    assert_eq!((answer.status, answer.code().as_str()), (431, "head_too_large"));
}

#[tokio::test]
async fn a_head_that_is_no_http_is_answered_in_the_shape_of_errors() {
    let server = reader().await;
    let too_long = "POST /read HTTP/1.1\r\nhost: test\r\ncontent-length: 18446744073709551615\r\n\r\n";
    for (bad, status, code) in [
        ("hello, are you there?\r\n\r\n", 400, "bad_head"),
        ("GET /quick HTTP/1.1\r\nhost: test\r\nx : y\r\n\r\n", 400, "bad_head"),
        (&too_long.replace("5\r", "6\r"), 400, "bad_head"),
        (too_long, 431, "head_too_large"),
    ] {
        for before in [0, 1, 2] {
            let mut wire = server.connect().await;
            for _ in 0..before {
                assert_eq!(wire.ask("POST /read", b"xy").await.text(), "2");
            }
            wire.write(bad.as_bytes()).await;
            let answer = wire.answer(false).await;
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{bad}");
            assert_eq!(answer.header("connection"), Some("close"));
            assert!(wire.is_closed().await);
        }
    }
}

/// What hyper itself writes for a head that it cannot read.
const BARE_ERROR: &str =
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: now\r\n\r\n";

#[tokio::test]
async fn what_looks_like_an_error_of_a_head_stays_as_it_is() {
    let bare = async || (StatusCode::BAD_REQUEST, [(CONNECTION, "close"), (CONTENT_TYPE, "application/x")]);
    let upgrade = async |mut request: Request| {
        let upgraded = hyper::upgrade::on(&mut request);
        peer::set_tunnel(Box::pin(async move {
            TokioIo::new(upgraded.await.unwrap()).write_all(BARE_ERROR.as_bytes()).await.unwrap();
        }));
        (StatusCode::SWITCHING_PROTOCOLS, [(CONNECTION, "upgrade"), (UPGRADE, "x")])
    };
    let routes = Router::new().route("/bare", get(bare)).route("/upgrade", get(upgrade));
    let server = serve_routes(routes.route("/quick", get(async || "quick"))).await;
    for path in ["/bare", "/upgrade"] {
        let mut wire = server.connect().await;
        assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
        wire.send(&format!("GET {path}\nconnection: upgrade\nupgrade: x"), None).await;
        if path == "/upgrade" {
            assert_eq!(wire.head().await.0, 101);
            assert_eq!(wire.exactly(BARE_ERROR.len()).await, BARE_ERROR.as_bytes());
        } else {
            let answer = wire.answer(false).await;
            assert_eq!((answer.status, answer.header("content-length")), (400, Some("0")));
        }
        assert!(wire.is_closed().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_asks_is_closed_sooner_than_an_idle_one() {
    let server = reader().await;
    let mut silent = server.connect().await;
    assert!(timeout(Duration::from_secs(15), silent.is_closed()).await.is_err());
    assert!(timeout(Duration::from_secs(10), silent.is_closed()).await.unwrap());
    let mut slow = server.connect().await;
    slow.write(b"GET /quick HTTP/1.1\r\nhost: ").await;
    assert!(timeout(Duration::from_secs(25), slow.is_closed()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_request_may_take_longer_than_its_head_may() {
    let slow = async || {
        tokio::time::sleep(Duration::from_mins(10)).await;
        "late"
    };
    let server = serve_routes(Router::new().route("/slow", get(slow))).await;
    let mut wire = server.connect().await;
    for _ in 0..2 {
        assert_eq!(wire.ask("GET /slow", b"").await.text(), "late");
        // The idle time begins at the end of the response.
        assert!(timeout(Duration::from_secs(110), wire.is_closed()).await.is_err());
    }
    assert!(timeout(Duration::from_secs(20), wire.is_closed()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_first_head_may_come_in_parts_within_20_seconds() {
    let server = reader().await;
    let mut wire = server.connect().await;
    wire.write(b"GET /quick HTTP/1.1\r\nhost: ").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    wire.write(b"test\r\n\r\n").await;
    assert_eq!(wire.answer(false).await.text(), "quick");
    // The end of the first 20 s does not end a connection that has had a request.
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
}

#[tokio::test(start_paused = true)]
async fn a_later_head_has_two_minutes_and_is_cut_without_a_response() {
    let server = reader().await;
    let mut wire = server.connect().await;
    assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
    wire.write(b"GET /quick HTTP/1.1\r\n").await;
    // Further bytes do not extend the time.
    for _ in 0..3 {
        assert!(timeout(Duration::from_secs(35), wire.is_closed()).await.is_err());
        wire.write(b"a: b\r\n").await;
    }
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut wire.stream, &mut rest);
    let read = timeout(Duration::from_secs(20), read).await.unwrap();
    assert!(rest.is_empty(), "{read:?} {}", String::from_utf8_lossy(&rest));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_a_large_response() {
    const PART_BYTES: usize = 8_000_000;
    let large = async || Bytes::from(vec![b'x'; 8 * PART_BYTES]);
    let server = serve_routes(Router::new().route("/large", get(large))).await;
    let mut wire = server.connect_buffering(1 << 20).await;
    wire.send("GET /large", None).await;
    assert_eq!(wire.head().await.0, 200);
    // Four minutes: longer than a connection may be idle.
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(wire.exactly(PART_BYTES).await.len(), PART_BYTES);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_ended_its_sending_is_probed_during_each_of_its_requests() {
    let slow = async || {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "late"
    };
    let server = serve_routes(Router::new().route("/slow", get(slow))).await;
    let mut wire = server.connect().await;
    wire.write(&b"GET /slow HTTP/1.1\r\nhost: test\r\n\r\n".repeat(2)).await;
    tokio::io::AsyncWriteExt::shutdown(&mut wire.stream).await.unwrap();
    for _ in 0..2 {
        // After 1 s and after 3 s; the next probe would come after 7 s.
        assert_eq!([wire.answer(false).await.status, wire.answer(false).await.status], [100, 100]);
        assert_eq!(wire.answer(false).await.text(), "late");
    }
    assert!(timeout(DEADLINE, wire.is_closed()).await.unwrap());
}

#[tokio::test]
async fn connections_over_the_limit_wait_until_others_end() {
    let routes = crate::Edge::around(Router::new().route("/quick", get(async || "quick")));
    let server = Served::with_room_for(2, routes).await;
    let mut first = server.connect().await;
    let mut second = server.connect().await;
    for wire in [&mut first, &mut second] {
        assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
    }
    let mut third = server.connect().await;
    third.send("GET /quick", None).await;
    assert!(timeout(Duration::from_millis(100), third.answer(false)).await.is_err());
    assert_eq!(second.ask("GET /quick", b"").await.text(), "quick");
    drop(first);
    assert_eq!(timeout(DEADLINE, third.answer(false)).await.unwrap().text(), "quick");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_disconnected() {
    let (server, taken) = answering(20_000_000).await;
    let mut wire = server.connect().await;
    wire.send("GET /", None).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    // A shutdown waits for open requests: there is none.
    timeout(Duration::from_secs(1), server.stop()).await.unwrap().unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn options_and_head_are_answered_without_a_body() {
    let server = reader().await;
    let answer = server.ask("OPTIONS /anything", b"").await;
    assert_eq!((answer.status, answer.header("allow").is_some()), (204, true));
    let answer = server.ask("HEAD /panic", b"").await;
    assert_eq!((answer.status, answer.body.len()), (500, 0));
}

#[tokio::test]
async fn an_error_from_below_takes_the_one_shape() {
    let plain = async || (http::StatusCode::UNPROCESSABLE_ENTITY, "no").into_response();
    let server = serve_routes(Router::new().route("/plain", get(plain))).await;
    let answer = server.ask("GET /plain", b"").await;
    assert_eq!((answer.status, answer.code().as_str()), (422, "bad_request"));
    assert!(answer.header("x-request-id").is_some());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_stays_open_for_over_75_seconds() {
    let server = reader().await;
    let mut wire = server.connect().await;
    assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
    assert!(timeout(Duration::from_secs(100), wire.is_closed()).await.is_err());
    assert_eq!(wire.ask("GET /quick", b"").await.text(), "quick");
    assert!(timeout(Duration::from_secs(100), wire.is_closed()).await.is_err());
    assert!(timeout(Duration::from_secs(100), wire.is_closed()).await.unwrap());
}

#[tokio::test]
async fn a_stop_lets_open_requests_end() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
        async move || {
            entered.notify_one();
            release.notified().await;
            "late"
        }
    };
    let server =
        serve_routes(Router::new().route("/slow", get(slow)).route("/quick", get(async || "quick"))).await;
    let address = server.address;
    let mut idle = server.connect().await;
    assert_eq!(idle.ask("GET /quick", b"").await.text(), "quick");
    let mut wire = server.connect().await;
    wire.send("GET /slow", None).await;
    entered.notified().await;
    let mut serving = server.stop();
    assert!(timeout(DEADLINE, idle.is_closed()).await.unwrap());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(timeout(Duration::ZERO, &mut serving).await.is_err());
    release.notify_one();
    assert_eq!(wire.answer(false).await.text(), "late");
    timeout(DEADLINE, serving).await.unwrap().unwrap();
}

/// A server whose response is `bytes` long and that counts how often a response was taken.
async fn answering(bytes: usize) -> (Served, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let payload = Bytes::from(vec![b'x'; bytes]);
    let answer = async move || {
        let mut body = JsonBody::new();
        body.text("\"").raw(&payload).text("\"");
        body.into_response_then(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        })
    };
    (serve_routes(Router::new().route("/", get(answer))).await, taken)
}

#[tokio::test]
async fn an_answer_counts_as_taken_when_the_connection_took_all_of_it() {
    for bytes in [3, 5_000_000] {
        let (server, taken) = answering(bytes).await;
        let mut wire = server.connect().await;
        for times in 1..4 {
            assert_eq!(wire.ask("GET /", b"").await.body.len(), bytes + 2);
            assert_eq!(taken.load(Ordering::SeqCst), times);
        }
        assert_eq!(wire.ask("HEAD /", b"").await.status, 200);
        assert_eq!(taken.load(Ordering::SeqCst), 3);
    }
}

#[tokio::test]
async fn an_answer_that_the_reader_leaves_does_not_count_as_taken() {
    let (server, taken) = answering(20_000_000).await;
    let mut wire = server.connect().await;
    wire.send("GET /", None).await;
    let mut some = [0; 1_000];
    tokio::io::AsyncReadExt::read_exact(&mut wire.stream, &mut some).await.unwrap();
    drop(wire);
    // A shutdown ends when the connection has: after that no response can be taken.
    timeout(DEADLINE, server.stop()).await.unwrap().unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 0);
}
