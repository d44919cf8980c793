//! What is known of an endpoint.

use std::collections::VecDeque;

use super::job::{JobNo, WorkerNo};
use super::time_bounds::{EventTime, Span};
use super::wire::JobNumbers;

/// Most unanswered takes that are remembered.
const TAKES_LOST_MAX: usize = 10_000;

/// A setting that may have any value in this range.
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

/// The settings of an endpoint that promises depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub execution_timeout_ms: Range,
    pub max_retries: Range,
    pub retention_ms: Range,
    pub sync_retention_ms: Range,
    pub workers_min: Range,
    pub workers_max: Range,
    /// Queue length below which no submit may be refused.
    pub queue_length_max: u64,
    /// Whether failed handlers may be retried.
    pub may_retry_errors: bool,
    /// Whether a power cut may undo the endpoint's last changes.
    pub is_buffered: bool,
    /// Whether the endpoint has external workers.
    pub is_external: bool,
}

/// A change of the endpoint's template.
#[derive(Clone, Copy, Debug)]
pub(super) struct TemplateChange {
    pub changed: EventTime,
    pub answered: EventTime,
}

/// A purge of the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    /// When the purge may have taken effect.
    pub span: Span,
    /// The response, after which the purge has certainly taken effect.
    pub answered: Option<EventTime>,
}

/// What is known of an endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub name: Box<str>,
    pub settings: Settings,
    /// The minimum of workers, if it is certain.
    pub workers_min: Option<u64>,
    pub deleted: Option<Span>,
    pub is_deleted: bool,
    /// Whether the creation was answered with all settings.
    pub is_created: bool,
    /// The template of the endpoint's workers.
    pub template: Option<Box<str>>,
    /// The last change of the template.
    pub template_changed: Option<TemplateChange>,
    /// The last request to redeliver webhooks.
    pub webhooks_redelivered: Option<EventTime>,
    /// Whether a power cut may have undone the counters.
    pub is_count_void: bool,
    /// Jobs that may still be observed.
    pub jobs: Vec<JobNo>,
    pub purges: VecDeque<Purge>,
    /// Takes in flight, by exchange.
    pub takes_open: Vec<(u64, EventTime, Option<WorkerNo>)>,
    /// Takes that were never answered: arrival, time when the loss was certain, and worker.
    pub takes_lost: VecDeque<(EventTime, EventTime, Option<WorkerNo>)>,
    /// Jobs that were delivered most recently.
    pub recent_deliveries: VecDeque<RecentDelivery>,
    /// Submits whose job is unknown.
    pub unanswered_submits: Vec<UnansweredSubmit>,
    pub ended: Ended,
    /// The last response of health.
    pub health: Option<(EventTime, JobNumbers)>,
    /// The running managed workers.
    pub workers: Vec<WorkerNo>,
    /// Times at which workers ended, in ms.
    pub left_ms: VecDeque<u64>,
}

/// Number of jobs that certainly ended, by state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    pub completed: u64,
    pub failed: u64,
}

/// A delivered job.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentDelivery {
    pub job: JobNo,
    /// When its submit or last retry was sent; `None` if it was delivered before, or if that is unknown.
    pub submitted: Option<EventTime>,
    pub asked: EventTime,
    pub got: EventTime,
}

/// A submit without a response.
#[derive(Clone, Debug)]
pub(super) struct UnansweredSubmit {
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
            template_changed: None,
            webhooks_redelivered: None,
            is_count_void: false,
            jobs: Vec::new(),
            purges: VecDeque::new(),
            takes_open: Vec::new(),
            takes_lost: VecDeque::new(),
            recent_deliveries: VecDeque::new(),
            unanswered_submits: Vec::new(),
            ended: Ended::default(),
            health: None,
            workers: Vec::new(),
            left_ms: VecDeque::new(),
        }
    }

    /// How long a terminal job is stored, in ms.
    pub fn retention_ms(&self, is_sync: bool) -> Range {
        if is_sync { self.settings.sync_retention_ms } else { self.settings.retention_ms }
    }

    /// Number of takes that may have delivered unknown jobs between the two events.
    pub fn unknown_takes(&self, from: EventTime, until: EventTime) -> usize {
        self.unknown_takers(from, until).count()
    }

    /// Arrivals and workers of these takes.
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

    /// Whether another worker may have taken any job unobserved between the two events.
    pub fn may_be_taken_unobserved(&self, from: EventTime, until: EventTime) -> bool {
        let lost = self.takes_lost.iter().rev().take_while(|(_, clear, _)| clear.ms + 30_000 >= from.ms);
        lost.into_iter().any(|(arrived, _, _)| arrived.seq <= until.seq)
            || self.takes_open.iter().any(|(_, arrived, _)| arrived.seq < until.seq)
    }

    /// Records a take whose response was lost.
    pub fn take_lost(&mut self, arrived: EventTime, now: EventTime, worker: Option<WorkerNo>) {
        if self.takes_lost.len() == TAKES_LOST_MAX {
            self.takes_lost.pop_front();
        }
        self.takes_lost.push_back((arrived, now, worker));
    }

    /// The most workers that the server may count as running, if it may have missed those that ended since then.
    pub fn workers_most(&self, missed_since_ms: u64) -> usize {
        self.workers.len()
            + self.left_ms.iter().rev().take_while(|left_ms| **left_ms >= missed_since_ms).count()
    }

    /// Whether workers may be held back, so that jobs wait without limit.
    pub fn is_paused(&self) -> bool {
        self.settings.workers_max.low == 0
    }

    /// Whether the endpoint may have been deleted by then.
    pub fn may_be_deleted(&self, then: EventTime) -> bool {
        self.deleted.is_some_and(|span| span.may_precede(then))
    }
}
