//! Frames: the records and payloads of one group. Encoded by [`Frame`], found again by [`FrameHeader`].

use bytes::Bytes;

use super::coding::put_number;
use super::format::FRAME_HEADER_BYTES;
use super::hash::hash;

/// A frame that is being filled with records.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Frame {
    records: Vec<u8>,
    /// Out-of-line payloads, shared with the batches. They are copied once, by [`Self::seal`].
    payloads: Vec<Bytes>,
    payload_bytes: usize,
    /// The body of the current record.
    body: Vec<u8>,
    /// For a current record with an out-of-line payload: the offset of the distance field in the body, and the offset of
    /// the payload among the payloads.
    body_distance: Option<(usize, usize)>,
    distances: Vec<DeferredOffset>,
}

/// The distance from a record to its payload. It depends on the length of all records, so [`Frame::seal`] fills it in.
#[derive(Clone, Copy, Debug)]
struct DeferredOffset {
    /// The offset of the record among the records.
    record: usize,
    /// The offset of the distance field among the records.
    at: usize,
    /// The offset of the payload among the payloads.
    payload: usize,
}

/// A state of a frame, for [`Frame::back_to`].
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct Savepoint {
    records: usize,
    payloads: usize,
    payload_bytes: usize,
    distances: usize,
}

impl Frame {
    /// Whether the frame has no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Empties the frame and keeps its memory.
    pub fn clear(&mut self) {
        self.back_to(Savepoint { records: 0, payloads: 0, payload_bytes: 0, distances: 0 });
    }

    /// Returns the frame's length in a segment, in bytes.
    pub fn bytes(&self) -> usize {
        FRAME_HEADER_BYTES as usize + self.records.len() + self.payload_bytes
    }

    /// Returns the encoded records.
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// Returns the current state.
    pub fn mark(&self) -> Savepoint {
        Savepoint {
            records: self.records.len(),
            payloads: self.payloads.len(),
            payload_bytes: self.payload_bytes,
            distances: self.distances.len(),
        }
    }

    /// Removes the records and payloads that were added after the mark.
    pub fn back_to(&mut self, mark: Savepoint) {
        debug_assert!(mark.records <= self.records.len(), "a mark is not behind the end");
        self.records.truncate(mark.records);
        self.payloads.truncate(mark.payloads);
        self.payload_bytes = mark.payload_bytes;
        self.distances.truncate(mark.distances);
        self.body.clear();
        self.body_distance = None;
    }

    /// Returns the body of the current record, to append to. [`Self::end_record`] completes the record.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Adds an out-of-line payload, and its distance field to the body. A record has at most one.
    pub fn put_out_of_line(&mut self, bytes: Bytes) {
        debug_assert!(self.body_distance.is_none(), "a record has one out-of-line payload");
        self.body_distance = Some((self.body.len(), self.payload_bytes));
        self.body.extend_from_slice(&[0; 4]);
        self.add_payload(bytes);
    }

    /// Completes the current record as one of this kind.
    pub fn end_record(&mut self, kind: u8) {
        let record = self.records.len();
        self.records.push(kind);
        put_number(&mut self.records, self.body.len() as u64);
        if let Some((at, payload)) = self.body_distance.take() {
            self.distances.push(DeferredOffset { record, at: self.records.len() + at, payload });
        }
        self.records.extend_from_slice(&self.body);
        self.body.clear();
    }

    /// Adds a whole record as it is. `payload` is its out-of-line payload, with the offset of the distance field in the
    /// record.
    pub fn copy(&mut self, record: &[u8], payload: Option<(usize, Bytes)>) {
        let start = self.records.len();
        self.records.extend_from_slice(record);
        if let Some((at, bytes)) = payload {
            self.distances.push(DeferredOffset {
                record: start,
                at: start + at,
                payload: self.payload_bytes,
            });
            self.add_payload(bytes);
        }
    }

    /// Appends the frame's bytes for offset `place` of a segment with this salt, which is durable before offset `synced`.
    pub fn seal(&mut self, out: &mut Vec<u8>, salt: u64, place: u32, synced: u32) {
        for distance in &self.distances {
            let bytes = (self.records.len() - distance.record + distance.payload) as u32;
            self.records[distance.at..distance.at + 4].copy_from_slice(&bytes.to_le_bytes());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        for number in [self.records.len() as u32, self.payload_bytes as u32, synced, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.records);
        let sum = hash(seed(salt, place), &out[start + 8..]);
        out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
        for payload in &self.payloads {
            out.extend_from_slice(payload);
        }
    }

    fn add_payload(&mut self, payload: Bytes) {
        self.payload_bytes += payload.len();
        self.payloads.push(payload);
    }
}

/// The seed depends on segment and offset, so that the old bytes of a reused file are not taken for a frame.
fn seed(salt: u64, place: u32) -> u64 {
    salt.wrapping_add(u64::from(place))
}

/// The header of a frame as read. Its fields are valid only if [`FrameHeader::is_whole`] returns `true`.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct FrameHeader {
    hash: u64,
    /// The bytes of records, which follow the header.
    pub records: u32,
    /// The bytes of payloads, which follow the records.
    pub payloads: u32,
    /// The offset before which the segment was durable when the frame was written.
    pub synced: u32,
}

impl FrameHeader {
    /// Decodes a header without checking it.
    pub fn decode(bytes: [u8; FRAME_HEADER_BYTES as usize]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let hash = u64::from(number(0)) | u64::from(number(4)) << 32;
        Self { hash, records: number(8), payloads: number(12), synced: number(16) }
    }

    /// Returns the length of the whole frame in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(FRAME_HEADER_BYTES) + u64::from(self.records) + u64::from(self.payloads)
    }

    /// Whether `bytes`, the header and the records, are a frame written at offset `place` of a segment with this salt.
    pub fn is_whole(&self, bytes: &[u8], salt: u64, place: u32) -> bool {
        self.records != 0 && bytes.get(8..).is_some_and(|rest| hash(seed(salt, place), rest) == self.hash)
    }
}
