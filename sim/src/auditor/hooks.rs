//! Webhooks: each is called until it is accepted or out of attempts, and tells the truth.

use bytes::Bytes;

use super::Auditor;
use super::job::{EndpointNo, Job, JobNo};
use super::promise::Promise;
use super::sight::history;
use super::trouble::SLACK_MS;
use super::wire::{Record, State, brief, plain};

impl Auditor {
    /// A receiver was called.
    pub(super) fn called(&mut self, call: u64, url: &str, body: &Bytes) {
        let Ok(record) = serde_json::from_slice::<Record<'_>>(body) else {
            return self.ledger.fail(Promise::WellFormed, || format!("{url}: no record: {}", brief(body)));
        };
        let known = self.notes.find_job(record.id).or_else(|| self.introduced(url, &record));
        let Some(no) = known else {
            let text = || format!("{url}: {}, of which nobody knows: {}", record.id, brief(body));
            return self.ledger.fail(Promise::HookTruthful, text);
        };
        if self.notes.get(no).is_none_or(|job| job.is_void) {
            return;
        }
        self.check_call(no, url, &record);
        let Some(job) = self.notes.get(no) else { return };
        let state = State::parse(record.status);
        let is_old = job.lives > 0 && job.past.iter().any(|past| Some(past.state) == state);
        let from = if job.known.seq > job.life.began.1.seq { job.known } else { job.life.began.1 };
        if is_old && job.life.terminal.is_none() || state.is_none() {
            // It may report the life before a retry.
            if let Some(job) = self.notes.get_mut(no) {
                job.hook.is_unsure = true;
            }
            return;
        }
        if job.gone.is_none() {
            self.record_shown(body, &record, from, "a webhook");
        }
        self.check_pace(no, url);
        let now = self.ledger.now;
        let Some(job) = self.notes.get_mut(no) else { return };
        self.calls.insert(call, (no, job.lives));
        job.hook.calls += 1;
        job.hook.first_call.get_or_insert(now);
    }

    /// A job of which nobody was told yet: its submit must be under way, or its answer lost.
    fn introduced(&mut self, url: &str, record: &Record<'_>) -> Option<JobNo> {
        let now = self.ledger.now;
        let mut found = None;
        for (endpoint, notes) in self.notes.endpoints.iter().enumerate() {
            let fits = notes.orphans.iter().map(|orphan| &orphan.submission).find(|submission| {
                submission.webhook.as_deref() == Some(url)
                    && record.input.is_some_and(|input| submission.input == input.get())
            });
            found = found.or(fits.map(|submission| (EndpointNo(endpoint), submission.span.from)));
        }
        let (endpoint, from) = found?;
        let (no, _) = self.notes.job(record.id, endpoint, now);
        self.watch_end(no);
        if let Some(job) = self.notes.get_mut(no) {
            job.life.began.0 = from;
        }
        Some(no)
    }

    fn check_call(&mut self, no: JobNo, url: &str, record: &Record<'_>) {
        let Some(job) = self.notes.get(no) else { return };
        let is_terminal = State::parse(record.status).is_some_and(State::is_terminal);
        let text = || format!("{url}: {} is {}", job.id, record.status);
        self.ledger.check(Promise::HookTruthful, is_terminal, text);
        let Some(submission) = &job.submission else { return };
        let same_input = record.input.is_some_and(|input| submission.input == input.get());
        let same_url = record.webhook.is_some_and(|raw| Some(plain(raw)) == submission.webhook);
        let is_right = same_input && same_url && submission.webhook.as_deref() == Some(url);
        let text = || format!("{url}: the call for {} does not show what was submitted", job.id);
        self.ledger.check(Promise::HookTruthful, is_right, text);
    }

    fn check_pace(&mut self, no: JobNo, url: &str) {
        let now = self.ledger.now;
        let Some(job) = self.notes.get(no) else { return };
        let hook = &job.hook;
        if hook.is_unsure {
            return;
        }
        let is_undisturbed = |since_ms: u64| self.last_crash_ms.is_none_or(|crash_ms| crash_ms < since_ms);
        if let Some(accepted) = hook.accepted.filter(|_| !hook.may_linger) {
            let text = || {
                format!("{url} is called again for {}, though it was accepted at {} ms", job.id, accepted.ms)
            };
            // A server that died, or could not write, just then does not know.
            let is_known =
                self.is_smooth(accepted.ms.saturating_sub(1), (accepted.ms + SLACK_MS).min(now.ms));
            self.ledger.check(Promise::HookPaced, !is_known, text);
            return;
        }
        let Some(first) = hook.first_call else { return };
        if is_undisturbed(first.ms) {
            let text = || format!("{url}: call {} for {}; {}", hook.calls + 1, job.id, history(job));
            // Each end of a job has its own call: the one for the life before may come on top.
            let calls_max = self.rules.webhook_attempts_max + u32::from(hook.may_linger);
            self.ledger.check(Promise::HookPaced, hook.calls < calls_max, text);
        }
        if hook.may_linger {
            return;
        }
        if let Some(end) = hook.last_end.filter(|end| is_undisturbed(end.ms)) {
            let passed_ms = (now.ms - end.ms).max(self.clock.most(end, now).saturating_sub(end.wall_ms));
            let text = || format!("{url} is called {passed_ms} ms after the attempt before, for {}", job.id);
            self.ledger.check(Promise::HookPaced, passed_ms >= self.rules.webhook_gap_ms, text);
        }
    }

    /// A call was answered, or failed.
    pub(super) fn call_over(&mut self, call: u64, status: Option<u16>) {
        let Some((no, lives)) = self.calls.remove(&call) else { return };
        let now = self.ledger.now;
        let Some(job) = self.notes.get_mut(no).filter(|job| job.lives == lives) else { return };
        job.hook.last_end = Some(now);
        if status == Some(200) {
            job.hook.accepted.get_or_insert(now);
        }
    }

    /// Whether somebody must still be called for the job.
    pub(super) fn owes_hook(&self, job: &Job) -> bool {
        let has_hook = job.submission.as_ref().is_some_and(|submission| submission.webhook.is_some());
        has_hook
            && !job.is_void
            && job.life.terminal.is_some()
            && !job.hook.is_unsure
            && job.hook.accepted.is_none()
            && job.hook.calls < self.rules.webhook_attempts_max
    }

    /// Whether somebody may still be called for the job, seen to have ended or not.
    pub(super) fn may_be_called(&self, job: &Job) -> bool {
        let has_hook = job.submission.as_ref().is_some_and(|submission| submission.webhook.is_some());
        has_hook && job.hook.accepted.is_none() && job.hook.calls < self.rules.webhook_attempts_max
    }
}
