//! The list of an endpoint's versions, and the return to one of them.

use std::sync::Arc;

use longshore_model::{Durability, JsonRowKind, KeyScope, ShardId};
use longshore_store::{Batch, JsonRow, MemoryStore, Store as _, Write};
use serde_json::{Value, json};

use super::direct::{Direct, Reply, request};
use crate::mint_key;

async fn make(server: &Direct, path: &str, body: &str) -> String {
    let made = server.ask("POST", path, body).await;
    assert_eq!(made.status, 200, "{made:?}");
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn change(server: &Direct, path: &str, body: &Value) {
    let changed = server.ask("PATCH", path, &body.to_string()).await;
    assert_eq!(changed.status, 200, "{changed:?}");
}

async fn deploy(server: &Direct, body: &Value) {
    let deployed = server.ask("POST", "/v1/endpoints/demo/deploy", &body.to_string()).await;
    assert_eq!(deployed.status, 200, "{deployed:?}");
}

async fn restore(server: &Direct, version: &str) -> Reply {
    server.ask("POST", &format!("/v1/endpoints/demo/versions/{version}/restore"), "").await
}

/// The list, each entry as version, key, code and changed fields.
async fn list(server: &Direct) -> Value {
    let entries = server.ask("GET", "/v1/endpoints/demo/versions", "").await.json();
    let short = |entry: &Value| {
        assert!(entry["at"].as_str().unwrap().ends_with('Z'));
        let fields = entry["fields"].as_array().unwrap().iter();
        let fields: Vec<Value> =
            fields.map(|field| json!([field["name"], field["from"], field["to"]])).collect();
        let code = entry["codeHash"].as_str().map(|hash| &hash[..4]);
        json!([entry["version"], entry["by"], code, fields])
    };
    entries.as_array().unwrap().iter().map(short).collect()
}

fn code(digit: &str) -> Value {
    json!(format!("code:{}", digit.repeat(64)))
}

#[tokio::test(start_paused = true)]
async fn versions_are_listed_and_come_back_also_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let server = Direct::start_on(Arc::clone(&store)).await;
    assert_eq!(list(&server).await, json!([[1, "admin", null, []]]));
    deploy(&server, &json!({ "template": { "workdir": code("1"), "env": { "A": "hush" } } })).await;
    deploy(&server, &json!({ "endpoint": { "workersMax": 5, "webhook": "http://127.0.0.1:9/" } })).await;
    deploy(&server, &json!({ "template": { "workdir": code("2"), "env": { "B": "hush" } } })).await;
    let before = list(&server).await;
    let newest = json!([
        3,
        "admin",
        "2222",
        [["workdir", code("1"), code("2")], ["env.A", "changed", null], ["env.B", null, "changed"]],
    ]);
    assert_eq!(before[0], newest);
    let own = json!([["webhook", null, "http://127.0.0.1:9/"], ["workersMax", 3, 5]]);
    assert_eq!(before[1], json!([2, "admin", "1111", own]));
    assert_eq!((&before[2][0], &before[3]), (&json!(2), &json!([1, "admin", null, []])));
    assert!(!before.to_string().contains("hush"));

    let server = Direct::again_on(store).await;
    assert_eq!(list(&server).await, before);
    let text = |reply: &Reply| String::from_utf8_lossy(&reply.body).into_owned();
    let first = restore(&server, "1").await;
    assert_eq!(first.status, 200, "{}", text(&first));
    assert_eq!((&first.json()["version"], &first.json()["workersMax"]), (&json!(4), &json!(3)));
    let template = server.ask("GET", "/v1/endpoints/demo?includeTemplate=true", "").await.json();
    assert_eq!(template["template"]["workdir"], Value::Null);
    assert_eq!((&template["env"], &template["deployedEnv"]), (&json!({ "TOKEN": "***" }), &json!([])));
    let second = restore(&server, "2").await.json();
    assert_eq!((&second["version"], &second["workersMax"]), (&json!(5), &json!(5)), "as it last stood");
    assert_eq!((&second["deployedEnv"], &second["webhook"]), (&json!(["A"]), &json!("http://127.0.0.1:9/")));
    assert_eq!(restore(&server, "5").await.json()["version"], 5, "nothing differs");
    for missing in ["0", "6", "-1", "x", "4294967296"] {
        let reply = restore(&server, missing).await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (404, "version_not_found"), "{missing}");
    }
}

