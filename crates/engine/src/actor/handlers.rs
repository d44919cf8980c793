//! What each ask makes of the machine.

use bytes::Bytes;
use longshore_model::{Endpoint, JobId, JobRow, JobState, WebhookEvent, WorkerId};
use longshore_planted::{Bug, planted};
use longshore_queue::{Command, Refusal, Reply, Report, Submit, Take};
use longshore_store::{OutcomeRow, Payload, WebhookRow, Write};

use super::Actor;
use super::parked_takes::ParkedTake;
use super::request::{
    Appended, EndWaiter, Given, ReplySender, Request, StreamLookup, TailLookup, answer, refuse,
};
use super::writes::{CarriedPayload, file_of};
use crate::handle::take::Undelivered;
use crate::owner_use::Use;
use crate::stream_tail::TailEvent;
use crate::{Accepted, EndpointError};

impl Actor {
    pub(super) fn handle(&mut self, request: Request) {
        match request {
            Request::Submit { submit, input, watch, reply } => self.submit(submit, input, watch, reply),
            Request::Take { worker, slots, says_busy, reply } => self.take(worker, slots, says_busy, reply),
            Request::Undelivered { jobs, reply } => self.undelivered(jobs, reply),
            Request::Unpark { worker } => self.unpark(&worker),
            Request::Report { worker, job, report, outcome, reply } => {
                self.report(worker, job, report, outcome, reply);
            }
            Request::Progress { worker, job, outcome, reply } => self.progress(worker, job, outcome, reply),
            Request::Append { worker, job, chunks, reply } => self.append(worker, job, chunks, reply),
            Request::TouchWorker { worker } => drop(self.apply(Command::TouchWorker(worker))),
            Request::Command { command, reply } => self.command(command, reply),
            Request::Inspect(inspection) => {
                let release = inspection(&self.queue, self.now());
                self.held.push(release);
            }
            Request::Wait { job, watch, reply } => self.watch(job, watch, reply),
            Request::Stream { job, watch, reply } => self.stream(job, watch, reply),
            Request::Follow { job, reply } => self.follow(job, reply),
            Request::WarmStream { key, stream, bytes } => self.streams.warm(key, stream, bytes),
            Request::Consume { job, offset } => self.consume(job, offset),
            Request::WebhookAttempted { job, end, attempts, due_at, reply } => {
                if let Some(row) = self.queue.find_stored(job).filter(|row| row.pending_end() == Some(end)) {
                    self.writes.push(Write::PutWebhook(WebhookRow { job: row.key, attempts, due_at }));
                }
                self.held.push(answer(reply, ()));
            }
            Request::Configure(record) => self.configure(&record),
            Request::ReleaseWaits { reply } => {
                self.release_waits();
                self.held.push(answer(reply, ()));
            }
            Request::Delete { reply } => self.deleting = Some(reply),
        }
    }

    /// Applies a command that carries no payload.
    pub(super) fn apply(&mut self, command: Command) -> Reply {
        self.apply_with(command, CarriedPayload::default())
    }

    fn apply_with(&mut self, command: Command, carried: CarriedPayload) -> Reply {
        let mut effects = std::mem::take(&mut self.effects);
        let reply = self.queue.apply(self.now(), command, &mut effects);
        self.write_all(&mut effects.changes, carried);
        self.signal_all(&mut effects.signals);
        self.effects = effects;
        reply
    }

    fn submit(
        &mut self,
        submit: Submit,
        input: Payload,
        watch: Option<EndWaiter>,
        reply: ReplySender<Accepted>,
    ) {
        let (id, file, submitter) = (submit.id, file_of(Some(&input)), submit.submitter);
        let carried = CarriedPayload { input: Some(input), outcome: None };
        match self.apply_with(Command::Submit(submit), carried) {
            Reply::Accepted(_) => {
                self.post_commit.used.add(submitter, Use { submitted: 1, ..Use::default() });
                self.own_blob(id, file);
                self.watch_from(id, watch);
                self.held.push(answer(reply, Accepted { id, state: JobState::InQueue }));
            }
            Reply::Known(row) => {
                if !row.state.is_terminal() {
                    self.watch_from(row.id, watch);
                }
                self.held.push(answer(reply, Accepted { id: row.id, state: row.state }));
            }
            other => self.held.push(refuse(reply, refused(&other))),
        }
    }

    fn take(&mut self, worker: WorkerId, slots: u32, says_busy: Option<bool>, reply: ReplySender<Given>) {
        let overlapping = self.parked.overlaps(&worker);
        let was_leaving = self.queue.is_draining(&worker);
        let take = Take { worker: worker.clone(), slots, says_busy, overlapping, input_bytes_max: 0 };
        let Some(given) = self.take_within_room(take) else { return };
        // A take makes nobody leave.
        let is_leaving = was_leaving && self.queue.is_draining(&worker);
        if was_leaving && !is_leaving {
            self.shared.stop_signals.forget(&worker);
        }
        if given.rows.is_empty() && !self.releasing && !is_leaving {
            self.parked.park(ParkedTake { worker, slots, reply });
        } else {
            self.hand_over(given, reply);
        }
    }

