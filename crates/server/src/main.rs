//! The `longshore` program: settings → parts → run → drain.

mod allocator;
mod backup;
mod bootstrap_key;
mod confidential;
mod dev_host;
mod fd_limit;
mod files;
mod listener;
mod logging;
mod parts;
mod scrub;
mod secrets;
mod serve;
mod service;
mod settings;
mod startup_error;
mod store;

use std::process::ExitCode;

use clap::Parser;
use longshore_cli::{Arguments, Command};

use dev_host::DevHost;
use startup_error::StartupError;

// What is built with planted mistakes must never serve.
const _: () = assert!(!longshore_planted::ARMED, "build the server without the feature `planted`");

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    if let Command::WorkerShim(args) = &command {
        // One of these lives beside every worker: it stays small and needs no runtime.
        return longshore_launch::shim::main(&args.scratch);
    }
    if let Command::Serve(_) | Command::Dev(_) = &command
        && let Err(error) = confidential::hide()
    {
        return StartupError::Confidential(error).report();
    }
    // These work on files, and wait for nothing else.
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
            Command::Serve(args) => match serve::serve(&args).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(fatal) => fatal.report(),
            },
            Command::Secrets(command) => match secrets::run(&command).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(fatal) => fatal.report(),
            },
            Command::Dev(args) => longshore_cli::dev::dev(&args, &DevHost).await,
            Command::Doctor(args) => longshore_cli::doctor(&args, serve::plan(&args)).await,
            command => longshore_cli::run(&command).await,
        }
    });
    // What still runs on blocking threads has nothing left to say.
    runtime.shutdown_background();
    code
}
