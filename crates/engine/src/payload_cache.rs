//! Payloads that were written a moment ago, so that the usual job (submitted, taken and read within seconds)
//! never reads the disk. A cache: anything may be missing from it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use longshore_model::JobKey;
use longshore_store::{OutcomeRow, Payload};

/// What is cached of a job.
#[derive(Clone, Debug, Default)]
struct Entry {
    input: Option<Payload>,
    outcome: Option<OutcomeRow>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct CacheInner {
    jobs: HashMap<JobKey, Entry>,
    /// The order of arrival; may name jobs that are gone.
    order: VecDeque<JobKey>,
    bytes: usize,
}

/// Recently written payloads of all endpoints, bounded in bytes.
#[derive(Debug)]
pub(crate) struct PayloadCache {
    inner: Mutex<CacheInner>,
    bytes_max: usize,
}

/// What an entry costs besides its payload.
const ENTRY_BYTES: usize = 400;
/// Larger payloads fill their buffers well enough.
const COPIED_BYTES_MAX: usize = 16 * 1024;

impl PayloadCache {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { inner: Mutex::default(), bytes_max }
    }

    /// At most so many jobs have their place here.
    pub(crate) fn jobs_max(&self) -> usize {
        self.bytes_max / ENTRY_BYTES
    }

    pub(crate) fn put_input(&self, job: JobKey, input: &Payload) {
        let input = compact(input);
        self.update(job, |entry| entry.input = Some(input));
    }

    pub(crate) fn put_outcome(&self, job: JobKey, outcome: &OutcomeRow) {
        let outcome =
            OutcomeRow { output: outcome.output.as_ref().map(compact), error: outcome.error.clone() };
        self.update(job, |entry| entry.outcome = Some(outcome));
    }

    pub(crate) fn input(&self, job: JobKey) -> Option<Payload> {
        self.lock().jobs.get(&job)?.input.clone()
    }

    pub(crate) fn outcome(&self, job: JobKey) -> Option<OutcomeRow> {
        self.lock().jobs.get(&job)?.outcome.clone()
    }

    pub(crate) fn forget_outcome(&self, job: JobKey) {
        if let Some(entry) = self.lock().jobs.get_mut(&job) {
            entry.outcome = None;
        }
    }

    pub(crate) fn forget(&self, job: JobKey) {
        let mut inner = self.lock();
        if let Some(entry) = inner.jobs.remove(&job) {
            inner.bytes -= entry.bytes;
        }
    }

    /// After a failed commit nothing here can be trusted.
    pub(crate) fn clear(&self) {
        *self.lock() = CacheInner::default();
    }

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
        // Forgotten jobs leave their names behind; do not let those pile up.
        if inner.order.len() > 2 * inner.jobs.len() + 1024 {
            inner.order.retain(|job| inner.jobs.contains_key(job));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CacheInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A small payload is a slice of the connection's whole read buffer: kept here, it would keep that too.
fn compact(payload: &Payload) -> Payload {
    match payload {
        Payload::Inline(bytes) if bytes.len() <= COPIED_BYTES_MAX => {
            Payload::Inline(Bytes::copy_from_slice(bytes))
        }
        other => other.clone(),
    }
}

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
    fn the_oldest_payloads_make_room() {
        let recent = PayloadCache::new(10_000);
        for seq in 0..100 {
            recent.put_input(key(seq), &Payload::Inline(Bytes::from(vec![0; 1000])));
        }
        assert!(recent.input(key(99)).is_some());
        assert!(recent.input(key(0)).is_none());
        assert!(recent.lock().bytes <= 10_000);
    }

    #[test]
    fn forgotten_payloads_free_their_bytes() {
        let recent = PayloadCache::new(1 << 20);
        for seq in 0..5000 {
            recent.put_input(key(seq), &Payload::Inline(Bytes::from_static(b"x")));
            recent.forget(key(seq));
        }
        assert_eq!(recent.lock().bytes, 0);
        assert!(recent.lock().order.len() < 2000, "names of forgotten jobs pile up");
    }
}
