//! A worker of the load-balancing scenario: a short answer, a long one, and a `WebSocket` that stays silent.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BODY: [u8; 100] = [b'x'; 100];
/// The answer to the scenario's `Sec-WebSocket-Key`, which `HAProxy` checks.
const ACCEPT: &str = "ICX+Yqv66kxgM0FcWaLWlFLwTAI=";
const PIECE_BYTES: usize = 64 * 1024;
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Serves HTTP on the port in `PORT`, until the process is ended.
///
/// # Errors
///
/// If the port is missing or cannot be listened on.
pub(super) fn serve() -> Result<(), String> {
    let port =
        std::env::var("PORT").ok().and_then(|port| port.parse::<u16>().ok()).ok_or("PORT is not set")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = listener.map_err(|error| format!("cannot listen on {port}: {error}"))?;
        loop {
            let (stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            tokio::spawn(async move {
                // The client has gone.
                let _ = answer_all(stream).await;
            });
        }
    })
}

/// Answers the requests of one connection.
async fn answer_all(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut data = Vec::new();
    loop {
        let Some(end) = data.windows(4).position(|four| four == b"\r\n\r\n") else {
            if data.len() > HEAD_BYTES_MAX || stream.read_buf(&mut data).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&data[..end]).into_owned();
        let length = header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        data.drain(..end + 4);
        while data.len() < length {
            if stream.read_buf(&mut data).await? == 0 {
                return Ok(());
            }
        }
        data.drain(..length);
        let path = head.split(' ').nth(1).unwrap_or_default();
        if header(&head, "upgrade").is_some() {
            return stay(stream).await;
        }
        if let Some(bytes) = path.strip_prefix("/stream?").and_then(|bytes| bytes.parse().ok()) {
            send(&mut stream, bytes).await?;
        } else {
            let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec();
            answer.extend_from_slice(&BODY);
            stream.write_all(&answer).await?;
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// Sends a body of this length.
async fn send(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let piece = vec![b'x'; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE_BYTES as u64) as usize;
        stream.write_all(&piece[..count]).await?;
        left -= count as u64;
    }
    Ok(())
}

/// Accepts a WebSocket, and says nothing.
async fn stay(mut stream: TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
    stream.write_all(format!("{head}Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n").as_bytes()).await?;
    let mut byte = [0];
    while stream.read(&mut byte).await? > 0 {}
    Ok(())
}
