//! The numbers of a record, and how those of several spans of time or of several endpoints become one.

/// One number of a record. The numbers of the variants are on disk: append, never reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Submits that were accepted.
    Submitted = 0,
    /// Jobs that a worker completed.
    Completed = 1,
    /// Jobs that a worker failed, or that were lost too often.
    Failed = 2,
    /// Jobs that ran longer than their timeout.
    TimedOut = 3,
    /// Jobs that were cancelled or purged.
    Cancelled = 4,
    /// Attempts that were repeated: automatic retries and those of clients.
    Retried = 5,
    /// Submits that the queue refused.
    Refused = 6,
    /// Queued jobs at the end.
    Queued = 7,
    /// The most queued jobs.
    QueuedMax = 8,
    /// How long the job that waits longest has waited, at most, in ms.
    OldestMs = 9,
    /// Running jobs at the end.
    Running = 10,
    /// The most running jobs.
    RunningMax = 11,
    /// Running jobs times the ms that they ran: the mean times the time.
    RunningMs = 12,
    /// Idle workers at the end.
    WorkersIdle = 13,
    /// Workers with a running job at the end.
    WorkersRunning = 14,
    /// Workers that start, at the end.
    WorkersStarting = 15,
    /// Workers that wait for a GPU or other room, at the end.
    WorkersThrottled = 16,
    /// Workers that are not started because earlier ones crashed, at the end.
    WorkersUnhealthy = 17,
    /// Workers that became ready.
    Starts = 18,
    /// The time of workers with a running job, in ms.
    BusyMs = 19,
    /// The time of all workers, in ms.
    PaidMs = 20,
    /// The time of the workers' GPUs, in ms.
    GpuMs = 21,
    /// The bytes of the inputs of accepted submits.
    BytesIn = 22,
    /// Bytes of outputs and chunks.
    BytesOut = 23,
    /// The chunks that workers appended to streams.
    Chunks = 24,
    /// Time that the recorder observed, in ms.
    CoveredMs = 25,
    /// Calls of webhooks that their receivers accepted.
    CallsDelivered = 26,
    /// Calls of webhooks that failed and are repeated.
    CallsRetried = 27,
    /// Calls of webhooks that failed and were given up.
    CallsFailed = 28,
    /// Jobs that failed because their handler reported an error.
    FailedByHandler = 29,
    /// Jobs that failed because workers were lost or did not confirm them, and no retry was left.
    FailedByLoss = 30,
    /// Jobs that failed because an output, a report or a stream was larger than its limit.
    FailedBySize = 31,
    /// Jobs that failed because what the server stored of them was damaged.
    FailedByDamage = 32,
    /// Deliveries to workers that were started while the job waited.
    MetColdStart = 33,
    /// Requests to `/runsync` that were over a limit.
    LimitedRunsync = 34,
    /// Requests to `/run` that were over a limit.
    LimitedRun = 35,
    /// Requests to `/status` and `/status-sync` that were over a limit.
    LimitedStatus = 36,
    /// Requests to `/stream` that were over a limit.
    LimitedStream = 37,
    /// Requests to `/cancel` and `/retry` that were over a limit.
    LimitedCancel = 38,
    /// Requests to `/purge-queue` that were over a limit.
    LimitedPurgeQueue = 39,
    /// Requests to `/openai` that were over a limit.
    LimitedOpenai = 40,
    /// Requests to `/requests` that were over a limit.
    LimitedRequests = 41,
    /// Requests to `/webhooks` that were over a limit.
    LimitedWebhooks = 42,
    /// Forwarded requests that were over a limit.
    LimitedLb = 43,
    /// Forwarded requests that a worker answered with a status of 101 to 199: connections that were upgraded.
    Answered1xx = 44,
    /// Forwarded requests that a worker answered with a status of 200 to 299.
    Answered2xx = 45,
    /// Forwarded requests that a worker answered with a status of 300 to 399.
    Answered3xx = 46,
    /// Forwarded requests that a worker answered with a status of 400 to 499.
    Answered4xx = 47,
    /// Forwarded requests that a worker answered with a status of 500 or more.
    Answered5xx = 48,
    /// Requests to be forwarded that the server answered in place of a worker.
    ForwardsRefused = 49,
    /// Times that a request was sent to another worker, or over another connection.
    SentAgain = 50,
    /// The time of the workers' GPUs, each times the part of it in which its driver said that it computed, in ms.
    GpuBusyMs = 51,
    /// The time of those of the workers' GPUs whose driver said how much they computed, in ms.
    GpuReadMs = 52,
}

