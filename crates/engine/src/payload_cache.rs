//! A cache of the payloads that were written last, so that a job that is taken and read soon after its submit is not read
//! from the disk. Every entry may be missing.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use longshore_model::JobKey;
use longshore_store::{OutcomeRow, Payload};

/// The cached payloads of one job.
#[derive(Clone, Debug, Default)]
struct Entry {
    input: Option<Payload>,
    outcome: Option<OutcomeRow>,
    /// The memory of this entry.
    bytes: usize,
}

#[derive(Debug, Default)]
struct CacheInner {
    jobs: HashMap<JobKey, Entry>,
    /// The order in which entries are evicted, the oldest first. May have keys of removed entries.
    order: VecDeque<JobKey>,
    /// The memory of all entries.
    bytes: usize,
}

/// The payloads of all endpoints that were written last. One per engine; volatile. An entry may have payloads that are not
/// durable yet, so a reload clears the cache.
#[derive(Debug)]
pub(crate) struct PayloadCache {
    inner: Mutex<CacheInner>,
    bytes_max: usize,
}

/// Memory of an entry besides its payloads, in bytes.
const ENTRY_BYTES: usize = 400;
/// Longest payload that is copied into the cache, in bytes. A larger one fills most of the buffer that it keeps in memory.
const COPIED_BYTES_MAX: usize = 16 * 1024;

impl PayloadCache {
    /// Returns an empty cache of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { inner: Mutex::default(), bytes_max }
    }

    /// The largest number of entries, which have no payloads then.
    pub(crate) fn jobs_max(&self) -> usize {
        self.bytes_max / ENTRY_BYTES
    }

    /// The memory of all entries, and the most that they may have, in bytes.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.lock().bytes, self.bytes_max)
    }

    /// Caches the input of a submitted job.
    pub(crate) fn put_input(&self, job: JobKey, input: &Payload) {
        let input = compact(input);
        self.update(job, |entry| entry.input = Some(input));
    }

    /// Caches a job's outcome or progress value, and replaces an earlier one.
    pub(crate) fn put_outcome(&self, job: JobKey, outcome: &OutcomeRow) {
        let outcome =
            OutcomeRow { output: outcome.output.as_ref().map(compact), error: outcome.error.clone() };
        self.update(job, |entry| entry.outcome = Some(outcome));
    }

    /// The job's input; `None` if it is not cached.
    pub(crate) fn input(&self, job: JobKey) -> Option<Payload> {
        self.lock().jobs.get(&job)?.input.clone()
    }

    /// The job's outcome or progress value; `None` if it is not cached.
    pub(crate) fn outcome(&self, job: JobKey) -> Option<OutcomeRow> {
        self.lock().jobs.get(&job)?.outcome.clone()
    }

    /// Removes the outcome of a job that is retried.
    pub(crate) fn forget_outcome(&self, job: JobKey) {
        if let Some(entry) = self.lock().jobs.get_mut(&job) {
            entry.outcome = None;
        }
    }

    /// Removes the entry of a deleted job.
    pub(crate) fn forget(&self, job: JobKey) {
        let mut inner = self.lock();
        if let Some(entry) = inner.jobs.remove(&job) {
            inner.bytes -= entry.bytes;
        }
    }

    /// Removes all entries. Needed after a failed commit: the payloads may belong to jobs that were not written.
    pub(crate) fn clear(&self) {
        *self.lock() = CacheInner::default();
    }

    /// Changes a job's entry, or a new one, and then evicts the oldest entries until the cache is within its bound.
    fn update(&self, job: JobKey, change: impl FnOnce(&mut Entry)) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let entry = inner.jobs.entry(job).or_insert_with(|| {
            inner.order.push_back(job);
            Entry::default()
        });
        inner.bytes -= entry.bytes;
        change(entry);
        entry.bytes = ENTRY_BYTES + cost(entry);
        inner.bytes += entry.bytes;
        while inner.bytes > self.bytes_max {
            let Some(oldest) = inner.order.pop_front() else { break };
            if let Some(entry) = inner.jobs.remove(&oldest) {
                inner.bytes -= entry.bytes;
            }
        }
        // Removed entries leave their keys in `order`: it has at most twice as many keys as there are entries, plus 1024.
        if inner.order.len() > 2 * inner.jobs.len() + 1024 {
            inner.order.retain(|job| inner.jobs.contains_key(job));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CacheInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies a small payload, which is a slice of its connection's read buffer and would keep the whole buffer in memory.
fn compact(payload: &Payload) -> Payload {
    match payload {
        Payload::Inline(bytes) if bytes.len() <= COPIED_BYTES_MAX => {
            Payload::Inline(Bytes::copy_from_slice(bytes))
        }
        other => other.clone(),
    }
}

/// The length of an entry's payloads in memory, in bytes. A payload in a file has none.
fn cost(entry: &Entry) -> usize {
    let size = |payload: &Option<Payload>| match payload {
        Some(Payload::Inline(bytes)) => bytes.len(),
        _ => 0,
    };
    let outcome = entry.outcome.as_ref();
    let error = outcome.and_then(|outcome| outcome.error.as_ref()).map_or(0, |error| error.len());
    size(&entry.input) + outcome.map_or(0, |outcome| size(&outcome.output)) + error
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_model::EndpointNo;

    fn key(seq: u64) -> JobKey {
        JobKey { endpoint: EndpointNo(1), seq }
    }

    #[test]
    fn the_oldest_payloads_are_evicted() {
        let cache = PayloadCache::new(10_000);
        for seq in 0..100 {
            cache.put_input(key(seq), &Payload::Inline(Bytes::from(vec![0; 1000])));
        }
        assert!(cache.input(key(99)).is_some());
        assert!(cache.input(key(0)).is_none());
        assert!(cache.lock().bytes <= 10_000);
    }

    #[test]
    fn removed_payloads_free_their_bytes() {
        let cache = PayloadCache::new(1 << 20);
        for seq in 0..5000 {
            cache.put_input(key(seq), &Payload::Inline(Bytes::from_static(b"x")));
            cache.forget(key(seq));
        }
        assert_eq!(cache.lock().bytes, 0);
        assert!(cache.lock().order.len() < 2000, "keys of removed entries accumulate");
    }
}
