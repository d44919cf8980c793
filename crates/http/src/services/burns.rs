//! How fast endpoints use up what their objectives allow, and which do so too fast.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_engine::{EndpointHandle, Severity};
use longshore_history::{History, MINUTE_MS, SLOW_STEP_MS, Share};
use longshore_model::{EndpointId, Millis, Objectives};
use tokio::time::Instant;

/// Good and bad events of both objectives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) delay: Share,
    pub(crate) success: Share,
}

/// How long a result is kept that nothing asks for, such as that of a deleted endpoint.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// How long a result is used again.
const FRESH_FOR: Duration = Duration::from_secs(20);
/// The longest time of which steps of 10 s are in memory.
const IN_MEMORY_MS: u64 = 120 * MINUTE_MS;

/// When a budget burns too fast: the burn rate, and the two times over which it has to be exceeded, in ms.
const RULES: [(f64, u64, u64, Severity); 2] = [
    (14.4, 60 * MINUTE_MS, 5 * MINUTE_MS, Severity::Bad),
    (6.0, 360 * MINUTE_MS, 30 * MINUTE_MS, Severity::Warn),
];

/// A budget that is used up too fast.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BurningBudget {
    /// `delay_budget_burn` or `error_budget_burn`.
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) title: &'static str,
    pub(crate) text: String,
}

/// The budgets that burn, by endpoint, with the time of the look.
#[derive(Debug, Default)]
pub(crate) struct BurnCache {
    known: Arc<Mutex<KnownBudgets>>,
}

type KnownBudgets = HashMap<EndpointId, (Instant, Option<BurningBudget>)>;

impl BurnCache {
    /// The budget of the endpoint that burns fastest; `None` if none burns too fast, or the endpoint has no objectives. Looks
    /// at the history at most every 20 s, on a thread for blocking work.
    pub(crate) async fn burning(
        &self,
        history: Option<&Arc<History>>,
        endpoint: &EndpointHandle,
        now: Millis,
    ) -> Option<BurningBudget> {
        let (id, slo) = (endpoint.id(), endpoint.record().slo);
        let (Some(slo), Some(history)) = (slo, history.cloned()) else {
            lock(&self.known).remove(&id);
            return None;
        };
        let fresh = lock(&self.known).get(&id).filter(|(at, _)| at.elapsed() < FRESH_FOR).cloned();
        if let Some((_, burning)) = fresh {
            return burning;
        }
        let known = Arc::clone(&self.known);
        // The result is kept also if the caller does not wait for it.
        let look = move || {
            let found = burning(&history, id, &slo, now);
            let mut known = lock(&known);
            known.retain(|_, (at, _)| at.elapsed() < KEPT_FOR);
            known.insert(id, (Instant::now(), found.clone()));
            found
        };
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }
}

fn lock(known: &Mutex<KnownBudgets>) -> MutexGuard<'_, KnownBudgets> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The budget that burns too fast at `now`. Blocks. Reads a day's files only if the short time, which is in memory, is bad.
fn burning(history: &Arc<History>, id: EndpointId, slo: &Objectives, now: Millis) -> Option<BurningBudget> {
    for (rate, long_ms, short_ms, severity) in RULES {
        let exceeds = |shares: &Shares, name: fn(&Shares) -> Share, target: f64| {
            name(shares).burn(target).is_some_and(|burn| burn >= rate)
        };
        let short = recent(history, id, slo, now, short_ms);
        if !exceeds(&short, |shares| shares.success, slo.success_target)
            && !exceeds(&short, |shares| shares.delay, slo.delay_target)
        {
            continue;
        }
        let long = recent(history, id, slo, now, long_ms);
        let burns = |name: fn(&Shares) -> Share, target: f64| {
            exceeds(&long, name, target) && exceeds(&short, name, target)
        };
        let hours = long_ms / (60 * MINUTE_MS);
        let span = if hours == 1 { "hour".to_owned() } else { format!("{hours} hours") };
        if burns(|shares| shares.success, slo.success_target) {
            let text = format!(
                "{} of {} jobs that ended in the last {span} failed; the objective allows {}.",
                long.success.bad(),
                long.success.total,
                percent(1.0 - slo.success_target),
            );
            let title = "Too many jobs fail";
            return Some(BurningBudget { code: "error_budget_burn", severity, title, text });
        }
        if burns(|shares| shares.delay, slo.delay_target) {
            let text = format!(
                "{} of {} jobs that started in the last {span} had waited longer than {} ms; the objective allows {}.",
                long.delay.bad(),
                long.delay.total,
                slo.delay_ms.unwrap_or_default(),
                percent(1.0 - slo.delay_target),
            );
            let title = "Too many jobs start late";
            return Some(BurningBudget { code: "delay_budget_burn", severity, title, text });
        }
    }
    None
}

