//! Notes which parts of jobs' lives ended in a round, for their traces.

use longshore_model::{AttemptEnd, JobId, JobRow, JobState};
use longshore_queue::Requeued;

use super::Actor;
use crate::Exemplar;
use crate::traces::{AttemptMarks, JobFact, JobSpan};

impl Actor {
    /// Notes the end of a wait: a worker got the job.
    pub(super) fn trace_taken(&mut self, row: &JobRow) {
        if self.is_traced(row) {
            let row = Box::new(row.clone());
            self.post_commit.facts.push(JobFact { until: row.started_at, row, span: JobSpan::Queue });
        }
    }

    /// Notes the end of an attempt after which the job is queued again.
    pub(super) fn trace_requeued(&mut self, requeued: Requeued) {
        let marks = self.take_marks(requeued.row.id);
        if self.is_traced(&requeued.row) {
            let span = JobSpan::Attempt { end: Some((requeued.end, requeued.reason)), marks };
            let row = Box::new(requeued.row);
            self.post_commit.facts.push(JobFact { row, until: requeued.at, span });
        }
    }

    /// Notes the end of a job, and of its attempt or its wait. `lost` says why its worker was lost, if it was.
    pub(super) fn trace_ended(&mut self, job: JobId, was_running: bool, lost: Option<String>) {
        if self.shared.services.traces.is_none() {
            return;
        }
        let marks = self.take_marks(job);
        let Some(row) = self.queue.find_stored(job).filter(|row| self.is_traced(row)) else { return };
        let until = row.finished_at;
        let end = lost.map(|reason| (AttemptEnd::WorkerLost, reason));
        let span = if was_running { JobSpan::Attempt { end, marks } } else { JobSpan::Queue };
        let row = Box::new(row);
        self.post_commit.facts.push(JobFact { row: row.clone(), until, span });
        self.post_commit.facts.push(JobFact { row, until, span: JobSpan::Whole });
    }

    /// Notes that a job was deleted before its end.
    pub(super) fn trace_expired(&mut self, row: Box<JobRow>) {
        let marks = self.take_marks(row.id);
        if self.is_traced(&row) {
            let until = self.now();
            let is_running = row.state == JobState::InProgress;
            let span = if is_running { JobSpan::Attempt { end: None, marks } } else { JobSpan::Queue };
            self.post_commit.facts.push(JobFact { row: row.clone(), until, span });
            self.post_commit.facts.push(JobFact { row, until, span: JobSpan::Whole });
        }
    }

    /// Notes that a running job sent chunks.
    pub(super) fn mark_chunk(&mut self, job: JobId) {
        if self.shared.services.traces.is_some() {
            self.marks.entry(job).or_default().chunk(self.now);
        }
    }

    /// Measures the time until the first chunk of a job.
    pub(super) fn measure_first_chunk(&self, job: JobId) {
        let Some(row) = self.queue.find_stored(job) else { return };
        let (histogram, value) = (&self.shared.metrics.first_chunk_ms, self.now.since(row.created_at));
        histogram.record(value);
        if let Some(traces) = self.shared.services.traces.as_ref().filter(|traces| traces.is_sampled(&row)) {
            histogram.exemplify(Exemplar { trace: traces.id(&row), value, at: self.now });
        }
    }

    /// Notes that a running job sent a progress value.
    pub(super) fn mark_progress(&mut self, job: JobId) {
        if self.shared.services.traces.is_some() {
            self.marks.entry(job).or_default().progress(self.now);
        }
    }

    fn take_marks(&mut self, job: JobId) -> AttemptMarks {
        if self.marks.is_empty() {
            AttemptMarks::default()
        } else {
            self.marks.remove(&job).unwrap_or_default()
        }
    }

    fn is_traced(&self, row: &JobRow) -> bool {
        self.shared.services.traces.as_ref().is_some_and(|traces| traces.is_sampled(row))
    }
}
