//! Command line options of hunts for planted mistakes.

use std::process::ExitCode;

use clap::Args;
use longshore_planted::{Bug, plant};
use longshore_sim::faults::Fault;
use longshore_sim::hunt::{self, Hunt};
use longshore_sim::run::WorldKind;

/// Options that plant bugs and search for them.
#[derive(Args)]
pub struct HuntArgs {
    /// Plant this bug; with `--worlds`, stop at the first world that detects it
    #[arg(long, value_name = "NAME", value_parser = parse)]
    plant: Option<Bug>,
    /// Plant each known bug and search for it, each within its budget of worlds
    #[arg(long, conflicts_with_all = ["plant", "worlds", "trace"])]
    plants: bool,
}

fn parse(name: &str) -> Result<Bug, String> {
    Bug::parse(name).ok_or_else(|| {
        let names: Vec<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        format!("there is no such mistake; there are {}", names.join(", "))
    })
}

impl HuntArgs {
    /// The fault rates that the worlds of the hunt override.
    pub fn rates(&self) -> &'static [(Fault, f64)] {
        self.plant.map_or(&[], hunt::rates)
    }

    /// Whether the mistake needs worlds of several nodes.
    pub fn is_of_cluster(&self) -> bool {
        self.plant.is_some_and(|bug| hunt::kind(bug) == WorldKind::Cluster)
    }

    /// Runs the hunt, if one was requested. A single world is run by the caller, with the mistake planted.
    pub fn run(&self, seed: u64, worlds: Option<u64>, steps: u64) -> Option<ExitCode> {
        let hunts = match (self.plants, self.plant, worlds) {
            (true, ..) => hunt::hunt_all(steps, print),
            (false, Some(bug), Some(worlds)) => {
                let hunt = hunt::hunt(bug, seed, worlds, steps);
                print(&hunt);
                vec![hunt]
            }
            (false, bug, _) => {
                plant(bug);
                return None;
            }
        };
        let missed = hunts.iter().filter(|hunt| hunt.found.is_none()).count();
        println!("{} of {} planted mistakes found", hunts.len() - missed, hunts.len());
        Some(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn print(hunt: &Hunt) {
    let Hunt { bug, worlds, budget, found } = hunt;
    let found = found.as_ref().map_or("MISSED", |violation| violation.promise);
    println!("{:<24} {worlds:>5} of {budget:>5} worlds  {found}", bug.name());
}
