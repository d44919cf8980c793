//! Taking jobs: the queue delivers rows, and their inputs are read for the worker.
//!
//! An input that cannot be read concerns its own job only. The other jobs are delivered. That job returns to its
//! position in the queue, or fails if its input is damaged.

use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Attempt, JobId, JobRow, WorkerId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Workers;
use crate::actor::request::{Given, Request};
use crate::endpoint_shared::EndpointShared;
use crate::endpoint_shared::requests::reloading;
use crate::secrets::opened;
use crate::{EndpointError, TakeRequest, TakenJob};

/// How long a take whose hold is over waits for the actor's reply.
const UNPARK_REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a take asks the queue if no input of the delivered jobs can be read. Then the worker is told to wait, so
/// that a failed disk is not read for every job of the queue.
const ROUNDS_MAX: u32 = 3;
/// The pause before undelivered jobs are sent to a queue again that could not commit.
const REPEAT: Duration = Duration::from_millis(500);
/// The number of these attempts. After the last one, the worker's pings requeue the jobs, as after a lost reply.
const REPEATS_MAX: u32 = 120;

/// The error of a job whose input is damaged. The log names the file.
const DAMAGED: &str = "the job's input is damaged on the server's disk, so no worker got it: submit the job again; the \
                       server's log says which file";

/// A delivered job whose input could not be read, so that no reply has it.
#[derive(Clone, Debug)]
pub(crate) struct Undelivered {
    pub(crate) job: JobId,
    pub(crate) attempt: Attempt,
    /// The error with which the job fails, because its input is damaged. `None` if the job is to be requeued.
    pub(crate) damage: Option<String>,
}

impl Workers {
    /// Returns up to `slots` jobs for the worker, or none after `hold_ms`. For a drained worker it returns none without
    /// a hold. The new attempt of each returned job is durable. A dropped future ends its parked take.
    ///
    /// # Errors
    ///
    /// - [`EndpointError::Unavailable`] if the queue reloads. A job that was delivered before is redelivered.
    /// - [`EndpointError::Unreadable`] if no input of three deliveries could be read. Their jobs are requeued or
    ///   failed.
    pub async fn take(&self, worker: WorkerId, request: TakeRequest) -> Result<Vec<TakenJob>, EndpointError> {
        let mut request = request;
        let until = Instant::now() + Duration::from_millis(request.hold_ms);
        for _ in 0..ROUNDS_MAX {
            let Given { rows, room } = self.deliver(&worker, request, until).await?;
            let jobs = Vec::with_capacity(rows.len());
            let mut unanswered = UnansweredTake { workers: self, rows: rows.into_iter(), jobs };
            let mut undelivered = Vec::new();
            while let Some(row) = unanswered.rows.as_slice().first() {
                let read = self.shared.input(row, &room).await;
                let Some(row) = unanswered.rows.next() else { break };
                match read {
                    Ok(members) => {
                        let members = opened(&self.shared.services.vault, row.id, members);
                        let trace = self.shared.services.traces.as_ref().map(|traces| traces.attempt(&row));
                        unanswered.jobs.push(TakenJob { row, members, trace, room: room.clone() });
                    }
                    Err(error) => undelivered.push(self.undelivered(&row, &error)),
                }
            }
            let jobs = std::mem::take(&mut unanswered.jobs);
            if undelivered.is_empty() {
                return Ok(jobs);
            }
            let returned = self.return_undelivered(undelivered);
            if !jobs.is_empty() {
                return Ok(jobs);
            }
            // Boxed: few takes wait here, and every future would reserve the size.
            let _ = Box::pin(returned).await;
            // The worker said so before these deliveries.
            request.says_busy = None;
        }
        Err(EndpointError::Unreadable("the inputs of the jobs that are next".to_owned()))
    }

    /// The rows that the queue delivers, none after `until`.
    async fn deliver(
        &self,
        worker: &WorkerId,
        request: TakeRequest,
        until: Instant,
    ) -> Result<Given, EndpointError> {
        let (reply, answer) = oneshot::channel();
        let mut pending = PendingTake { workers: self, answer };
        let answer = &mut pending.answer;
        self.shared.send(Request::Take { worker: worker.clone(), request, reply })?;
        let mut held = tokio::time::timeout_at(until, &mut *answer).await;
        if held.is_err() {
            // The commit of a delivery may be in flight. So the actor decides which reply the take gets.
            self.shared.send(Request::Unpark { worker: worker.clone() })?;
            held = tokio::time::timeout(UNPARK_REPLY_TIMEOUT, answer).await;
        }
        match held {
            Ok(Ok(given)) => given,
            Ok(Err(_)) => Err(reloading()),
            Err(_) => pending.given_so_far().unwrap_or_else(|| Ok(Given::default())),
        }
    }

    /// Logs that the row's input could not be read, and returns what the queue must know.
    fn undelivered(&self, row: &JobRow, error: &EndpointError) -> Undelivered {
        self.shared.note_unread(row.id, "input", error);
        let damage = matches!(error, EndpointError::Damaged(_)).then(|| DAMAGED.to_owned());
        Undelivered { job: row.id, attempt: row.attempt, damage }
    }

    /// Sends undelivered jobs to the queue until it has them. The task continues without the take.
    fn return_undelivered(&self, jobs: Vec<Undelivered>) -> tokio::task::JoinHandle<()> {
        let shared = Arc::clone(&self.shared);
        self.shared.services.runtime.spawn(Box::pin(async move {
            for _ in 0..REPEATS_MAX {
                let jobs = jobs.clone();
                match shared.request(|reply| Request::Undelivered { jobs, reply }).await {
                    Err(error) if error.is_of_writing() && !shared.is_stopping() => {}
                    _ => return,
                }
                tokio::time::sleep(REPEAT).await;
            }
        }))
    }
}

/// A take that waits for the actor's reply. Dropped before the reply was read, it returns the jobs in it to the queue: the
/// worker has disconnected, and would hold them until its lease ends.
struct PendingTake<'a> {
    workers: &'a Workers,
    answer: oneshot::Receiver<Result<Given, EndpointError>>,
}

impl PendingTake<'_> {
    /// Refuses a later reply, and returns the one that has arrived but was not read.
    fn given_so_far(&mut self) -> Option<Result<Given, EndpointError>> {
        self.answer.close();
        self.answer.try_recv().ok()
    }
}

impl Drop for PendingTake<'_> {
    fn drop(&mut self) {
        if let Some(Ok(given)) = self.given_so_far() {
            return_unread(Arc::clone(&self.workers.shared), given);
        }
    }
}

/// Returns jobs to the queue whose delivery no take has read.
pub(crate) fn return_unread(shared: Arc<EndpointShared>, given: Given) {
    drop(UnansweredTake { workers: &Workers::new(shared), rows: given.rows.into_iter(), jobs: Vec::new() });
}

/// The delivered jobs of a take that has not returned yet. Dropped with jobs, it returns them to the queue.
struct UnansweredTake<'a> {
    workers: &'a Workers,
    /// The rows whose inputs are not read yet.
    rows: std::vec::IntoIter<JobRow>,
    /// The jobs whose inputs were read.
    jobs: Vec<TakenJob>,
}

impl Drop for UnansweredTake<'_> {
    fn drop(&mut self) {
        let rows = self.jobs.iter().map(|job| &job.row).chain(self.rows.as_slice());
        let jobs: Vec<Undelivered> =
            rows.map(|row| Undelivered { job: row.id, attempt: row.attempt, damage: None }).collect();
        if !jobs.is_empty() && !self.workers.shared.is_stopping() {
            drop(self.workers.return_undelivered(jobs));
        }
    }
}
