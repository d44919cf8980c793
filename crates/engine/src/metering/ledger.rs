//! The ledger of usage: sheets of worker and job time per endpoint and hour, folded into days after 35 days and deleted
//! after 400.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use longshore_model::{EndpointId, Millis, Submitter, WorkerId};
use serde::{Deserialize, Serialize};

use super::job_use::{self, JobUsage};
use crate::StoredJson;
use crate::owner_use::Use;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Age of an hourly sheet at which it is folded into a daily one, which does not distinguish workers; in ms.
const HOURS_KEPT_MS: u64 = 35 * DAY_MS;
/// Age at which a sheet is deleted, in ms.
const DAYS_KEPT_MS: u64 = 400 * DAY_MS;
/// How long the last metered moment of a worker stays in memory after it, in ms.
const WORKER_KEPT_MS: u64 = 7 * DAY_MS;
/// Limit of the entries of one sheet, beyond which the time of further workers is added to entries without a worker.
const WORKERS_MAX: usize = 1_000;

/// The properties of a worker that its price depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageKind {
    /// The id of the template that the worker was started from; empty if the template is deleted.
    pub template_id: String,
    /// The image of that template; empty if the template is deleted.
    pub image_name: String,
    /// The type of the worker's first GPU; empty without a GPU.
    pub gpu_type_id: String,
    /// The number of the worker's GPUs.
    pub gpu_count: usize,
}

/// Worker time of one kind of worker, or of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The worker; `None` in daily sheets and for workers over the limit of a sheet.
    #[serde(default)]
    pub worker: Option<WorkerId>,
    /// The kind of the worker; its members stand beside the others in the JSON object.
    #[serde(flatten)]
    pub kind: UsageKind,
    /// Worker time, in ms.
    pub ms: u64,
    /// The last moment that is metered.
    until: Millis,
}

/// The worker and job time of one endpoint in an hour or a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSheet {
    /// The endpoint of the workers and jobs.
    pub endpoint: EndpointId,
    /// The begin of the hour or day, in UTC.
    pub from: Millis,
    /// Length of the span in ms: an hour or a day.
    pub span_ms: u64,
    /// Worker time, one entry per worker and kind.
    pub usages: Vec<Usage>,
    /// The jobs that ended, one entry per key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobUsage>,
}

impl UsageSheet {
    fn empty(endpoint: EndpointId, from: Millis, span_ms: u64) -> Self {
        Self { endpoint, from, span_ms, usages: Vec::new(), jobs: Vec::new() }
    }

    /// Returns the id of the sheet's row. Ids sort by time.
    fn id(&self) -> String {
        let Self { endpoint, from, span_ms, .. } = self;
        format!("{:013}-{}-{endpoint}", from.0, span_ms / HOUR_MS)
    }

    /// Adds worker time to the entry of the same worker and kind.
    fn add(&mut self, worker: Option<&WorkerId>, kind: &UsageKind, ms: u64, until: Millis) {
        let is_same = |usage: &&mut Usage| usage.worker.as_ref() == worker && usage.kind == *kind;
        if let Some(usage) = self.usages.iter_mut().find(is_same) {
            usage.ms += ms;
            usage.until = usage.until.max(until);
        } else if worker.is_some() && self.usages.len() >= WORKERS_MAX {
            self.add(None, kind, ms, until);
        } else {
            self.usages.push(Usage { worker: worker.cloned(), kind: kind.clone(), ms, until });
        }
    }
}

/// How far a worker is metered.
#[derive(Debug)]
struct Metered {
    /// The kind from the first metering, which later ones do not change.
    kind: UsageKind,
    /// The last metered moment.
    until: Millis,
}

/// All sheets in memory, and which of their rows are stale.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By row id.
    sheets: BTreeMap<String, UsageSheet>,
    workers: BTreeMap<WorkerId, Metered>,
    /// The last metered moment of the workers over the limits of stored sheets, by endpoint and kind. They have no entries of their own.
    unnamed: BTreeMap<(EndpointId, UsageKind), Millis>,
    /// The ids of sheets that changed since they were written.
    changed: BTreeSet<String>,
    /// The ids of rows whose sheet is dropped.
    unwanted: BTreeSet<String>,
}

impl Ledger {
    /// Loads the rows that an earlier server wrote. An invalid row is skipped and stays in the store.
    pub(super) fn load(rows: impl IntoIterator<Item = StoredJson>) -> Self {
        let mut ledger = Self::default();
        for row in rows {
            match serde_json::from_slice::<UsageSheet>(&row.json) {
                Ok(sheet) if sheet.id() == row.id => ledger.insert(sheet),
                _ => tracing::warn!(id = %row.id, "invalid usage row skipped"),
            }
        }
        ledger
    }

