//! What a worker from outside needs in its environment to find and be let into an endpoint.

use http::HeaderMap;
use http::header::HOST;
use longshore_model::{EndpointId, WorkerId};
use serde_json::{Map, Value};

/// How often a worker says what it holds, in milliseconds.
const PING_INTERVAL_MS: &str = "5000";

/// The variables that the worker SDK reads, by name.
///
/// `$ID` and `$RUNPOD_POD_ID` stay as they are: the SDK fills them in, `$ID` with the worker's id in the first
/// address and with the job's in the next two. The `?` keeps what the SDK appends out of the path, and the SDK
/// finds the stop and batch routes by the literal `/job-take/`.
pub(super) fn worker_env(
    base: &str,
    endpoint: &EndpointId,
    worker: &WorkerId,
    token: &str,
) -> Map<String, Value> {
    let at = format!("{base}/v2/{endpoint}");
    let variables = [
        ("RUNPOD_ENDPOINT_ID", endpoint.to_string()),
        ("RUNPOD_POD_ID", worker.to_string()),
        ("RUNPOD_AI_API_KEY", token.to_owned()),
        ("RUNPOD_WEBHOOK_GET_JOB", format!("{at}/job-take/$ID?")),
        ("RUNPOD_WEBHOOK_POST_OUTPUT", format!("{at}/job-done/$RUNPOD_POD_ID/$ID?")),
        ("RUNPOD_WEBHOOK_POST_STREAM", format!("{at}/job-stream/$RUNPOD_POD_ID/$ID?")),
        ("RUNPOD_WEBHOOK_PING", format!("{at}/ping/$RUNPOD_POD_ID?")),
        ("RUNPOD_PING_INTERVAL", PING_INTERVAL_MS.to_owned()),
        ("RUNPOD_SKIP_AUTO_SYSTEM_CHECKS", "true".to_owned()),
        ("RUNPOD_SKIP_GPU_CHECK", "true".to_owned()),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect()
}

/// The address at which the client reached this server, without a slash at its end: scheme and host as the
/// request (or the proxy in front) says. None if it says no host.
pub(super) fn base_url(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    let host = text("x-forwarded-host").or_else(|| text(HOST.as_str()))?;
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_keep_the_placeholders_and_the_question_mark() {
        let endpoint: EndpointId = "abcdefghij0123".parse().unwrap();
        let worker: WorkerId = "ext-1".parse().unwrap();
        let env = worker_env("http://h:1", &endpoint, &worker, "lsw_x");
        assert_eq!(env["RUNPOD_WEBHOOK_GET_JOB"], "http://h:1/v2/abcdefghij0123/job-take/$ID?");
        let post = "http://h:1/v2/abcdefghij0123/job-done/$RUNPOD_POD_ID/$ID?";
        assert_eq!(env["RUNPOD_WEBHOOK_POST_OUTPUT"], post);
        assert_eq!(env["RUNPOD_AI_API_KEY"], "lsw_x");
    }

    #[test]
    fn the_base_address_is_the_one_the_client_used() {
        let mut headers = HeaderMap::new();
        assert_eq!(base_url(&headers), None);
        headers.insert(HOST, "10.0.0.1:8080".parse().unwrap());
        assert_eq!(base_url(&headers).as_deref(), Some("http://10.0.0.1:8080"));
        headers.insert("x-forwarded-proto", "https".parse().unwrap());
        headers.insert("x-forwarded-host", "jobs.example".parse().unwrap());
        assert_eq!(base_url(&headers).as_deref(), Some("https://jobs.example"));
    }
}
