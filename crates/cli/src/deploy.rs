//! `longshore deploy`: deploys a directory as an endpoint of a server, which may be remote.
//!
//! The directory is uploaded as an archive and stored as a version named by the archive's hash. The endpoint's
//! template runs that version. The first worker creates the Python environment. A new version replaces idle workers
//! immediately and busy ones when their jobs end. `--to VERSION` brings an earlier version of the endpoint back.

mod archive;
mod build;
mod code_cache;
mod dockerignore;
mod env;
mod fetch;
mod versions;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use longshore_client::{ClientError, CodeOwner, CodeVersion, Endpoint};
use longshore_model::{EndpointId, EndpointType, EnvValue, Provider, SecretName};

use crate::dev::deploy::{self, Deployment};
use crate::dev::forwarded;
use crate::dev::project::{Program, Project};
use crate::dev::sample::{self, Sample, SampleResult};
use crate::exit::{CommandError, CommandExit, CommandResult};
use crate::human::{count, size};
use crate::image::{ImageArgs, registry_auth_id};
use crate::logs::last_words;
use crate::output::OutputFormat;
use crate::remote::{Connection, ServerArgs};

pub(crate) use env::EnvArgs;
pub use worker::{CodeWorkerArgs, code_command, code_worker};

/// Environment variable that holds the version of the code that a worker runs.
const VERSION_ENV: &str = "LONGSHORE_CODE_VERSION";
/// Hex digits of a hash that are shown and passed to workers.
const HASH_CHARS: usize = 12;
/// Log lines that are shown of a worker that keeps crashing.
const LAST_LINES: u32 = 20;

/// Options that only a new version can have.
const NOT_OF_A_RETURN: [&str; 6] = ["env", "secret", "gpu", "volume", "registry_auth", "provider"];

/// Arguments of `longshore deploy`.
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// Folder of the handler or the image's sample
    #[arg(value_name = "DIR", required_unless_present_any = ["image", "name"])]
    dir: Option<PathBuf>,
    #[command(flatten)]
    image: ImageArgs,
    /// Bring this version, or hash of code, back
    #[arg(long, value_name = "VERSION", group = "what", conflicts_with_all = NOT_OF_A_RETURN)]
    to: Option<String>,
    /// List the versions of the endpoint, newest first
    #[arg(long, group = "what", conflicts_with_all = NOT_OF_A_RETURN, conflicts_with = "no_sample")]
    list: bool,
    /// Run the folder in a `process`, or in `docker`
    #[arg(long, value_name = "PROVIDER", conflicts_with = "image", hide_possible_values = true)]
    provider: Option<FolderProvider>,
    /// Do not run the sample job, `test_input.json`
    #[arg(long)]
    no_sample: bool,
    #[command(flatten)]
    env: EnvArgs,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Where the workers of a deployed folder can run.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FolderProvider {
    // Processes of the server's computer, with the packages of `requirements.txt`.
    Process,
    // Containers of an image that the server builds of the folder's Dockerfile; without one, of the server's base image.
    Docker,
}

