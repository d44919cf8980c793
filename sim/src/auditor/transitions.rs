//! The transitions of a job's state: the specification's table, with each case of its own.

/// Defines the transitions.
macro_rules! transitions {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A transition of a job's state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Transition {
            $($(#[$doc])* $name,)*
        }

        impl Transition {
            /// Every transition, in order of definition.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

transitions! {
    /// The job was submitted and acknowledged.
    Accepted,
    /// The job was delivered to a worker.
    Taken,
    /// Completed by the worker that held it.
    Completed,
    /// Completed by a worker that had lost it.
    CompletedLate,
    /// Failed by its handler.
    FailedByHandler,
    /// Failed because its output is too large.
    FailedBySize,
    /// Requeued after its handler failed.
    HandlerErrorRetried,
    /// Requeued after its worker was lost; counted as a retry.
    WorkerLostRequeued,
    /// Failed because its workers were lost too often.
    WorkerLostFailed,
    /// Requeued after the server stopped its worker; not counted as a retry.
    DrainedRequeued,
    /// Requeued because the response to a take was lost; not counted as a retry.
    UndeliveredRequeued,
    /// The execution timeout was exceeded.
    TimedOut,
    /// Cancelled while it was queued.
    CancelledQueued,
    /// Cancelled while it was running.
    CancelledRunning,
    /// Cancelled by a purge of the queue.
    Purged,
    /// A failed job was retried.
    RetriedFailed,
    /// A timed-out job was retried.
    RetriedTimedOut,
    /// The ttl passed while the job was queued.
    ExpiredQueued,
    /// The ttl passed while the job was running.
    ExpiredRunning,
    /// The ttl of a completed job passed.
    ExpiredCompleted,
    /// The ttl of a failed job passed.
    ExpiredFailed,
    /// The ttl of a cancelled job passed.
    ExpiredCancelled,
    /// The ttl of a timed-out job passed.
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
