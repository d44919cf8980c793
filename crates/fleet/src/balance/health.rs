//! The health of a worker that serves HTTP, from the results of its checks.

/// The number of consecutive failures after which a healthy worker is unhealthy.
const FAILURES_MAX: u32 = 3;

/// In place of the text of the last check, before the first one has a result.
pub const NO_CHECK: &str = "no check yet";

/// The result of one health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The worker answered 200.
    Healthy,
    /// The worker answered 204: it is not ready yet.
    Initializing,
    /// The worker gave another answer, or none within the timeout.
    Failed,
}

/// The health of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerHealth {
    /// No check has had a good answer yet.
    #[default]
    Starting,
    /// The worker answers that it is not ready yet.
    Initializing,
    /// The worker gets requests.
    Healthy,
    /// The worker was healthy, and its last checks failed.
    Unhealthy,
}

impl WorkerHealth {
    /// The word for logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Initializing => "initializing",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// The health of a worker, and its consecutive failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthState {
    health: WorkerHealth,
    failures: u32,
}

impl HealthState {
    /// The health after the last check.
    pub fn health(&self) -> WorkerHealth {
        self.health
    }

    /// Notes the result of a check. Returns the health if it changed.
    pub fn observe(&mut self, check: Check) -> Option<WorkerHealth> {
        self.failures = if check == Check::Failed { self.failures.saturating_add(1) } else { 0 };
        let next = match (check, self.health) {
            (Check::Healthy, _) => WorkerHealth::Healthy,
            (Check::Initializing, _) => WorkerHealth::Initializing,
            (Check::Failed, WorkerHealth::Healthy) if self.failures >= FAILURES_MAX => {
                WorkerHealth::Unhealthy
            }
            (Check::Failed, present) => present,
        };
        let changed = next != self.health;
        self.health = next;
        changed.then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The health after each of the checks.
    fn after(checks: &[Check]) -> WorkerHealth {
        let mut state = HealthState::default();
        for check in checks {
            state.observe(*check);
        }
        state.health()
    }

    #[test]
    fn three_failures_in_a_row_end_the_health_and_one_answer_brings_it_back() {
        use Check::{Failed, Healthy, Initializing};
        for (checks, expected) in [
            (&[Failed; 9][..], WorkerHealth::Starting),
            (&[Failed, Initializing, Failed], WorkerHealth::Initializing),
            (&[Initializing, Healthy], WorkerHealth::Healthy),
            (&[Healthy, Failed, Failed], WorkerHealth::Healthy),
            (&[Healthy, Failed, Failed, Healthy, Failed, Failed], WorkerHealth::Healthy),
            (&[Healthy, Failed, Failed, Failed], WorkerHealth::Unhealthy),
            (&[Healthy, Failed, Failed, Failed, Healthy], WorkerHealth::Healthy),
            (&[Healthy, Initializing], WorkerHealth::Initializing),
        ] {
            assert_eq!(after(checks), expected, "{checks:?}");
        }
    }
}
