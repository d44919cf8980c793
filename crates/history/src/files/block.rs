//! A block: the records of all endpoints in one minute or hour, as bytes with their length and a checksum.

use std::collections::BTreeMap;

use longshore_model::EndpointId;
use twox_hash::XxHash3_64;

use crate::{Record, varint};

/// The length of the head of a block, in bytes: the length of the rest, and its checksum, both as little endian `u32`.
pub(super) const HEAD_BYTES: usize = 8;
/// A longer block is none. One of 100 000 endpoints has about 16 MB.
const BLOCK_BYTES_MAX: usize = 256 << 20;
/// The flag of a block in which a server started.
const IS_START: u64 = 1;

/// What happened in one minute or hour. Endpoints at which nothing happened are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The number of the minute or hour since 1970.
    pub(crate) unit: u64,
    /// Whether a server started in it.
    pub(crate) is_start: bool,
    /// The endpoints and their records.
    pub(crate) records: Vec<(EndpointId, Record)>,
}

/// A block whose records are not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawBlock<'a> {
    pub(super) unit: u64,
    pub(super) is_start: bool,
    entries: &'a [u8],
}

impl Block {
    /// The bytes of the block, with their head.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        varint::put(&mut bytes, self.unit);
        varint::put(&mut bytes, u64::from(self.is_start) * IS_START);
        let mut encoded = Vec::new();
        for (endpoint, record) in &self.records {
            encoded.clear();
            record.encode(&mut encoded);
            varint::put(&mut bytes, endpoint.as_str().len() as u64);
            bytes.extend(endpoint.as_str().as_bytes());
            varint::put(&mut bytes, encoded.len() as u64);
            bytes.extend(&encoded);
        }
        let (len, checksum) = ((bytes.len() - HEAD_BYTES) as u32, checksum(&bytes[HEAD_BYTES..]));
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The block of these bytes, with its records by endpoint id; `None` if they are not one whole block.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let block = RawBlock::take(&mut bytes)?;
        bytes.is_empty().then(|| block.decoded())
    }
}

impl<'a> RawBlock<'a> {
    /// Takes a block from the start of `bytes`; `None` if there is no whole one.
    pub(super) fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let len = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
        let sum = u32::from_le_bytes(head[4..].try_into().ok()?);
        let (mut content, rest) = rest.split_at_checked(Some(len).filter(|len| *len <= BLOCK_BYTES_MAX)?)?;
        if checksum(content) != sum {
            return None;
        }
        let unit = varint::take(&mut content)?;
        let flags = varint::take(&mut content)?;
        *bytes = rest;
        Some(Self { unit, is_start: flags & IS_START != 0, entries: content })
    }

    /// A block with its records by endpoint id. Records of another version are left out.
    pub(super) fn decoded(&self) -> Block {
        let records: BTreeMap<_, _> = self.entries().filter_map(parsed).collect();
        Block { unit: self.unit, is_start: self.is_start, records: records.into_iter().collect() }
    }

    /// The endpoints and the bytes of their records.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || Some((varint::take_bytes(&mut rest)?, varint::take_bytes(&mut rest)?)))
    }
}

/// The endpoint and the record of an entry; `None` for bytes of another version.
pub(super) fn parsed((endpoint, record): (&[u8], &[u8])) -> Option<(EndpointId, Record)> {
    Some((std::str::from_utf8(endpoint).ok()?.parse().ok()?, Record::decode(record)?))
}

/// A short hash of bytes, to find those that were cut off or changed.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}
