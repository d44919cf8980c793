//! Connections with threads of their own, for what the event loop does not do: long bodies, upgrades and lost requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 256 * 1024;
/// The longest time of one read.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the requests during the replacements may take.
const ASKING_TIME_MAX: Duration = Duration::from_mins(30);
/// Reads of a long body between two looks at the memory.
const READS_PER_LOOK: u32 = 64;

/// Opens a connection and sends a request.
fn sent(address: SocketAddr, request: &[u8]) -> Result<TcpStream, String> {
    let opened = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        stream.write_all(request)?;
        Ok(stream)
    };
    opened().map_err(|error: std::io::Error| format!("cannot send a request: {error}"))
}

/// Reads a response with a body of this length, and calls `look` now and then.
pub(super) fn read_body(
    address: SocketAddr,
    request: &[u8],
    bytes: u64,
    mut look: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let mut stream = sent(address, request)?;
    let (head, mut read) = read_head(&mut stream)?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("a stream was answered by {head}"));
    }
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut reads = 0_u32;
    while read < bytes {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(format!("a stream ended after {read} of {bytes} bytes")),
            Ok(count) => read += count as u64,
            Err(error) => return Err(format!("a stream broke after {read} bytes: {error}")),
        }
        reads += 1;
        if reads.is_multiple_of(READS_PER_LOOK) {
            look()?;
        }
    }
    Ok(())
}

/// The head of a response, and how many bytes of the body came with it.
fn read_head(stream: &mut TcpStream) -> Result<(String, u64), String> {
    let mut data = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = data.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&data[..end]).into_owned();
            return Ok((head, (data.len() - end - 4) as u64));
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err("a connection was closed before its response".to_owned()),
            Ok(count) => data.extend_from_slice(&buffer[..count]),
            Err(error) => return Err(format!("no response: {error}")),
        }
    }
}

/// Opens upgraded connections that stay idle.
pub(super) fn open_sockets(
    address: SocketAddr,
    request: &[u8],
    count: usize,
) -> Result<Vec<TcpStream>, String> {
    let open = |_| {
        let mut stream = sent(address, request)?;
        let (head, _) = read_head(&mut stream)?;
        if head.starts_with("HTTP/1.1 101") { Ok(stream) } else { Err(format!("no WebSocket: {head}")) }
    };
    (0..count).map(open).collect()
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
    has_ended: AtomicBool,
}

/// Clients that send the same request again and again, each on its own connection.
pub(super) struct Askers {
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
}

impl Askers {
    pub(super) fn start(address: SocketAddr, request: &[u8], clients: usize) -> Self {
        let counts = Arc::new(Counts::default());
        let ask = |_| {
            let (counts, request) = (Arc::clone(&counts), request.to_vec());
            thread::spawn(move || {
                let mut stream = None;
                while !counts.has_ended.load(Ordering::Relaxed) {
                    if let Err(error) = ask(address, &request, &mut stream) {
                        eprintln!("lost: {error}");
                        counts.lost.fetch_add(1, Ordering::Relaxed);
                        stream = None;
                    }
                    counts.sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let threads = (0..clients).map(ask).collect();
        Self { counts, threads }
    }

    /// Waits until this number of requests was sent in all.
    pub(super) fn wait_for(&self, requests: u64) -> Result<(), String> {
        let began = Instant::now();
        while self.counts.sent.load(Ordering::Relaxed) < requests {
            if began.elapsed() > ASKING_TIME_MAX {
                return Err("the requests during a replacement take too long".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Ends the clients. Returns how many requests were sent, and how many were lost.
    pub(super) fn stop(self) -> (u64, u64) {
        self.counts.has_ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A client that panicked has counted what it sent.
            let _ = thread.join();
        }
        (self.counts.sent.load(Ordering::Relaxed), self.counts.lost.load(Ordering::Relaxed))
    }
}

/// Sends one request and reads its short response, on the open connection if there is one.
fn ask(address: SocketAddr, request: &[u8], open: &mut Option<TcpStream>) -> Result<(), String> {
    let mut stream = match open.take() {
        None => sent(address, request)?,
        Some(mut stream) => {
            stream.write_all(request).map_err(|error| format!("cannot send a request: {error}"))?;
            stream
        }
    };
    let (head, mut read) = read_head(&mut stream)?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head.lines().next().unwrap_or_default().to_owned());
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
    });
    let length = length.ok_or("a response without Content-Length")?;
    let mut buffer = [0; 4096];
    while read < length {
        match stream.read(&mut buffer) {
            Ok(0) => return Err("a response ended early".to_owned()),
            Ok(count) => read += count as u64,
            Err(error) => return Err(format!("a response broke: {error}")),
        }
    }
    *open = Some(stream);
    Ok(())
}
