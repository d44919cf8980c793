//! Webhooks: each is called until it is accepted or out of attempts, and reports the real end.

use bytes::Bytes;

use super::Auditor;
use super::job::{EndpointNo, Job, JobNo, Terminal, WebhookCalls};
use super::job_view::history;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::webhook_size::may_report;
use super::wire::{JobRecord, ShownState, brief, plain};

/// A webhook call in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    job: JobNo,
    /// The number of the job's retries before the call.
    retries_done: u32,
    /// The number of server processes before the end of the one that made the call.
    processes: usize,
}

/// The end of a job that a call reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reported {
    /// The present end, after all retries.
    Present,
    /// An end before a retry.
    Past,
    /// The present or an earlier end.
    Unclear,
}

impl Auditor {
    /// A receiver was called.
    pub(super) fn called(&mut self, call: u64, url: &str, body: &Bytes) {
        let Ok(record) = serde_json::from_slice::<JobRecord<'_>>(body) else {
            return self.ledger.fail(Promise::WellFormed, || format!("{url}: no record: {}", brief(body)));
        };
        let known = self.model.find_job(record.id).or_else(|| self.find_submitted(url, &record));
        let Some(no) = known else {
            let text = || format!("{url}: {}, an unknown job: {}", record.id, brief(body));
            return self.ledger.fail(Promise::WebhookTruthful, text);
        };
        if self.model.get(no).is_none_or(|job| job.is_void) {
            return;
        }
        self.check_call(no, url, &record);
        self.check_size(no, url, body, &record);
        let Some(job) = self.model.get(no) else { return };
        let reported = self.reported(job, body, &record);
        let from = if job.known.seq > job.cycle.began.1.seq { job.known } else { job.cycle.began.1 };
        let is_gone = job.gone.is_some();
        if reported != Reported::Present {
            return self.called_late(no, reported);
        }
        if !is_gone {
            self.record_shown(body, &record, from, "a webhook");
        }
        self.begin_redelivery(no);
        self.check_pace(no, url);
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(no) else { return };
        let processes = self.processes.len();
        self.calls.insert(call, Call { job: no, retries_done: job.retries_done, processes });
        job.webhook.calls += 1;
        job.webhook.first_call.get_or_insert(now);
    }

    /// Returns which end the call reports. The server read the job before the call, so a retry and even a new end
    /// may have come in between.
    fn reported(&self, job: &Job, body: &Bytes, record: &JobRecord<'_>) -> Reported {
        let Some(state) = ShownState::parse(record.status) else { return Reported::Unclear };
        let fits = |end: &Terminal| end.state == state && may_report(end, body, record);
        // An earlier end may not have been observed if the job was retried.
        let is_unseen = job.past.len() < job.retries_done as usize
            && matches!(state, ShownState::Failed | ShownState::TimedOut);
        let (now, began) = (self.ledger.now, job.cycle.began.1);
        let is_too_late = began.ms + SLACK_MS < now.ms && self.is_outage_free(began.ms, now.ms);
        if is_too_late || !(is_unseen || job.past.iter().any(fits)) {
            return Reported::Present;
        }
        match &job.cycle.terminal {
            None => Reported::Unclear,
            Some(present) if fits(present) => Reported::Present,
            Some(_) => Reported::Past,
        }
    }

    /// A receiver was called for an end before a retry, or perhaps for one. At most one call per end is in flight,
    /// so at most one is late.
    fn called_late(&mut self, no: JobNo, reported: Reported) {
        let Some(job) = self.model.get_mut(no) else { return };
        job.webhook.is_unsure |= reported == Reported::Unclear;
        job.webhook.late_calls += u32::from(reported == Reported::Past);
        let Some(job) = self.model.get(no) else { return };
        let text =
            || format!("{}: {} calls for its earlier ends; {}", job.id, job.webhook.late_calls, history(job));
        self.ledger.check(Promise::WebhookPaced, job.webhook.late_calls <= job.retries_done, text);
    }

    /// A call for an unknown job: its submit must be in flight, or its response lost.
    fn find_submitted(&mut self, url: &str, record: &JobRecord<'_>) -> Option<JobNo> {
        let now = self.ledger.now;
        let mut found = None;
        for (endpoint, entry) in self.model.endpoints.iter().enumerate() {
            let fits = entry.unanswered_submits.iter().map(|submit| &submit.submission).find(|submission| {
                submission.webhook.as_deref() == Some(url) && has_input(record, &submission.input)
            });
            found = found.or(fits.map(|submission| (EndpointNo(endpoint), submission.span.from)));
        }
        let (endpoint, from) = found?;
        let (no, _) = self.model.job(record.id, endpoint, now);
        self.schedule_forget(no);
        if let Some(job) = self.model.get_mut(no) {
            job.cycle.began.0 = from;
        }
        Some(no)
    }

    fn check_call(&mut self, no: JobNo, url: &str, record: &JobRecord<'_>) {
        let Some(job) = self.model.get(no) else { return };
        let is_terminal = ShownState::parse(record.status).is_some_and(ShownState::is_terminal);
        let text = || format!("{url}: {} is {}", job.id, record.status);
        self.ledger.check(Promise::WebhookTruthful, is_terminal, text);
        let Some(submission) = &job.submission else { return };
        let same_input = has_input(record, &submission.input);
        let same_url = record.webhook.is_some_and(|raw| Some(plain(raw)) == submission.webhook);
        let is_right = same_input && same_url && submission.webhook.as_deref() == Some(url);
        let text = || format!("{url}: the call for {} does not show what was submitted", job.id);
        self.ledger.check(Promise::WebhookTruthful, is_right, text);
    }

    /// A call after the last attempt starts a new series, if a redelivery was requested.
    fn begin_redelivery(&mut self, no: JobNo) {
        let attempts_max = self.rules.webhook_attempts_max;
        let Some(job) = self.model.get(no) else { return };
        let repeated = self.model.endpoints[job.endpoint.0].webhooks_redelivered;
        // A server that could not store an attempt makes it again, accepted or not. Then it is unknown which of
        // both this call is.
        let is_forgotten = match (job.webhook.accepted, job.webhook.first_call) {
            (Some(accepted), _) => !self.is_stored(accepted),
            (None, Some(first)) => self.last_crash_ms >= Some(first.ms),
            (None, None) => false,
        };
        let Some(job) = self.model.get_mut(no) else { return };
        let webhook = &mut job.webhook;
        let is_over = webhook.accepted.is_some() || webhook.calls >= attempts_max;
        // A redelivery can take a moment, and repeats only earlier calls.
        let is_wanted =
            repeated.zip(webhook.first_call).is_some_and(|(at, first)| at.ms + SLACK_MS >= first.ms);
        if is_over && is_wanted {
            let is_unsure = webhook.is_unsure || is_forgotten;
            *webhook = WebhookCalls { is_unsure, late_calls: webhook.late_calls, ..WebhookCalls::default() };
        }
    }

    fn check_pace(&mut self, no: JobNo, url: &str) {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let webhook = &job.webhook;
        if webhook.is_unsure {
            return;
        }
        let is_undisturbed = |since_ms: u64| self.last_crash_ms.is_none_or(|crash_ms| crash_ms < since_ms);
        if let Some(accepted) = webhook.accepted {
            let text = || {
                format!("{url} is called again for {}, though it was accepted at {} ms", job.id, accepted.ms)
            };
            return self.ledger.check(Promise::WebhookPaced, !self.is_stored(accepted), text);
        }
        let Some(first) = webhook.first_call else { return };
        if is_undisturbed(first.ms) {
            let text = || format!("{url}: call {} for {}; {}", webhook.calls + 1, job.id, history(job));
            self.ledger.check(Promise::WebhookPaced, webhook.calls < self.rules.webhook_attempts_max, text);
        }
        if let Some(end) = webhook.last_end.filter(|end| is_undisturbed(end.ms)) {
            let passed_ms = (now.ms - end.ms).max(self.clock.most(end, now).saturating_sub(end.wall_ms));
            let text = || format!("{url} is called {passed_ms} ms after the attempt before, for {}", job.id);
            self.ledger.check(Promise::WebhookPaced, passed_ms >= self.rules.webhook_gap_ms, text);
        }
    }

    /// Whether the server stored that a call was accepted. A server that died or failed a write at that time has
    /// not.
    fn is_stored(&self, accepted: EventTime) -> bool {
        let now_ms = self.ledger.now.ms;
        self.is_outage_free(accepted.ms.saturating_sub(1), (accepted.ms + SLACK_MS).min(now_ms))
    }

    /// A call was answered, or failed.
    pub(super) fn call_ended(&mut self, call: u64, status: Option<u16>) {
        let Some(Call { job: no, retries_done, processes }) = self.calls.remove(&call) else { return };
        if processes != self.processes.len() {
            // The server that made the call is not the present one, and cannot store how the call ended.
            return;
        }
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(no).filter(|job| job.retries_done == retries_done) else { return };
        job.webhook.last_end = Some(now);
        if status == Some(200) {
            job.webhook.accepted.get_or_insert(now);
        }
    }

    /// Whether a call of the job's webhook must still be made.
    pub(super) fn has_pending_webhook(&self, job: &Job) -> bool {
        let has_webhook = job.submission.as_ref().is_some_and(|submission| submission.webhook.is_some());
        has_webhook
            && !job.is_void
            && job.cycle.terminal.is_some()
            && !job.webhook.is_unsure
            && job.webhook.accepted.is_none()
            && job.webhook.calls < self.rules.webhook_attempts_max
            // A damaged input also loses the webhook's URL.
            && self.unread.damaged(&job.id).is_none()
            && !self.may_have_damaged_output(job)
    }

    /// Whether a call of the job's webhook may still be made, even if its end was not observed.
    pub(super) fn may_be_called(&self, job: &Job) -> bool {
        let has_webhook = job.submission.as_ref().is_some_and(|submission| submission.webhook.is_some());
        has_webhook && job.webhook.accepted.is_none() && job.webhook.calls < self.rules.webhook_attempts_max
    }
}

/// Whether a call shows this input, or says that it is omitted.
fn has_input(record: &JobRecord<'_>, input: &Bytes) -> bool {
    record.input_omitted || record.input.is_some_and(|shown| *input == shown.get())
}
