//! Does the simulator find anything? Hunts for mistakes that are planted in the server.
//!
//! Every mistake has a budget of worlds, several times what was needed when it was set. The worlds are always the
//! same, so a hunt ends in the same world until somebody changes what happens in it.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use longshore_planted::{Bug, plant};

use crate::auditor::Violation;
use crate::life;

/// Steps of a world in a hunt, before it calms down.
pub const STEPS: u64 = 20_000;
/// Worlds of a hunt, where [`BUDGETS`] says nothing else.
pub const WORLDS: u64 = 100;

/// Mistakes that need rarer worlds, and their budgets.
const BUDGETS: &[(Bug, u64)] = &[];

/// Where a hunt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunt {
    /// What was hunted for.
    pub bug: Bug,
    /// Worlds that were lived through.
    pub worlds: u64,
    /// Worlds that there could have been.
    pub budget: u64,
    /// How the last of them showed the mistake.
    pub found: Option<Violation>,
}

/// How many worlds a hunt may take.
pub fn budget(bug: Bug) -> u64 {
    BUDGETS.iter().find(|(of, _)| *of == bug).map_or(WORLDS, |(_, worlds)| *worlds)
}

/// Lives through worlds with this mistake until one shows it.
pub fn hunt(bug: Bug, first_seed: u64, budget: u64, steps: u64) -> Hunt {
    plant(Some(bug));
    let mut hunt = Hunt { bug, worlds: 0, budget, found: None };
    while hunt.found.is_none() && hunt.worlds < budget {
        let outcome = life::live(first_seed.wrapping_add(hunt.worlds), steps, false);
        hunt.worlds += 1;
        hunt.found = outcome.violations.into_iter().next();
    }
    plant(None);
    hunt
}

/// Hunts for every mistake within its budget, as many at a time as there are cores; in the order of the list.
pub fn hunt_all(steps: u64, ended: impl Fn(&Hunt) + Sync) -> Vec<Hunt> {
    let waiting = Mutex::new(Bug::ALL.iter().copied());
    let hunts = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(bug) = next else { return };
            let hunt = hunt(bug, 0, budget(bug), steps);
            ended(&hunt);
            hunts.lock().unwrap_or_else(PoisonError::into_inner).push(hunt);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut hunts = hunts.into_inner().unwrap_or_else(PoisonError::into_inner);
    hunts.sort_by_key(|hunt| hunt.bug);
    hunts
}
