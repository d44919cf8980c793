//! What is known of a job.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::consumed::ConsumingRead;
use super::time_bounds::{EventTime, Span};
use super::wire::{PostContent, ShownState};

/// Number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobNo(pub usize);

/// Number of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EndpointNo(pub usize);

/// Number of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WorkerNo(pub usize);

/// What is known of a job.
#[derive(Debug)]
pub(super) struct Job {
    pub id: Box<str>,
    pub endpoint: EndpointNo,
    pub is_sync: bool,
    /// The job's submit; unknown until its response.
    pub submission: Option<Submission>,
    /// When a client was told that the job was accepted.
    pub acknowledged: Option<EventTime>,
    /// When the job was first observed.
    pub known: EventTime,
    /// When the server's clock shows this time, the job's ttl has passed.
    pub ttl: Deadline,
    /// Whether a client has chosen the deletion time.
    pub pin: Pin,
    /// The last response to a new ttl or a retry.
    pub renewed: Option<EventTime>,
    /// The last observation of the job.
    pub touched: EventTime,
    /// Whether a power cut may have undone the job. Nothing is checked then.
    pub is_void: bool,
    /// The event after which no response may show the job.
    pub gone: Option<EventTime>,
    /// Number of retries that took effect.
    pub retries_done: u32,
    pub cycle: JobCycle,
    /// The ends before retries, if known.
    pub past: Vec<Terminal>,
    pub deliveries: Vec<Delivery>,
    pub posts: Vec<Post>,
    pub cancels: Vec<Span>,
    /// Retries that may have taken effect, or still may, by exchange.
    pub retries: Vec<(u64, Span)>,
    /// Chunks that workers posted.
    pub chunks: Vec<Post>,
    /// Hash of the chunk at each offset, as far as shown to followers.
    pub log: BTreeMap<u64, u64>,
    /// Whether a worker without a delivery posted for the job.
    pub has_foreign_post: bool,
    /// Reads that consumed chunks.
    pub consuming_reads: Vec<ConsumingRead>,
    pub webhook: WebhookCalls,
    /// The delivered input, while the submit is unknown.
    pub delivered_input: Option<Bytes>,
}

/// Whether a client has chosen a job's deletion time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pin {
    None,
    /// A client has chosen it, or may have.
    Set,
    /// The response was lost, so the effect is unknown.
    Lost,
}

/// A sent submit.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub span: Span,
    pub input: Bytes,
    pub webhook: Option<String>,
    pub ttl_ms: u64,
    pub execution_timeout_ms: Option<u64>,
    /// Whether the job starts no worker.
    pub is_low_priority: bool,
}

/// A deadline may have passed when the server's clock shows the low value, and has passed at the high value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub low_ms: u64,
    pub high_ms: u64,
}

impl Deadline {
    /// A deadline about which nothing is known.
    pub const UNKNOWN: Self = Self { low_ms: 0, high_ms: u64::MAX };

    /// Extends the range to include `other`.
    pub fn widen(&mut self, other: Self) {
        self.low_ms = self.low_ms.min(other.low_ms);
        self.high_ms = self.high_ms.max(other.high_ms);
    }
}

/// A job between its submit or a retry and the next retry.
#[derive(Debug)]
pub(super) struct JobCycle {
    /// Earliest and latest start.
    pub began: (EventTime, EventTime),
    /// The event after which the job has certainly ended, and the reason.
    pub over: Option<(EventTime, &'static str)>,
    pub terminal: Option<Terminal>,
    /// Last observed state, with the events of the response and its request.
    pub seen: Option<(ShownState, EventTime, EventTime)>,
    /// When the job was last observed as queued: response and request.
    pub seen_queued: Option<(EventTime, EventTime)>,
    /// The event since which the job was certainly queued, until its next delivery.
    pub queued_since: Option<EventTime>,
    /// The smallest and largest possible count of retries.
    pub retries: (u64, u64),
    /// The worker of an unconfirmed delivery.
    pub undelivered: Option<WorkerNo>,
    /// Whether the job's stop is being checked.
    pub is_stop_watched: bool,
}

impl JobCycle {
    pub fn new(from: EventTime, until: EventTime) -> Self {
        Self {
            began: (from, until),
            over: None,
            terminal: None,
            seen: None,
            seen_queued: None,
            queued_since: None,
            retries: (0, 0),
            undelivered: None,
            is_stop_watched: false,
        }
    }
}

/// The end of a job.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    pub state: ShownState,
    /// Earliest event of the end.
    pub from: EventTime,
    /// Output and error, once they were shown.
    pub shown: Option<(Option<Bytes>, Option<Bytes>)>,
}

/// A delivery of a job to a worker.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub worker: WorkerNo,
    /// The take's request and response.
    pub asked: EventTime,
    pub got: EventTime,
    /// Why the worker may have lost the job since.
    pub evidence: LossEvidence,
    /// Consecutive pings that did not list the job; never reset once it is two.
    pub unlisted: u32,
    /// Whether the worker confirmed the delivery.
    pub confirmed: bool,
    /// Whether an unreadable job came in the same response.
    pub with_unreadable: bool,
    /// Why the previous worker lost the job, if that is certain.
    pub predecessor: Option<Loss>,
}

