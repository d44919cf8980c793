//! Payloads in rows whose checksums fail when they are read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::JobKey;
use longshore_store::{ChunkRow, OutcomeRow, Payload, StoreError};

use super::rows::Rows;
use crate::disk::Drive;
use crate::faults::Fault;
use crate::observation::Observation;

/// Damaged payloads with their previous values: a rewritten value is intact.
#[derive(Default)]
pub(super) struct DamagedPayloads {
    state: Mutex<DamageState>,
}

#[derive(Default)]
struct DamageState {
    inputs: BTreeMap<JobKey, Payload>,
    outcomes: BTreeMap<JobKey, OutcomeRow>,
    chunks: BTreeMap<(JobKey, u64), ChunkRow>,
}

impl DamagedPayloads {
    /// Returns the result of reading a job's input. A blob is damaged in its file instead.
    pub(super) fn input(
        &self,
        drive: &Drive,
        rows: &Rows,
        job: JobKey,
        input: Payload,
    ) -> Result<Payload, StoreError> {
        if self.state().inputs.get(&job) == Some(&input) {
            return Err(damaged("input"));
        }
        let Some(row) = rows.job(job).filter(|_| matches!(input, Payload::Inline(_))) else {
            return Ok(input);
        };
        if !drive.faults.inject(Fault::InputDamaged) {
            return Ok(input);
        }
        self.state().inputs.insert(job, input);
        drive.record.observe(&Observation::InputDamaged(row.id.to_string()));
        Err(damaged("input"))
    }

    /// Returns the result of reading a job's output and error.
    pub(super) fn outcome(
        &self,
        drive: &Drive,
        rows: &Rows,
        job: JobKey,
        outcome: OutcomeRow,
    ) -> Result<OutcomeRow, StoreError> {
        let Some(row) = rows.job(job) else { return Ok(outcome) };
        let is_damaged = self.state().outcomes.get(&job) == Some(&outcome);
        // The server may still have a recent outcome in memory and return it intact.
        let is_safe = row.state.is_terminal() && !rows.has_old_outcome(job);
        if !is_damaged && (is_safe || !drive.faults.inject(Fault::OutputDamaged)) {
            return Ok(outcome);
        }
        self.state().outcomes.insert(job, outcome);
        // A progress value is soon replaced.
        if row.state.is_terminal() {
            drive.record.observe(&Observation::OutputDamaged(row.id.to_string()));
        }
        Err(damaged("outcome"))
    }

    /// Returns the result of reading a page of chunks, which ends before a damaged one.
    pub(super) fn chunks(
        &self,
        drive: &Drive,
        rows: &Rows,
        job: JobKey,
        mut page: Vec<ChunkRow>,
    ) -> Result<Vec<ChunkRow>, StoreError> {
        let Some(row) = rows.job(job).filter(|_| !page.is_empty()) else { return Ok(page) };
        let tell = |offset| drive.record.observe(&Observation::ChunkDamaged(row.id.to_string(), offset));
        if drive.faults.inject(Fault::ChunkDamaged) {
            let chunk = page[drive.below(page.len())].clone();
            tell(chunk.offset);
            self.state().chunks.insert((job, chunk.offset), chunk);
        }
        let first = {
            let state = self.state();
            page.iter().position(|chunk| state.chunks.get(&(job, chunk.offset)) == Some(chunk))
        };
        match first {
            None => Ok(page),
            Some(0) => {
                tell(page[0].offset);
                Err(damaged("chunk"))
            }
            Some(first) => {
                page.truncate(first);
                Ok(page)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, DamageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn damaged(what: &str) -> StoreError {
    StoreError::Corrupt(format!("the simulated disk has another {what} than was written"))
}
