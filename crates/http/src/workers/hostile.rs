//! Hostile input of workers: bodies, chunks and queries; and what must hold of the jobs that they report on.

use bytes::Bytes;
use longshore_engine::{Chunk, TakenJob};
use longshore_envelope::too_deep_at;
use longshore_hostile::{JSON_TOKENS, Names, cases, json, mutated, object, string, text};
use longshore_model::limits::TAKE_SLOTS_MAX;
use longshore_model::{Attempt, EndpointNo, JobId, JobKey, JobRow, JobState, Millis};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::chunks::{posted, split, within};
use super::job_object;
use super::path::{WorkerQuery, segment};
use super::python_json::{plain_text, read_json};
use super::report_body::ReportBody;

const NAMES: Names = &["output", "output", "metrics", "error", "status", "stopPod", "IN_PROGRESS", "a"];

/// JSON as Python's encoder writes it, in which a number may be one that JSON does not have; and the same text with
/// `null` in its place.
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

/// Checks what must hold of any accepted report: what is stored of it is JSON, from within the body or repaired.
fn holds(body: &[u8]) -> Result<(), TestCaseError> {
    let body = Bytes::copy_from_slice(body);
    let Ok(report) = ReportBody::parse(&body) else {
        let object = matches!(serde_json::from_slice(&body), Ok(Value::Object(_)));
        prop_assert!(!object, "a parser of JSON takes what the reader of reports refuses");
        return Ok(());
    };
    if let Some(output) = &report.output {
        prop_assert_eq!(raw(output).map(|raw| raw.get().len()).ok(), Some(output.len()));
    }
    if let Ok(Value::Object(object)) = serde_json::from_slice(&body) {
        prop_assert_eq!(report.output.is_some(), object.contains_key("output"));
        prop_assert_eq!(report.metrics.is_some(), object.get("metrics").is_some_and(Value::is_object));
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
    // Any text of the report can be stored as a job's error.
    let _ = report.into_kind();
    Ok(())
}

/// A chunk as clients see it.
fn shown(chunk: &Chunk) -> String {
    let text = |json: &Bytes| String::from_utf8(json.to_vec()).unwrap();
    match &chunk.metrics {
        Some(metrics) => format!("{{\"output\":{},\"metrics\":{}}}", text(&chunk.output), text(metrics)),
        None => format!("{{\"output\":{}}}", text(&chunk.output)),
    }
}

/// The text that the parts of an output were split from, with the notes beside them.
fn rejoined(parts: &[Chunk]) -> String {
    let mut whole = String::new();
    for Chunk { output, seam, .. } in parts {
        whole.push_str(if seam.after_comma { "," } else { "" });
        let own = &output[seam.head as usize..output.len() - seam.tail as usize];
        whole.push_str(std::str::from_utf8(own).unwrap());
    }
    whole
}

type Members<'a> = Vec<(String, &'a RawValue)>;

fn members(text: &str) -> Members<'_> {
    struct Pairs<'a>(Members<'a>);
    impl<'de> serde::de::Visitor<'de> for Pairs<'de> {
        type Value = Members<'de>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
            while let Some(name) = map.next_key::<&RawValue>()? {
                self.0.push((name.get().to_owned(), map.next_value()?));
            }
            Ok(self.0)
        }
    }
    serde::Deserializer::deserialize_map(&mut serde_json::Deserializer::from_str(text), Pairs(Vec::new()))
        .unwrap()
}

/// Whether two texts have the same value, in any order of members. A value that cannot be split has become its text.
fn same(whole: &str, joined: &str) -> bool {
    let (whole, joined) = (whole.trim(), joined.trim());
    if whole == joined {
        return true;
    }
    let first = |text: &str| text.as_bytes().first().copied();
    match (first(whole), first(joined)) {
        (Some(b'['), Some(b'[')) => {
            let [whole, joined]: [Vec<&RawValue>; 2] =
                [whole, joined].map(|text| serde_json::from_str(text).unwrap());
            whole.len() == joined.len()
                && whole.iter().zip(joined).all(|(whole, joined)| same(whole.get(), joined.get()))
        }
        (Some(b'{'), Some(b'{')) => {
            let mut left = members(joined);
            members(whole).iter().all(|(name, value)| {
                let found =
                    left.iter().position(|(other, joined)| other == name && same(value.get(), joined.get()));
                found.map(|at| left.swap_remove(at)).is_some()
            }) && left.is_empty()
        }
        (_, Some(b'"')) => serde_json::from_str::<String>(joined).is_ok_and(|text| text == whole),
        _ => false,
    }
}

