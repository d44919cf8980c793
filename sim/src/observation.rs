//! What can be seen from outside the server: requests and answers, webhook calls, processes that come and go.
//!
//! This is all that the auditor knows. Nothing in here comes from inside the server: what the disk of its machine did to
//! it comes from the disk.

use bytes::Bytes;

/// When something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the world began; never jumps.
    pub ms: u64,
    /// The wall clock of the server's machine, in milliseconds since the epoch; may jump, also back.
    pub wall_ms: u64,
}

/// Somebody outside the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A client, by number.
    Client(u32),
    /// A worker, by its id.
    Worker(String),
    /// The operator.
    Operator,
}

/// Tells one request from another. Counts up in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExchangeId(pub u64);

/// An HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// In capitals.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// Lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// All of it.
    pub body: Bytes,
}

/// An HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    /// All of it.
    pub body: Bytes,
}

/// Something that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A request left.
    Sent(ExchangeId, Party, HttpRequest),
    /// It arrived at the server's machine. One that is lost never does.
    Arrived(ExchangeId),
    /// A piece of an answer of events came; the answer goes on.
    Piece(ExchangeId, Bytes),
    /// Its answer came back. One of events has come to its end, and its body came before, in pieces.
    Answered(ExchangeId, HttpResponse),
    /// No answer will come: the request or the answer was lost, the server died, or the caller hung up.
    Broken(ExchangeId),
    /// A webhook call was made: the number of the call, the URL and the body. It may not reach its receiver.
    Called(u64, String, Bytes),
    /// A webhook call was answered with this status.
    CallAnswered(u64, u16),
    /// A webhook call failed: the receiver could not be reached, or hung up.
    CallBroken(u64),
    /// A worker process was started for an endpoint.
    WorkerStarted(String, String),
    /// A worker process ended; whether the server's machine ended it.
    WorkerEnded(String, bool),
    /// In a worker, a handler began with a job (worker, job).
    HandlerBegan(String, String),
    /// In a worker, a handler ended, or was ended with its process (worker, job).
    HandlerEnded(String, String),
    /// A server process began.
    ServerUp,
    /// The server process ended; whether it was killed.
    ServerDown(bool),
    /// The wall clock of the server's machine was set; the moment says what it shows now.
    ClockSet,
    /// A write to the disk of the server's machine failed, or nobody can say whether it did.
    DiskFailed,
    /// The disk did not let the server read the input of this job.
    InputUnread(String),
    /// The disk changed or lost the input of this job.
    InputDamaged(String),
    /// The disk answered a read of what came out of this job, which is over, with what is damaged.
    OutputDamaged(String),
    /// The same of a chunk of its stream, with its offset: when it was damaged, and at each read of it.
    ChunkDamaged(String, u64),
    /// From now on nothing goes wrong any more, and nobody submits, cancels or changes anything.
    Calm,
    /// The world ends. Long enough after [`Observation::Calm`] that everything should be at rest.
    End,
}
