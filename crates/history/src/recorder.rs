//! Reads what endpoints counted every 2 s: keeps the steps of the last hours in memory, and makes a block of each minute.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use longshore_model::{EndpointId, Millis};

use crate::activity::{Activity, Totals};
use crate::files::Block;
use crate::forwarded::{ForwardedTotals, ObservedForwards};
use crate::ring::Ring;
use crate::{Buckets, FAST_STEP_MS, Field, MINUTE_MS, Record, SLOW_STEP_MS};

/// How long steps of 2 s stay, in steps: 15 min.
const FAST_STEPS: u64 = 15 * 30;
/// How long steps of 10 s stay, in steps: 2 h.
const SLOW_STEPS: u64 = 2 * 360;
/// The memory for the steps of one endpoint, in bytes.
const ENDPOINT_BYTES_MAX: usize = 24 << 10;
/// The memory for the steps of all endpoints, in bytes.
pub(crate) const BYTES_MAX: usize = 32 << 20;

/// The managed workers of an endpoint at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedWorkers {
    /// Workers that wait for a job.
    pub idle: u32,
    /// Workers with a job.
    pub running: u32,
    /// Workers that were started and have not asked for a job.
    pub starting: u32,
    /// Workers that wait for a GPU or other room.
    pub throttled: u32,
    /// Workers that are not started because earlier ones crashed.
    pub unhealthy: u32,
    /// The GPUs of all workers.
    pub gpus: u32,
    /// How much those compute.
    pub gpu_use: GpuUse,
}

/// How much some GPUs compute, as their drivers said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuUse {
    /// The GPUs of which it is known.
    pub read: u32,
    /// The sum of the parts of their time in which these compute, each in percent.
    pub percents: u32,
}

/// An endpoint at one moment.
pub struct Observed<'a> {
    /// The id of the endpoint.
    pub endpoint: EndpointId,
    /// What its actor counted.
    pub activity: &'a Activity,
    /// Its forwarded requests; `None` if it has a queue of jobs.
    pub forwards: Option<ObservedForwards<'a>>,
    /// Its managed workers by condition.
    pub workers: ObservedWorkers,
}

/// The steps in memory and the present minute, of all endpoints.
#[derive(Debug)]
pub(crate) struct Recorder {
    endpoints: BTreeMap<EndpointId, Tracked>,
    /// When the last sample was taken.
    sampled_at: Millis,
    /// The last sampled step of 2 s.
    step: u64,
    /// Steps that were sampled, the oldest first.
    fast: VecDeque<u64>,
    slow: VecDeque<u64>,
    /// The time of the present minute that was sampled, in ms.
    minute_covered_ms: u64,
    /// No block was made since the server started.
    is_first: bool,
}

#[derive(Debug)]
struct Tracked {
    totals: Totals,
    /// Those of its forwarded requests; `None` if it has a queue of jobs.
    forwarded: Option<Box<ForwardedTotals>>,
    fast: Ring,
    slow: Ring,
    slow_step: Record,
    minute: Record,
}

/// Steps of some endpoints, as they were at one moment.
pub(crate) struct Copied {
    /// The steps that were sampled, the oldest first.
    covered: VecDeque<u64>,
    step_ms: u64,
    rings: Vec<Option<Ring>>,
}

/// Which steps are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The steps of 2 s.
    Fast,
    /// The steps of 10 s.
    Slow,
}

