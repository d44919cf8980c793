//! Spans of time in steps of equal length, each with the record of what happened in it.

use crate::Record;

/// A span of time in steps. Both ends are multiples of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The start, in ms since 1970.
    pub from: u64,
    /// The end, in ms since 1970; not a part of the span.
    pub to: u64,
    /// The length of a step, in ms; not 0.
    pub step_ms: u64,
}

impl Span {
    /// The span in whole steps: its start is rounded down, its end too, so that every step is over.
    pub fn of(from: u64, to: u64, step_ms: u64) -> Self {
        let step_ms = step_ms.max(1);
        let from = from / step_ms * step_ms;
        Self { from, to: (to / step_ms * step_ms).max(from), step_ms }
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        ((self.to - self.from) / self.step_ms) as usize
    }
}

/// The steps of one endpoint. `None` where nothing is known: no server ran, or the records are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    span: Span,
    slots: Vec<Option<Record>>,
}

impl Buckets {
    /// Steps of which nothing is known.
    pub fn unknown(span: Span) -> Self {
        Self { span, slots: vec![None; span.steps()] }
    }

    /// The span of the steps.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The steps, the first first.
    pub fn slots(&self) -> &[Option<Record>] {
        &self.slots
    }

    /// Adds what happened in a shorter span that begins at `at`, in ms. Those of one step come in the order of time.
    pub fn add(&mut self, at: u64, record: &Record) {
        if at < self.span.from || at >= self.span.to {
            return;
        }
        let slot = &mut self.slots[((at - self.span.from) / self.span.step_ms) as usize];
        match slot {
            Some(present) => present.extend(record),
            None => *slot = Some(record.clone()),
        }
    }

    /// Adds the steps of another endpoint in the same span.
    pub fn join(&mut self, other: &Self) {
        debug_assert_eq!(self.span, other.span);
        for (slot, other) in self.slots.iter_mut().zip(&other.slots) {
            match (slot.as_mut(), other) {
                (Some(present), Some(other)) => present.join(other),
                (None, Some(other)) => *slot = Some(other.clone()),
                (_, None) => {}
            }
        }
    }

    /// Makes the steps before `at` unknown, in ms.
    pub fn forget_before(&mut self, at: u64) {
        let steps = (at.saturating_sub(self.span.from) / self.span.step_ms) as usize;
        self.slots.iter_mut().take(steps).for_each(|slot| *slot = None);
    }

    /// The record of all known steps together.
    pub fn total(&self) -> Record {
        let mut total = Record::default();
        self.slots.iter().flatten().for_each(|record| total.extend(record));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use crate::record::tests::busy;

    #[test]
    fn minutes_become_steps_and_gaps_stay() {
        let span = Span::of(60_500, 400_000, 120_000);
        assert_eq!((span.from, span.to, span.steps()), (0, 360_000, 3));
        let mut buckets = Buckets::unknown(span);
        buckets.add(60_000, &busy(10));
        buckets.add(0, &busy(5));
        buckets.add(240_000, &Record::default());
        buckets.add(360_000, &busy(1));
        let submitted: Vec<_> = buckets
            .slots()
            .iter()
            .map(|slot| slot.as_ref().map(|record| record.get(Field::Submitted)))
            .collect();
        assert_eq!(submitted, [Some(15), None, Some(0)]);
        let mut both = buckets.clone();
        both.join(&buckets);
        assert_eq!(both.total().get(Field::Submitted), 30);
        both.forget_before(120_000);
        assert_eq!(both.slots()[0], None);
    }
}
