//! Every outcome has a cause, and no other cause certainly came first.

use bytes::Bytes;

use super::Auditor;
use super::endpoint::Endpoint;
use super::job::{Delivery, Job, Post};
use super::job_view::{JobView, history, optional};
use super::promise::Promise;
use super::rules::Rules;
use super::time_bounds::{EventTime, WallClock};
use super::transitions::Transition;
use super::wire::{PostContent, ShownState, plain};

/// The facts that determine what may have ended a job.
pub(super) struct Causes<'a> {
    pub job: &'a Job,
    pub endpoint: &'a Endpoint,
    pub clock: &'a WallClock,
    pub rules: &'a Rules,
    /// Since when the job's input is damaged.
    pub damaged: Option<EventTime>,
    /// Latest event of the cause.
    pub limit: EventTime,
}

impl Causes<'_> {
    /// The post that may have completed the job with this output.
    pub fn completed(&self, output: Option<&Option<Bytes>>) -> Option<&Post> {
        self.posts().filter(|post| self.was_taken(post)).find(|post| match &post.content {
            PostContent::Completed(posted) => {
                !self.is_too_long(posted.as_ref()) && output.is_none_or(|shown| shown == posted)
            }
            _ => false,
        })
    }

    /// A post that may have failed the job, with this error if it is known.
    pub fn failed_by_post(&self, error: Option<&str>) -> Option<&Post> {
        let chunks = self.job.chunks.iter().filter(|post| self.is_possible(post));
        self.posts().chain(chunks).find(|post| {
            !self.is_stale(post)
                && match &post.content {
                    PostContent::Failed(text, _) => {
                        error.is_none_or(|shown| shown == text) || self.endpoint.settings.may_retry_errors
                    }
                    PostContent::Unreadable => true,
                    PostContent::Completed(output) => self.is_too_long(output.as_ref()),
                    // A chunk is never too long, because long chunks are split.
                    PostContent::Progress(_) => false,
                }
        })
    }

    /// When the job may have failed after too many losses.
    pub fn failed_by_loss(&self) -> Option<EventTime> {
        let mut lost = self.job.possible_deliveries().filter(|delivery| delivery.asked.seq <= self.limit.seq);
        let unknown = self.endpoint.unknown_takes(self.job.cycle.began.0, self.limit);
        let takes = lost.clone().count() + unknown;
        let needed = self.endpoint.settings.max_retries.low as usize + 1;
        let earliest = lost.next_back().map_or(self.job.cycle.began.0, |delivery| delivery.asked);
        (takes >= needed).then_some(earliest)
    }

    /// When the job may have failed because its input is damaged.
    pub fn failed_by_damage(&self) -> Option<EventTime> {
        let damaged = self.damaged.filter(|damaged| damaged.seq <= self.limit.seq);
        damaged.map(|damaged| later(damaged, self.job.cycle.began.0))
    }

    /// When the job may have timed out.
    pub fn timed_out(&self) -> Option<EventTime> {
        let submitted = self.job.submission.as_ref().and_then(|submission| submission.execution_timeout_ms);
        let timeout_ms = submitted.unwrap_or(if self.job.submission.is_some() {
            self.endpoint.settings.execution_timeout_ms.low
        } else {
            5_000
        });
        // Only the last certain attempt can time out; the job continued after the others.
        let delivered = self.job.possible_deliveries().rfind(|delivery| delivery.got.seq <= self.limit.seq);
        // The take's response may have been in flight for longer than the timeout.
        let in_flight =
            || self.job.possible_deliveries().rfind(|delivery| delivery.asked.seq <= self.limit.seq);
        let began = match delivered.or_else(in_flight) {
            Some(delivery) => later(delivery.asked, self.job.cycle.began.0),
            None if self.endpoint.unknown_takes(self.job.cycle.began.0, self.limit) > 0 => {
                self.job.cycle.began.0
            }
            None => return None,
        };
        let possible = self.clock.most(began, self.limit) >= began.wall_ms + timeout_ms;
        let at = EventTime { seq: began.seq, ms: began.ms, wall_ms: began.wall_ms + timeout_ms };
        possible.then_some(at)
    }

    /// When a cancel may have ended the job.
    pub fn cancelled(&self) -> Option<EventTime> {
        let spans = self.job.cancels.iter();
        spans
            .filter(|span| span.may_precede(self.limit) && span.may_follow(self.job.cycle.began.0))
            .map(|span| span.from)
            .min()
    }

    /// When a purge may have ended the job.
    pub fn purged(&self) -> Option<EventTime> {
        let spans = self.endpoint.purges.iter().map(|purge| &purge.span);
        let first =
            self.job.submission.as_ref().map_or(self.job.cycle.began.0, |submission| submission.span.from);
        let first = later(first, self.job.cycle.began.0);
        let hits = spans.filter(|span| span.may_precede(self.limit) && span.may_follow(first));
        hits.filter(|span| !self.certainly_ran_through(span.from, span.until)).map(|span| span.from).min()
    }

    /// The earliest event that may have ended the job.
    pub fn earliest_end(&self) -> Option<EventTime> {
        let posts = self
            .posts()
            .filter(|post| !matches!(post.content, PostContent::Progress(_)))
            .map(|post| post.span.from);
        let chunks = self.failed_by_post(None).map(|post| post.span.from);
        let lost = [self.timed_out(), self.failed_by_loss(), self.failed_by_damage()];
        let others = [chunks, self.cancelled(), self.purged()].into_iter().chain(lost);
        posts.chain(others.flatten()).min_by_key(|when| when.wall_ms)
    }

    /// Posts since the last retry and before the limit.
    fn posts(&self) -> impl Iterator<Item = &Post> {
        self.job.posts.iter().filter(|post| self.is_possible(post))
    }

    fn is_possible(&self, post: &Post) -> bool {
        post.span.may_precede(self.limit) && post.span.may_follow(self.job.cycle.began.0)
    }

    /// Whether a worker may have had the job at the time of the post. Without a delivery there is no result.
    fn was_taken(&self, post: &Post) -> bool {
        let until = post.span.until.unwrap_or(self.limit);
        self.job.possible_deliveries().any(|delivery| delivery.asked.seq <= until.seq)
            || self.endpoint.unknown_takes(self.job.cycle.began.0, until) > 0
    }

    /// Whether the worker had certainly lost the job to another one before the post.
    pub fn is_stale(&self, post: &Post) -> bool {
        is_stale(&self.job.deliveries, post)
    }

    fn certainly_ran_through(&self, from: EventTime, until: Option<EventTime>) -> bool {
        let Some(until) = until else { return false };
        let holder = self.job.deliveries.iter().rfind(|delivery| delivery.got.seq < from.seq);
        // The server may have received no request of the worker since the take, however slow the response was.
        holder.is_some_and(|delivery| {
            !delivery.evidence.any()
                && delivery.got.seq >= self.job.cycle.began.1.seq
                && until.ms.saturating_sub(delivery.asked.ms) < self.rules.lease_ms()
        })
    }

    fn is_too_long(&self, output: Option<&Bytes>) -> bool {
        self.rules.is_too_long(self.job.is_sync, output)
    }
}

