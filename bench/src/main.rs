//! Measures the built server: runs baselines and scenarios in turn, and writes their ratios as a table and a file.
//! Run it as `cargo xtask bench`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is run by hand: what cannot be printed need not go on"
)]

mod arguments;
mod baselines;
mod cores;
mod database_cost;
mod goals;
mod http;
mod load;
mod machine;
mod peers;
mod pg_wire;
mod plot;
mod postgres_server;
mod process;
mod program;
mod readings;
mod report;
mod scenarios;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use clap::Parser as _;

use arguments::{Arguments, BenchStore, Part};
use cores::Cores;
use goals::{DATABASE_GOALS, GOALS, PEER_GOALS};
use machine::Machine;
use peers::PEERS;
use postgres_server::PostgresServer;
use readings::Readings;
use report::Report;
use scenarios::{BESIDE_THE_LOG, DATABASE_SCENARIOS, SCENARIOS, Scenario, ScenarioContext};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.part {
        Some(Part::Floor { which }) => baselines::serve(which),
        None if arguments.list => {
            for scenario in offered(&arguments) {
                println!("{:<16}{}", scenario.name, scenario.about);
            }
            Ok(())
        }
        None => run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let chosen = choose(offered(arguments), &arguments.only)?;
    let server = arguments.server.clone().ok_or("no program to measure; name it with --server")?;
    let server = std::path::absolute(server).map_err(|error| error.to_string())?;
    let data = make_data_folder(&arguments.data)?;
    let cores = Cores::claim().map_err(|error| format!("cannot choose a processor: {error}"))?;
    let Arguments { quick, crowd, peers, .. } = arguments.clone();
    // Workers run in a folder of their own.
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(std::path::absolute).transpose();
    let python = absolute(&arguments.python).map_err(|error| error.to_string())?;
    let heavy_python = absolute(&arguments.heavy_python).map_err(|error| error.to_string())?;
    let database = match arguments.store {
        BenchStore::Embedded => None,
        BenchStore::Postgres => Some(Rc::new(PostgresServer::start(&data, cores)?)),
    };
    let store_load = absolute(&arguments.store_load).map_err(|error| error.to_string())?;
    let context = ScenarioContext {
        server,
        data,
        cores,
        peers,
        python,
        heavy_python,
        quick,
        crowd,
        database,
        flush_ms: 0,
        store_load,
        soak_s: arguments.soak,
    };
    let mut report = Report {
        command: arguments.as_typed(),
        began: machine::now_utc(),
        machine: Machine::describe(cores),
        repetitions: Vec::new(),
        targets: match arguments.store {
            // The other promised figures are those of the log.
            BenchStore::Postgres => DATABASE_GOALS,
            BenchStore::Embedded if arguments.peers.is_some() => PEER_GOALS,
            BenchStore::Embedded => GOALS,
        },
    };
    eprintln!("{} ({})", report.machine.cpu, report.machine.pinning);
    report.repetitions = measure(&context, &chosen, arguments.reps)?;
    print!("{}", report.text());
    if context.quick {
        println!("\nquick: the figures mean nothing; every scenario ran");
    }
    println!("\nwritten to {}", report.write(&arguments.results)?.display());
    Ok(())
}

/// Returns the scenarios to choose from.
fn offered(arguments: &Arguments) -> Vec<&'static Scenario> {
    match (&arguments.peers, arguments.store) {
        (Some(_), _) => PEERS.iter().collect(),
        (None, BenchStore::Embedded) => SCENARIOS.iter().collect(),
        (None, BenchStore::Postgres) => SCENARIOS.iter().chain(DATABASE_SCENARIOS).collect(),
    }
}

fn choose(offered: Vec<&'static Scenario>, only: &[String]) -> Result<Vec<&'static Scenario>, String> {
    for name in only {
        if !offered.iter().any(|scenario| scenario.name == name) {
            let known: Vec<&str> = offered.iter().map(|scenario| scenario.name).collect();
            return Err(format!("unknown scenario `{name}`; choose from {}", known.join(", ")));
        }
    }
    let is_wanted = |scenario: &&'static Scenario| {
        let is_beside = scenario.name == "store" && only.iter().any(|name| BESIDE_THE_LOG.contains(&&**name));
        only.is_empty()
            || only.iter().any(|name| scenario.name == name)
            || scenario.name == "floors"
            || is_beside
    };
    Ok(offered.into_iter().filter(is_wanted).collect())
}

fn make_data_folder(folder: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    machine::require_disk(folder)?;
    std::path::absolute(folder).map_err(|error| error.to_string())
}

/// Runs all scenarios once per repetition, so that a disturbance of the computer affects all of them alike.
fn measure(context: &ScenarioContext, chosen: &[&Scenario], reps: usize) -> Result<Vec<Readings>, String> {
    let began = Instant::now();
    let mut repetitions = Vec::new();
    for rep in 1..=reps {
        let mut readings = Readings::default();
        for scenario in chosen.iter().filter(|scenario| rep == 1 || !scenario.once) {
            eprintln!("[{:>4} s] {rep}/{reps} {}", began.elapsed().as_secs(), scenario.name);
            (scenario.run)(context, &mut readings).map_err(|error| format!("{}: {error}", scenario.name))?;
            if context.database.is_some() && BESIDE_THE_LOG.contains(&scenario.name) {
                measure_beside(context, scenario, &mut readings)?;
            }
        }
        repetitions.push(readings);
    }
    Ok(repetitions)
}

/// Runs a scenario with servers that have their rows in a log, and in a database with slower flushes.
fn measure_beside(
    context: &ScenarioContext,
    scenario: &Scenario,
    readings: &mut Readings,
) -> Result<(), String> {
    let log = ScenarioContext { database: None, ..context.clone() };
    let slow = ScenarioContext { flush_ms: 2, ..context.clone() };
    for (name, context) in [("log", log), ("flush_2ms", slow)] {
        eprintln!("       {} ({name})", scenario.name);
        let mut beside = Readings::default();
        (scenario.run)(&context, &mut beside)
            .map_err(|error| format!("{} ({name}): {error}", scenario.name))?;
        readings.put_all(name, &beside);
    }
    Ok(())
}
