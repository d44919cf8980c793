//! The arguments of the statements that write batches: columns of what a reduced batch leaves.

use longshore_model::Counters;
use longshore_store::{LogLine, encode_attempt, encode_job_row};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use crate::job_columns::{self, JobColumns};
use crate::payload::{BytesColumn, OutcomeColumn, PayloadColumn};
use crate::reduced::{JobChange, Part, Reduced};
use crate::sessions::{BatchPlace, BatchResult};

/// Bits of the parts of a job that a change sets.
const ROW: i16 = 1;
const INPUT: i16 = 2;
const OUTCOME: i16 = 4;

/// A batch as the arguments of the statement that writes it.
#[derive(Debug)]
pub struct Columns(Form);

#[derive(Debug)]
enum Form {
    /// Only what the usual life of a job changes: a statement with few arguments, because the database decodes each one.
    Jobs(Box<JobColumns>),
    Any(Box<AnyColumns>),
}

/// Any batch as the arguments of the statement, in the order of its parameters.
#[derive(Debug, Default)]
struct AnyColumns {
    deleted: Vec<i64>,
    submitted: Vec<i64>,
    submitted_rows: Vec<Vec<u8>>,
    submitted_inputs: Vec<Option<PayloadColumn>>,
    submitted_outcomes: Vec<Option<OutcomeColumn>>,
    changed: Vec<i64>,
    changed_rows: Vec<Option<Vec<u8>>>,
    changed_inputs: Vec<Option<PayloadColumn>>,
    changed_outcomes: Vec<Option<OutcomeColumn>>,
    changed_parts: Vec<i16>,
    chunks_dropped: Vec<i64>,
    chunks: Vec<i64>,
    chunk_offsets: Vec<i64>,
    chunk_bytes: Vec<BytesColumn>,
    streams: Vec<i64>,
    stream_nexts: Vec<i64>,
    stream_consumed: Vec<i64>,
    streams_deleted: Vec<i64>,
    webhooks: Vec<i64>,
    webhook_attempts: Vec<i64>,
    webhook_due: Vec<i64>,
    webhooks_deleted: Vec<i64>,
    counted: Vec<i32>,
    counts: Vec<i64>,
    endpoints_deleted: Vec<i32>,
    last_endpoint_no: i64,
    values_deleted: Vec<BytesColumn>,
    value_classes_deleted: Vec<i16>,
    value_ids: Vec<BytesColumn>,
    value_classes: Vec<i16>,
    value_bytes: Vec<BytesColumn>,
    attempted: Vec<i64>,
    attempt_bytes: Vec<Vec<u8>>,
    line_logs: Vec<&'static str>,
    line_numbers: Vec<i64>,
    lines: Vec<BytesColumn>,
    posted: Vec<i64>,
    posted_nexts: Vec<i64>,
    posted_consumed: Vec<i64>,
    post_numbers: Vec<Vec<u8>>,
}

impl Columns {
    /// The arguments of a batch, which also appends `line` to a log.
    pub(crate) fn new(reduced: Reduced, line: Option<LogLine>) -> Self {
        if line.is_none() && job_columns::has_room_for(&reduced) {
            return Self(Form::Jobs(Box::new(JobColumns::from(reduced))));
        }
        let mut columns = AnyColumns::from(reduced);
        if let Some(line) = line {
            columns.add_line(line);
        }
        Self(Form::Any(Box::new(columns)))
    }

    /// Sends the batch. The first poll of the future sends the statement, so that batches arrive in the order of
    /// their first polls.
    pub(crate) async fn write(
        &self,
        client: &Client,
        statements: &CommitStatements,
        place: BatchPlace,
    ) -> Result<BatchResult, Error> {
        match &self.0 {
            Form::Jobs(columns) => columns.write(client, &statements.jobs, place).await,
            Form::Any(columns) => columns.write(client, statements, place).await,
        }
    }
}

