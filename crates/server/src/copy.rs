//! `longshore copy`: moves all rows and payloads of a stopped server between a data directory and a database.
//!
//! ```text
//! from: data directory or tables ──► rows, payloads ──► to: a new one under a temporary name ──► read back, compared, renamed
//! ```

mod ends;
mod files;
mod progress;
mod rows;
mod tally;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longshore_cli::{CopyArgs, ServeArgs};
use longshore_postgres::Database;
use longshore_store::Catalog;

use self::ends::{Source, Target};
use self::files::Files;
use self::progress::CopyProgress;
use self::tally::Tally;
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{parts, secrets, serve};

/// A source or target of `longshore copy`: a data directory, or a schema of a database.
pub(crate) enum CopyPlace {
    Folder(PathBuf),
    Database(Box<Database>),
}

impl std::fmt::Display for CopyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Database(database) => write!(f, "the database {}", database.address()),
        }
    }
}

/// Runs the command.
pub(crate) async fn run(args: &CopyArgs) -> Result<ExitCode, StartupError> {
    let settings = settings(args)?;
    let (from, to) = (place(args, &args.from)?, place(args, &args.to)?);
    if matches!(
        (&from, &to),
        (CopyPlace::Folder(_), CopyPlace::Folder(_)) | (CopyPlace::Database(_), CopyPlace::Database(_))
    ) {
        return Err(StartupError::Copy(
            "one of --from and --to must be a data directory, and the other one an address postgres://…"
                .to_owned(),
        ));
    }
    let names = (from.to_string(), to.to_string());
    let source = Source::open(from, args.files.as_deref()).await?;
    let catalog = source.store().catalog().await?;
    longshore_engine::check_keys(&secrets::vault(&settings)?, &catalog)?;
    let target = Target::make(to, args.files.as_deref(), settings.folder_blob_bytes_min()).await?;
    let (tally, files) = copied(&source, target, &catalog).await?;
    tell(&format!("copied {} to {}: {tally}; read back and compared", names.0, names.1));
    files.tell(args);
    Ok(ExitCode::SUCCESS)
}

/// Copies everything, reads it back and makes it visible.
async fn copied(
    source: &Source,
    mut target: Target,
    catalog: &Catalog,
) -> Result<(Tally, Files), StartupError> {
    let done = async {
        let mut progress = CopyProgress::new("copied");
        let sent = rows::copy(source.rows(), &target.rows()?, catalog, &mut progress).await?;
        progress.end();
        target.open_again().await?;
        let mut progress = CopyProgress::new("compared");
        let found = rows::read(&target.rows()?, &mut progress).await?;
        progress.end();
        if found != sent {
            return Err(StartupError::Copy(format!(
                "what was written differs from what was read: {found} instead of {sent}; check the disks, and copy again"
            )));
        }
        let files = Files::copy(source.files(), target.files())?;
        Ok((sent, files))
    };
    match done.await {
        Ok(done) => {
            target.publish().await?;
            Ok(done)
        }
        Err(error) => {
            target.discard().await;
            Err(error)
        }
    }
}

/// The settings of the keys, and of files for large payloads.
fn settings(args: &CopyArgs) -> Result<Settings, StartupError> {
    let serve_args = ServeArgs { secrets_key_file: args.secrets_key_file.clone(), ..ServeArgs::default() };
    Ok(Settings::load(&serve_args, serve::environment())?)
}

fn place(args: &CopyArgs, text: &str) -> Result<CopyPlace, StartupError> {
    if !text.contains("://") {
        return Ok(CopyPlace::Folder(text.into()));
    }
    let database = Database::parse(text).map_err(|error| {
        let option = if text == args.from { "--from" } else { "--to" };
        let text = error.to_string().replace("the setting `store`", option);
        StartupError::Copy(text.replace("the file of `store_password_file`", "the file of --password-file"))
    })?;
    let database = match &args.password_file {
        Some(path) => database.with_password_file(path),
        None => database,
    };
    Ok(CopyPlace::Database(Box::new(parts::trusting(args.ca_file.as_deref(), database)?)))
}

/// A closed standard output does not fail a finished copy.
fn tell(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Whether a directory has the log of a store.
fn has_log(dir: &Path) -> bool {
    dir.join("log").is_dir() || dir.join("log-end").exists()
}
