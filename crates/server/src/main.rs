//! The `longshore` program: reads settings, starts the server, and stops it after a signal.

mod allocator;
mod backup;
mod bootstrap_key;
mod command_line;
mod confidential;
mod copy;
mod dev_host;
mod fd_limit;
mod files;
mod gpu_watch;
mod history;
mod listener;
mod logging;
mod logs;
mod machine;
mod migrate;
mod node;
mod objects;
mod parts;
mod reserve;
mod scrub;
mod secrets;
mod serve;
mod service;
mod settings;
mod startup_error;
mod store;
mod worker_runtime;

use std::process::ExitCode;

use longshore_cli::{Command, SecretCommand};

use dev_host::DevHost;
use startup_error::StartupError;

// A build with planted mistakes must never serve.
const _: () = assert!(!longshore_planted::ARMED, "build the server without the feature `planted`");

fn main() -> ExitCode {
    let command = command_line::parse().command;
    if let Command::WorkerShim(args) = &command {
        // Each worker has one shim process: it needs little memory and no runtime.
        return longshore_launch::shim::main(&args.scratch);
    }
    if let Command::Serve(_) | Command::Dev(_) = &command
        && let Err(error) = confidential::hide()
    {
        return StartupError::Confidential(error).report();
    }
    // These commands work on files only.
    match &command {
        Command::Store(command) => return store::run(command),
        Command::Backup(args) => return backup::backup(args),
        Command::Restore(args) => return backup::restore(args),
        _ => {}
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return StartupError::Runtime(error).report(),
    };
    let code = runtime.block_on(async {
        match command {
            Command::Serve(args) => ended(serve::serve(&args).await),
            Command::Secret(SecretCommand::NewKey(args)) => ended(secrets::new_key(&args)),
            Command::Secret(SecretCommand::Rotate(args)) => ended(secrets::rotate(&args).await),
            Command::Copy(args) => copy::run(&args).await.unwrap_or_else(|fatal| fatal.report()),
            Command::Migrate(args) => migrate::run(&args).await.unwrap_or_else(|fatal| fatal.report()),
            Command::Dev(args) => longshore_cli::dev::dev(&args, &DevHost).await,
            Command::Doctor(args) => longshore_cli::doctor(&args, serve::plan(&args).await).await,
            command => longshore_cli::run(&command).await,
        }
    });
    // Blocking threads that still run have no result to deliver.
    runtime.shutdown_background();
    code
}

/// The exit code of a command; reports its error.
fn ended(outcome: Result<(), StartupError>) -> ExitCode {
    outcome.map_or_else(|fatal| fatal.report(), |()| ExitCode::SUCCESS)
}
