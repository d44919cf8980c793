//! What is not a job.

use longshore_model::{Counters, EndpointNo, JsonRowKind, Millis, TemplateId};
use longshore_store::{JsonRow, Store, Write};

use crate::rows::{api_key, claim, commit, endpoint, template};

pub async fn an_empty_store_has_an_empty_catalog(store: &impl Store) {
    let catalog = store.catalog().await.unwrap();
    assert!(catalog.endpoints.is_empty() && catalog.templates.is_empty() && catalog.keys.is_empty());
    assert!(catalog.settings.is_empty() && catalog.json_rows.is_empty());
    assert_eq!(catalog.last_endpoint_no, 0);
    assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), Counters::default());
}

pub async fn records_survive_in_the_order_of_creation(store: &impl Store) {
    let epoch = claim(store).await;
    let writes = vec![
        Write::PutEndpoint(Box::new(endpoint(1))),
        Write::PutEndpoint(Box::new(endpoint(2))),
        Write::PutTemplate(Box::new(template(9))),
        Write::PutTemplate(Box::new(template(2))),
        Write::PutTemplate(Box::new(template(5))),
        Write::PutKey(Box::new(api_key("z"))),
        Write::PutKey(Box::new(api_key("a"))),
        Write::PutKey(Box::new(api_key("m"))),
    ];
    commit(store, epoch, writes).await.unwrap();
    // A change keeps the place; a deletion leaves no gap.
    let (mut changed_template, mut changed_key, mut changed_endpoint) =
        (template(9), api_key("z"), endpoint(1));
    changed_template.name = "changed".into();
    changed_key.disabled = false;
    changed_endpoint.workers_max = 99;
    let writes = vec![
        Write::PutTemplate(Box::new(changed_template.clone())),
        Write::PutKey(Box::new(changed_key.clone())),
        Write::PutEndpoint(Box::new(changed_endpoint.clone())),
        Write::DeleteTemplate(TemplateId::mint(2)),
        Write::DeleteKey("a".into()),
    ];
    commit(store, epoch, writes).await.unwrap();
    let catalog = store.catalog().await.unwrap();
    assert_eq!(catalog.endpoints, [changed_endpoint, endpoint(2)]);
    assert_eq!(catalog.templates, [changed_template, template(5)]);
    assert_eq!(catalog.keys, [changed_key, api_key("m")]);
}

pub async fn a_deleting_endpoint_stays_until_it_is_deleted(store: &impl Store) {
    let epoch = claim(store).await;
    let mut deleting = endpoint(1);
    deleting.deleting = true;
    commit(store, epoch, vec![Write::PutEndpoint(Box::new(deleting.clone()))]).await.unwrap();
    assert_eq!(store.catalog().await.unwrap().endpoints, [deleting]);
    let counters = Counters { completed: 1, ..Counters::default() };
    commit(store, epoch, vec![Write::PutCounters(EndpointNo(1), counters)]).await.unwrap();
    commit(store, epoch, vec![Write::DeleteEndpoint(EndpointNo(1))]).await.unwrap();
    assert!(store.catalog().await.unwrap().endpoints.is_empty());
    assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), Counters::default());
}

pub async fn endpoint_numbers_are_not_given_out_again(store: &impl Store) {
    let epoch = claim(store).await;
    for no in [1, 7, 3] {
        commit(store, epoch, vec![Write::PutEndpoint(Box::new(endpoint(no)))]).await.unwrap();
    }
    let deletes = [1, 7, 3].map(|no| Write::DeleteEndpoint(EndpointNo(no)));
    commit(store, epoch, deletes.into()).await.unwrap();
    assert_eq!(store.catalog().await.unwrap().last_endpoint_no, 7);
}

pub async fn counters_survive(store: &impl Store) {
    let epoch = claim(store).await;
    let counters = |base| Counters {
        completed: base + 1,
        failed: base + 2,
        retried: base + 3,
        cancelled: base + 4,
        reserved_seq: base + 5,
        purged_until: Millis(base + 6),
    };
    let put = |no, base| Write::PutCounters(EndpointNo(no), counters(base));
    commit(store, epoch, vec![put(1, 10), put(2, 20), put(1, u64::MAX - 6)]).await.unwrap();
    assert_eq!(store.counters(EndpointNo(1)).await.unwrap(), counters(u64::MAX - 6));
    assert_eq!(store.counters(EndpointNo(2)).await.unwrap(), counters(20));
    assert_eq!(store.counters(EndpointNo(3)).await.unwrap(), Counters::default());
}

pub async fn settings_are_replaced(store: &impl Store) {
    let epoch = claim(store).await;
    let put = |name: &str, value: &'static [u8]| Write::PutSetting(name.into(), value.into());
    commit(store, epoch, vec![put("b", b"1"), put("a", b"\0\xff"), put("b", b""), put("", b"x")])
        .await
        .unwrap();
    let settings = store.catalog().await.unwrap().settings;
    let expected: [(String, bytes::Bytes); 3] = [
        (String::new(), (&b"x"[..]).into()),
        ("a".into(), (&b"\0\xff"[..]).into()),
        ("b".into(), (&b""[..]).into()),
    ];
    assert_eq!(settings, expected.into());
}

pub async fn small_records_keep_their_place_within_their_kind(store: &impl Store) {
    let epoch = claim(store).await;
    let put = |kind, id: &str, json: &'static str| Write::PutJsonRow(kind, id.into(), json.into());
    let row = |kind, id: &str, json: &'static str| JsonRow { kind, id: id.into(), json: json.into() };
    let [auth, volume, usage, ..] = JsonRowKind::ALL;
    let of_each_kind = JsonRowKind::ALL.map(|kind| row(kind, "each", "{}"));
    commit(store, epoch, JsonRowKind::ALL.map(|kind| put(kind, "each", "{}")).to_vec()).await.unwrap();
    let mut stored = store.catalog().await.unwrap().json_rows;
    stored.sort_by_key(|row| row.kind);
    assert_eq!(stored, of_each_kind);
    let deletes = JsonRowKind::ALL.map(|kind| Write::DeleteJsonRow(kind, "each".into()));
    commit(store, epoch, deletes.to_vec()).await.unwrap();
    let writes = vec![put(volume, "z", "1"), put(auth, "z", "2"), put(volume, "a", "3"), put(usage, "", "4")];
    commit(store, epoch, writes).await.unwrap();
    // A change keeps the place; an id belongs to its kind alone; what is created again is the youngest.
    let writes = vec![
        put(volume, "z", r#"{"changed":"\u0000"}"#),
        Write::DeleteJsonRow(auth, "a".into()),
        Write::DeleteJsonRow(usage, String::new()),
        put(volume, "m", "5"),
        Write::DeleteJsonRow(volume, "a".into()),
        put(volume, "a", "6"),
    ];
    commit(store, epoch, writes).await.unwrap();
    let records = store.catalog().await.unwrap().json_rows;
    let of = |kind| records.iter().filter(|record| record.kind == kind).cloned().collect::<Vec<_>>();
    assert_eq!(of(auth), [row(auth, "z", "2")]);
    let volumes = [row(volume, "z", r#"{"changed":"\u0000"}"#), row(volume, "m", "5"), row(volume, "a", "6")];
    assert_eq!(of(volume), volumes);
    assert_eq!(of(usage), []);
}
