//! Reads the records of endpoints out of one file, closed or not, into the steps of a span.

use std::io;
use std::path::Path;

use longshore_model::EndpointId;

use super::closed::Closed;
use super::folder::Unit;
use super::log;
use crate::{Buckets, DAY_MS, Record};

/// What is read: the units between two times, of some endpoints.
pub(super) struct Reader<'a> {
    /// What the records of the file are of.
    pub(super) unit: Unit,
    /// The start and the end, in ms.
    pub(super) range: (u64, u64),
    /// The days whose hours are left out.
    pub(super) open_days: &'a [u64],
    /// The endpoints, by id.
    pub(super) endpoints: &'a mut [(EndpointId, Buckets)],
    /// When servers started, in ms.
    pub(super) starts: &'a mut Vec<u64>,
}

impl Reader<'_> {
    /// Reads the closed file and the log; a file that is missing has nothing.
    ///
    /// # Errors
    ///
    /// `InvalidData` for a file that is no history, and I/O errors.
    pub(super) fn file(&mut self, closed: &Path, log: &Path) -> io::Result<()> {
        if !closed.exists() {
            return self.log(log);
        }
        match Closed::open(closed, log) {
            Err(error) => self.log(log).and(Err(error)),
            Ok(opened) => self.closed(opened),
        }
    }

    fn log(&mut self, path: &Path) -> io::Result<()> {
        let idle = Record::idle(self.unit.ms());
        log::read(path, |block| {
            let Some(at) = self.time(block.unit, block.is_start) else { return };
            let mut missing: Vec<bool> = vec![true; self.endpoints.len()];
            for (endpoint, record) in block.entries() {
                let found = self.endpoints.binary_search_by(|(id, _)| id.as_str().as_bytes().cmp(endpoint));
                if let (Ok(place), Some(record)) = (found, Record::decode(record)) {
                    self.endpoints[place].1.add(at, &record);
                    missing[place] = false;
                }
            }
            for ((_, buckets), _) in self.endpoints.iter_mut().zip(missing).filter(|(_, missing)| *missing) {
                buckets.add(at, &idle);
            }
        })
    }

    fn closed(&mut self, mut opened: Closed) -> io::Result<()> {
        let units: Vec<_> = opened.units().collect();
        let times: Vec<_> =
            units.into_iter().filter_map(|(unit, is_start)| self.time(unit, is_start)).collect();
        let unit_ms = self.unit.ms();
        let idle = Record::idle(unit_ms);
        for (endpoint, buckets) in self.endpoints.iter_mut() {
            let mut rest = times.iter().copied().peekable();
            opened.read(endpoint, |unit, record| {
                let at = unit.saturating_mul(unit_ms);
                while let Some(before) = rest.next_if(|time| *time < at) {
                    buckets.add(before, &idle);
                }
                rest.next_if_eq(&at);
                if times.binary_search(&at).is_ok()
                    && let Some(record) = Record::decode(record)
                {
                    buckets.add(at, &record);
                }
            })?;
            rest.for_each(|time| buckets.add(time, &idle));
        }
        Ok(())
    }

    /// The start of a unit in ms, if it is read.
    fn time(&mut self, unit: u64, is_start: bool) -> Option<u64> {
        let at = unit.checked_mul(self.unit.ms()).filter(|at| (self.range.0..self.range.1).contains(at))?;
        if self.unit == Unit::Hour && self.open_days.contains(&(at / DAY_MS)) {
            return None;
        }
        if is_start {
            self.starts.push(at);
        }
        Some(at)
    }
}