/// Uploads the directory and updates the endpoint, or brings a version of it back.
pub(crate) async fn deploy(args: &DeployArgs) -> CommandResult {
    let mut project = load(args)?;
    args.env.set_in(&mut project.env)?;
    let session = args.remote.connect()?;
    if args.list {
        return versions::list(&session, &project).await;
    }
    let present =
        deploy::present(&session.client, &project).await.map_err(|error| not_for_key(error, &project))?;
    let done = match &args.to {
        Some(wanted) => bring_back(&session, &project, present, wanted, &words(args, &project)).await?,
        None => {
            if let Program::Dockerfile(command) = &project.program {
                let image = build::build(&session, &project).await?;
                project.program = Program::Image(image, command.clone());
            }
            match &project.program {
                Program::Image(..) => new_image(&session, &project, present.as_ref(), &args.image).await,
                _ => new_version(&session, &project, present.as_ref()).await,
            }
        }
        .map_err(|error| not_with_secrets(error, &project))?,
    };
    let (verb, suffix) = match done.change {
        Change::Endpoint => ("runs", ""),
        Change::CodeRestored => ("runs", ": its code was missing or damaged, and is stored again"),
        Change::Nothing => ("already runs", ": nothing changed"),
    };
    let code = done.code.as_deref().map_or_else(String::new, |code| format!("{} ", short(code)));
    session
        .screen
        .good(&format!("endpoint {} {verb} {code}(version {}){suffix}", project.slug, done.version));
    match (session.output.format, project.sample()) {
        (OutputFormat::Table, Some(path)) if !args.no_sample => {
            try_sample(&session, &project, &path, &words(args, &project)).await
        }
        (OutputFormat::Table, _) if project.endpoint_type() == EndpointType::Lb => {
            let address = forwarded::address(session.client.base_url(), &project.slug);
            session.screen.line(&format!("    {address}"));
            Ok(CommandExit::Success)
        }
        (OutputFormat::Table, _) => {
            session.screen.line(&format!("    longshore run {} '{{}}' --wait", project.slug));
            Ok(CommandExit::Success)
        }
        _ => {
            let record =
                session.client.get(longshore_client::Collection::Endpoints, done.id.as_str(), "").await?;
            session.output.record(&record)?;
            Ok(CommandExit::Success)
        }
    }
}

/// Reads the folder, and what the command line says about an image.
fn load(args: &DeployArgs) -> CommandResult<Project> {
    let dir = args.dir.as_deref().unwrap_or(Path::new("."));
    Ok(match (&args.image.image, &args.image.name) {
        (Some(_), _) => Project::to_run(dir, &args.image)?,
        (None, Some(name)) => Project::named(dir, name),
        (None, None) => {
            let wanted = args.provider.map(|provider| match provider {
                FolderProvider::Process => Provider::Process,
                FolderProvider::Docker => Provider::Docker,
            });
            if let Some(project) = Project::of_dockerfile(dir, wanted)? {
                return Ok(project);
            }
            let mut project = Project::to_run(dir, &args.image)?;
            project.endpoint.provider = wanted.or(project.endpoint.provider);
            project
        }
    })
}

/// The words of a command line that name the endpoint again.
fn words(args: &DeployArgs, project: &Project) -> String {
    match &args.dir {
        Some(dir) if args.image.image.is_none() && args.image.name.is_none() => dir.display().to_string(),
        _ => format!("--name {}", project.slug),
    }
}

/// The state of the endpoint after the command.
struct Done {
    id: EndpointId,
    version: u32,
    /// The hash of the code that it runs.
    code: Option<String>,
    change: Change,
}

/// What the command changed.
enum Change {
    /// The endpoint, or what its workers run.
    Endpoint,
    /// Nothing of the endpoint; but the server lacked files of the code that it runs already.
    CodeRestored,
    Nothing,
}

impl Change {
    fn of(is_changed: bool) -> Self {
        if is_changed { Self::Endpoint } else { Self::Nothing }
    }
}

async fn new_version(
    session: &Connection,
    project: &Project,
    present: Option<&Endpoint>,
) -> CommandResult<Done> {
    let code = upload(session, project, present).await?;
    let deployment = Deployment {
        project,
        template: template_name(&project.slug),
        workdir: Some(code.workdir.clone()),
        command: &code.command,
        mark: Some((VERSION_ENV, &code.hash)),
        registry_auth: None,
        fleet: None,
        is_local: false,
    };
    let deployed = deploy::deploy(&session.client, &deployment, present).await?;
    let change = match deployed.changed {
        false if code.changed => Change::CodeRestored,
        is_changed => Change::of(is_changed),
    };
    Ok(Done { id: deployed.id, version: deployed.version, code: Some(code.hash), change })
}

