//! Upgraded connections: bytes pass between client and worker until one side has ended, or both are silent. Pings and
//! pongs of a `WebSocket` pass, and are no activity.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use longshore_engine::RequestSlot;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::frames::Frames;
use crate::gate::peer;
use crate::gate::rate_limits::RequestPermit;

/// Bytes that one read takes at most. All tunnels of a thread share one buffer of this size: an idle tunnel has none.
const READ_BYTES_MAX: usize = 32 * 1024;
/// How long the other direction may go on after one side has ended its sending.
const HALF_OPEN_MAX: Duration = Duration::from_secs(10);

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into_boxed_slice());
}

/// Makes the head of a response that of an upgrade.
pub(super) fn mark(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// Starts a tunnel that begins when both sides have upgraded. The request counts as outstanding until it ends. The client's
/// connection stays open and counted until then.
pub(super) fn start(
    client: OnUpgrade,
    worker: OnUpgrade,
    idle_timeout_ms: u64,
    held: (RequestSlot, Option<RequestPermit>),
) {
    let idle_max = (idle_timeout_ms > 0).then(|| Duration::from_millis(idle_timeout_ms));
    peer::set_tunnel(Box::pin(async move {
        // The request counts as outstanding while this is held.
        let (slot, _permit) = held;
        let (Ok(client), Ok(worker)) = tokio::join!(client, worker) else { return };
        let tunnel = Tunnel {
            up: Direction::default(),
            down: Direction::default(),
            client: TokioIo::new(client),
            worker: TokioIo::new(worker),
            idle_max,
            idle: idle_max.map(|idle_max| Box::pin(sleep(idle_max))),
            half_open: None,
        };
        if let Err(error) = tunnel.await {
            tracing::debug!(worker = %slot.worker().id(), %error, "upgraded connection ended early");
        }
    }));
}

/// One direction of a tunnel.
#[derive(Default)]
struct Direction {
    /// What was read and could not be written yet.
    pending: Vec<u8>,
    /// Tells what counts as activity.
    frames: Frames,
    has_ended: bool,
    is_shut_down: bool,
}

impl Direction {
    /// Passes on what there is, and is ready once the direction has ended. `is_active` is set if anything but pings and
    /// pongs was passed.
    fn pass(
        &mut self,
        context: &mut Context<'_>,
        from: &mut TokioIo<Upgraded>,
        to: &mut TokioIo<Upgraded>,
        is_active: &mut bool,
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.pending.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(context, &self.pending))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                *is_active = true;
                self.pending.drain(..written);
                if self.pending.is_empty() {
                    self.pending = Vec::new();
                }
            }
            if self.has_ended {
                if !self.is_shut_down {
                    ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                    self.is_shut_down = true;
                }
                return Poll::Ready(Ok(()));
            }
            let read = BUFFER.with_borrow_mut(|buffer| self.read(context, from, to, buffer));
            match read {
                Poll::Pending => {
                    ready!(Pin::new(&mut *to).poll_flush(context))?;
                    return Poll::Pending;
                }
                Poll::Ready(read) => *is_active |= read?,
            }
        }
    }

    /// Reads once and writes what can be written now. Returns whether anything but pings and pongs was read.
    fn read(
        &mut self,
        context: &mut Context<'_>,
        from: &mut TokioIo<Upgraded>,
        to: &mut TokioIo<Upgraded>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<bool>> {
        let mut space = ReadBuf::new(buffer);
        ready!(Pin::new(from).poll_read(context, &mut space))?;
        let read = space.filled();
        if read.is_empty() {
            self.has_ended = true;
            return Poll::Ready(Ok(false));
        }
        let written = match Pin::new(to).poll_write(context, read)? {
            Poll::Ready(written) => written,
            Poll::Pending => 0,
        };
        self.pending.extend_from_slice(&read[written..]);
        Poll::Ready(Ok(self.frames.note(read)))
    }
}

/// Two upgraded connections.
struct Tunnel {
    up: Direction,
    down: Direction,
    client: TokioIo<Upgraded>,
    worker: TokioIo<Upgraded>,
    idle_max: Option<Duration>,
    /// Ends when both sides have sent nothing but pings for too long.
    idle: Option<Pin<Box<Sleep>>>,
    /// Ends the tunnel a while after one side has ended.
    half_open: Option<Pin<Box<Sleep>>>,
}

impl Future for Tunnel {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { up, down, client, worker, idle_max, idle, half_open } = &mut *self;
        let mut is_active = false;
        let ended_up = up.pass(context, client, worker, &mut is_active)?;
        let ended_down = down.pass(context, worker, client, &mut is_active)?;
        if ended_up.is_ready() && ended_down.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if let (true, Some(idle), Some(idle_max)) = (is_active, idle.as_mut(), *idle_max) {
            idle.as_mut().reset(Instant::now() + idle_max);
        }
        if ended_up.is_ready() || ended_down.is_ready() {
            let left = half_open.get_or_insert_with(|| Box::pin(sleep(HALF_OPEN_MAX)));
            if left.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
        }
        match idle {
            Some(idle) => idle.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
            None => Poll::Pending,
        }
    }
}
