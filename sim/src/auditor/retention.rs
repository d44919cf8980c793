//! An acknowledged job is stored until its time has passed, and not longer.

use super::Auditor;
use super::job::{Job, JobNo, Pin};
use super::job_view::{JobView, history};
use super::outcome_cause::Causes;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::transitions::Transition;
use super::wire::ShownState;

/// Reason for the end of a missing job.
const WAS_GONE: &str = "it was gone";

impl Auditor {
    /// A job that had been missing was observed or delivered. A process with an earlier clock may find its time not
    /// passed, if the previous process could not store the deletion. The job is alive again then.
    pub(super) fn may_be_back(&mut self, no: JobNo, from: EventTime) {
        let now = self.ledger.now;
        let Some(gone) = self.model.get(no).and_then(|job| job.gone) else { return };
        let is_earlier = gone.seq < from.seq
            && self.process_began.is_some_and(|began| began.seq > gone.seq)
            && self.clock.least(from, now) < self.clock.most(gone, gone);
        if let Some(job) = self.model.get_mut(no).filter(|_| is_earlier) {
            job.gone = None;
            if job.cycle.over.is_some_and(|(_, why)| why == WAS_GONE) {
                (job.cycle.over, job.cycle.is_stop_watched) = (None, false);
            }
        }
    }

    /// A job was observed. Returns whether that was possible.
    pub(super) fn check_not_gone(&mut self, view: &JobView) -> bool {
        let now = self.ledger.now;
        self.may_be_back(view.job, view.from);
        let Some(job) = self.model.get(view.job) else { return false };
        if let Some(gone) = job.gone.filter(|gone| gone.seq < view.from.seq) {
            let text = || {
                format!(
                    "{} {:?} in {}, though it was gone at {} ms; {}",
                    job.id,
                    view.state,
                    view.what,
                    gone.ms,
                    history(job)
                )
            };
            self.ledger.fail(Promise::Gone, text);
            return false;
        }
        let mut high_ms = job.ttl.high_ms;
        if let (Some((over, _)), Some(terminal), false) =
            (job.cycle.over, &job.cycle.terminal, job.pin != Pin::None)
            && job.retries.is_empty()
        {
            let retention = self.model.endpoints[job.endpoint.0].retention_ms(job.is_sync).high;
            // The job may have ended long before it was shown, when the clock was later.
            high_ms = high_ms.min(self.clock.most(terminal.from, over).saturating_add(retention));
        }
        let least_ms = self.clock.least(view.from, now);
        let is_shown_late = least_ms >= high_ms && job.retries.is_empty();
        let text = || {
            format!(
                "{} {:?} in {}, {} ms after its time; {}",
                job.id,
                view.state,
                view.what,
                least_ms - high_ms,
                history(job)
            )
        };
        self.ledger.check(Promise::Gone, !is_shown_late, text);
        true
    }

