//! What a worker that lost its mind may send: bodies, chunks, queries; and what must hold of the jobs it gets.

use bytes::Bytes;
use longshore_engine::TakenJob;
use longshore_hostile::{JSON_TOKENS, Names, cases, json, object, spoiled, string, text};
use longshore_model::limits::TAKE_SLOTS_MAX;
use longshore_model::{Attempt, EndpointNo, JobId, JobKey, JobRow, JobState, Millis};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::address::{WorkerQuery, segment};
use super::chunks::split;
use super::job_object;
use super::lenient::{plain_text, read_json};
use super::report::Report;
use crate::nesting::too_deep_at;

const NAMES: Names = &["output", "output", "error", "status", "stopPod", "IN_PROGRESS", "a"];

/// Python's encoder at work: JSON in which a number may be one of those that JSON does not know. Beside it what it
/// means: the same with `null` there.
fn pythonic() -> impl Strategy<Value = (String, String)> {
    let foreign = prop::sample::select(vec!["NaN", "Infinity", "-Infinity"]);
    let leaf = prop_oneof![
        foreign.prop_map(|word| (word.to_owned(), "null".to_owned())),
        json(NAMES).prop_map(|text| (text.clone(), text)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
                let (sent, meant): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (format!("[{}]", sent.join(", ")), format!("[{}]", meant.join(", ")))
            }),
            prop::collection::vec((string(), inner), 0..4).prop_map(|members| {
                let of = |which: fn(&(String, String)) -> &String| {
                    let members = members.iter().map(|(name, value)| format!("{name}: {}", which(value)));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
                };
                (of(|value| &value.0), of(|value| &value.1))
            }),
        ]
    })
}

fn raw(text: &[u8]) -> serde_json::Result<&RawValue> {
    serde_json::from_slice(text)
}

/// What must hold of any report that is taken: what is kept of it is JSON, from within the body or repaired.
fn holds(body: &[u8]) -> Result<(), TestCaseError> {
    let body = Bytes::copy_from_slice(body);
    let Ok(report) = Report::parse(&body) else {
        let object = matches!(serde_json::from_slice(&body), Ok(Value::Object(_)));
        prop_assert!(!object, "a parser of JSON takes what the reader of reports refuses");
        return Ok(());
    };
    if let Some(output) = &report.output {
        prop_assert_eq!(raw(output).map(|raw| raw.get().len()).ok(), Some(output.len()));
    }
    if let Ok(Value::Object(object)) = serde_json::from_slice(&body) {
        prop_assert_eq!(report.output.is_some(), object.contains_key("output"));
        prop_assert_eq!(report.in_progress, object.get("status") == Some(&"IN_PROGRESS".into()));
        prop_assert_eq!(report.stop_pod, object.get("stopPod") == Some(&true.into()));
        let falsy = |error: &Value| match error {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
        };
        prop_assert_eq!(report.error.is_none(), object.get("error").is_none_or(falsy));
        if let Some(Value::String(text)) = object.get("error").filter(|error| !falsy(error)) {
            prop_assert_eq!(report.error.as_ref(), Some(text));
        }
    }
    // Whatever the report says can be said of a job.
    let _ = report.into_word();
    Ok(())
}

/// A chunk is refused, or its pieces are short enough and hold, in order, what it held.
fn splits(chunk: &str, limit: usize) -> Result<(), TestCaseError> {
    let Ok(pieces) = split(Bytes::copy_from_slice(chunk.as_bytes()), limit) else {
        prop_assert!(chunk.len() > limit);
        return Ok(());
    };
    let pieces: Vec<&str> = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    prop_assert!(pieces.iter().all(|piece| piece.len() <= limit));
    for piece in &pieces {
        prop_assert!(raw(piece.as_bytes()).is_ok(), "{piece} is no JSON");
    }
    if chunk.len() <= limit {
        prop_assert_eq!(pieces, [chunk]);
    } else if chunk.starts_with('"') {
        let joined: String = pieces.iter().map(|piece| &piece[1..piece.len() - 1]).collect();
        prop_assert_eq!(joined.as_str(), &chunk[1..chunk.len() - 1]);
    } else {
        let elements = |text: &str| -> Vec<String> {
            let raw: Vec<Box<RawValue>> = serde_json::from_str(text).unwrap();
            raw.iter().map(|raw| raw.get().to_owned()).collect()
        };
        let joined: Vec<String> = pieces.iter().flat_map(|piece| elements(piece)).collect();
        prop_assert_eq!(joined, elements(chunk));
    }
    Ok(())
}

