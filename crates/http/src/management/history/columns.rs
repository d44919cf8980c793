//! The series of a history: their names, and their values from records.

use longshore_history::{Buckets, Field, Histogram, Record};
use serde_json::{Map, Value, json};

use crate::wire::api_error::ApiError;

/// A figure that a history has for each step.
pub(super) struct Series {
    /// The name in requests and responses.
    pub(super) name: &'static str,
    /// What it says, for the document.
    pub(super) about: &'static str,
    value: Figure,
}

/// How the value of a series follows from a record.
enum Figure {
    /// A field as it is.
    Field(Field),
    /// The mean number, from a field that is a number times the ms that it was so.
    Mean(Field),
    /// The number of values in a histogram.
    Count(fn(&Record) -> &Histogram),
    /// A percentile of a histogram; unknown without a value.
    Percentile(fn(&Record) -> &Histogram, f64),
    /// The cells of a histogram. A response has them only if they are named.
    Cells(fn(&Record) -> &Histogram),
}

use Figure::{Cells, Count, Field as Of, Mean, Percentile};

const fn series(name: &'static str, value: Figure, about: &'static str) -> Series {
    Series { name, about, value }
}

/// The series in the order in which the document lists them.
pub(super) const SERIES: &[Series] = &[
    series("submitted", Of(Field::Submitted), "submits that were accepted"),
    series("completed", Of(Field::Completed), "jobs that a worker completed"),
    series("failed", Of(Field::Failed), "jobs that a worker failed, or that were lost too often"),
    series("failedHandler", Of(Field::FailedByHandler), "those of `failed` whose handler reported an error"),
    series(
        "failedWorkerLost",
        Of(Field::FailedByLoss),
        "those whose workers were lost, or did not confirm them, without a retry left",
    ),
    series("failedSize", Of(Field::FailedBySize), "those with an output, report or stream over its limit"),
    series("failedDamaged", Of(Field::FailedByDamage), "those of which the server stored something damaged"),
    series("timedOut", Of(Field::TimedOut), "jobs that ran longer than their timeout"),
    series("cancelled", Of(Field::Cancelled), "jobs that were cancelled or purged"),
    series("retried", Of(Field::Retried), "attempts that were repeated"),
    series("refused", Of(Field::Refused), "submits that the queue refused"),
    series("limitedRun", Of(Field::LimitedRun), "requests over a limit: those to `/run`"),
    series("limitedRunsync", Of(Field::LimitedRunsync), "those to `/runsync`"),
    series("limitedStatus", Of(Field::LimitedStatus), "those to `/status` and `/status-sync`"),
    series("limitedStream", Of(Field::LimitedStream), "those to `/stream`"),
    series("limitedCancel", Of(Field::LimitedCancel), "those to `/cancel` and `/retry`"),
    series("limitedPurgeQueue", Of(Field::LimitedPurgeQueue), "those to `/purge-queue`"),
    series("limitedOpenai", Of(Field::LimitedOpenai), "those to `/openai`"),
    series("limitedRequests", Of(Field::LimitedRequests), "those to `/requests`"),
    series("limitedWebhooks", Of(Field::LimitedWebhooks), "those to `/webhooks`"),
    series("limitedLb", Of(Field::LimitedLb), "those that would be forwarded to a worker"),
    series("queued", Of(Field::Queued), "waiting jobs at the end of the step"),
    series("queuedMax", Of(Field::QueuedMax), "the most waiting jobs; of several endpoints an upper bound"),
    series("oldestMs", Of(Field::OldestMs), "the longest wait of a job that still waited, in ms"),
    series("running", Mean(Field::RunningMs), "running jobs, the mean of the step"),
    series("runningMax", Of(Field::RunningMax), "the most running jobs; of several endpoints an upper bound"),
    series("delivered", Count(|of| &of.delay), "jobs that were handed to a worker, counted per attempt"),
    series(
        "metColdStart",
        Of(Field::MetColdStart),
        "those of `delivered` whose worker was started while they waited",
    ),
    series(
        "delayP50Ms",
        Percentile(|of| &of.delay, 0.5),
        "how long delivered jobs had waited, in ms: the median",
    ),
    series("delayP90Ms", Percentile(|of| &of.delay, 0.9), "the 90th percentile of that"),
    series("delayP95Ms", Percentile(|of| &of.delay, 0.95), "the 95th percentile of that"),
    series("delayP99Ms", Percentile(|of| &of.delay, 0.99), "the 99th percentile of that"),
    series("runP50Ms", Percentile(|of| &of.run, 0.5), "how long ended jobs ran, in ms: the median"),
    series("runP90Ms", Percentile(|of| &of.run, 0.9), "the 90th percentile of that"),
    series("runP95Ms", Percentile(|of| &of.run, 0.95), "the 95th percentile of that"),
    series("runP99Ms", Percentile(|of| &of.run, 0.99), "the 99th percentile of that"),
    series("startP50Ms", Percentile(|of| &of.start, 0.5), "how long workers started, in ms: the median"),
    series("startP95Ms", Percentile(|of| &of.start, 0.95), "the 95th percentile of that"),
    series("starts", Of(Field::Starts), "workers that became ready"),
    series("workersIdle", Of(Field::WorkersIdle), "idle workers at the end of the step"),
    series("workersRunning", Of(Field::WorkersRunning), "workers with a job at the end of the step"),
    series("workersStarting", Of(Field::WorkersStarting), "workers that start, at the end of the step"),
    series(
        "workersThrottled",
        Of(Field::WorkersThrottled),
        "workers that wait for a GPU or other room, at the end of the step",
    ),
    series(
        "workersUnhealthy",
        Of(Field::WorkersUnhealthy),
        "workers not started because earlier ones crashed",
    ),
    series("busyMs", Of(Field::BusyMs), "the time of workers with a job, in ms"),
    series("paidMs", Of(Field::PaidMs), "the time of all workers, in ms"),
    series("gpuMs", Of(Field::GpuMs), "the time of the workers' GPUs, in ms"),
    series(
        "gpuReadMs",
        Of(Field::GpuReadMs),
        "the time of those GPUs of which the driver said how much they computed, in ms",
    ),
    series("gpuBusyMs", Of(Field::GpuBusyMs), "the part of `gpuReadMs` in which they computed, in ms"),
    series("bytesIn", Of(Field::BytesIn), "bytes of inputs"),
    series("bytesOut", Of(Field::BytesOut), "bytes of outputs and chunks"),
    series("chunks", Of(Field::Chunks), "chunks of streams"),
    series("webhooksDelivered", Of(Field::CallsDelivered), "calls of webhooks that were accepted"),
    series("webhooksRetried", Of(Field::CallsRetried), "calls of webhooks that failed and are repeated"),
    series("webhooksFailed", Of(Field::CallsFailed), "calls of webhooks that were given up"),
    series(
        "answered1xx",
        Of(Field::Answered1xx),
        "forwarded requests by the status of the worker's response: upgraded connections",
    ),
    series("answered2xx", Of(Field::Answered2xx), "those with a status of 200 to 299"),
    series("answered3xx", Of(Field::Answered3xx), "those with a status of 300 to 399"),
    series("answered4xx", Of(Field::Answered4xx), "those with a status of 400 to 499"),
    series("answered5xx", Of(Field::Answered5xx), "those with a status of 500 or more"),
    series(
        "forwardsRefused",
        Of(Field::ForwardsRefused),
        "requests that the server answered in place of a worker",
    ),
    series(
        "sentAgain",
        Of(Field::SentAgain),
        "times that a request was sent to another worker, or over another connection",
    ),
    series(
        "firstByteP50Ms",
        Percentile(|of| &of.first_byte, 0.5),
        "from the choice of a worker to the head of its response, in ms: the median",
    ),
    series("firstByteP95Ms", Percentile(|of| &of.first_byte, 0.95), "the 95th percentile of that"),
    series(
        "delayCells",
        Cells(|of| &of.delay),
        "only if it is named: how long delivered jobs had waited, as pairs of the longest time of a cell in ms and the \
         number of jobs in it; ten cells a decade",
    ),
];

