//! What is observable outside the server: requests and responses, webhook calls, and processes that start and end.
//!
//! The auditor knows nothing else, and nothing here comes from inside the server. Events of the disk come from the
//! simulated disk.

use bytes::Bytes;

/// The time of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the start of the world; never jumps.
    pub ms: u64,
    /// The wall clock of the server's computer, in ms since 1970; may jump in both directions.
    pub wall_ms: u64,
}

/// A party that talks to the server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A client, by number.
    Client(u32),
    /// A worker, by id.
    Worker(String),
    /// The operator, who manages endpoints.
    Operator,
}

/// Number of one request, in the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExchangeId(pub u64);

/// An HTTP request of a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, in upper case.
    pub method: &'static str,
    /// The path and the query.
    pub path: String,
    /// Header fields with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The complete body; may be empty.
    pub body: Bytes,
}

/// An HTTP response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code, 100 to 599.
    pub status: u16,
    /// Header fields with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The complete body; empty for a stream.
    pub body: Bytes,
}

/// One observation of a party or of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A party sent a request.
    Sent(ExchangeId, Party, HttpRequest),
    /// The request arrived at the server's computer. A lost request never arrives.
    Arrived(ExchangeId),
    /// A piece of a streamed response arrived.
    Piece(ExchangeId, Bytes),
    /// The response arrived. A stream has ended; its body arrived before, in pieces.
    Answered(ExchangeId, HttpResponse),
    /// No response will arrive: request or response was lost, the server died, or the party disconnected.
    Broken(ExchangeId),
    /// A webhook call was made: its number, URL and body. The call may not reach its receiver.
    Called(u64, String, Bytes),
    /// A webhook call was answered with this status.
    CallAnswered(u64, u16),
    /// A webhook call failed: the receiver was unreachable or disconnected.
    CallBroken(u64),
    /// A worker process was started for an endpoint (worker, endpoint).
    WorkerStarted(String, String),
    /// A worker process ended. The flag says whether the server's computer ended it.
    WorkerEnded(String, bool),
    /// In a worker, a handler started a job (worker, job).
    HandlerBegan(String, String),
    /// In a worker, a handler ended or died with its process (worker, job).
    HandlerEnded(String, String),
    /// A server process started.
    ServerUp,
    /// The server process ended. The flag says whether it was killed.
    ServerDown(bool),
    /// The wall clock of the server's computer was set; the observation's time has the new value.
    ClockSet,
    /// A write to the server's disk failed, or its result is unknown.
    DiskFailed,
    /// The disk failed to read the input of this job.
    InputUnread(String),
    /// The disk damaged or lost the input of this job.
    InputDamaged(String),
    /// The disk returned a damaged output of this terminal job.
    OutputDamaged(String),
    /// A chunk of the job's stream, by offset, was damaged, or read while damaged.
    ChunkDamaged(String, u64),
    /// The faults stop here. Clients submit, cancel and change nothing from now on.
    QuietPhaseBegan,
    /// The world ends, late enough after [`Observation::QuietPhaseBegan`] that everything should be at rest.
    End,
}
