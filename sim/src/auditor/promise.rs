//! The promises by name.

/// Defines the promises with their names.
macro_rules! promises {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Promise {
            $($(#[$doc])* $name,)*
        }

        impl Promise {
            /// Every promise.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// In short.
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
    /// A deleted job stays deleted.
    Gone = "a job past its time is gone, and stays so",
    /// One terminal state, and one outcome.
    EndsOnce = "a job ends once, and its outcome does not change",
    /// Every outcome has a cause that could bring it about.
    Caused = "an outcome has a cause that came first",
    /// Inputs reach workers as they were submitted.
    InputIntact = "a worker gets the input byte for byte",
    /// Only jobs that were submitted are handed out, and only while they live.
    HandedOut = "only a waiting job is handed out",
    /// A job has one holder at a time.
    HeldOnce = "a job is not handed out while its worker may still have it",
    /// First in, first out.
    InOrder = "jobs are handed out in order",
    /// Progress and chunks come from whoever holds the job.
    FromHolder = "progress and chunks come from who holds the job",
    /// Readers of events get every chunk.
    Followed = "who follows a job gets every chunk once, in order, and then its end",
    /// The number of retries is the number of lost workers.
    RetriesCounted = "retries count lost workers, and nothing else",
    /// Who cannot be read takes nobody along.
    FailsAlone = "a job that no worker can read fails alone",
    /// A read error fails nothing, and damage only what is damaged.
    DamageTrue = "a job fails for a damaged input only where its input is damaged",
    /// What is damaged is not shown, what is intact is.
    DamageTold = "what is damaged is answered as damaged, and nothing else is",
    /// A job that is over stops running.
    Stops = "a job that is over stops running",
    /// Cancel answers with a terminal state.
    CancelEnds = "a cancelled job is over",
    /// Purges hit what waits, and nothing else.
    Purged = "a purge cancels what waits, and nothing else",
    /// Only failed and timed-out jobs are retried.
    Retryable = "only a failed or timed-out job is retried",
    /// Webhooks tell the truth.
    HookTruthful = "a webhook tells how the job ended",
    /// Webhooks are called until accepted or out of attempts.
    HookMade = "a webhook is called until it is accepted or out of attempts",
    /// Attempts keep their distance, and end with the first success.
    HookPaced = "a webhook is not called too soon, too often, or after it was accepted",
    /// One key, one job.
    OneJobPerKey = "an idempotency key stands for one job",
    /// Health is true.
    Healthy = "health agrees with what is known",
    /// The counters of health never go back.
    Counted = "counters never go back",
    /// Rate limits hold.
    Limited = "no more requests pass than the limit",
    /// Rate limits refuse nobody without need.
    NotLimited = "nobody is refused below the limit",
    /// Answers have the documented form.
    WellFormed = "every answer has its documented form",
    /// No answer says 500.
    NoDefect = "no answer is an internal error",
    /// A deleted endpoint is gone.
    EndpointGone = "a deleted endpoint is gone",
    /// Drained chunks are gone.
    DrainedOnce = "a drained chunk does not come again",
    /// Execution timeouts hold.
    TimedOut = "no job runs past its execution timeout",
    /// Jobs of lost workers go on.
    LeaseEnds = "a job does not stay with a worker that is gone",
    /// Waits end with what they wait for.
    Woken = "who waits for a job's end is told soon",
    /// Workers are drained, not killed.
    WorkersSpared = "the server ends no worker that does its work",
    /// Workers that are to be replaced take nothing new.
    OldWorkersLeft = "a worker of an old version gets no more jobs",
    /// The fleet does not outgrow its limit.
    FleetBounded = "there are no more workers than allowed",
    /// Hung workers are replaced.
    SilentEnded = "at rest no silent worker is kept",
    /// At rest, every job has ended.
    AllEnd = "at rest every job has ended",
    /// At rest, nothing runs.
    AllStopped = "at rest no handler runs",
    /// At rest, the fleet is at its minimum.
    FleetAtMinimum = "at rest the fleet is at its minimum",
    /// At rest, every request was answered.
    AllAnswered = "at rest every request was answered",
}
