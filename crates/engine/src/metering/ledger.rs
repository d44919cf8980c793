//! Worker time by the hour: what is metered, what is written, what is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use longshore_model::{EndpointId, Millis, Submitter, WorkerId};
use serde::{Deserialize, Serialize};

use super::job_use::{self, JobUsage};
use crate::StoredJson;
use crate::owner_use::Use;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// For so long time is kept by the hour and the worker, then by the day.
const HOURS_KEPT_MS: u64 = 35 * DAY_MS;
/// For so long it is kept at all.
const DAYS_KEPT_MS: u64 = 400 * DAY_MS;
/// For so long it is remembered until when a worker was metered that nobody has seen since.
const WORKER_KEPT_MS: u64 = 7 * DAY_MS;
/// The most workers of one endpoint that are told apart in one hour.
const WORKERS_MAX: usize = 1_000;

/// What a worker is, for whoever pays for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageKind {
    /// The template that it was started from.
    pub template_id: String,
    /// The image of that template.
    pub image_name: String,
    /// The type of its GPUs; empty if it has none.
    pub gpu_type_id: String,
    /// How many GPUs it has.
    pub gpu_count: usize,
}

/// Worker time of one kind of worker, or of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Which worker; none where they are not told apart any more.
    #[serde(default)]
    pub worker: Option<WorkerId>,
    /// What it is.
    #[serde(flatten)]
    pub kind: UsageKind,
    /// For how long, in milliseconds.
    pub ms: u64,
    /// The last moment that is counted in.
    until: Millis,
}

/// The worker time of one endpoint in an hour or in a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSheet {
    /// Whose workers.
    pub endpoint: EndpointId,
    /// When the span began, in UTC.
    pub from: Millis,
    /// How long it is.
    pub span_ms: u64,
    /// What there was.
    pub usages: Vec<Usage>,
    /// The jobs that ended, by who submitted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobUsage>,
}

impl UsageSheet {
    fn empty(endpoint: EndpointId, from: Millis, span_ms: u64) -> Self {
        Self { endpoint, from, span_ms, usages: Vec::new(), jobs: Vec::new() }
    }

    /// Ids sort by time, the hours of a day beside the day.
    fn id(&self) -> String {
        let Self { endpoint, from, span_ms, .. } = self;
        format!("{:013}-{}-{endpoint}", from.0, span_ms / HOUR_MS)
    }

    fn add(&mut self, worker: Option<&WorkerId>, kind: &UsageKind, ms: u64, until: Millis) {
        let same = |usage: &&mut Usage| usage.worker.as_ref() == worker && usage.kind == *kind;
        if let Some(usage) = self.usages.iter_mut().find(same) {
            usage.ms += ms;
            usage.until = usage.until.max(until);
        } else if worker.is_some() && self.usages.len() >= WORKERS_MAX {
            self.add(None, kind, ms, until);
        } else {
            self.usages.push(Usage { worker: worker.cloned(), kind: kind.clone(), ms, until });
        }
    }
}

/// A worker that was metered before.
#[derive(Debug)]
struct Metered {
    kind: UsageKind,
    until: Millis,
}

/// Every sheet that is kept.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sheets: BTreeMap<String, UsageSheet>,
    workers: BTreeMap<WorkerId, Metered>,
    /// Sheets that are not written as they are now.
    changed: BTreeSet<String>,
    /// Sheets that are written and not wanted any more.
    unwanted: BTreeSet<String>,
}

impl Ledger {
    /// What an earlier server wrote. A record that makes no sense is left where it is.
    pub(super) fn load(records: impl IntoIterator<Item = StoredJson>) -> Self {
        let mut ledger = Self::default();
        for record in records {
            match serde_json::from_slice::<UsageSheet>(&record.json) {
                Ok(sheet) if sheet.id() == record.id => ledger.know(sheet),
                _ => {
                    tracing::warn!(id = %record.id, "a record of worker time makes no sense; it is left out");
                }
            }
        }
        ledger
    }

