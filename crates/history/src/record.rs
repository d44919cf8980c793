//! What happened at one endpoint in a span of time: its numbers, and histograms of four times.

use crate::fields::FIELDS;
use crate::{Field, Histogram, varint};

/// What happened at an endpoint in a span of time. The default is a span in which nothing happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    values: [u64; FIELDS],
    /// How long jobs were queued before their delivery, in ms, counted per delivery.
    pub delay: Histogram,
    /// How long the last attempts of ended jobs ran, in ms. Cancelled jobs do not count.
    pub run: Histogram,
    /// How long workers took from their start to their first take, in ms.
    pub start: Histogram,
    /// How long forwarded requests took from the choice of a worker to the head of its response, in ms.
    pub first_byte: Histogram,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            values: [0; FIELDS],
            delay: Histogram::default(),
            run: Histogram::default(),
            start: Histogram::default(),
            first_byte: Histogram::default(),
        }
    }
}

impl Record {
    /// The record of a span of this length in which nothing happened.
    pub(crate) fn idle(covered_ms: u64) -> Self {
        let mut record = Self::default();
        record.set(Field::CoveredMs, covered_ms);
        record
    }

    /// The value of a field.
    pub fn get(&self, field: Field) -> u64 {
        self.values[field as usize]
    }

    /// Sets the value of a field.
    pub fn set(&mut self, field: Field, value: u64) {
        self.values[field as usize] = value;
    }

    /// Whether nothing happened: no job came, waited, ran or ended, and no worker was there.
    pub fn is_idle(&self) -> bool {
        let only_covered =
            Field::ALL.into_iter().all(|field| field == Field::CoveredMs || self.get(field) == 0);
        only_covered && self.histograms().all(Histogram::is_empty)
    }

    /// Adds the span that follows this one.
    pub fn extend(&mut self, later: &Self) {
        self.combine(later, Field::in_time);
    }

    /// Adds the same span of another endpoint.
    pub fn join(&mut self, other: &Self) {
        self.combine(other, Field::together);
    }

    fn combine(&mut self, other: &Self, how: impl Fn(Field, u64, u64) -> u64) {
        for field in Field::ALL {
            self.values[field as usize] = how(field, self.get(field), other.get(field));
        }
        self.delay.merge(&other.delay);
        self.run.merge(&other.run);
        self.start.merge(&other.start);
        self.first_byte.merge(&other.first_byte);
    }

    fn histograms(&self) -> impl Iterator<Item = &Histogram> {
        [&self.delay, &self.run, &self.start, &self.first_byte].into_iter()
    }

    /// Appends the record: a bit for each field that is not 0, these fields, and the histograms. The last histogram is left out if
    /// it is empty, as it is for all endpoints whose jobs are queued.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let bit = |field: Field| u64::from(self.get(field) != 0) << field as u64;
        varint::put(bytes, Field::ALL.into_iter().fold(0, |bits, field| bits | bit(field)));
        for value in self.values.into_iter().filter(|value| *value != 0) {
            varint::put(bytes, value);
        }
        let count = if self.first_byte.is_empty() { 3 } else { 4 };
        self.histograms().take(count).for_each(|histogram| histogram.encode(bytes));
    }

    /// The record of these bytes; `None` for bytes that are none. Fields that this version does not know are left out.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let mut record = Self::default();
        let bits = varint::take(bytes)?;
        for number in (0..u64::BITS).filter(|number| bits >> number & 1 == 1) {
            let value = varint::take(bytes)?;
            if let Some(known) = record.values.get_mut(number as usize) {
                *known = value;
            }
        }
        record.delay = Histogram::decode(bytes)?;
        record.run = Histogram::decode(bytes)?;
        record.start = Histogram::decode(bytes)?;
        if !bytes.is_empty() {
            record.first_byte = Histogram::decode(bytes)?;
        }
        Some(record)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A minute with this number of jobs.
    pub(crate) fn busy(jobs: u64) -> Record {
        let mut record = Record::default();
        for (field, value) in [
            (Field::Submitted, jobs),
            (Field::Completed, jobs),
            (Field::Queued, jobs / 10),
            (Field::QueuedMax, jobs / 5),
            (Field::Running, 2),
            (Field::RunningMs, 120_000),
            (Field::WorkersRunning, 2),
            (Field::BusyMs, 120_000),
            (Field::PaidMs, 120_000),
            (Field::CoveredMs, 60_000),
        ] {
            record.set(field, value);
        }
        for job in 0..jobs {
            record.delay.add(job * 7 % 400);
            record.run.add(900 + job * 31 % 500);
        }
        record
    }

    #[test]
    fn a_record_is_small() {
        for (jobs, bytes_max) in [(2, 45), (120, 110), (6_000, 160)] {
            let mut bytes = Vec::new();
            busy(jobs).encode(&mut bytes);
            assert!(bytes.len() <= bytes_max, "{jobs} jobs: {} bytes", bytes.len());
        }
        let covered = {
            let mut record = Record::default();
            record.set(Field::CoveredMs, 5);
            record
        };
        assert!(covered.is_idle() && Record::default().is_idle() && !busy(1).is_idle());
    }

    fn records() -> impl Strategy<Value = Record> {
        let values = proptest::collection::vec(prop_oneof![Just(0), 0..1_000_u64, any::<u64>()], FIELDS);
        let times = || proptest::collection::vec(any::<u64>().prop_map(|ms| ms >> (ms % 64)), 0..20);
        (values, times(), times(), times()).prop_map(|(values, delays, runs, first_bytes)| {
            let mut record = Record::default();
            for (field, value) in Field::ALL.into_iter().zip(values) {
                record.set(field, value);
            }
            for ms in delays {
                record.delay.add(ms);
            }
            for ms in runs {
                record.run.add(ms);
            }
            for ms in first_bytes {
                record.first_byte.add(ms);
            }
            record
        })
    }

    proptest! {
        #[test]
        fn bytes_come_back(record in records()) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(Record::decode(&bytes), Some(record));
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(mut record) = Record::decode(&bytes) {
                let other = record.clone();
                record.extend(&other);
                record.join(&other);
            }
        }

        #[test]
        fn spans_add_up_in_any_grouping(a in records(), b in records(), c in records()) {
            let (mut left, mut right, mut whole) = (a.clone(), b.clone(), a);
            left.extend(&b);
            left.extend(&c);
            right.extend(&c);
            whole.extend(&right);
            prop_assert_eq!(left, whole);
        }
    }
}