    /// A response says that a job does not exist.
    pub(super) fn missing(&mut self, no: JobNo, from: EventTime, what: &str) {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        if job.known.seq > from.seq || endpoint.may_be_deleted(now) {
            return;
        }
        if job.gone.is_some() || job.is_void {
            return;
        }
        let ended = self.earliest_end(job, job.cycle.over.map_or(now, |(over, _)| over));
        let by_ttl = self.clock.most(job.known, now) >= job.ttl.low_ms;
        let retention_ms = endpoint.retention_ms(job.is_sync).low;
        let by_retention =
            ended.is_some_and(|ended_ms| self.clock.most(job.known, now) >= ended_ms + retention_ms);
        let text = || {
            format!(
                "{} is missing in {what}: its ttl lasts until {} at least, the clock shows {}; {}",
                job.id,
                job.ttl.low_ms,
                now.wall_ms,
                history(job)
            )
        };
        self.ledger.check(Promise::Kept, by_ttl || by_retention, text);
        let is_retried = !job.retries.is_empty();
        let transition = match (by_ttl, by_retention, job.cycle.terminal.as_ref()) {
            (true, false, Some(terminal)) if !is_retried => expired(terminal.state),
            (false, true, Some(terminal)) if !is_retried => forgotten(terminal.state),
            (true, false, None) if ended.is_none() && !is_retried => {
                let last = job.possible_deliveries().last();
                match last {
                    Some(delivery) if !delivery.evidence.any() => Some(Transition::ExpiredRunning),
                    None if endpoint.unknown_takes(job.cycle.began.0, now) == 0
                        || job.cycle.queued_since.is_some() =>
                    {
                        Some(Transition::ExpiredQueued)
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(transition) = transition {
            self.ledger.count_transition(transition);
        }
        if let Some(job) = self.model.get_mut(no) {
            if job.retries.is_empty() {
                job.gone = Some(now);
            }
            job.end_cycle(now, WAS_GONE);
        }
        self.watch_stop(no);
    }

    /// Whether a job certainly existed between the two events.
    pub(super) fn certainly_exists(&self, no: JobNo, from: EventTime, until: EventTime) -> bool {
        let Some(job) = self.model.get(no) else { return false };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let Some(acknowledged) = job.acknowledged else { return false };
        if job.gone.is_some() || job.is_void || endpoint.may_be_deleted(until) || !job.retries.is_empty() {
            return false;
        }
        let ended = self.earliest_end(job, until);
        let most_ms = self.clock.most(acknowledged.min(from), until);
        let retention_ms = endpoint.retention_ms(job.is_sync).low;
        most_ms < job.ttl.low_ms && ended.is_none_or(|ended_ms| most_ms < ended_ms + retention_ms)
    }

    /// Whether the server may have deleted the job by then.
    pub(super) fn may_be_past_its_time(&self, job: &Job, then: EventTime) -> bool {
        let retention_ms = self.model.endpoints[job.endpoint.0].retention_ms(job.is_sync).low;
        let most_ms = self.clock.most(job.known, then);
        let ended = self.earliest_end(job, then);
        most_ms >= job.ttl.low_ms || ended.is_some_and(|ended_ms| most_ms >= ended_ms + retention_ms)
    }

    /// The earliest value of the server's clock at the job's end, if it may have ended by `limit`.
    fn earliest_end(&self, job: &Job, limit: EventTime) -> Option<u64> {
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let damaged = self.unread.damaged(&job.id);
        let causes = Causes { job, endpoint, clock: &self.clock, rules: &self.rules, damaged, limit };
        let known = job.cycle.terminal.as_ref().map(|terminal| terminal.from);
        known.or_else(|| causes.earliest_end()).map(|from| self.clock.least(from, limit))
    }

    /// A complete list of an endpoint's jobs was shown. `shown` is sorted.
    pub(super) fn check_listed(
        &mut self,
        endpoint: super::job::EndpointNo,
        shown: &[JobNo],
        from: EventTime,
    ) {
        let jobs = self.model.endpoints[endpoint.0].jobs.clone();
        for no in jobs {
            let Some(job) = self.model.get(no) else { continue };
            let known = job.acknowledged.is_some_and(|acknowledged| acknowledged.seq < from.seq);
            if known && job.gone.is_none() && shown.binary_search(&no).is_err() {
                self.missing(no, from, "a complete list");
            } else if known {
                self.ledger.check(Promise::Listed, true, String::new);
            }
        }
    }
}

fn expired(state: ShownState) -> Option<Transition> {
    Some(match state {
        ShownState::Completed => Transition::ExpiredCompleted,
        ShownState::Failed => Transition::ExpiredFailed,
        ShownState::Cancelled => Transition::ExpiredCancelled,
        ShownState::TimedOut => Transition::ExpiredTimedOut,
        _ => return None,
    })
}

fn forgotten(state: ShownState) -> Option<Transition> {
    Some(match state {
        ShownState::Completed => Transition::ForgottenCompleted,
        ShownState::Failed => Transition::ForgottenFailed,
        ShownState::Cancelled => Transition::ForgottenCancelled,
        ShownState::TimedOut => Transition::ForgottenTimedOut,
        _ => return None,
    })
}
