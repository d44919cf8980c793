//! `Content-Encoding` of requests: gzip bodies are unpacked while they are read.
//!
//! A body is unpacked piece by piece as its reader takes it. The reader's bounds (size of a body, bytes in memory) hold
//! for the unpacked bytes, so that a small body that unpacks to a large one is refused as early.

use std::error::Error as _;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use http::header::CONTENT_ENCODING;
use http_body::{Body as HttpBody, Frame};
use thiserror::Error;

/// Unpacked bytes after which the task yields its thread.
const YIELD_BYTES: usize = 1_000_000;

/// Why a body cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Unreadable {
    #[error("the `Content-Encoding` is neither `gzip` nor `identity`, or more than one")]
    Encoding,
    #[error("the body is not gzip, as its `Content-Encoding` says it is, or not all of it")]
    Gzip,
}

impl Unreadable {
    /// Finds the error among the causes of a body's error.
    pub(crate) fn of(error: &axum::Error) -> Option<Self> {
        let mut cause = error.source();
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(*found);
            }
            cause = error.source();
        }
        None
    }
}

/// Wraps the request's body according to its `Content-Encoding`. A body that cannot be unpacked fails when it is read:
/// before authentication the sender must not learn anything.
pub(crate) fn unpack(request: &mut Request) {
    if request.body().is_end_stream() {
        return;
    }
    let mut encodings = request.headers().get_all(CONTENT_ENCODING).into_iter();
    let Some(encoding) = encodings.next() else { return };
    let encoding = encoding.as_bytes().trim_ascii();
    let is_one_of =
        |names: [&str; 2]| names.iter().any(|name| encoding.eq_ignore_ascii_case(name.as_bytes()));
    let is_alone = encodings.next().is_none();
    if is_alone && is_one_of(["", "identity"]) {
        return;
    }
    let is_gzip = is_alone && is_one_of(["gzip", "x-gzip"]);
    let packed = std::mem::take(request.body_mut());
    *request.body_mut() = Body::new(if is_gzip {
        Packed::Gzip(Box::new(Gunzip::new(packed)))
    } else {
        Packed::Unknown(packed)
    });
}

/// A body with a `Content-Encoding`.
enum Packed {
    /// Unpacked as it is read.
    Gzip(Box<Gunzip>),
    /// Fails when it is read. Kept until this body ends: an unread rest is discarded, so that the sender can read the refusal.
    Unknown(#[expect(dead_code, reason = "its end is what it is kept for")] Body),
}

impl HttpBody for Packed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut *self {
            Self::Gzip(gunzip) => {
                gunzip.poll_piece(context).map(|piece| Some(piece.transpose()?.map(Frame::data)))
            }
            Self::Unknown(_) => Poll::Ready(Some(Err(axum::Error::new(Unreadable::Encoding)))),
        }
    }
}

struct Gunzip {
    packed: Body,
    /// Packed bytes that have arrived and are not unpacked yet.
    input: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    has_begun: bool,
    has_ended: bool,
    /// Bytes that were unpacked since the task last yielded.
    bytes_since_yield: usize,
}

impl Gunzip {
    fn new(packed: Body) -> Self {
        let decoder = MultiGzDecoder::new(Vec::new());
        Self {
            packed,
            input: Bytes::new(),
            decoder,
            has_begun: false,
            has_ended: false,
            bytes_since_yield: 0,
        }
    }

    /// The next piece of unpacked bytes, of about 32 KiB at most; `None` at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, axum::Error>> {
        loop {
            let out = std::mem::take(self.decoder.get_mut());
            if !out.is_empty() {
                self.bytes_since_yield += out.len();
                return Poll::Ready(Ok(Some(Bytes::from(out))));
            }
            if self.has_ended {
                return Poll::Ready(Ok(None));
            }
            if self.bytes_since_yield >= YIELD_BYTES {
                self.bytes_since_yield = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.input.is_empty() {
                match std::task::ready!(Pin::new(&mut self.packed).poll_frame(context)) {
                    Some(frame) => self.input = frame?.into_data().unwrap_or_default(),
                    None => self.end()?,
                }
            } else {
                self.unpack()?;
            }
        }
    }

