//! A closed log: the records by endpoint, each packed with gzip, and an index. A log beside it adds to it.
//!
//! ```text
//!   magic · packed records of one endpoint … · packed index · offset of the index (u64) · its checksum (u32) · magic
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use longshore_model::EndpointId;

use super::block::checksum;
use super::log;
use crate::varint;

const MAGIC: &[u8; 16] = b"longshore-hday1\n";
const FOOT_BYTES: u64 = 8 + 4 + 16;
/// Limit of unpacked records of one endpoint, in bytes: a day of the largest records has 5 MB.
const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// The units of a closed log, and where the records of an endpoint are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Index {
    /// The units that a server ran in, and whether one started in it. Ascending.
    units: Vec<(u64, bool)>,
    /// The endpoint's id, with the offset and the length of its packed records.
    endpoints: BTreeMap<Vec<u8>, (u64, u64)>,
}

/// The records of a closed log and of the log beside it. A clock that was set back makes a log of a day that is closed.
#[derive(Debug)]
pub(super) struct Closed {
    /// `None`: there is only the log.
    file: Option<(File, Index)>,
    /// The units of both, and whether a server started in them.
    units: BTreeMap<u64, bool>,
    /// The records of the log by endpoint, in the form that the closed log packs.
    added: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Closed {
    /// Opens a closed log and the log beside it. A file that is missing has nothing.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a file that is none, and I/O errors.
    pub(super) fn open(closed: &Path, log: &Path) -> io::Result<Self> {
        let file = match open(closed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let mut both = Self { file, units: BTreeMap::new(), added: BTreeMap::new() };
        for (unit, is_start) in both.file.iter().flat_map(|(_, index)| &index.units) {
            *both.units.entry(*unit).or_default() |= is_start;
        }
        log::read(log, |block| {
            *both.units.entry(block.unit).or_default() |= block.is_start;
            for (endpoint, record) in block.entries() {
                put(both.added.entry(endpoint.to_vec()).or_default(), block.unit, record);
            }
        })?;
        Ok(both)
    }

    /// The units, and whether a server started in them. Ascending, each once.
    pub(super) fn units(&self) -> impl Iterator<Item = (u64, bool)> + '_ {
        self.units.iter().map(|(unit, is_start)| (*unit, *is_start))
    }

    /// Calls `each` with the units and the bytes of the records of an endpoint, ascending. A unit can have several records.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the packed bytes were changed, and I/O errors.
    pub(super) fn read(&mut self, endpoint: &EndpointId, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
        let endpoint = endpoint.as_str().as_bytes();
        let (closed, added) = (self.packed(endpoint)?, self.added(endpoint));
        merged(&closed, added)?.into_iter().for_each(|(unit, record)| each(unit, record));
        Ok(())
    }

    /// Writes both as a closed log.
    fn write(&mut self, path: &Path) -> io::Result<()> {
        let mut index = Index { units: self.units().collect(), ..Index::default() };
        let mut file = File::create(path)?;
        let mut at = MAGIC.len() as u64;
        file.write_all(MAGIC)?;
        for endpoint in self.endpoints() {
            let closed = match self.packed(&endpoint) {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    tracing::error!(path = %path.display(), %error, "history of an endpoint damaged, it is left out");
                    Vec::new()
                }
                closed => closed?,
            };
            let mut records = Vec::new();
            merged(&closed, self.added(&endpoint))?
                .into_iter()
                .for_each(|(unit, record)| put(&mut records, unit, record));
            let packed = pack(&records)?;
            file.write_all(&packed)?;
            index.endpoints.insert(endpoint, (at, packed.len() as u64));
            at += packed.len() as u64;
        }
        let packed = pack(&index.encode())?;
        file.write_all(&packed)?;
        file.write_all(&at.to_le_bytes())?;
        file.write_all(&checksum(&packed).to_le_bytes())?;
        file.write_all(MAGIC)?;
        // The log is removed next: its records must be on disk.
        file.sync_all()
    }

    /// The endpoints of both, by id.
    fn endpoints(&self) -> BTreeSet<Vec<u8>> {
        let closed = self.file.iter().flat_map(|(_, index)| index.endpoints.keys());
        closed.chain(self.added.keys()).cloned().collect()
    }

    /// The records of an endpoint in the closed log.
    fn packed(&mut self, endpoint: &[u8]) -> io::Result<Vec<u8>> {
        let Some((file, index)) = &mut self.file else { return Ok(Vec::new()) };
        let Some((at, len)) = index.endpoints.get(endpoint) else { return Ok(Vec::new()) };
        let records = unpack(&read_at(file, *at, *len)?)?;
        entries(&records)?;
        Ok(records)
    }

