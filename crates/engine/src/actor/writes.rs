//! Turns the effects of a verb into this round's writes and signals.

use bytes::Bytes;
use longshore_model::{JobId, JobKey, JobRow, JobState};
use longshore_planted::{Bug, planted};
use longshore_queue::{Change, Signal};
use longshore_store::{ChunkRow, OutcomeRow, Payload, StreamRow, WebhookRow, Write};

use super::Actor;
use super::reload::owner;
use crate::failures::{ErrorSource, FailedJob, is_of_loss, kind_of};
use crate::metrics::RetryReason;
use crate::owner_use::Use;
use crate::stream_tail::TailEvent;
use crate::supervisor::FleetEvent;

/// The payload of a request whose verb writes it. The queue sees only the length.
#[derive(Default)]
pub(super) struct CarriedPayload {
    /// The input of a submit; taken by [`Change::PutInput`].
    pub(super) input: Option<Payload>,
    /// The outcome of a report, or a progress value; taken by [`Change::PutOutcome`].
    pub(super) outcome: Option<OutcomeRow>,
}

/// The name of the payload's file; `None` for an inline payload.
pub(super) fn file_of(payload: Option<&Payload>) -> Option<String> {
    match payload {
        Some(Payload::Blob(reference)) => Some(reference.name.to_string()),
        _ => None,
    }
}

/// The length of the payload in bytes; 0 without one.
pub(super) fn bytes_of(payload: Option<&Payload>) -> u64 {
    match payload {
        None => 0,
        Some(Payload::Inline(bytes)) => bytes.len() as u64,
        Some(Payload::Blob(reference)) => reference.bytes,
    }
}

impl Actor {
    /// Adds the writes for these changes to the round, and empties the buffer.
    ///
    /// # Panics
    ///
    /// Panics if a change writes a payload that `carried` does not have: a broken invariant.
    pub(super) fn write_all(&mut self, changes: &mut Vec<Change>, carried: &mut CarriedPayload) {
        for change in changes.drain(..) {
            self.write(change, carried);
        }
    }

    fn write(&mut self, change: Change, carried: &mut CarriedPayload) {
        let write = match change {
            Change::PutJob(row) => {
                self.notify_followers(row.key, || TailEvent::Row(JobRow::clone(&row)));
                if self.post_commit.is_watched {
                    let now = self.now();
                    self.post_commit.changes.get_or_insert_default().put(now, &row);
                }
                Write::PutJob(row)
            }
            Change::DeleteJob(job) => {
                self.streams.remove(job);
                self.shared.services.payload_cache.forget(job);
                Write::DeleteJob(job)
            }
            Change::PutInput(job) => {
                let input = carried.input.take().expect("a new job comes with its input");
                let cache = &self.shared.services.payload_cache;
                // With more jobs ahead than the cache has entries, the input would be evicted before it is read.
                if self.queue.queued() <= cache.jobs_max() as u64 {
                    cache.put_input(job, &input);
                }
                Write::PutInput(job, input)
            }
            Change::PutOutcome(job) => {
                let outcome = carried.outcome.take().expect("a report that counts comes with its outcome");
                if let Some(error) = &outcome.error {
                    self.errors.note(job, ErrorSource::Report, error);
                }
                self.put_outcome(job, outcome)
            }
            Change::PutError(job, error) => {
                self.errors.note(job, ErrorSource::Queue, &error);
                self.put_outcome(job, OutcomeRow { output: None, error: Some(error.into()) })
            }
            Change::ClearOutcome(job) => {
                self.shared.services.payload_cache.forget_outcome(job);
                Write::ClearOutcome(job)
            }
            Change::PutAttempt(job, mut attempt) => {
                // An older version has stored the start of the attempt.
                if let (None, Some(worker)) = (&attempt.gpu, &attempt.worker) {
                    attempt.gpu = self.shared.gpu_of(worker).map(Into::into);
                }
                Write::PutAttempt(job, attempt)
            }
            // Later chunks get larger offsets in both cases, so that a reader that continues at its last offset misses none.
            Change::DropChunks(job) | Change::ResetStream(job) if self.streams.may_have_chunks(job) => {
                self.streams.dropped(job);
                self.notify_followers(job, || TailEvent::Dropped);
                Write::DropChunks(job)
            }
            // The job has no chunks.
            Change::DropChunks(_) | Change::ResetStream(_) => return,
            Change::PutWebhook(_) if planted(Bug::HookNotKept) => return,
            Change::PutWebhook(job) => Write::PutWebhook(WebhookRow { job, attempts: 0, due_at: self.now() }),
            Change::DeleteWebhook(job) => Write::DeleteWebhook(job),
        };
        self.writes.push(write);
    }

