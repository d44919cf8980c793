//! The jobs and starts that an endpoint's history has.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use longshore_client::Client;
use longshore_model::Millis;
use longshore_rehearse::{Interval, Quantiles, Trace};
use serde::Deserialize;

use super::{READERS, RehearseArgs, few_enough};
use crate::exit::{CommandError, CommandResult, cannot, needing};

/// The steps that are read, in ms: the shortest that reach back for 30 days.
const STEP_MS: u64 = 60_000;
/// The span of one request, in ms: a response has at most 1500 steps.
const PART_MS: u64 = 1_440 * STEP_MS;
/// The run time of jobs if none is recorded, in ms.
const RUN_MS: u64 = 1_000;
/// The span that is replayed unless another is given.
const LAST: Duration = Duration::from_hours(24);
/// The span from which start times are read beside a trace of a file.
const STARTS_OF: Duration = Duration::from_hours(30 * 24);
/// The longest span: the history has no older hours.
const LAST_MAX: Duration = Duration::from_hours(400 * 24);
const SERIES: &str = "submitted,runP50Ms,runP90Ms,runP95Ms,runP99Ms";

/// What the history says.
pub(super) struct Recorded {
    intervals: Vec<Interval>,
    /// How long workers took to start; `None` if none started.
    pub(super) starts: Option<Quantiles>,
}

/// A response of the history, with the series that a rehearsal reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    step_ms: u64,
    t: Vec<u64>,
    #[serde(default)]
    series: JobSeries,
    #[serde(default)]
    total: StartTotals,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSeries {
    submitted: Vec<Option<u64>>,
    run_p50_ms: Vec<Option<u64>>,
    run_p90_ms: Vec<Option<u64>>,
    run_p95_ms: Vec<Option<u64>>,
    run_p99_ms: Vec<Option<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StartTotals {
    start_p50_ms: Option<u64>,
    start_p95_ms: Option<u64>,
}

impl Recorded {
    /// Reads the start times, and the jobs unless they come from a file.
    pub(super) async fn read(client: &Client, args: &RehearseArgs) -> CommandResult<Self> {
        let last = args.last.unwrap_or(if args.trace.is_some() { STARTS_OF } else { LAST });
        if last > LAST_MAX {
            return Err(
                CommandError::usage("the history has at most 400 days").next("give at most --last 400d")
            );
        }
        let until =
            Millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64);
        let from = until - last.as_millis() as u64;
        let of = History::read(client, &args.endpoint, from, until, "startP50Ms,startP95Ms");
        let total = of.await?.total;
        let starts = total.start_p50_ms.map(|median| {
            let p95 = total.start_p95_ms.map(|ms| (0.95, ms));
            Quantiles::new(median, p95.as_slice())
        });
        let mut intervals = Vec::new();
        let mut part = from;
        while args.trace.is_none() && part < until {
            let end = until.min(part + PART_MS);
            let of = History::read(client, &args.endpoint, part, end, SERIES).await?;
            of.add_to(&mut intervals);
            part = end;
        }
        Ok(Self { intervals, starts })
    }

    /// Jobs like the recorded ones.
    pub(super) fn trace(&self, seed: u64) -> CommandResult<Trace> {
        few_enough(self.intervals.iter().map(|interval| interval.jobs).fold(0, u64::saturating_add))?;
        Ok(Trace::recorded(&self.intervals, RUN_MS, seed))
    }
}

impl History {
    async fn read(
        client: &Client,
        endpoint: &str,
        from: Millis,
        to: Millis,
        series: &str,
    ) -> CommandResult<Self> {
        let time = |at: Millis| Timestamp::from_millisecond(at.0 as i64).unwrap_or_default();
        let query = format!("from={}&to={}&step={STEP_MS}&series={series}", time(from), time(to));
        let text = client.history_text(endpoint, &query).await.map_err(needing(READERS, endpoint))?;
        serde_json::from_str(text.get()).map_err(|error| cannot("read the server's answer", error))
    }

    /// Adds its steps. A step that the response before has too, because both begin within it, is added once.
    fn add_to(&self, intervals: &mut Vec<Interval>) {
        let known_until = intervals.last().map_or(0, |last: &Interval| last.from.0 + last.length_ms);
        let series = &self.series;
        let value = |column: &[Option<u64>], at: usize| column.get(at).copied().flatten();
        for (at, from) in self.t.iter().enumerate().filter(|(_, from)| **from >= known_until) {
            let further = [(0.9, &series.run_p90_ms), (0.95, &series.run_p95_ms), (0.99, &series.run_p99_ms)];
            let further: Vec<(f64, u64)> =
                further.into_iter().filter_map(|(share, column)| Some((share, value(column, at)?))).collect();
            intervals.push(Interval {
                from: Millis(*from),
                length_ms: self.step_ms,
                jobs: value(&series.submitted, at).unwrap_or(0),
                run: value(&series.run_p50_ms, at).map(|median| Quantiles::new(median, &further)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_become_intervals_once() {
        let of = |times: &[u64], jobs: &[Option<u64>]| -> History {
            let runs: Vec<_> = jobs.iter().map(|jobs| jobs.map(|_| 70)).collect();
            serde_json::from_value(json!({
                "stepMs": 60_000, "t": times, "series": {"submitted": jobs, "runP50Ms": runs, "runP95Ms": runs},
                "total": {}, "marks": [],
            }))
            .unwrap()
        };
        let mut intervals = Vec::new();
        of(&[0, 60_000], &[Some(3), None]).add_to(&mut intervals);
        of(&[60_000, 120_000], &[Some(9), Some(4)]).add_to(&mut intervals);
        let seen: Vec<_> = intervals.iter().map(|one| (one.from.0, one.jobs)).collect();
        assert_eq!(seen, [(0, 3), (60_000, 0), (120_000, 4)]);
        assert_eq!(intervals[0].run, Some(Quantiles::new(70, &[(0.95, 70)])));
        assert_eq!(intervals[1].run, None);
    }
}
