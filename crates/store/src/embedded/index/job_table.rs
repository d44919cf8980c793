//! The places of every job's row, input and outcome.

use std::collections::BTreeMap;

use longshore_model::{EndpointNo, JobKey};

use super::record_ref::RecordRef;

/// Jobs per page: jobs of an endpoint with consecutive sequence numbers.
const JOBS: usize = 64;

/// The part of a job whose place is looked up.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Column {
    /// The row of the job.
    Row = 0,
    /// The job's stored input.
    Input = 1,
    /// The job's output and error.
    Outcome = 2,
}

/// The places by job, in the order of the keys. A page has an entry exactly as long as a place is in it.
#[derive(Debug, Default)]
pub(super) struct JobTable {
    pages: BTreeMap<u64, [JobRecords; 3]>,
}

/// One column of a page. An empty column allocates nothing.
#[derive(Debug, Default)]
struct JobRecords {
    places: Option<Box<[Option<RecordRef>; JOBS]>>,
    /// The number of places that are set.
    used: u8,
}

impl JobRecords {
    fn get(&self, job: usize) -> Option<RecordRef> {
        self.places.as_ref()?[job]
    }

    fn put(&mut self, job: usize, place: RecordRef) -> Option<RecordRef> {
        let before = self.places.get_or_insert_with(|| Box::new([None; JOBS]))[job].replace(place);
        self.used += u8::from(before.is_none());
        before
    }

    fn remove(&mut self, job: usize) -> Option<RecordRef> {
        let before = self.places.as_mut()?[job].take()?;
        self.used -= 1;
        if self.used == 0 {
            self.places = None;
        }
        Some(before)
    }
}

impl JobTable {
    /// Returns the place of a part of a job.
    pub fn get(&self, job: JobKey, column: Column) -> Option<RecordRef> {
        let (page, job) = split(job);
        self.pages.get(&page)?[column as usize].get(job)
    }

    /// Sets the place of a part of a job. Returns the place before.
    pub fn put(&mut self, job: JobKey, column: Column, place: RecordRef) -> Option<RecordRef> {
        let (page, job) = split(job);
        self.pages.entry(page).or_default()[column as usize].put(job, place)
    }

    /// Removes the place of a part of a job. Returns it.
    pub fn remove(&mut self, job: JobKey, column: Column) -> Option<RecordRef> {
        let (number, job) = split(job);
        let page = self.pages.get_mut(&number)?;
        let before = page[column as usize].remove(job);
        if page.iter().all(|places| places.used == 0) {
            self.pages.remove(&number);
        }
        before
    }

    /// Removes the places of the jobs from `first` to `last`, both included. Calls `removed` with each place.
    pub fn remove_all(&mut self, first: JobKey, last: JobKey, mut removed: impl FnMut(RecordRef)) {
        let ((first_page, first_job), (last_page, last_job)) = (split(first), split(last));
        let mut empty = Vec::new();
        for (&number, page) in self.pages.range_mut(first_page..=last_page) {
            let from = if number == first_page { first_job } else { 0 };
            let to = if number == last_page { last_job } else { JOBS - 1 };
            for places in page.iter_mut() {
                (from..=to).filter_map(|job| places.remove(job)).for_each(&mut removed);
            }
            if page.iter().all(|places| places.used == 0) {
                empty.push(number);
            }
        }
        for number in empty {
            self.pages.remove(&number);
        }
    }

    /// Returns the keys and row places of an endpoint's jobs after `after`, ascending.
    pub fn rows_after(&self, after: JobKey) -> impl Iterator<Item = (JobKey, RecordRef)> {
        let last = JobKey { endpoint: after.endpoint, seq: JobKey::SEQ_MAX };
        let pages = self.pages.range(split(after).0..=split(last).0);
        let rows = pages.flat_map(|(&number, page)| {
            (0..JOBS).filter_map(move |job| Some((join(number, job), page[Column::Row as usize].get(job)?)))
        });
        rows.skip_while(move |(job, _)| *job <= after)
    }

    /// Returns the keys and row places of all jobs, ascending.
    pub fn rows(&self) -> impl Iterator<Item = (JobKey, RecordRef)> {
        self.pages.iter().flat_map(|(&number, page)| {
            (0..JOBS).filter_map(move |job| Some((join(number, job), page[Column::Row as usize].get(job)?)))
        })
    }

    /// Returns the range of all keys of an endpoint.
    pub fn keys_of(endpoint: EndpointNo) -> std::ops::RangeInclusive<JobKey> {
        JobKey { endpoint, seq: 0 }..=JobKey { endpoint, seq: u64::MAX }
    }
}

fn split(job: JobKey) -> (u64, usize) {
    let row = job.to_row() as u64;
    (row / JOBS as u64, row as usize % JOBS)
}

fn join(page: u64, job: usize) -> JobKey {
    JobKey::from_row((page * JOBS as u64) as i64 + job as i64)
}
