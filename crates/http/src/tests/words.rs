//! Hostile words: keys, query parameters, cursors, idempotency keys.

use axum::http::HeaderMap;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use longshore_hostile::{cases, mutated, text};
use longshore_model::JobId;
use proptest::prelude::*;

use super::direct::{ADMIN, Direct, request};
use crate::gate::auth::credential;
use crate::wire::query::Query;

const TOKENS: &[&[u8]] = &[b"Bearer", b"bearer ", b" ", b"\t", b"ls_", b"lsw_", b"_", b"\xff", b","];

/// Runs a sequence of requests with a paused clock.
fn in_paused_time<T>(conversation: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(conversation)
}

/// The bytes as a header value, if they can be one.
fn header(bytes: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(bytes).ok()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_credential_is_a_part_of_its_header(value in mutated(Just("Bearer ls_0123_abcdef"), TOKENS)) {
        let Some(header) = header(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(AUTHORIZATION, header)]);
        if let Some(credential) = credential(&headers) {
            prop_assert!(!credential.is_empty() && value.ends_with(credential) || value.trim_ascii().ends_with(credential));
            prop_assert_eq!(credential.trim_ascii(), credential);
            // The scheme alone is no credential, but it is one after another scheme.
            prop_assert!(!value.trim_ascii().eq_ignore_ascii_case(b"bearer"));
        }
    }

    #[test]
    fn a_query_gives_back_what_was_put_in(pairs in prop::collection::vec((text(), text()), 0..6)) {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(&pairs).finish();
        let query = Query::of(&format!("/x?{query}").parse().unwrap()).unwrap();
        for (name, _) in &pairs {
            let last = pairs.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
            prop_assert_eq!(query.get(name), last);
        }
    }

    #[test]
    fn any_query_is_survived(query in "[ -~]{0,40}", (min, max) in any::<(u64, u64)>()) {
        let Ok(uri) = format!("/x?n={query}").parse() else { return Ok(()) };
        let Ok(query) = Query::of(&uri) else { return Ok(()) };
        if let Ok(Some(number)) = query.integer("n", min, max) {
            prop_assert!((min..=max).contains(&number));
        }
    }
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn only_keys_that_were_given_out_get_in(spoils in prop::collection::vec(mutated(Just(format!("Bearer {ADMIN}")), TOKENS), 20)) {
        in_paused_time(async {
            let server = Direct::start().await;
            let token = server.engine.worker_token(&server.endpoint);
            for value in spoils {
                let Some(header) = header(&value) else { continue };
                let right = credential(&HeaderMap::from_iter([(AUTHORIZATION, header.clone())])) == Some(ADMIN.as_bytes());
                let mut asked = request("GET", "/v1/templates", None, "");
                asked.headers_mut().insert(AUTHORIZATION, header);
                prop_assert_eq!(server.send(asked).await.status == 200, right);
            }
            for at in 0..token.len() {
                let spoiled = [&token[..at], if token.as_bytes()[at] == b'0' { "1" } else { "0" }, &token[at + 1..]].concat();
                let answer = server.send(request("GET", "/v2/demo/ping/w-1", Some(&spoiled), "")).await;
                prop_assert_eq!(answer.status.as_u16(), 401, "{}", at);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_cursor_goes_on_where_the_page_ended_and_other_words_are_refused(jobs in 1_usize..8, limit in 1_usize..4, words in prop::collection::vec("[ -~]{0,40}", 8)) {
        in_paused_time(async {
            let server = Direct::start().await;
            let mut submitted = Vec::new();
            for _ in 0..jobs {
                let job = server.ask("POST", "/v2/demo/run", r#"{"input":{}}"#).await.json();
                submitted.insert(0, job["id"].as_str().unwrap().to_owned());
            }
            let (mut listed, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = server.ask("GET", &format!("/v2/demo/requests?limit={limit}&cursor={cursor}"), "").await.json();
                listed.extend(page["requests"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["cursor"].as_str() else { break };
                prop_assert_eq!(next.parse::<JobId>().unwrap().to_string(), next);
                next.clone_into(&mut cursor);
            }
            prop_assert_eq!(listed, submitted);
            for word in words {
                let query: String = form_urlencoded::byte_serialize(word.as_bytes()).collect();
                let answer = server.ask("GET", &format!("/v2/demo/requests?cursor={query}"), "").await;
                let fits = word.is_empty() || word.parse::<JobId>().is_ok();
                prop_assert_eq!(answer.status.as_u16(), if fits { 200 } else { 400 });
            }
            Ok(())
        })?;
    }

    #[test]
    fn an_idempotency_key_makes_one_job_or_is_refused(keys in prop::collection::vec(longshore_hostile::bytes(), 6)) {
        in_paused_time(async {
            let server = Direct::start().await;
            for key in keys {
                let Some(value) = header(&key) else { continue };
                let ask = async || {
                    let mut asked = request("POST", "/v2/demo/run", Some(ADMIN), r#"{"input":{}}"#);
                    asked.headers_mut().insert("idempotency-key", value.clone());
                    server.send(asked).await
                };
                let (first, second) = (ask().await, ask().await);
                let fits = (1..=255).contains(&key.len()) && value.to_str().is_ok();
                prop_assert_eq!(first.status.as_u16(), if fits { 200 } else { 400 });
                prop_assert_eq!(first.body, second.body);
            }
            Ok(())
        })?;
    }
}
