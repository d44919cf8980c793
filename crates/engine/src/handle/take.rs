//! Jobs for a worker: what the queue hands out, with the inputs.
//!
//! An input that cannot be read concerns its own job alone. The others are delivered; that one goes back to its place
//! in the line and is tried again later, or is over if its input is lost for good.

use std::time::Duration;

use longshore_model::{Attempt, JobId, JobRow, WorkerId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::EndpointHandle;
use crate::actor::request::{Given, Request};
use crate::secrets::opened;
use crate::{EndpointError, TakeRequest, TakenJob};

/// How long a poll whose hold is over waits for the actor's answer.
const UNPARK_REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a poll asks again after nothing could be read of what it was given. Then its worker is told to wait: a
/// disk that is gone must not be asked for every job of the queue.
const ROUNDS_MAX: u32 = 3;
/// How long to wait before it is told once more that jobs were not delivered.
const REPEAT: Duration = Duration::from_millis(500);
/// How often. After that their worker's pings bring them back, as after any answer that got lost.
const REPEATS_MAX: u32 = 120;

/// What the client of a damaged job is told. The log says where on the disk.
const DAMAGED: &str = "the job's input is damaged on the server's disk, so no worker got it: submit the job again; the \
                       server's log says which file";

/// A job that was handed out and did not leave.
#[derive(Clone, Debug)]
pub(crate) struct Undelivered {
    pub(crate) job: JobId,
    pub(crate) attempt: Attempt,
    /// What the client is told if the input is lost for good.
    pub(crate) damage: Option<String>,
}

impl EndpointHandle {
    /// Jobs for a worker; empty when `hold_ms` passed without one.
    pub async fn take(&self, worker: WorkerId, request: TakeRequest) -> Result<Vec<TakenJob>, EndpointError> {
        let mut request = request;
        let until = Instant::now() + Duration::from_millis(request.hold_ms);
        for _ in 0..ROUNDS_MAX {
            let Given { rows, room } = self.given(&worker, request, until).await?;
            let mut jobs = Vec::with_capacity(rows.len());
            let mut undelivered = Vec::new();
            for row in rows {
                match self.input(&row, &room).await {
                    Ok(members) => {
                        let members = opened(&self.shared.services.vault, row.id, members);
                        jobs.push(TakenJob { row, members, room: room.clone() });
                    }
                    Err(error) => undelivered.push(self.undelivered(&row, &error)),
                }
            }
            if undelivered.is_empty() {
                return Ok(jobs);
            }
            let told = self.give_back(undelivered);
            if !jobs.is_empty() {
                return Ok(jobs);
            }
            // Boxed: every take would carry around what few of them need.
            let _ = Box::pin(told).await;
            // It was said once, of the jobs before these.
            request.says_busy = None;
        }
        Err(EndpointError::Unreadable("the inputs of the jobs that are next".to_owned()))
    }

    /// What the queue hands out.
    async fn given(
        &self,
        worker: &WorkerId,
        request: TakeRequest,
        until: Instant,
    ) -> Result<Given, EndpointError> {
        let TakeRequest { slots, says_busy, .. } = request;
        let (reply, mut answer) = oneshot::channel();
        self.tell(Request::Take { worker: worker.clone(), slots, says_busy, reply })?;
        let mut held = tokio::time::timeout_at(until, &mut answer).await;
        if held.is_err() {
            // A job may be on its way to the disk in this very moment: whoever assigned it has the last word.
            self.tell(Request::Unpark { worker: worker.clone() })?;
            held = tokio::time::timeout(UNPARK_REPLY_TIMEOUT, &mut answer).await;
        }
        match held {
            Ok(Ok(given)) => given,
            Ok(Err(_)) => Err(EndpointError::Unavailable("the queue is being reloaded".to_owned())),
            Err(_) => {
                answer.close();
                answer.try_recv().unwrap_or_else(|_| Ok(Given::default()))
            }
        }
    }

    fn undelivered(&self, row: &JobRow, error: &EndpointError) -> Undelivered {
        self.note_unread(row.id, "input", error);
        let damage = matches!(error, EndpointError::Damaged(_)).then(|| DAMAGED.to_owned());
        Undelivered { job: row.id, attempt: row.attempt, damage }
    }

    /// Tells the queue, until it has heard. Goes on when nobody waits for it.
    fn give_back(&self, jobs: Vec<Undelivered>) -> tokio::task::JoinHandle<()> {
        let handle = self.clone();
        self.shared.services.runtime.spawn(Box::pin(async move {
            for _ in 0..REPEATS_MAX {
                let jobs = jobs.clone();
                match handle.request(|reply| Request::Undelivered { jobs, reply }).await {
                    Err(EndpointError::Unavailable(_)) if !handle.is_stopping() => {}
                    _ => return,
                }
                tokio::time::sleep(REPEAT).await;
            }
        }))
    }
}
