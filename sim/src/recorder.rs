//! Passes observations to the auditor and writes the trace.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auditor::Auditor;
use crate::clock::Clock;
use crate::observation::Observation;

/// Receives all observations in order. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    clock: Clock,
    state: Arc<Mutex<RecorderState>>,
}

struct RecorderState {
    auditor: Auditor,
    /// One line per event; `None` without tracing.
    trace: Option<String>,
}

impl Recorder {
    /// Creates a recorder with or without a trace.
    pub fn new(clock: Clock, auditor: Auditor, traced: bool) -> Self {
        Self {
            clock,
            state: Arc::new(Mutex::new(RecorderState { auditor, trace: traced.then(String::new) })),
        }
    }

    /// Records an observation of a party.
    pub fn observe(&self, seen: &Observation) {
        let at = self.clock.now();
        let mut state = self.state();
        if let Some(trace) = &mut state.trace {
            // Writing into a string cannot fail.
            let _ = writeln!(trace, "{} {} {seen:?}", at.ms, at.wall_ms);
        }
        state.auditor.observe(at, seen);
    }

    /// Adds a line about an event that no party can observe to the trace only.
    pub fn note(&self, text: impl FnOnce() -> String) {
        let at = self.clock.now();
        if let Some(trace) = &mut self.state().trace {
            let _ = writeln!(trace, "{} {} # {}", at.ms, at.wall_ms, text());
        }
    }

    /// Takes the trace so far.
    pub fn take_trace(&self) -> String {
        self.state().trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Calls `look` with the auditor.
    pub fn auditor<T>(&self, look: impl FnOnce(&Auditor) -> T) -> T {
        look(&self.state().auditor)
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
