//! Stored rows of versions with unusual or foreign content.

use longshore_hostile::{JSON_TOKENS, cases, mutated};
use longshore_model::EndpointId;
use proptest::prelude::*;

use super::*;

/// A version without records, as this version writes it.
const STORED: &str = r#"{"version":7,"code":"efef","entries":[{"at":5,"by":"admin","fields":[{"name":"env.A","from":null,"to":"changed"}]}],"content":null}"#;

fn endpoint() -> EndpointId {
    EndpointId::mint(1)
}

fn row(id: &str, json: impl Into<Vec<u8>>) -> StoredJson {
    StoredJson { id: id.to_owned(), json: json.into().into() }
}

fn loaded(rows: Vec<StoredJson>) -> Vec<u32> {
    Versions::load(rows).of(&endpoint()).iter().map(|version| version.version).collect()
}

#[test]
fn rows_of_other_versions_load_without_what_they_lack() {
    let id = row_id(&endpoint(), 7);
    let newer =
        STORED.replace("\"by\"", "\"later\":[{}],\"by\"").replace("{\"version\"", "{\"later\":1,\"version\"");
    let older = STORED.replace(",\"content\":null", "").replace("\"code\":\"efef\",", "");
    for json in [STORED.to_owned(), newer, older] {
        assert_eq!(loaded(vec![row(&id, json.clone())]), [7], "{json}");
    }
}

#[test]
fn a_bad_row_is_left_out_and_the_others_load() {
    let (good, bad) = (row_id(&endpoint(), 7), row_id(&endpoint(), 6));
    let six = STORED.replace(":7", ":6");
    for json in [
        String::new(),
        "[]".to_owned(),
        "[".repeat(100_000),
        format!("{{\"version\":6,\"entries\":[],\"code\":\"{}", "x".repeat(1 << 20)),
        six.replace("\"entries\"", "\"entry\""),
        six.replace("null}", "{\"endpoint\":{},\"template\":{}}}"),
        six.replace(":6", ":-6"),
        six.replace(":6", ":4294967296"),
    ] {
        let rows = vec![row(&bad, json.clone()), row(&good, STORED)];
        assert_eq!(loaded(rows), [7], "{:?}", &json[..json.len().min(80)]);
    }
    let foreign = six.replace("admin", "\u{fffd}").into_bytes().into_iter().map(|byte| byte | 0x80);
    assert_eq!(loaded(vec![row(&bad, foreign.collect::<Vec<u8>>()), row(&good, STORED)]), [7]);
}

#[test]
fn a_version_under_a_foreign_id_is_left_out() {
    let id = endpoint();
    for foreign in [
        format!("{id}/6"),
        format!("{id}/07"),
        format!("{id}"),
        format!("{id}/7/7"),
        "/7".into(),
        "x/7".into(),
    ] {
        assert_eq!(loaded(vec![row(&foreign, STORED)]), [0_u32; 0], "{foreign}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_bytes_of_a_row_cause_a_panic(json in mutated(Just(STORED), JSON_TOKENS)) {
        let versions = loaded(vec![row(&row_id(&endpoint(), 7), json)]);
        prop_assert!(versions.is_empty() || versions == [7]);
    }
}