/// Whether a post's worker had certainly lost the job to another one before the post.
pub(super) fn is_stale(deliveries: &[Delivery], post: &Post) -> bool {
    let Some(own) = deliveries.iter().rposition(|delivery| delivery.worker == post.worker) else {
        return true;
    };
    let last_before =
        |delivery: &&Delivery| delivery.worker != post.worker && delivery.got.seq < post.span.from.seq;
    deliveries[own..]
        .iter()
        .any(|delivery| last_before(&delivery) && delivery.asked.seq > deliveries[own].got.seq)
}

fn later(one: EventTime, other: EventTime) -> EventTime {
    if one.seq >= other.seq { one } else { other }
}

impl Auditor {
    /// Whether this can only be the end after a later retry: nothing ended the job in this state before it, and an
    /// unobserved failure may have preceded the retry.
    pub(super) fn is_end_of_next_cycle(&self, view: &JobView) -> bool {
        let Some(job) = self.model.get(view.job).filter(|job| !job.retries.is_empty()) else { return false };
        let causes = self.causes_of(job);
        let may_have_failed = causes.failed_by_post(None).is_some()
            || causes.failed_by_loss().is_some()
            || causes.failed_by_damage().is_some()
            || causes.timed_out().is_some();
        may_have_failed && find(&causes, view).0.is_none()
    }

