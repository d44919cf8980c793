//! Stored rows of sessions and codes with unusual or foreign content.

use longshore_hostile::{JSON_TOKENS, cases, mutated};
use longshore_model::Millis;
use proptest::prelude::*;

use super::table::SessionTable;
use crate::catalog::json_rows::StoredJson;

const HASH: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const ID: &str = "0123456789abcdef";

/// A session as this version writes it.
fn session() -> String {
    format!(
        r#"{{"id":"{ID}","hash":"{HASH}","key":"admin","keyHash":"{HASH}","openedAt":5,"usedAt":6,"address":"::1","agent":null}}"#
    )
}

fn code() -> String {
    format!(r#"{{"hash":"{HASH}","key":"admin","keyHash":"{HASH}","expiresAt":9}}"#)
}

fn row(id: &str, json: impl Into<Vec<u8>>) -> StoredJson {
    StoredJson { id: id.to_owned(), json: json.into().into() }
}

fn loaded(sessions: &[StoredJson], codes: &[StoredJson]) -> (usize, usize) {
    let table = SessionTable::load(sessions, codes);
    (table.sessions().count(), table.codes_over(Millis(u64::MAX)).len())
}

#[test]
fn rows_of_other_versions_load_without_what_they_lack() {
    let newer = session().replace("{\"id\"", "{\"later\":{\"a\":[1]},\"id\"");
    let older = session().replace(",\"address\":\"::1\",\"agent\":null", "");
    for json in [session(), newer, older] {
        assert_eq!(loaded(&[row(ID, json.clone())], &[]), (1, 0), "{json}");
    }
    assert_eq!(loaded(&[], &[row(HASH, code().replace('}', ",\"later\":1}"))]), (0, 1));
}

#[test]
fn a_bad_row_is_left_out_and_the_others_load() {
    let long = format!("{{\"id\":\"{}\"", "x".repeat(1 << 20));
    let deep = "[".repeat(100_000);
    let not_text = session().into_bytes().into_iter().map(|byte| if byte == b'a' { 0xff } else { byte });
    let bad: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"null".to_vec(),
        long.into_bytes(),
        deep.into_bytes(),
        not_text.collect(),
        session().replace("5,", "-5,").into_bytes(),
        session().replace("::1", "nowhere").into_bytes(),
        session().replace("\"key\":\"admin\",", "").into_bytes(),
    ];
    for json in bad {
        let sessions = [row(ID, json.clone()), row(ID, session())];
        let codes = [row(HASH, json.clone()), row(HASH, code())];
        assert_eq!(
            loaded(&sessions, &codes),
            (1, 1),
            "{:?}",
            String::from_utf8_lossy(&json[..json.len().min(80)])
        );
    }
}

#[test]
fn a_session_under_a_foreign_id_is_left_out() {
    // The end of the session would delete the row `0123…`, and leave this one to the next start.
    assert_eq!(loaded(&[row("other", session())], &[row("other", code())]), (0, 0));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_bytes_of_a_row_cause_a_panic(session in mutated(Just(session()), JSON_TOKENS), code in mutated(Just(code()), JSON_TOKENS)) {
        let (sessions, codes) = loaded(&[row(ID, session)], &[row(HASH, code)]);
        prop_assert!(sessions <= 1 && codes <= 1);
    }
}
