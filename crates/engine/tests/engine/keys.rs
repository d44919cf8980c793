//! API keys: the last one that may manage, and the record of their use.

use longshore_engine::{CatalogError, ClientAddress};
use longshore_model::{ApiKey, EndpointId, KeyScope, Millis};

use crate::harness::{Disks, accept};

fn key(id: &str, scopes: Vec<KeyScope>) -> ApiKey {
    ApiKey::new(id.to_owned(), id.to_owned(), format!("hash of {id}"), scopes, Millis(1))
}

#[tokio::test]
async fn the_last_key_that_may_manage_cannot_be_removed() {
    let disks = Disks::new();
    let engine = disks.start().await;
    let one = KeyScope::Manage { endpoint_ids: vec![EndpointId::mint(1)] };
    for (id, scope) in
        [("first", KeyScope::manage_all()), ("second", KeyScope::manage_all()), ("of one endpoint", one)]
    {
        engine.keys().put(key(id, vec![scope])).await.unwrap();
    }
    let now = engine.now();
    let ends = |at: Millis| accept(move |key: &mut ApiKey| key.expires_at = Some(at));
    engine.keys().update("first", None, ends(now + 60_000)).await.unwrap();
    for refused in [
        engine.keys().update("second", None, ends(now + 30_000)).await.map(drop),
        engine.keys().update("second", None, accept(|key: &mut ApiKey| key.disabled = true)).await.map(drop),
        engine.keys().update("second", None, accept(|key: &mut ApiKey| key.scopes.clear())).await.map(drop),
        engine.keys().delete("second", |_| true).await,
    ] {
        assert!(
            matches!(&refused, Err(CatalogError::Conflict(text)) if text.contains("never expires")),
            "{refused:?}"
        );
    }
    engine.keys().delete("first", |_| true).await.unwrap();
    let refused = engine.keys().delete("second", |_| true).await;
    assert!(
        matches!(&refused, Err(CatalogError::Conflict(text)) if text.contains("is the last one")),
        "{refused:?}"
    );
    engine.keys().delete("of one endpoint", |_| true).await.unwrap();
    assert!(matches!(engine.keys().delete("first", |_| true).await, Err(CatalogError::NotFound)));
    assert_eq!(disks.start().await.keys().list().len(), 1);
}

#[tokio::test]
async fn the_use_of_keys_is_written() {
    let disks = Disks::new();
    let engine = disks.start().await;
    for id in ["used", "idle"] {
        engine.keys().put(key(id, vec![])).await.unwrap();
    }
    let client = ClientAddress::new([10, 0, 0, 7].into(), 7);
    assert!(engine.keys().get("used").unwrap().touch(Some(&client)));
    engine.keys().note_use().await.unwrap();
    // A change of the key keeps the use that is not written yet.
    engine.keys().get("used").unwrap().touch(None);
    engine
        .keys()
        .update("used", None, accept(|key: &mut ApiKey| key.name = "renamed".to_owned()))
        .await
        .unwrap();
    engine.keys().note_use().await.unwrap();

    let engine = disks.start().await;
    let [used, idle] = ["used", "idle"].map(|id| engine.keys().get(id).unwrap());
    assert_eq!((used.name.as_str(), used.addresses.len()), ("renamed", 1));
    assert!(used.last_used_at.is_some() && idle.last_used_at.is_none());
    assert!(!used.touch(Some(&client)), "the address is known");
}