    fn unpack(&mut self) -> Result<(), axum::Error> {
        self.has_begun = true;
        match self.decoder.write(&self.input) {
            Ok(taken) if taken > 0 => self.input.advance(taken),
            // Bytes that were unpacked before are still in the buffer.
            Ok(_) if !self.decoder.get_ref().is_empty() => {}
            Ok(_) | Err(_) => return Err(self.invalid_gzip()),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), axum::Error> {
        self.has_ended = true;
        // An empty body is empty, packed or not.
        if self.has_begun && self.decoder.try_finish().is_err() {
            return Err(self.invalid_gzip());
        }
        Ok(())
    }

    fn invalid_gzip(&mut self) -> axum::Error {
        self.has_ended = true;
        self.decoder.get_mut().clear();
        axum::Error::new(Unreadable::Gzip)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures_util::stream;
    use http::StatusCode;
    use longshore_hostile::cases;
    use proptest::prelude::*;

    use super::*;
    use crate::wire::body::{self, BodyBudget};

    const BYTES_MAX: usize = 3_000_000;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// What a body in pieces of this size unpacks to; the code and status if it is refused.
    async fn read(
        encodings: &[&'static str],
        packed: &[u8],
        piece: usize,
    ) -> Result<Bytes, (&'static str, StatusCode)> {
        let pieces: Vec<_> =
            packed.chunks(piece).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        let mut request = Request::new(Body::from_stream(stream::iter(pieces)));
        for encoding in encodings {
            request.headers_mut().append(CONTENT_ENCODING, encoding.parse().unwrap());
        }
        unpack(&mut request);
        let budget = BodyBudget::new(2 * BYTES_MAX);
        let read = body::read(request.into_body(), BYTES_MAX, &budget).await;
        read.map(|read| read.bytes).map_err(|failure| (failure.code(), failure.status()))
    }

    const BAD_GZIP: Result<Bytes, (&str, StatusCode)> = Err(("bad_gzip", StatusCode::BAD_REQUEST));

    #[tokio::test]
    async fn what_was_packed_is_read_as_it_was() {
        let text: Vec<u8> = (0..1_000_000_u32).flat_map(|n| (n / 7).to_le_bytes()).take(BYTES_MAX).collect();
        let packed = gzip(&text);
        for piece in [1_000, 65_536, packed.len()] {
            assert_eq!(read(&["gzip"], &packed, piece).await.unwrap(), text, "in pieces of {piece}");
        }
        let parts = [gzip(b"in "), gzip(b"two parts")].concat();
        for piece in 1..parts.len() {
            assert_eq!(read(&["X-GZIP"], &parts, piece).await.unwrap(), "in two parts");
        }
        assert_eq!(read(&[" Identity "], b"as it is", 3).await.unwrap(), "as it is");
        assert_eq!(read(&["gzip"], b"", 3).await.unwrap(), "");
        assert_eq!(read(&["gzip"], &gzip(b""), 3).await.unwrap(), "");
    }

    #[tokio::test]
    async fn other_encodings_are_415() {
        for encodings in [
            &["br"][..],
            &["gzip, gzip"],
            &["gzip", "gzip"],
            &["identity", "br"],
            &["deflate"],
            &["gzip;q=1"],
        ] {
            let refused = read(encodings, &gzip(b"x"), 100).await;
            assert_eq!(
                refused,
                Err(("unsupported_encoding", StatusCode::UNSUPPORTED_MEDIA_TYPE)),
                "{encodings:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_cut_off_or_mutated_is_400() {
        let packed = gzip(b"{\"input\":{}}");
        for length in 1..packed.len() {
            assert_eq!(read(&["gzip"], &packed[..length], 7).await, BAD_GZIP, "{length} bytes of it");
        }
        for at in [0, 1, 2, packed.len() - 8, packed.len() - 1] {
            let mut mutated = packed.clone();
            mutated[at] ^= 0x55;
            assert_eq!(read(&["gzip"], &mutated, 100).await, BAD_GZIP, "byte {at}");
        }
        assert_eq!(read(&["gzip"], &[packed.as_slice(), b"more"].concat(), 100).await, BAD_GZIP);
    }

    #[tokio::test]
    async fn a_little_that_becomes_very_much_is_413() {
        let bomb = gzip(&vec![0; 100 * BYTES_MAX]);
        assert!(bomb.len() < BYTES_MAX / 8);
        let refused = read(&["gzip"], &bomb, 65_536).await;
        assert_eq!(refused, Err(("body_too_large", StatusCode::PAYLOAD_TOO_LARGE)));
        assert_eq!(read(&["gzip"], &gzip(&vec![0; BYTES_MAX + 1]), 65_536).await.unwrap_err().1, 413);
        assert_eq!(read(&["gzip"], &gzip(&vec![0; BYTES_MAX]), 65_536).await.unwrap().len(), BYTES_MAX);
    }

    #[tokio::test]
    async fn what_comes_out_counts_against_the_bytes_in_memory() {
        let mut request = Request::new(Body::from(gzip(&vec![0; 200_000])));
        request.headers_mut().insert(CONTENT_ENCODING, "gzip".parse().unwrap());
        unpack(&mut request);
        let refused = body::read(request.into_body(), BYTES_MAX, &BodyBudget::new(150_000)).await;
        assert_eq!(refused.unwrap_err().code(), "overloaded");
    }

    proptest! {
        #![proptest_config(cases(100))]

        #[test]
        fn any_bytes_end_well(bytes in longshore_hostile::bytes(), at in 0_usize..64, piece in 1_usize..50) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let mut mutated = gzip(&bytes);
            prop_assert_eq!(runtime.block_on(read(&["gzip"], &mutated, piece)).unwrap(), bytes.clone());
            let at = at % mutated.len();
            mutated[at] ^= 0x10;
            for body in [&bytes, &mutated] {
                if let Err((code, _)) = runtime.block_on(read(&["gzip"], body, piece)) {
                    prop_assert_eq!(code, "bad_gzip");
                }
            }
        }
    }
}