    /// Adds a stored sheet, and learns from it how far its workers are metered.
    fn insert(&mut self, sheet: UsageSheet) {
        for Usage { worker, kind, until, .. } in &sheet.usages {
            let Some(worker) = worker else {
                if sheet.span_ms == HOUR_MS {
                    let last = self.unnamed.entry((sheet.endpoint, kind.clone())).or_insert(*until);
                    *last = (*last).max(*until);
                }
                continue;
            };
            let known = self.workers.entry(worker.clone());
            let known = known.or_insert_with(|| Metered { kind: kind.clone(), until: *until });
            if known.until < *until {
                *known = Metered { kind: kind.clone(), until: *until };
            }
        }
        self.sheets.insert(sheet.id(), sheet);
    }

    /// Meters a worker that ran from `since` to `to`. Time that was metered before is not metered again, also by an
    /// earlier server; time without a server is made up for. The kind of the first metering counts.
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
        // A wrong start time adds 35 days at most.
        let kind = known.kind.clone();
        let unnamed = self.unnamed.get(&(endpoint, kind.clone())).copied().unwrap_or(known.until);
        let mut from = known.until.max(unnamed).max(Millis(to.0.saturating_sub(HOURS_KEPT_MS)));
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

    /// Meters jobs that ended, in the hour of `now`.
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

    /// Folds hourly sheets over 35 days old into daily ones, drops sheets over 400 days old, and forgets workers that
    /// were not metered for 7 days.
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

    /// Adds an hourly sheet to the sheet of its day.
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

    /// Returns the rows to write and the ids of the rows to delete, and counts both as done.
    pub(super) fn take_unwritten(&mut self) -> (Vec<StoredJson>, Vec<String>) {
        let changed = std::mem::take(&mut self.changed);
        let sheets = changed.iter().filter_map(|id| self.sheets.get(id));
        let row = |sheet: &UsageSheet| {
            // Numbers and texts always have a JSON form.
            let json = serde_json::to_vec(sheet).ok()?;
            Some(StoredJson { id: sheet.id(), json: Bytes::from(json) })
        };
        (sheets.filter_map(row).collect(), std::mem::take(&mut self.unwanted).into_iter().collect())
    }

    /// Marks rows that [`Ledger::take_unwritten`] returned and that could not be written as unwritten again.
    pub(super) fn restore_unwritten(&mut self, rows: Vec<StoredJson>, unwanted: Vec<String>) {
        self.changed.extend(rows.into_iter().map(|row| row.id));
        self.unwanted.extend(unwanted);
    }

    /// Returns the sheets that overlap the time from `from` to `to`, oldest first.
    pub(super) fn between(&self, from: Millis, to: Millis) -> Vec<UsageSheet> {
        let within = |sheet: &&UsageSheet| sheet.from < to && sheet.from + sheet.span_ms > from;
        // The ids begin with the start, and no sheet is longer than a day.
        let first = format!("{:013}", from.0.saturating_sub(DAY_MS));
        self.sheets.range(first..).map(|(_, sheet)| sheet).filter(within).cloned().collect()
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

        /// Begin of the sheet in minutes since [`NOON`], worker, and metered minutes, of every entry.
        fn minutes(&self) -> Vec<(u64, Option<&str>, u64)> {
            let mut entries = Vec::new();
            for sheet in self.sheets.values() {
                let at = (sheet.from.0 / 60_000).wrapping_sub(NOON.0 / 60_000);
                entries.extend(
                    sheet
                        .usages
                        .iter()
                        .map(|usage| (at, usage.worker.as_ref().map(WorkerId::as_str), usage.ms / 60_000)),
                );
            }
            entries
        }

        /// The ledger that the next server loads.
        fn reloaded(&self) -> Self {
            let rows = self
                .sheets
                .values()
                .map(|sheet| StoredJson { id: sheet.id(), json: serde_json::to_vec(sheet).unwrap().into() });
            Self::load(rows.collect::<Vec<_>>())
        }
    }

