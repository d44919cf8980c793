//! Sequences of hostile requests to the whole router with a real engine.

use axum::body::Body;
use http::{HeaderValue, Request, StatusCode};
use longshore_hostile::{JSON_TOKENS, Names, cases, mutated, object, text};
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::authorization::patterns;
use super::direct::{ADMIN, Direct, Reply, request};

const NAMES: Names = &[
    "input",
    "output",
    "error",
    "status",
    "stopPod",
    "webhook",
    "policy",
    "ttl",
    "executionTimeout",
    "s3Config",
    "name",
    "slug",
    "templateId",
    "template",
    "env",
    "workersMax",
    "workersMin",
    "provider",
    "dockerStartCmd",
    "idleTimeout",
    "durability",
    "maxQueueLength",
];

const GOOD: &[&str] = &[
    r#"{"input":{"n":1}}"#,
    r#"{"input":{},"policy":{"ttl":10000,"executionTimeout":5000,"lowPriority":true},"webhook":"http://h/"}"#,
    r#"{"output":{"x":[1.0,NaN]},"stopPod":true}"#,
    r#"{"error":"e","output":null}"#,
    r#"{"status":"IN_PROGRESS","output":"half"}"#,
    r#"{"name":"n","env":{"A":"b"},"dockerStartCmd":["run"]}"#,
    r#"{"templateId":"$TEMPLATE","provider":"external","slug":"new-one"}"#,
    r#"{"template":{"name":"inline"},"workersMax":0}"#,
    r#"{"workersMax":5,"slug":null,"maxQueueLength":1}"#,
    "{}",
    "",
];

const QUERIES: &[&str] = &[
    "",
    "wait=1000",
    "wait=0",
    "wait=-1",
    "ttl=1000",
    "ttl=604800000",
    "limit=1",
    "limit=0",
    "status=IN_QUEUE",
    "status=x",
    "cursor=$JOB",
    "cursor=x",
    "offset=0",
    "offset=18446744073709551615",
    "drain=true",
    "batch_size=3",
    "job_in_progress=0",
    "job_in_progress=1",
    "job_id=$JOB%2Cx",
    "status=unhealthy&check=c&reason=r",
    "includeTemplate=1&includeWorkers=true",
    "%ff=%ff&&=&%00",
    "a&b",
];

