//! The history of all endpoints: recording, writing and reading.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{EndpointId, Millis};

use crate::copies::{Copies, MinuteCopy};
use crate::files::{Block, Folder, Unit};
use crate::recorder::{self, Observed, Recorder, Steps};
use crate::{Buckets, FAST_STEP_MS, Failures, HOUR_MS, MINUTE_MS, Record, SLOW_STEP_MS, Span};

/// Minutes that wait for a disk that cannot be written to.
const UNWRITTEN_MAX: usize = 120;

/// The history of all endpoints of a server.
#[derive(Debug)]
pub struct History {
    recorder: Mutex<Recorder>,
    /// Minutes that are not in files yet, the oldest first.
    unwritten: Mutex<VecDeque<Block>>,
    /// `None`: nothing is stored.
    folder: Mutex<Option<Folder>>,
    failures: Failures,
    /// `None`: minutes are not copied.
    copies: Option<Copies>,
}

/// What is known of endpoints in a span.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The span; its steps can be longer than was asked for.
    pub span: Span,
    /// The steps of each endpoint, by endpoint id.
    pub endpoints: Vec<(EndpointId, Buckets)>,
    /// When servers started, in ms since 1970: the start of the minute or hour. Empty for steps below a minute.
    pub starts: Vec<u64>,
}

/// What is read from where: decided once for any number of endpoints, so that all have the same span.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The span; its steps can be longer than was asked for.
    pub span: Span,
    source: Source,
}

/// Where a span is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory(Steps),
    Files(Unit),
}

impl Source {
    fn step_ms(self) -> u64 {
        match self {
            Self::Memory(Steps::Fast) => FAST_STEP_MS,
            Self::Memory(Steps::Slow) => SLOW_STEP_MS,
            Self::Files(unit) => unit.ms(),
        }
    }
}

impl History {
    /// A history without files, which ends with the process.
    pub fn in_memory(now: Millis) -> Self {
        let recorder = Mutex::new(Recorder::new(now));
        let failures = Failures::default();
        Self { recorder, unwritten: Mutex::default(), folder: Mutex::new(None), failures, copies: None }
    }

    /// The history in a folder, which is made if it is missing. Blocks. Minutes have about `bytes_max` bytes at most.
    ///
    /// # Errors
    ///
    /// The folder cannot be made. Files in it that are no history are logged and set aside.
    pub fn open(path: &Path, bytes_max: u64, now: Millis) -> io::Result<Self> {
        let folder = Folder::open(path, bytes_max)?;
        let failures = Failures::open(&path.join("failures"))?;
        Ok(Self { folder: Mutex::new(Some(folder)), failures, ..Self::in_memory(now) })
    }

    /// Keeps a copy of each minute that is over, for [`Self::take_copies`].
    #[must_use]
    pub fn with_copies(self) -> Self {
        Self { copies: Some(Copies::default()), ..self }
    }

    /// Takes the copies of minutes that are over, the oldest first.
    pub fn take_copies(&self) -> Vec<MinuteCopy> {
        self.copies.as_ref().map(Copies::take).unwrap_or_default()
    }

    /// Returns copies that had no place; the next call takes them again.
    pub fn return_copies(&self, copies: Vec<MinuteCopy>) {
        if let Some(kept) = &self.copies {
            kept.give_back(copies);
        }
    }

    /// Adds minutes that another server copied to the files of this one. Blocks. Bytes that are no minute are left out.
    ///
    /// # Errors
    ///
    /// Some minutes could not be written.
    pub fn add_copies(&self, copies: &[Vec<u8>]) -> io::Result<()> {
        let minutes = copies.iter().filter_map(|bytes| Block::decode(bytes)).collect();
        lock(&self.folder).as_mut().map_or(Ok(()), |folder| folder.add(minutes))
    }

    /// Why jobs failed: the failures of all endpoints, in groups.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The memory of the steps and of the groups of failures, and the most of both together, in bytes.
    pub fn in_use(&self) -> (usize, usize) {
        let (failures, failures_max) = self.failures.in_use();
        (lock(&self.recorder).len_bytes() + failures, recorder::BYTES_MAX + failures_max)
    }

