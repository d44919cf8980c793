//! Compares an observed job with everything that is known of it.

use bytes::Bytes;

use super::Auditor;
use super::job::{Job, JobNo, Terminal, WorkerNo};
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::wire::{JobRecord, ShownState, brief, part};

/// Name of a list's record in messages.
pub(super) const LIST: &str = "a list";

/// The state of a job at one time between `from` and now.
#[derive(Clone, Debug)]
pub(super) struct JobView {
    pub job: JobNo,
    pub from: EventTime,
    pub state: ShownState,
    /// The rest of the record; `None` if only the state was shown.
    pub shown: Option<Shown>,
    pub what: &'static str,
}

/// The rest of a record.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub output: Option<Bytes>,
    pub error: Option<Bytes>,
    pub worker: Option<WorkerNo>,
    pub retries: u64,
}

impl Auditor {
    /// A complete record was shown.
    pub(super) fn record_shown(
        &mut self,
        body: &Bytes,
        record: &JobRecord<'_>,
        from: EventTime,
        what: &'static str,
    ) {
        let Some(state) = ShownState::parse(record.status) else {
            return self
                .ledger
                .fail(Promise::WellFormed, || format!("{what}: status is {:?}", record.status));
        };
        let Some(job) = self.model.find_job(record.id) else { return };
        self.check_damage_reported(job, record, from, what);
        // A list may omit large fields; a webhook says what it omits.
        let is_complete =
            record.output.is_some() && (record.error.is_some() || state == ShownState::Completed);
        let is_whole = (what != LIST || is_complete) && !record.output_omitted;
        let shown = Shown {
            output: record.output.map(|raw| part(body, raw)),
            error: record.error.map(|raw| part(body, raw)),
            worker: record.worker.map(|name| self.model.worker(name)),
            retries: record.retries.unwrap_or(0),
        };
        self.observe_job(&JobView { job, from, state, shown: Some(shown).filter(|_| is_whole), what });
    }

    /// A job was observed.
    pub(super) fn observe_job(&mut self, view: &JobView) {
        if self.model.get(view.job).is_none_or(|job| job.is_void) {
            return;
        }
        if !self.check_not_gone(view) {
            return;
        }
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(view.job) else { return };
        job.touched = now;
        if job.retries_done > 0 && view.from.seq < job.cycle.began.1.seq {
            // The state may be the one before a retry.
            return;
        }
        if view.state.is_terminal() {
            self.seen_ended(view);
        } else {
            self.seen_alive(view);
        }
        if let Some(shown) = &view.shown {
            self.check_retries(view, shown.retries);
        }
    }

    fn seen_alive(&mut self, view: &JobView) {
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(view.job) else { return };
        let over = job.cycle.over.filter(|(over, _)| over.seq < view.from.seq);
        if let Some((_, why)) = over
            && !begin_retried_cycle(job, now)
        {
            let text =
                || format!("{} {:?} in {}, though {why} {}", job.id, view.state, view.what, history(job));
            return self.ledger.fail(Promise::EndsOnce, text);
        }
        self.ledger.check(Promise::EndsOnce, true, String::new);
        job.cycle.seen = Some((view.state, view.from, now));
        let is_errorless = view.shown.as_ref().is_none_or(|shown| shown.error.is_none());
        let text = || format!("{} {:?} shows an error; {}", view.what, view.state, history(job));
        self.ledger.check(Promise::Caused, is_errorless, text);
        if view.state == ShownState::InQueue {
            job.cycle.seen_queued = Some((view.from, now));
            if job.cycle.queued_since.is_none()
                && job.deliveries.last().is_none_or(|d| d.got.seq < view.from.seq)
            {
                job.cycle.queued_since = Some(now);
            }
            return;
        }
        self.seen_running(view);
    }

    fn seen_running(&mut self, view: &JobView) {
        let now = self.ledger.now;
        // The job was assigned to read its input, though no worker got it.
        let was_assigned_unread = self.was_assigned_unread(view.job, view.from, now);
        let Some((job, endpoint)) = self.model.with_endpoint(view.job) else { return };
        let takes = job.possible_deliveries().count() + endpoint.unknown_takes(job.cycle.began.0, now);
        let text = || format!("{} is IN_PROGRESS in {}, and no worker can have taken it", job.id, view.what);
        self.ledger.check(Promise::Caused, takes > 0 || was_assigned_unread, text);
        self.check_overdue(view);
        let Some(job) = self.model.get_mut(view.job) else { return };
        let Some(shown) = &view.shown else { return };
        if let Some(worker) = shown.worker
            && !job.possible_deliveries().any(|delivery| delivery.worker == worker)
        {
            job.cycle.undelivered = Some(worker);
        }
        if let Some(output) = shown.output.clone() {
            self.check_progress(view, &output);
        }
    }

