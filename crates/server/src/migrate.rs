//! `longshore migrate`: brings the tables of the database up to date without a server.

use std::io::{self, Write as _};
use std::process::ExitCode;

use longshore_cli::{MigrateArgs, ServeArgs, count};
use longshore_postgres::SchemaVersions;

use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{parts, serve};

/// Brings the database named by the arguments to the schema of this version, and prints each step.
pub(crate) async fn run(args: &MigrateArgs) -> Result<ExitCode, StartupError> {
    let serve_args = ServeArgs { config: args.config.clone(), ..ServeArgs::default() };
    let settings = Settings::load(&serve_args, serve::environment())?;
    let Some(database) = settings.database()? else {
        return Err(StartupError::NotWithDatabase(
            "there is nothing to migrate: `store` names no database; name the settings file with --config, or set LONGSHORE_STORE",
        ));
    };
    let database = parts::with_authorities(&settings, database)?;
    let address = database.address();
    if args.check {
        let found = longshore_postgres::versions(&database).await?;
        tell(&checked(&address, found));
        return Ok(if found.present == found.known { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let done = longshore_postgres::migrate_database(&database).await?;
    tell(&migrated(&address, done));
    Ok(ExitCode::SUCCESS)
}

fn checked(address: &str, found: SchemaVersions) -> String {
    let SchemaVersions { present, known } = found;
    match (present, known - present) {
        (_, 0) => format!("database {address}: the tables have version {known} and are up to date"),
        (0, _) => format!("database {address}: there are no tables yet; this program makes version {known}"),
        (_, missing) => format!(
            "database {address}: the tables have version {present}, and this program makes {known}: {} to apply",
            count(u64::from(missing.unsigned_abs()), "migration")
        ),
    }
}

fn migrated(address: &str, done: SchemaVersions) -> String {
    let SchemaVersions { present, known } = done;
    match present {
        0 => format!("database {address}: made tables of version {known}"),
        present if present == known => checked(address, done),
        present => format!("database {address}: changed the tables from version {present} to {known}"),
    }
}

/// A closed standard output does not fail a finished command.
fn tell(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
