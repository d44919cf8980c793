//! `/v1/billing/endpoints`: the time that workers ran, and its cost by the operator's prices.

mod busy;
mod shares;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use longshore_engine::{Usage, UsageSheet};
use longshore_model::Millis;
use serde_json::{Map, Value, json};

use self::busy::BusyTimes;
use super::access::may_read;
use crate::openapi::page::Page;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};
use crate::{HttpState, Prices};

const BUCKETS: [&str; 5] = ["hour", "day", "week", "month", "year"];
const GROUPINGS: [&str; 5] = ["endpointId", "podId", "gpuTypeId", "owner", "key"];
/// Parameters that choose workers, whose busy time is not known apart.
const WORKER_FILTERS: [&str; 3] = ["templateId", "imageName", "gpuTypeId"];
/// The GPU type in the records of workers without GPUs.
const CPU: &str = "CPU";

/// The parameters: which worker time is listed, and how it is grouped.
const PARAMETERS: &[Parameter] = &[
    query(
        "bucketSize",
        ParameterKind::Word { words: &BUCKETS, default: Some("day") },
        "the length of time that one record covers",
    ),
    query(
        "grouping",
        ParameterKind::Word { words: &GROUPINGS, default: Some("endpointId") },
        "the values that get records of their own",
    ),
    query("startTime", ParameterKind::Time, "the start of the time range, rounded to the hour"),
    query("endTime", ParameterKind::Time, "the end of the time range, rounded to the hour"),
    query("endpointId", ParameterKind::Text, "only this endpoint"),
    query("templateId", ParameterKind::Text, "only workers of this template"),
    query("imageName", ParameterKind::Text, "only workers of this image"),
    query("owner", ParameterKind::Text, "only this owner of keys, where `grouping` is `owner` or `key`"),
    query("gpuTypeId", ParameterKind::Texts, "only workers with GPUs of one of these types"),
    query("dataCenterId", ParameterKind::Texts, "accepted for compatibility"),
];

/// The description of the operation in the API's document.
const ABOUT: &str = "Hours are those of UTC. A worker counts from its start to its end, whether or not it has a job. By owner \
    or key, the time of an endpoint's workers in an hour is shared out by how long the jobs of each ran that ended in it. `gpuMs` is the \
    time of the workers' GPUs together. `busyMs` is the part of `timeBilledMs` in which workers ran jobs. It is `null` in records \
    that are not by endpoint or have a filter of workers, \
    and where the history of a part of the time is missing.";

/// The operations on worker time.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("EndpointBilling", "/v1/billing/endpoints", list)
            .summary("the time that workers ran, and its cost")
            .about(ABOUT)
            .lists("BillingRecord")
            .with(PARAMETERS),
    ];
    let busy_ms = json!({ "type": "integer", "minimum": 0, "nullable": true });
    let record = object(
        &[
            ("time", time()),
            ("endpointId", text()),
            ("podId", text()),
            ("gpuTypeId", text()),
            ("owner", text()),
            ("key", text()),
            ("jobs", count()),
            ("executionMs", count()),
            ("timeBilledMs", count()),
            ("gpuMs", count()),
            ("busyMs", busy_ms),
            ("amount", json!({ "type": "number" })),
            ("diskSpaceBilledGb", count()),
        ],
        &["time", "timeBilledMs", "gpuMs", "busyMs", "amount", "diskSpaceBilledGb"],
    );
    let about = "Metered time of workers, priced by the server's settings.";
    Group { name: "Billing", about, operations, schemas: vec![("BillingRecord", record)] }
}

async fn list(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    may_read(&state, &headers)?;
    let query = Query::of(&uri)?;
    let bucket = word(&query, "bucketSize", &BUCKETS, "day")?;
    let grouping = word(&query, "grouping", &GROUPINGS, "endpointId")?;
    let from = parse_time(&query, "startTime")?.unwrap_or_default();
    let to = parse_time(&query, "endTime")?.unwrap_or(Millis::MAX);
    let sheets = state.engine().usage(from, to);
    let sheets: Vec<_> =
        sheets.iter().filter(|sheet| is(&query, "endpointId", sheet.endpoint.as_str())).collect();
    let has_busy = grouping == "endpointId" && WORKER_FILTERS.iter().all(|name| query.get(name).is_none());
    let busy = if has_busy { BusyTimes::read(&state, &sheets).await? } else { None };
    let page = Page::of(&uri, &query)?;
    let key = |record: &Value| {
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        let names = ["endpointId", "gpuTypeId", "podId", "owner", "key"].map(text).join("/");
        (parse_rfc3339(text("time")).unwrap_or_default(), names)
    };
    let (records, cursor) =
        page.cut(records(&state, &sheets, busy.as_ref(), (bucket, grouping), &query), key);
    Ok(page.answer(records, cursor))
}