/// Reasons for which a worker may have lost a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEvidence {
    /// The worker was silent for too long, or reported that it is unfit.
    pub silent: bool,
    /// The worker listed no jobs, or others.
    pub denied: bool,
    /// The worker's handler failed.
    pub failed: bool,
    /// The worker's process ended. The flag says whether the server ended it.
    pub ended: Option<(EventTime, bool)>,
}

impl LossEvidence {
    /// Whether not listing the job is the only reason.
    pub fn only_denied(&self) -> bool {
        self.denied && !self.silent && !self.failed && self.ended.is_none()
    }

    pub fn any(&self) -> bool {
        self.silent || self.denied || self.failed || self.ended.is_some()
    }
}

/// The certain reason for a requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The worker's process ended by itself.
    Died,
    /// The worker's lease expired.
    Silent,
    /// The server ended the worker's process.
    Drained,
    /// The response to the take was lost.
    Undelivered,
    /// The worker's handler failed.
    HandlerError,
}

/// A post of a worker.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub exchange: u64,
    pub worker: WorkerNo,
    pub content: PostContent,
    pub span: Span,
    /// Whether the response was 200.
    pub accepted: bool,
    /// Whether the worker certainly had the job when the post arrived.
    pub is_holders: bool,
}

/// The webhook of a job.
#[derive(Debug, Default)]
pub(super) struct WebhookCalls {
    /// Whether some calls may have been about the end before the last retry.
    pub is_unsure: bool,
    /// Calls after the last retry that report earlier ends.
    pub late_calls: u32,
    /// Calls after the last retry; the last call's number, time and response.
    pub calls: u32,
    pub first_call: Option<EventTime>,
    pub last_end: Option<EventTime>,
    pub accepted: Option<EventTime>,
}

impl Job {
    pub fn new(id: &str, endpoint: EndpointNo, now: EventTime) -> Self {
        Self {
            id: id.into(),
            endpoint,
            is_sync: id.starts_with("sync-"),
            submission: None,
            acknowledged: None,
            known: now,
            ttl: Deadline::UNKNOWN,
            pin: Pin::None,
            renewed: None,
            touched: now,
            is_void: false,
            gone: None,
            retries_done: 0,
            cycle: JobCycle::new(EventTime { seq: 0, ms: 0, wall_ms: 0 }, now),
            past: Vec::new(),
            deliveries: Vec::new(),
            posts: Vec::new(),
            cancels: Vec::new(),
            retries: Vec::new(),
            chunks: Vec::new(),
            log: BTreeMap::new(),
            has_foreign_post: false,
            consuming_reads: Vec::new(),
            webhook: WebhookCalls::default(),
            delivered_input: None,
        }
    }

    /// A new ttl or a retry that arrived at `arrived` was answered. An overlapping one that was answered first may
    /// have taken effect later.
    pub fn renew(&mut self, arrived: EventTime, now: EventTime, deadline: Deadline, is_other_open: bool) {
        let overlaps = self.renewed.replace(now).is_some_and(|renewed| renewed.seq > arrived.seq);
        if overlaps || is_other_open || self.pin == Pin::Lost {
            self.ttl.widen(deadline);
        } else {
            self.ttl = deadline;
        }
    }

    /// Whether a retry may have taken effect between the two events.
    pub fn may_be_retried(&self, from: EventTime, until: EventTime) -> bool {
        self.retries.iter().any(|(_, span)| span.may_precede(until) && span.may_follow(from))
    }

    /// Records that the job has ended.
    pub fn end_cycle(&mut self, at: EventTime, why: &'static str) {
        if self.cycle.over.is_none_or(|(known, _)| at.seq < known.seq) {
            self.cycle.over = Some((at, why));
        }
    }

    /// Records that a retry took effect between the two events.
    pub fn begin_cycle(&mut self, from: EventTime, until: EventTime) {
        let old = std::mem::replace(&mut self.cycle, JobCycle::new(from, until));
        self.past.extend(old.terminal);
        self.retries_done += 1;
        self.webhook = WebhookCalls::default();
        self.gone = None;
    }

    /// Deliveries that may belong to the time since the last retry.
    pub fn possible_deliveries(&self) -> impl DoubleEndedIterator<Item = &Delivery> + Clone {
        self.deliveries.iter().filter(|delivery| delivery.got.seq >= self.cycle.began.0.seq)
    }

    /// Whether this worker was ever given the job.
    pub fn was_given_to(&self, worker: WorkerNo) -> bool {
        self.deliveries.iter().any(|delivery| delivery.worker == worker)
    }

    /// The last delivery, if it certainly came after the last retry.
    pub fn holder(&self) -> Option<&Delivery> {
        self.deliveries
            .last()
            .filter(|delivery| delivery.asked.seq >= self.cycle.began.1.seq || self.retries_done == 0)
    }
}