/// The series with these names; all without names.
pub(super) fn named(names: Option<&str>) -> Result<Vec<&'static Series>, ApiError> {
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return Ok(SERIES.iter().filter(|series| !series.has_cells()).collect());
    };
    let mut found: Vec<&Series> = Vec::new();
    for name in names.split(',').map(str::trim) {
        let Some(known) = SERIES.iter().find(|series| series.name == name) else {
            let shown: String = name.chars().take(40).collect();
            let all: Vec<_> = SERIES.iter().map(|series| series.name).collect();
            let text = format!("`series` has {shown:?}; the series are {}", all.join(", "));
            return Err(ApiError::bad_request("bad_parameter", text));
        };
        if !found.iter().any(|one| one.name == name) {
            found.push(known);
        }
    }
    Ok(found)
}

/// The columns of these series, and the values of the whole span.
pub(super) fn render(series: &[&'static Series], buckets: &Buckets) -> (Value, Value) {
    let (mut columns, mut totals) = (Map::new(), Map::new());
    let total = buckets.slots().iter().any(Option::is_some).then(|| buckets.total());
    for one in series {
        let column = buckets.slots().iter().map(|slot| one.value(slot.as_ref()));
        columns.insert(one.name.to_owned(), column.collect());
        totals.insert(one.name.to_owned(), one.value(total.as_ref()));
    }
    (Value::Object(columns), Value::Object(totals))
}

impl Series {
    /// Whether a value is a list of cells, and not a number.
    pub(super) fn has_cells(&self) -> bool {
        matches!(self.value, Cells(_))
    }

    /// The numbers that a value has, approximately.
    pub(super) fn numbers(&self) -> usize {
        if self.has_cells() { 40 } else { 1 }
    }

    /// The value of a record; null if nothing is known.
    fn value(&self, record: Option<&Record>) -> Value {
        let Some(record) = record else { return Value::Null };
        match &self.value {
            Figure::Field(field) => json!(record.get(*field)),
            Figure::Mean(field) => {
                let mean = record.get(*field) as f64 / record.get(Field::CoveredMs).max(1) as f64;
                // Hundredths are enough for a number of jobs.
                json!((mean * 100.0).round() / 100.0)
            }
            Figure::Count(histogram) => json!(histogram(record).count()),
            Figure::Percentile(histogram, share) => json!(histogram(record).percentile(*share)),
            Figure::Cells(histogram) => {
                histogram(record).cells().map(|(ms, jobs)| json!([ms, jobs])).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longshore_history::Span;

    use super::*;

    #[test]
    fn series_are_named_once_and_found() {
        let names: BTreeSet<_> = SERIES.iter().map(|series| series.name).collect();
        assert_eq!(names.len(), SERIES.len());
        assert_eq!(named(None).unwrap().len(), SERIES.len() - 1);
        let found: Vec<_> =
            named(Some("failed, queued,failed")).unwrap().iter().map(|one| one.name).collect();
        assert_eq!(found, ["failed", "queued"]);
        assert_eq!(named(Some("failed,evil")).err().unwrap().code(), "bad_parameter");
    }

    #[test]
    fn unknown_is_null_and_no_value_is_no_percentile() {
        let mut buckets = Buckets::unknown(Span::of(0, 4_000, 2_000));
        let mut record = Record::default();
        record.set(Field::Completed, 3);
        record.set(Field::RunningMs, 5_000);
        record.set(Field::CoveredMs, 2_000);
        record.run.add(100);
        buckets.add(2_000, &record);
        let (columns, total) =
            render(&named(Some("completed,running,runP50Ms,delayP50Ms")).unwrap(), &buckets);
        let expected = json!({ "completed": [null, 3], "running": [null, 2.5], "runP50Ms": [null, 100], "delayP50Ms": [null, null] });
        // The median of one time is within the bounds of its cell.
        let median = columns["runP50Ms"][1].as_u64().unwrap();
        assert!((88..=112).contains(&median));
        assert_eq!(
            (&columns["completed"], &columns["running"]),
            (&expected["completed"], &expected["running"])
        );
        assert_eq!((&columns["delayP50Ms"], total["completed"].as_u64()), (&expected["delayP50Ms"], Some(3)));
    }
}