/// The number of fields.
pub(crate) const FIELDS: usize = 53;

impl Field {
    /// Every field, in the order of their numbers.
    pub(crate) const ALL: [Self; FIELDS] = [
        Self::Submitted,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Retried,
        Self::Refused,
        Self::Queued,
        Self::QueuedMax,
        Self::OldestMs,
        Self::Running,
        Self::RunningMax,
        Self::RunningMs,
        Self::WorkersIdle,
        Self::WorkersRunning,
        Self::WorkersStarting,
        Self::WorkersThrottled,
        Self::WorkersUnhealthy,
        Self::Starts,
        Self::BusyMs,
        Self::PaidMs,
        Self::GpuMs,
        Self::BytesIn,
        Self::BytesOut,
        Self::Chunks,
        Self::CoveredMs,
        Self::CallsDelivered,
        Self::CallsRetried,
        Self::CallsFailed,
        Self::FailedByHandler,
        Self::FailedByLoss,
        Self::FailedBySize,
        Self::FailedByDamage,
        Self::MetColdStart,
        Self::LimitedRunsync,
        Self::LimitedRun,
        Self::LimitedStatus,
        Self::LimitedStream,
        Self::LimitedCancel,
        Self::LimitedPurgeQueue,
        Self::LimitedOpenai,
        Self::LimitedRequests,
        Self::LimitedWebhooks,
        Self::LimitedLb,
        Self::Answered1xx,
        Self::Answered2xx,
        Self::Answered3xx,
        Self::Answered4xx,
        Self::Answered5xx,
        Self::ForwardsRefused,
        Self::SentAgain,
        Self::GpuBusyMs,
        Self::GpuReadMs,
    ];

    /// The number after both spans, of which `later` is the second.
    pub(crate) fn in_time(self, earlier: u64, later: u64) -> u64 {
        match self {
            Self::QueuedMax | Self::RunningMax | Self::OldestMs => earlier.max(later),
            _ if self.is_last() => later,
            _ => earlier.saturating_add(later),
        }
    }

    /// The number of both endpoints in the same span. Two maxima can be of different moments: their sum is an upper bound.
    pub(crate) fn together(self, one: u64, other: u64) -> u64 {
        match self {
            Self::OldestMs | Self::CoveredMs => one.max(other),
            _ => one.saturating_add(other),
        }
    }

    /// Whether the number is that of the last moment.
    fn is_last(self) -> bool {
        matches!(
            self,
            Self::Queued
                | Self::Running
                | Self::WorkersIdle
                | Self::WorkersRunning
                | Self::WorkersStarting
                | Self::WorkersThrottled
                | Self::WorkersUnhealthy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_the_order_of_their_numbers() {
        for (number, field) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, number);
        }
    }

    #[test]
    fn counts_add_up_maxima_stay_and_last_values_are_the_later_ones() {
        assert_eq!(Field::Completed.in_time(3, 4), 7);
        assert_eq!(Field::QueuedMax.in_time(9, 4), 9);
        assert_eq!(Field::Queued.in_time(9, 0), 0);
        assert_eq!((Field::Queued.together(9, 1), Field::OldestMs.together(9, 1)), (10, 9));
    }
}
