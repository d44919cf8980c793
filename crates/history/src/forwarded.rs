//! What is counted of the forwarded requests of a load-balancing endpoint: any task adds, the recorder reads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::activity::{cells_since, count_since};
use crate::{CELLS, Field, Record, cell_of};

/// The fields that are counted, in the order of [`ForwardedActivity::counts`].
const COUNTED: [Field; 7] = [
    Field::Answered1xx,
    Field::Answered2xx,
    Field::Answered3xx,
    Field::Answered4xx,
    Field::Answered5xx,
    Field::ForwardsRefused,
    Field::SentAgain,
];

const REFUSED: usize = 5;
const SENT_AGAIN: usize = 6;

/// The counts of the forwarded requests of one endpoint since the start of the server.
#[derive(Debug)]
pub struct ForwardedActivity {
    counts: [AtomicU64; COUNTED.len()],
    first_byte: [AtomicU32; CELLS],
}

/// The forwarded requests of a load-balancing endpoint at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ObservedForwards<'a> {
    /// The counts of its requests since the start of the server.
    pub activity: &'a ForwardedActivity,
    /// The number of requests that wait for a worker.
    pub waiting: u64,
    /// How long the first of them has waited, in ms; 0 if none waits.
    pub oldest_wait_ms: u64,
    /// The number of requests that are at workers.
    pub outstanding: u64,
}

/// The counts that were read last.
#[derive(Debug)]
pub(crate) struct ForwardedTotals {
    counts: [u64; COUNTED.len()],
    first_byte: [u32; CELLS],
}

impl Default for ForwardedActivity {
    fn default() -> Self {
        Self { counts: Default::default(), first_byte: [const { AtomicU32::new(0) }; CELLS] }
    }
}

impl Default for ForwardedTotals {
    fn default() -> Self {
        Self { counts: Default::default(), first_byte: [0; CELLS] }
    }
}

impl ForwardedActivity {
    /// Counts an answer of a worker whose status has this first digit, from 1 to 5; others count as the nearest one.
    pub fn answered(&self, class: u16) {
        self.add(usize::from(class.clamp(1, 5)) - 1);
    }

    /// Counts a request that the server answered in place of a worker.
    pub fn refused(&self) {
        self.add(REFUSED);
    }

    /// Counts a request that was sent to another worker, or over another connection.
    pub fn sent_again(&self) {
        self.add(SENT_AGAIN);
    }

    /// Counts the time from the choice of a worker to the head of its response.
    pub fn first_byte(&self, ms: u64) {
        self.first_byte[cell_of(ms)].fetch_add(1, Relaxed);
    }

    /// The numbers of answers by the first digit of their status, from 1 to 5.
    pub fn answers(&self) -> [u64; 5] {
        std::array::from_fn(|class| self.get(class))
    }

    /// The number of requests that the server answered in place of a worker.
    pub fn refusals(&self) -> u64 {
        self.get(REFUSED)
    }

    /// The number of times that a request was sent again.
    pub fn repeats(&self) -> u64 {
        self.get(SENT_AGAIN)
    }

    fn get(&self, counter: usize) -> u64 {
        self.counts[counter].load(Relaxed)
    }

    fn add(&self, counter: usize) {
        self.counts[counter].fetch_add(1, Relaxed);
    }
}

impl ObservedForwards<'_> {
    /// Adds what happened since `totals` to the record. `totals` are then those of now.
    pub(crate) fn add_to(&self, record: &mut Record, totals: &mut ForwardedTotals) {
        for ((field, count), total) in COUNTED.into_iter().zip(&self.activity.counts).zip(&mut totals.counts)
        {
            record.set(field, count_since(count, total));
        }
        record.first_byte = cells_since(&self.activity.first_byte, &mut totals.first_byte);
        for (field, value) in [
            (Field::Queued, self.waiting),
            (Field::QueuedMax, self.waiting),
            (Field::OldestMs, self.oldest_wait_ms),
            (Field::Running, self.outstanding),
            (Field::RunningMax, self.outstanding),
        ] {
            record.set(field, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_has_the_requests_since_the_one_before() {
        let (activity, mut totals) = (ForwardedActivity::default(), ForwardedTotals::default());
        for class in [1, 2, 2, 3, 4, 5, 5, 9, 0] {
            activity.answered(class);
        }
        activity.refused();
        activity.sent_again();
        activity.first_byte(40);
        let mut read = |waiting| {
            let mut record = Record::default();
            let forwards =
                ObservedForwards { activity: &activity, waiting, oldest_wait_ms: 7, outstanding: 3 };
            forwards.add_to(&mut record, &mut totals);
            record
        };
        let first = read(2);
        assert_eq!(COUNTED.map(|field| first.get(field)), [2, 2, 1, 1, 3, 1, 1]);
        assert_eq!((first.first_byte.count(), first.get(Field::OldestMs)), (1, 7));
        assert_eq!((first.get(Field::Queued), first.get(Field::RunningMax)), (2, 3));
        activity.answered(2);
        let second = read(0);
        assert_eq!(COUNTED.map(|field| second.get(field)), [0, 1, 0, 0, 0, 0, 0]);
        assert!(second.first_byte.is_empty());
        assert_eq!((activity.answers(), activity.refusals(), activity.repeats()), ([2, 3, 1, 1, 3], 1, 1));
    }
}