    fn seen_ended(&mut self, view: &JobView) {
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(view.job) else { return };
        if let Some(terminal) = &job.cycle.terminal
            && let Some(difference) = difference(terminal, view)
            && !begin_retried_cycle(job, now)
        {
            let text = || format!("{}: {difference} in {}; {}", job.id, view.what, history(job));
            return self.ledger.fail(Promise::EndsOnce, text);
        }
        self.ledger.check(Promise::EndsOnce, true, String::new);
        let is_news = match &job.cycle.terminal {
            None => true,
            Some(known) => known.shown.is_none() && view.shown.is_some(),
        };
        if !is_news {
            // Requests that have ended by now did not take effect.
            let process = self.processes.len() - 1;
            if view.shown.is_some() && process > 0 {
                let began = self.process_began;
                job.retries.retain(|(_, span)| {
                    let until = span.until.or(began.filter(|began| span.from.seq < began.seq));
                    until.is_none_or(|until| until.seq >= view.from.seq)
                });
            }
            return;
        }
        let is_first = job.cycle.terminal.is_none();
        if is_first
            && self.is_end_of_next_cycle(view)
            && let Some(job) = self.model.get_mut(view.job)
        {
            begin_retried_cycle(job, now);
        }
        let from = self.check_cause(view);
        let Some((job, endpoint)) = self.model.with_endpoint(view.job) else { return };
        let shown = view.shown.as_ref();
        job.cycle.terminal = Some(Terminal {
            state: view.state,
            from,
            shown: shown.map(|shown| (shown.output.clone(), shown.error.clone())),
        });
        if is_first {
            match view.state {
                ShownState::Completed => endpoint.ended.completed += 1,
                ShownState::Failed => endpoint.ended.failed += 1,
                _ => {}
            }
        }
        job.end_cycle(now, "its end was shown");
        self.watch_stop(view.job);
    }
}

/// Records a retry if one explains the observation. Returns whether it does.
pub(super) fn begin_retried_cycle(job: &mut Job, now: EventTime) -> bool {
    let Some(at) = job.retries.iter().position(|(_, span)| span.may_precede(now)) else { return false };
    let (_, span) = job.retries.remove(at);
    job.begin_cycle(span.from, now);
    let ttl_ms = job.submission.as_ref().map(|submission| submission.ttl_ms);
    match ttl_ms {
        Some(ttl_ms) => {
            job.ttl.low_ms = job.ttl.low_ms.min(span.from.wall_ms + ttl_ms);
            job.ttl.high_ms = u64::MAX;
        }
        None => job.ttl = super::job::Deadline::UNKNOWN,
    }
    true
}

/// Returns how a record differs from the job's known end.
fn difference(known: &Terminal, view: &JobView) -> Option<String> {
    if known.state != view.state {
        return Some(format!("{:?} after {:?}", view.state, known.state));
    }
    let (output, error) = known.shown.as_ref()?;
    let shown = view.shown.as_ref()?;
    if *output != shown.output {
        return Some(format!(
            "another output: {} after {}",
            optional(shown.output.as_ref()),
            optional(output.as_ref())
        ));
    }
    (*error != shown.error).then(|| {
        format!("another error: {} after {}", optional(shown.error.as_ref()), optional(error.as_ref()))
    })
}

/// Formats an optional part of a record for messages.
pub(super) fn optional(part: Option<&Bytes>) -> String {
    part.map_or("none".to_owned(), |part| brief(part))
}

/// Describes what is known of a job for messages.
pub(super) fn history(job: &Job) -> String {
    use std::fmt::Write as _;
    let mut text = format!("[retries {}", job.retries_done);
    // Writing into a string cannot fail.
    let _ = write!(text, "; began {}..{}", job.cycle.began.0.ms, job.cycle.began.1.ms);
    if let Some((over, why)) = job.cycle.over {
        let _ = write!(text, "; over at {}: {why}", over.ms);
    }
    if let Some(terminal) = &job.cycle.terminal {
        let _ = write!(text, "; {:?} from {}", terminal.state, terminal.from.ms);
    }
    for delivery in &job.deliveries {
        let (worker, asked, got) = (delivery.worker.0, delivery.asked.ms, delivery.got.ms);
        let _ =
            write!(text, "; worker #{worker} asked {asked} got it {got} evidence {:?}", delivery.evidence);
    }
    let until = |until: Option<EventTime>| until.map_or("?".to_owned(), |until| until.ms.to_string());
    for post in &job.posts {
        let (worker, from) = (post.worker.0, post.span.from.ms);
        let _ = write!(
            text,
            "; worker #{worker} posted {} {from}..{}",
            post.content.brief(),
            until(post.span.until)
        );
    }
    for cancel in &job.cancels {
        let _ = write!(text, "; cancel {}..{}", cancel.from.ms, until(cancel.until));
    }
    for (_, retry) in &job.retries {
        let _ = write!(text, "; perhaps retry {}..{}", retry.from.ms, until(retry.until));
    }
    text.push(']');
    text
}
