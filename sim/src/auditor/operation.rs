//! Parses the operation of a request from its method and path.

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Run,
    RunSync,
    Status {
        ttl_ms: Option<u64>,
    },
    StatusSync,
    Stream {
        offset: Option<u64>,
    },
    /// A stream as server-sent events.
    Follow,
    Cancel,
    Retry,
    /// A redelivery of webhooks.
    RedeliverWebhooks,
    Purge,
    Health,
    /// A list without filter and cursor, and its page size.
    Requests {
        whole: bool,
        limit: u64,
    },
    Take {
        idle: bool,
    },
    Done,
    Chunk,
    Ping {
        unfit: bool,
    },
    StopPoll,
    CreateEndpoint,
    ChangeEndpoint,
    DeleteEndpoint,
    ReadEndpoint,
    Other,
}

impl Operation {
    /// Whether workers send this operation.
    pub fn is_workers(self) -> bool {
        matches!(self, Self::Take { .. } | Self::Done | Self::Chunk | Self::Ping { .. } | Self::StopPoll)
    }
}

/// The parts of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address<'a> {
    pub operation: Operation,
    pub endpoint: &'a str,
    /// The job id; empty if the path has none.
    pub job: &'a str,
    /// The worker id; empty if the path has none.
    pub worker: &'a str,
    pub query: &'a str,
}

impl<'a> Address<'a> {
    /// Parses the method and the path.
    pub fn of(method: &str, path: &'a str) -> Self {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut address = Self { operation: Operation::Other, endpoint: "", job: "", worker: "", query };
        let mut segments = path.strip_prefix("/sdk").unwrap_or(path).split('/').skip(1);
        match segments.next() {
            Some("v2") => address.job_interface(method, segments),
            Some("v1") => address.management(method, segments),
            _ => {}
        }
        address
    }

    fn job_interface(&mut self, method: &str, mut segments: impl Iterator<Item = &'a str>) {
        let mut next = || segments.next().unwrap_or("");
        self.endpoint = next();
        let (verb, first, second) = (next(), next(), next());
        let parameter = |name| parameter(self.query, name);
        let number = |name| parameter(name).and_then(|text| text.parse().ok());
        self.operation = match (method, verb) {
            ("POST", "run") => Operation::Run,
            ("POST", "runsync") => Operation::RunSync,
            ("GET" | "POST", "status") => Operation::Status { ttl_ms: number("ttl") },
            ("GET" | "POST", "status-sync") => Operation::StatusSync,
            ("GET" | "POST", "stream") => Operation::Stream { offset: number("offset") },
            ("POST", "cancel") => Operation::Cancel,
            ("POST", "retry") => Operation::Retry,
            ("POST", "webhooks") => Operation::RedeliverWebhooks,
            ("POST", "purge-queue") => Operation::Purge,
            ("GET", "health") => Operation::Health,
            ("GET", "requests") => {
                let whole = parameter("status").is_none() && parameter("cursor").is_none();
                Operation::Requests { whole, limit: number("limit").unwrap_or(100) }
            }
            ("GET", "job-take" | "job-take-batch") => {
                Operation::Take { idle: parameter("job_in_progress") == Some("0") }
            }
            ("POST", "job-done") => Operation::Done,
            ("POST", "job-stream") => Operation::Chunk,
            ("GET", "ping") => Operation::Ping { unfit: parameter("status") == Some("unhealthy") },
            ("GET", "job-stop") => Operation::StopPoll,
            _ => Operation::Other,
        };
        match self.operation {
            Operation::Done | Operation::Chunk => (self.worker, self.job) = (first, second),
            operation if operation.is_workers() => self.worker = first,
            Operation::RedeliverWebhooks => {}
            _ => self.job = first,
        }
    }

    fn management(&mut self, method: &str, mut segments: impl Iterator<Item = &'a str>) {
        let mut next = || segments.next().unwrap_or("");
        let (group, id, verb) = (next(), next(), next());
        if group != "endpoints" {
            return;
        }
        self.endpoint = id;
        self.operation = match (method, id, verb) {
            ("POST", "", "") => Operation::CreateEndpoint,
            ("PATCH", _, "") | ("POST", _, "update") => Operation::ChangeEndpoint,
            ("DELETE", _, "") => Operation::DeleteEndpoint,
            ("GET", _, "") if !id.is_empty() => Operation::ReadEndpoint,
            _ => Operation::Other,
        };
    }
}

/// Returns a query parameter, the last one of several.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next_back()
}

/// Returns the jobs that a ping lists.
pub(super) fn listed_jobs(query: &str) -> impl Iterator<Item = &str> {
    let list = parameter(query, "job_id").unwrap_or("");
    list.split("%2C")
        .flat_map(|part| part.split("%2c"))
        .flat_map(|part| part.split(','))
        .filter(|id| !id.is_empty())
}