/// Deploys an image. The server pulls it when it starts a worker.
async fn new_image(
    session: &Connection,
    project: &Project,
    present: Option<&Endpoint>,
    image: &ImageArgs,
) -> CommandResult<Done> {
    let Program::Image(_, command) = &project.program else {
        return Err(CommandError::usage("--image names no image".to_owned()));
    };
    let registry_auth = match &image.registry_auth {
        Some(wanted) => Some(registry_auth_id(&session.client, wanted).await?),
        None => None,
    };
    let deployment = Deployment {
        project,
        template: template_name(&project.slug),
        workdir: None,
        command,
        mark: None,
        registry_auth,
        fleet: None,
        is_local: false,
    };
    let deployed = deploy::deploy(&session.client, &deployment, present).await?;
    let change = Change::of(deployed.changed);
    Ok(Done { id: deployed.id, version: deployed.version, code: None, change })
}

async fn bring_back(
    session: &Connection,
    project: &Project,
    present: Option<Endpoint>,
    wanted: &str,
    words: &str,
) -> CommandResult<Done> {
    let Some(present) = present else {
        let text = format!("there is no endpoint `{}`, so it has no versions", project.slug);
        let image = if words.starts_with("--name") { " --image IMAGE" } else { "" };
        let next = format!("`longshore deploy {words}{image}` creates it");
        return Err(CommandError::new(CommandExit::NotFound, text).next(next));
    };
    let (endpoint, code) = versions::restore(session, &present, wanted, words).await?;
    // Every return that changes anything is a new version.
    let change = Change::of(endpoint.version != present.version);
    Ok(Done { id: endpoint.id, version: endpoint.version, code, change })
}

/// The error of the first request. A key that is limited to endpoints cannot learn whether another one exists.
fn not_for_key(error: ClientError, project: &Project) -> CommandError {
    let is_refused = matches!(error, ClientError::Refused { status: 401, .. });
    let error = CommandError::from(error);
    if !is_refused {
        return error;
    }
    error.next(format!(
        "deploying needs a key with `manage` for the endpoint `{}`, or for all endpoints if it does not exist yet",
        project.slug
    ))
}

/// The error of a deployment whose variables may name secrets that the key may not use. The server does not say whether
/// a secret exists that is not shared with the key.
fn not_with_secrets(error: CommandError, project: &Project) -> CommandError {
    let mut secrets: Vec<&str> =
        project.env.values().filter_map(EnvValue::secret_name).map(SecretName::as_str).collect();
    secrets.sort_unstable();
    secrets.dedup();
    if error.exit != CommandExit::Unauthorized || secrets.is_empty() {
        return error;
    }
    let slug = &project.slug;
    let (noun, names) = (if secrets.len() == 1 { "secret" } else { "secrets" }, secrets.join("`, `"));
    let text =
        format!("the server does not accept the key for a deploy of `{slug}` with the {noun} `{names}`");
    let share = |name: &&str| format!("longshore secret set {name} --endpoint {slug}");
    let next = "with a key that may change them, share them with the endpoint, as above".to_owned();
    CommandError::new(error.exit, text).with_lines(secrets.iter().map(share)).next(next)
}

/// The first digits of a hash.
pub(crate) fn short(hash: &str) -> &str {
    hash.get(..HASH_CHARS).unwrap_or(hash)
}

/// Returns the name of the template of a deployed endpoint.
pub(crate) fn template_name(slug: &str) -> String {
    format!("deploy-{slug}")
}

async fn upload(
    session: &Connection,
    project: &Project,
    present: Option<&Endpoint>,
) -> CommandResult<CodeVersion> {
    let packed = archive::pack(project)?;
    let bytes = packed.archive.len() as u64;
    let step = session.screen.step(format!("uploading {}", count(packed.files as u64, "file")));
    let sent = Arc::new(AtomicU64::new(0));
    let name = project.code_name();
    let owner = present.map_or(CodeOwner::Name(&name), |present| CodeOwner::Endpoint(present.id));
    let upload = session.client.keep_code(owner, packed.archive, Arc::clone(&sent));
    tokio::pin!(upload);
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let version = loop {
        tokio::select! {
            version = &mut upload => break version?,
            _ = ticks.tick() => {
                let so_far = sent.load(Ordering::Relaxed);
                let share = bar(so_far as f64 / bytes as f64);
                step.detail(format!("{share} {} of {}", size(so_far), size(bytes)));
            }
        }
    };
    step.done(&format!("{} uploaded ({})", count(packed.files as u64, "file"), size(bytes)));
    Ok(version)
}

