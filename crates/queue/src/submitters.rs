//! The submitters of a queue's jobs. Each submitter is stored once and counted, so that a packed row needs four bytes for
//! it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use longshore_model::Submitter;

/// The number of a submitter in the table. Valid while a job has this submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmitterNo(u32);

/// The submitters of all jobs, with the number of jobs of each. A submitter without jobs is removed. Derived from rows.
#[derive(Debug, Default)]
pub(crate) struct Submitters {
    entries: Vec<SubmitterEntry>,
    /// The numbers of unused entries.
    free: Vec<u32>,
    by_value: BTreeMap<Submitter, u32>,
    /// The entry of the last added job. Tried first: consecutive jobs often have the same submitter.
    latest: u32,
}

#[derive(Debug)]
struct SubmitterEntry {
    submitter: Submitter,
    jobs: u32,
}

impl Submitters {
    /// Counts one more job of a submitter, and returns its number.
    pub(crate) fn add_job(&mut self, submitter: Submitter) -> SubmitterNo {
        let latest = self.entries.get_mut(self.latest as usize);
        if let Some(entry) = latest.filter(|entry| entry.jobs > 0 && entry.submitter == submitter) {
            entry.jobs += 1;
            return SubmitterNo(self.latest);
        }
        let no = self.by_value.get(&submitter).copied().unwrap_or_else(|| self.add(submitter));
        self.entries[no as usize].jobs += 1;
        self.latest = no;
        SubmitterNo(no)
    }

    fn add(&mut self, submitter: Submitter) -> u32 {
        let entry = SubmitterEntry { submitter, jobs: 0 };
        let no = if let Some(no) = self.free.pop() {
            self.entries[no as usize] = entry;
            no
        } else {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        };
        self.by_value.insert(submitter, no);
        no
    }

    /// Counts one job less of a submitter. After its last job, its number may be given to another submitter.
    pub(crate) fn remove_job(&mut self, no: SubmitterNo) {
        let entry = &mut self.entries[no.0 as usize];
        assert!(entry.jobs > 0, "a job's submitter is counted");
        entry.jobs -= 1;
        if entry.jobs == 0 {
            self.by_value.remove(&entry.submitter);
            self.free.push(no.0);
        }
    }

    /// The submitter with this number.
    pub(crate) fn get(&self, no: SubmitterNo) -> Submitter {
        self.entries[no.0 as usize].submitter
    }

    /// Every submitter with the number of its jobs.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> BTreeMap<Submitter, u32> {
        self.by_value.iter().map(|(submitter, no)| (*submitter, self.entries[*no as usize].jobs)).collect()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::OwnerNo;

    use super::*;

    #[test]
    fn the_entry_of_a_submitter_without_jobs_is_reused() {
        let by = |owner| Submitter { owner: OwnerNo(owner), key: None };
        let mut submitters = Submitters::default();
        let first = [submitters.add_job(by(1)), submitters.add_job(by(2)), submitters.add_job(by(1))];
        assert_eq!(first[0], first[2]);
        assert_eq!(submitters.counts(), [(by(1), 2), (by(2), 1)].into());
        submitters.remove_job(first[0]);
        assert_eq!(submitters.get(first[2]), by(1));
        submitters.remove_job(first[2]);
        for owner in 3..1_000 {
            let no = submitters.add_job(by(owner));
            assert_eq!((no, submitters.get(no)), (first[0], by(owner)), "the free entry is reused");
            submitters.remove_job(no);
        }
        assert_eq!(submitters.counts(), [(by(2), 1)].into());
        assert_eq!(submitters.entries.len(), 2);
    }
}
