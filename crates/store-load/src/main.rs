//! Commits the lives of jobs to a store in PostgreSQL and prints how fast, as lines of JSON. `cargo xtask bench --store postgres` runs it:
//! what a database costs is measured without HTTP.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the bench reads the output; what cannot be printed need not go on"
)]

mod lives;
mod million;
mod rows;
mod soak;
mod times;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use longshore_model::{Epoch, ShardId};
use longshore_postgres::{Database, PostgresStore};
use longshore_store::{Store as _, StoreError};
use serde::Serialize;

#[derive(Parser)]
struct Arguments {
    /// The database, whose tables are made; its user needs no password
    url: String,
    #[command(subcommand)]
    load: Load,
}

#[derive(Subcommand)]
enum Load {
    /// As many lives as possible: submit, take and done, each in batches
    Lives(lives::Lives),
    /// Stores waiting jobs, and reads their rows as an owner does at its start
    Million(million::Million),
    /// Lives at a fixed rate, each deleted after a retention time
    Soak(soak::Soak),
}

/// A store and the shard that all jobs of the load belong to.
struct Target {
    store: PostgresStore,
    shard: ShardId,
    epoch: Epoch,
}

impl Target {
    async fn open(url: &str) -> Result<Arc<Self>, StoreError> {
        let store = PostgresStore::open(Database::parse(url)?).await?;
        let shard = ShardId(1);
        let claimed = store.claim_shards(vec![shard]).await?;
        let none = || StoreError::Io("the database claimed no shard".to_owned());
        let epoch = claimed.first().copied().ok_or_else(none)?;
        Ok(Arc::new(Self { store, shard, epoch }))
    }
}

/// Prints a result as one line.
fn print(result: &impl Serialize) -> Result<(), StoreError> {
    let line = serde_json::to_string(result).map_err(|error| StoreError::Io(error.to_string()))?;
    println!("{line}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = async {
        let target = Target::open(&arguments.url).await?;
        match &arguments.load {
            Load::Lives(lives) => lives.run(target).await,
            Load::Million(million) => million.run(&target).await,
            Load::Soak(soak) => soak.run(target).await,
        }
    };
    match outcome.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore-store-load: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
