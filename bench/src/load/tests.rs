//! Loads against a minimal server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::http::Request;

/// Answers each `GET` with 200, or 500 for `/refused`. Holds the first response of each connection for `hold`.
struct Server {
    address: SocketAddr,
    answered: Arc<AtomicU64>,
}

impl Server {
    fn start(hold: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, answered) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&answered);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let count = Arc::clone(&count);
                thread::spawn(move || converse(stream, hold, &count));
            }
        });
        Self { address, answered }
    }
}

fn converse(stream: TcpStream, hold: Duration, answered: &AtomicU64) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let (mut stream, mut hold) = (stream, hold);
    while let Some(request) = lines.next() {
        if !lines.by_ref().any(|line| line.is_empty()) {
            return;
        }
        wait_for(std::mem::take(&mut hold));
        let refused = request.starts_with("GET /refused");
        let status = if refused { "500 No" } else { "200 OK" };
        answered.fetch_add(1, Ordering::Relaxed);
        // Written in one piece, because the kernel may delay the second of two.
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 4\r\n\r\nbody");
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// Sleeps: the stall of the server is what the test measures.
fn wait_for(time: Duration) {
    thread::sleep(time);
}

fn span(ms: u64) -> Span {
    Span { warm_up: Duration::ZERO, counted: Duration::from_millis(ms) }
}

#[test]
fn a_closed_loop_counts_what_is_answered() {
    for run in [EventLoop::run, EventLoop::run_awake] {
        let server = Server::start(Duration::ZERO);
        let mut clients = ClosedLoop::new(server.address, Request::get("/").bare(), 3, span(500));
        run(&mut [&mut clients]).unwrap();
        let (counted, answered) = (clients.times().count(), server.answered.load(Ordering::Relaxed));
        assert!(counted > 0 && clients.per_s() > 0.0);
        // The last response of each connection may have come too late to count.
        assert!((counted..=counted + 3).contains(&answered), "{counted} counted of {answered}");
    }
}

#[test]
fn filling_sends_as_many_as_were_asked_for() {
    let server = Server::start(Duration::ZERO);
    for (connections, requests) in [(3, 100), (8, 2)] {
        let before = server.answered.load(Ordering::Relaxed);
        let make = || Request::get("/").bare();
        let mut clients = ClosedLoop::filling(server.address, make, connections, requests);
        EventLoop::run(&mut [&mut clients]).unwrap();
        assert_eq!(server.answered.load(Ordering::Relaxed) - before, requests);
    }
}

#[test]
fn an_open_loop_times_requests_from_when_they_were_due() {
    let hold = Duration::from_millis(100);
    let server = Server::start(hold);
    // Twenty requests are due during the stall and wait for its connection.
    let make = |_| Request::get("/").bare();
    let mut clients = OpenLoop::new(server.address, make, 200.0, 1, span(100));
    let began = Instant::now();
    EventLoop::run(&mut [&mut clients]).unwrap();
    assert!(began.elapsed() >= hold);
    assert_eq!(clients.times().count(), 20);
    assert!(clients.times().quantile_us(0.5) >= 30_000.0, "{}", clients.times().quantile_us(0.5));
    assert!(clients.times().longest_us() >= 99_000.0, "{}", clients.times().longest_us());
}

#[test]
fn an_answer_that_is_not_200_ends_the_load() {
    let server = Server::start(Duration::ZERO);
    let mut clients = ClosedLoop::new(server.address, Request::get("/refused").bare(), 1, span(60_000));
    assert_eq!(EventLoop::run(&mut [&mut clients]), Err("500: body".to_owned()));
    let error = ask(server.address, &Request::get("/refused").bare()).unwrap_err();
    assert_eq!(error, "GET /refused HTTP/1.1: 500 body");
    assert_eq!(ask(server.address, &Request::get("/").bare()), Ok(b"body".to_vec()));
}

#[test]
fn a_refused_connection_is_said() {
    let unused = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let error = ask(unused, &Request::get("/").bare()).unwrap_err();
    assert!(error.starts_with("cannot connect to 127.0.0.1:"), "{error}");
}

/// Sends this text in two pieces to each client.
fn tell(text: String, cut: usize) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let text = text.clone();
            thread::spawn(move || {
                let asked = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                if asked.take_while(|line| !line.is_empty()).count() > 0 {
                    let _ = stream.write_all(&text.as_bytes()[..cut]);
                    wait_for(Duration::from_millis(20));
                    let _ = stream.write_all(&text.as_bytes()[cut..]);
                    // The response does not end.
                    wait_for(Duration::from_mins(1));
                }
            });
        }
    });
    address
}

fn listen(address: SocketAddr) -> Result<u64, String> {
    let tally = std::rc::Rc::new(Tally::submitting());
    (0..2).for_each(|_| tally.submit());
    tally.close();
    let requests = vec![Request::get("/").bare(); 3];
    let mut listeners = Listeners::new(address, requests, 3, span(600_000), tally);
    EventLoop::run(&mut [&mut listeners]).map(|()| listeners.times().count())
}

#[test]
fn listeners_hear_every_moment_wherever_an_answer_is_cut() {
    let event = format!("data: {}\n\n", stamp(Instant::now()));
    let text = format!("HTTP/1.1 200 OK\r\n\r\n{event}{event}");
    for cut in [12, text.len() - event.len(), text.len() - 8] {
        assert_eq!(listen(tell(text.clone(), cut)), Ok(6), "{cut}");
    }
    let refused = listen(tell("HTTP/1.1 429 No\r\n\r\n".to_owned(), 12)).unwrap_err();
    assert!(refused.starts_with("no stream: HTTP/1.1 429"), "{refused}");
}
