//! One reading of the metrics, and the figures of each endpoint between two readings.

use std::collections::BTreeMap;
use std::time::Instant;

use longshore_client::{Client, ClientError};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::reasons::Reason;
use crate::exit::{CommandResult, cannot};
use crate::metrics::{EndpointNumbers, endpoints, taken_at_s};

/// One reading of the metrics.
pub(super) struct Reading {
    at: Instant,
    /// The server's time of the reading, if reported.
    taken_at_s: Option<f64>,
    endpoints: BTreeMap<String, EndpointNumbers>,
}

impl Reading {
    pub(super) async fn take(client: &Client) -> Result<Self, ClientError> {
        let page = client.metrics().await?;
        Ok(Self { at: Instant::now(), taken_at_s: taken_at_s(&page), endpoints: endpoints(&page) })
    }

    /// Whether both readings are the same page of the server.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.taken_at_s.is_some() && self.taken_at_s == other.taken_at_s
    }

    /// The time between the answers of two readings.
    pub(super) fn elapsed_since(&self, before: &Self) -> std::time::Duration {
        self.at.duration_since(before.at)
    }

    /// Seconds since an earlier reading.
    fn seconds_since(&self, before: &Self) -> f64 {
        let said = self.taken_at_s.zip(before.taken_at_s).map(|(now, before)| now - before);
        let measured = || self.elapsed_since(before).as_secs_f64();
        said.filter(|seconds| *seconds > 0.0).unwrap_or_else(measured).max(0.001)
    }
}

/// The figures of one endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EndpointRow {
    pub(super) id: String,
    /// The slug, or the name of an endpoint without one.
    pub(super) name: String,
    pub(super) queued: u64,
    pub(super) running: u64,
    pub(super) done_per_s: f64,
    pub(super) failed_per_s: f64,
    /// The average time in the queue of the jobs that were taken between the readings; `None` if none was.
    pub(super) delay_ms: Option<u64>,
    /// The number of workers by condition.
    pub(super) workers: BTreeMap<String, u64>,
    /// The number of GPUs that the workers have.
    pub(super) gpus: u64,
    /// Why jobs wait; `None` if none waits or the reason is not known.
    pub(super) reason: Option<Reason>,
    /// The number of queued jobs at earlier readings, the oldest first.
    pub(super) trend: Vec<u64>,
}

impl EndpointRow {
    /// The number of workers in one condition.
    pub(super) fn workers(&self, condition: &str) -> u64 {
        self.workers.get(condition).copied().unwrap_or_default()
    }

    /// The row as JSON.
    pub(super) fn record(&self) -> CommandResult<Box<RawValue>> {
        let record = json!({
            "id": self.id, "endpoint": self.name, "queued": self.queued, "running": self.running,
            "donePerSecond": self.done_per_s, "failedPerSecond": self.failed_per_s, "delayMs": self.delay_ms,
            "workers": self.workers, "gpus": self.gpus, "cause": self.reason,
        });
        to_raw_value(&record).map_err(|error| cannot("write a row", error))
    }
}

/// One row per endpoint; the longest queue is first.
pub(super) fn rows(before: &Reading, now: &Reading) -> Vec<EndpointRow> {
    let seconds = now.seconds_since(before);
    let row = |(id, numbers): (&String, &EndpointNumbers)| {
        // Counters of a new endpoint, or after a restart of the server, start at 0.
        let fresh = EndpointNumbers::default();
        let earlier = before.endpoints.get(id).unwrap_or(&fresh);
        let grown = |of: fn(&EndpointNumbers) -> f64| (of(numbers) - of(earlier)).max(0.0);
        let rate = |of| (grown(of) / seconds * 10.0).round() / 10.0;
        let taken = grown(|of| of.delay_count);
        EndpointRow {
            id: id.clone(),
            name: numbers.name.clone(),
            queued: numbers.queued as u64,
            running: numbers.running as u64,
            done_per_s: rate(|of| of.completed),
            failed_per_s: rate(|of| of.failed),
            delay_ms: (taken > 0.0).then(|| (grown(|of| of.delay_sum_s) / taken * 1_000.0).round() as u64),
            workers: numbers.workers.iter().map(|(name, count)| (name.clone(), *count as u64)).collect(),
            gpus: numbers.gpus as u64,
            ..EndpointRow::default()
        }
    };
    let mut rows: Vec<EndpointRow> = now.endpoints.iter().map(row).collect();
    rows.sort_by(|a, b| b.queued.cmp(&a.queued).then_with(|| a.name.cmp(&b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_and_delays_come_from_two_readings() {
        let numbers = |completed, count, sum| EndpointNumbers {
            name: "a".into(),
            completed,
            delay_count: count,
            delay_sum_s: sum,
            ..EndpointNumbers::default()
        };
        let at = Instant::now();
        let reading = |after_s, numbers| Reading {
            at: at + Duration::from_secs(after_s),
            taken_at_s: None,
            endpoints: BTreeMap::from([("id".to_owned(), numbers)]),
        };
        let rows = rows(&reading(0, numbers(10.0, 10.0, 5.0)), &reading(2, numbers(15.0, 20.0, 6.0)));
        assert_eq!((rows[0].done_per_s, rows[0].delay_ms), (2.5, Some(100)));
        // The server's own times of the readings are preferred.
        let said = |after_s, taken_at_s| Reading {
            taken_at_s: Some(taken_at_s),
            ..reading(after_s, numbers(0.0, 0.0, 0.0))
        };
        assert!(said(2, 7.0).is_same(&said(1, 7.0)) && !said(2, 7.5).is_same(&said(1, 7.0)));
        assert_eq!(
            (
                said(9, 7.5).seconds_since(&said(1, 7.0)),
                reading(9, numbers(0.0, 0.0, 0.0)).seconds_since(&said(1, 7.0))
            ),
            (0.5, 8.0)
        );
    }
}