    fn know(&mut self, sheet: UsageSheet) {
        for Usage { worker, kind, until, .. } in &sheet.usages {
            let Some(worker) = worker else { continue };
            let known = self.workers.entry(worker.clone());
            let known = known.or_insert_with(|| Metered { kind: kind.clone(), until: *until });
            if known.until < *until {
                *known = Metered { kind: kind.clone(), until: *until };
            }
        }
        self.sheets.insert(sheet.id(), sheet);
    }

    /// The worker ran from `since` to `to`. What of it was counted before is not counted again, whoever counted it: a
    /// server that was not there for a while makes up for it. What kind it is, is what was said first.
    pub(super) fn meter(
        &mut self,
        endpoint: EndpointId,
        worker: &WorkerId,
        kind: impl FnOnce() -> UsageKind,
        since: Millis,
        to: Millis,
    ) {
        let known =
            self.workers.entry(worker.clone()).or_insert_with(|| Metered { kind: kind(), until: since });
        // No note is believed that would fill years.
        let (kind, mut from) =
            (known.kind.clone(), known.until.max(Millis(to.0.saturating_sub(HOURS_KEPT_MS))));
        known.until = known.until.max(to);
        while from < to {
            let hour = Millis(from.0 - from.0 % HOUR_MS);
            let end = to.min(hour + HOUR_MS);
            let empty = UsageSheet::empty(endpoint, hour, HOUR_MS);
            let id = empty.id();
            let sheet = self.sheets.entry(id.clone()).or_insert(empty);
            sheet.add(Some(worker), &kind, end.since(from), end);
            self.changed.insert(id);
            from = end;
        }
    }

    /// Jobs of an endpoint ended by `now`.
    pub(super) fn meter_jobs(
        &mut self,
        endpoint: EndpointId,
        used: impl IntoIterator<Item = (Submitter, Use)>,
        now: Millis,
    ) {
        let empty = UsageSheet::empty(endpoint, Millis(now.0 - now.0 % HOUR_MS), HOUR_MS);
        let id = empty.id();
        let sheet = self.sheets.entry(id.clone()).or_insert(empty);
        for (by, used) in used {
            job_use::add(&mut sheet.jobs, by, used);
        }
        self.changed.insert(id);
    }

    /// Makes days of old hours, and forgets what is older still.
    pub(super) fn fold(&mut self, now: Millis) {
        let age_ms = |sheet: &UsageSheet| now.since(sheet.from + sheet.span_ms);
        self.workers.retain(|_, metered| now.since(metered.until) < WORKER_KEPT_MS);
        let old = |sheet: &&UsageSheet| {
            age_ms(sheet) >= if sheet.span_ms == HOUR_MS { HOURS_KEPT_MS } else { DAYS_KEPT_MS }
        };
        let old: Vec<String> = self.sheets.values().filter(old).map(UsageSheet::id).collect();
        for id in old {
            let Some(sheet) = self.sheets.remove(&id) else { continue };
            self.changed.remove(&id);
            self.unwanted.insert(id);
            if age_ms(&sheet) < DAYS_KEPT_MS {
                self.add_to_day(&sheet);
            }
        }
    }

    fn add_to_day(&mut self, hour: &UsageSheet) {
        let from = Millis(hour.from.0 - hour.from.0 % DAY_MS);
        let empty = UsageSheet::empty(hour.endpoint, from, DAY_MS);
        let id = empty.id();
        let day = self.sheets.entry(id.clone()).or_insert(empty);
        for usage in &hour.usages {
            day.add(None, &usage.kind, usage.ms, usage.until);
        }
        for jobs in &hour.jobs {
            job_use::add_entry(&mut day.jobs, jobs);
        }
        self.changed.insert(id);
    }

