//! A client that sends exactly the bytes that a test needs.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::Edge;

/// Longest wait of a test; a longer one is a failure.
pub(super) const DEADLINE: Duration = Duration::from_mins(2);

/// A served edge.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    pub(super) async fn start(edge: Edge) -> Self {
        Self::with_room_for(usize::MAX, edge).await
    }

    /// A server that accepts at most this many concurrent connections.
    pub(super) async fn with_room_for(connections_max: usize, edge: Edge) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async move {
            let _dropped_counts_too = stopped.await;
        };
        let serving = tokio::spawn(crate::serve(listener, edge, None, connections_max, shutdown));
        Self { address, stop, serving }
    }

    /// Starts the shutdown of the server; the task ends when the server has.
    pub(super) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).unwrap();
        self.serving
    }

    pub(super) async fn connect(&self) -> Wire {
        Wire { stream: TcpStream::connect(self.address).await.unwrap(), received: Vec::new() }
    }

    /// A connection whose kernel buffers at most this many bytes for the client. Without a limit the kernel chooses one,
    /// by the connections before.
    pub(super) async fn connect_buffering(&self, bytes: u32) -> Wire {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        Wire { stream: socket.connect(self.address).await.unwrap(), received: Vec::new() }
    }

    /// Sends one request on a connection of its own.
    pub(super) async fn ask(&self, head: &str, body: &[u8]) -> Answer {
        self.connect().await.ask(head, body).await
    }
}

/// One connection.
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    received: Vec<u8>,
}

/// One response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of an error, which has the one shape.
    pub(super) fn code(&self) -> String {
        let body = self.json();
        assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "error"]);
        body["code"].as_str().unwrap().to_owned()
    }
}

impl Wire {
    /// Sends a request (`POST /path` and further header lines, each on its own) and reads the response.
    pub(super) async fn ask(&mut self, head: &str, body: &[u8]) -> Answer {
        self.send(head, Some(body)).await;
        self.answer(head.starts_with("HEAD ")).await
    }

    /// Sends a request; its length is announced if there is a body.
    pub(super) async fn send(&mut self, head: &str, body: Option<&[u8]>) {
        let (first, rest) = head.split_once('\n').unwrap_or((head, ""));
        let mut lines = vec![format!("{first} HTTP/1.1"), "host: test".to_owned()];
        lines.extend(rest.lines().map(|line| line.trim().to_owned()));
        lines.extend(body.map(|body| format!("content-length: {}", body.len())));
        lines.extend([String::new(), String::new()]);
        let text = lines.join("\r\n");
        self.stream.write_all(text.as_bytes()).await.unwrap();
        if let Some(body) = body {
            self.stream.write_all(body).await.unwrap();
        }
    }

    /// Sends bytes as they are.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads one response.
    pub(super) async fn answer(&mut self, headless_body: bool) -> Answer {
        let (status, head) = self.head().await;
        let mut answer = Answer { status, head, body: Vec::new() };
        if headless_body || status == 204 || status == 100 {
            return answer;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let piece = self.piece().await;
                if piece.is_empty() {
                    return answer;
                }
                answer.body.extend_from_slice(&piece);
            }
        }
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = self.exactly(length).await;
        answer
    }

    /// Reads a response's status and head.
    pub(super) async fn head(&mut self) -> (u16, String) {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
    }

    /// Reads the next piece of a chunked body; empty at its end.
    pub(super) async fn piece(&mut self) -> Vec<u8> {
        let size = self.until(b"\r\n").await;
        let size = std::str::from_utf8(&size).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        let mut piece = self.exactly(size + 2).await;
        piece.truncate(size);
        piece
    }

    /// Whether the server closed the connection.
    pub(super) async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte).await, Ok(0) | Err(_))
    }

    async fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.received.windows(end.len()).position(|window| window == end) {
                return self.received.drain(..at + end.len()).collect();
            }
            self.receive().await;
        }
    }

    /// Reads this many bytes.
    pub(super) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            self.receive().await;
        }
        self.received.drain(..length).collect()
    }

    async fn receive(&mut self) {
        let mut buffer = vec![0; 65_536];
        let length = self.stream.read(&mut buffer).await.unwrap();
        let so_far = String::from_utf8_lossy(&self.received);
        assert!(length > 0, "the connection closed after {so_far:?}");
        self.received.extend_from_slice(&buffer[..length]);
    }
}
