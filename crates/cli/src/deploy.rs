//! `longshore deploy`: what `dev` does, on a server elsewhere.
//!
//! The folder goes there as an archive, under the hash of it. A template runs that version, an endpoint runs the
//! template; the Python environment is made by the first worker. Deploying again replaces the workers, the busy ones
//! when they have finished; an earlier version is a hash away.

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
use crate::logs::last_words;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};
use crate::table::Column;

pub use worker::{CodeWorkerArgs, code_worker};

/// What the workers of a version find in their environment.
const VERSION_ENV: &str = "LONGSHORE_CODE_VERSION";
/// Enough of a hash to tell versions apart.
const HASH_CHARS: usize = 12;
/// Lines of a worker that does not stay up.
const LAST_LINES: u32 = 20;
const MILLION: f64 = 1_000_000.0;

const VERSIONS: &[Column] = &[
    Column::new("HASH", "hash"),
    Column::new("CREATED", "createdAt"),
    Column::new("FILES", "files"),
    Column::new("BYTES", "bytes"),
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

/// Brings the folder to the server and its endpoint up to it.
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

/// What the template of a deployed endpoint is called.
pub(crate) fn template_name(slug: &str) -> String {
    format!("deploy-{slug}")
}

async fn upload(session: &Connection, project: &Project) -> CommandResult<CodeVersion> {
    let packed = archive::pack(&project.dir)?;
    let bytes = packed.archive.len() as f64;
    let step = session.screen.step(format!("sending {} files", packed.files));
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
    step.done(&format!("{} files are there ({:.1} MB)", packed.files, bytes / MILLION));
    Ok(version)
}

/// `████░░░░░░`.
fn bar(share: f64) -> String {
    let full = ((share * 10.0) as usize).min(10);
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

/// The one version whose hash begins so.
async fn earlier(session: &Connection, project: &Project, hash: &str) -> CommandResult<CodeVersion> {
    let mut versions = session.client.code_versions(&project.code_name()).await?;
    versions.retain(|version| version.hash.starts_with(hash));
    let next = format!("`longshore deploy {} --list` shows those there are", project.dir.display());
    match versions.len() {
        1 => Ok(versions.remove(0)),
        0 => {
            Err(CommandError::new(CommandExit::NotFound, format!("`{}` has no version {hash}", project.slug))
                .next(next))
        }
        many => Err(CommandError::usage(format!("{hash} begins the hash of {many} versions")).next(next)),
    }
}

async fn try_sample(session: &Connection, project: &Project, path: &std::path::Path) -> CommandResult {
    let sample = Sample::load(path)?;
    match sample::run(&session.client, &project.slug, &sample, &session.screen).await? {
        SampleResult::Completed => Ok(CommandExit::Success),
        SampleResult::NotCompleted => Ok(CommandExit::JobFailed),
        SampleResult::NoWorker => {
            // What the worker said is the reason; that it cannot be had is not.
            let words = last_words(&session.client, &project.slug, LAST_LINES).await.unwrap_or_default();
            Err(CommandError::new(
                CommandExit::Failure,
                "the workers of this version do not stay up; the last one said:",
            )
            .with_lines(words)
            .next(format!(
                "mend it and deploy again, or go back: `longshore deploy {} --list`, then --to HASH",
                project.dir.display()
            )))
        }
    }
}
