//! Requests on the fast path get the responses and counts that the router would give.

use std::collections::BTreeSet;

use http::HeaderMap;

use crate::fast_path::routes::ROUTES;

use super::direct::{ADMIN, Direct, Reply, request};

const JOB: &str = "0190163d-8694-739b-aea5-966c26f8ad90";
const BODY: &str = r#"{"input":{}}"#;

/// Method, path without the endpoint's name, and body.
const ASKED: [(&str, &str, &str); 12] = [
    ("POST", "/v2/{}/run", BODY),
    ("POST", "/sdk/v2/{}/run", BODY),
    ("POST", "/v2/{}/runsync?wait=1000", BODY),
    ("POST", "/sdk/v2/{}/runsync?wait=1000", BODY),
    ("GET", "/v2/{}/status/JOB", ""),
    ("POST", "/v2/{}/status/JOB", ""),
    ("GET", "/sdk/v2/{}/status/JOB", ""),
    ("POST", "/sdk/v2/{}/status/JOB", ""),
    ("GET", "/v2/{}/job-take/w1&job_in_progress=0", ""),
    ("GET", "/v2/{}/job-take-batch/w1?batch_size=2", ""),
    ("POST", "/v2/{}/job-done/w1/JOB?isStream=false", r#"{"output":1}"#),
    ("GET", "/v2/{}/ping/w1?job_id=JOB", ""),
];

/// The tests below send every method to every route of the list.
#[test]
fn every_route_of_the_list_is_asked() {
    let in_list = ROUTES.iter().flat_map(|route| {
        let methods = route.methods.iter().map(http::Method::as_str);
        methods.flat_map(|method| route.patterns.iter().map(move |pattern| (method, (*pattern).to_owned())))
    });
    let asked = ASKED.map(|(method, path, _)| {
        let path = path.split(['?', '&']).next().unwrap_or_default();
        (method, path.replace("{}", "{endpoint}").replace("JOB", "{job}").replace("w1", "{worker}"))
    });
    assert_eq!(BTreeSet::from(asked), in_list.collect());
}

async fn ask(direct: &Direct, key: &str, method: &str, path: &str, body: &str) -> Reply {
    direct.send(request(method, &path.replace("JOB", JOB), Some(key), body.to_owned())).await
}

/// The names of the headers, and whether the connection closes. The length is always sent on the wire.
fn shape(headers: &HeaderMap) -> (Vec<&str>, Option<&[u8]>) {
    let names =
        headers.keys().map(http::HeaderName::as_str).filter(|name| *name != "content-length").collect();
    (names, headers.get("connection").map(http::HeaderValue::as_bytes))
}

/// The lines of `/metrics` that count requests of a route of jobs and workers.
async fn counted(direct: &Direct) -> Vec<(String, u64)> {
    // A page is fresh for 1 s.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let page = direct.ask("GET", "/metrics", "").await.body;
    let page = String::from_utf8(page.to_vec()).unwrap();
    let is_count =
        |line: &&str| line.starts_with("longshore_http_requests_total") && line.contains("/v2/{endpoint}");
    let lines = page.lines().filter(is_count);
    let number = |line: &str| {
        let (labels, count) = line.rsplit_once(' ').unwrap();
        (labels.to_owned(), count.parse().unwrap())
    };
    lines.map(number).collect()
}

#[tokio::test(start_paused = true)]
async fn a_slug_with_a_slash_is_one_segment_on_both_ways() {
    let direct = Direct::start().await;
    let renamed = direct.ask("PATCH", "/v1/endpoints/demo", r#"{"slug":"Org/Model.v2_x"}"#).await;
    assert_eq!(renamed.status, 200, "{renamed:?}");
    let token = direct.engine.worker_token(&direct.endpoint);
    for (method, path, body) in ASKED {
        for name in ["Org%2FModel.v2_x", "Org%2fModel.v2_x", "%4Frg%2FModel.v2_x"] {
            for key in [ADMIN, &token] {
                let answer = ask(&direct, key, method, &path.replace("{}", name), body).await;
                let id = direct.endpoint.to_string();
                let expected = ask(&direct, key, method, &path.replace("{}", &id), body).await;
                assert_eq!(answer.status, expected.status, "{method} {path} {name}");
            }
        }
        // Matched exactly, and in one segment.
        for name in ["org%2Fmodel.v2_x", "Org/Model.v2_x", "Org%252FModel.v2_x"] {
            let answer = ask(&direct, &token, method, &path.replace("{}", name), body).await;
            assert_ne!(answer.status, 200, "{method} {path} {name}: {answer:?}");
        }
    }
    for path in
        ["/v2/Org%2FModel.v2_x/health", "/sdk/v2/Org%2FModel.v2_x/requests", "/v1/endpoints/Org%2FModel.v2_x"]
    {
        assert_eq!(direct.ask("GET", path, "").await.status, 200, "{path}");
    }
    let models = direct.ask("GET", "/v2/Org%2FModel.v2_x/openai/v1/models", "").await;
    assert_eq!(models.json()["data"][0]["id"], "m", "{models:?}");
}

#[tokio::test(start_paused = true)]
async fn the_fast_path_and_the_router_answer_the_same() {
    let direct = Direct::start().await;
    let token = direct.engine.worker_token(&direct.endpoint);
    let mut asked = 0;
    for (method, path, body) in ASKED {
        for key in [ADMIN, &token, "an-unknown-key"] {
            let by_fast_path = ask(&direct, key, method, &path.replace("{}", "demo"), body).await;
            // An escape in its path takes a request to the router.
            let by_router = ask(&direct, key, method, &path.replace("{}", "dem%6F"), body).await;
            assert_eq!(by_fast_path.status, by_router.status, "{method} {path} {key}");
            assert_eq!(shape(&by_fast_path.headers), shape(&by_router.headers), "{method} {path} {key}");
            asked += 2;
        }
    }
    let counts = counted(&direct).await;
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), asked);
    for (labels, count) in counts {
        assert_eq!(count % 2, 0, "{labels}: each way calls the route by the same name");
    }
}