    /// Reads what endpoints did since the last call; to be called when a step of 2 s is over. Never blocks on files.
    /// Returns whether [`Self::write`] has a minute to write.
    pub fn sample<'a>(&self, now: Millis, observed: impl IntoIterator<Item = Observed<'a>>) -> bool {
        let block = lock(&self.recorder).sample(now, observed);
        self.keep(block);
        !lock(&self.unwritten).is_empty()
    }

    /// Ends the present minute, for [`Self::write`] at the end of the process.
    pub fn end_minute(&self) {
        let block = lock(&self.recorder).take_minute();
        self.keep(block);
    }

    fn keep(&self, block: Option<Block>) {
        if let (Some(copies), Some(block)) = (&self.copies, &block) {
            copies.keep(block);
        }
        let mut unwritten = lock(&self.unwritten);
        unwritten.extend(block);
        if unwritten.len() > UNWRITTEN_MAX {
            unwritten.pop_front();
        }
    }

    /// Writes the minutes that are over, and the failures. Blocks.
    ///
    /// # Errors
    ///
    /// Some minutes or failures could not be written; the next call tries them again.
    pub fn write(&self) -> io::Result<()> {
        let mut folder = lock(&self.folder);
        let mut blocks: Vec<Block> = std::mem::take(&mut *lock(&self.unwritten)).into();
        let Some(folder) = folder.as_mut() else { return Ok(()) };
        let written = folder.append(&mut blocks);
        // A minute that was written and comes again would count twice.
        let mut unwritten = lock(&self.unwritten);
        blocks.into_iter().rev().for_each(|block| unwritten.push_front(block));
        drop(unwritten);
        written.and(self.failures.write())
    }

    /// Decides how to read from `from` to `to` in steps of `step_ms` or more. Blocks if it has to look at files.
    pub fn plan(&self, from: u64, to: u64, step_ms: u64) -> Plan {
        let source = self.source(from, step_ms);
        Plan { span: Span::of(from, to, step_ms.max(1).next_multiple_of(source.step_ms())), source }
    }

    /// What is known of the endpoints, also of the minutes that are not in files yet. Blocks while it reads files.
    pub fn read(&self, plan: Plan, endpoints: &[EndpointId]) -> Timeline {
        let Plan { span, source } = plan;
        let mut ids = endpoints.to_vec();
        ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        ids.dedup();
        let mut endpoints: Vec<_> = ids.iter().map(|id| (*id, Buckets::unknown(span))).collect();
        let mut starts = Vec::new();
        match source {
            Source::Memory(steps) => {
                // Samples wait for the recorder: it is only copied from.
                let copied = lock(&self.recorder).copy(steps, &ids);
                copied.read(endpoints.iter_mut().map(|(_, buckets)| buckets));
            }
            Source::Files(unit) => {
                // While it is locked, no minute is written.
                let folder = lock(&self.folder);
                if let Some(folder) = folder.as_ref() {
                    starts = folder.read(unit, (span.from, span.to), &mut endpoints);
                }
                self.add_unwritten(&ids, &mut endpoints);
            }
        }
        Timeline { span, endpoints, starts }
    }

    /// What happened at an endpoint since about `from` (in ms), up to the last sample, as far as memory has it: it has steps of 10 s
    /// of two hours at most. `None` if nothing is known. Never blocks on files.
    pub fn recent(&self, endpoint: &EndpointId, from: u64) -> Option<Record> {
        // Samples wait for the recorder: it is only copied from.
        let copied = lock(&self.recorder).slow_steps(endpoint);
        let (steps, present) = copied?;
        let mut total = Record::default();
        for (_, record) in steps.steps_from(from / SLOW_STEP_MS) {
            total.extend(&record);
        }
        total.extend(&present);
        Some(total)
    }

    /// Adds the minutes that are not in files yet, also the present one so far. The endpoints are in the order of `ids`.
    fn add_unwritten(&self, ids: &[EndpointId], endpoints: &mut [(EndpointId, Buckets)]) {
        // The present minute first: one that is over meanwhile is among the unwritten ones, and is left out there.
        let present = lock(&self.recorder).minute(ids);
        let unwritten = lock(&self.unwritten);
        let is_over = |block: &&Block| present.as_ref().is_none_or(|(minute, _)| block.unit != *minute);
        for block in unwritten.iter().filter(is_over) {
            let records: BTreeMap<_, _> = block.records.iter().map(|(id, record)| (id, record)).collect();
            for (id, buckets) in &mut *endpoints {
                buckets.add(block.unit * MINUTE_MS, records.get(id).copied().unwrap_or(&Record::default()));
            }
        }
        drop(unwritten);
        if let Some((minute, records)) = present {
            let buckets = endpoints.iter_mut().map(|(_, buckets)| buckets);
            buckets.zip(&records).for_each(|(buckets, record)| buckets.add(minute * MINUTE_MS, record));
        }
    }

    /// The finest source that reaches back to `from`; memory also if nothing older is in files.
    fn source(&self, from: u64, step_ms: u64) -> Source {
        if step_ms >= HOUR_MS {
            return Source::Files(Unit::Hour);
        }
        if step_ms >= MINUTE_MS {
            return self.finest_files(from);
        }
        let known_from = |steps| lock(&self.recorder).known_from(steps);
        // The recorder is free again while files are read.
        let reaches =
            |steps| known_from(steps).is_some_and(|known| known <= from || !self.has_minutes_before(known));
        match () {
            () if step_ms < SLOW_STEP_MS && reaches(Steps::Fast) => Source::Memory(Steps::Fast),
            () if reaches(Steps::Slow) => Source::Memory(Steps::Slow),
            // The server has just started.
            () if reaches(Steps::Fast) => Source::Memory(Steps::Fast),
            () => self.finest_files(from),
        }
    }

    /// The files that reach back to `from`, in ms: minutes are removed before hours.
    fn finest_files(&self, from: u64) -> Source {
        let has_only_hours = lock(&self.folder).as_ref().is_some_and(|folder| folder.has_only_hours_at(from));
        Source::Files(if has_only_hours { Unit::Hour } else { Unit::Minute })
    }

    /// Whether files have minutes before the one that this time is in. The minute in which the server started begins before
    /// its first step.
    fn has_minutes_before(&self, at: u64) -> bool {
        let minute = at / MINUTE_MS * MINUTE_MS;
        lock(&self.folder).as_ref().is_some_and(|folder| folder.has_minutes_before(minute))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
