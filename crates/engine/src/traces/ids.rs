//! The ids of traces and spans. They follow from the job, the kind of span and a number of the row, so that every server
//! finds the same ones.

use longshore_model::{JobId, JobRow, JobState, Millis, TraceContext, WorkerId};

use super::sampling::Sampling;

/// The kinds of spans, as numbers in the ids. Append, never reuse: a running job has ids of an earlier version.
#[derive(Clone, Copy)]
enum Kind {
    Job = 1,
    Queue = 2,
    Attempt = 3,
    Webhook = 4,
    Request = 5,
    WorkerStart = 6,
}

/// The trace of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobTrace {
    job: JobId,
    /// The id of the trace: the client's, else the job's UUID.
    pub(super) id: [u8; 16],
    /// The client's span; `None` if the job is the first of its trace.
    pub(super) parent: Option<[u8; 8]>,
    /// Whether the spans are sent: the client's word, else that of the server's settings.
    pub(super) is_sampled: bool,
}

impl JobTrace {
    pub(super) fn of(job: JobId, client: Option<&TraceContext>, sampling: Sampling) -> Self {
        match client {
            Some(client) => {
                Self { job, id: client.trace, parent: Some(client.span), is_sampled: client.is_sampled() }
            }
            None => Self { job, id: job.raw(), parent: None, is_sampled: sampling.takes(&job.raw()) },
        }
    }

    /// The context of a span of this trace.
    pub(super) fn context(&self, span: [u8; 8]) -> TraceContext {
        TraceContext::new(self.id, span, self.is_sampled)
    }

    /// The span of the job from its submit or its last client retry to its end.
    pub(super) fn job_span(&self, row: &JobRow) -> [u8; 8] {
        self.span(Kind::Job, row.retried_at.0, 0)
    }

    /// The span of the wait that the row names: the present one of a queued job, that before the attempt of a running one.
    pub(super) fn queue_span(&self, row: &JobRow) -> [u8; 8] {
        // A take counts the attempt that it begins.
        let taken = u32::from(row.state == JobState::InProgress);
        self.span(Kind::Queue, row.enqueued_at.0, u64::from(row.attempt.0.saturating_sub(taken)))
    }

    /// The span of the attempt that the row names.
    pub(super) fn attempt_span(&self, row: &JobRow) -> [u8; 8] {
        self.span(Kind::Attempt, u64::from(row.attempt.0), 0)
    }

    /// The span of a webhook call that was made at this time.
    pub(super) fn webhook_span(&self, number: u32, at: Millis) -> [u8; 8] {
        self.span(Kind::Webhook, u64::from(number), at.0)
    }

    /// The span of the request that submitted the job, from its start in µs.
    pub(super) fn request_span(&self, start_us: u64) -> [u8; 8] {
        self.span(Kind::Request, start_us, 0)
    }

    /// The span of the job's first run.
    pub(super) fn first_job_span(&self) -> [u8; 8] {
        self.span(Kind::Job, 0, 0)
    }

    fn span(&self, kind: Kind, number: u64, second: u64) -> [u8; 8] {
        let job = u128::from_be_bytes(self.job.raw());
        span_id([(job >> 64) as u64, job as u64, kind as u64, number, second])
    }
}

/// The trace and the span of a worker's start.
pub(super) fn worker_start(worker: &WorkerId, started_at: Millis) -> ([u8; 16], [u8; 8]) {
    let parts = |salt: u64| {
        let text = worker.as_str().as_bytes().chunks(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_be_bytes(bytes)
        });
        let seed = [Kind::WorkerStart as u64, salt, started_at.0];
        mixed(seed.into_iter().chain(text)).to_be_bytes()
    };
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&parts(1));
    trace[8..].copy_from_slice(&parts(2));
    (trace, parts(3))
}

fn span_id(parts: [u64; 5]) -> [u8; 8] {
    mixed(parts).to_be_bytes()
}

/// Mixes numbers into one that is not 0, by the finalizer of `SplitMix64`. On the wire: never change it.
fn mixed(parts: impl IntoIterator<Item = u64>) -> u64 {
    let mix = |state: u64, part: u64| {
        let mut mixed = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    // Ids of all zeros are no ids.
    parts.into_iter().fold(0, mix).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longshore_model::{Attempt, EndpointNo, JobKey};

    use super::*;

    fn row(number: u64) -> JobRow {
        let id = JobId::mint(Millis(1_700_000_000_000), u128::from(number), false);
        JobRow::queued(JobKey { endpoint: EndpointNo(1), seq: 1 }, id, Millis(1_700_000_000_000))
    }

    fn trace(row: &JobRow) -> JobTrace {
        JobTrace::of(row.id, row.trace.as_deref(), Sampling::of_ratio(1.0))
    }

    #[test]
    fn ids_are_those_of_every_version() {
        let row = JobRow { attempt: Attempt(1), ..row(7) };
        let trace = trace(&row);
        let hex = |span: [u8; 8]| const_hex::encode(span);
        assert_eq!(const_hex::encode(trace.id), "018bcfe5680070008000000000000007");
        assert_eq!(
            [trace.job_span(&row), trace.queue_span(&row), trace.attempt_span(&row)].map(hex),
            ["f1a8acc8a77997f0", "2da9593e367ff5cf", "2cfcf0017914e9f1"]
        );
    }

    #[test]
    fn spans_of_many_jobs_differ() {
        let mut ids = BTreeSet::new();
        for number in 0..200 {
            for (attempt, at) in (0..10).flat_map(|attempt| (0..5).map(move |at| (attempt, at))) {
                let row = JobRow {
                    attempt: Attempt(attempt),
                    enqueued_at: Millis(1_000 + at),
                    retried_at: Millis(u64::from(attempt) * 10 + at),
                    ..row(number)
                };
                let trace = trace(&row);
                ids.insert(trace.job_span(&row));
                ids.insert(trace.queue_span(&row));
                ids.insert(trace.webhook_span(attempt, Millis(at)));
            }
        }
        assert_eq!(ids.len(), 200 * 50 * 3);
    }

    #[test]
    fn the_clients_trace_and_word_are_taken_over() {
        let client = TraceContext::new([5; 16], [6; 8], false);
        let row = JobRow { trace: Some(Box::new(client)), ..row(1) };
        let trace = trace(&row);
        assert_eq!((trace.id, trace.parent, trace.is_sampled), ([5; 16], Some([6; 8]), false));
        assert_eq!(trace.context([9; 8]), TraceContext::new([5; 16], [9; 8], false));
    }

    #[test]
    fn a_workers_start_has_ids_of_its_own() {
        let id = |worker: &str, at| worker_start(&worker.parse().unwrap(), Millis(at));
        assert_eq!(id("worker-0001", 5), id("worker-0001", 5));
        assert_ne!(id("worker-0001", 5), id("worker-0002", 5));
        assert_ne!(id("worker-0001", 5), id("worker-0001", 6));
    }
}