    fn causes_of<'a>(&'a self, job: &'a Job) -> Causes<'a> {
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let limit = job.cycle.over.map_or(self.ledger.now, |(over, _)| over);
        let damaged = self.unread.damaged(&job.id);
        Causes { job, endpoint, clock: &self.clock, rules: &self.rules, damaged, limit }
    }

    /// Finds what ended a job. Returns the earliest event of the end.
    pub(super) fn check_cause(&mut self, view: &JobView) -> EventTime {
        let now = self.ledger.now;
        let is_of_damage = self.check_damage(view);
        let Some(job) = self.model.get(view.job) else { return now };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let is_first = job.cycle.terminal.is_none();
        let causes = self.causes_of(job);
        let (from, transition) =
            if is_of_damage { (causes.failed_by_damage(), None) } else { find(&causes, view) };
        if from.is_none() && endpoint.may_be_deleted(now) {
            return job.cycle.began.0;
        }
        let text = || {
            let shown = view.shown.as_ref();
            let output = optional(shown.and_then(|shown| shown.output.as_ref()));
            let error = optional(shown.and_then(|shown| shown.error.as_ref()));
            format!(
                "{} {:?}, output {output}, error {error}, in {}: no cause; {}",
                job.id,
                view.state,
                view.what,
                history(job)
            )
        };
        let began = job.cycle.began.0;
        self.ledger.check(Promise::Caused, from.is_some(), text);
        if view.state == ShownState::Failed && !is_of_damage {
            self.check_fails_alone(view);
        }
        if let (ShownState::Completed, Some(posted)) = (view.state, from) {
            self.check_in_time(view, posted);
        }
        if is_first && let Some(transition) = transition {
            self.ledger.count_transition(transition);
        }
        from.map_or(began, |from| later(from, began))
    }
}

/// Returns the cause of an end, and the transition if it is certain.
fn find(causes: &Causes<'_>, view: &JobView) -> (Option<EventTime>, Option<Transition>) {
    let shown = view.shown.as_ref();
    match view.state {
        ShownState::Completed => match causes.completed(shown.map(|shown| &shown.output)) {
            Some(post) if !causes.job.was_given_to(post.worker) => (Some(post.span.from), None),
            Some(post) if causes.is_stale(post) => (Some(post.span.from), Some(Transition::CompletedLate)),
            Some(post) => (Some(post.span.from), Some(Transition::Completed)),
            None => (None, None),
        },
        ShownState::Failed => find_failure(causes, shown.and_then(|shown| shown.error.as_ref())),
        ShownState::TimedOut => (causes.timed_out(), Some(Transition::TimedOut)),
        _ => match (causes.cancelled(), causes.purged()) {
            (Some(cancel), Some(purge)) => (Some(cancel.min(purge)), None),
            (None, Some(purge)) => (Some(purge), Some(Transition::Purged)),
            (Some(cancel), None) => {
                let ran = shown.map(|shown| shown.worker.is_some());
                let transition = ran
                    .map(|ran| if ran { Transition::CancelledRunning } else { Transition::CancelledQueued });
                (Some(cancel), transition)
            }
            (None, None) => (None, None),
        },
    }
}

fn find_failure(causes: &Causes<'_>, error: Option<&Bytes>) -> (Option<EventTime>, Option<Transition>) {
    let text =
        error.and_then(|raw| serde_json::from_slice::<&serde_json::value::RawValue>(raw).ok()).map(plain);
    if let Some(post) = causes.failed_by_post(text.as_deref()) {
        let transition = match &post.content {
            PostContent::Failed(posted, _) if text.as_ref() == Some(posted) => {
                Some(Transition::FailedByHandler)
            }
            PostContent::Completed(_) => Some(Transition::FailedBySize),
            _ => None,
        };
        // If the error is not the post's, the job may have failed long before the post.
        let given_up = causes.failed_by_loss().filter(|_| transition != Some(Transition::FailedByHandler));
        return (Some(given_up.map_or(post.span.from, |given_up| given_up.min(post.span.from))), transition);
    }
    let transition = causes.failed_by_post(None).is_none().then_some(Transition::WorkerLostFailed);
    match (causes.failed_by_loss(), causes.failed_by_damage()) {
        // Without a shown error, both causes are possible.
        (lost, Some(damaged)) if text.is_none() => {
            (Some(lost.map_or(damaged, |lost| lost.min(damaged))), None)
        }
        (lost, _) => (lost, transition),
    }
}
