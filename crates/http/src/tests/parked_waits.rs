//! Many clients that wait for results concurrently, on in-memory connections: a process has too few sockets.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::fixture::{Fixture, with_key};
use crate::connection::serve::serve_stream;
use crate::{HttpSettings, HttpState, RateLimits, router};

/// Buffer size of a client's socket, in bytes: a request and its response.
const SOCKET_BYTES: usize = 1_024;
/// Most bytes that a wait may cost: a connection's buffers, the request, its future and its job, with both ends of the
/// in-memory socket.
const BYTES_PER_WAIT_MAX: u64 = 40_000;

/// Clients that connect concurrently.
const AT_A_TIME: usize = 1_000;

/// Number of clients: `LONGSHORE_PARKED`, or a small number. The process's memory is measured only if the variable is
/// set, because other tests use memory too.
fn asked_for() -> Option<usize> {
    std::env::var("LONGSHORE_PARKED").ok()?.parse().ok()
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

async fn answer_of(mut client: DuplexStream) -> String {
    let mut answer = vec![0; SOCKET_BYTES];
    let mut length = 0;
    while !answer[..length].ends_with(b"}") {
        let more = client.read(&mut answer[length..]).await.unwrap();
        assert!(more > 0, "the server closed the connection");
        length += more;
    }
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_waits_take_little_and_are_all_answered() {
    let count = asked_for().unwrap_or(1_000);
    let settings = HttpSettings { rate_limits: RateLimits::Off, ..HttpSettings::default() };
    let fixture = Arc::new(Fixture::with(&settings, "").await);
    let routes = router(HttpState::new(fixture.engine.clone(), &settings));
    let (_closing, on_closing) = watch::channel(());
    let request = with_key("POST /v2/demo/runsync?wait=300000").replacen('\n', " HTTP/1.1\r\n", 1);
    let request = format!("{request}\r\nhost: test\r\ncontent-length: 12\r\n\r\n{{\"input\":{{}}}}");
    let before = resident_bytes();
    let began = Instant::now();
    let mut answers = JoinSet::new();
    for parked in 1..=count {
        let (mut client, server) = duplex(SOCKET_BYTES);
        tokio::spawn(serve_stream(server, routes.clone(), on_closing.clone()));
        client.write_all(request.as_bytes()).await.unwrap();
        answers.spawn(answer_of(client));
        if parked % AT_A_TIME == 0 || parked == count {
            timeout(Duration::from_mins(1), until_queued(&fixture, parked)).await.expect("all of them wait");
        }
    }
    let each = resident_bytes().saturating_sub(before) / count as u64;
    let parked = began.elapsed();
    let began = Instant::now();
    let purged = fixture.ask("POST /v2/demo/purge-queue", "").await.json();
    assert_eq!(purged["removed"], count);
    while let Some(answer) = timeout(Duration::from_mins(5), answers.join_next()).await.unwrap() {
        let answer = answer.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"CANCELLED\""), "{answer}");
    }
    println!("{count} parked waits in {parked:?}, {each} bytes each; answered in {:?}", began.elapsed());
    assert!(asked_for().is_none() || each < BYTES_PER_WAIT_MAX, "{each} bytes for each wait");
}

async fn until_queued(fixture: &Fixture, count: usize) {
    loop {
        let health = fixture.ask("GET /v2/demo/health", "").await.json();
        if health["jobs"]["inQueue"] == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