    /// The last one first, so that all of them keep their order.
    fn undelivered(&mut self, jobs: Vec<Undelivered>, reply: ReplySender<()>) {
        for Undelivered { job, attempt, damage } in jobs.into_iter().rev() {
            self.apply(Command::Undelivered { job, attempt, damage });
        }
        self.held.push(answer(reply, ()));
    }

    fn unpark(&mut self, worker: &WorkerId) {
        for take in self.parked.remove(worker) {
            self.held.push(answer(take.reply, Given::default()));
        }
    }

    /// Lets parked takes try again while there are jobs: in the same commit as the job's own submit.
    pub(super) fn serve_parked(&mut self) {
        if !std::mem::take(&mut self.jobs_are_ready) {
            return;
        }
        while self.queue.queued() > 0 {
            let Some(parked) = self.parked.pop() else { return };
            let (worker, slots) = (parked.worker.clone(), parked.slots);
            let (says_busy, overlapping) = (None, false);
            let take = Take { worker: worker.clone(), slots, says_busy, overlapping, input_bytes_max: 0 };
            let Some(given) = self.take_within_room(take) else { return };
            if given.rows.is_empty() && !self.queue.is_draining(&worker) {
                // Paused, or what was queued has expired, or there is no room for the next one.
                self.parked.push_front(parked);
                return;
            }
            self.hand_over(given, parked.reply);
        }
    }

    fn hand_over(&mut self, given: Given, reply: ReplySender<Given>) {
        for row in &given.rows {
            self.shared.metrics.delay_ms.record(row.delay_ms());
        }
        self.held.push(answer(reply, given));
    }

    fn report(
        &mut self,
        worker: WorkerId,
        job: JobId,
        report: Report,
        outcome: OutcomeRow,
        reply: ReplySender<bool>,
    ) {
        let file = file_of(outcome.output.as_ref());
        let carried = CarriedPayload { input: None, outcome: Some(outcome) };
        let counted =
            matches!(self.apply_with(Command::Report { worker, job, report }, carried), Reply::Recorded(_));
        if counted {
            self.own_output(job, file);
        } else {
            self.post_commit.blobs.extend(file);
        }
        self.held.push(answer(reply, counted));
    }

    fn progress(&mut self, worker: WorkerId, job: JobId, outcome: OutcomeRow, reply: ReplySender<()>) {
        let file = file_of(outcome.output.as_ref());
        let carried = CarriedPayload { input: None, outcome: Some(outcome) };
        if let Reply::Recorded(key) = self.apply_with(Command::Progress { worker, job }, carried) {
            self.own_output(job, file);
            self.notify_followers(key, || TailEvent::Progress);
            if self.shared.record().webhook_events.contains(&WebhookEvent::Progress)
                && self.queue.find_stored(job).is_some_and(|row| row.webhook)
            {
                self.post_commit.progress.push(job);
            }
        } else {
            self.post_commit.blobs.extend(file);
        }
        self.held.push(answer(reply, ()));
    }

    fn append(&mut self, worker: WorkerId, job: JobId, chunks: Vec<Bytes>, reply: ReplySender<Appended>) {
        let may = Command::Append { worker: worker.clone(), job };
        if let Reply::MayAppend(key, _) = self.apply(may) {
            let Some((stream, bytes)) = self.streams.get(key).zip(self.streams.bytes(key)) else {
                self.held.push(answer(reply, Appended::Cold(key, chunks)));
                return;
            };
            let bytes = chunks.iter().fold(bytes, |bytes, chunk| bytes + chunk.len() as u64);
            let bytes_max = self.shared.services.settings.stream_bytes_max;
            if bytes > bytes_max {
                self.fail_flood(worker, job, bytes, bytes_max);
            } else {
                self.number_chunks(key, stream, chunks);
            }
        }
        self.held.push(answer(reply, Appended::Done));
    }

    /// Ends a job that streams more than it may. Its worker goes on until it hears of that.
    fn fail_flood(&mut self, worker: WorkerId, job: JobId, bytes: u64, bytes_max: u64) {
        let error = format!(
            "the job's stream has {bytes} bytes, the limit is {bytes_max}: upload large results and stream links"
        );
        let outcome = OutcomeRow { output: None, error: Some(error.into()) };
        let carried = CarriedPayload { input: None, outcome: Some(outcome) };
        let report = Report::Failed;
        self.apply_with(Command::Report { worker: worker.clone(), job, report }, carried);
        self.post_commit.stops.push((worker, job));
    }

