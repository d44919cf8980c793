//! Who submitted the jobs of a queue: each submitter once, however many jobs it has.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use longshore_model::Submitter;

/// A submitter's place in the table; valid while a job has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubmitterNo(u32);

/// The submitters of all jobs, counted: one without a job is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Submitters {
    places: Vec<SubmitterEntry>,
    free: Vec<u32>,
    by_value: BTreeMap<Submitter, u32>,
    /// The submitter of the latest job: that of the next one, most of the time.
    latest: u32,
}

#[derive(Debug)]
struct SubmitterEntry {
    submitter: Submitter,
    jobs: u32,
}

impl Submitters {
    /// Counts one more job of a submitter.
    pub(crate) fn enter(&mut self, submitter: Submitter) -> SubmitterNo {
        let latest = self.places.get_mut(self.latest as usize);
        if let Some(place) = latest.filter(|place| place.jobs > 0 && place.submitter == submitter) {
            place.jobs += 1;
            return SubmitterNo(self.latest);
        }
        let no = self.by_value.get(&submitter).copied().unwrap_or_else(|| self.add(submitter));
        self.places[no as usize].jobs += 1;
        self.latest = no;
        SubmitterNo(no)
    }

    fn add(&mut self, submitter: Submitter) -> u32 {
        let place = SubmitterEntry { submitter, jobs: 0 };
        let no = if let Some(no) = self.free.pop() {
            self.places[no as usize] = place;
            no
        } else {
            self.places.push(place);
            (self.places.len() - 1) as u32
        };
        self.by_value.insert(submitter, no);
        no
    }

    /// Counts one job less.
    pub(crate) fn leave(&mut self, no: SubmitterNo) {
        let place = &mut self.places[no.0 as usize];
        assert!(place.jobs > 0, "a job's submitter is counted");
        place.jobs -= 1;
        if place.jobs == 0 {
            self.by_value.remove(&place.submitter);
            self.free.push(no.0);
        }
    }

    /// The submitter at a place.
    pub(crate) fn get(&self, no: SubmitterNo) -> Submitter {
        self.places[no.0 as usize].submitter
    }

    /// Every submitter with the number of its jobs.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> BTreeMap<Submitter, u32> {
        self.by_value.iter().map(|(submitter, no)| (*submitter, self.places[*no as usize].jobs)).collect()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::OwnerNo;

    use super::*;

    #[test]
    fn a_submitter_without_jobs_gives_its_place_back() {
        let by = |owner| Submitter { owner: OwnerNo(owner), key: None };
        let mut submitters = Submitters::default();
        let first = [submitters.enter(by(1)), submitters.enter(by(2)), submitters.enter(by(1))];
        assert_eq!(first[0], first[2]);
        assert_eq!(submitters.counts(), [(by(1), 2), (by(2), 1)].into());
        submitters.leave(first[0]);
        assert_eq!(submitters.get(first[2]), by(1));
        submitters.leave(first[2]);
        for owner in 3..1_000 {
            let no = submitters.enter(by(owner));
            assert_eq!((no, submitters.get(no)), (first[0], by(owner)), "the free place is used again");
            submitters.leave(no);
        }
        assert_eq!(submitters.counts(), [(by(2), 1)].into());
        assert_eq!(submitters.places.len(), 2);
    }
}
