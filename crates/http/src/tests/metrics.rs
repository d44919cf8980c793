//! `/metrics`: the metrics that each kind of key gets.

use longshore_model::{KeyScope, Millis};

use super::direct::{ADMIN, Direct, Reply, request};
use crate::{HttpSettings, HttpState, mint_key, router};

/// The clock of the tests stands still.
const TAKEN_AT: &str = "longshore_metrics_time_seconds 1700000000";

async fn key(direct: &Direct, scopes: Vec<KeyScope>) -> String {
    let minted = mint_key("a test's", scopes, Millis(0)).unwrap();
    direct.engine.keys().put(minted.record).await.unwrap();
    minted.text
}

async fn page(direct: &Direct, key: &str) -> String {
    let reply = direct.send(request("GET", "/metrics", Some(key), "")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    String::from_utf8(reply.body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_limited_key_sees_the_numbers_of_its_endpoints_alone() {
    let direct = Direct::start().await;
    let (here, other) = (direct.endpoint.to_string(), direct.other.to_string());
    let whole = page(&direct, ADMIN).await;
    assert!(whole.contains(&here) && whole.contains(&other) && whole.contains("process_open_fds"));
    for scope in [
        KeyScope::Read { endpoint_ids: vec![direct.endpoint] },
        KeyScope::Manage { endpoint_ids: vec![direct.endpoint] },
    ] {
        let seen = page(&direct, &key(&direct, vec![scope]).await).await;
        let is_mine = |line: &&str| {
            let about_all = [
                "longshore_build",
                "longshore_bytes",
                "longshore_commit",
                "longshore_event",
                "longshore_gpus",
                "longshore_http",
                "longshore_invariants",
                "longshore_owner",
                "longshore_spans",
                "longshore_webhook_deliveries",
                "process_",
            ];
            let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
            !line.contains(&other) && !about_all.iter().any(|prefix| name.starts_with(prefix))
        };
        let expected: Vec<&str> = whole.lines().filter(is_mine).collect();
        assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
        assert!(seen.contains(&format!("longshore_jobs{{endpoint=\"{here}\",state=\"queued\"}} 0")));
    }
    // A key that may read all endpoints gets all metrics. A key whose endpoint was deleted gets none.
    assert_eq!(
        page(&direct, &key(&direct, vec![KeyScope::Read { endpoint_ids: vec![] }]).await).await,
        whole
    );
    direct.ask("DELETE", "/v1/endpoints/other", "").await;
    let gone = key(&direct, vec![KeyScope::Read { endpoint_ids: vec![direct.other] }]).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert!(page(&direct, &gone).await.lines().all(|line| line.starts_with('#') || line == TAKEN_AT));
}

#[tokio::test(start_paused = true)]
async fn a_page_is_the_same_for_a_second() {
    let direct = Direct::start().await;
    let first = page(&direct, ADMIN).await;
    direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await;
    assert_eq!(page(&direct, ADMIN).await, first);
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let later = page(&direct, ADMIN).await;
    assert!(later.contains(&format!("{{endpoint=\"{}\",state=\"queued\"}} 1", direct.endpoint)), "{later}");
}

#[tokio::test(start_paused = true)]
async fn a_public_page_takes_no_key() {
    let direct = Direct::start().await;
    let ask = async |direct: &Direct| -> Reply { direct.send(request("GET", "/metrics", None, "")).await };
    assert_eq!(ask(&direct).await.status, 401);
    let settings = HttpSettings { metrics_public: true, ..HttpSettings::default() };
    let edge = router(HttpState::new(direct.engine.clone(), &settings));
    let public = Direct { edge, ..direct };
    let reply = ask(&public).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(String::from_utf8_lossy(&reply.body).contains(public.other.as_str()));
}

#[tokio::test(start_paused = true)]
async fn open_metrics_are_for_those_who_ask_for_them() {
    let direct = Direct::start().await;
    let mut asked = request("GET", "/metrics", Some(ADMIN), "");
    asked.headers_mut().insert("accept", "application/openmetrics-text; version=1.0.0".parse().unwrap());
    let reply = direct.send(asked).await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((reply.header("content-type"), reply.header("vary")), (Some(kind), Some("accept")));
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    assert!(text.contains("# TYPE longshore_jobs_submitted counter"));
    // The other format has a page of its own.
    assert!(!page(&direct, ADMIN).await.contains("# EOF"));
    let counters = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"));
    for counter in counters {
        let sample = format!("{counter}_total");
        let is_of = |line: &str| line.starts_with(counter) && !line.starts_with(&sample);
        assert!(!text.lines().any(is_of), "a counter's samples end in _total: {counter}");
    }
}

/// The most series that one endpoint has, without its GPUs.
const SERIES_MAX: usize = 120;

#[tokio::test(start_paused = true)]
async fn an_endpoint_has_a_bounded_number_of_series_with_one_head_each() {
    let direct = Direct::start().await;
    direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await;
    let text = page(&direct, ADMIN).await;
    let mine = text.lines().filter(|line| line.contains(direct.endpoint.as_str())).count();
    assert!(mine <= SERIES_MAX, "{mine} series");
    let mut heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let families = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert_eq!(heads.len(), families, "a family has two heads");
    assert!(!text.contains("IN_QUEUE"), "labels are in lower case");
}

#[tokio::test]
async fn a_problem_of_an_endpoint_is_a_metric() {
    let direct = Direct::start().await;
    direct.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await;
    let text = page(&direct, ADMIN).await;
    let id = &direct.endpoint;
    let series =
        format!("longshore_attention{{endpoint=\"{id}\",code=\"no_external_worker\",severity=\"bad\"}} 1");
    assert!(text.lines().any(|line| line == series), "{text}");
    assert!(text.contains(&format!("longshore_endpoint_paused{{endpoint=\"{id}\"}} 0")), "{text}");
}
