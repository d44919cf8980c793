//! How long the metered workers had a job, from the history.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use longshore_engine::UsageSheet;
use longshore_history::{Buckets, FAST_STEP_MS, Field, HOUR_MS, History};
use longshore_model::{EndpointId, Millis};

use crate::HttpState;
use crate::management::workers::blocking;
use crate::wire::api_error::ApiError;

/// Hours that are read together: 62 days.
const HOURS_MAX: u64 = 62 * 24;
/// Hours of all endpoints that are read together, which bounds the memory. Fewer read the files more often.
const RECORDS_MAX: u64 = 32 * HOURS_MAX;

/// The time of each endpoint's workers with a job, in ms, by the start of the hour. Hours that the history does not know are missing.
#[derive(Default)]
pub(super) struct BusyTimes {
    hours: HashMap<EndpointId, BTreeMap<u64, u64>>,
}

impl BusyTimes {
    /// Reads the hours of these sheets. `None` without a history.
    ///
    /// # Errors
    ///
    /// 500 if reading panicked.
    pub(super) async fn read(state: &HttpState, sheets: &[&UsageSheet]) -> Result<Option<Self>, ApiError> {
        let Some(history) = state.history().map(Arc::clone) else { return Ok(None) };
        let mut spans: BTreeMap<String, (EndpointId, u64, u64)> = BTreeMap::new();
        for sheet in sheets.iter().filter(|sheet| !sheet.usages.is_empty()) {
            let (from, to) = (sheet.from.0, (sheet.from + sheet.span_ms).0);
            let span = spans.entry(sheet.endpoint.to_string()).or_insert((sheet.endpoint, from, to));
            (span.1, span.2) = (span.1.min(from), span.2.max(to));
        }
        let spans: Vec<_> = spans.into_values().collect();
        blocking(move || Some(Self::of(&history, &spans))).await
    }

    /// Reads the hours of the endpoints, each from one time to another.
    fn of(history: &History, spans: &[(EndpointId, u64, u64)]) -> Self {
        let mut times = Self::default();
        let first = spans.iter().map(|(_, from, _)| *from).min().unwrap_or_default();
        let last = spans.iter().map(|(_, _, to)| *to).max().unwrap_or_default();
        let mut from = first;
        while from < last {
            let to = last.min(from + HOURS_MAX * HOUR_MS);
            let within = spans.iter().filter(|(_, begin, end)| *begin < to && *end > from);
            let endpoints: Vec<_> = within.map(|(endpoint, ..)| *endpoint).collect();
            let together = (RECORDS_MAX / ((to - from) / HOUR_MS).max(1)).max(1) as usize;
            for group in endpoints.chunks(together) {
                let timeline = history.read(history.plan(from, to, HOUR_MS), group);
                timeline.endpoints.iter().for_each(|(endpoint, buckets)| times.add(*endpoint, buckets));
            }
            from = to;
        }
        times
    }

    fn add(&mut self, endpoint: EndpointId, buckets: &Buckets) {
        let span = buckets.span();
        let starts = (span.from..span.to).step_by(span.step_ms as usize);
        let known = starts.zip(buckets.slots());
        let known = known.filter_map(|(at, record)| Some((at, record.as_ref()?.get(Field::BusyMs))));
        self.hours.entry(endpoint).or_default().extend(known);
    }

    /// The time in a sheet; `None` if it is not known. The history counts in steps, and also workers that are not metered: it is
    /// at most the time of the sheet's workers.
    pub(super) fn in_sheet(&self, sheet: &UsageSheet) -> Option<u64> {
        let Millis(from) = sheet.from;
        let workers_ms: u64 = sheet.usages.iter().map(|usage| usage.ms).sum();
        let hours = self.hours.get(&sheet.endpoint);
        let known = hours.into_iter().flat_map(|hours| hours.range(from..from + sheet.span_ms));
        let sum = known.map(|(_, ms)| *ms).reduce(|one, other| one + other);
        // An hour that has just begun has no step yet.
        let is_short = workers_ms <= 2 * FAST_STEP_MS * sheet.usages.len() as u64;
        sum.or(is_short.then_some(0)).map(|ms| ms.min(workers_ms))
    }
}

#[cfg(test)]
mod tests {
    use longshore_history::{Activity, Observed, ObservedWorkers};
    use serde_json::json;

    use super::*;

    /// 2030-01-31T22:00:00Z.
    const HOUR: u64 = 1_896_127_200_000;

    /// A sheet with a worker that ran this long.
    fn sheet(from: u64, span_ms: u64, ms: u64) -> UsageSheet {
        let usage = json!({ "templateId": "", "imageName": "", "gpuTypeId": "", "gpuCount": 0, "ms": ms, "until": from });
        let endpoint = EndpointId::mint(1);
        let sheet = json!({ "endpoint": endpoint, "from": from, "spanMs": span_ms, "usages": [usage] });
        serde_json::from_value(sheet).unwrap()
    }

    #[test]
    fn the_busy_time_is_that_of_the_sheets_hours_and_unknown_without_history() {
        let history = History::in_memory(Millis(HOUR));
        let activity = Activity::default();
        for step in 1..=45 {
            let workers = ObservedWorkers { running: u32::from(step <= 40), ..ObservedWorkers::default() };
            let observed =
                Observed { endpoint: EndpointId::mint(1), activity: &activity, forwards: None, workers };
            history.sample(Millis(HOUR + step * FAST_STEP_MS), [observed]);
        }
        let day = HOUR - 22 * HOUR_MS;
        let spans = [(EndpointId::mint(1), day, HOUR + HOUR_MS), (EndpointId::mint(2), day, HOUR)];
        let times = BusyTimes::of(&history, &spans);
        assert_eq!(times.in_sheet(&sheet(HOUR, HOUR_MS, 90_000)), Some(80_000));
        assert_eq!(times.in_sheet(&sheet(day, 24 * HOUR_MS, 90_000)), Some(80_000));
        assert_eq!(times.in_sheet(&sheet(HOUR, HOUR_MS, 70_000)), Some(70_000), "at most the paid time");
        assert_eq!(times.in_sheet(&sheet(HOUR - HOUR_MS, HOUR_MS, 90_000)), None);
        assert_eq!(times.in_sheet(&sheet(HOUR - HOUR_MS, HOUR_MS, 900)), Some(0), "no step is over");
    }

    #[test]
    fn a_year_of_many_endpoints_is_read_in_parts() {
        let history = History::in_memory(Millis(HOUR));
        let activity = Activity::default();
        let endpoints: Vec<_> = (1..=80).map(EndpointId::mint).collect();
        let workers = ObservedWorkers { running: 1, ..ObservedWorkers::default() };
        let observed = |endpoint: &EndpointId| Observed {
            endpoint: *endpoint,
            activity: &activity,
            forwards: None,
            workers,
        };
        history.sample(Millis(HOUR + FAST_STEP_MS), endpoints.iter().map(observed));
        let spans: Vec<_> =
            endpoints.iter().map(|one| (*one, HOUR - 365 * 24 * HOUR_MS, HOUR + HOUR_MS)).collect();
        let times = BusyTimes::of(&history, &spans);
        let known = |one: &EndpointId| times.hours[one].iter().map(|(at, ms)| (*at, *ms)).collect::<Vec<_>>();
        assert!(endpoints.iter().all(|one| known(one) == [(HOUR, FAST_STEP_MS)]));
    }
}