/// Changes the stored rows of versions, as if an earlier version of the server had written them.
async fn rewrite_versions(store: &MemoryStore, from: &str, to: &str) {
    let rows = store.catalog().await.unwrap().json_rows.into_iter();
    let rewritten = |row: JsonRow| {
        let json = String::from_utf8(row.json.to_vec()).unwrap();
        json.contains(from).then(|| Write::PutJsonRow(row.kind, row.id, json.replace(from, to).into()))
    };
    let writes: Vec<_> =
        rows.filter(|row| row.kind == JsonRowKind::EndpointVersion).filter_map(rewritten).collect();
    assert!(!writes.is_empty(), "no version has {from}");
    let epoch = store.claim_shards(vec![ShardId::CATALOG]).await.unwrap()[0];
    let batch = Batch { durability: Durability::Synced, writes, chain: None };
    store.commit(ShardId::CATALOG, epoch, batch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_version_of_an_earlier_server_comes_back_within_the_limits_of_today() {
    let store = Arc::new(MemoryStore::new());
    let server = Direct::start_on(Arc::clone(&store)).await;
    deploy(&server, &json!({ "template": { "env": { "A": "hush" } } })).await;
    deploy(&server, &json!({ "template": { "env": {} }, "endpoint": { "startPatienceMs": 700_000 } })).await;
    server.engine.close().await;
    rewrite_versions(&store, "\"startPatienceMs\":600000", "\"startPatienceMs\":500").await;
    rewrite_versions(&store, "\"A\":\"hush\"", "\"1A\":\"hush\"").await;
    let server = Direct::again_on(store).await;
    let back = restore(&server, "2").await;
    assert_eq!(back.status, 200, "{back:?}");
    let shown = server.ask("GET", "/v1/endpoints/demo?includeTemplate=true", "").await.json();
    assert_eq!(shown["startPatienceMs"], 10_000, "a shorter time would end every worker");
    // The name was taken once, so that it stays until a change sends another value for it.
    assert_eq!(shown["env"]["1A"], "***");
    let template = format!("/v1/templates/{}", shown["templateId"].as_str().unwrap());
    change(&server, &template, &json!({ "env": { "1A": "***", "B": "2" } })).await;
    let refused = server.ask("PATCH", &template, r#"{"env":{"1A":"3"}}"#).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (400, "bad_field"));
    change(&server, "/v1/endpoints/demo", &json!({ "workersMax": 4 })).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_version_names_must_still_exist() {
    let server = Direct::start().await;
    make(&server, "/v1/networkvolumes", r#"{"name":"v","size":1}"#).await;
    let volume = make(&server, "/v1/networkvolumes", r#"{"name":"v","size":1}"#).await;
    let auth =
        make(&server, "/v1/containerregistryauth", r#"{"name":"a","username":"u","password":"p"}"#).await;
    deploy(&server, &json!({ "endpoint": { "networkVolumeId": volume } })).await;
    deploy(&server, &json!({ "endpoint": { "networkVolumeId": null } })).await;
    deploy(&server, &json!({ "template": { "imageName": "a", "containerRegistryAuthId": auth } })).await;
    deploy(&server, &json!({ "template": { "imageName": "b", "containerRegistryAuthId": null } })).await;
    for path in [format!("/v1/networkvolumes/{volume}"), format!("/v1/containerregistryauth/{auth}")] {
        assert_eq!(server.ask("DELETE", &path, "").await.status, 204);
    }
    let before = server.content().await;
    for (version, named) in [("2", "network volume"), ("4", "container registry auth")] {
        let reply = restore(&server, version).await;
        assert_eq!((reply.status.as_u16(), reply.code().as_str()), (400, "conflict"), "{reply:?}");
        assert!(String::from_utf8_lossy(&reply.body).contains(named), "{reply:?}");
    }
    assert_eq!(server.content().await, before);
    assert_eq!(restore(&server, "3").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_limited_key_brings_back_only_what_it_may_name() {
    let server = Direct::start().await;
    let volume = make(&server, "/v1/networkvolumes", r#"{"name":"v","size":1}"#).await;
    let foreign =
        make(&server, "/v1/templates", r#"{"name":"foreign","imageName":"i","readme":"secret"}"#).await;
    deploy(&server, &json!({ "endpoint": { "networkVolumeId": volume } })).await;
    change(&server, "/v1/endpoints/demo", &json!({ "templateId": foreign, "networkVolumeId": null })).await;
    deploy(&server, &json!({ "template": { "imageName": "other" } })).await;
    // From now on the template is another endpoint's.
    change(&server, "/v1/endpoints/other", &json!({ "templateId": foreign })).await;
    let own = make(&server, "/v1/templates", r#"{"name":"own","imageName":"own"}"#).await;
    change(&server, "/v1/endpoints/demo", &json!({ "templateId": own })).await;
    change(&server, &format!("/v1/templates/{foreign}"), &json!({ "readme": "hush" })).await;

    let scopes = vec![KeyScope::Manage { endpoint_ids: vec![server.endpoint] }];
    let key = mint_key("deploys", scopes, longshore_model::Millis(0)).unwrap();
    server.engine.keys().put(key.record.clone()).await.unwrap();
    let restore = async |endpoint: &str, version: u32| {
        let path = format!("/v1/endpoints/{endpoint}/versions/{version}/restore");
        server.send(request("POST", &path, Some(&key.text), "")).await
    };
    assert_eq!(restore("other", 1).await.status, 401);
    assert_eq!(restore("demo", 2).await.status, 401, "its endpoint has given the volume up");
    let back = restore("demo", 4).await;
    assert_eq!(back.status, 200, "{back:?}");
    let shown = server.ask("GET", "/v1/endpoints/demo?includeTemplate=true", "").await.json();
    assert_eq!(shown["template"]["imageName"], "other");
    assert!(shown["templateId"] != foreign && shown["templateId"] != own, "{shown}");
    assert_ne!(shown["template"]["readme"], "hush", "nothing of the other template");
    let entries = list(&server).await;
    assert_eq!(entries[0][1], key.record.id);
    let other = server.ask("GET", &format!("/v1/templates/{own}"), "").await.json();
    assert_eq!(other["imageName"], "own");
}

#[tokio::test(start_paused = true)]
async fn a_new_value_of_a_secret_is_an_entry_and_a_missing_secret_refuses_the_return() {
    let server = Direct::start().await;
    let name: longshore_model::SecretName = "TOKEN_A".parse().unwrap();
    let secret = longshore_model::Secret {
        name: name.clone(),
        value: "hush 1".to_owned(),
        endpoints: longshore_model::SharedWith::default(),
        created_at: longshore_model::Millis(0),
        updated_at: longshore_model::Millis(0),
    };
    let catalog = server.engine.catalog();
    catalog.create_secret(secret).await.unwrap();
    deploy(&server, &json!({ "template": { "env": { "A": { "secret": "TOKEN_A" } } } })).await;
    let change = |secret: &mut longshore_model::Secret| {
        secret.value = "hush 2".to_owned();
        Ok::<_, longshore_engine::CatalogError>(())
    };
    catalog.update_secret(&name, "key-1", change).await.unwrap();
    let entries = list(&server).await;
    assert_eq!(entries[0], json!([3, "key-1", null, [["env.A", "changed", "changed"]]]));
    deploy(&server, &json!({ "template": { "env": {} } })).await;
    let back = restore(&server, "2").await;
    assert_eq!(back.status, 200, "{back:?}");
    let record = server.engine.endpoint("demo").unwrap().record();
    let template = catalog.template(&record.template_id).unwrap();
    assert_eq!(template.env["A"].secret_name(), Some(&name), "the reference, not a value");
    deploy(&server, &json!({ "template": { "env": {} } })).await;
    catalog.delete_secret(&name, |_| true).await.unwrap();
    let refused = restore(&server, "2").await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.body).contains("TOKEN_A"), "{refused:?}");
}