    /// What has to be written and what removed; counts as done from now on.
    pub(super) fn take_unwritten(&mut self) -> (Vec<StoredJson>, Vec<String>) {
        let changed = std::mem::take(&mut self.changed);
        let sheets = changed.iter().filter_map(|id| self.sheets.get(id));
        let record = |sheet: &UsageSheet| {
            // Plain data under plain names: there is always JSON for it.
            let json = serde_json::to_vec(sheet).ok()?;
            Some(StoredJson { id: sheet.id(), json: Bytes::from(json) })
        };
        (sheets.filter_map(record).collect(), std::mem::take(&mut self.unwanted).into_iter().collect())
    }

    /// What was taken could not be written.
    pub(super) fn give_back(&mut self, records: Vec<StoredJson>, unwanted: Vec<String>) {
        self.changed.extend(records.into_iter().map(|record| record.id));
        self.unwanted.extend(unwanted);
    }

    /// Every sheet that reaches into the time from `from` to `to`, oldest first.
    pub(super) fn between(&self, from: Millis, to: Millis) -> Vec<UsageSheet> {
        let within = |sheet: &&UsageSheet| sheet.from < to && sheet.from + sheet.span_ms > from;
        self.sheets.values().filter(within).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{cases, mutated};
    use longshore_model::{KeyId, OwnerNo};
    use proptest::prelude::*;

    use super::*;

    const NOON: Millis = Millis(1_800_000_000_000 - 1_800_000_000_000 % DAY_MS + DAY_MS / 2);

    fn endpoint() -> EndpointId {
        EndpointId::mint(1)
    }

    fn worker(name: &str) -> WorkerId {
        name.parse().unwrap()
    }

    fn kind(gpu: &str) -> UsageKind {
        UsageKind { gpu_type_id: gpu.into(), gpu_count: usize::from(!gpu.is_empty()), ..UsageKind::default() }
    }

    fn at(minutes: u64) -> Millis {
        NOON + minutes * 60_000
    }

    impl Ledger {
        fn ran(&mut self, name: &str, since: u64, to: u64) {
            self.meter(endpoint(), &worker(name), || kind("L4"), at(since), at(to));
        }

        /// Minutes by sheet and worker.
        fn minutes(&self) -> Vec<(u64, Option<&str>, u64)> {
            let mut lines = Vec::new();
            for sheet in self.sheets.values() {
                let at = (sheet.from.0 / 60_000).wrapping_sub(NOON.0 / 60_000);
                lines.extend(
                    sheet
                        .usages
                        .iter()
                        .map(|usage| (at, usage.worker.as_ref().map(WorkerId::as_str), usage.ms / 60_000)),
                );
            }
            lines
        }

        /// As the next server sees it.
        fn again(&self) -> Self {
            let records = self
                .sheets
                .values()
                .map(|sheet| StoredJson { id: sheet.id(), json: serde_json::to_vec(sheet).unwrap().into() });
            Self::load(records.collect::<Vec<_>>())
        }
    }

    #[test]
    fn time_is_counted_once_and_by_the_hour() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 50, 55);
        ledger.ran("w1", 50, 55);
        ledger.ran("w1", 50, 130);
        ledger.ran("w2", 125, 127);
        let minutes =
            [(0, Some("w1"), 10), (60, Some("w1"), 60), (120, Some("w1"), 10), (120, Some("w2"), 2)];
        assert_eq!(ledger.minutes(), minutes);
        let (records, unwanted) = ledger.take_unwritten();
        assert_eq!((records.len(), unwanted.len()), (3, 0));
        ledger.ran("w1", 50, 131);
        let (changed, _) = ledger.take_unwritten();
        assert_eq!(changed.len(), 1, "only what changed is written again");
        ledger.give_back(changed, unwanted);
        assert_eq!(ledger.take_unwritten().0.len(), 1);
    }

    #[test]
    fn the_time_without_a_server_is_made_up_for() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 0, 10);
        let mut next = ledger.again();
        next.meter(endpoint(), &worker("w1"), || kind("another kind"), at(0), at(30));
        assert_eq!(next.minutes(), [(0, Some("w1"), 30)]);
        assert_eq!(next.again().minutes(), next.minutes());
    }

    #[test]
    fn jobs_that_ended_are_kept_by_key_and_folded_into_days() {
        let by = |owner| Submitter { owner: OwnerNo(owner), key: KeyId::from_number(7) };
        let one = Use { submitted: 5, ended: 1, served_ms: 20 };
        let mut ledger = Ledger::default();
        ledger.meter_jobs(endpoint(), [(by(1), one), (by(2), one)], at(0));
        ledger.meter_jobs(endpoint(), [(by(1), one)], at(5));
        ledger.meter_jobs(endpoint(), [(by(1), one)], at(61));
        let sums = |ledger: &Ledger| {
            let entries = ledger.sheets.values().flat_map(|sheet| &sheet.jobs);
            entries.map(|entry| (entry.owner.unwrap().0, entry.jobs, entry.ms)).collect::<Vec<_>>()
        };
        assert_eq!(sums(&ledger), [(1, 2, 40), (2, 1, 20), (1, 1, 20)]);
        let mut next = ledger.again();
        assert_eq!(sums(&next), sums(&ledger));
        next.fold(at(180) + HOURS_KEPT_MS);
        assert_eq!(sums(&next), [(1, 3, 60), (2, 1, 20)]);
    }

    #[test]
    fn old_hours_become_days_and_old_days_are_forgotten() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 0, 90);
        ledger.ran("w2", 60, 70);
        let before = NOON.0 % DAY_MS / 60_000;
        ledger.fold(at(0) + HOURS_KEPT_MS);
        assert_eq!(ledger.minutes().len(), 3, "not yet");
        ledger.fold(at(120) + HOURS_KEPT_MS);
        assert_eq!(ledger.minutes(), [(0_u64.wrapping_sub(before), None, 100)]);
        assert_eq!(ledger.take_unwritten().1.len(), 2);
        let mut next = ledger.again();
        next.fold(at(0) + DAYS_KEPT_MS + DAY_MS);
        assert_eq!((next.minutes().len(), next.take_unwritten().1.len()), (0, 1));
    }

    #[test]
    fn an_endpoint_that_starts_very_many_workers_fills_no_memory() {
        let mut ledger = Ledger::default();
        for n in 0..WORKERS_MAX as u64 + 50 {
            ledger.meter(endpoint(), &worker(&format!("w{n}")), || kind("L4"), at(0), at(1));
        }
        let minutes = ledger.minutes();
        assert_eq!(minutes.len(), WORKERS_MAX + 1);
        assert_eq!(minutes.last(), Some(&(0, None, 50)));
        ledger.fold(at(0) + WORKER_KEPT_MS + HOUR_MS);
        assert!(ledger.workers.is_empty());
    }

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn however_often_it_is_looked_at_the_sum_is_the_same(
            looks in prop::collection::vec(0..600_u64, 0..20),
            restarts in prop::collection::vec(any::<bool>(), 20),
        ) {
            let mut ledger = Ledger::default();
            for (&look, &restart) in looks.iter().zip(&restarts) {
                ledger.ran("w1", 0, look);
                if restart {
                    ledger = ledger.again();
                }
            }
            ledger.ran("w1", 0, 600);
            prop_assert_eq!(ledger.minutes().iter().map(|(_, _, minutes)| minutes).sum::<u64>(), 600);
        }

        #[test]
        fn any_bytes_on_disk_are_survived(bytes in mutated(Just(r#"{"endpoint":"0123456789abcd","from":3600000,"spanMs":3600000,"usages":[{"worker":"w","templateId":"","imageName":"","gpuTypeId":"","gpuCount":1,"ms":5,"until":3600005}],"jobs":[{"owner":1,"key":"admin","jobs":1,"ms":5}]}"#), &[b"\"", b"null", b"18446744073709551615"])) {
            let id = "0000003600000-1-0123456789abcd".to_owned();
            let mut ledger = Ledger::load([StoredJson { id, json: bytes.into() }]);
            ledger.ran("w1", 0, 10);
            ledger.fold(at(0) + DAYS_KEPT_MS);
            ledger.between(Millis(0), Millis(u64::MAX));
        }
    }
}
