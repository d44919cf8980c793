//! `/v1/history` and `/v1/endpoints/{endpoint}/history`: what endpoints did over time.

mod columns;
mod range;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use longshore_engine::EndpointHandle;
use longshore_history::{Buckets, History, Span};
use longshore_model::{EndpointId, Permission};
use serde_json::{Map, Value, json};

use self::columns::{SERIES, Series};
use self::range::Range;
use super::access::may_read_endpoint;
use super::workers::blocking;
use super::{JsonResult, PathId};
use crate::HttpState;
use crate::gate::auth;
use crate::openapi::parameter::{Parameter, ParameterKind, query};
use crate::openapi::schema::{array_of, count, object, text, time};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

/// Endpoints that are read together. More need more memory, fewer read the files more often.
const TOGETHER: usize = 32;
/// The most numbers in one response with `by=endpoint`.
const NUMBERS_MAX: usize = 500_000;

const GROUPINGS: [&str; 1] = ["endpoint"];
const SPAN: [Parameter; 5] = [
    query("from", ParameterKind::Time, "the start of the time range; an hour before `to` by default"),
    query(
        "last",
        ParameterKind::Integer { min: 1, max: range::RANGE_MS_MAX, default: None },
        "in place of `from`: the length of the time range, in ms",
    ),
    query("to", ParameterKind::Time, "the end of the time range; now by default"),
    query(
        "step",
        ParameterKind::Integer { min: 1, max: range::RANGE_MS_MAX, default: None },
        "the time between two points, in ms; it is rounded up to what is stored, and so that there are at most 1500 points. \
         The default gives at most 300 points",
    ),
    query("series", ParameterKind::Text, "the names of the series, with commas between them; all by default"),
];
const OF_ONE: &[Parameter] = &SPAN;
const OF_ALL: &[Parameter] = &[
    SPAN[0],
    SPAN[1],
    SPAN[2],
    SPAN[3],
    SPAN[4],
    query(
        "by",
        ParameterKind::Word { words: &GROUPINGS, default: None },
        "`endpoint`: the series of each endpoint",
    ),
];

const ABOUT: &str = "Points are complete steps; `null` is a step of which nothing is known, because no server ran or the record \
    is gone. Steps of 2 s reach back 15 min, of 10 s 2 h, of a minute 30 days, of an hour 400 days; the step is rounded up \
    where finer ones do not reach back to `from`. Counts are per step. Percentiles are off by at most 12.3 %.";

/// The operations on history.
pub(super) fn group() -> Group {
    let operations = vec![
        Operation::get("History", "/v1/history", of_all)
            .summary("what the endpoints did over time, together or each")
            .about(ABOUT)
            .gives("History")
            .with(OF_ALL),
        Operation::get("EndpointHistory", "/v1/endpoints/{endpoint}/history", of_one)
            .summary("what an endpoint did over time")
            .about(ABOUT)
            .gives("History")
            .with(OF_ONE),
    ];
    let about = "What endpoints did over time: counts, times and workers.";
    Group { name: "History", about, operations, schemas: vec![("History", schema())] }
}

fn schema() -> Value {
    let number = json!({ "type": "number", "nullable": true });
    let cells = json!({ "type": "array", "nullable": true, "items": { "type": "array", "items": { "type": "integer" } } });
    let value = |series: &Series| if series.has_cells() { cells.clone() } else { number.clone() };
    let columns: Vec<_> =
        SERIES.iter().map(|series| (series.name, described(array_of(&value(series)), series))).collect();
    let totals: Vec<_> =
        SERIES.iter().map(|series| (series.name, described(value(series), series))).collect();
    let mut missing = time();
    missing["nullable"] = json!(true);
    let mark = object(
        &[
            ("at", time()),
            ("kind", json!({ "type": "string", "enum": ["version", "restart"] })),
            ("text", text()),
        ],
        &["at", "kind", "text"],
    );
    let one = object(
        &[("id", text()), ("series", object(&columns, &[])), ("total", object(&totals, &[]))],
        &["id", "series", "total"],
    );
    object(
        &[
            ("from", time()),
            ("to", time()),
            ("stepMs", count()),
            ("t", array_of(&count())),
            ("series", object(&columns, &[])),
            ("total", object(&totals, &[])),
            ("endpoints", array_of(&one)),
            ("marks", array_of(&mark)),
            ("missingBefore", missing),
        ],
        &["from", "to", "stepMs", "t", "marks", "missingBefore"],
    )
}

