//! Frames in which a node gets the stream of an OpenAI client from the owner, so that it can go on with the next owner where the
//! client's text ends.
//!
//! ```text
//! frame   kind: 1 byte · attempt: 4 bytes · length: 4 bytes · that many bytes        (numbers: lowest byte first)
//! kind    0 a comment · 1 text of the stream · 2 the end
//! ```
//!
//! The text of an attempt is the same each time it is made from the chunks. So a later owner makes all of it, and leaves out as
//! many bytes as the client has.

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderName;
use longshore_model::Attempt;

/// On a request of a node: the number of bytes that the client has, and their attempt. On the response: it is in frames.
pub(crate) const FRAMES: HeaderName = HeaderName::from_static("x-longshore-frames");

/// Bytes before the content of a frame.
const HEAD_BYTES: usize = 9;

/// Where the stream of an OpenAI client goes on that another node passes on in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FramesFrom {
    /// The number of bytes of text that the client has.
    pub(crate) bytes: u64,
    /// The attempt that they are of.
    pub(crate) attempt: u32,
    /// Whether an earlier owner has begun the response.
    pub(crate) goes_on: bool,
}

/// What a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A comment, which is no part of the text.
    Comment = 0,
    /// Text of the stream.
    Text = 1,
    /// The stream has ended.
    End = 2,
}

/// Writes the stream of one client in frames, without the bytes of text that the client has.
#[derive(Debug)]
pub(crate) struct Framing {
    from: FramesFrom,
    /// Bytes of text that are still to be left out.
    skipped_bytes: u64,
}

impl Framing {
    pub(crate) fn new(from: FramesFrom) -> Self {
        Self { from, skipped_bytes: from.bytes }
    }

    /// Whether an earlier owner has begun the stream.
    pub(crate) fn goes_on(&self) -> bool {
        self.from.goes_on
    }

    /// The attempt of the text that the client has; `None` if it has none.
    pub(crate) fn attempt_before(&self) -> Option<Attempt> {
        (self.from.bytes > 0).then_some(Attempt(self.from.attempt))
    }

    /// A piece in a frame; empty if the client has all of it.
    pub(crate) fn frame(&mut self, kind: Kind, attempt: Attempt, mut piece: Vec<u8>) -> Vec<u8> {
        if self.skipped_bytes > 0 && kind != Kind::Text {
            return Vec::new();
        }
        let skipped = self.skipped_bytes.min(piece.len() as u64);
        self.skipped_bytes -= skipped;
        piece.drain(..usize::try_from(skipped).unwrap_or(usize::MAX));
        if piece.is_empty() { Vec::new() } else { framed(kind, attempt, &piece) }
    }

    /// Whether the client has text that has not been made again. Forgets it, so that what comes next is sent.
    pub(crate) fn gives_up(&mut self) -> bool {
        std::mem::take(&mut self.skipped_bytes) > 0
    }

    /// The frame after which nothing comes: the stream of this attempt has ended.
    pub(crate) fn end(attempt: Attempt) -> Vec<u8> {
        framed(Kind::End, attempt, &[])
    }
}

fn framed(kind: Kind, attempt: Attempt, content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + content.len());
    frame.push(kind as u8);
    frame.extend(attempt.0.to_le_bytes());
    frame.extend((content.len() as u32).to_le_bytes());
    frame.extend(content);
    frame
}

impl FramesFrom {
    /// The value of the header.
    pub(crate) fn to_text(self) -> String {
        format!("{} {} {}", self.bytes, self.attempt, u8::from(self.goes_on))
    }

    /// Reads the value of the header; `None` if no node wrote it.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let [bytes, attempt, goes_on] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
        Some(Self { bytes: bytes.parse().ok()?, attempt: attempt.parse().ok()?, goes_on: goes_on == "1" })
    }
}

/// Reads frames from pieces of any size, and counts the bytes of text that the client gets.
#[derive(Debug, Default)]
pub(crate) struct Unframing {
    /// Bytes that are no whole head yet.
    head: BytesMut,
    /// The kind of the current frame, and the bytes of it that are missing.
    current: Option<(u8, usize)>,
    /// The begin of a comment, which is passed on as a whole: text in its line would be lost.
    comment: BytesMut,
    /// What the client has.
    pub(crate) passed: FramesFrom,
    /// Whether the last frame has come.
    pub(crate) has_ended: bool,
}

impl Unframing {
    /// Forgets the frame that a lost owner has not finished.
    pub(crate) fn restart(&mut self) {
        self.head.clear();
        self.comment.clear();
        self.current = None;
    }

    /// Returns the content of what has come.
    pub(crate) fn push(&mut self, mut data: Bytes) -> Bytes {
        let mut out = BytesMut::new();
        while !data.is_empty() {
            let Some((kind, left)) = self.current else {
                let missing = HEAD_BYTES - self.head.len();
                let begun = data.split_to(missing.min(data.len()));
                self.head.extend_from_slice(&begun);
                if self.head.len() == HEAD_BYTES {
                    let (kind, attempt, bytes) =
                        (self.head.get_u8(), self.head.get_u32_le(), self.head.get_u32_le() as usize);
                    self.passed.attempt = attempt;
                    self.has_ended |= kind == Kind::End as u8;
                    self.current = (bytes > 0).then_some((kind, bytes));
                }
                continue;
            };
            let content = data.split_to(left.min(data.len()));
            self.current = (content.len() < left).then_some((kind, left - content.len()));
            if kind == Kind::Text as u8 {
                self.passed.bytes += content.len() as u64;
                out.extend_from_slice(&content);
                continue;
            }
            self.comment.extend_from_slice(&content);
            if self.current.is_none() {
                out.extend_from_slice(&self.comment.split());
            }
        }
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_owner_goes_on_at_every_byte() {
        let text = b"data: one\n\ndata: two\n\n".to_vec();
        let pieces = [text[..7].to_vec(), text[7..].to_vec()];
        let owner = |from: FramesFrom, pieces: &[Vec<u8>]| {
            let mut framing = Framing::new(from);
            let mut sent = framing.frame(Kind::Comment, Attempt(2), b": c\n\n".to_vec());
            for piece in pieces {
                sent.extend(framing.frame(Kind::Text, Attempt(2), piece.clone()));
            }
            sent.extend(Framing::end(Attempt(2)));
            sent
        };
        let first = owner(FramesFrom::default(), &pieces);
        for cut in 0..first.len() {
            for step in [1, 5, 1000] {
                let mut unframing = Unframing::default();
                let mut got = Vec::new();
                for part in first[..cut].chunks(step) {
                    got.extend_from_slice(&unframing.push(Bytes::copy_from_slice(part)));
                }
                assert!(!unframing.has_ended || cut == first.len());
                unframing.restart();
                // The next owner has other pieces of the same text.
                let second = owner(unframing.passed, std::slice::from_ref(&text));
                got.extend_from_slice(&unframing.push(Bytes::from(second)));
                assert!(unframing.has_ended);
                let got = String::from_utf8(got).unwrap().replace(": c\n\n", "");
                assert_eq!(got.as_bytes(), text, "cut at {cut}");
                let passed = FramesFrom { bytes: text.len() as u64, attempt: 2, goes_on: false };
                assert_eq!(unframing.passed, passed);
                assert_eq!(FramesFrom::of_text(&passed.to_text()), Some(passed));
            }
        }
    }
}