/// The sum of one record of the response.
#[derive(Default)]
struct Sum {
    ms: u64,
    gpu_ms: u64,
    amount: f64,
    jobs: u64,
    execution_ms: u64,
    busy_ms: u64,
    /// Whether the busy time of a part is not known.
    is_busy_unknown: bool,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.ms += other.ms;
        self.gpu_ms += other.gpu_ms;
        self.amount += other.amount;
        self.jobs += other.jobs;
        self.execution_ms += other.execution_ms;
    }

    fn add_busy(&mut self, busy_ms: Option<u64>) {
        self.busy_ms += busy_ms.unwrap_or_default();
        self.is_busy_unknown |= busy_ms.is_none();
    }
}

fn records(
    state: &HttpState,
    sheets: &[&UsageSheet],
    busy: Option<&BusyTimes>,
    (bucket, grouping): (&str, &str),
    query: &Query,
) -> Vec<Value> {
    let by_submitter = matches!(grouping, "owner" | "key");
    let mut sums: BTreeMap<(Millis, Names), Sum> = BTreeMap::new();
    for sheet in sheets {
        let at = bucket_start(bucket, sheet.from);
        let usages = sheet.usages.iter().filter(|usage| matches_query(query, usage));
        if by_submitter {
            let mut workers = Sum::default();
            usages.for_each(|usage| workers.add(&of_workers(usage, state.prices())));
            let shares = shares::shares(state.engine(), grouping, sheet, &workers).into_iter();
            let is_owners = |names: &Names| {
                query.get("owner").is_none_or(|wanted| names.get("owner").is_some_and(|name| name == wanted))
            };
            for (names, sum) in shares.filter(|(names, _)| is_owners(names)) {
                sums.entry((at, names)).or_default().add(&sum);
            }
        } else {
            for usage in usages {
                let sum = sums.entry((at, names(grouping, sheet, usage))).or_default();
                sum.add(&of_workers(usage, state.prices()));
            }
            if let Some(busy) = busy.filter(|_| !sheet.usages.is_empty()) {
                let sum = sums.entry((at, Names::from([endpoint_name(sheet)]))).or_default();
                sum.add_busy(busy.in_sheet(sheet));
            }
        }
    }
    let record = |((at, names), sum): ((Millis, Names), Sum)| {
        let mut record: Map<String, Value> =
            names.into_iter().map(|(k, v)| (k.to_owned(), json!(v))).collect();
        record.insert("time".to_owned(), json!(rfc3339(at)));
        record.insert("timeBilledMs".to_owned(), json!(sum.ms));
        record.insert("gpuMs".to_owned(), json!(sum.gpu_ms));
        let busy_ms = busy.filter(|_| !sum.is_busy_unknown).map(|_| sum.busy_ms);
        record.insert("busyMs".to_owned(), json!(busy_ms));
        // Rounded to millionths, which hides the error of adding floating-point numbers.
        record.insert("amount".to_owned(), json!((sum.amount * 1e6).round() / 1e6));
        record.insert("diskSpaceBilledGb".to_owned(), json!(0));
        if by_submitter {
            record.insert("jobs".to_owned(), json!(sum.jobs));
            record.insert("executionMs".to_owned(), json!(sum.execution_ms));
        }
        Value::Object(record)
    };
    sums.into_iter().map(record).collect()
}

/// The time of one row of worker usage and of its GPUs, in ms, and its cost.
fn of_workers(usage: &Usage, prices: &Prices) -> Sum {
    let gpus = if usage.kind.gpu_type_id.is_empty() { 0 } else { usage.kind.gpu_count as u64 };
    Sum { ms: usage.ms, gpu_ms: usage.ms * gpus, amount: cost_of(usage, prices), ..Sum::default() }
}

