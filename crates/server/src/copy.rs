//! `longshore copy`: moves all rows and payloads of a stopped server between a data directory and a database.
//!
//! ```text
//! from: data directory or tables ──► rows, payloads ──► to: a new one under a temporary name ──► read back, compared, renamed
//! ```

mod ends;
mod files;
mod logs;
mod progress;
mod rows;
mod tally;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longshore_cli::{CopyArgs, ServeArgs};
use longshore_objects::{Credentials, ObjectBlobs};
use longshore_postgres::Database;
use longshore_store::{Catalog, PAYLOADS_AT};

use self::ends::{Source, Target};
use self::files::Files;
use self::logs::LogTally;
use self::progress::CopyProgress;
use self::tally::Tally;
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::{objects, parts, secrets, serve};

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
    let has_objects = args.from_blobs.is_some() || args.to_blobs.is_some();
    let is_possible = match (&from, &to) {
        (CopyPlace::Database(_), CopyPlace::Database(_)) => false,
        // Payloads move between a folder and object storage.
        (CopyPlace::Folder(_), CopyPlace::Folder(_)) => has_objects,
        _ => true,
    };
    if !is_possible {
        return Err(StartupError::Copy(
            "one of --from and --to must be a data directory, and the other one an address postgres://…; both can be data \
             directories with --from-blobs or --to-blobs"
                .to_owned(),
        ));
    }
    let names = (from.to_string(), to.to_string());
    let from_objects = objects_of(args, args.from_blobs.as_deref(), "--from-blobs").await?;
    let to_objects = objects_of(args, args.to_blobs.as_deref(), "--to-blobs").await?;
    let source = Source::open(from, args.files.as_deref(), from_objects).await?;
    let mut catalog = source.store().catalog().await?;
    let vault = secrets::vault(&settings)?;
    longshore_engine::check_keys(&vault, &catalog)?;
    check_payloads(catalog.settings.remove(PAYLOADS_AT).as_deref(), args)?;
    if let Some(objects) = &to_objects {
        longshore_engine::claim_payloads(objects, &vault, &catalog).await?;
    }
    let blob_bytes_min = match &to {
        CopyPlace::Folder(_) => settings.folder_blob_bytes_min(),
        CopyPlace::Database(_) => settings.database_blob_bytes_min(to_objects.is_some()),
    };
    let target = Target::make(to, args.files.as_deref(), blob_bytes_min, to_objects).await?;
    let (tally, logs, files) = copied(&source, target, &catalog).await?;
    tell(&format!("copied {} to {}: {tally}; read back and compared", names.0, names.1));
    tell(&format!("copied {logs}"));
    files.tell(args);
    Ok(ExitCode::SUCCESS)
}

/// The payloads of an option; `None` without it.
async fn objects_of(
    args: &CopyArgs,
    text: Option<&str>,
    option: &str,
) -> Result<Option<ObjectBlobs>, StartupError> {
    let Some(text) = text else { return Ok(None) };
    let place = longshore_objects::Place::parse(text);
    let place = place.map_err(|what| StartupError::Copy(format!("{option} {what}")))?;
    let credentials = match &args.blobs_credentials_file {
        Some(path) => Credentials::read(path).map_err(StartupError::Copy)?,
        None => Credentials::default(),
    };
    let storage = objects::open_place(&place, &credentials, args.ca_file.as_deref())?;
    storage.probe().await.map_err(StartupError::Copy)?;
    Ok(Some(ObjectBlobs::new(storage)))
}

/// Fails if the payloads that are read are not where the options say. `at` is where the rows say that they are.
fn check_payloads(at: Option<&[u8]>, args: &CopyArgs) -> Result<(), StartupError> {
    let at = at.map(String::from_utf8_lossy);
    match (at, &args.from_blobs) {
        (Some(at), None) => Err(StartupError::Copy(format!(
            "the large payloads are in {at}: name it with --from-blobs, and its keys with --blobs-credentials-file"
        ))),
        (None, Some(_)) => {
            let text = "the large payloads are not in object storage: leave --from-blobs out";
            Err(StartupError::Copy(text.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Copies everything, reads it back and makes it visible.
async fn copied(
    source: &Source,
    mut target: Target,
    catalog: &Catalog,
) -> Result<(Tally, LogTally, Files), StartupError> {
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
        let logs = match (source.logs(), target.logs()) {
            (Some(table), None) => {
                let dir =
                    target.files().ok_or_else(|| StartupError::Copy("no directory for logs".to_owned()))?;
                logs::to_files(&table, &dir).await?
            }
            (None, Some(table)) => match source.files() {
                Some(dir) => logs::to_table(dir, &table).await?,
                None => LogTally::default(),
            },
            _ => LogTally::default(),
        };
        let files = Files::copy(source.files(), target.files())?;
        Ok((sent, logs, files))
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
