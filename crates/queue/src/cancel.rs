//! A client wants a job to end now, or at a time it chooses.

use longshore_model::{JobId, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::{Change, Effects, Queue, Refusal, Reply};

impl Queue {
    pub(crate) fn cancel(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Reply {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Reply::Refused(Refusal::NoSuchJob);
        };
        let reopens = row.state == JobState::Completed && planted(Bug::CancelAfterResult);
        if row.state.is_terminal() && !reopens {
            return Reply::Job(row);
        }
        self.stop_holder(slot, now, out);
        // A progress value is no result.
        out.changes.push(Change::ClearOutcome(row.key));
        self.end(slot, JobState::Cancelled, now, out);
        Reply::Job(self.jobs.row(slot))
    }

    pub(crate) fn set_ttl(&mut self, now: Millis, job: JobId, ttl_ms: u64, out: &mut Effects) -> Reply {
        let (Some(_), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Reply::Refused(Refusal::NoSuchJob);
        };
        self.unschedule(slot);
        let row = self.jobs[slot].extras_mut();
        row.delete_at = now + ttl_ms;
        row.ttl_pinned = true;
        self.schedule(slot);
        self.put(slot, out);
        // A purged job keeps its look although its row still says that it waits.
        self.find_visible(job, now).map_or(Reply::Refused(Refusal::NoSuchJob), Reply::Job)
    }
}
