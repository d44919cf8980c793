//! The commands of the `longshore` program.
//!
//! This crate is a client of servers and does not contain one. The server's crate passes a [`dev::ServerHost`] for
//! `dev`, and a [`ServerPlan`] read from its settings for `doctor`.

mod args;
mod audit;
mod backup;
mod bench;
mod confirm;
mod console;
mod database;
mod deploy;
pub mod dev;
mod doctor;
mod exit;
mod gpus;
mod hidden_input;
mod human;
mod image;
mod init;
mod input;
mod jobs;
mod login;
mod logs;
#[cfg(test)]
mod manual;
mod members;
mod metrics;
mod nodes;
mod observability;
mod output;
mod pages;
mod pretty;
mod profile;
mod rehearse;
mod remote;
mod resources;
mod screen;
mod server;
mod sessions;
mod stop;
mod store;
mod table;
mod tls;
mod top;
mod traceback;
mod usage;
mod workers;

use std::process::ExitCode;

pub use args::{Arguments, Command, DevArgs, LogFormat, NewKeyArgs, OnOff, RotateArgs, ServeArgs, ShimArgs};
pub use backup::{BackupArgs, RestoreArgs};
pub use database::{CopyArgs, MigrateArgs};
pub use deploy::{CodeWorkerArgs, code_command, code_worker};
pub use doctor::{CheckStatus, DoctorArgs, ServerPlan};
pub use human::{count, size};
pub use resources::SecretCommand;
pub use store::{RecoverArgs, StoreCommand, VerifyArgs};
pub use tls::TlsCommand;

use exit::CommandResult;

/// Runs `longshore doctor`: checks this computer. `plan` is what a server with the settings would use, or why they
/// are invalid.
pub async fn doctor(args: &DoctorArgs, plan: Result<ServerPlan, String>) -> ExitCode {
    ended(doctor::doctor(args, plan).await)
}

/// Runs a command that needs no server of its own. Fails for the commands that run or bring a server. Must be
/// called inside a tokio runtime.
pub async fn run(command: &Command) -> ExitCode {
    ended(match command {
        Command::Init(args) => init::init(args),
        Command::Login(args) => login::login(args).await,
        Command::Run(args) => jobs::run(args).await,
        Command::Runsync(args) => jobs::runsync(args).await,
        Command::Status(args) => jobs::status(args).await,
        Command::Stream(args) => jobs::stream(args).await,
        Command::Cancel(args) => jobs::cancel(args).await,
        Command::Retry(args) => jobs::retry(args).await,
        Command::Bulk(args) => jobs::bulk(args).await,
        Command::Purge(args) => jobs::purge(args).await,
        Command::Health(args) => jobs::health(args).await,
        Command::Explain(args) => jobs::explain(args).await,
        Command::History(args) => jobs::history(args).await,
        Command::Failures(args) => jobs::failures(args).await,
        Command::Webhooks(args) => jobs::webhooks(args).await,
        Command::Rehearse(args) => rehearse::rehearse(args).await,
        Command::Requests(args) => jobs::requests(args).await,
        Command::Endpoint(command) => command.run().await,
        Command::Template(command) => command.run().await,
        Command::Keys(command) => command.run().await,
        Command::Secret(command) => command.run().await,
        Command::Volume(command) => command.run().await,
        Command::Registry(command) => command.run().await,
        Command::Audit(args) => audit::audit(args).await,
        Command::Sessions(command) => command.run().await,
        Command::Usage(args) => usage::usage(args).await,
        Command::Workers(args) => workers::workers(args).await,
        Command::Server(args) => server::show(args).await,
        Command::Drain(args) => server::drain(args).await,
        Command::Logs(args) => logs::logs(args).await,
        Command::Deploy(args) => deploy::deploy(args).await,
        Command::CodeWorker(args) => return code_worker(args).await,
        Command::Top(args) => top::top(args).await,
        Command::Gpus(args) => gpus::gpus(args).await,
        Command::Nodes(args) => nodes::nodes(args).await,
        Command::Console(args) => console::console(args).await,
        Command::Bench(args) => bench::bench(args).await,
        Command::Observability(args) => observability::observability(args),
        Command::Completions(args) => pages::completions(args),
        Command::Man(args) => pages::man(args),
        Command::Tls(command) => tls::run(command),
        Command::Dev(_)
        | Command::Serve(_)
        | Command::Doctor(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Store(_)
        | Command::Migrate(_)
        | Command::Copy(_)
        | Command::WorkerShim(_) => Err(exit::CommandError::usage("this command needs the server's program")),
    })
}

fn ended(outcome: CommandResult) -> ExitCode {
    outcome.map_or_else(|failure| failure.report(), ExitCode::from)
}
