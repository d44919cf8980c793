//! What is known of an endpoint.

use std::collections::VecDeque;

use super::job::{JobNo, WorkerNo};
use super::time_bounds::{EventTime, Span};
use super::wire::JobNumbers;

/// So many takes without an answer are remembered.
const TAKES_LOST_MAX: usize = 10_000;

/// A setting that may have had any value between these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub low: u64,
    pub high: u64,
}

impl Range {
    pub fn only(value: u64) -> Self {
        Self { low: value, high: value }
    }

    pub fn widen(&mut self, value: u64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }
}

/// An endpoint's settings, as far as promises depend on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub execution_timeout_ms: Range,
    pub max_retries: Range,
    pub retention_ms: Range,
    pub sync_retention_ms: Range,
    pub workers_min: Range,
    pub workers_max: Range,
    /// No submit is refused for the queue's length while fewer wait.
    pub queue_length_max: u64,
    /// Whether a failed handler may be tried again.
    pub may_retry_errors: bool,
    /// Whether a power cut may take its last changes.
    pub is_buffered: bool,
    /// Whether its workers are started by somebody else.
    pub is_external: bool,
}

/// An endpoint got another template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewal {
    pub changed: EventTime,
    pub answered: EventTime,
}

/// A client purged the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    /// When it may have taken effect.
    pub span: Span,
    /// Its answer: from here on it certainly has.
    pub answered: Option<EventTime>,
}

/// What is known of an endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub name: Box<str>,
    pub settings: Settings,
    /// The fewest workers, if that is certain.
    pub workers_min: Option<u64>,
    pub deleted: Option<Span>,
    pub is_deleted: bool,
    /// Whether its creation was answered, with all of its settings.
    pub is_created: bool,
    /// The template that its workers are made from.
    pub template: Option<Box<str>>,
    /// When it last got another template.
    pub renewed: Option<Renewal>,
    /// When somebody last wanted webhooks to be delivered again.
    pub hooks_repeated: Option<EventTime>,
    /// Whether a power cut may have undone what was counted.
    pub is_count_void: bool,
    /// Jobs that are still of interest.
    pub jobs: Vec<JobNo>,
    pub purges: VecDeque<Purge>,
    /// Takes that arrived and are not answered, by exchange.
    pub takes_open: Vec<(u64, EventTime, Option<WorkerNo>)>,
    /// Takes that were never answered: when they arrived, when that was clear, and whose they were.
    pub takes_lost: VecDeque<(EventTime, EventTime, Option<WorkerNo>)>,
    /// Jobs that were handed out last.
    pub handed_out: VecDeque<HandedOut>,
    /// Submits that nobody knows the job of.
    pub orphans: Vec<Orphan>,
    pub ended: Ended,
    /// What health said last.
    pub health: Option<(EventTime, JobNumbers)>,
    /// The workers that live now and were started by the server.
    pub workers: Vec<WorkerNo>,
    /// When workers ended.
    pub left_ms: VecDeque<u64>,
}

/// How many jobs certainly ended how.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub completed: u64,
    pub failed: u64,
}

/// A job that was handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandedOut {
    pub job: JobNo,
    /// When its submit, or its latest retry, was sent; none if it was handed out before, or nobody knows.
    pub submitted: Option<EventTime>,
    pub asked: EventTime,
    pub got: EventTime,
}

/// A submit without an answer.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    pub exchange: u64,
    pub submission: super::job::Submission,
}

impl Endpoint {
    pub fn new(name: &str, rules: &super::Rules) -> Self {
        Self {
            name: name.into(),
            settings: Settings {
                execution_timeout_ms: Range::only(rules.execution_timeout_ms),
                max_retries: Range::only(rules.max_retries),
                retention_ms: Range::only(rules.retention_ms),
                sync_retention_ms: Range::only(rules.sync_retention_ms),
                workers_min: Range::only(0),
                workers_max: Range::only(3),
                queue_length_max: if rules.may_be_full { 0 } else { u64::MAX },
                may_retry_errors: false,
                is_buffered: false,
                is_external: false,
            },
            workers_min: None,
            deleted: None,
            is_deleted: false,
            is_created: false,
            template: None,
            renewed: None,
            hooks_repeated: None,
            is_count_void: false,
            jobs: Vec::new(),
            purges: VecDeque::new(),
            takes_open: Vec::new(),
            takes_lost: VecDeque::new(),
            handed_out: VecDeque::new(),
            orphans: Vec::new(),
            ended: Ended::default(),
            health: None,
            workers: Vec::new(),
            left_ms: VecDeque::new(),
        }
    }

    /// How long a finished job is kept.
    pub fn retention_ms(&self, is_sync: bool) -> Range {
        if is_sync { self.settings.sync_retention_ms } else { self.settings.retention_ms }
    }

    /// Takes that may have handed out anything between the two, and nobody knows.
    pub fn unknown_takes(&self, from: EventTime, until: EventTime) -> usize {
        self.unknown_takers(from, until).count()
    }

    /// When these takes arrived, and whose they were.
    pub fn unknown_takers(
        &self,
        from: EventTime,
        until: EventTime,
    ) -> impl Iterator<Item = (EventTime, Option<WorkerNo>)> {
        let lost = self.takes_lost.iter().rev().take_while(move |(_, clear, _)| clear.ms + 30_000 >= from.ms);
        let lost = lost.map(|(arrived, _, worker)| (*arrived, *worker));
        let open = self.takes_open.iter().map(|(_, arrived, worker)| (*arrived, *worker));
        lost.chain(open).filter(move |(arrived, _)| arrived.seq <= until.seq)
    }

    /// Whether somebody else may have had any job between the two, and nobody knows.
    pub fn may_be_taken_unseen(&self, from: EventTime, until: EventTime) -> bool {
        let lost = self.takes_lost.iter().rev().take_while(|(_, clear, _)| clear.ms + 30_000 >= from.ms);
        lost.into_iter().any(|(arrived, _, _)| arrived.seq <= until.seq)
            || self.takes_open.iter().any(|(_, arrived, _)| arrived.seq < until.seq)
    }

    /// Nobody will know what this take handed out.
    pub fn take_lost(&mut self, arrived: EventTime, now: EventTime, worker: Option<WorkerNo>) {
        if self.takes_lost.len() == TAKES_LOST_MAX {
            self.takes_lost.pop_front();
        }
        self.takes_lost.push_back((arrived, now, worker));
    }

    /// The most workers that the server may take for running, if it may miss those that left since then.
    pub fn workers_most(&self, missed_since_ms: u64) -> usize {
        self.workers.len()
            + self.left_ms.iter().rev().take_while(|left_ms| **left_ms >= missed_since_ms).count()
    }

    /// Whether its workers may be held back, so that jobs wait for ever.
    pub fn is_paused(&self) -> bool {
        self.settings.workers_max.low == 0
    }

    /// Whether it may have been deleted by then.
    pub fn may_be_deleted(&self, then: EventTime) -> bool {
        self.deleted.is_some_and(|span| span.may_precede(then))
    }
}
