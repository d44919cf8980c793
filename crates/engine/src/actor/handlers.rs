//! The handlers of requests: each runs a verb of the queue and holds the reply until the round is durable.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, JobRow, JobState, Millis, RequestNo, WebhookEvent, WorkerId};
use longshore_planted::{Bug, planted};
use longshore_queue::{Effects, Queue, Refusal, Report, Submit, Submitted, Take};
use longshore_store::{OutcomeRow, Payload, WebhookRow, Write};

use super::Actor;
use super::held_reply::{HeldReply, Reply};
use super::parked_takes::ParkedTake;
use super::request::{Appended, EndWaiter, Given, ReplySender, Request, StreamLookup, TailLookup};
use super::writes::{CarriedPayload, bytes_of, file_of};
use crate::metrics::{RetryReason, SubmitRefusal};
use crate::owner_use::Use;
use crate::stream_tail::TailEvent;
use crate::workers::take::Undelivered;
use crate::{Accepted, EndpointError, TakeRequest};

impl Actor {
    /// Handles one request as a part of this round.
    pub(super) fn handle(&mut self, request: Request) {
        match request {
            Request::Submit { submit, input, watch, reply } => self.submit(submit, input, watch, reply),
            Request::Take { worker, request, reply } => self.take(worker, request, reply),
            Request::Undelivered { jobs, reply } => self.undelivered(jobs, reply),
            Request::Unpark { worker } => self.unpark(&worker),
            Request::Report { worker, job, report, outcome, reply } => {
                self.report(&worker, job, report, outcome, reply);
            }
            Request::Progress { worker, job, outcome, reply } => self.progress(&worker, job, outcome, reply),
            Request::Append { worker, job, post, chunks, reply } => {
                self.append(worker, job, post, chunks, reply);
            }
            Request::TouchWorker { worker } => self.apply(|queue, now, _| queue.touch_worker(now, &worker)),
            Request::Ping { worker, holds, reply } => {
                self.done(reply, |queue, now, out| queue.ping(now, &worker, holds.as_deref(), out));
            }
            Request::Cancel { job, reply } => {
                self.change(reply, |queue, now, out| queue.cancel(now, job, out));
            }
            Request::Retry { job, reply } => self.retry(job, reply),
            Request::SetTtl { job, ttl_ms, only_ended, reply } => {
                self.set_ttl(job, ttl_ms, only_ended, reply);
            }
            Request::RedeliverWebhook { job, end, reply } => {
                self.change(reply, |queue, now, out| queue.redeliver_webhook(now, job, end, out));
            }
            Request::SettleWebhook { job, end, reply } => {
                self.done(reply, |queue, _, out| queue.settle_webhook(job, end, out));
            }
            Request::Purge { reply } => {
                let purged = self.apply(Queue::purge);
                self.hold(HeldReply::Purged, reply, Ok(purged));
            }
            Request::RegisterWorker { worker, reply } => {
                self.done(reply, |queue, now, out| queue.register_worker(now, &worker, out));
            }
            Request::DrainWorker { worker, reply } => self.drain_worker(&worker, reply),
            Request::LoseWorker { worker, counts_retry, reason, reply } => {
                self.done(reply, |queue, now, out| {
                    queue.lose_worker(now, &worker, counts_retry, &reason, out);
                });
                self.unpark(&worker);
                self.shared.stop_signals.forget(&worker);
            }
            Request::Query(query) => self.query(query),
            Request::Wait { job, watch, reply } => self.wait(job, watch, reply),
            Request::Stream { job, watch, reply } => self.stream(job, watch, reply),
            Request::Follow { job, reply } => self.follow(job, reply),
            Request::WarmStream { key, stream, bytes } => self.streams.warm(key, stream, bytes),
            Request::Consume { job, offset } => self.consume(job, offset),
            Request::WebhookAttempted { job, end, attempts, due_at, reply } => {
                self.webhook_attempted(job, end, attempts, due_at);
                self.hold(HeldReply::Done, reply, Ok(()));
            }
            Request::OwnBlobs { names, reply } => self.own_blobs(names, reply),
            Request::Configure(record) => self.configure(&record),
            Request::Pause { reply } => self.pause_queue(reply),
            Request::ReleaseWaits { reply } => {
                self.release_waits();
                self.hold(HeldReply::Done, reply, Ok(()));
            }
            Request::Delete { reply } => self.deleting = Some(reply),
            #[cfg(test)]
            Request::Corrupt(corrupt) => corrupt(&mut self.queue),
        }
    }

