//! A connection's cached credential never gives more than the same credential on a new connection.

use longshore_model::{ApiKey, KeyScope, Millis};

use super::fixture::Fixture;
use crate::gate::auth::mint_key;

const RUN: &str = "POST /v2/demo/run";
const BODY: &[u8] = br#"{"input":{}}"#;

fn with(head: &str, credential: &str) -> String {
    format!("{head}\nauthorization: {credential}")
}

#[tokio::test]
async fn a_key_that_changes_does_so_at_once_for_those_who_are_connected() {
    let fixture = Fixture::start().await;
    let key = mint_key("k", vec![KeyScope::Jobs { endpoint_ids: Vec::new() }], Millis(1)).unwrap();
    let mut wire = fixture.server.connect().await;
    assert_eq!(wire.ask(&with(RUN, &key.text), BODY).await.status, 401);
    for (change, status) in [
        (ApiKey { name: "new".to_owned(), ..key.record.clone() }, 200),
        (ApiKey { disabled: true, ..key.record.clone() }, 401),
        (ApiKey { rate_limit: Some(100), ..key.record.clone() }, 200),
        (ApiKey { expires_at: Some(Millis(2)), ..key.record.clone() }, 401),
        (ApiKey { scopes: vec![KeyScope::Read { endpoint_ids: Vec::new() }], ..key.record.clone() }, 401),
        (key.record.clone(), 200),
    ] {
        fixture.engine.keys().put(change.clone()).await.unwrap();
        // The second request finds the key in the cache.
        for _ in 0..2 {
            assert_eq!(wire.ask(&with(RUN, &key.text), BODY).await.status, status, "{change:?}");
        }
    }
    // Another key with the same text replaces it.
    let other = ApiKey { id: "other".to_owned(), disabled: true, ..key.record.clone() };
    fixture.engine.keys().put(other).await.unwrap();
    assert_eq!(wire.ask(&with(RUN, &key.text), BODY).await.status, 401);
    fixture.engine.keys().put(key.record.clone()).await.unwrap();
    assert_eq!(wire.ask(&with(RUN, &key.text), BODY).await.status, 200);
    fixture.engine.keys().delete(&key.record.id, |_| true).await.unwrap();
    assert_eq!(wire.ask(&with(RUN, &key.text), BODY).await.status, 401);
}

#[tokio::test]
async fn of_those_who_share_a_connection_nobody_is_taken_for_another() {
    let fixture = Fixture::start().await;
    let key = mint_key("k", vec![KeyScope::Jobs { endpoint_ids: Vec::new() }], Millis(1)).unwrap();
    fixture.engine.keys().put(key.record).await.unwrap();
    let token = fixture.engine.worker_token(&fixture.endpoint.record().id);
    let mut wire = fixture.server.connect().await;
    let mut forged = key.text.clone();
    let last = if forged.ends_with('0') { "1" } else { "0" };
    forged.replace_range(forged.len() - 1.., last);
    let longer = format!("{}0", key.text);
    let ping = "GET /v2/demo/ping/w-1";
    for _ in 0..2 {
        for (head, credential, status) in [
            (RUN, key.text.as_str(), 200),
            (RUN, forged.as_str(), 401),
            (RUN, key.text.as_str(), 200),
            (RUN, longer.as_str(), 401),
            (RUN, token.as_str(), 401),
            (ping, token.as_str(), 200),
            (ping, token.as_str(), 200),
            (ping, key.text.as_str(), 401),
            ("GET /v2/other/ping/w-1", token.as_str(), 401),
        ] {
            assert_eq!(wire.ask(&with(head, credential), BODY).await.status, status, "{head} {credential}");
        }
    }
}