fn described(mut schema: Value, series: &Series) -> Value {
    schema["description"] = json!(series.about);
    schema
}

async fn of_one(
    State(state): State<HttpState>,
    PathId(id): PathId,
    uri: Uri,
    headers: HeaderMap,
) -> JsonResult {
    let (_, endpoint) = may_read_endpoint(&state, &headers, &id)?;
    let asked = Asked::of(&state, &uri)?;
    let record = endpoint.record();
    let versions = state.engine().catalog().versions(&record);
    let (mut answer, span) = asked.read(&state, vec![endpoint], false).await?;
    let mut marks = restarts(&mut answer);
    for version in versions {
        let Some(at) = version.entries.first().map(|entry| entry.at.0) else { continue };
        // The first version is the creation of the endpoint.
        if version.version > 1 && (span.from..span.to).contains(&at) {
            marks.push(json!({ "at": rfc3339(longshore_model::Millis(at)), "kind": "version", "text": format!("version {}", version.version) }));
        }
    }
    marks.sort_by_key(|mark| mark["at"].as_str().map(str::to_owned));
    answer.insert("marks".to_owned(), Value::Array(marks));
    Ok(Value::Object(answer).into())
}

async fn of_all(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> JsonResult {
    let key = auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?;
    let is_by_endpoint = Query::of(&uri)?.word("by", &GROUPINGS)?.is_some();
    let asked = Asked::of(&state, &uri)?;
    let now = auth::now_for(&key, &state);
    let endpoints = state.engine().endpoints();
    let readable =
        endpoints.into_iter().filter(|one| key.permits(Permission::ReadCatalog, Some(&one.id()), now));
    let (answer, _) = asked.read(&state, readable.collect(), is_by_endpoint).await?;
    Ok(Value::Object(answer).into())
}

/// The marks of an answer, to which others are added.
fn restarts(answer: &mut Map<String, Value>) -> Vec<Value> {
    match answer.remove("marks") {
        Some(Value::Array(marks)) => marks,
        _ => Vec::new(),
    }
}

/// What a request asks for.
struct Asked {
    history: Arc<History>,
    range: Range,
    series: Vec<&'static Series>,
}

impl Asked {
    fn of(state: &HttpState, uri: &Uri) -> Result<Self, ApiError> {
        let query = Query::of(uri)?;
        let series = columns::named(query.get("series"))?;
        let range = Range::of(&query, state.engine().now().0)?;
        let history = state.history().cloned();
        // Only a server that is made without a history, such as one of a test, has none.
        let history = history.unwrap_or_else(|| Arc::new(History::in_memory(state.engine().now())));
        Ok(Self { history, range, series })
    }

    /// The numbers that a point has, approximately.
    fn numbers(&self) -> usize {
        self.series.iter().map(|series| series.numbers()).sum()
    }

    /// Reads and renders the history of the endpoints: their sum, or each.
    async fn read(
        self,
        state: &HttpState,
        endpoints: Vec<EndpointHandle>,
        is_by_endpoint: bool,
    ) -> Result<(Map<String, Value>, Span), ApiError> {
        if is_by_endpoint && endpoints.len() * self.range.points() * self.numbers() > NUMBERS_MAX {
            let text = format!(
                "this would be more than {NUMBERS_MAX} numbers: ask for fewer `series`, a longer `step` or a shorter time"
            );
            return Err(ApiError::bad_request("bad_parameter", text));
        }
        let started_at = state.started_at().0;
        let created: Vec<_> = endpoints.iter().map(|one| (one.id(), one.record().created_at.0)).collect();
        blocking(move || self.render(&created, is_by_endpoint, started_at)).await
    }

    fn render(
        &self,
        created: &[(EndpointId, u64)],
        is_by_endpoint: bool,
        started_at: u64,
    ) -> (Map<String, Value>, Span) {
        let Range { from, to, step_ms } = self.range;
        let (mut sum, mut each, mut starts): (Option<Buckets>, Vec<Value>, Vec<u64>) =
            (None, Vec::new(), Vec::new());
        // The steps that are in memory change while groups are read, and all groups need the same span.
        let plan = self.history.plan(from, to, step_ms);
        let span = plan.span;
        let mut first_known = None;
        // Without an endpoint, the answer still has the starts.
        let groups: Vec<_> =
            if created.is_empty() { vec![created] } else { created.chunks(TOGETHER).collect() };
        for group in groups {
            let ids: Vec<_> = group.iter().map(|(id, _)| *id).collect();
            let timeline = self.history.read(plan, &ids);
            starts = timeline.starts;
            for (id, mut buckets) in timeline.endpoints {
                let created_at = group.iter().find(|(one, _)| *one == id).map_or(0, |(_, at)| *at);
                buckets.forget_before(created_at);
                let known = buckets.slots().iter().position(Option::is_some);
                first_known = first_known.into_iter().chain(known).min();
                if is_by_endpoint {
                    let (series, total) = columns::render(&self.series, &buckets);
                    each.push(json!({ "id": id, "series": series, "total": total }));
                } else if let Some(sum) = &mut sum {
                    sum.join(&buckets);
                } else {
                    sum = Some(buckets);
                }
            }
        }
        if starts.is_empty() && (span.from..span.to).contains(&started_at) {
            starts.push(started_at);
        }
        let mut answer = Map::new();
        let at = |ms| rfc3339(longshore_model::Millis(ms));
        answer.insert("from".to_owned(), json!(at(span.from)));
        answer.insert("to".to_owned(), json!(at(span.to)));
        answer.insert("stepMs".to_owned(), json!(span.step_ms));
        let times = (0..span.steps() as u64).map(|step| span.from + step * span.step_ms);
        answer.insert("t".to_owned(), times.collect());
        if is_by_endpoint {
            answer.insert("endpoints".to_owned(), Value::Array(each));
        } else {
            let (series, total) =
                columns::render(&self.series, &sum.unwrap_or_else(|| Buckets::unknown(span)));
            answer.insert("series".to_owned(), series);
            answer.insert("total".to_owned(), total);
        }
        let marks = starts
            .iter()
            .map(|start| json!({ "at": at(*start), "kind": "restart", "text": "the server started" }));
        answer.insert("marks".to_owned(), marks.collect());
        let missing = first_known.map_or(span.to, |first| span.from + first as u64 * span.step_ms);
        let missing = (missing > span.from).then(|| at(missing));
        answer.insert("missingBefore".to_owned(), json!(missing));
        (answer, span)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

    use longshore_history::{Activity, FAST_STEP_MS, MINUTE_MS, Observed, ObservedWorkers};
    use longshore_model::Millis;

    use super::*;

    const BEGIN: u64 = 1_896_127_200_000;

    /// Samples one endpoint without work at the end of a step.
    fn sample(history: &History, at: u64) {
        let (endpoint, activity) = (EndpointId::mint(1), &Activity::default());
        let workers = ObservedWorkers::default();
        history.sample(Millis(at), [Observed { endpoint, activity, forwards: None, workers }]);
    }

    /// Memory forgets the first step of the range while the groups are read.
    #[test]
    fn all_groups_have_the_same_steps_while_memory_moves_on() {
        let dir = tempfile::tempdir().unwrap();
        // With older minutes, steps that memory does not reach back to are read from files.
        std::fs::create_dir_all(dir.path().join("minutes")).unwrap();
        std::fs::write(dir.path().join("minutes/2030-01-30.day"), "").unwrap();
        let history = Arc::new(History::open(dir.path(), u64::MAX, Millis(BEGIN)).unwrap());
        let (now, is_over) = (AtomicU64::new(BEGIN), AtomicBool::new(false));
        let tick = || sample(&history, now.fetch_add(FAST_STEP_MS, SeqCst) + FAST_STEP_MS);
        (0..20 * MINUTE_MS / FAST_STEP_MS).for_each(|_| tick());
        let created: Vec<_> = (1..=4 * TOGETHER as u128).map(|one| (EndpointId::mint(one), 0)).collect();
        let mut steps_of_answers = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    tick();
                    std::thread::yield_now();
                }
            });
            for _ in 0..100 {
                let to = now.load(SeqCst);
                // A few steps after the first one in memory.
                let range = Range { from: to - 15 * MINUTE_MS + 4 * FAST_STEP_MS, to, step_ms: FAST_STEP_MS };
                let asked =
                    Asked { history: Arc::clone(&history), range, series: SERIES[..1].iter().collect() };
                let (answer, span) = asked.render(&created, true, 0);
                let each = answer["endpoints"].as_array().unwrap();
                let steps = each.iter().map(|one| one["series"]["submitted"].as_array().unwrap().len());
                steps_of_answers.push((span.steps(), steps.collect::<Vec<_>>()));
            }
            is_over.store(true, SeqCst);
        });
        for (expected, steps) in steps_of_answers {
            assert_eq!(steps, vec![expected; created.len()]);
        }
    }
}