    /// Runs a verb that carries no payload, and returns its result.
    pub(super) fn apply<T>(&mut self, verb: impl FnOnce(&mut Queue, Millis, &mut Effects) -> T) -> T {
        self.apply_with(&mut CarriedPayload::default(), verb)
    }

    /// Runs a verb with its payload, adds its writes and signals to this round, and returns its result.
    fn apply_with<T>(
        &mut self,
        carried: &mut CarriedPayload,
        verb: impl FnOnce(&mut Queue, Millis, &mut Effects) -> T,
    ) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        assert!(effects.changes.is_empty() && effects.signals.is_empty(), "a verb's effects are its own");
        let result = verb(&mut self.queue, self.now, &mut effects);
        self.write_all(&mut effects.changes, carried);
        self.signal_all(&mut effects.signals);
        self.errors.clear();
        self.effects = effects;
        result
    }

    /// Stores when a failed webhook call is due again, if the call is still pending.
    fn webhook_attempted(&mut self, job: JobId, end: JobEnd, attempts: u32, due_at: Millis) {
        if let Some(row) = self.queue.find_stored(job).filter(|row| row.pending_end() == Some(end)) {
            self.writes.push(Write::PutWebhook(WebhookRow { job: row.key, attempts, due_at }));
        }
    }

    /// Replies with the payload files that no job of this endpoint has. The others are deleted with their jobs from now on.
    fn own_blobs(&mut self, names: Vec<String>, reply: ReplySender<Vec<String>>) {
        let orphans = self.own_listed(names);
        self.hold(HeldReply::Orphans, reply, Ok(orphans));
    }

    /// Runs a verb without a result. The reply is held until the verb's writes are durable.
    fn done(&mut self, reply: ReplySender<()>, verb: impl FnOnce(&mut Queue, Millis, &mut Effects)) {
        self.apply(verb);
        self.hold(HeldReply::Done, reply, Ok(()));
    }

    /// Runs a verb that changes one job. The reply has the job's row, or the refusal.
    fn change(
        &mut self,
        reply: ReplySender<Box<JobRow>>,
        verb: impl FnOnce(&mut Queue, Millis, &mut Effects) -> Result<JobRow, Refusal>,
    ) {
        let result = self.apply(verb);
        self.hold(HeldReply::Row, reply, result.map(Box::new).map_err(EndpointError::Refused));
    }

    fn retry(&mut self, job: JobId, reply: ReplySender<Box<JobRow>>) {
        let result = self.apply(|queue, now, out| queue.retry(now, job, out));
        if result.is_ok() {
            self.shared.metrics.events.retried(RetryReason::Client);
        }
        self.hold(HeldReply::Row, reply, result.map(Box::new).map_err(EndpointError::Refused));
    }

    /// Holds a reply until this round is durable.
    pub(super) fn hold<T>(
        &mut self,
        held: impl FnOnce(Reply<T>) -> HeldReply,
        to: ReplySender<T>,
        result: Result<T, EndpointError>,
    ) {
        self.held.push(held(Reply::new(to, result)));
    }

    fn submit(
        &mut self,
        submit: Submit,
        input: Payload,
        waiter: Option<EndWaiter>,
        reply: ReplySender<Accepted>,
    ) {
        let (id, file, submitter) = (submit.id, file_of(Some(&input)), submit.submitter);
        let input_bytes = u64::from(submit.input_bytes);
        let mut carried = CarriedPayload { input: Some(input), outcome: None };
        let result = match self.apply_with(&mut carried, |queue, now, out| queue.submit(now, submit, out)) {
            Ok(Submitted::New(_)) => {
                assert!(carried.input.is_none(), "the input of an accepted job is written");
                self.post_commit.used.add(submitter, Use { submitted: 1, ..Use::default() });
                self.shared.metrics.activity.submitted(input_bytes);
                self.shared.metrics.events.submitted(id.is_sync());
                self.own_blob(id, file);
                self.add_end_waiter(id, waiter);
                Ok(Accepted { id, state: JobState::InQueue })
            }
            Ok(Submitted::Existing(row)) => {
                if !row.state.is_terminal() {
                    self.add_end_waiter(row.id, waiter);
                }
                Ok(Accepted { id: row.id, state: row.state })
            }
            Err(refusal) => {
                self.shared.metrics.activity.refused();
                self.shared.metrics.events.refused(match refusal {
                    Refusal::IdempotencyKeyReused => SubmitRefusal::KeyReused,
                    _ => SubmitRefusal::QueueFull,
                });
                Err(EndpointError::Refused(refusal))
            }
        };
        self.hold(HeldReply::Accepted, reply, result);
    }

    fn take(&mut self, worker: WorkerId, request: TakeRequest, reply: ReplySender<Given>) {
        let TakeRequest { slots, says_busy, address, .. } = request;
        let overlapping = self.parked.overlaps(&worker);
        let was_draining = self.queue.is_draining(&worker);
        let take = Take { says_busy, overlapping, address, ..self.take_of(&worker, slots) };
        let given = self.take_within_budget(take);
        // A take never starts the draining of a worker. It ends the draining of an external one.
        let is_draining = was_draining && self.queue.is_draining(&worker);
        if was_draining && !is_draining {
            self.shared.stop_signals.forget(&worker);
        }
        if given.rows.is_empty() && !self.releasing && !is_draining {
            self.parked.park(ParkedTake { worker, slots, reply });
        } else {
            self.deliver(&worker, given, reply);
        }
    }

    /// A take of the worker that says nothing of its jobs.
    fn take_of(&self, worker: &WorkerId, slots: u32) -> Take {
        let has_gpus = self.shared.record().gpu_count > 0;
        let gpu = if has_gpus { self.shared.gpu_of(worker).map(Into::into) } else { None };
        let worker = worker.clone();
        Take { worker, slots, says_busy: None, overlapping: false, address: None, gpu, input_bytes_max: 0 }
    }

    /// Requeues jobs that were delivered to no worker. The last job goes first, so that the jobs keep their order.
    fn undelivered(&mut self, jobs: Vec<Undelivered>, reply: ReplySender<()>) {
        for Undelivered { job, attempt, damage } in jobs.into_iter().rev() {
            self.apply(|queue, now, out| queue.undelivered(now, job, attempt, damage, out));
        }
        self.hold(HeldReply::Done, reply, Ok(()));
    }

    /// Replies to the worker's parked takes with no job.
    fn unpark(&mut self, worker: &WorkerId) {
        for take in self.parked.remove(worker) {
            self.hold_jobs(take.reply, Given::default());
        }
    }

    fn set_ttl(&mut self, job: JobId, ttl_ms: u64, only_ended: bool, reply: ReplySender<Box<JobRow>>) {
        self.change(reply, |queue, now, out| {
            let has_ended = |row: JobRow| row.state.is_terminal();
            if only_ended && !queue.find_visible(job, now).is_some_and(has_ended) {
                return Err(Refusal::NoSuchJob);
            }
            queue.set_ttl(now, job, ttl_ms, out)
        });
    }

    /// Serves parked takes, the oldest first, while jobs are ready. A job that was submitted in this round is delivered in the
    /// same commit.
    pub(super) fn serve_parked(&mut self) {
        if !std::mem::take(&mut self.jobs_are_ready) {
            return;
        }
        while self.queue.queued() > 0 {
            let Some(parked) = self.parked.pop() else { return };
            let (worker, slots) = (parked.worker.clone(), parked.slots);
            let given = self.take_within_budget(self.take_of(&worker, slots));
            if given.rows.is_empty() && !self.queue.is_draining(&worker) {
                // The queue is paused, the queued jobs have expired, or the next input does not fit in the input budget.
                self.parked.push_front(parked);
                return;
            }
            self.deliver(&worker, given, parked.reply);
        }
    }

    /// Replies to a take with these jobs, and records how long each of them was queued.
    fn deliver(&mut self, worker: &WorkerId, given: Given, reply: ReplySender<Given>) {
        for row in &given.rows {
            assert_eq!(row.worker.as_ref(), Some(worker), "a job is delivered to the worker in its row");
            self.shared.metrics.delay_ms.record(row.delay_ms());
            self.shared.metrics.activity.delivered(row.delay_ms());
            if self.shared.met_cold_start(row) {
                self.shared.metrics.activity.met_cold_start();
            }
            self.trace_taken(row);
        }
        self.hold_jobs(reply, given);
    }

    /// Holds the reply of a take until this round is durable.
    fn hold_jobs(&mut self, reply: ReplySender<Given>, given: Given) {
        let shared = Arc::clone(&self.shared);
        self.hold(|reply| HeldReply::Jobs(reply, shared), reply, Ok(given));
    }

    fn report(
        &mut self,
        worker: &WorkerId,
        job: JobId,
        report: Report,
        outcome: OutcomeRow,
        reply: ReplySender<bool>,
    ) {
        let file = file_of(outcome.output.as_ref());
        let output_bytes = bytes_of(outcome.output.as_ref());
        let mut carried = CarriedPayload { input: None, outcome: Some(outcome) };
        let verb = |queue: &mut Queue, now, out: &mut Effects| queue.report(now, worker, job, report, out);
        let counted = self.apply_with(&mut carried, verb).is_some();
        if counted {
            self.shared.metrics.activity.put_out(output_bytes);
            self.own_output(job, file);
        } else {
            self.post_commit.blobs.extend(file);
        }
        self.hold(HeldReply::Counted, reply, Ok(counted));
    }

    fn progress(&mut self, worker: &WorkerId, job: JobId, outcome: OutcomeRow, reply: ReplySender<()>) {
        let file = file_of(outcome.output.as_ref());
        let mut carried = CarriedPayload { input: None, outcome: Some(outcome) };
        let verb = |queue: &mut Queue, now, out: &mut Effects| queue.progress(now, worker, job, out);
        if let Some(key) = self.apply_with(&mut carried, verb) {
            self.own_output(job, file);
            self.mark_progress(job);
            self.notify_followers(key, || TailEvent::Progress);
            if self.shared.record().webhook_events.contains(&WebhookEvent::Progress)
                && self.queue.find_stored(job).is_some_and(|row| row.webhook)
            {
                self.post_commit.progress.push(job);
            }
        } else {
            self.post_commit.blobs.extend(file);
        }
        self.hold(HeldReply::Done, reply, Ok(()));
    }

    /// Appends chunks to the stream of a job that the worker runs. Other chunks are dropped without an error: a worker can do
    /// nothing about an attempt that has ended. So are those of a post that the stream has: a node has sent it again.
    fn append(
        &mut self,
        worker: WorkerId,
        job: JobId,
        post: Option<RequestNo>,
        chunks: Vec<Bytes>,
        reply: ReplySender<Appended>,
    ) {
        if let Some((key, _)) = self.apply(|queue, now, out| queue.append(now, &worker, job, out)) {
            let Some((mut stream, bytes)) = self.streams.get(key).zip(self.streams.bytes(key)) else {
                self.hold(HeldReply::Appended, reply, Ok(Appended::Cold(key, chunks)));
                return;
            };
            if let Some(post) = post {
                if stream.posts.contains(post) && !planted(Bug::ChunkPostRepeated) {
                    self.hold(HeldReply::Appended, reply, Ok(Appended::Done));
                    return;
                }
                stream.posts.push(post);
            }
            let bytes = chunks.iter().fold(bytes, |bytes, chunk| bytes + chunk.len() as u64);
            let bytes_max = self.shared.services.settings.stream_bytes_max;
            if bytes > bytes_max {
                self.fail_long_stream(worker, job, bytes, bytes_max);
            } else {
                self.mark_chunk(job);
                if stream.next == 0 {
                    self.measure_first_chunk(job);
                }
                self.number_chunks(key, stream, chunks);
            }
        }
        self.hold(HeldReply::Appended, reply, Ok(Appended::Done));
    }

    /// Fails a job whose stream is longer than the limit, both in bytes. The worker runs it until the stop signal arrives.
    fn fail_long_stream(&mut self, worker: WorkerId, job: JobId, bytes: u64, bytes_max: u64) {
        let error = format!(
            "the job's stream has {bytes} bytes, the limit is {bytes_max}: upload large results and stream links"
        );
        let outcome = OutcomeRow { output: None, error: Some(error.into()) };
        let mut carried = CarriedPayload { input: None, outcome: Some(outcome) };
        self.apply_with(&mut carried, |queue, now, out| queue.report(now, &worker, job, Report::Failed, out));
        self.post_commit.stops.push((worker, job));
    }

    /// Drains a worker. Its parked takes and its stop poll are answered, because a worker waits for these before it exits.
    fn drain_worker(&mut self, worker: &WorkerId, reply: ReplySender<()>) {
        self.done(reply, |queue, _, out| queue.drain_worker(worker, out));
        self.unpark(worker);
        if self.queue.is_draining(worker) {
            self.shared.stop_signals.release(worker);
        }
    }

    /// Registers a waiter for the end of a job, and replies with the job's row as it is now.
    fn wait(&mut self, job: JobId, waiter: EndWaiter, reply: ReplySender<Box<JobRow>>) {
        let result = match self.queue.find_visible(job, self.now()) {
            Some(row) => {
                if !row.state.is_terminal() {
                    self.add_end_waiter(row.id, Some(waiter));
                }
                Ok(Box::new(row))
            }
            None => Err(EndpointError::Refused(Refusal::NoSuchJob)),
        };
        self.hold(HeldReply::Row, reply, result);
    }

    /// Registers a waiter for the end of a job that is not terminal. While the server stops, the waiter is dropped, which
    /// ends the wait.
    fn add_end_waiter(&mut self, job: JobId, waiter: Option<EndWaiter>) {
        if let (Some(waiter), false) = (waiter, self.releasing) {
            let waiters = self.end_waiters.entry(job).or_default();
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(waiter);
        }
    }

    /// Looks up a job's stream. If the stream is known and the job is not terminal, registers a waiter for the next chunk.
    fn stream(
        &mut self,
        job: JobId,
        waiter: tokio::sync::oneshot::Sender<()>,
        reply: ReplySender<StreamLookup>,
    ) {
        let lookup = match self.queue.find_visible(job, self.now()) {
            None => Err(EndpointError::Refused(Refusal::NoSuchJob)),
            Some(row) => match self.streams.get(row.key) {
                None => Ok(StreamLookup::Cold(row.key)),
                Some(stream) => {
                    if !row.state.is_terminal() {
                        self.streams.add_waiter(row.key, waiter);
                    }
                    let bytes = self.streams.bytes(row.key);
                    Ok(StreamLookup::Here(Box::new((row, stream, bytes))))
                }
            },
        };
        self.hold(HeldReply::Stream, reply, lookup);
    }

    /// Looks up the tail that the followers of a job share.
    fn follow(&mut self, job: JobId, reply: ReplySender<TailLookup>) {
        let lookup = match self.queue.find_visible(job, self.now()) {
            None => Err(EndpointError::Refused(Refusal::NoSuchJob)),
            Some(_) if self.releasing => Err(EndpointError::Unavailable("the server is stopping".to_owned())),
            Some(row) => match self.streams.get(row.key) {
                None => Ok(TailLookup::Cold(row.key)),
                Some(stream) => Ok(TailLookup::Here(self.streams.follow(row, stream.next))),
            },
        };
        self.hold(HeldReply::Tail, reply, lookup);
    }

    /// Moves the consumed offset of a known stream forward.
    fn consume(&mut self, job: JobId, offset: u64) {
        let Some(row) = self.queue.find_visible(job, self.now()) else { return };
        let Some(mut stream) = self.streams.get(row.key) else { return };
        let consumed = offset.min(stream.next).saturating_sub(u64::from(planted(Bug::DrainedTwice)));
        if consumed > stream.consumed {
            stream.consumed = consumed;
            self.put_stream(row.key, stream);
        }
    }

    /// Pauses the queue until its next settings.
    fn pause_queue(&mut self, reply: ReplySender<()>) {
        let mut settings = self.shared.services.queue_settings(&self.shared.record());
        settings.paused = true;
        self.done(reply, |queue, _, out| queue.configure(settings, out));
    }

    /// Applies the endpoint's settings to the queue.
    fn configure(&mut self, record: &Endpoint) {
        let settings = self.shared.services.queue_settings(record);
        self.apply(|queue, _, out| queue.configure(settings, out));
    }

    /// Answers parked takes and stop polls, and drops waiters. Later ones are answered or dropped immediately.
    pub(super) fn release_waits(&mut self) {
        self.releasing = true;
        while let Some(take) = self.parked.pop() {
            self.hold_jobs(take.reply, Given::default());
        }
        self.shared.stop_signals.close_all();
        // The client of a dropped waiter gets the job in its present state.
        self.post_commit.dropped.extend(std::mem::take(&mut self.end_waiters).into_values().flatten());
        self.streams.drop_waiters();
    }

    /// Deletes one slice of a deleted endpoint's jobs. After the last slice is durable, sends the reply and closes the
    /// mailbox, which ends the actor.
    pub(super) fn delete_slice(&mut self) {
        let left = self.apply(Queue::delete_slice);
        // The reply waits for the last slice: the engine then deletes the endpoint's record, and no later start would delete
        // rows that are left.
        if left > 0 || !self.is_all_durable() {
            return;
        }
        if let Some(reply) = self.deleting.take() {
            self.hold(HeldReply::Done, reply, Ok(()));
            self.release_waits();
            self.mailbox.close();
        }
    }
}