impl Recorder {
    /// A recorder that begins at this moment.
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            endpoints: BTreeMap::new(),
            sampled_at: now,
            step: now.0 / FAST_STEP_MS,
            fast: VecDeque::new(),
            slow: VecDeque::new(),
            minute_covered_ms: 0,
            is_first: true,
        }
    }

    /// Reads the endpoints after a step of 2 s is over. Returns the block of a minute that is over. A call within the same
    /// step does nothing.
    pub(crate) fn sample<'a>(
        &mut self,
        now: Millis,
        observed: impl IntoIterator<Item = Observed<'a>>,
    ) -> Option<Block> {
        let step =
            (now.0 / FAST_STEP_MS).checked_sub(1).filter(|step| *step > self.step || self.fast.is_empty())?;
        let elapsed_ms = now.since(self.sampled_at);
        // A sample can be late, so that the minute of the one before ended without its last step.
        let overdue = (minute_of(step) > minute_of(self.step)).then(|| self.take_minute()).flatten();
        (self.step, self.sampled_at) = (step, now);
        self.minute_covered_ms += elapsed_ms;
        let is_slow_over = (step + 1).is_multiple_of(SLOW_STEP_MS / FAST_STEP_MS);
        cover(&mut self.fast, step, FAST_STEPS);
        let slow_step = step * FAST_STEP_MS / SLOW_STEP_MS;
        if is_slow_over {
            cover(&mut self.slow, slow_step, SLOW_STEPS);
        }
        let mut present = BTreeSet::new();
        let count = self.endpoints.len();
        let bytes_max = ENDPOINT_BYTES_MAX.min(BYTES_MAX / count.max(1));
        for one in observed {
            present.insert(one.endpoint);
            let tracked = self.endpoints.entry(one.endpoint).or_insert_with(|| Tracked::from_step(step));
            let record = tracked.add(&one, now, elapsed_ms);
            tracked.end_step(step, &record, is_slow_over.then_some(slow_step), bytes_max);
        }
        self.endpoints.retain(|endpoint, _| present.contains(endpoint));
        let is_minute_over = ((step + 1) * FAST_STEP_MS).is_multiple_of(MINUTE_MS);
        overdue.or_else(|| is_minute_over.then(|| self.take_minute()).flatten())
    }

    /// The block of the present minute so far, which then begins again. `None` if nothing of it was sampled.
    pub(crate) fn take_minute(&mut self) -> Option<Block> {
        if std::mem::take(&mut self.minute_covered_ms) == 0 {
            return None;
        }
        let records = self.endpoints.iter_mut().filter_map(|(endpoint, tracked)| {
            let record = std::mem::take(&mut tracked.minute);
            (!record.is_idle()).then_some((*endpoint, record))
        });
        Some(Block {
            unit: minute_of(self.step),
            is_start: std::mem::take(&mut self.is_first),
            records: records.collect(),
        })
    }

    /// The present minute so far: its number, and the records of these endpoints. `None` if nothing of it was sampled.
    pub(crate) fn minute(&self, endpoints: &[EndpointId]) -> Option<(u64, Vec<Record>)> {
        let record = |id| self.endpoints.get(id).map(|tracked| tracked.minute.clone()).unwrap_or_default();
        (self.minute_covered_ms > 0).then(|| (minute_of(self.step), endpoints.iter().map(record).collect()))
    }

    /// Copies of the steps of 10 s of an endpoint, and of the one that is not over. `None` if the endpoint was not sampled.
    pub(crate) fn slow_steps(&self, endpoint: &EndpointId) -> Option<(Ring, Record)> {
        self.endpoints.get(endpoint).map(|tracked| (tracked.slow.clone(), tracked.slow_step.clone()))
    }

    /// Since when steps are in memory, in ms; `None` before the first sample.
    pub(crate) fn known_from(&self, steps: Steps) -> Option<u64> {
        let (covered, step_ms) = self.covered(steps);
        covered.front().map(|step| step * step_ms)
    }

    /// A copy of the steps of these endpoints.
    pub(crate) fn copy(&self, steps: Steps, endpoints: &[EndpointId]) -> Copied {
        let (covered, step_ms) = self.covered(steps);
        let ring = |endpoint| {
            self.endpoints.get(endpoint).map(|tracked| match steps {
                Steps::Fast => tracked.fast.clone(),
                Steps::Slow => tracked.slow.clone(),
            })
        };
        Copied { covered: covered.clone(), step_ms, rings: endpoints.iter().map(ring).collect() }
    }

    fn covered(&self, steps: Steps) -> (&VecDeque<u64>, u64) {
        match steps {
            Steps::Fast => (&self.fast, FAST_STEP_MS),
            Steps::Slow => (&self.slow, SLOW_STEP_MS),
        }
    }

    /// The bytes of steps in memory.
    pub(crate) fn len_bytes(&self) -> usize {
        self.endpoints.values().map(|tracked| tracked.fast.len_bytes() + tracked.slow.len_bytes()).sum()
    }
}