    fn command(&mut self, command: Command, reply: ReplySender<Reply>) {
        let (leaving, gone) = match &command {
            Command::DrainWorker(worker) => (Some(worker.clone()), false),
            Command::LoseWorker { worker, .. } => (Some(worker.clone()), true),
            _ => (None, false),
        };
        match self.apply(command) {
            refusal @ Reply::Refused(_) => self.held.push(refuse(reply, refused(&refusal))),
            done => self.held.push(answer(reply, done)),
        }
        if let Some(worker) = leaving {
            // A worker that is to end waits for its polls first: answer them.
            self.unpark(&worker);
            if gone {
                self.shared.stop_signals.forget(&worker);
            } else if self.queue.is_draining(&worker) {
                self.shared.stop_signals.release(&worker);
            }
        }
    }

    fn watch(&mut self, job: JobId, watch: EndWaiter, reply: ReplySender<JobRow>) {
        match self.queue.find_visible(job, self.now()) {
            Some(row) => {
                if !row.state.is_terminal() {
                    self.watch_from(row.id, Some(watch));
                }
                self.held.push(answer(reply, row));
            }
            None => self.held.push(refuse(reply, EndpointError::Refused(Refusal::NoSuchJob))),
        }
    }

    /// Registers a wait for the end of a job that is not terminal: else whoever asked has the answer in hand. While the
    /// server stops nobody waits: the dropped watch says so.
    fn watch_from(&mut self, job: JobId, watch: Option<EndWaiter>) {
        if let (Some(watch), false) = (watch, self.releasing) {
            let watches = self.end_waiters.entry(job).or_default();
            watches.retain(|watch| !watch.is_closed());
            watches.push(watch);
        }
    }

    fn stream(
        &mut self,
        job: JobId,
        watch: tokio::sync::oneshot::Sender<()>,
        reply: ReplySender<StreamLookup>,
    ) {
        let Some(row) = self.queue.find_visible(job, self.now()) else {
            self.held.push(refuse(reply, EndpointError::Refused(Refusal::NoSuchJob)));
            return;
        };
        let look = match self.streams.get(row.key) {
            None => StreamLookup::Cold(row.key),
            Some(stream) => {
                if !row.state.is_terminal() {
                    self.streams.watch(row.key, watch);
                }
                StreamLookup::Here(Box::new(row), stream)
            }
        };
        self.held.push(answer(reply, look));
    }

    fn follow(&mut self, job: JobId, reply: ReplySender<TailLookup>) {
        let Some(row) = self.queue.find_visible(job, self.now()) else {
            self.held.push(refuse(reply, EndpointError::Refused(Refusal::NoSuchJob)));
            return;
        };
        let look = match self.streams.get(row.key) {
            _ if self.releasing => {
                let why = EndpointError::Unavailable("the server is stopping".to_owned());
                self.held.push(refuse(reply, why));
                return;
            }
            None => TailLookup::Cold(row.key),
            Some(stream) => TailLookup::Here(self.streams.follow(row, stream.next)),
        };
        self.held.push(answer(reply, look));
    }

    fn consume(&mut self, job: JobId, offset: u64) {
        let Some(row) = self.queue.find_visible(job, self.now()) else { return };
        let Some(mut stream) = self.streams.get(row.key) else { return };
        let drained = offset.min(stream.next).saturating_sub(u64::from(planted(Bug::DrainedTwice)));
        if drained > stream.consumed {
            stream.consumed = drained;
            self.put_stream(row.key, stream);
        }
    }

    fn configure(&mut self, record: &Endpoint) {
        let settings = self.shared.services.settings.of_queue(record);
        self.apply(Command::Configure(settings));
    }

    fn release_waits(&mut self) {
        self.releasing = true;
        while let Some(take) = self.parked.pop() {
            self.held.push(answer(take.reply, Given::default()));
        }
        self.shared.stop_signals.close_all();
        // Whoever waits for a job is answered with the job as it is.
        self.post_commit.dropped.extend(std::mem::take(&mut self.end_waiters).into_values().flatten());
        self.streams.drop_waiters();
    }

    pub(super) fn delete_slice(&mut self) {
        let Reply::Left(left) = self.apply(Command::DeleteSlice) else { return };
        // Not before the last slice is on disk: the engine removes the record next, and what is left then stays
        // for ever.
        if left > 0 || !self.is_all_durable() {
            return;
        }
        if let Some(reply) = self.deleting.take() {
            self.held.push(answer(reply, ()));
            self.release_waits();
            self.mailbox.close();
        }
    }
}

fn refused(reply: &Reply) -> EndpointError {
    match reply {
        Reply::Refused(refusal) => EndpointError::Refused(*refusal),
        _ => EndpointError::Unavailable("the queue gave an answer to another question".to_owned()),
    }
}
