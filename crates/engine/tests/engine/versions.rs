//! Versions of endpoints: what a change records, what a return brings back, and how long versions are kept.

use std::sync::Arc;

use longshore_engine::{CatalogError, EndpointVersion, Engine, NewVersion, VERSIONS_MAX, VersionEntry};
use longshore_model::{Durability, Endpoint, JsonRowKind, ShardId, Template};
use longshore_store::{Batch, Store as _, Write};
use serde_json::json;

use crate::harness::{Disks, accept, endpoint, eventually, one_endpoint, template};

fn versions(engine: &Engine) -> Vec<Arc<EndpointVersion>> {
    engine.catalog().versions(&engine.endpoint("demo").unwrap().record())
}

fn numbers(engine: &Engine) -> Vec<u32> {
    versions(engine).iter().map(|version| version.version).collect()
}

async fn set_workers(engine: &Engine, workers_max: u32) {
    let change = accept(move |endpoint: &mut Endpoint| endpoint.workers_max = workers_max);
    engine.update_endpoint("demo", "key-2", change).await.unwrap();
}

async fn set_image(engine: &Engine, image: &str) {
    let used = engine.endpoint("demo").unwrap().record().template_id;
    let change = accept(|template: &mut Template| image.clone_into(&mut template.image_name));
    engine.catalog().update_template(&used, "key-3", change).await.unwrap();
}

/// Brings a version back as the management API does.
async fn restore(engine: &Engine, number: u32) -> bool {
    let present = engine.endpoint("demo").unwrap().record();
    let content = engine.catalog().version(&present, number).unwrap().content.clone().unwrap();
    let change = |endpoint: &mut Endpoint, template: &mut Template| {
        let base = engine.catalog().template(&content.template.id);
        *template = content.program_on(base.map_or_else(|| content.template.clone(), Arc::unwrap_or_clone));
        endpoint.workers_max = content.endpoint.workers_max;
        Ok::<_, CatalogError>(())
    };
    engine.deploy("demo", "key-4", NewVersion::IfChanged, change).await.unwrap().is_changed
}

/// The rows of versions in the store.
async fn stored(disks: &Disks) -> Vec<String> {
    let rows = disks.store.catalog().await.unwrap().json_rows;
    rows.into_iter().filter(|row| row.kind == JsonRowKind::EndpointVersion).map(|row| row.id).collect()
}

/// Deletes the rows of versions.
async fn forget_rows(disks: &Disks) {
    let epoch = disks.store.claim_shards(vec![ShardId::CATALOG]).await.unwrap()[0];
    let rows = stored(disks).await;
    let writes = rows.into_iter().map(|id| Write::DeleteJsonRow(JsonRowKind::EndpointVersion, id)).collect();
    let batch = Batch { durability: Durability::Synced, writes, chain: None };
    disks.store.commit(ShardId::CATALOG, epoch, batch).await.unwrap();
}

#[tokio::test]
async fn a_change_that_workers_see_is_a_version_and_any_other_an_entry_of_it() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    set_workers(&engine, 5).await;
    set_image(&engine, "new").await;
    set_workers(&engine, 6).await;
    assert_eq!(demo.record().version, 2);
    for engine in [engine, disks.start().await] {
        let [second, first] = &versions(&engine)[..] else { panic!("two versions") };
        let shown = |entry: &VersionEntry| {
            let fields = entry.fields.iter();
            let fields: Vec<_> = fields.map(|field| json!([field.name, field.from, field.to])).collect();
            json!([entry.by, fields])
        };
        let entries = |version: &EndpointVersion| version.entries.iter().map(shown).collect::<Vec<_>>();
        assert_eq!((first.version, second.version), (1, 2));
        assert_eq!(entries(first), [json!(["", []]), json!(["key-2", [["workersMax", 3, 5]]])]);
        let image = json!(["key-3", [["imageName", "none", "new"]]]);
        assert_eq!(entries(second), [image, json!(["key-2", [["workersMax", 5, 6]]])]);
        let stood = |version: &EndpointVersion| version.content.clone().unwrap().endpoint.workers_max;
        assert_eq!((stood(first), stood(second)), (5, 6), "as each version last stood");
    }
}

#[tokio::test]
async fn a_return_brings_program_and_fields_back_as_a_new_version() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    set_image(&engine, "new").await;
    set_workers(&engine, 6).await;
    assert!(restore(&engine, 1).await);
    let template = engine.catalog().template(&demo.record().template_id).unwrap();
    assert_eq!((demo.record().version, demo.record().workers_max), (3, 3));
    assert_eq!(template.image_name, "none");
    assert_eq!(engine.catalog().templates().len(), 1, "the endpoint's own template is changed");
    assert!(!restore(&engine, 3).await, "nothing differs");
    assert_eq!(numbers(&engine), [3, 2, 1]);
    let engine = disks.start().await;
    assert!(restore(&engine, 2).await);
    let present = engine.endpoint("demo").unwrap().record();
    assert_eq!((present.version, present.workers_max), (4, 6));
}