    /// The records of an endpoint in the log.
    fn added(&self, endpoint: &[u8]) -> &[u8] {
        self.added.get(endpoint).map_or(&[], Vec::as_slice)
    }
}

/// Writes the closed form of a log, and removes the log. A closed form that is there already keeps its records.
///
/// # Errors
///
/// `InvalidData` if one of the files is none, and I/O errors; both are then as they were.
pub(super) fn close(log: &Path, closed: &Path) -> io::Result<()> {
    let draft = closed.with_extension("draft");
    if let Err(error) = Closed::open(closed, log)?.write(&draft) {
        // A draft that is not complete takes space of a full disk.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    fs::rename(&draft, closed)?;
    fs::remove_file(log)
}

/// Checks that a file is a closed log, or missing.
///
/// # Errors
///
/// `InvalidData` for a file that is none, and I/O errors.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => opened.map(drop),
    }
}

/// Opens a closed log, and reads its index.
///
/// # Errors
///
/// `InvalidData` for a file that is none, and I/O errors.
fn open(path: &Path) -> io::Result<(File, Index)> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let foot_at = len.checked_sub(FOOT_BYTES).ok_or_else(foreign)?;
    let mut foot = [0; FOOT_BYTES as usize];
    file.seek(SeekFrom::Start(foot_at))?;
    file.read_exact(&mut foot)?;
    let at = u64::from_le_bytes(foot[..8].try_into().map_err(|_| foreign())?);
    let sum = u32::from_le_bytes(foot[8..12].try_into().map_err(|_| foreign())?);
    if &foot[12..] != MAGIC || at > foot_at {
        return Err(foreign());
    }
    let packed = read_at(&mut file, at, foot_at - at)?;
    if checksum(&packed) != sum {
        return Err(foreign());
    }
    let index = Index::decode(&unpack(&packed)?).ok_or_else(foreign)?;
    Ok((file, index))
}

/// Appends a record of a unit.
fn put(records: &mut Vec<u8>, unit: u64, record: &[u8]) {
    varint::put(records, unit);
    varint::put(records, record.len() as u64);
    records.extend(record);
}

/// The units and the bytes of records.
fn entries(mut records: &[u8]) -> io::Result<Vec<(u64, &[u8])>> {
    let mut entries = Vec::new();
    while let Some(unit) = varint::take(&mut records) {
        entries.push((unit, varint::take_bytes(&mut records).ok_or_else(foreign)?));
    }
    Ok(entries)
}

/// The records of a closed log and of a log, by unit. What both have counts once: a server that was killed after it wrote
/// the closed log left the log.
fn merged<'a>(closed: &'a [u8], log: &'a [u8]) -> io::Result<Vec<(u64, &'a [u8])>> {
    let mut merged = entries(closed)?;
    let known: HashSet<_> = merged.iter().copied().collect();
    merged.extend(entries(log)?.into_iter().filter(|entry| !known.contains(entry)));
    merged.sort_by_key(|(unit, _)| *unit);
    Ok(merged)
}

impl Index {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.units.len() as u64);
        for (unit, is_start) in &self.units {
            varint::put(&mut bytes, *unit);
            varint::put(&mut bytes, u64::from(*is_start));
        }
        for (endpoint, (at, len)) in &self.endpoints {
            varint::put(&mut bytes, endpoint.len() as u64);
            bytes.extend(endpoint);
            varint::put(&mut bytes, *at);
            varint::put(&mut bytes, *len);
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let mut index = Self::default();
        for _ in 0..varint::take(bytes)? {
            index.units.push((varint::take(bytes)?, varint::take(bytes)? != 0));
        }
        while !bytes.is_empty() {
            let endpoint = varint::take_bytes(bytes)?.to_vec();
            index.endpoints.insert(endpoint, (varint::take(bytes)?, varint::take(bytes)?));
        }
        Some(index)
    }
}

fn read_at(file: &mut File, at: u64, len: u64) -> io::Result<Vec<u8>> {
    if at.checked_add(len).is_none_or(|end| end > file.metadata().map_or(0, |metadata| metadata.len())) {
        return Err(foreign());
    }
    let mut bytes = vec![0; len as usize];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(UNPACKED_BYTES_MAX).read_to_end(&mut bytes).map_err(|_| foreign())?;
    Ok(bytes)
}

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a closed log of history")
}
