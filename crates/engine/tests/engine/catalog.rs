//! Endpoints, templates and JSON rows of the catalog.

use longshore_engine::{CatalogError, EndpointError, Engine};
use longshore_model::{Endpoint, RegistryAuth, Template};

use crate::harness::{Disks, accept, credentials, endpoint, eventually, job, one_endpoint, take, template};

#[tokio::test]
async fn names_are_unique_and_a_template_in_use_cannot_be_deleted() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let used = demo.record().template_id;
    let taken = engine.create_endpoint(endpoint(used, "demo")).await;
    assert!(matches!(taken, Err(CatalogError::Conflict(text)) if text.contains("demo")));
    let refused = engine.catalog().delete_template(&used, |_| true).await;
    assert!(matches!(refused, Err(CatalogError::Conflict(text)) if text.contains(demo.record().id.as_str())));
    let before = demo.record().version;
    engine
        .catalog()
        .update_template(&used, "key-1", accept(|template: &mut Template| template.readme = "x".to_owned()))
        .await
        .unwrap();
    assert_eq!(demo.record().version, before);
    engine
        .catalog()
        .update_template(
            &used,
            "key-1",
            accept(|template: &mut Template| template.image_name = "x".to_owned()),
        )
        .await
        .unwrap();
    assert_eq!(demo.record().version, before + 1);
    engine.catalog().create_template(template("other")).await.unwrap();
    let engine = disks.start().await;
    assert_eq!(engine.catalog().templates().len(), 2);
    assert_eq!(engine.endpoint("demo").unwrap().record().version, before + 1);
}

#[tokio::test]
async fn an_update_without_a_change_writes_nothing() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    let (before, used) = (demo.record(), demo.record().template_id);
    disks.store.set_broken(true);
    // Every commit fails, so an update that succeeds wrote nothing.
    let same = engine
        .update_endpoint("demo", "key-1", accept(|endpoint: &mut Endpoint| endpoint.workers_max += 0))
        .await
        .unwrap();
    assert_eq!(same, before);
    engine.catalog().update_template(&used, "key-1", accept(|_: &mut Template| ())).await.unwrap();
    let refused = engine
        .update_endpoint("demo", "key-1", accept(|endpoint: &mut Endpoint| endpoint.workers_max += 1))
        .await;
    assert!(matches!(refused, Err(CatalogError::Store(_))), "{refused:?}");
    assert_eq!(demo.record(), before);
}

#[tokio::test]
async fn a_deleted_endpoint_is_unknown_immediately_and_its_rows_are_removed() {
    let disks = Disks::new();
    let (engine, demo) = one_endpoint(&disks).await;
    for _ in 0..600 {
        demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    }
    let held = tokio::spawn({
        let demo = demo.clone();
        async move {
            take(&demo, "w1", 0).await;
        }
    });
    held.await.unwrap();
    engine.delete_endpoint("demo", false, |_| true).await.unwrap();
    assert!(engine.endpoint("demo").is_none());
    assert!(matches!(demo.jobs().submit(job(&engine, "{}")).await, Err(EndpointError::Deleted)));
    let no = demo.record().no;
    let rows = async || longshore_store::Store::jobs(disks.store.as_ref(), no, 0, 1).await.unwrap().len();
    eventually(async || rows().await == 0).await;
    let again = engine.create_endpoint(endpoint(demo.record().template_id, "demo")).await.unwrap();
    assert!(again.no > no, "numbers are never reused");
}

#[tokio::test]
async fn a_paused_endpoint_accepts_jobs_and_delivers_none() {
    let (engine, demo) = one_endpoint(&Disks::new()).await;
    engine
        .update_endpoint("demo", "key-1", accept(|endpoint: &mut Endpoint| endpoint.workers_max = 0))
        .await
        .unwrap();
    demo.jobs().submit(job(&engine, "{}")).await.unwrap();
    assert!(take(&demo, "w1", 0).await.is_empty());
    engine
        .update_endpoint("demo", "key-1", accept(|endpoint: &mut Endpoint| endpoint.workers_max = 1))
        .await
        .unwrap();
    assert_eq!(take(&demo, "w1", 60_000).await.len(), 1);
}

#[tokio::test]
async fn registry_credentials_are_there_after_a_restart_in_the_order_of_creation() {
    let disks = Disks::new();
    let engine = disks.start().await;
    let [first, second, third] =
        [(9, "first"), (5, "second"), (1, "third")].map(|(n, name)| credentials(n, name));
    for auth in [&first, &second, &third] {
        engine.catalog().create_registry_auth(auth.clone()).await.unwrap();
    }
    let rename = accept(|auth: &mut RegistryAuth| auth.name = "renamed".to_owned());
    engine.catalog().update_registry_auth(&first.id, rename).await.unwrap();
    engine.catalog().delete_registry_auth(&second.id, |_| true).await.unwrap();
    let again = engine.catalog().delete_registry_auth(&second.id, |_| true).await;
    assert!(matches!(again, Err(CatalogError::NotFound)));
    let names = |engine: &Engine| engine.catalog().registry_auths().into_iter().map(|auth| auth.name);
    assert_eq!(names(&engine).collect::<Vec<_>>(), ["renamed", "third"]);
    let engine = disks.start().await;
    assert_eq!(names(&engine).collect::<Vec<_>>(), ["renamed", "third"]);
    assert_eq!(engine.catalog().registry_auth(&third.id).unwrap().name, "third");
    assert_eq!(engine.catalog().registry_auth(&second.id), None);
}
