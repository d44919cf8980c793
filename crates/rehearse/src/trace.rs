//! The jobs that a rehearsal replays: from a file, or from counts per interval.

use jiff::Timestamp;
use longshore_model::Millis;

use crate::Quantiles;

/// The longest run of a job, in ms: 49 days. The queue's own limit has 32 bits.
const RUN_MS_MAX: u64 = u32::MAX as u64;
/// The latest time that is read, in s since 1970: in the year 9999.
const TIME_S_MAX: f64 = 253_402_207_200.0;

/// A job of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival {
    /// When it was submitted.
    pub at: Millis,
    /// How long a worker runs it, in ms.
    pub run_ms: u64,
}

/// The number of jobs that were submitted in an interval, and how long jobs ran in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The start of the interval.
    pub from: Millis,
    /// Its length, in ms.
    pub length_ms: u64,
    /// The number of jobs that were submitted.
    pub jobs: u64,
    /// How long the jobs that ended in it ran; `None` if none did.
    pub run: Option<Quantiles>,
}

/// The jobs of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The jobs, by time.
    arrivals: Vec<Arrival>,
    from: Millis,
    until: Millis,
}

/// A line of a file that says no job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// The number of the line, from 1 on.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

impl Trace {
    /// The jobs of a text, in lines of `TIME,RUN_MS` in any order. `TIME` is a time such as `2030-01-31T12:00:00Z`, or a number
    /// of seconds; all lines must have the same form. Empty lines, lines that begin with `#` and a first line of words
    /// are left out.
    ///
    /// # Errors
    ///
    /// A line says no job.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let (mut arrivals, mut form) = (Vec::new(), None);
        for (at, line) in text.lines().enumerate() {
            let line_text = line.trim();
            let is_head = at == 0
                && line_text.contains(',')
                && line_text.starts_with(|c: char| c.is_ascii_alphabetic());
            if line_text.is_empty() || line_text.starts_with('#') || is_head {
                continue;
            }
            let failed = |problem| TraceError { line: at + 1, problem };
            let (is_clock, arrival) = parse_line(line_text).map_err(failed)?;
            if *form.get_or_insert(is_clock) != is_clock {
                return Err(failed("the lines before it have times of the other form".to_owned()));
            }
            arrivals.push(arrival);
        }
        arrivals.sort_unstable();
        let from = arrivals.first().map_or(Millis(0), |first| first.at);
        let until = arrivals.last().map_or(Millis(0), |last| last.at);
        Ok(Self { arrivals, from, until })
    }

    /// Jobs like those of these intervals, which must be in the order of time. The jobs of an interval come at random moments
    /// within it. An interval without run times has those of the interval before, or of the next one that has some; without
    /// any, a job runs for `otherwise_ms`.
    pub fn recorded(intervals: &[Interval], otherwise_ms: u64, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut run = intervals
            .iter()
            .find_map(|one| one.run.clone())
            .unwrap_or_else(|| Quantiles::of_one(otherwise_ms));
        let mut arrivals = Vec::new();
        for interval in intervals {
            if let Some(own) = &interval.run {
                run.clone_from(own);
            }
            let first = arrivals.len();
            arrivals.extend((0..interval.jobs).map(|_| Arrival {
                at: interval.from + rng.u64(0..interval.length_ms.max(1)),
                run_ms: run.sample(&mut rng).min(RUN_MS_MAX),
            }));
            arrivals[first..].sort_unstable();
        }
        let from = intervals.first().map_or(Millis(0), |first| first.from);
        let until = intervals.last().map_or(Millis(0), |last| last.from + last.length_ms);
        Self { arrivals, from, until }
    }

    /// The jobs, by time.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The start of the trace.
    pub fn from(&self) -> Millis {
        self.from
    }

    /// The end of the trace; not before its last job is submitted.
    pub fn until(&self) -> Millis {
        self.until
    }
}

/// The job of a line, and whether its time is one of the clock.
fn parse_line(line: &str) -> Result<(bool, Arrival), String> {
    let Some((time, run)) = line.split_once(',') else {
        return Err("it is not TIME,RUN_MS, such as 2030-01-31T12:00:00Z,840".to_owned());
    };
    let (time, run) = (time.trim(), run.trim());
    let run_ms = run.parse().ok().filter(|ms| *ms <= RUN_MS_MAX);
    let Some(run_ms) = run_ms else {
        return Err(format!("`{run}` is no number of ms from 0 to {RUN_MS_MAX}"));
    };
    let seconds = time.parse::<f64>().ok().filter(|seconds| (0.0..=TIME_S_MAX).contains(seconds));
    if let Some(seconds) = seconds {
        return Ok((false, Arrival { at: Millis((seconds * 1_000.0).round() as u64), run_ms }));
    }
    let clock = time.parse::<Timestamp>().ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
    let Some(ms) = clock else {
        return Err(format!(
            "`{time}` is neither a time such as 2030-01-31T12:00:00Z nor a number of seconds from 0 on"
        ));
    };
    Ok((true, Arrival { at: Millis(ms), run_ms }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: u64, run_ms: u64) -> Arrival {
        Arrival { at: Millis(at), run_ms }
    }

    #[test]
    fn both_forms_of_times_are_read_in_any_order() {
        let trace = Trace::parse("at,runMs\n# a comment\n\n 2.5 , 40\n0,7\n").unwrap();
        assert_eq!(trace.arrivals(), [arrival(0, 7), arrival(2_500, 40)]);
        let trace = Trace::parse("2001-09-09T01:46:40.250Z,1").unwrap();
        assert_eq!((trace.arrivals(), trace.from()), (&[arrival(1_000_000_000_250, 1)][..], trace.until()));
        assert_eq!(Trace::parse("").unwrap(), Trace::default());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, part) in [
            ("1,2\nnonsense", 2, "TIME,RUN_MS"),
            ("1,-2", 1, "`-2` is no number of ms from 0 to 4294967295"),
            ("1,4294967296", 1, "`4294967296` is no number"),
            ("-1,2", 1, "`-1` is neither a time"),
            ("nonsense", 1, "TIME,RUN_MS"),
            ("NaN,x\n\ninf,2", 3, "`inf` is neither"),
            ("1e300,2", 1, "`1e300` is neither"),
            ("1,2\n2030-01-31T12:00:00Z,3", 2, "of the other form"),
            ("1960-01-31T12:00:00Z,3", 1, "is neither"),
        ] {
            let error = Trace::parse(text).unwrap_err();
            assert!(error.line == line && error.problem.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn recorded_jobs_come_within_their_intervals_and_run_as_then() {
        let interval = |from, jobs, run: Option<u64>| Interval {
            from: Millis(from),
            length_ms: 60_000,
            jobs,
            run: run.map(Quantiles::of_one),
        };
        let intervals = [interval(0, 3, None), interval(60_000, 50, Some(7)), interval(120_000, 2, None)];
        let trace = Trace::recorded(&intervals, 9, 1);
        assert!(trace.arrivals().is_sorted() && trace.arrivals().iter().all(|one| one.run_ms == 7));
        let within =
            |from, until| trace.arrivals().iter().filter(|one| (from..until).contains(&one.at.0)).count();
        assert_eq!((within(0, 60_000), within(60_000, 120_000), within(120_000, 180_000)), (3, 50, 2));
        assert_eq!(trace.until(), Millis(180_000));
        assert_eq!(trace, Trace::recorded(&intervals, 9, 1), "the same seed");
        assert_ne!(trace, Trace::recorded(&intervals, 9, 2));
        assert_eq!(Trace::recorded(&intervals[..1], 9, 1).arrivals()[0].run_ms, 9);
    }
}
