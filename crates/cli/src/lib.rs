//! The commands of the `longshore` program.
//!
//! This crate knows how a server is talked to, not how one is made: whoever builds the program hands in a
//! [`dev::ServerHost`] for the commands that bring their own server, and reads its settings for `doctor`.

mod args;
mod backup;
mod bench;
mod confirm;
mod deploy;
pub mod dev;
mod doctor;
mod exit;
mod input;
mod jobs;
mod login;
mod logs;
mod members;
mod metrics;
mod output;
mod pages;
mod pretty;
mod profile;
mod remote;
mod resources;
mod screen;
mod stop;
mod store;
mod table;
mod top;
mod traceback;
mod workers;

use std::process::ExitCode;

pub use args::{
    Arguments, Command, DevArgs, LogFormat, NewKeyArgs, OnOff, RotateArgs, SecretsCommand, ServeArgs,
    ShimArgs,
};
pub use backup::{BackupArgs, RestoreArgs};
pub use deploy::{CodeWorkerArgs, code_worker};
pub use doctor::{DoctorArgs, ServerPlan};
pub use store::{RecoverArgs, StoreCommand, VerifyArgs};

use exit::CommandResult;

/// Looks for what would keep a server from working here. `plan` is what its settings come to.
pub async fn doctor(args: &DoctorArgs, plan: Result<ServerPlan, String>) -> ExitCode {
    ended(doctor::doctor(args, plan).await)
}

/// Runs a command that talks to a server, or to nobody. Those that are a server, or bring one along, are none of
/// them and fail. Must be called inside a tokio runtime.
pub async fn run(command: &Command) -> ExitCode {
    ended(match command {
        Command::Login(args) => login::login(args).await,
        Command::Run(args) => jobs::run(args).await,
        Command::Runsync(args) => jobs::runsync(args).await,
        Command::Status(args) => jobs::status(args).await,
        Command::Stream(args) => jobs::stream(args).await,
        Command::Cancel(args) => jobs::cancel(args).await,
        Command::Retry(args) => jobs::retry(args).await,
        Command::Purge(args) => jobs::purge(args).await,
        Command::Health(args) => jobs::health(args).await,
        Command::Requests(args) => jobs::requests(args).await,
        Command::Endpoint(command) => command.run().await,
        Command::Template(command) => command.run().await,
        Command::Keys(command) => command.run().await,
        Command::Workers(args) => workers::workers(args).await,
        Command::Logs(args) => logs::logs(args).await,
        Command::Deploy(args) => deploy::deploy(args).await,
        Command::CodeWorker(args) => return code_worker(args).await,
        Command::Top(args) => top::top(args).await,
        Command::Bench(args) => bench::bench(args).await,
        Command::Completions(args) => pages::completions(args),
        Command::Man(args) => pages::man(args),
        Command::Dev(_)
        | Command::Serve(_)
        | Command::Doctor(_)
        | Command::Secrets(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Store(_)
        | Command::WorkerShim(_) => Err(exit::CommandError::usage("this command is not run here")),
    })
}

fn ended(outcome: CommandResult) -> ExitCode {
    outcome.map_or_else(|failure| failure.report(), ExitCode::from)
}