    fn put_outcome(&mut self, job: JobKey, outcome: OutcomeRow) -> Write {
        self.shared.services.payload_cache.put_outcome(job, &outcome);
        Write::PutOutcome(job, outcome)
    }

    /// Adds these signals to the round, and empties the buffer.
    pub(super) fn signal_all(&mut self, signals: &mut Vec<Signal>) {
        for signal in signals.drain(..) {
            match signal {
                Signal::JobReady => self.jobs_are_ready = true,
                Signal::LoadChanged => self.note_load(),
                Signal::Ended { job, key, submitter, state, ran_ms, was_running } => {
                    let used = Use { ended: 1, served_ms: ran_ms.unwrap_or_default(), ..Use::default() };
                    self.post_commit.used.add(submitter, used);
                    self.shared.metrics.activity.ended(state, ran_ms);
                    let has_failed = matches!(state, JobState::Failed | JobState::TimedOut);
                    let lost = if has_failed { self.note_failure(job, key, state) } else { None };
                    self.ended(job, key, ran_ms.filter(|_| state != JobState::Cancelled));
                    self.trace_ended(job, was_running, lost);
                }
                Signal::Requeued(requeued) => {
                    if requeued.counts {
                        self.shared.metrics.events.retried(RetryReason::after(requeued.end));
                    }
                    self.trace_requeued(*requeued);
                }
                Signal::Expired(row) => self.trace_expired(row),
                Signal::Deleted(id, key) => {
                    if self.post_commit.is_watched {
                        let now = self.now();
                        self.post_commit.changes.get_or_insert_default().delete(now, id);
                    }
                    self.post_commit.dropped.extend(self.end_waiters.remove(&id).unwrap_or_default());
                    self.post_commit.streams.extend(self.streams.take_waiters(key));
                    self.notify_followers(key, || TailEvent::Closed);
                    self.post_commit.blobs.extend(self.blobs.remove(&id).unwrap_or_default());
                    self.post_commit.blobs.extend(self.outputs.remove(&id));
                }
                Signal::StopJob(worker, job) => self.post_commit.stops.push((worker, job)),
                Signal::ReplaceWorker(worker, reason) => {
                    self.post_commit.fleet.push(FleetEvent::Replace { worker, reason });
                }
                Signal::LetGo { worker, since, until } => {
                    self.post_commit.fleet.push(FleetEvent::LetGo { worker, since, until });
                }
                Signal::WebhookDue(id, key, end) => {
                    self.post_commit.webhooks.push((id, key, end, self.now()));
                }
            }
        }
    }

    /// Adds a job that failed to the failures of this round. Returns its error if its worker was lost.
    fn note_failure(&mut self, job: JobId, key: JobKey, state: JobState) -> Option<String> {
        let error = self.errors.take(key);
        let kind = kind_of(state, error.as_ref());
        self.shared.metrics.activity.failed_by(kind);
        let worker = self.queue.find_stored(job).and_then(|row| row.worker);
        let error = error.map(|(_, error)| error);
        let lost = error.clone().filter(|error| is_of_loss(kind, error));
        self.post_commit.failed.push(FailedJob { job, worker, at: self.now(), kind, error });
        lost
    }