impl Copied {
    /// Adds the steps of each endpoint to its buckets, in the order in which they were copied.
    pub(crate) fn read<'a>(&self, endpoints: impl IntoIterator<Item = &'a mut Buckets>) {
        let idle = Record::idle(self.step_ms);
        for (ring, buckets) in self.rings.iter().zip(endpoints) {
            let Some(ring) = ring else { continue };
            let mut records = ring.steps().into_iter().peekable();
            for step in self.covered.iter().filter(|step| **step >= ring.known_from()) {
                while records.next_if(|(at, _)| at < step).is_some() {}
                let record = records.next_if(|(at, _)| at == step).map(|(_, record)| record);
                buckets.add(step * self.step_ms, record.as_ref().unwrap_or(&idle));
            }
        }
    }
}

impl Tracked {
    fn from_step(step: u64) -> Self {
        Self {
            totals: Totals::default(),
            forwarded: None,
            fast: Ring::from_step(step),
            slow: Ring::from_step(step * FAST_STEP_MS / SLOW_STEP_MS),
            slow_step: Record::default(),
            minute: Record::default(),
        }
    }

    /// What happened since the last sample, added to the longer steps that are not over.
    fn add(&mut self, one: &Observed<'_>, now: Millis, elapsed_ms: u64) -> Record {
        let mut record = one.activity.since(&mut self.totals, now);
        if let Some(forwards) = &one.forwards {
            forwards.add_to(&mut record, self.forwarded.get_or_insert_default());
        }
        let ObservedWorkers { idle, running, starting, throttled, unhealthy, gpus, gpu_use } = one.workers;
        for (field, value) in [
            (Field::WorkersIdle, idle),
            (Field::WorkersRunning, running),
            (Field::WorkersStarting, starting),
            (Field::WorkersThrottled, throttled),
            (Field::WorkersUnhealthy, unhealthy),
        ] {
            record.set(field, u64::from(value));
        }
        for (field, number) in [
            (Field::BusyMs, u64::from(running)),
            (Field::PaidMs, u64::from(idle + running + starting)),
            (Field::GpuMs, u64::from(gpus)),
            (Field::GpuReadMs, u64::from(gpu_use.read)),
            (Field::RunningMs, record.get(Field::Running)),
            (Field::CoveredMs, 1),
        ] {
            record.set(field, number * elapsed_ms);
        }
        record.set(Field::GpuBusyMs, u64::from(gpu_use.percents) * elapsed_ms / 100);
        one.activity.worked(record.get(Field::BusyMs), record.get(Field::PaidMs));
        self.minute.extend(&record);
        self.slow_step.extend(&record);
        record
    }

    /// Stores the steps that are over.
    fn end_step(&mut self, step: u64, record: &Record, slow_step: Option<u64>, bytes_max: usize) {
        // Two fifths of the memory are for the finer steps.
        let fast_bytes_max = bytes_max / 5 * 2;
        self.fast.push(step, record, step.saturating_sub(FAST_STEPS - 1), fast_bytes_max);
        if let Some(slow_step) = slow_step {
            let record = std::mem::take(&mut self.slow_step);
            let oldest = slow_step.saturating_sub(SLOW_STEPS - 1);
            self.slow.push(slow_step, &record, oldest, bytes_max - fast_bytes_max);
        }
    }
}

/// The number of the minute that a step of 2 s is in.
fn minute_of(step: u64) -> u64 {
    step * FAST_STEP_MS / MINUTE_MS
}

