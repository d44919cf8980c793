//! The edges of a job's life: the table in the specification, with every case of its own.

/// Defines the edges.
macro_rules! edges {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An edge of a job's life.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Transition {
            $($(#[$doc])* $name,)*
        }

        impl Transition {
            /// Every edge.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

edges! {
    /// Submitted and acknowledged.
    Accepted,
    /// Handed to a worker.
    Taken,
    /// Completed by the worker that held it.
    Completed,
    /// Completed by a worker that had lost it.
    CompletedLate,
    /// Failed by its handler.
    FailedByHandler,
    /// Failed for its output's size.
    FailedBySize,
    /// Back in the queue after its handler failed.
    HandlerErrorRetried,
    /// Back in the queue after its worker was lost, with a retry counted.
    WorkerLostRequeued,
    /// Failed because its workers were lost too often.
    WorkerLostFailed,
    /// Back in the queue after its worker was stopped by the server, with no retry counted.
    DrainedRequeued,
    /// Back in the queue because the answer to a take was lost, with no retry counted.
    UndeliveredRequeued,
    /// Ran too long.
    TimedOut,
    /// Cancelled while it waited.
    CancelledQueued,
    /// Cancelled while it ran.
    CancelledRunning,
    /// Cancelled by a purge.
    Purged,
    /// A failed job was retried.
    RetriedFailed,
    /// A timed-out job was retried.
    RetriedTimedOut,
    /// Its ttl passed while it waited.
    ExpiredQueued,
    /// Its ttl passed while it ran.
    ExpiredRunning,
    /// Its ttl passed when it was completed.
    ExpiredCompleted,
    /// Its ttl passed when it had failed.
    ExpiredFailed,
    /// Its ttl passed when it was cancelled.
    ExpiredCancelled,
    /// Its ttl passed when it had timed out.
    ExpiredTimedOut,
    /// The retention of a completed job passed.
    ForgottenCompleted,
    /// The retention of a failed job passed.
    ForgottenFailed,
    /// The retention of a cancelled job passed.
    ForgottenCancelled,
    /// The retention of a timed-out job passed.
    ForgottenTimedOut,
}
