//! The environment variables that a worker reads at its start, as the SDK does.

use std::collections::BTreeMap;
use std::time::Duration;

/// The server's addresses and the worker's identity.
pub(super) struct Environment {
    pub(super) worker: String,
    /// The id of the endpoint.
    pub(super) endpoint: String,
    pub(super) token: String,
    pub(super) ping_every: Duration,
    pub(super) take: String,
    pub(super) take_batch: String,
    pub(super) stop: String,
    pub(super) ping: String,
    done: String,
    stream: String,
}

impl Environment {
    /// Reads the variables. `None` if one is missing, because the SDK would not take jobs then.
    pub(super) fn read(env: &BTreeMap<String, String>) -> Option<Self> {
        let worker = env.get("RUNPOD_POD_ID")?.clone();
        let address = |name: &str| env.get(name).map(|url| path_of(url).to_owned());
        let take = address("RUNPOD_WEBHOOK_GET_JOB")?.replace("$ID", &worker);
        let of_worker = |path: String| path.replace("$RUNPOD_POD_ID", &worker);
        // The SDK divides by 1 000 and rounds down.
        let ping_every_s = env.get("RUNPOD_PING_INTERVAL")?.parse::<u64>().ok()? / 1_000;
        Some(Self {
            endpoint: env.get("RUNPOD_ENDPOINT_ID")?.clone(),
            token: env.get("RUNPOD_AI_API_KEY")?.clone(),
            ping_every: Duration::from_secs(ping_every_s.max(1)),
            take_batch: take.replace("/job-take/", "/job-take-batch/"),
            stop: take.replace("/job-take/", "/job-stop/"),
            take,
            ping: of_worker(address("RUNPOD_WEBHOOK_PING")?),
            done: of_worker(address("RUNPOD_WEBHOOK_POST_OUTPUT")?),
            stream: of_worker(address("RUNPOD_WEBHOOK_POST_STREAM")?),
            worker,
        })
    }

    /// The path of a result or a progress value.
    pub(super) fn done(&self, job: &str, is_stream: bool) -> String {
        let path = self.done.replace("$ID", job);
        path + if is_stream { "&isStream=true" } else { "&isStream=false" }
    }

    /// The path of a chunk. The SDK sends `false` here, too.
    pub(super) fn stream(&self, job: &str) -> String {
        self.stream.replace("$ID", job) + "&isStream=false"
    }
}

/// The path of a URL; the only server needs no name.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The variables that a server gives a worker.
    pub(crate) fn variables(worker: &str) -> BTreeMap<String, String> {
        let base = "http://longshore.test:80/v2/ep";
        [
            ("RUNPOD_WEBHOOK_GET_JOB", format!("{base}/job-take/$ID?gpu=gpu")),
            ("RUNPOD_WEBHOOK_POST_OUTPUT", format!("{base}/job-done/$RUNPOD_POD_ID/$ID?gpu=gpu")),
            ("RUNPOD_WEBHOOK_POST_STREAM", format!("{base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=gpu")),
            ("RUNPOD_WEBHOOK_PING", format!("{base}/ping/$RUNPOD_POD_ID?gpu=gpu")),
            ("RUNPOD_PING_INTERVAL", "5000".to_owned()),
            ("RUNPOD_ENDPOINT_ID", "ep".to_owned()),
            ("RUNPOD_AI_API_KEY", "lsw_ep_1".to_owned()),
            ("RUNPOD_POD_ID", worker.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    #[test]
    fn addresses_are_filled_in_as_the_sdk_does() {
        let env = Environment::read(&variables("w1")).unwrap();
        assert_eq!(env.take, "/v2/ep/job-take/w1?gpu=gpu");
        assert_eq!(env.take_batch, "/v2/ep/job-take-batch/w1?gpu=gpu");
        assert_eq!(env.stop, "/v2/ep/job-stop/w1?gpu=gpu");
        assert_eq!(env.ping, "/v2/ep/ping/w1?gpu=gpu");
        assert_eq!(env.done("j", true), "/v2/ep/job-done/w1/j?gpu=gpu&isStream=true");
        assert_eq!(env.stream("j"), "/v2/ep/job-stream/w1/j?gpu=gpu&isStream=false");
        assert_eq!(env.ping_every, Duration::from_secs(5));
    }

    #[test]
    fn without_an_address_there_is_no_worker() {
        let mut env = variables("w1");
        env.remove("RUNPOD_WEBHOOK_GET_JOB");
        assert!(Environment::read(&env).is_none());
    }
}
