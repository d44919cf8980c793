//! Reads the response of a worker that stopped reading.
//!
//! A worker may respond before it has read the whole request, and then close the connection. The kernel of the worker
//! answers the rest of the request with a reset, and the next write fails, although the response has arrived and can still
//! be read. hyper would give it up at the failed write. So the failure is kept until there is nothing left to read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long a failed write may wait for a read. hyper stops reading while its caller reads nothing, and for good if it has
/// read more than a response.
const READ_PAUSE_MAX: Duration = Duration::from_secs(10);

/// A stream that reports a failed write when it has no more to read. Until then, writes are pending: a connection that
/// takes no more bytes ends soon, so that the reads do, too.
pub(super) struct EarlyAnswer<S> {
    inner: S,
    /// The first failure of a write; boxed, because few connections have one.
    failed: Option<Box<FailedWrite>>,
    /// Whether there is nothing left to read.
    is_read: bool,
}

struct FailedWrite {
    kind: io::ErrorKind,
    /// Ends [`READ_PAUSE_MAX`] after the last read.
    pause: Pin<Box<Sleep>>,
}

impl<S> EarlyAnswer<S> {
    pub(super) fn around(inner: S) -> Self {
        Self { inner, failed: None, is_read: false }
    }
}

impl<S: AsyncWrite + Unpin> EarlyAnswer<S> {
    fn poll_through<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let failed = match &mut self.failed {
            Some(failed) => failed,
            None => match write(Pin::new(&mut self.inner), context) {
                Poll::Ready(Err(error)) if !self.is_read && is_of_the_peer(&error) => {
                    let pause = Box::pin(sleep(READ_PAUSE_MAX));
                    self.failed.insert(Box::new(FailedWrite { kind: error.kind(), pause }))
                }
                written => return written,
            },
        };
        if self.is_read || failed.pause.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(failed.kind.into()));
        }
        Poll::Pending
    }
}

/// Whether the peer closed the connection. Its response may have arrived before.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

impl<S: AsyncRead + Unpin> AsyncRead for EarlyAnswer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(context, buffer));
        self.is_read |= read.is_err() || (buffer.filled().len() == before && buffer.remaining() > 0);
        let Self { failed, is_read, .. } = &mut *self;
        match failed {
            // The end after a reset is not that of a whole response.
            Some(failed) if *is_read && read.is_ok() => return Poll::Ready(Err(failed.kind.into())),
            Some(failed) => failed.pause.as_mut().reset(Instant::now() + READ_PAUSE_MAX),
            None => {}
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for EarlyAnswer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_through(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_through(context, |inner, context| match pieces {
            // A head without a body. The kernel takes one piece in less time than a list of one.
            [piece] => inner.poll_write(context, piece),
            _ => inner.poll_write_vectored(context, pieces),
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";

    /// A worker that answers, reads nothing, and closes the connection.
    async fn impatient(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.readable().await.unwrap();
            stream.write_all(answer).await.unwrap();
            // Unread bytes make the close a reset.
            drop(stream);
        });
        address
    }

    /// Writes until a write is pending for a failure.
    async fn write_until_failed(stream: &mut EarlyAnswer<TcpStream>) {
        let piece = [0; 4_096];
        let failed = poll_fn(|context| {
            loop {
                match Pin::new(&mut *stream).poll_write(context, &piece) {
                    Poll::Ready(written) => drop(written.unwrap()),
                    Poll::Pending if stream.failed.is_some() => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        timeout(Duration::from_secs(20), failed).await.unwrap();
    }

    #[tokio::test]
    async fn what_arrived_before_a_reset_is_read() {
        let mut stream = EarlyAnswer::around(TcpStream::connect(impatient(ANSWER).await).await.unwrap());
        write_until_failed(&mut stream).await;
        let mut answer = vec![0; ANSWER.len()];
        timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, ANSWER);
        // Then comes the failure, and not the end of a response.
        let error = timeout(Duration::from_secs(20), stream.read(&mut answer)).await.unwrap().unwrap_err();
        assert!(is_of_the_peer(&error), "{error}");
    }

    #[tokio::test]
    async fn a_reset_without_an_answer_is_a_failure() {
        let mut stream = EarlyAnswer::around(TcpStream::connect(impatient(b"").await).await.unwrap());
        write_until_failed(&mut stream).await;
        let error = timeout(Duration::from_secs(20), stream.read(&mut [0; 10])).await.unwrap().unwrap_err();
        assert!(is_of_the_peer(&error), "{error}");
    }

    /// A stream whose writes fail, and which has this to read.
    struct Broken(&'static [u8]);

    impl AsyncRead for Broken {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            buffer.put_slice(self.0);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Broken {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_write_after_the_end_of_the_reads_fails() {
        let mut stream = EarlyAnswer::around(Broken(b""));
        assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_write_waits_for_reads_as_long_as_there_are_any() {
        let mut stream = EarlyAnswer::around(Broken(b"some"));
        for _ in 0..3 {
            assert!(timeout(READ_PAUSE_MAX / 2, stream.write(b"more")).await.is_err());
            assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 4);
        }
        let began = Instant::now();
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(began.elapsed() >= READ_PAUSE_MAX);
    }
}