#[tokio::test]
async fn a_return_changes_no_template_of_another_endpoint() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let shared = demo.record().template_id;
    engine.create_endpoint(endpoint(shared, "other")).await.unwrap();
    set_image(&engine, "new").await;
    assert!(restore(&engine, 1).await);
    let own = demo.record().template_id;
    assert_ne!(own, shared);
    assert_eq!(engine.catalog().template(&shared).unwrap().image_name, "new");
    assert_eq!(engine.catalog().template(&own).unwrap().image_name, "none");
    assert_eq!(engine.endpoint("other").unwrap().record().version, 2);
    // Version 2 used the shared template, which still has its program.
    assert!(restore(&engine, 2).await);
    assert_eq!((demo.record().template_id, demo.record().version), (shared, 4));
    // A second return uses the template that the first one made.
    assert!(restore(&engine, 1).await);
    assert_eq!(demo.record().template_id, own);
    assert_eq!(engine.catalog().templates().len(), 2);
}

#[tokio::test]
async fn a_deleted_template_comes_back_with_its_version() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let first = demo.record().template_id;
    let other = engine.catalog().create_template(template("other")).await.unwrap();
    let change = accept(|endpoint: &mut Endpoint| endpoint.template_id = other.id);
    engine.update_endpoint("demo", "key-2", change).await.unwrap();
    engine.catalog().delete_template(&first, |_| true).await.unwrap();
    assert!(restore(&engine, 1).await);
    assert_eq!(demo.record().template_id, first);
    assert_eq!(engine.catalog().template(&first).unwrap().name, "t");
    assert_eq!(*engine.catalog().template(&other.id).unwrap(), *other, "no other template changed");
}

#[tokio::test]
async fn fifty_versions_are_kept_and_go_with_the_endpoint() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    for number in 0..VERSIONS_MAX + 9 {
        set_image(&engine, &number.to_string()).await;
    }
    let newest = demo.record().version;
    assert_eq!(newest, VERSIONS_MAX + 10);
    let kept: Vec<u32> = (newest - VERSIONS_MAX + 1..=newest).rev().collect();
    assert_eq!(numbers(&engine), kept);
    assert_eq!(stored(&disks).await.len(), kept.len());
    let engine = disks.start().await;
    assert_eq!(numbers(&engine), kept);
    for number in 0..100 {
        set_workers(&engine, number).await;
    }
    let present = &versions(&engine)[0];
    assert_eq!(present.entries.len(), 50);
    assert_eq!(present.entries[0].fields[0].name, "imageName", "how the version began");
    assert_eq!(present.entries[49].fields[0].to, json!(99));
    engine.delete_endpoint("demo", false, |_| true).await.unwrap();
    eventually(async || stored(&disks).await.is_empty()).await;
    assert!(disks.start().await.endpoints().is_empty());
}

#[tokio::test]
async fn an_endpoint_without_rows_of_versions_has_its_present_one_from_the_first_change_on() {
    let disks = Disks::new();
    let (engine, _) = one_endpoint(&disks).await;
    set_image(&engine, "new").await;
    // As an earlier version of the program stored it.
    forget_rows(&disks).await;
    let engine = disks.start().await;
    assert_eq!(numbers(&engine), [2]);
    assert!(stored(&disks).await.is_empty(), "reading writes nothing");
    set_image(&engine, "newer").await;
    assert_eq!(numbers(&engine), [3, 2]);
    let engine = disks.start().await;
    assert!(restore(&engine, 2).await);
    assert_eq!(engine.catalog().templates()[0].image_name, "new");
}

#[tokio::test]
async fn a_change_that_is_not_stored_records_no_version() {
    let disks = Disks::new();
    let (engine, _) = one_endpoint(&disks).await;
    let before = versions(&engine);
    disks.store.set_broken(true);
    let change = accept(|endpoint: &mut Endpoint| endpoint.workers_max = 9);
    engine.update_endpoint("demo", "key-2", change).await.unwrap_err();
    assert!(versions(&engine) == before);
}

#[tokio::test]
async fn values_of_variables_are_in_no_entry_and_large_records_are_not_kept() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let used = demo.record().template_id;
    let set = async |name: &str, value: Option<String>| {
        let change = accept(|template: &mut Template| match value {
            Some(value) => _ = template.env.insert(name.to_owned(), value.into()),
            None => _ = template.env.remove(name),
        });
        engine.catalog().update_template(&used, "key-2", change).await.unwrap();
    };
    set("TOKEN", Some("hush".to_owned())).await;
    set("TOKEN", Some("hush hush".to_owned())).await;
    set("TOKEN", None).await;
    let entries: Vec<_> = versions(&engine).iter().rev().map(|version| version.entries[0].clone()).collect();
    assert!(!serde_json::to_string(&entries).unwrap().contains("hush"));
    let fields: Vec<_> = entries[1..].iter().map(|entry| &entry.fields[0]).collect();
    assert!(fields.iter().all(|field| field.name == "env.TOKEN"));
    let values: Vec<_> = fields.iter().map(|field| json!([field.from, field.to])).collect();
    assert_eq!(values, [json!([null, "changed"]), json!(["changed", "changed"]), json!(["changed", null])]);
    set("LARGE", Some("x".repeat(300_000))).await;
    assert!(versions(&engine)[0].content.is_none());
    assert_eq!(numbers(&engine).len(), 5);
}
