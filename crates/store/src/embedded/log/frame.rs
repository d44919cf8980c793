//! Frames: what is committed together, while it is made and when it is found again.

use bytes::Bytes;

use super::coding::put_number;
use super::format::FRAME_HEADER_BYTES;
use super::hash::hash;

/// A frame that is being filled with records.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Frame {
    records: Vec<u8>,
    /// Shared with whoever handed them over: they are copied once, when the frame is sealed.
    payloads: Vec<Bytes>,
    payload_bytes: usize,
    /// The body of the record that is being made.
    body: Vec<u8>,
    /// Where that body has the distance of a payload beside the records, and where among these the payload begins.
    body_distance: Option<(usize, usize)>,
    distances: Vec<DeferredOffset>,
}

/// A distance that is known only when the last record is.
#[derive(Clone, Copy, Debug)]
struct DeferredOffset {
    /// Where the record begins and where in it the distance is.
    record: usize,
    at: usize,
    payload: usize,
}

/// A state of a frame to return to.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct Savepoint {
    records: usize,
    payloads: usize,
    payload_bytes: usize,
    distances: usize,
}

impl Frame {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Makes it empty, keeping its memory.
    pub fn clear(&mut self) {
        self.back_to(Savepoint { records: 0, payloads: 0, payload_bytes: 0, distances: 0 });
    }

    /// The length that it has in a segment.
    pub fn bytes(&self) -> usize {
        FRAME_HEADER_BYTES as usize + self.records.len() + self.payload_bytes
    }

    /// The records.
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// The present state.
    pub fn mark(&self) -> Savepoint {
        Savepoint {
            records: self.records.len(),
            payloads: self.payloads.len(),
            payload_bytes: self.payload_bytes,
            distances: self.distances.len(),
        }
    }

    /// Forgets what came after the mark.
    pub fn back_to(&mut self, mark: Savepoint) {
        self.records.truncate(mark.records);
        self.payloads.truncate(mark.payloads);
        self.payload_bytes = mark.payload_bytes;
        self.distances.truncate(mark.distances);
        self.body.clear();
        self.body_distance = None;
    }

    /// The body of the record that is being made; [`Self::end_record`] ends it.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Keeps bytes beside the records, and puts the distance to them into the body.
    pub fn put_out_of_line(&mut self, bytes: Bytes) {
        self.body_distance = Some((self.body.len(), self.payload_bytes));
        self.body.extend_from_slice(&[0; 4]);
        self.keep(bytes);
    }

    /// The body is complete.
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

    /// Adds a whole record as it is, with the payload that it keeps beside it.
    pub fn copy(&mut self, record: &[u8], beside: Option<(usize, Bytes)>) {
        let start = self.records.len();
        self.records.extend_from_slice(record);
        if let Some((at, bytes)) = beside {
            self.distances.push(DeferredOffset {
                record: start,
                at: start + at,
                payload: self.payload_bytes,
            });
            self.keep(bytes);
        }
    }

    /// Appends the frame as it is on disk, for this place in a segment with this salt. `synced`: what is before this
    /// in the segment is durable.
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

    fn keep(&mut self, payload: Bytes) {
        self.payload_bytes += payload.len();
        self.payloads.push(payload);
    }
}

/// A frame is whole only where it was written: old bytes elsewhere prove nothing.
fn seed(salt: u64, place: u32) -> u64 {
    salt.wrapping_add(u64::from(place))
}

/// The header of a frame that was found. Believed only when [`FrameHeader::is_whole`] says so.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct FrameHeader {
    hash: u64,
    /// Bytes of records behind the header.
    pub records: u32,
    /// Bytes of payloads behind those.
    pub payloads: u32,
    /// What was before this place in the segment was durable when the frame was written.
    pub synced: u32,
}

impl FrameHeader {
    /// Reads the header.
    pub fn decode(bytes: [u8; FRAME_HEADER_BYTES as usize]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let hash = u64::from(number(0)) | u64::from(number(4)) << 32;
        Self { hash, records: number(8), payloads: number(12), synced: number(16) }
    }

    /// The length of the whole frame.
    pub fn bytes(&self) -> u64 {
        u64::from(FRAME_HEADER_BYTES) + u64::from(self.records) + u64::from(self.payloads)
    }

    /// Whether the header and the records, which are `bytes`, are what was written here.
    pub fn is_whole(&self, bytes: &[u8], salt: u64, place: u32) -> bool {
        self.records != 0 && bytes.get(8..).is_some_and(|rest| hash(seed(salt, place), rest) == self.hash)
    }
}