    #[test]
    fn time_is_metered_once_and_by_the_hour() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 50, 55);
        ledger.ran("w1", 50, 55);
        ledger.ran("w1", 50, 130);
        ledger.ran("w2", 125, 127);
        let minutes =
            [(0, Some("w1"), 10), (60, Some("w1"), 60), (120, Some("w1"), 10), (120, Some("w2"), 2)];
        assert_eq!(ledger.minutes(), minutes);
        let (rows, unwanted) = ledger.take_unwritten();
        assert_eq!((rows.len(), unwanted.len()), (3, 0));
        ledger.ran("w1", 50, 131);
        let (changed, _) = ledger.take_unwritten();
        assert_eq!(changed.len(), 1, "only the changed sheet is written again");
        ledger.restore_unwritten(changed, unwanted);
        assert_eq!(ledger.take_unwritten().0.len(), 1);
    }

    #[test]
    fn a_worker_over_the_limit_of_a_sheet_is_metered_once_also_by_the_next_server() {
        let mut ledger = Ledger::default();
        let all = |ledger: &mut Ledger, to| {
            for number in 0..WORKERS_MAX + 3 {
                ledger.ran(&format!("w{number}"), 0, to);
            }
        };
        let total = |ledger: &Ledger| ledger.minutes().iter().map(|(.., minutes)| minutes).sum::<u64>();
        all(&mut ledger, 10);
        let mut next = ledger.reloaded();
        all(&mut next, 10);
        assert_eq!(total(&next), 10 * (WORKERS_MAX as u64 + 3));
        all(&mut next, 12);
        next.ran("later", 11, 12);
        assert_eq!(total(&next), 12 * (WORKERS_MAX as u64 + 3) + 1);
    }

    #[test]
    fn the_time_without_a_server_is_made_up_for() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 0, 10);
        let mut next = ledger.reloaded();
        next.meter(endpoint(), &worker("w1"), || kind("another kind"), at(0), at(30));
        assert_eq!(next.minutes(), [(0, Some("w1"), 30)]);
        assert_eq!(next.reloaded().minutes(), next.minutes());
    }

    #[test]
    fn ended_jobs_are_metered_by_key_and_folded_into_days() {
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
        let mut next = ledger.reloaded();
        assert_eq!(sums(&next), sums(&ledger));
        next.fold(at(180) + HOURS_KEPT_MS);
        assert_eq!(sums(&next), [(1, 3, 60), (2, 1, 20)]);
    }

    #[test]
    fn old_hours_are_folded_into_days_and_old_days_deleted() {
        let mut ledger = Ledger::default();
        ledger.ran("w1", 0, 90);
        ledger.ran("w2", 60, 70);
        let before = NOON.0 % DAY_MS / 60_000;
        ledger.fold(at(0) + HOURS_KEPT_MS);
        assert_eq!(ledger.minutes().len(), 3, "not yet");
        ledger.fold(at(120) + HOURS_KEPT_MS);
        assert_eq!(ledger.minutes(), [(0_u64.wrapping_sub(before), None, 100)]);
        assert_eq!(ledger.take_unwritten().1.len(), 2);
        let mut next = ledger.reloaded();
        next.fold(at(0) + DAYS_KEPT_MS + DAY_MS);
        assert_eq!((next.minutes().len(), next.take_unwritten().1.len()), (0, 1));
    }

    #[test]
    fn the_number_of_workers_of_a_sheet_is_limited() {
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
        fn the_sum_does_not_depend_on_when_time_is_metered(
            moments in prop::collection::vec(0..600_u64, 0..20),
            restarts in prop::collection::vec(any::<bool>(), 20),
        ) {
            let mut ledger = Ledger::default();
            for (&moment, &restart) in moments.iter().zip(&restarts) {
                ledger.ran("w1", 0, moment);
                if restart {
                    ledger = ledger.reloaded();
                }
            }
            ledger.ran("w1", 0, 600);
            prop_assert_eq!(ledger.minutes().iter().map(|(_, _, minutes)| minutes).sum::<u64>(), 600);
        }

        #[test]
        fn no_bytes_of_a_row_cause_a_panic(bytes in mutated(Just(r#"{"endpoint":"0123456789abcd","from":3600000,"spanMs":3600000,"usages":[{"worker":"w","templateId":"","imageName":"","gpuTypeId":"","gpuCount":1,"ms":5,"until":3600005}],"jobs":[{"owner":1,"key":"admin","jobs":1,"ms":5}]}"#), &[b"\"", b"null", b"18446744073709551615"])) {
            let id = "0000003600000-1-0123456789abcd".to_owned();
            let mut ledger = Ledger::load([StoredJson { id, json: bytes.into() }]);
            ledger.ran("w1", 0, 10);
            ledger.fold(at(0) + DAYS_KEPT_MS);
            ledger.between(Millis(0), Millis(u64::MAX));
        }
    }
}
