//! What is known of a job.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::consumed::Drain;
use super::time_bounds::{EventTime, Span};
use super::wire::{ShownState, Word};

/// Tells jobs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JobNo(pub usize);

/// Tells endpoints apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct EndpointNo(pub usize);

/// Tells workers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WorkerNo(pub usize);

/// What is known of a job.
#[derive(Debug)]
pub(super) struct Job {
    pub id: Box<str>,
    pub endpoint: EndpointNo,
    pub is_sync: bool,
    /// The submit that made it. Not known until it is answered.
    pub submission: Option<Submission>,
    /// When somebody was told that it was accepted.
    pub acknowledged: Option<EventTime>,
    /// When it was heard of first.
    pub known: EventTime,
    /// When the server's clock shows this much, its ttl has passed.
    pub ttl: Deadline,
    /// Whether a client chose when it is deleted.
    pub pin: Pin,
    /// When a new ttl, or a retry, was answered last.
    pub renewed: Option<EventTime>,
    /// When anybody last heard or said something about it.
    pub touched: EventTime,
    /// Whether a power cut may have undone what is known of it: then nothing is checked any more.
    pub is_void: bool,
    /// From here on nothing may show it.
    pub gone: Option<EventTime>,
    pub lives: u32,
    pub life: JobCycle,
    /// How its earlier lives ended, where that is known.
    pub past: Vec<Terminal>,
    pub deliveries: Vec<Delivery>,
    pub posts: Vec<Post>,
    pub cancels: Vec<Span>,
    /// Retries that perhaps took effect, or still do, by their exchange.
    pub retries: Vec<(u64, Span)>,
    /// Chunks that workers posted.
    pub chunks: Vec<Post>,
    /// What stands at each offset of its stream, as far as a reader of events was shown it.
    pub log: BTreeMap<u64, u64>,
    /// Whether a worker spoke of it that was never given it.
    pub is_strayed: bool,
    /// Chunks that were taken away.
    pub drains: Vec<Drain>,
    pub hook: Hook,
    /// What a worker got, while the submission is not known.
    pub delivered_input: Option<Bytes>,
}

/// Whether a client chose when a job is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pin {
    None,
    /// It did, or perhaps it did.
    Set,
    /// The answer to that was lost, so that nobody knows.
    Lost,
}

/// A submit that was sent.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub span: Span,
    pub input: Bytes,
    pub webhook: Option<String>,
    pub ttl_ms: u64,
    pub execution_timeout_ms: Option<u64>,
    /// Whether no worker need be started for it.
    pub is_low_priority: bool,
}

/// When the server's clock shows the low value, a deadline may have passed; when it shows the high one, it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub low_ms: u64,
    pub high_ms: u64,
}

impl Deadline {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { low_ms: 0, high_ms: u64::MAX };

    /// Perhaps it is the other one by now.
    pub fn widen(&mut self, other: Self) {
        self.low_ms = self.low_ms.min(other.low_ms);
        self.high_ms = self.high_ms.max(other.high_ms);
    }
}

/// What is known of a job between its submit or a retry, and the next retry.
#[derive(Debug)]
pub(super) struct JobCycle {
    /// It began at this time at the earliest, and at that at the latest.
    pub began: (EventTime, EventTime),
    /// From here on it is certainly over, and why that is certain.
    pub over: Option<(EventTime, &'static str)>,
    pub terminal: Option<Terminal>,
    /// When it was last seen, where it stood then, and when that answer was asked for.
    pub seen: Option<(ShownState, EventTime, EventTime)>,
    /// When it was seen in the queue last, and when that answer was asked for.
    pub seen_queued: Option<(EventTime, EventTime)>,
    /// It was certainly queued from here on until it was handed out again.
    pub queued_since: Option<EventTime>,
    /// The fewest and the most retries that can be counted by now.
    pub retries: (u64, u64),
    /// Who had it according to the server, without ever having got it.
    pub undelivered: Option<WorkerNo>,
    /// Whether its stop is watched already.
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

/// How a life ended.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    pub state: ShownState,
    /// No earlier than this.
    pub from: EventTime,
    /// The output and the error, once they were shown.
    pub shown: Option<(Option<Bytes>, Option<Bytes>)>,
}

/// A job was handed to a worker.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub worker: WorkerNo,
    /// When the worker asked, and when it got the job.
    pub asked: EventTime,
    pub got: EventTime,
    /// Why the worker may have lost it since.
    pub doubts: LossEvidence,
    /// Pings in a row that did not list it; from two on, ever.
    pub unlisted: u32,
    /// Whether the worker showed that it has it.
    pub confirmed: bool,
    /// Whether another job came with it that no worker can read.
    pub spoiled: bool,
    /// Why the worker before this one lost it, if that is certain.
    pub predecessor: Option<Loss>,
}

