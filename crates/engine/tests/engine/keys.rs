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
        engine.put_key(key(id, vec![scope])).await.unwrap();
    }
    let now = engine.now();
    let ends = |at: Millis| accept(move |key: &mut ApiKey| key.expires_at = Some(at));
    engine.update_key("first", None, ends(now + 60_000)).await.unwrap();
    for refused in [
        engine.update_key("second", None, ends(now + 30_000)).await.map(drop),
        engine.update_key("second", None, accept(|key: &mut ApiKey| key.disabled = true)).await.map(drop),
        engine.update_key("second", None, accept(|key: &mut ApiKey| key.scopes.clear())).await.map(drop),
        engine.delete_key("second").await,
    ] {
        assert!(
            matches!(&refused, Err(CatalogError::Conflict(text)) if text.contains("never expires")),
            "{refused:?}"
        );
    }
    engine.delete_key("first").await.unwrap();
    let refused = engine.delete_key("second").await;
    assert!(
        matches!(&refused, Err(CatalogError::Conflict(text)) if text.contains("is the last one")),
        "{refused:?}"
    );
    engine.delete_key("of one endpoint").await.unwrap();
    assert!(matches!(engine.delete_key("first").await, Err(CatalogError::NotFound)));
    assert_eq!(disks.start().await.keys().len(), 1);
}

#[tokio::test]
async fn the_use_of_keys_is_written() {
    let disks = Disks::new();
    let engine = disks.start().await;
    for id in ["used", "idle"] {
        engine.put_key(key(id, vec![])).await.unwrap();
    }
    let client = ClientAddress::new([10, 0, 0, 7].into(), 7);
    assert!(engine.key("used").unwrap().touch(Some(&client)));
    engine.note_key_use().await.unwrap();
    // A change of the key keeps the use that is not written yet.
    engine.key("used").unwrap().touch(None);
    engine
        .update_key("used", None, accept(|key: &mut ApiKey| key.name = "renamed".to_owned()))
        .await
        .unwrap();
    engine.note_key_use().await.unwrap();

    let engine = disks.start().await;
    let [used, idle] = ["used", "idle"].map(|id| engine.key(id).unwrap());
    assert_eq!((used.name.as_str(), used.addresses.len()), ("renamed", 1));
    assert!(used.last_used_at.is_some() && idle.last_used_at.is_none());
    assert!(!used.touch(Some(&client)), "the address is known");
}