impl From<Reduced> for AnyColumns {
    fn from(reduced: Reduced) -> Self {
        let mut columns = Self { last_endpoint_no: i64::from(reduced.last_endpoint_no), ..Self::default() };
        for (key, change) in reduced.jobs {
            columns.add_job(key, change);
        }
        for (endpoint, counters) in reduced.counters {
            let endpoint = endpoint.cast_signed();
            match counters {
                None => columns.endpoints_deleted.push(endpoint),
                Some(counters) => {
                    columns.counted.push(endpoint);
                    columns.counts.extend(counts(&counters));
                }
            }
        }
        for (class, id) in reduced.values_deleted {
            columns.value_classes_deleted.push(class);
            columns.values_deleted.push(BytesColumn(id));
        }
        for (class, id, value) in reduced.values {
            columns.value_classes.push(class);
            columns.value_ids.push(BytesColumn(id));
            columns.value_bytes.push(BytesColumn(value));
        }
        columns
    }
}

/// The six counts of an endpoint, as the statements take them.
pub(crate) fn counts(counters: &Counters) -> [i64; 6] {
    let Counters { completed, failed, retried, cancelled, reserved_seq, purged_until } = *counters;
    [completed, failed, retried, cancelled, reserved_seq, purged_until.0].map(u64::cast_signed)
}

impl AnyColumns {
    fn add_line(&mut self, line: LogLine) {
        self.line_logs.push(line.log);
        self.line_numbers.push(line.no.cast_signed());
        self.lines.push(BytesColumn(line.line));
    }

    fn add_job(&mut self, key: i64, change: JobChange) {
        if change.is_deleted {
            self.deleted.push(key);
        } else if change.are_chunks_dropped {
            self.chunks_dropped.push(key);
        }
        for (n, attempt) in change.attempts {
            self.attempted.push(key);
            self.attempt_bytes.push([&n.0.to_be_bytes()[..], &encode_attempt(&attempt)].concat());
        }
        for chunk in change.chunks {
            self.chunks.push(key);
            self.chunk_offsets.push(chunk.offset.cast_signed());
            self.chunk_bytes.push(BytesColumn(chunk.bytes));
        }
        match change.stream {
            Some(Part::Put(stream)) if !stream.posts.is_empty() => {
                self.posted.push(key);
                self.posted_nexts.push(stream.next.cast_signed());
                self.posted_consumed.push(stream.consumed.cast_signed());
                self.post_numbers.push(stream.posts.to_stored());
            }
            Some(Part::Put(stream)) => {
                self.streams.push(key);
                self.stream_nexts.push(stream.next.cast_signed());
                self.stream_consumed.push(stream.consumed.cast_signed());
            }
            Some(Part::Deleted) => self.streams_deleted.push(key),
            None => {}
        }
        match change.webhook {
            Some(Part::Put(webhook)) => {
                self.webhooks.push(key);
                self.webhook_attempts.push(i64::from(webhook.attempts));
                self.webhook_due.push(webhook.due_at.0.cast_signed());
            }
            Some(Part::Deleted) => self.webhooks_deleted.push(key),
            None => {}
        }
        let row = change.row.map(|row| encode_job_row(&row));
        let input = change.input.map(PayloadColumn);
        match (row, input, change.outcome) {
            (None, None, None) => {}
            // A submit: the usual reason for a row and an input together.
            (Some(row), Some(input), None) => self.submit(key, row, input, None),
            (Some(row), Some(input), Some(Part::Put(outcome))) => {
                self.submit(key, row, input, Some(OutcomeColumn(outcome)));
            }
            (row, input, outcome) => {
                let flag = |is_set, part| if is_set { part } else { 0 };
                let parts = [
                    flag(row.is_some(), ROW),
                    flag(input.is_some(), INPUT),
                    flag(outcome.is_some(), OUTCOME),
                ];
                self.changed.push(key);
                self.changed_rows.push(row);
                self.changed_inputs.push(input);
                self.changed_outcomes.push(match outcome {
                    Some(Part::Put(outcome)) => Some(OutcomeColumn(outcome)),
                    Some(Part::Deleted) | None => None,
                });
                self.changed_parts.push(parts.into_iter().sum());
            }
        }
    }

