//! Connections to one worker. A connection that is idle serves the next request.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::early_answer::EarlyAnswer;

/// The body of a request to a worker. An error of it closes the connection.
pub type RequestBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// How long a worker may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an idle connection is used again. HTTP servers close idle connections, some after 2 s. A request that is sent
/// at that moment is lost.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// How long an idle connection may take to be ready. One whose worker answered before it had read the whole request is
/// never ready.
const READY_MAX: Duration = Duration::from_millis(10);
/// The largest number of idle connections to one worker.
const IDLE_LINKS_MAX: usize = 1_024;
/// The largest head of a response, and the largest piece of a body of one read, in bytes.
const BUFFER_BYTES_MAX: usize = 128 * 1024;

/// A stream of bytes to and from a server.
pub trait LinkStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> LinkStream for S {}

/// Opens a stream to a server.
pub type Dial =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<Box<dyn LinkStream>>> + Send>> + Send + Sync>;

/// How connections are opened.
enum Way {
    Tcp(SocketAddr),
    Dial(Dial),
}

/// A connection to a worker.
pub struct Link {
    sender: SendRequest<RequestBody>,
    /// When the connection last became idle.
    idle_since: Instant,
    deadline: Deadline,
}

impl Link {
    /// The sender of requests.
    pub fn sender(&mut self) -> &mut SendRequest<RequestBody> {
        &mut self.sender
    }

    /// The sender of requests, and the timer of the connection.
    pub fn parts(&mut self) -> (&mut SendRequest<RequestBody>, &mut Deadline) {
        (&mut self.sender, &mut self.deadline)
    }
}

/// The timer of a connection, which all its requests use: to move a timer to a later time takes no lock of the runtime, as
/// the registration of a new one does.
pub struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    /// A timer that is due at `at`, until it is set.
    pub fn new(at: Instant) -> Self {
        Self(Box::pin(sleep_until(at)))
    }

    /// Awaits a response; `None` if it does not come before `at`.
    pub async fn limit<T>(
        &mut self,
        at: Instant,
        mut answered: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        self.0.as_mut().reset(at);
        poll_fn(|context| match answered.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => self.0.as_mut().poll(context).map(|()| None),
        })
        .await
    }
}

/// The connections to one worker.
pub struct Links {
    way: Way,
    /// The idle connections; the one that became idle last is at the end.
    idle: Mutex<Vec<Link>>,
}

impl Links {
    /// The connections to this address, none of them open yet.
    pub fn to(address: SocketAddr) -> Self {
        Self { way: Way::Tcp(address), idle: Mutex::default() }
    }

    /// The connections that `dial` opens, none of them open yet.
    pub fn through(dial: Dial) -> Self {
        Self { way: Way::Dial(dial), idle: Mutex::default() }
    }

    /// Returns a connection that is ready for a request: one that is idle at `now`, or else a new one.
    ///
    /// # Errors
    ///
    /// The worker accepts no connection within 5 s.
    pub async fn link(&self, now: Instant) -> io::Result<Link> {
        while let Some(mut link) = self.pop(now) {
            if link.sender.is_ready() {
                return Ok(link);
            }
            // Boxed, as the next one: timers would enlarge the futures of all requests, and few need them.
            if Box::pin(timeout(READY_MAX, link.sender.ready())).await.is_ok_and(|it| it.is_ok()) {
                return Ok(link);
            }
        }
        Box::pin(self.fresh()).await
    }

    /// Returns a new connection.
    ///
    /// # Errors
    ///
    /// As [`Links::link`].
    pub async fn fresh(&self) -> io::Result<Link> {
        match &self.way {
            Way::Tcp(address) => connect(stream_to(*address).await?).await,
            Way::Dial(dial) => connect(dial().await?).await,
        }
    }

    /// Takes a connection back whose response is complete. It is idle since `now`.
    pub fn keep_idle(&self, now: Instant, mut link: Link) {
        if link.sender.is_closed() {
            return;
        }
        link.idle_since = now;
        let mut idle = self.idle();
        if idle.len() < IDLE_LINKS_MAX {
            idle.push(link);
        }
    }

    /// The connection that became idle last, unless it is closed or was idle for too long.
    fn pop(&self, now: Instant) -> Option<Link> {
        let mut idle = self.idle();
        loop {
            let link = idle.pop()?;
            if now.duration_since(link.idle_since) > IDLE_MAX {
                // The others have been idle for even longer.
                idle.clear();
                return None;
            }
            if !link.sender.is_closed() {
                return Some(link);
            }
        }
    }

    /// A poisoned list is valid, because every change is one call.
    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(stream: impl LinkStream + 'static) -> io::Result<Link> {
    let handshake = Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .handshake::<_, RequestBody>(TokioIo::new(EarlyAnswer::around(stream)));
    let (sender, connection) = handshake.await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        // Requests report its errors.
        let _ = connection.with_upgrades().await;
    });
    let now = Instant::now();
    Ok(Link { sender, idle_since: now, deadline: Deadline::new(now) })
}

/// Opens a TCP connection.
pub(super) async fn stream_to(address: SocketAddr) -> io::Result<TcpStream> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}