fn taken(members: &str, sync: bool, times: [u64; 3]) -> TakenJob {
    let row = JobRow {
        key: JobKey { endpoint: EndpointNo(1), seq: 1 },
        id: JobId::mint(Millis(times[0]), u128::from(times[1]), sync),
        state: JobState::InProgress,
        low_priority: false,
        fresh: false,
        pinned: false,
        webhook: false,
        webhook_owed: false,
        retries: 0,
        redeliveries: 0,
        attempt: Attempt(1),
        order: 0,
        created_at: Millis(times[0]),
        enqueued_at: Millis(times[1]),
        started_at: Millis(times[2]),
        finished_at: Millis(0),
        delete_at: Millis(9_000),
        ttl_ms: 8_000,
        execution_timeout_ms: 5_000,
        input_bytes: 2,
        worker: None,
        idempotency: None,
    };
    TakenJob { row, members: Bytes::copy_from_slice(members.as_bytes()) }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn reports_of_any_bytes(body in longshore_hostile::bytes()) {
        holds(&body)?;
    }

    #[test]
    fn reports_of_any_members(body in object(NAMES)) {
        holds(body.as_bytes())?;
    }

    #[test]
    fn spoiled_reports(body in spoiled(object(NAMES), JSON_TOKENS)) {
        holds(&body)?;
    }

    #[test]
    fn numbers_that_json_does_not_know_become_null_and_the_rest_stays((sent, meant) in pythonic()) {
        let body = Bytes::from(format!("{{\"output\": {sent}}}"));
        prop_assume!(too_deep_at(&body).is_none());
        let output = Report::parse(&body).unwrap().output.unwrap();
        prop_assert_eq!(std::str::from_utf8(&output).unwrap(), meant);
    }

    #[test]
    fn what_is_read_leniently_is_what_was_sent_or_a_repair(body in spoiled(pythonic().prop_map(|(sent, _)| sent), JSON_TOKENS)) {
        let read = read_json(&Bytes::from(body.clone()), |body| raw(body).map(|raw| raw.get().to_owned()));
        match (read, raw(&body)) {
            (Ok(read), Ok(sent)) => prop_assert_eq!(read, sent.get()),
            (Ok(read), Err(_)) => prop_assert!(read.contains("null")),
            (Err(_), sent) => prop_assert!(sent.is_err()),
        }
    }

    #[test]
    fn chunks_of_any_json(chunk in prop_oneof![json(NAMES), prop::collection::vec(json(NAMES), 0..12).prop_map(|items| format!("[{}]", items.join(" , ")))], limit in 0_usize..200) {
        splits(&chunk, limit)?;
    }

    #[test]
    fn chunks_of_long_strings(pieces in prop::collection::vec(string(), 1..20), limit in 2_usize..60) {
        let content: String = pieces.iter().map(|piece| &piece[1..piece.len() - 1]).collect();
        splits(&format!("\"{content}\""), limit)?;
    }

    #[test]
    fn chunks_that_are_no_json(chunk in spoiled(json(NAMES), JSON_TOKENS), limit in 0_usize..60) {
        let _ = split(chunk.into(), limit);
    }

    #[test]
    fn strings_are_shown_as_plain_text(string in string()) {
        let text = plain_text(&string);
        if let Ok(Value::String(exact)) = serde_json::from_str(&string) {
            prop_assert_eq!(text, exact);
        }
    }

    #[test]
    fn queries_of_any_text(last in text(), query in prop_oneof![text(), "((job_id|batch_size|job_in_progress|status|check)=[-0-9a-f,%+]{0,40}&?){0,5}"]) {
        let query = WorkerQuery::parse(&last, Some(&query));
        prop_assert!((1..=TAKE_SLOTS_MAX).contains(&query.batch_size()));
        let _ = (query.says_busy(), query.job_ids(), query.unfit_reason());
        prop_assert!(!segment(&last).contains('&'));
    }

    #[test]
    fn a_job_reaches_its_worker_as_json_and_byte_for_byte(
        submitted in prop::collection::vec(object(NAMES), 1..4),
        sync: bool,
        times: [u64; 3],
    ) {
        let jobs: Vec<TakenJob> = submitted
            .iter()
            .map(|input| taken(&format!("\"input\":{input}"), sync, times))
            .collect();
        let one = job_object::one(&jobs[0]).into_bytes();
        let many = job_object::many(&jobs).into_bytes();
        let elements: Vec<&RawValue> = serde_json::from_slice(&many).unwrap();
        prop_assert_eq!(elements.len(), jobs.len());
        prop_assert_eq!(elements[0].get().as_bytes(), one.as_ref());
        for (element, (input, job)) in elements.iter().zip(submitted.iter().zip(&jobs)) {
            let members: std::collections::BTreeMap<&str, &RawValue> = serde_json::from_str(element.get()).unwrap();
            prop_assert_eq!(members["input"].get(), input.as_str());
            prop_assert_eq!(members["id"].get(), format!("\"{}\"", job.row.id));
            prop_assert_eq!(members.len(), 4);
        }
    }
}
