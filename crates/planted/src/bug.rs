//! The mistakes, each of a kind that a programmer could make.

/// Defines the mistakes with their names.
macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        impl Bug {
            /// Every mistake.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The one of this name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

bugs! {
    // Submits.
    /// The bodies of two submits with the same `Idempotency-Key` are not compared.
    BodyNotCompared,
    /// `Idempotency-Key`s are not read back at the start.
    KeysNotLoaded,

    // Delivery.
    /// A worker that is to end gets jobs all the same.
    DrainedWorkerTakes,
    /// A job that comes back from a lost worker goes to the end of the line.
    RequeuedAtBack,
    /// A redispatch counts as two retries.
    RetryCountedTwice,
    /// A job runs once more often than it may.
    OneRunTooMany,
    /// A delivery whose answer got lost counts as a retry.
    LostAnswerCounted,
    /// Jobs that were dropped together are handed out together again.
    DroppedInBatches,
    /// A job whose input could not be read is one that its worker lost.
    ReadErrorCounted,
    /// The jobs that run at a crash are nobody's afterwards.
    LeaseNotLoaded,
    /// A managed worker that went silent loses its jobs but is left running.
    HungWorkerKept,

    // Reports.
    /// A result counts although nobody has taken the job since it was submitted or retried.
    UntakenResultAccepted,
    /// A result counts although the job was cancelled.
    ResultAfterCancel,
    /// A cancel changes a job that has completed.
    CancelAfterResult,

    // Times.
    /// The time in the queue counts towards the execution timeout.
    TimeoutFromSubmit,
    /// A restart forgets the execution timeouts of running jobs.
    TimeoutNotLoaded,
    /// The ttl begins anew when a job goes back to the queue.
    TtlRestarts,
    /// A retry grants no new ttl.
    TtlNotRenewed,
    /// `/status?ttl=` is checked and then forgotten.
    TtlIgnored,

    // Retry and purge.
    /// A retried job shows the output or error of its first run.
    OutcomeNotCleared,
    /// A retried job's stream begins with the chunks of its first run.
    StreamNotReset,
    /// A purge also hits jobs that come after it while the clock stands still.
    PurgeHitsNewJobs,

    // Streams.
    /// The chunks of an attempt that did not finish stay.
    ChunksOfLostAttempt,
    /// The last chunk of every drained page is drained again.
    DrainedTwice,
    /// A reader of events who comes back misses a chunk.
    ResumeSkipsOne,
    /// A reader of events who comes back gets its last chunk again.
    ResumeRepeatsOne,
    /// A reader of events is told the end before the chunks that it has not got yet.
    EndBeforeChunks,

    // Damage on the disk.
    /// A damaged output file is served as it is.
    DamagedOutputServed,
    /// A job whose output is damaged is shown without an output.
    DamagedOutputOmitted,
    /// A page of a stream is empty where its first chunk is damaged.
    DamagedChunkOmitted,
    /// What cannot be read now is answered as if it were damaged.
    ReadErrorCalledDamage,

    // Durability.
    /// The reply leaves before the commit.
    ReplyBeforeCommit,
    /// After a failed commit the machine goes on as if it had succeeded.
    FailedCommitForgotten,
    /// The counters' row is written only when it reserves numbers.
    CountersNotKept,
    /// A file is deleted although the job that needs it can still be retried.
    InputDeletedAtEnd,
    /// At the start, the files of finished jobs are taken for strays.
    OutputSwept,

    // Waits.
    /// Whoever waits for a job's end is not woken.
    WaitNotWoken,

    // Webhooks.
    /// That a webhook call is owed is not written down.
    HookNotKept,
    /// That a webhook call was accepted is not written down.
    HookNotSettled,
    /// Failed webhook calls are not counted.
    HookWithoutEnd,
    /// A failed webhook call is made again at once.
    HookAtOnce,

    // The fleet.
    /// Workers of an earlier server are not looked after.
    AdoptedForgotten,
    /// The last idle worker stays for ever.
    OneIdleKept,
    /// Workers that must go are stopped with the jobs they run.
    DrainKills,
    /// Workers that still have to end take up no room.
    TooManyWorkers,

    // Rates.
    /// One request more than the limit is let in.
    RateOneTooMany,
}