/// A progress bar of ten characters: `████░░░░░░`.
fn bar(share: f64) -> String {
    let full = ((share * 10.0) as usize).min(10);
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

async fn try_sample(session: &Connection, project: &Project, path: &Path, words: &str) -> CommandResult {
    let sample = Sample::load(path)?;
    let result = sample::run(&session.client, &project.slug, &sample, &session.screen).await;
    if result.as_ref().is_err_and(|error| error.is_unauthorized) {
        // A key that may only deploy.
        session.screen.line("    test_input.json was not run: the key may not submit jobs");
        return Ok(CommandExit::Success);
    }
    match result? {
        SampleResult::Completed => Ok(CommandExit::Success),
        SampleResult::NotCompleted => Ok(CommandExit::JobFailed),
        SampleResult::NoWorker => {
            // The worker's log shows the reason. An unreadable log must not hide that the deployment failed.
            let last = last_words(&session.client, &project.slug, LAST_LINES).await.unwrap_or_default();
            Err(CommandError::new(
                CommandExit::Failure,
                "the workers of this version keep exiting; the last lines of the last one:",
            )
            .with_lines(last)
            .next(format!(
                "fix the handler and deploy again, or return to an earlier version: `longshore deploy {words} --list`, \
                 then --to VERSION"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: DeployArgs,
    }

    fn parsed(line: &str) -> Result<DeployArgs, clap::Error> {
        Line::try_parse_from(format!("deploy {line}").split_whitespace()).map(|line| line.args)
    }

    #[test]
    fn a_return_and_a_list_refuse_what_they_would_ignore() {
        Line::command().debug_assert();
        for line in [
            "dir",
            "dir --to 1 --no-sample",
            "dir --list",
            "--image x --name chat --gpu L4 --env A=C",
            "--name chat --to 1",
            "--name chat --list",
        ] {
            parsed(line).unwrap();
        }
        for line in [
            "dir --to 1 --env A=C",
            "dir --to 1 --secret HF",
            "dir --to 1 --image x",
            "dir --to 1 --list",
            "dir --to 1 --gpu L4",
            "dir --to 1 --volume v",
            "dir --to 1 --registry-auth r",
            "dir --list --env A=C",
            "dir --list --image x",
            "dir --list --no-sample",
            "--to 1",
            "dir --name chat",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_next_command_names_the_endpoint_as_this_one() {
        let said = |line: &str| words(&parsed(line).unwrap(), &Project::named(Path::new("."), "chat"));
        assert_eq!(said("my-worker"), "my-worker");
        assert_eq!(said("my-worker --image x"), "--name chat");
        assert_eq!(said("--name chat --list"), "--name chat");
    }

    #[test]
    fn a_refusal_names_the_secrets_and_how_to_share_them() {
        let refused = || CommandError::new(CommandExit::Unauthorized, "no").next("log in");
        let mut project = Project::named(Path::new("."), "chat");
        assert_eq!(not_with_secrets(refused(), &project).message, "no");
        for (variable, secret) in [("A", "HF_TOKEN"), ("B", "HF_TOKEN"), ("C", "KEY")] {
            project.env.insert(variable.to_owned(), EnvValue::secret(secret.parse().unwrap()));
        }
        let error = not_with_secrets(refused(), &project);
        assert_eq!(error.exit, CommandExit::Unauthorized);
        assert!(error.message.ends_with("a deploy of `chat` with the secrets `HF_TOKEN`, `KEY`"), "{error}");
        assert_eq!(error.lines[0], "longshore secret set HF_TOKEN --endpoint chat");
        let other = CommandError::new(CommandExit::Failure, "full");
        assert_eq!(not_with_secrets(other, &project).message, "full");
    }
}
