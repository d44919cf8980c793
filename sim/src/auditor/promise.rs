//! The promises by name.

/// Defines the promises with their names.
macro_rules! promises {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A promise that the server keeps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Promise {
            $($(#[$doc])* $name,)*
        }

        impl Promise {
            /// Every promise, in order of definition.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in messages and tests.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

promises! {
    /// An acknowledged job answers until its ttl or retention ends.
    Kept = "an acknowledged job exists until its time has passed",
    /// An acknowledged job is in complete lists.
    Listed = "an acknowledged job is listed",
    /// A deleted job is never shown again.
    Gone = "a job past its time is gone, and stays so",
    /// A job has one terminal state and one outcome.
    EndsOnce = "a job ends once, and its outcome does not change",
    /// Every outcome has a cause that could bring it about.
    Caused = "every outcome has an earlier cause",
    /// Inputs reach workers as they were submitted.
    InputIntact = "a worker gets the input byte for byte",
    /// Only submitted jobs are delivered, and only while they are queued.
    DeliveredQueued = "only a queued job is delivered",
    /// A job is delivered to one worker at a time.
    HeldOnce = "a job is not delivered while another worker may have it",
    /// Jobs are delivered first in, first out.
    InOrder = "jobs are delivered in order",
    /// Progress and chunks come from the job's worker.
    FromHolder = "progress and chunks come from the job's worker",
    /// Followers get every chunk.
    Followed = "a follower of a job gets every chunk once, in order, and then the end",
    /// The number of retries is the number of lost workers.
    RetriesCounted = "retries count lost workers, and nothing else",
    /// An unreadable job does not fail the jobs delivered with it.
    FailsAlone = "a job that no worker can read fails alone",
    /// A read error fails no job, and damage fails only the damaged job.
    DamageTrue = "a job fails for a damaged input only where its input is damaged",
    /// Damaged data is reported as damaged, and intact data is shown.
    DamageReported = "damaged data is reported as damaged, and intact data is not",
    /// A terminal job stops running.
    Stops = "a job that has ended stops running",
    /// A cancel returns a terminal state.
    CancelEnds = "a cancelled job has ended",
    /// A purge cancels the queued jobs only.
    Purged = "a purge cancels the queued jobs, and no others",
    /// Only failed and timed-out jobs are retried.
    Retryable = "only a failed or timed-out job is retried",
    /// A webhook reports the job's real end.
    WebhookTruthful = "a webhook reports how the job ended",
    /// Webhooks are called until accepted or out of attempts.
    WebhookMade = "a webhook is called until it is accepted or out of attempts",
    /// Attempts keep their distance, and end with the first success.
    WebhookPaced = "a webhook is not called too soon, too often, or after it was accepted",
    /// An idempotency key identifies one job.
    OneJobPerKey = "an idempotency key identifies one job",
    /// Health agrees with the observations.
    Healthy = "health agrees with the observations",
    /// The counters of health never decrease.
    Counted = "counters never decrease",
    /// Rate limits are never exceeded.
    Limited = "no more requests pass than the limit",
    /// No request below a rate limit is refused.
    NotLimited = "no request is refused below the limit",
    /// Responses have the documented form.
    WellFormed = "every response has its documented form",
    /// No response has the status 500 of a defect.
    NoDefect = "no response is an internal error",
    /// A deleted endpoint is never shown again.
    EndpointGone = "a deleted endpoint is gone",
    /// Consumed chunks are not returned again.
    ConsumedOnce = "a consumed chunk is not returned again",
    /// No attempt exceeds its execution timeout.
    TimedOut = "no job runs past its execution timeout",
    /// Jobs of lost workers are requeued.
    LeaseEnds = "a job of a lost worker is requeued",
    /// Waits end when the job ends.
    WaitAnswered = "a request that waits for a job's end is answered soon",
    /// The server stops a worker only after its jobs have ended.
    WorkersDrained = "the server stops no worker that runs a job",
    /// Workers that are to be replaced get no new jobs.
    OldWorkersLeft = "a worker of an old template gets no new jobs",
    /// The number of workers stays within its limit.
    FleetBounded = "there are no more workers than allowed",
    /// Hung workers are replaced.
    SilentReplaced = "at rest no silent worker is kept",
    /// At rest, every job has ended.
    AllEnd = "at rest every job has ended",
    /// At rest, no handler runs.
    AllStopped = "at rest no handler runs",
    /// At rest, the fleet is at its minimum.
    FleetAtMinimum = "at rest the fleet is at its minimum",
    /// At rest, every request was answered.
    AllAnswered = "at rest every request was answered",
}