/// Checks that the parts of a chunk are short enough and have the chunk's content when joined.
fn splits(output: &str, metrics: Option<&str>, limit: usize) -> Result<(), TestCaseError> {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let chunk = Chunk { metrics: metrics.map(bytes), ..Chunk::from(bytes(output)) };
    let parts = split(chunk.clone(), limit);
    let limit = limit.max(128);
    if shown(&chunk).len() <= limit {
        prop_assert_eq!(parts, [chunk]);
        return Ok(());
    }
    for (at, part) in parts.iter().enumerate() {
        let text = shown(part);
        prop_assert!(raw(text.as_bytes()).is_ok(), "{text} is no JSON");
        prop_assert!(text.len() <= limit, "{text} is too long");
        prop_assert_eq!(part.seam.goes_on, at + 1 < parts.len());
    }
    let joined = rejoined(&parts);
    prop_assert!(same(output, &joined), "{output} became {joined}");
    if output.starts_with('"') {
        prop_assert_eq!(joined, output);
    }
    prop_assert_eq!(parts[0].metrics.is_some(), metrics.is_some());
    Ok(())
}

fn taken(members: &str, sync: bool, times: [u64; 3]) -> TakenJob {
    let id = JobId::mint(Millis(times[0]), u128::from(times[1]), sync);
    let row = JobRow {
        state: JobState::InProgress,
        never_taken: false,
        attempt: Attempt(1),
        enqueued_at: Millis(times[1]),
        started_at: Millis(times[2]),
        ..JobRow::queued(JobKey { endpoint: EndpointNo(1), seq: 1 }, id, Millis(times[0]))
    };
    let (members, room) =
        (Bytes::copy_from_slice(members.as_bytes()), longshore_engine::BudgetPermit::default());
    TakenJob { row, members, trace: None, room }
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
    fn spoiled_reports(body in mutated(object(NAMES), JSON_TOKENS)) {
        holds(&body)?;
    }

    #[test]
    fn numbers_that_json_does_not_know_become_null_and_the_rest_stays((sent, meant) in pythonic()) {
        let body = Bytes::from(format!("{{\"output\": {sent}}}"));
        prop_assume!(too_deep_at(&body).is_none());
        let output = ReportBody::parse(&body).unwrap().output.unwrap();
        prop_assert_eq!(std::str::from_utf8(&output).unwrap(), meant);
    }

    #[test]
    fn what_is_read_leniently_is_what_was_sent_or_a_repair(body in mutated(pythonic().prop_map(|(sent, _)| sent), JSON_TOKENS)) {
        let read = read_json(&Bytes::from(body.clone()), |body| raw(body).map(|raw| raw.get().to_owned()));
        match (read, raw(&body)) {
            (Ok(read), Ok(sent)) => prop_assert_eq!(read, sent.get()),
            (Ok(read), Err(_)) => prop_assert!(read.contains("null")),
            (Err(_), sent) => prop_assert!(sent.is_err()),
        }
    }

    #[test]
    fn chunks_of_any_json(items in prop::collection::vec(json(NAMES), 1..12), nested in 0..4_usize, metrics in prop::option::of(object(NAMES)), limit in 0_usize..400) {
        let list = format!("[{}]", items.join(" , "));
        let output = match nested {
            0 => items[0].clone(),
            1 => list,
            2 => format!("{{ \"a\" : {list} , \"b\":{},\"a\":[{list}]}}", items[0]),
            _ => format!("[[{list}], {{\"output\":{list},\"c\":{{\"d\":{list}}}}}]"),
        };
        splits(&output, metrics.as_deref(), limit)?;
    }

    #[test]
    fn chunks_of_long_strings(pieces in prop::collection::vec(string(), 1..40), limit in 0_usize..200) {
        let content: String = pieces.iter().map(|piece| &piece[1..piece.len() - 1]).collect();
        splits(&format!("\"{content}\""), None, limit)?;
        splits(&format!("{{\"text\":\"{content}\",\"n\":[\"{content}\"]}}"), Some(&format!("{{\"m\":\"{content}\"}}")), limit)?;
    }

    #[test]
    fn chunks_that_are_no_json(chunk in mutated(json(NAMES), JSON_TOKENS), limit in 0_usize..400) {
        let long = [&chunk[..], &chunk[..], &chunk[..]].concat();
        let _ = split(Bytes::from(long).into(), limit);
        let _ = split(posted(Bytes::from(chunk.repeat(20)), None), limit);
    }

    #[test]
    fn output_and_metrics_are_found_where_a_parser_finds_them(value in prop_oneof![object(&["output", "metrics"]), json(NAMES)]) {
        let found = within(&Bytes::from(value.clone()));
        if let Some((output, metrics)) = &found {
            let are_json = raw(output).is_ok() && raw(metrics).is_ok() && metrics.starts_with(b"{");
            prop_assert!(are_json);
            prop_assert_eq!(members(&value).len(), 2);
        }
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
