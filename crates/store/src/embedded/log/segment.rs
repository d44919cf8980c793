//! The header of a segment, written once and synced before the segment gets its name.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::FileExt as _;

use super::format::{FORMAT_VERSION, MAGIC, SEGMENT_HEADER_BYTES};
use super::hash::hash;
use crate::StoreError;
use crate::embedded::error::corrupt;

/// Bytes of the header's fields; the hash follows.
const MEANING_BYTES: usize = 56;

/// The fields of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct SegmentHeader {
    /// The segment's number, from 1.
    pub number: u64,
    /// The random number that seeds the hashes of the segment's frames.
    pub salt: u64,
    /// The offset at which the frames of the previous segment end; 0 if there is none.
    pub previous_end: u64,
    /// The salt of the previous segment; 0 if there is none.
    pub previous_salt: u64,
    /// The number of the first segment of the log when this one was started.
    pub oldest: u64,
}

impl SegmentHeader {
    /// Returns a random salt.
    pub fn new_salt(number: u64) -> u64 {
        let mut random = RandomState::new().build_hasher();
        random.write_u64(number);
        random.finish()
    }

    /// Encodes the header as a page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(SEGMENT_HEADER_BYTES as usize);
        page.extend_from_slice(&MAGIC);
        page.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        page.extend_from_slice(&[0; 4]);
        for number in [self.number, self.salt, self.previous_end, self.previous_salt, self.oldest] {
            page.extend_from_slice(&number.to_le_bytes());
        }
        page.extend_from_slice(&hash(0, &page).to_le_bytes());
        page.resize(SEGMENT_HEADER_BYTES as usize, 0);
        page
    }

    /// Reads the header of segment `number`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is damaged or of another segment; [`StoreError::Unusable`] if a newer version wrote
    /// it.
    pub fn read(file: &File, number: u64) -> Result<Self, StoreError> {
        let mut bytes = [0; MEANING_BYTES + 8];
        file.read_exact_at(&mut bytes, 0).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => corrupt(number, 0_u32, "the header is cut off"),
            _ => StoreError::Io(format!("cannot read `log/{}`: {error}", super::names::segment(number))),
        })?;
        if bytes[..8] != MAGIC {
            return Err(corrupt(number, 0_u32, "not a segment of a log"));
        }
        let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        if version > FORMAT_VERSION {
            return Err(StoreError::Unusable(format!(
                "was written by a newer version (format {version}, this program knows up to {FORMAT_VERSION}); install \
                 that version or restore a backup from before the upgrade"
            )));
        }
        let mut numbers = [0; 6];
        for (number, bytes) in numbers.iter_mut().zip(bytes[16..].chunks_exact(8)) {
            *number = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        let [own_number, salt, previous_end, previous_salt, oldest, sum] = numbers;
        if sum != hash(0, &bytes[..MEANING_BYTES]) {
            return Err(corrupt(number, 0_u32, "the header is damaged"));
        }
        if own_number != number {
            return Err(corrupt(
                number,
                16_u32,
                format_args!("this is segment {own_number} under another name"),
            ));
        }
        if !(1..=number).contains(&oldest) {
            return Err(corrupt(number, 48_u32, "the oldest segment is out of range"));
        }
        Ok(Self { number, salt, previous_end, previous_salt, oldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_a_round_trip_and_any_changed_byte_is_noticed() {
        let header =
            SegmentHeader { number: 7, salt: 1 << 60, previous_end: 5000, previous_salt: 9, oldest: 3 };
        let page = header.encode();
        let read = |page: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(page, 0).unwrap();
            SegmentHeader::read(&file, 7)
        };
        assert_eq!(read(&page).unwrap(), header);
        for at in 0..MEANING_BYTES + 8 {
            let mut page = page.clone();
            page[at] ^= 1;
            let error = read(&page).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt(_) | StoreError::Unusable(_)), "{at}: {error:?}");
        }
        assert!(matches!(read(&page[..60]), Err(StoreError::Corrupt(_))));
    }
}
