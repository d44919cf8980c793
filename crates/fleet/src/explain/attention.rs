//! Which causes need a person: the problems that the console, metrics and alerts show.

use super::{CauseCode, Explanation, WaitCause};

/// How much a problem matters, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Jobs cannot run until a person does something.
    Bad,
    /// Jobs wait for something that may come without a person.
    Warn,
}

impl Severity {
    /// The severity in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Warn => "warn",
        }
    }
}

/// Returns the worst problem of an endpoint, from the explanation of why its jobs wait; `None` if it has none. Jobs that
/// wait only for their turn are no problem.
pub fn problem(explanation: &Explanation) -> Option<(Severity, &WaitCause)> {
    let waits = explanation.queued.is_none_or(|queued| queued > 0);
    let causes = core::iter::once(&explanation.cause).chain(&explanation.also);
    let problems = causes.filter_map(|cause| Some((severity(cause, waits)?, cause)));
    problems.min_by_key(|(severity, _)| *severity)
}

/// The severity of a cause; `None` if it is no problem. `waits`: jobs of the endpoint are queued.
fn severity(cause: &WaitCause, waits: bool) -> Option<Severity> {
    match cause.code {
        CauseCode::WorkerStarting if cause.is_late_start() => Some(Severity::Warn),
        _ if cause.is_beside_others() => Some(Severity::Warn),
        CauseCode::StoreFailing
        | CauseCode::GpuImpossible
        | CauseCode::StartFailed
        | CauseCode::WorkersCrash
        | CauseCode::WorkersUnhealthy => Some(Severity::Bad),
        CauseCode::ProviderUnavailable | CauseCode::NoExternalWorker | CauseCode::QueueFull if waits => {
            Some(Severity::Bad)
        }
        CauseCode::Draining
        | CauseCode::Paused
        | CauseCode::GpuBusy
        | CauseCode::GpuKept
        | CauseCode::MachineFull
        | CauseCode::WorkerSilent
            if waits =>
        {
            Some(Severity::Warn)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn explanation(codes: &[CauseCode], queued: u64) -> Explanation {
        let mut causes = codes.iter().map(|code| WaitCause {
            code: *code,
            since: None,
            title: String::new(),
            text: String::new(),
            details: Vec::new(),
            log_tail: Vec::new(),
            actions: Vec::new(),
        });
        Explanation {
            state: None,
            waiting_ms: None,
            position: None,
            queued: Some(queued),
            estimate: None,
            cause: causes.next().unwrap(),
            also: causes.collect(),
        }
    }

    #[test]
    fn the_worst_problem_counts_and_jobs_in_line_are_none() {
        use CauseCode::{InLine, NotWaiting, Paused, ProviderUnavailable, QueueFull, WorkersCrash};
        for (codes, queued, expected) in [
            (&[NotWaiting][..], 0, None),
            (&[InLine], 3, None),
            (&[NotWaiting, Paused], 0, None),
            (&[Paused], 3, Some((Severity::Warn, Paused))),
            (&[ProviderUnavailable], 0, None),
            (&[Paused, ProviderUnavailable], 3, Some((Severity::Bad, ProviderUnavailable))),
            (&[Paused, QueueFull], 3, Some((Severity::Bad, QueueFull))),
            (&[NotWaiting, WorkersCrash], 0, Some((Severity::Bad, WorkersCrash))),
        ] {
            let explanation = explanation(codes, queued);
            let found = problem(&explanation).map(|(severity, cause)| (severity, cause.code));
            assert_eq!(found, expected, "{codes:?}");
        }
    }
}