/// The cost of one row of worker usage.
pub(super) fn cost_of(usage: &Usage, prices: &Prices) -> f64 {
    let gpu_type = Some(usage.kind.gpu_type_id.as_str()).filter(|type_id| !type_id.is_empty());
    usage.ms as f64 / 3_600_000.0 * prices.per_hour(gpu_type, usage.kind.gpu_count)
}

/// The fields that identify a record, with their values.
type Names = BTreeMap<&'static str, String>;

fn endpoint_name(sheet: &UsageSheet) -> (&'static str, String) {
    ("endpointId", sheet.endpoint.to_string())
}

fn names(grouping: &str, sheet: &UsageSheet, usage: &Usage) -> Names {
    let gpu = if usage.kind.gpu_type_id.is_empty() { CPU } else { &usage.kind.gpu_type_id };
    let endpoint = endpoint_name(sheet);
    match grouping {
        "gpuTypeId" => BTreeMap::from([("gpuTypeId", gpu.to_owned())]),
        "podId" => {
            let mut names = BTreeMap::from([endpoint, ("gpuTypeId", gpu.to_owned())]);
            // Rows of old usage do not have the worker.
            names.extend(usage.worker.as_ref().map(|worker| ("podId", worker.to_string())));
            names
        }
        _ => BTreeMap::from([endpoint]),
    }
}

fn is(query: &Query, name: &str, value: &str) -> bool {
    query.get(name).is_none_or(|wanted| wanted == value)
}

fn matches_query(query: &Query, usage: &Usage) -> bool {
    let gpu = &usage.kind.gpu_type_id;
    let mut types = query.all("gpuTypeId").peekable();
    is(query, "templateId", &usage.kind.template_id)
        && is(query, "imageName", &usage.kind.image_name)
        && (types.peek().is_none() || types.any(|wanted| wanted == gpu))
}

/// The start of the bucket that contains `at`, in UTC. Weeks begin on Mondays.
fn bucket_start(bucket: &str, at: Millis) -> Millis {
    const DAY_MS: u64 = 86_400_000;
    let day = at.0 / DAY_MS;
    let text = rfc3339(at);
    let first =
        |of: Option<&str>, rest: &str| parse_rfc3339(&format!("{}{rest}", of?)).filter(|first| *first <= at);
    match bucket {
        "hour" => Some(Millis(at.0 - at.0 % 3_600_000)),
        // 1970-01-01 was a Thursday.
        "week" => Some(Millis(day.saturating_sub((day + 3) % 7) * DAY_MS)),
        "month" => first(text.get(..7), "-01T00:00:00Z"),
        "year" => first(text.get(..4), "-01-01T00:00:00Z"),
        _ => None,
    }
    .unwrap_or(Millis(day * DAY_MS))
}

fn word(
    query: &Query,
    name: &str,
    words: &[&'static str],
    default: &'static str,
) -> Result<&'static str, ApiError> {
    Ok(query.word(name, words)?.unwrap_or(default))
}

fn parse_time(query: &Query, name: &str) -> Result<Option<Millis>, ApiError> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let time = parse_rfc3339(text).ok_or_else(|| {
        ApiError::bad_request("bad_parameter", format!("`{name}` must be a time like 2026-01-31T00:00:00Z"))
    })?;
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_people_expect() {
        let at = parse_rfc3339("2026-11-21T13:45:10Z").unwrap();
        for (bucket, expected) in [
            ("hour", "2026-11-21T13:00:00.000Z"),
            ("day", "2026-11-21T00:00:00.000Z"),
            ("week", "2026-11-16T00:00:00.000Z"),
            ("month", "2026-11-01T00:00:00.000Z"),
            ("year", "2026-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(bucket_start(bucket, at)), expected);
            assert_eq!(bucket_start(bucket, bucket_start(bucket, at)), bucket_start(bucket, at));
        }
        for bucket in BUCKETS {
            assert_eq!(bucket_start(bucket, Millis(0)), Millis(0));
            bucket_start(bucket, Millis::MAX);
        }
    }
}
