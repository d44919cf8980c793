//! What each ask makes of the machine.

use bytes::Bytes;
use longshore_model::{Endpoint, JobId, JobRow, JobState, WebhookEvent, WorkerId};
use longshore_planted::{Bug, planted};
use longshore_queue::{Command, Refusal, Reply, Submit, Take, Verdict};
use longshore_store::{HookRow, OutcomeRow, Payload, Write};

use super::Actor;
use super::ask::{Answer, Appended, Ask, FollowLook, Given, StreamLook, Watch, answer, refuse};
use super::parked::ParkedTake;
use super::rows::{Carried, file_of};
use crate::handle::take::Undelivered;
use crate::owner_use::Use;
use crate::tail::TailNews;
use crate::{Accepted, AskError};

impl Actor {
    pub(super) fn handle(&mut self, ask: Ask) {
        match ask {
            Ask::Submit { submit, input, watch, reply } => self.submit(submit, input, watch, reply),
            Ask::Take { worker, slots, says_busy, reply } => self.take(worker, slots, says_busy, reply),
            Ask::Undelivered { jobs, reply } => self.undelivered(jobs, reply),
            Ask::Unpark { worker } => self.unpark(&worker),
            Ask::Finish { worker, job, verdict, outcome, reply } => {
                self.finish(worker, job, verdict, outcome, reply);
            }
            Ask::Progress { worker, job, outcome, reply } => self.progress(worker, job, outcome, reply),
            Ask::Append { worker, job, chunks, reply } => self.append(worker, job, chunks, reply),
            Ask::Alive { worker } => drop(self.apply(Command::Alive(worker))),
            Ask::Command { command, reply } => self.command(command, reply),
            Ask::Inspect(inspection) => {
                let release = inspection(&self.queue, self.now());
                self.releases.push(release);
            }
            Ask::Watch { job, watch, reply } => self.watch(job, watch, reply),
            Ask::Stream { job, watch, reply } => self.stream(job, watch, reply),
            Ask::Follow { job, reply } => self.follow(job, reply),
            Ask::Warm { key, stream, bytes } => self.streams.warm(key, stream, bytes),
            Ask::Drained { job, offset } => self.drained(job, offset),
            Ask::HookAttempted { job, end, attempts, due_at, reply } => {
                if let Some(row) = self.queue.stored(job).filter(|row| row.owed_end() == Some(end)) {
                    self.writes.push(Write::PutHook(HookRow { job: row.key, attempts, due_at }));
                }
                self.releases.push(answer(reply, ()));
            }
            Ask::Configure(record) => self.configure(&record),
            Ask::ReleasePolls { reply } => {
                self.release_polls();
                self.releases.push(answer(reply, ()));
            }
            Ask::Demolish { reply } => self.demolishing = Some(reply),
        }
    }

    /// Applies a command that carries no payload.
    pub(super) fn apply(&mut self, command: Command) -> Reply {
        self.apply_with(command, Carried::default())
    }

    fn apply_with(&mut self, command: Command, carried: Carried) -> Reply {
        let mut effects = std::mem::take(&mut self.effects);
        let reply = self.queue.apply(self.now(), command, &mut effects);
        self.write_all(&mut effects.changes, carried);
        self.signal_all(&mut effects.signals);
        self.effects = effects;
        reply
    }

    fn submit(&mut self, submit: Submit, input: Payload, watch: Option<Watch>, reply: Answer<Accepted>) {
        let (id, file, submitter) = (submit.id, file_of(Some(&input)), submit.submitter);
        let carried = Carried { input: Some(input), outcome: None };
        match self.apply_with(Command::Submit(submit), carried) {
            Reply::Accepted(_) => {
                self.after.used.add(submitter, Use { submitted: 1, ..Use::default() });
                self.own_blob(id, file);
                self.watch_from(id, watch);
                self.releases.push(answer(reply, Accepted { id, state: JobState::InQueue }));
            }
            Reply::Known(row) => {
                if !row.state.is_terminal() {
                    self.watch_from(row.id, watch);
                }
                self.releases.push(answer(reply, Accepted { id: row.id, state: row.state }));
            }
            other => self.releases.push(refuse(reply, refused(&other))),
        }
    }

