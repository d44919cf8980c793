//! Runs simulated worlds and prints the broken promises.

#![expect(clippy::print_stdout, reason = "it is run by hand: what cannot be printed need not go on")]

#[cfg(feature = "planted")]
mod hunt_args;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use longshore_sim::campaign::{self, Campaign, Summary};
use longshore_sim::run::{self, WorldKind, WorldResult};

/// Runs simulated worlds: the whole server with a seeded clock, disk, network and workers.
#[derive(Parser)]
#[command(
    name = "longshore-sim",
    after_help = "Examples:\n  longshore-sim --seed 7              replay world 7\n  longshore-sim --seed 7 --trace      and print everything that was seen in it\n  longshore-sim --worlds 1000         live through worlds 0 to 999 on every core\n  longshore-sim --cluster --seed 7    replay world 7 of several nodes\n  longshore-sim --worlds 100 --seed 5000 --steps 100000"
)]
struct Args {
    /// Seed of the world, or of the first one with --worlds
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of worlds, with consecutive seeds
    #[arg(long)]
    worlds: Option<u64>,
    /// Steps of a world until the faults stop
    #[arg(long, default_value_t = run::STEPS)]
    steps: u64,
    /// Worlds of 2 to 5 nodes on one database, instead of one server
    #[arg(long)]
    cluster: bool,
    /// Print every observation, one per line
    #[arg(long, conflicts_with = "worlds")]
    trace: bool,
    /// Stop after this number of worlds with a violated guarantee
    #[arg(long, default_value_t = 10)]
    failures: usize,
    #[cfg(feature = "planted")]
    #[command(flatten)]
    hunting: hunt_args::HuntArgs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let began = Instant::now();
    #[cfg(feature = "planted")]
    if let Some(code) = args.hunting.run(args.seed, args.worlds, args.steps) {
        return code;
    }
    #[cfg(feature = "planted")]
    let is_of_cluster = args.cluster || args.hunting.is_of_cluster();
    #[cfg(not(feature = "planted"))]
    let is_of_cluster = args.cluster;
    let kind = if is_of_cluster { WorldKind::Cluster } else { WorldKind::Server };
    let summary = if let Some(worlds) = args.worlds {
        let Args { seed, steps, failures, .. } = args;
        campaign::run_campaign(&Campaign { kind, first_seed: seed, worlds, steps, failures_max: failures })
    } else {
        #[cfg(feature = "planted")]
        let rates = args.hunting.rates();
        #[cfg(not(feature = "planted"))]
        let rates = &[];
        let outcome = run::run_world_of(kind, rates, args.seed, args.steps, args.trace);
        // A closed pipe means that the reader has enough.
        let _ = std::io::stdout().write_all(outcome.trace.as_bytes());
        let mut summary = Summary::default();
        summary.add(outcome);
        summary
    };
    print(kind, &summary, began.elapsed().as_secs_f64());
    if summary.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(kind: WorldKind, summary: &Summary, took_s: f64) {
    for outcome in &summary.failed {
        print_failed(kind, outcome);
    }
    let Summary { worlds, steps, ms, .. } = summary;
    let days = *ms as f64 / 86_400_000.0;
    let of = if kind == WorldKind::Cluster { " of several nodes" } else { "" };
    println!("{worlds} worlds{of}, {steps} steps, {days:.1} simulated days in {took_s:.1} s");
    println!("faults:");
    for (fault, count) in &summary.faults {
        println!("  {count:>12}  {fault:?}");
    }
    println!("promises checked:");
    for (promise, count) in &summary.checked {
        println!("  {count:>12}  {promise}");
    }
    println!("transitions of jobs:");
    for (transition, count) in &summary.transitions {
        println!("  {count:>12}  {transition:?}");
    }
    let taken = summary.transitions.values().filter(|count| **count > 0).count();
    println!("{taken} of {} transitions observed", summary.transitions.len());
}

fn print_failed(kind: WorldKind, outcome: &WorldResult) {
    let of = if kind == WorldKind::Cluster { "--cluster " } else { "" };
    println!("{of}--seed {}: {} violations", outcome.seed, outcome.violations.len());
    for violation in outcome.violations.iter().take(5) {
        println!("  at {} ms, {}: {}", violation.at.ms, violation.promise, violation.text);
    }
}
