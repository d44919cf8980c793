//! `longshore deploy`: deploys a directory as an endpoint of a server, which may be remote.
//!
//! The directory is uploaded as an archive and stored as a version named by the archive's hash. The endpoint's
//! template runs that version. The first worker creates the Python environment. A new version replaces idle workers
//! immediately and busy ones when their jobs end. `--to HASH` returns to an earlier version.

mod archive;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use longshore_client::CodeVersion;

use crate::dev::deploy::{self, Deployment};
use crate::dev::project::Project;
use crate::dev::sample::{self, Sample, SampleResult};
use crate::exit::{CommandError, CommandExit, CommandResult};
use crate::human::{count, size, size_cell, time_cell};
use crate::logs::last_words;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;

pub use worker::{CodeWorkerArgs, code_worker};

/// Environment variable that holds the version of the code that a worker runs.
const VERSION_ENV: &str = "LONGSHORE_CODE_VERSION";
/// Hex digits of a hash that are shown and passed to workers.
const HASH_CHARS: usize = 12;
/// Log lines that are shown of a worker that keeps crashing.
const LAST_LINES: u32 = 20;
const MILLION: f64 = 1_000_000.0;

const VERSIONS: &[Column] = &[
    Column::new("HASH", "hash"),
    Column::new("CREATED", "createdAt").shown_as(time_cell),
    Column::new("FILES", "files"),
    Column::new("SIZE", "bytes").shown_as(size_cell),
];

/// Arguments of `longshore deploy`.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// The folder with handler.py
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Return to the version with this hash
    #[arg(long, value_name = "HASH", conflicts_with = "list")]
    to: Option<String>,
    /// List the versions on the server, newest first
    #[arg(long)]
    list: bool,
    /// Do not run the sample job, `test_input.json`
    #[arg(long)]
    no_sample: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Uploads the directory and updates the endpoint.
pub(crate) async fn deploy(args: &DeployArgs) -> CommandResult {
    let project = Project::load(&args.dir)?;
    let session = args.remote.connect()?;
    if args.list {
        session.output.records(VERSIONS, &session.client.code_versions_text(&project.code_name()).await?)?;
        return Ok(CommandExit::Success);
    }
    let version = match &args.to {
        Some(hash) => earlier(&session, &project, hash).await?,
        None => upload(&session, &project).await?,
    };
    let deployment = Deployment {
        project: &project,
        template: template_name(&project.slug),
        workdir: version.workdir.clone(),
        command: &version.command,
        mark: (VERSION_ENV, &version.hash),
        fleet: None,
    };
    let endpoint = deploy::deploy(&session.client, &deployment).await?;
    let short: String = version.hash.chars().take(HASH_CHARS).collect();
    session.screen.good(&format!("endpoint {} runs {short} (version {})", project.slug, endpoint.version));
    match (session.output.format, project.sample()) {
        (OutputFormat::Table, Some(path)) if !args.no_sample => try_sample(&session, &project, &path).await,
        (OutputFormat::Table, _) => {
            session.screen.line(&format!("    longshore run {} '{{}}' --wait", project.slug));
            Ok(CommandExit::Success)
        }
        _ => {
            let record =
                session.client.get(longshore_client::Collection::Endpoints, endpoint.id.as_str(), "").await?;
            session.output.record(&record)?;
            Ok(CommandExit::Success)
        }
    }
}

/// Returns the name of the template of a deployed endpoint.
pub(crate) fn template_name(slug: &str) -> String {
    format!("deploy-{slug}")
}

async fn upload(session: &Connection, project: &Project) -> CommandResult<CodeVersion> {
    let packed = archive::pack(&project.dir)?;
    let bytes = packed.archive.len() as f64;
    let step = session.screen.step(format!("uploading {}", count(packed.files as u64, "file")));
    let sent = Arc::new(AtomicU64::new(0));
    let name = project.code_name();
    let upload = session.client.keep_code(&name, packed.archive, Arc::clone(&sent));
    tokio::pin!(upload);
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let version = loop {
        tokio::select! {
            version = &mut upload => break version?,
            _ = ticks.tick() => {
                let so_far = sent.load(Ordering::Relaxed) as f64;
                step.detail(format!("{} {:.1} of {:.1} MB", bar(so_far / bytes), so_far / MILLION, bytes / MILLION));
            }
        }
    };
    step.done(&format!("{} uploaded ({})", count(packed.files as u64, "file"), size(bytes as u64)));
    Ok(version)
}

/// A progress bar of ten characters: `████░░░░░░`.
fn bar(share: f64) -> String {
    let full = ((share * 10.0) as usize).min(10);
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

/// Returns the only version whose hash starts with `hash`.
async fn earlier(session: &Connection, project: &Project, hash: &str) -> CommandResult<CodeVersion> {
    let mut versions = session.client.code_versions(&project.code_name()).await?;
    versions.retain(|version| version.hash.starts_with(hash));
    let next = format!("`longshore deploy {} --list` lists the versions", project.dir.display());
    match versions.len() {
        1 => Ok(versions.remove(0)),
        0 => {
            Err(CommandError::new(CommandExit::NotFound, format!("`{}` has no version {hash}", project.slug))
                .next(next))
        }
        many => {
            Err(CommandError::usage(format!("{hash} is the start of {many} hashes; give more digits"))
                .next(next))
        }
    }
}

async fn try_sample(session: &Connection, project: &Project, path: &std::path::Path) -> CommandResult {
    let sample = Sample::load(path)?;
    match sample::run(&session.client, &project.slug, &sample, &session.screen).await? {
        SampleResult::Completed => Ok(CommandExit::Success),
        SampleResult::NotCompleted => Ok(CommandExit::JobFailed),
        SampleResult::NoWorker => {
            // The worker's log shows the reason. An unreadable log must not hide that the deployment failed.
            let words = last_words(&session.client, &project.slug, LAST_LINES).await.unwrap_or_default();
            Err(CommandError::new(
                CommandExit::Failure,
                "the workers of this version keep exiting; the last lines of the last one:",
            )
            .with_lines(words)
            .next(format!(
                "fix the handler and deploy again, or return to an earlier version: `longshore deploy {} --list`, then --to HASH",
                project.dir.display()
            )))
        }
    }
}