    fn take(&mut self, worker: WorkerId, slots: u32, says_busy: Option<bool>, reply: Answer<Given>) {
        let overlapping = self.parked.overlaps(&worker);
        let was_leaving = self.queue.is_draining(&worker);
        let take = Take { worker: worker.clone(), slots, says_busy, overlapping, input_bytes_max: 0 };
        let Some(given) = self.take_within_room(take) else { return };
        // A take makes nobody leave.
        let is_leaving = was_leaving && self.queue.is_draining(&worker);
        if was_leaving && !is_leaving {
            self.shared.stops.forget(&worker);
        }
        if given.rows.is_empty() && !self.releasing && !is_leaving {
            self.parked.park(ParkedTake { worker, slots, reply });
        } else {
            self.hand_over(given, reply);
        }
    }

    /// The last one first, so that all of them keep their order.
    fn undelivered(&mut self, jobs: Vec<Undelivered>, reply: Answer<()>) {
        for Undelivered { job, attempt, damage } in jobs.into_iter().rev() {
            self.apply(Command::Undelivered { job, attempt, damage });
        }
        self.releases.push(answer(reply, ()));
    }

    fn unpark(&mut self, worker: &WorkerId) {
        for take in self.parked.remove(worker) {
            self.releases.push(answer(take.reply, Given::default()));
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
                self.parked.unpop(parked);
                return;
            }
            self.hand_over(given, parked.reply);
        }
    }

    fn hand_over(&mut self, given: Given, reply: Answer<Given>) {
        for row in &given.rows {
            self.shared.metrics.delay_ms.record(row.delay_ms());
        }
        self.releases.push(answer(reply, given));
    }

    fn finish(
        &mut self,
        worker: WorkerId,
        job: JobId,
        verdict: Verdict,
        outcome: OutcomeRow,
        reply: Answer<bool>,
    ) {
        let file = file_of(outcome.output.as_ref());
        let carried = Carried { input: None, outcome: Some(outcome) };
        let counted =
            matches!(self.apply_with(Command::Finish { worker, job, verdict }, carried), Reply::Recorded(_));
        if counted {
            self.own_output(job, file);
        } else {
            self.after.blobs.extend(file);
        }
        self.releases.push(answer(reply, counted));
    }

    fn progress(&mut self, worker: WorkerId, job: JobId, outcome: OutcomeRow, reply: Answer<()>) {
        let file = file_of(outcome.output.as_ref());
        let carried = Carried { input: None, outcome: Some(outcome) };
        if let Reply::Recorded(key) = self.apply_with(Command::Progress { worker, job }, carried) {
            self.own_output(job, file);
            self.tell_followers(key, || TailNews::Progress);
            if self.shared.record().webhook_events.contains(&WebhookEvent::Progress)
                && self.queue.stored(job).is_some_and(|row| row.webhook)
            {
                self.after.progress.push(job);
            }
        } else {
            self.after.blobs.extend(file);
        }
        self.releases.push(answer(reply, ()));
    }

    fn append(&mut self, worker: WorkerId, job: JobId, chunks: Vec<Bytes>, reply: Answer<Appended>) {
        let may = Command::Append { worker: worker.clone(), job };
        if let Reply::MayAppend(key, _) = self.apply(may) {
            let Some((stream, bytes)) = self.streams.get(key).zip(self.streams.bytes(key)) else {
                self.releases.push(answer(reply, Appended::Cold(key, chunks)));
                return;
            };
            let bytes = chunks.iter().fold(bytes, |bytes, chunk| bytes + chunk.len() as u64);
            let bytes_max = self.shared.ground.settings.stream_bytes_max;
            if bytes > bytes_max {
                self.fail_flood(worker, job, bytes, bytes_max);
            } else {
                self.number_chunks(key, stream, chunks);
            }
        }
        self.releases.push(answer(reply, Appended::Done));
    }

    /// Ends a job that streams more than it may. Its worker goes on until it hears of that.
    fn fail_flood(&mut self, worker: WorkerId, job: JobId, bytes: u64, bytes_max: u64) {
        let error = format!(
            "the job's stream has {bytes} bytes, the limit is {bytes_max}: upload large results and stream links"
        );
        let outcome = OutcomeRow { output: None, error: Some(error.into()) };
        let carried = Carried { input: None, outcome: Some(outcome) };
        let verdict = Verdict::Failed;
        self.apply_with(Command::Finish { worker: worker.clone(), job, verdict }, carried);
        self.after.stops.push((worker, job));
    }

    fn command(&mut self, command: Command, reply: Answer<Reply>) {
        let (leaving, gone) = match &command {
            Command::Drain(worker) => (Some(worker.clone()), false),
            Command::Lose { worker, .. } => (Some(worker.clone()), true),
            _ => (None, false),
        };
        match self.apply(command) {
            refusal @ Reply::Refused(_) => self.releases.push(refuse(reply, refused(&refusal))),
            done => self.releases.push(answer(reply, done)),
        }
        if let Some(worker) = leaving {
            // A worker that is to end waits for its polls first: answer them.
            self.unpark(&worker);
            if gone {
                self.shared.stops.forget(&worker);
            } else if self.queue.is_draining(&worker) {
                self.shared.stops.release(&worker);
            }
        }
    }

    fn watch(&mut self, job: JobId, watch: Watch, reply: Answer<JobRow>) {
        match self.queue.visible(job, self.now()) {
            Some(row) => {
                if !row.state.is_terminal() {
                    self.watch_from(row.id, Some(watch));
                }
                self.releases.push(answer(reply, row));
            }
            None => self.releases.push(refuse(reply, AskError::Refused(Refusal::NoSuchJob))),
        }
    }

    /// Registers a wait for the end of a job that is not terminal: else whoever asked has the answer in hand. While the
    /// server stops nobody waits: the dropped watch says so.
    fn watch_from(&mut self, job: JobId, watch: Option<Watch>) {
        if let (Some(watch), false) = (watch, self.releasing) {
            let watches = self.watches.entry(job).or_default();
            watches.retain(|watch| !watch.is_closed());
            watches.push(watch);
        }
    }

    fn stream(&mut self, job: JobId, watch: tokio::sync::oneshot::Sender<()>, reply: Answer<StreamLook>) {
        let Some(row) = self.queue.visible(job, self.now()) else {
            self.releases.push(refuse(reply, AskError::Refused(Refusal::NoSuchJob)));
            return;
        };
        let look = match self.streams.get(row.key) {
            None => StreamLook::Cold(row.key),
            Some(stream) => {
                if !row.state.is_terminal() {
                    self.streams.watch(row.key, watch);
                }
                StreamLook::Here(Box::new(row), stream)
            }
        };
        self.releases.push(answer(reply, look));
    }

    fn follow(&mut self, job: JobId, reply: Answer<FollowLook>) {
        let Some(row) = self.queue.visible(job, self.now()) else {
            self.releases.push(refuse(reply, AskError::Refused(Refusal::NoSuchJob)));
            return;
        };
        let look = match self.streams.get(row.key) {
            _ if self.releasing => {
                let why = AskError::Unavailable("the server is stopping".to_owned());
                self.releases.push(refuse(reply, why));
                return;
            }
            None => FollowLook::Cold(row.key),
            Some(stream) => FollowLook::Here(self.streams.follow(row, stream.next)),
        };
        self.releases.push(answer(reply, look));
    }

    fn drained(&mut self, job: JobId, offset: u64) {
        let Some(row) = self.queue.visible(job, self.now()) else { return };
        let Some(mut stream) = self.streams.get(row.key) else { return };
        let drained = offset.min(stream.next).saturating_sub(u64::from(planted(Bug::DrainedTwice)));
        if drained > stream.drained {
            stream.drained = drained;
            self.put_stream(row.key, stream);
        }
    }

    fn configure(&mut self, record: &Endpoint) {
        let settings = self.shared.ground.settings.of_queue(record);
        self.apply(Command::Configure(settings));
    }

    fn release_polls(&mut self) {
        self.releasing = true;
        while let Some(take) = self.parked.pop() {
            self.releases.push(answer(take.reply, Given::default()));
        }
        self.shared.stops.close_all();
        // Whoever waits for a job is answered with the job as it is.
        self.after.dropped.extend(std::mem::take(&mut self.watches).into_values().flatten());
        self.streams.dismiss();
    }

    pub(super) fn demolish_slice(&mut self) {
        let Reply::Left(left) = self.apply(Command::Demolish) else { return };
        // Not before the last slice is on disk: the engine removes the record next, and what is left then stays
        // for ever.
        if left > 0 || !self.is_all_durable() {
            return;
        }
        if let Some(reply) = self.demolishing.take() {
            self.releases.push(answer(reply, ()));
            self.release_polls();
            self.mailbox.close();
        }
    }
}

fn refused(reply: &Reply) -> AskError {
    match reply {
        Reply::Refused(refusal) => AskError::Refused(*refusal),
        _ => AskError::Unavailable("the queue gave an answer to another question".to_owned()),
    }
}