/// One request, in words that stand for resources that the sequence has made.
#[derive(Clone, Debug)]
struct HostileRequest {
    method: &'static str,
    path: String,
    query: String,
    key: &'static str,
    header: Option<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

fn hostile_request() -> impl Strategy<Value = HostileRequest> {
    // A request that a worker has to answer is held until one does.
    let patterns =
        || patterns().into_iter().filter(|(_, path)| !path.ends_with("{*route}")).collect::<Vec<_>>();
    let known = prop::sample::select(patterns()).prop_map(|(method, path)| (method, path.to_owned()));
    let other_method = prop::sample::select(vec![
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "X-Y",
    ]);
    let other = (other_method, prop::sample::select(patterns()))
        .prop_map(|(method, (_, path))| (method, path.to_owned()));
    let odd = "(/(v1|v2|sdk|%ff|%2e%2e|demo|run|status|\\{job\\}|[a-z%&=.;:@-]{0,6})){0,6}/?";
    let odd = (prop::sample::select(vec!["GET", "POST"]), odd)
        .prop_map(|(method, path)| (method, format!("/{path}")));
    let place = prop_oneof![12 => known, 2 => other, 1 => odd];
    let parameter = prop_oneof![
        8 => Just("$GOOD".to_owned()),
        1 => prop::sample::select(vec!["other", "nosuchendpoint", "%ff", "a%00b", "$JOB", "w-1&job_id=$JOB", ".."]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9%._~!$&'()*+,;=:@-]{1,40}",
    ];
    let place = (place, prop::collection::vec(parameter, 3)).prop_map(|((method, path), given)| {
        let names = ["{endpoint}", "{job}", "{worker}"];
        let path = names
            .iter()
            .zip(given)
            .fold(path, |path, (name, value)| path.replace(name, &value.replace("$GOOD", name)));
        (method, path)
    });
    let query = prop_oneof![4 => prop::sample::select(QUERIES.to_vec()).prop_map(str::to_owned), 1 => "[a-z=&%0-9]{0,30}"];
    let key =
        prop::sample::select(vec!["admin", "admin", "admin", "admin", "admin", "worker", "none", "bad"]);
    let header = prop::option::weighted(
        0.3,
        (
            prop::sample::select(vec![
                "idempotency-key",
                "connection",
                "x-forwarded-proto",
                "x-forwarded-host",
                "content-type",
                "content-length",
                "expect",
                "authorization",
            ]),
            prop_oneof![
                text().prop_map(String::into_bytes),
                prop::sample::select(vec!["k1", "k2", "keep-alive", "https"])
                    .prop_map(|text| text.as_bytes().to_vec())
            ],
        ),
    );
    let body = prop_oneof![
        3 => prop::sample::select(GOOD.to_vec()).prop_map(|body| body.as_bytes().to_vec()),
        3 => mutated(prop::sample::select(GOOD.to_vec()), JSON_TOKENS),
        3 => object(NAMES).prop_map(String::into_bytes),
        1 => longshore_hostile::bytes(),
    ];
    let body = prop::option::weighted(0.5, body);
    (place, query, key, header, body).prop_map(|((method, path), query, key, header, body)| {
        // Requests of workers need the worker token.
        let is_workers = ["/job-", "/ping/"].iter().any(|part| path.contains(part));
        let key = if is_workers && key == "admin" { "worker" } else { key };
        let body = body.unwrap_or_else(|| fitting(&path).as_bytes().to_vec());
        HostileRequest { method, path, query, key, header, body }
    })
}

/// A body with which a route succeeds.
fn fitting(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("run" | "runsync") => GOOD[0],
        Some("templates") => r#"{"name":"made"}"#,
        Some("endpoints") => r#"{"templateId":"$TEMPLATE","provider":"external"}"#,
        Some("update" | "{endpoint}" | "{template}") => r#"{"name":"renamed"}"#,
        _ => r#"{"output":"half"}"#,
    }
}

/// The resources that the sequence has made.
struct Conversation {
    server: Direct,
    jobs: Vec<String>,
    template: String,
}

impl Conversation {
    async fn start() -> Self {
        let server = Direct::start().await;
        let template = server.ask("POST", "/v1/templates", r#"{"name":"spare"}"#).await.json();
        let template = template["id"].as_str().unwrap().to_owned();
        let job = server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
        let jobs = vec![job["id"].as_str().unwrap().to_owned()];
        Self { server, jobs, template }
    }

    fn request(&self, sent: &HostileRequest) -> Option<Request<Body>> {
        let job = self.jobs.last().unwrap();
        let filled = |text: &str| {
            let text = text.replace("{endpoint}", "demo").replace("{worker}", "w-1").replace("{job}", job);
            text.replace("{template}", &self.template).replace("$JOB", job)
        };
        let uri = format!("{}?{}", filled(&sent.path), filled(&sent.query));
        let token = self.server.engine.worker_token(&self.server.endpoint);
        let key = match sent.key {
            "admin" => Some(format!("Bearer {ADMIN}")),
            "worker" => Some(token),
            "bad" => Some("Bearer ls_0_0".to_owned()),
            _ => None,
        };
        let body = String::from_utf8(sent.body.clone()).map_or_else(
            |_| sent.body.clone(),
            |body| body.replace("$TEMPLATE", &self.template).into_bytes(),
        );
        // A text that is no URI or no header value does not reach the router.
        uri.parse::<http::Uri>().ok()?;
        let mut request = request(sent.method, &uri, key.as_deref(), body);
        if let Some((name, value)) = &sent.header {
            request.headers_mut().append(*name, HeaderValue::from_bytes(value).ok()?);
        }
        Some(request)
    }
}

/// Checks what must hold of any response.
fn is_well_formed(sent: &HostileRequest, reply: &Reply) {
    // A drain, which is a request of the sequence too, makes the readiness probe 503.
    let is_draining = sent.path == "/readyz" && reply.status == StatusCode::SERVICE_UNAVAILABLE;
    assert!(is_draining || !reply.status.is_server_error(), "{sent:?}: {reply:?}");
    assert!(!reply.status.is_redirection() && !reply.status.is_informational(), "{sent:?}: {reply:?}");
    assert!(reply.header("x-request-id").is_some_and(|id| id.len() == 16), "{reply:?}");
    if sent.method == "HEAD" {
        return;
    }
    if is_draining {
        assert_eq!(reply.code(), "not_ready", "{reply:?}");
    } else if reply.status.is_client_error() {
        let of_query = reply.json().get("errors").is_some();
        assert!(
            !of_query || sent.path == "/graphql",
            "only GraphQL answers in its shape: {sent:?}: {reply:?}"
        );
        reply.code();
    } else if reply.status == StatusCode::NO_CONTENT {
        assert!(reply.body.is_empty(), "{reply:?}");
    } else if reply.header("content-type") == Some("application/json") {
        serde_json::from_slice::<&RawValue>(&reply.body)
            .unwrap_or_else(|error| panic!("{sent:?}: {error}: {reply:?}"));
    } else {
        let is_ping = sent.path.contains("/ping/") && reply.body.is_empty();
        let is_text = ["/metrics", "/v1/docs", "/v1/events", "/logs", "/console"]
            .iter()
            .any(|text| sent.path.contains(text));
        assert!(is_ping || is_text, "{sent:?}: {reply:?}");
    }
    let text = String::from_utf8_lossy(&reply.body);
    // A text that no id can have by chance.
    assert!(!text.contains("Hush, hush!"), "a secret got out: {sent:?}: {reply:?}");
}

async fn converse(all_sent: &[HostileRequest]) {
    let mut conversation = Conversation::start().await;
    for sent in all_sent {
        let Some(request) = conversation.request(sent) else { continue };
        let before = conversation.server.content().await;
        let reply = conversation.server.send(request).await;
        is_well_formed(sent, &reply);
        if reply.status.is_client_error() {
            assert_eq!(
                conversation.server.content().await,
                before,
                "refused and done all the same: {sent:?} {reply:?}"
            );
        } else if sent.path.contains("/run") && reply.body.starts_with(b"{") {
            conversation.jobs.extend(reply.json()["id"].as_str().map(str::to_owned));
        }
        if conversation.server.engine.endpoint("demo").is_none() {
            return;
        }
    }
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn any_conversation_ends_well(all_sent in prop::collection::vec(hostile_request(), 1..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converse(&all_sent));
    }
}