    fn submit(&mut self, key: i64, row: Vec<u8>, input: PayloadColumn, outcome: Option<OutcomeColumn>) {
        self.submitted.push(key);
        self.submitted_rows.push(row);
        self.submitted_inputs.push(Some(input));
        self.submitted_outcomes.push(outcome);
    }

    /// As [`Columns::write`].
    async fn write(
        &self,
        client: &Client,
        statements: &CommitStatements,
        place: BatchPlace,
    ) -> Result<BatchResult, Error> {
        let shard = i16::from(place.shard.0);
        let arguments: [&(dyn ToSql + Sync); WITH_POSTS] = [
            &shard,
            &place.epoch,
            &place.batches_before,
            &place.is_synced,
            &self.deleted,
            &self.submitted,
            &self.submitted_rows,
            &self.submitted_inputs,
            &self.submitted_outcomes,
            &self.changed,
            &self.changed_rows,
            &self.changed_inputs,
            &self.changed_outcomes,
            &self.changed_parts,
            &self.chunks_dropped,
            &self.chunks,
            &self.chunk_offsets,
            &self.chunk_bytes,
            &self.streams,
            &self.stream_nexts,
            &self.stream_consumed,
            &self.streams_deleted,
            &self.webhooks,
            &self.webhook_attempts,
            &self.webhook_due,
            &self.webhooks_deleted,
            &self.counted,
            &self.counts,
            &self.endpoints_deleted,
            &self.last_endpoint_no,
            &self.values_deleted,
            &self.value_classes_deleted,
            &self.value_ids,
            &self.value_classes,
            &self.value_bytes,
            &self.attempted,
            &self.attempt_bytes,
            &self.line_logs,
            &self.line_numbers,
            &self.lines,
            &self.posted,
            &self.posted_nexts,
            &self.posted_consumed,
            &self.post_numbers,
        ];
        let (statement, count) = if !self.posted.is_empty() {
            (&statements.with_posts, WITH_POSTS)
        } else if !self.lines.is_empty() {
            (&statements.with_lines, WITH_LINES)
        } else if !self.attempted.is_empty() {
            (&statements.with_attempts, WITH_ATTEMPTS)
        } else {
            (&statements.plain, PLAIN)
        };
        let rows = client.query(statement, &arguments[..count]).await?;
        let Some(row) = rows.first() else { return Ok(BatchResult::Written) };
        match (row.try_get::<_, Option<i64>>(0)?, row.try_get::<_, Option<i64>>(1)?) {
            (Some(epoch), Some(batches)) => Ok(BatchResult::Refused { epoch, batches }),
            _ => Ok(BatchResult::Missing),
        }
    }
}

/// The number of arguments of a batch without ended attempts and lines.
const PLAIN: usize = 35;
/// The number of arguments of a batch with ended attempts.
const WITH_ATTEMPTS: usize = PLAIN + 2;
/// The number of arguments of a batch with lines of logs.
const WITH_LINES: usize = WITH_ATTEMPTS + 3;
/// The number of arguments of a batch with streams to which numbered posts were made.
const WITH_POSTS: usize = WITH_LINES + 4;

/// The statements that write a batch, prepared on one connection.
#[derive(Clone)]
pub(crate) struct CommitStatements {
    jobs: Statement,
    plain: Statement,
    with_attempts: Statement,
    with_lines: Statement,
    with_posts: Statement,
}

impl CommitStatements {
    /// Prepares the statements on a connection, for all batches that it writes.
    ///
    /// # Errors
    /// That of the database, or of the connection to it.
    pub(crate) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            jobs: client.prepare(job_columns::STATEMENT).await?,
            plain: client.prepare(&text(PLAIN)).await?,
            with_attempts: client.prepare(&text(WITH_ATTEMPTS)).await?,
            with_lines: client.prepare(&text(WITH_LINES)).await?,
            with_posts: client.prepare(&text(WITH_POSTS)).await?,
        })
    }
}

fn text(parameters: usize) -> String {
    let parameters: Vec<String> = (1..=parameters).map(|number| format!("${number}")).collect();
    format!("SELECT epoch, batches FROM commit_batch({})", parameters.join(", "))
}
