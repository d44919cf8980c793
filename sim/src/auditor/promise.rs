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
    Kept = "an acknowledged job is there until its time has passed",
    /// An acknowledged job is in complete lists.
    Listed = "an acknowledged job is listed",
    /// A deleted job is never shown again.
    Gone = "a job past its time is gone, and stays so",
    /// A job has one terminal state and one outcome.
    EndsOnce = "a job ends once, and its outcome does not change",
    /// Every outcome has a cause that could bring it about.
    Caused = "an outcome has a cause that came first",
    /// Inputs reach workers as they were submitted.
    InputIntact = "a worker gets the input byte for byte",
    /// Only submitted jobs are delivered, and only while they are queued.
    HandedOut = "only a waiting job is handed out",
    /// A job is delivered to one worker at a time.
    HeldOnce = "a job is not handed out while its worker may still have it",
    /// Jobs are delivered first in, first out.
    InOrder = "jobs are handed out in order",
    /// Progress and chunks come from the job's worker.
    FromHolder = "progress and chunks come from who holds the job",
    /// Followers get every chunk.
    Followed = "who follows a job gets every chunk once, in order, and then its end",
    /// The number of retries is the number of lost workers.
    RetriesCounted = "retries count lost workers, and nothing else",
    /// An unreadable job does not fail the jobs delivered with it.
    FailsAlone = "a job that no worker can read fails alone",
    /// A read error fails no job, and damage fails only the damaged job.
    DamageTrue = "a job fails for a damaged input only where its input is damaged",
    /// Damaged data is reported as damaged, and intact data is shown.
    DamageTold = "what is damaged is answered as damaged, and nothing else is",
    /// A terminal job stops running.
    Stops = "a job that is over stops running",
    /// A cancel returns a terminal state.
    CancelEnds = "a cancelled job is over",
    /// A purge cancels the queued jobs only.
    Purged = "a purge cancels what waits, and nothing else",
    /// Only failed and timed-out jobs are retried.
    Retryable = "only a failed or timed-out job is retried",
    /// A webhook reports the job's real end.
    HookTruthful = "a webhook tells how the job ended",
    /// Webhooks are called until accepted or out of attempts.
    HookMade = "a webhook is called until it is accepted or out of attempts",
    /// Attempts keep their distance, and end with the first success.
    HookPaced = "a webhook is not called too soon, too often, or after it was accepted",
    /// An idempotency key identifies one job.
    OneJobPerKey = "an idempotency key stands for one job",
    /// Health agrees with the observations.
    Healthy = "health agrees with what is known",
    /// The counters of health never decrease.
    Counted = "counters never go back",
    /// Rate limits are never exceeded.
    Limited = "no more requests pass than the limit",
    /// No request below a rate limit is refused.
    NotLimited = "nobody is refused below the limit",
    /// Responses have the documented form.
    WellFormed = "every answer has its documented form",
    /// No response has the status 500 of a defect.
    NoDefect = "no answer is an internal error",
    /// A deleted endpoint is never shown again.
    EndpointGone = "a deleted endpoint is gone",
    /// Consumed chunks are not returned again.
    DrainedOnce = "a drained chunk does not come again",
    /// No attempt exceeds its execution timeout.
    TimedOut = "no job runs past its execution timeout",
    /// Jobs of lost workers are requeued.
    LeaseEnds = "a job does not stay with a worker that is gone",
    /// Waits end when the job ends.
    Woken = "who waits for a job's end is told soon",
    /// Workers are drained, not killed.
    WorkersSpared = "the server ends no worker that does its work",
    /// Workers that are to be replaced get no new jobs.
    OldWorkersLeft = "a worker of an old version gets no more jobs",
    /// The number of workers stays within its limit.
    FleetBounded = "there are no more workers than allowed",
    /// Hung workers are replaced.
    SilentEnded = "at rest no silent worker is kept",
    /// At rest, every job has ended.
    AllEnd = "at rest every job has ended",
    /// At rest, no handler runs.
    AllStopped = "at rest no handler runs",
    /// At rest, the fleet is at its minimum.
    FleetAtMinimum = "at rest the fleet is at its minimum",
    /// At rest, every request was answered.
    AllAnswered = "at rest every request was answered",
}
