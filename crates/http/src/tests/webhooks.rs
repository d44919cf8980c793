//! The webhook calls of all endpoints, page by page.

use std::time::Duration;

use longshore_model::{KeyScope, Millis};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::direct::{Direct, request};
use super::wire::DEADLINE;
use crate::mint_key;

/// Ends jobs of an endpoint, each with a call of a receiver that is not there.
async fn end_jobs(server: &Direct, endpoint: &str, number: usize) {
    for _ in 0..number {
        let body = r#"{"input":{},"webhook":"http://127.0.0.1:9/"}"#;
        assert_eq!(server.ask("POST", &format!("/v2/{endpoint}/run"), body).await.status, 200);
    }
    assert_eq!(server.ask("POST", &format!("/v2/{endpoint}/purge-queue"), "").await.status, 200);
}

async fn until_given_up(server: &Direct, number: u64) {
    let given_up = async {
        while server.ask("GET", "/v1/webhooks?state=FAILED", "").await.json()["of"] != number {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(DEADLINE * 100, given_up).await.unwrap();
}

fn ids(page: &Value) -> Vec<String> {
    let calls = page["webhooks"].as_array().unwrap();
    calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_all_endpoints_come_in_pages() {
    let server = Direct::start().await;
    end_jobs(&server, "demo", 4).await;
    end_jobs(&server, "other", 3).await;
    until_given_up(&server, 7).await;
    let all = server.ask("GET", "/v1/webhooks", "").await.json();
    assert!(all["cursor"].is_null(), "{all}");
    // The clock stands still: the order is that of the ids.
    let (mut seen, mut cursor, mut given_up) = (Vec::new(), Some(String::new()), 7);
    while let Some(from) = cursor {
        let page = server.ask("GET", &format!("/v1/webhooks?limit=3&cursor={from}"), "").await.json();
        assert_eq!(page["of"], given_up, "{page}");
        seen.extend(ids(&page));
        cursor = page["cursor"].as_str().map(str::to_owned);
        assert!(ids(&page).len() == 3 || cursor.is_none(), "{page}");
        // What comes meanwhile moves no call to another page.
        end_jobs(&server, "demo", 1).await;
        given_up += 1;
        until_given_up(&server, given_up).await;
    }
    seen.retain(|id| ids(&all).contains(id));
    assert_eq!(seen, ids(&all));
}

#[tokio::test(start_paused = true)]
async fn pages_have_the_calls_that_the_key_may_read() {
    let server = Direct::start().await;
    end_jobs(&server, "demo", 3).await;
    end_jobs(&server, "other", 3).await;
    until_given_up(&server, 6).await;
    let minted = mint_key("k", vec![KeyScope::Jobs { endpoint_ids: vec![server.other] }], Millis(0)).unwrap();
    server.engine.keys().put(minted.record.clone()).await.unwrap();
    let key = format!("Bearer {}", minted.text);
    let (mut seen, mut cursor) = (0, Some(String::new()));
    while let Some(from) = cursor {
        let path = format!("/v1/webhooks?limit=2&cursor={from}");
        let page = server.send(request("GET", &path, Some(&key), String::new())).await.json();
        for call in page["webhooks"].as_array().unwrap() {
            assert_eq!(call["endpoint"], server.other.as_str());
            seen += 1;
        }
        cursor = page["cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, 3);
}

#[tokio::test(start_paused = true)]
async fn the_cursor_of_a_page_is_checked() {
    let server = Direct::start().await;
    end_jobs(&server, "demo", 2).await;
    until_given_up(&server, 2).await;
    let page = server.ask("GET", "/v1/webhooks?limit=1", "").await.json();
    let cursor = page["cursor"].as_str().unwrap();
    for path in ["/v1/webhooks", "/v2/demo/webhooks"] {
        for wrong in ["x", "7", "7.x", &cursor[..cursor.len() - 1]] {
            let refused = server.ask("GET", &format!("{path}?cursor={wrong}"), "").await;
            assert_eq!(
                (refused.status.as_u16(), refused.code().as_str()),
                (400, "bad_parameter"),
                "{path} {wrong}"
            );
        }
        let rest = server.ask("GET", &format!("{path}?cursor={cursor}"), "").await.json();
        assert_eq!(ids(&rest).len(), 1, "the cursors of both lists have the same form");
    }
}