    /// Notifies the supervisor of the load, once per round.
    fn note_load(&mut self) {
        if !self.post_commit.fleet.iter().any(|event| matches!(event, FleetEvent::Demand)) {
            self.post_commit.fleet.push(FleetEvent::Demand);
        }
    }

    /// Wakes the waiters of a job that has become terminal. `ran_ms` goes into the histogram of execution times; `None` if no
    /// attempt ran or the job was cancelled.
    fn ended(&mut self, id: JobId, key: JobKey, ran_ms: Option<u64>) {
        self.post_commit.streams.extend(self.streams.take_waiters(key));
        if planted(Bug::InputDeletedAtEnd) {
            self.post_commit.blobs.extend(self.blobs.remove(&id).unwrap_or_default());
        }
        if planted(Bug::WaitNotWoken) {
            return;
        }
        if let Some(ran_ms) = ran_ms {
            self.shared.metrics.execution_ms.record(ran_ms);
            self.shared.metrics.finishes.note(self.now());
            self.shared.metrics.runs.add(self.shared.record().version, self.now(), ran_ms);
        }
        let Some(waiters) = self.end_waiters.remove(&id) else { return };
        let Some(row) = self.queue.find_stored(id) else { return };
        self.post_commit.ended.extend(waiters.into_iter().map(|waiter| (waiter, row.clone())));
    }

    /// Adds a payload file that is deleted with the job.
    pub(super) fn own_blob(&mut self, job: JobId, file: Option<String>) {
        if let Some(file) = file {
            self.blobs.entry(job).or_default().push(file);
        }
    }

    /// Adds payload files that a listing has to those that are deleted with their jobs. Returns the ones without a job.
    pub(super) fn own_listed(&mut self, names: Vec<String>) -> Vec<String> {
        let mut orphans = Vec::new();
        for name in names {
            match owner(&name).filter(|job| self.queue.find_stored(*job).is_some()) {
                None => orphans.push(name),
                Some(job) if self.outputs.get(&job) == Some(&name) => {}
                Some(job) => {
                    let known = self.blobs.entry(job).or_default();
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
        }
        orphans
    }

    /// Sets the file of the job's output or progress value; `None` for an inline value. The file of the replaced value is
    /// deleted after the commit.
    pub(super) fn own_output(&mut self, job: JobId, file: Option<String>) {
        let replaced = match file {
            Some(file) => self.outputs.insert(job, file),
            None => self.outputs.remove(&job),
        };
        self.post_commit.blobs.extend(replaced);
    }

    /// Appends chunks to the stream under the next offsets, wakes its waiters and publishes the chunks to its followers.
    pub(super) fn number_chunks(&mut self, job: JobKey, mut stream: StreamRow, chunks: Vec<Bytes>) {
        let mut numbered = Vec::with_capacity(chunks.len());
        for bytes in chunks {
            numbered.push(ChunkRow { offset: stream.next, bytes });
            // A corrupt row may have the largest offset, which must not stop the actor.
            stream.next = stream.next.saturating_add(1);
        }
        let bytes = numbered.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        self.shared.metrics.activity.streamed(numbered.len() as u64, bytes);
        self.writes.extend(numbered.iter().map(|chunk| Write::AppendChunk(job, chunk.clone())));
        self.streams.grow(job, &numbered);
        self.put_stream(job, stream);
        self.post_commit.streams.extend(self.streams.take_waiters(job));
        self.notify_followers(job, || TailEvent::Chunks(numbered));
    }

    /// Publishes an event to the job's followers after the commit. `event` is called only if the job has followers.
    pub(super) fn notify_followers(&mut self, job: JobKey, event: impl FnOnce() -> TailEvent) {
        if let Some(tail) = self.streams.tail(job) {
            self.post_commit.tails.push((tail, event()));
        }
    }

    /// Writes a stream's row, and replaces the state in the table.
    pub(super) fn put_stream(&mut self, job: JobKey, stream: StreamRow) {
        self.streams.set(job, stream);
        self.writes.push(Write::PutStream(job, stream));
    }
}