/// Adds a step to the sampled ones, of which the latest `steps_max` are remembered.
fn cover(steps: &mut VecDeque<u64>, step: u64, steps_max: u64) {
    steps.push_back(step);
    while steps.front().is_some_and(|first| first + steps_max <= step) {
        steps.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::JobState;

    use super::*;
    use crate::Span;

    const BEGIN: u64 = 1_700_000_040_000;

    fn sample(recorder: &mut Recorder, at: u64, activities: &[(EndpointId, Activity)]) -> Option<Block> {
        // Of three of the four GPUs it is known how much they compute.
        let gpu_use = GpuUse { read: 3, percents: 150 };
        let workers = ObservedWorkers { running: 1, idle: 1, gpus: 4, gpu_use, ..ObservedWorkers::default() };
        recorder.sample(
            Millis(at),
            activities.iter().map(|(endpoint, activity)| Observed {
                endpoint: *endpoint,
                activity,
                forwards: None,
                workers,
            }),
        )
    }

    fn endpoints(count: u128) -> Vec<(EndpointId, Activity)> {
        (0..count).map(|number| (EndpointId::mint(number), Activity::default())).collect()
    }

    #[test]
    fn a_minute_has_the_counts_of_its_samples() {
        let one = endpoints(1);
        let mut recorder = Recorder::new(Millis(BEGIN));
        let mut blocks = Vec::new();
        // Two workers that live for less than a step.
        one[0].1.started(1_500);
        one[0].1.started(20);
        for step in 1..=60_u64 {
            one[0].1.submitted(10);
            one[0].1.ended(JobState::Completed, Some(step * 100));
            blocks.extend(sample(&mut recorder, BEGIN + step * FAST_STEP_MS, &one));
            // A second call in the same step does nothing.
            assert!(sample(&mut recorder, BEGIN + step * FAST_STEP_MS + 100, &one).is_none());
        }
        let units: Vec<_> = blocks.iter().map(|block| (block.unit, block.is_start)).collect();
        assert_eq!(units, [(BEGIN / MINUTE_MS, true), (BEGIN / MINUTE_MS + 1, false)]);
        for (number, block) in blocks.iter().enumerate() {
            let record = &block.records[0].1;
            assert_eq!((record.get(Field::Submitted), record.get(Field::Completed)), (30, 30));
            assert_eq!((record.get(Field::CoveredMs), record.get(Field::GpuMs)), (MINUTE_MS, 4 * MINUTE_MS));
            assert_eq!((record.get(Field::BusyMs), record.get(Field::PaidMs)), (MINUTE_MS, 2 * MINUTE_MS));
            let gpus = (record.get(Field::GpuBusyMs), record.get(Field::GpuReadMs));
            assert_eq!(gpus, (MINUTE_MS * 3 / 2, 3 * MINUTE_MS));
            // The start of a worker counts once, also of one that no sample saw.
            let starts = if number == 0 { 2 } else { 0 };
            assert_eq!((record.get(Field::Starts), record.start.count()), (starts, starts));
            assert_eq!(record.run.count(), 30);
        }
    }

    #[test]
    fn steps_are_read_and_a_gap_is_none() {
        let one = endpoints(1);
        let mut recorder = Recorder::new(Millis(BEGIN));
        for step in (1..=40_u64).filter(|step| !(11..=14).contains(step)) {
            one[0].1.submitted(0);
            sample(&mut recorder, BEGIN + step * FAST_STEP_MS, &one);
        }
        let read = |steps, step_ms| {
            let mut buckets = Buckets::unknown(Span::of(BEGIN, BEGIN + 80_000, step_ms));
            recorder.copy(steps, &[one[0].0]).read([&mut buckets]);
            let submitted = buckets.slots().iter().map(|slot| slot.as_ref().map(|r| r.get(Field::Submitted)));
            submitted.collect::<Vec<_>>()
        };
        let fast = read(Steps::Fast, FAST_STEP_MS);
        assert_eq!(fast.iter().filter(|slot| slot.is_none()).count(), 4);
        assert_eq!(fast[0], Some(1));
        let slow = read(Steps::Slow, SLOW_STEP_MS);
        assert_eq!(slow[0], Some(5));
        assert_eq!(slow.iter().flatten().sum::<u64>(), 36);
        assert_eq!(recorder.known_from(Steps::Fast), Some(BEGIN));
    }

    #[test]
    fn memory_is_bounded_for_one_endpoint_and_for_all() {
        let many = endpoints(30);
        let mut recorder = Recorder::new(Millis(BEGIN));
        for step in 1..=600_u64 {
            for (number, (_, activity)) in many.iter().enumerate() {
                for job in 0..20_u64 {
                    activity.submitted(job * 1_000);
                    activity.delivered((job * 7919 * step + number as u64) % 100_000);
                    activity.ended(JobState::Completed, Some(job * 104_729 % 400_000));
                }
            }
            sample(&mut recorder, BEGIN + step * FAST_STEP_MS, &many);
        }
        assert!(recorder.len_bytes() <= 30 * ENDPOINT_BYTES_MAX, "{}", recorder.len_bytes());
        assert!(recorder.len_bytes() > 30 * ENDPOINT_BYTES_MAX / 3);
        // An endpoint that is gone leaves nothing.
        sample(&mut recorder, BEGIN + 601 * FAST_STEP_MS, &many[..1]);
        assert!(recorder.len_bytes() <= ENDPOINT_BYTES_MAX);
    }
}
