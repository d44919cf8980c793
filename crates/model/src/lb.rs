//! How a load-balancing endpoint forwards requests to its workers.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// The settings of an endpoint of the type `LB`. The JSON names are those of the management API. A field that an older
/// version did not write takes its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LbSettings {
    /// The TCP port on which a worker serves HTTP. `None`: `PORT` of the template's environment, else a free port for a
    /// process, and 8000 for a container with an address of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The TCP port of the health check. `None`: the port of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_port: Option<u16>,
    /// The path of the health check, from the first `/` on.
    pub health_path: String,
    /// The largest number of concurrent requests of one worker; 0: no limit.
    pub max_concurrency: u32,
    /// The largest number of requests that wait for a worker. Further ones are refused.
    pub queue_max: u32,
    /// How long a request waits for a worker, in ms.
    pub queue_timeout_ms: u64,
    /// How long a worker may take until the head of its response, in ms. Also how long it waits for a request's body that comes more
    /// slowly than 1 KiB/s.
    pub request_timeout_ms: u64,
    /// The longest pause within a response, and of both directions of an upgraded connection, in ms; 0: no limit.
    pub idle_timeout_ms: u64,
    /// How long the requests of a worker may go on after it was drained, in ms.
    pub drain_timeout_ms: u64,
    /// The largest declared body of a request that has to wait for a worker, in bytes.
    pub body_bytes_max: u64,
    /// Whether requests need no key.
    pub public: bool,
    /// Whether workers get the header `Authorization` of requests.
    pub pass_authorization: bool,
}

impl Default for LbSettings {
    fn default() -> Self {
        Self {
            port: None,
            health_port: None,
            health_path: String::from("/ping"),
            max_concurrency: 0,
            queue_max: 100,
            queue_timeout_ms: 120_000,
            request_timeout_ms: 330_000,
            idle_timeout_ms: 60_000,
            drain_timeout_ms: 330_000,
            body_bytes_max: 30_000_000,
            public: false,
            pass_authorization: false,
        }
    }
}

/// The ports on which a worker of a load-balancing endpoint serves HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpPorts {
    /// The port of the requests.
    pub port: u16,
    /// The port of the health check.
    pub health_port: u16,
}
