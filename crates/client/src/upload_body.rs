//! A request's body that counts the bytes that were sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Most bytes that are passed to the connection in one piece when they are counted.
const PIECE_BYTES: usize = 64 * 1024;

/// The rest of a body, sent whole or in counted pieces.
pub(crate) struct UploadBody {
    pub(crate) left: Bytes,
    /// The counter of the bytes that were passed to the connection.
    pub(crate) sent: Option<Arc<AtomicU64>>,
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let most = if self.sent.is_some() { PIECE_BYTES } else { usize::MAX };
        let length = self.left.len().min(most);
        let piece = self.left.split_to(length);
        if let Some(sent) = &self.sent {
            sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}
