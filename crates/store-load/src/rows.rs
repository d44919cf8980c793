//! The rows of jobs at each step of their lives, and the batches that write them.

use bytes::Bytes;
use longshore_model::{
    Attempt, Durability, EndpointNo, JobId, JobKey, JobRow, JobState, Millis, Submitter, WorkerId,
};
use longshore_store::{Batch, OutcomeRow, Payload, Store as _, StoreError, Write};

use crate::Target;

const ENDPOINT: EndpointNo = EndpointNo(1);
/// The members of a submit of 100 bytes.
const INPUT_BYTES: usize = 100;
const OUTPUT: &[u8] = br#"{"ok":true}"#;
const CREATED: Millis = Millis(1_800_000_000_000);

/// The jobs of one batch, by their sequence numbers.
#[derive(Clone, Copy)]
pub struct Jobs {
    /// The first sequence number.
    pub first: u64,
    /// The number of jobs.
    pub count: u64,
}

/// What a batch does to each of its jobs.
#[derive(Clone, Copy)]
pub enum Step {
    /// Stores the job and its input.
    Submit,
    /// A worker has taken the job.
    Take,
    /// The job has its result.
    Done,
    /// The retention time is over.
    Delete,
}

impl Jobs {
    /// Commits one step of every job, and waits until it is durable.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn commit(self, target: &Target, step: Step, durability: Durability) -> Result<(), StoreError> {
        let writes = (self.first..self.first + self.count).flat_map(|seq| writes(seq, step)).collect();
        let batch = Batch { durability, writes, chain: Some(1) };
        target.store.commit(target.shard, target.epoch, batch).await
    }
}

fn writes(seq: u64, step: Step) -> Vec<Write> {
    let row = row(seq, step);
    let key = row.key;
    match step {
        Step::Submit => {
            let input = Bytes::from(vec![b'x'; INPUT_BYTES]);
            vec![Write::PutJob(Box::new(row)), Write::PutInput(key, Payload::Inline(input))]
        }
        Step::Take => vec![Write::PutJob(Box::new(row))],
        Step::Done => {
            let output = Some(Payload::Inline(Bytes::from_static(OUTPUT)));
            let outcome = OutcomeRow { output, error: None };
            vec![Write::PutJob(Box::new(row)), Write::PutOutcome(key, outcome)]
        }
        Step::Delete => vec![Write::DeleteJob(key)],
    }
}

fn row(seq: u64, step: Step) -> JobRow {
    let key = JobKey { endpoint: ENDPOINT, seq };
    // Ids of a server are times and random bits.
    let id = JobId::mint(CREATED, u128::from(seq.wrapping_mul(0x9e37_79b9_7f4a_7c15)), false);
    let input_bytes = INPUT_BYTES as u32;
    let queued = JobRow {
        input_bytes,
        order: seq as i64,
        submitter: Submitter::default(),
        ..JobRow::queued(key, id, CREATED)
    };
    let worker: Option<WorkerId> = "load-0001".parse().ok();
    let taken = JobRow {
        state: JobState::InProgress,
        never_taken: false,
        attempt: Attempt(1),
        started_at: Millis(CREATED.0 + 5),
        worker,
        ..queued.clone()
    };
    match step {
        Step::Submit | Step::Delete => queued,
        Step::Take => taken,
        Step::Done => JobRow { state: JobState::Completed, finished_at: Millis(CREATED.0 + 9), ..taken },
    }
}
