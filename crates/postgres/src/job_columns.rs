//! The arguments of the statement that writes what the usual lives of jobs change: submits, takes, results, deletions and counts.

use longshore_model::JobKey;
use longshore_store::{Payload, encode_job_row};
use tokio_postgres::{Client, Error, Statement};

use crate::commit_statement::counts;
use crate::payload::{OutcomeColumn, PayloadColumn};
use crate::reduced::{JobChange, Part, Reduced};
use crate::sessions::{BatchPlace, BatchResult};

/// Returns null if the batch took effect.
pub(crate) const STATEMENT: &str =
    "SELECT commit_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

/// A batch as the arguments of the statement, in the order of its parameters.
#[derive(Debug, Default)]
pub(crate) struct JobColumns {
    deleted: Vec<i64>,
    submitted: Vec<i64>,
    submitted_rows: Vec<Vec<u8>>,
    submitted_inputs: Vec<PayloadColumn>,
    /// The first and the last submitted key of each endpoint.
    submitted_first: Vec<i64>,
    submitted_last: Vec<i64>,
    changed: Vec<i64>,
    changed_rows: Vec<Vec<u8>>,
    ended: Vec<i64>,
    ended_rows: Vec<Vec<u8>>,
    ended_outcomes: Vec<OutcomeColumn>,
    counted: Vec<i32>,
    counts: Vec<i64>,
}

/// Whether the statement has an argument for each change of the batch.
pub(crate) fn has_room_for(reduced: &Reduced) -> bool {
    let Reduced { jobs, counters, values_deleted, values, last_endpoint_no, .. } = reduced;
    values.is_empty()
        && values_deleted.is_empty()
        && *last_endpoint_no == 0
        && counters.values().all(Option::is_some)
        && jobs.values().all(is_usual)
}

fn is_usual(change: &JobChange) -> bool {
    let JobChange { row, input, outcome, attempts, chunks, stream, webhook, .. } = change;
    let has_parts_of_a_life = match (row, input, outcome) {
        (Some(_), _, None) | (Some(_), None, Some(Part::Put(_))) => true,
        (None, None, None) => change.is_deleted,
        _ => false,
    };
    has_parts_of_a_life
        && (change.is_deleted || !change.are_chunks_dropped)
        && attempts.is_empty()
        && chunks.is_empty()
        && stream.is_none()
        && webhook.is_none()
}

impl From<Reduced> for JobColumns {
    /// The columns of a batch that the statement has room for.
    fn from(reduced: Reduced) -> Self {
        let mut columns = Self::default();
        for (key, change) in reduced.jobs {
            columns.add_job(key, change);
        }
        for (endpoint, counters) in reduced.counters {
            if let Some(counters) = counters {
                columns.counted.push(endpoint.cast_signed());
                columns.counts.extend(counts(&counters));
            }
        }
        columns
    }
}

impl JobColumns {
    fn add_job(&mut self, key: i64, change: JobChange) {
        if change.is_deleted {
            self.deleted.push(key);
        }
        let Some(row) = change.row else { return };
        let row = encode_job_row(&row);
        match (change.input, change.outcome) {
            (Some(input), _) => self.submit(key, row, input),
            (None, Some(Part::Put(outcome))) => {
                self.ended.push(key);
                self.ended_rows.push(row);
                self.ended_outcomes.push(OutcomeColumn(outcome));
            }
            (None, Some(Part::Deleted) | None) => {
                self.changed.push(key);
                self.changed_rows.push(row);
            }
        }
    }

    fn submit(&mut self, key: i64, row: Vec<u8>, input: Payload) {
        let endpoint = |key: i64| JobKey::from_row(key).endpoint;
        match self.submitted_last.last_mut() {
            Some(last) if endpoint(*last) == endpoint(key) => *last = key,
            _ => {
                self.submitted_first.push(key);
                self.submitted_last.push(key);
            }
        }
        self.submitted.push(key);
        self.submitted_rows.push(row);
        self.submitted_inputs.push(PayloadColumn(input));
    }

    /// Sends the batch, as [`Columns::write`](crate::Columns).
    pub(crate) async fn write(
        &self,
        client: &Client,
        statement: &Statement,
        place: BatchPlace,
    ) -> Result<BatchResult, Error> {
        let row = client
            .query_one(
                statement,
                &[
                    &i16::from(place.shard.0),
                    &place.epoch,
                    &place.batches_before,
                    &place.is_synced,
                    &self.deleted,
                    &self.submitted,
                    &self.submitted_rows,
                    &self.submitted_inputs,
                    &self.submitted_first,
                    &self.submitted_last,
                    &self.changed,
                    &self.changed_rows,
                    &self.ended,
                    &self.ended_rows,
                    &self.ended_outcomes,
                    &self.counted,
                    &self.counts,
                ],
            )
            .await?;
        Ok(match row.try_get::<_, Option<Vec<i64>>>(0)?.as_deref() {
            None => BatchResult::Written,
            Some(&[epoch, batches]) => BatchResult::Refused { epoch, batches },
            Some(_) => BatchResult::Missing,
        })
    }
}