/// A share as a percentage with the digits that it needs: `5 %`, `0.1 %`.
fn percent(share: f64) -> String {
    let rounded = (share * 100_000.0).round() / 1_000.0;
    format!("{rounded} %")
}

/// The events of the last `span_ms`. Blocks if the span is longer than what is in memory.
pub(crate) fn recent(
    history: &History,
    id: EndpointId,
    slo: &Objectives,
    now: Millis,
    span_ms: u64,
) -> Shares {
    let step_ms = if span_ms <= IN_MEMORY_MS { SLOW_STEP_MS } else { MINUTE_MS };
    let plan = history.plan(now.0.saturating_sub(span_ms), now.0, step_ms);
    let mut shares = Shares::default();
    for (_, buckets) in &history.read(plan, &[id]).endpoints {
        let total = buckets.total();
        let delay = slo.delay_ms.map(|ms| total.in_time(ms)).unwrap_or_default();
        shares = Shares { delay: shares.delay.and(delay), success: shares.success.and(total.succeeded()) };
    }
    shares
}

#[cfg(test)]
mod tests {
    use longshore_history::{Activity, FAST_STEP_MS, Observed, ObservedWorkers};
    use longshore_model::JobState;

    use super::*;

    const BEGIN: u64 = 1_896_127_200_000;

    fn slo() -> Objectives {
        Objectives { delay_ms: Some(1_000), delay_target: 0.95, success_target: 0.99, window_days: 30 }
    }

    /// A history of two hours in which `each` counts what happens in a step of 2 s.
    fn history(each: impl Fn(u64, &Activity)) -> (Arc<History>, EndpointId, Millis) {
        let (history, id, activity) =
            (Arc::new(History::in_memory(Millis(BEGIN))), EndpointId::mint(1), Activity::default());
        let steps = 2 * 1_800;
        for step in 1..=steps {
            each(step, &activity);
            let workers = ObservedWorkers::default();
            let observed = Observed { endpoint: id, activity: &activity, forwards: None, workers };
            history.sample(Millis(BEGIN + step * FAST_STEP_MS), [observed]);
        }
        (history, id, Millis(BEGIN + steps * FAST_STEP_MS))
    }

    #[test]
    fn a_budget_burns_if_both_times_exceed_the_rate() {
        let failing = |from: u64| {
            history(move |step, activity| {
                let state = if step > from && step % 5 == 0 { JobState::Failed } else { JobState::Completed };
                activity.ended(state, Some(10));
                activity.delivered(10);
            })
        };
        // A fifth of the jobs fail, of which 1 % may: a burn of 20.
        let (long, id, now) = failing(0);
        let found = burning(&long, id, &slo(), now).unwrap();
        assert_eq!((found.code, found.severity), ("error_budget_burn", Severity::Bad));
        assert!(
            found.text.starts_with(
                "360 of 1800 jobs that ended in the last hour failed; the objective allows 1 %."
            ),
            "{}",
            found.text
        );
        // Only since 5 min: the hour is still good.
        let (short, id, now) = failing(2 * 1_800 - 150);
        assert_eq!(burning(&short, id, &slo(), now), None);
        // It was bad until 10 min ago: the last 5 min are good, the last 30 min are not.
        let bad_until = |minutes: u64| {
            history(move |step, activity| {
                let is_over = step > 2 * 1_800 - minutes * 30;
                activity.ended(if is_over { JobState::Completed } else { JobState::Failed }, Some(10));
            })
        };
        let (past, id, now) = bad_until(10);
        let found = burning(&past, id, &slo(), now).unwrap();
        assert_eq!((found.code, found.severity), ("error_budget_burn", Severity::Warn));
        assert!(found.text.contains("in the last 6 hours failed"), "{}", found.text);
        let (past, id, now) = bad_until(40);
        assert_eq!(burning(&past, id, &slo(), now), None);
    }

    #[test]
    fn late_jobs_burn_the_budget_of_the_delay() {
        let (history, id, now) = history(|_, activity| {
            activity.ended(JobState::Cancelled, Some(10));
            activity.delivered(60_000);
        });
        let found = burning(&history, id, &slo(), now).unwrap();
        assert_eq!((found.code, found.severity), ("delay_budget_burn", Severity::Bad));
        let without = Objectives { delay_ms: None, ..slo() };
        assert_eq!(burning(&history, id, &without, now), None);
        let shares = recent(&history, id, &slo(), now, 5 * MINUTE_MS);
        assert_eq!((shares.delay.total, shares.success.total), (150, 0));
    }
}
