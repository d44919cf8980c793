//! The mistakes that can be planted. A programmer could make each of them.

/// Defines the mistakes with their names.
macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake that can be planted in the server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        impl Bug {
            /// Every mistake, in the order of definition.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name of the variant.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the mistake with this name; `None` if there is none.
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
    /// A drained worker gets jobs.
    DrainedWorkerTakes,
    /// A job of a lost worker is requeued at the end of its queue.
    RequeuedAtBack,
    /// A requeue counts as two retries.
    RetryCountedTwice,
    /// A job runs one attempt more than its limit.
    OneRunTooMany,
    /// An unconfirmed delivery counts as a retry.
    LostAnswerCounted,
    /// Jobs that were dropped in one batch are delivered in one batch again.
    DroppedInBatches,
    /// A job whose input cannot be read counts as lost by its worker.
    ReadErrorCounted,
    /// The leases of running jobs are not restored after a crash.
    LeaseNotLoaded,
    /// A managed worker whose lease ended loses its jobs but is not stopped.
    HungWorkerKept,

    // Reports.
    /// A result counts although no worker has taken the job since its submit or retry.
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
    /// A requeue restarts the ttl.
    TtlRestarts,
    /// A retry grants no new ttl.
    TtlNotRenewed,
    /// `/status?ttl=` is checked but not applied.
    TtlIgnored,

    // Retry and purge.
    /// A retried job shows the output or error of its earlier attempt.
    OutcomeNotCleared,
    /// A retried job's stream begins with the chunks of its earlier attempt.
    StreamNotReset,
    /// A purge also cancels later jobs of the same millisecond.
    PurgeHitsNewJobs,

    // Streams.
    /// The chunks of an attempt that did not finish stay.
    ChunksOfLostAttempt,
    /// The last chunk of every consumed page is returned again.
    DrainedTwice,
    /// A follower that reconnects misses a chunk.
    ResumeSkipsOne,
    /// A follower that reconnects gets its last chunk again.
    ResumeRepeatsOne,
    /// A follower gets the end before the remaining chunks.
    EndBeforeChunks,

    // Damage on the disk.
    /// A damaged output file is served as it is.
    DamagedOutputServed,
    /// A job whose output is damaged is shown without an output.
    DamagedOutputOmitted,
    /// A page of a stream is empty if its first chunk is damaged.
    DamagedChunkOmitted,
    /// A failed read is reported as damage.
    ReadErrorCalledDamage,

    // Durability.
    /// The reply is released before the commit.
    ReplyBeforeCommit,
    /// After a failed commit the queue continues as if the commit had succeeded.
    FailedCommitForgotten,
    /// The counters' row is written only when it reserves numbers.
    CountersNotKept,
    /// A large input is deleted although its job can still be retried.
    InputDeletedAtEnd,
    /// At the start, the files of finished jobs are deleted as orphans.
    OutputSwept,

    // Waits.
    /// The waiters of a job's end are not woken.
    WaitNotWoken,

    // Webhooks.
    /// A pending webhook call is not stored.
    HookNotKept,
    /// The acceptance of a webhook call is not stored.
    HookNotSettled,
    /// Failed webhook calls are not counted.
    HookWithoutEnd,
    /// A failed webhook call is retried without a delay.
    HookAtOnce,

    // The fleet.
    /// Adopted workers of an earlier server are not supervised.
    AdoptedForgotten,
    /// The last idle worker is never stopped.
    OneIdleKept,
    /// Drained workers are stopped while they run jobs.
    DrainKills,
    /// Workers that are stopping do not count towards the limit.
    TooManyWorkers,

    // Load balancing.
    /// A drained worker gets requests.
    DrainedServerChosen,
    /// A worker whose checks fail keeps its requests coming.
    SickServerChosen,
    /// A request that was sent and may change something is sent again.
    RequestSentTwice,
    /// The last waiting request gets no worker.
    WaiterForgotten,

    // Nodes that share a database.
    /// The database takes batches under any epoch.
    NoFence,
    /// A node answers although its lease is over.
    LeaseNotChecked,
    /// A batch is acknowledged before the database has it on its disk.
    AnswerBeforeFlush,
    /// A submit that is repeated after the loss of the owner gets another job id.
    NewIdOnRepeat,
    /// Chunks that a node posts again after the loss of the owner are appended twice: their number is ignored.
    ChunkPostRepeated,
    /// An owner that does not answer in time counts as ended.
    TimeoutIsDeath,
    /// After a broken connection, batches go on under the epoch of the connection before.
    EpochReused,
    /// A change of an endpoint is acknowledged before the next owner would know it.
    CatalogAnsweredEarly,
    /// After a broken connection, rows are read before the epochs are raised.
    ReloadUnderOldEpoch,

    // Rates.
    /// One request more than the limit is accepted.
    RateOneTooMany,
}