/// Why a worker may have lost a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEvidence {
    /// It was silent for too long, or said that it is unfit.
    pub silent: bool,
    /// It said that it has none, or that it has others.
    pub denied: bool,
    /// Its handler failed.
    pub failed: bool,
    /// Its process ended; whether the server ended it.
    pub ended: Option<(EventTime, bool)>,
}

impl LossEvidence {
    /// Whether it said that it does not have it, and that is all.
    pub fn only_denied(&self) -> bool {
        self.denied && !self.silent && !self.failed && self.ended.is_none()
    }

    pub fn any(&self) -> bool {
        self.silent || self.denied || self.failed || self.ended.is_some()
    }
}

/// Why a job was certainly taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The worker's process ended by itself.
    Died,
    /// The worker was silent.
    Silent,
    /// The server ended the worker's process.
    Drained,
    /// The answer to the take was lost.
    Undelivered,
    /// The handler failed.
    HandlerError,
}

/// What a worker posted.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub exchange: u64,
    pub worker: WorkerNo,
    pub word: Word,
    pub span: Span,
    /// Whether it was answered 200.
    pub accepted: bool,
    /// Whether its worker certainly had the job when it arrived.
    pub is_holders: bool,
}

/// A job's webhook.
#[derive(Debug, Default)]
pub(super) struct Hook {
    /// Whether some of its calls may have been about the life before.
    pub is_unsure: bool,
    /// Calls that came in this life for the ends of earlier ones.
    pub late_calls: u32,
    /// Calls in this life, the number of the last one, and when it was made and answered.
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
            lives: 0,
            life: JobCycle::new(EventTime { seq: 0, ms: 0, wall_ms: 0 }, now),
            past: Vec::new(),
            deliveries: Vec::new(),
            posts: Vec::new(),
            cancels: Vec::new(),
            retries: Vec::new(),
            chunks: Vec::new(),
            log: BTreeMap::new(),
            is_strayed: false,
            drains: Vec::new(),
            hook: Hook::default(),
            delivered_input: None,
        }
    }

    /// A new ttl, or a retry, that arrived at `arrived` was answered. One that overlapped it and was answered
    /// before may have come after it all the same.
    pub fn renew(&mut self, arrived: EventTime, now: EventTime, deadline: Deadline, is_other_open: bool) {
        let overlaps = self.renewed.replace(now).is_some_and(|renewed| renewed.seq > arrived.seq);
        if overlaps || is_other_open || self.pin == Pin::Lost {
            self.ttl.widen(deadline);
        } else {
            self.ttl = deadline;
        }
    }

    /// Whether a retry may have taken effect between the two.
    pub fn may_be_retried(&self, from: EventTime, until: EventTime) -> bool {
        self.retries.iter().any(|(_, span)| span.may_precede(until) && span.may_follow(from))
    }

    /// From here on, this life is over.
    pub fn end_life(&mut self, at: EventTime, why: &'static str) {
        if self.life.over.is_none_or(|(known, _)| at.seq < known.seq) {
            self.life.over = Some((at, why));
        }
    }

    /// A new life begins, between the two.
    pub fn begin_life(&mut self, from: EventTime, until: EventTime) {
        let old = std::mem::replace(&mut self.life, JobCycle::new(from, until));
        self.past.extend(old.terminal);
        self.lives += 1;
        self.hook = Hook::default();
        self.gone = None;
    }

    /// Deliveries that may belong to this life.
    pub fn possible_deliveries(&self) -> impl DoubleEndedIterator<Item = &Delivery> + Clone {
        self.deliveries.iter().filter(|delivery| delivery.got.seq >= self.life.began.0.seq)
    }

    /// Whether this worker was ever handed the job.
    pub fn was_given_to(&self, worker: WorkerNo) -> bool {
        self.deliveries.iter().any(|delivery| delivery.worker == worker)
    }

    /// The latest delivery, if it certainly belongs to this life.
    pub fn holder(&self) -> Option<&Delivery> {
        self.deliveries
            .last()
            .filter(|delivery| delivery.asked.seq >= self.life.began.1.seq || self.lives == 0)
    }
}
