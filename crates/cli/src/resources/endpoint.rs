//! `longshore endpoint`.

use clap::{Args, Subcommand};
use longshore_client::{Client, Collection};
use longshore_model::TemplateId;

use super::{DeleteArgs, ListArgs, create, delete, list, named, traffic, updated};
use crate::exit::{CommandExit, CommandResult};
use crate::human::count;
use crate::input::whole;
use crate::jobs::endpoint_name;
use crate::members::Members;
use crate::output::OutputFormat;
use crate::remote::ServerArgs;
use crate::table::Column;

const COLUMNS: &[Column] = &[
    Column::new("ID", "id"),
    Column::new("SLUG", "slug"),
    Column::new("NAME", "name"),
    Column::new("VERSION", "version"),
    Column::new("MIN", "workersMin"),
    Column::new("MAX", "workersMax"),
    Column::new("PROVIDER", "provider"),
    Column::new("TEMPLATE", "templateId"),
];

/// Fields that `endpoint get` shows without `--all`.
const MAIN_FIELDS: &[&str] = &[
    "id",
    "name",
    "slug",
    "type",
    "lb",
    "version",
    "templateId",
    "provider",
    "workersMin",
    "workersMax",
    "idleTimeout",
    "scalerType",
    "scalerValue",
    "executionTimeoutMs",
    "maxConcurrency",
    "gpuCount",
    "gpuTypeIds",
    "pausedFrom",
    "workers",
    "template",
];

/// Fields that `endpoint update` shows beside the changed ones.
const NAMES: &[&str] = &["id", "name", "slug", "version"];

/// The server's default for `workersMax`.
const WORKERS_MAX_DEFAULT: u32 = 3;

const EXAMPLES: &str = "\
Examples:
  longshore endpoint create --slug hello --template k2x0a8m4q6w1ez
  longshore endpoint list
  longshore endpoint get hello --workers
  longshore endpoint update hello --workers-max 8 --idle-timeout 60
  longshore endpoint update hello --json '{\"gpuTypeIds\": [\"NVIDIA L4\"]}'
  longshore endpoint pause hello       jobs queue, no worker runs
  longshore endpoint delete hello --drain";

/// Subcommands of `longshore endpoint`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum EndpointCommand {
    /// Create an endpoint from a template
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateEndpointArgs),
    /// List all endpoints of the server
    #[command(after_help = "Examples:\n  longshore endpoint list\n  longshore endpoint list -o jsonl")]
    List(ListArgs),
    /// Show one endpoint
    #[command(
        after_help = "Examples:\n  longshore endpoint get hello\n  longshore endpoint get hello --workers -o json"
    )]
    Get(GetEndpointArgs),
    /// Change fields of an endpoint
    #[command(
        after_help = "Examples:\n  longshore endpoint update hello --workers-max 8\n  longshore endpoint update hello --json @fields.json"
    )]
    Update(UpdateEndpointArgs),
    /// Delete an endpoint with its jobs
    #[command(
        after_help = "Examples:\n  longshore endpoint delete hello\n  longshore endpoint delete hello --drain --yes"
    )]
    Delete(DeleteEndpointArgs),
    /// Stop the workers of an endpoint; its jobs stay queued
    #[command(after_help = "Examples:\n  longshore endpoint pause hello")]
    Pause(PauseArgs),
    /// Start workers of a paused endpoint again
    #[command(
        after_help = "Examples:\n  longshore endpoint resume hello\n  longshore endpoint resume hello --workers-max 8"
    )]
    Resume(ResumeArgs),
}

const CREATE_EXAMPLES: &str = "\
Examples:
  longshore endpoint create --slug hello --template k2x0a8m4q6w1ez
  longshore endpoint create --slug hello --provider external --json \\
    '{\"template\": {\"imageName\": \"mine\"}}'
  longshore endpoint create --slug web --template k2x0a8m4q6w1ez --type LB \\
    --json '{\"lb\": {\"maxConcurrency\": 8}}'
  longshore endpoint create --json @endpoint.json

--json accepts every field of the API (/v1/docs); flags override it.";

/// Arguments of `endpoint create`.
#[derive(Debug, Args)]
pub struct CreateEndpointArgs {
    #[command(flatten)]
    fields: EndpointFields,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `endpoint update`.
#[derive(Debug, Args)]
pub struct UpdateEndpointArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    id: String,
    #[command(flatten)]
    fields: EndpointFields,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `endpoint get`.
#[derive(Debug, Args)]
pub struct GetEndpointArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    id: String,
    /// Include its workers
    #[arg(long)]
    workers: bool,
    /// Include its template
    #[arg(long)]
    template: bool,
    /// Show all fields, not only the most important ones
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `endpoint delete`.
#[derive(Debug, Args)]
pub struct DeleteEndpointArgs {
    /// Let running jobs finish first
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    delete: DeleteArgs,
}

/// Arguments of `endpoint pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    id: String,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Arguments of `endpoint resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The endpoint's id or slug
    #[arg(value_name = "ENDPOINT", value_parser = endpoint_name)]
    id: String,
    /// Most workers [default: as before the pause]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers_max: Option<u32>,
    #[command(flatten)]
    remote: ServerArgs,
}

/// The fields that have a flag. The server checks the values.
#[derive(Debug, Args)]
struct EndpointFields {
    /// A name for people
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// A readable, unique name in addresses
    #[arg(long, value_name = "SLUG")]
    slug: Option<String>,
    /// QUEUE or LB, at its creation: what its workers serve
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The id of its template
    #[arg(long, value_name = "ID")]
    template: Option<String>,
    /// process, docker or external
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Workers that run without any job
    #[arg(long, alias = "min-workers", value_name = "N", value_parser = whole::<u32>)]
    workers_min: Option<u32>,
    /// Most workers; 0 pauses the endpoint
    #[arg(long, alias = "max-workers", value_name = "N", value_parser = whole::<u32>)]
    workers_max: Option<u32>,
    /// Seconds until an idle worker is stopped
    #[arg(long, value_name = "S", value_parser = whole::<u32>)]
    idle_timeout: Option<u32>,
    /// Most such seconds with `IDLE_GAPS`
    #[arg(long, value_name = "S", value_parser = whole::<u32>)]
    idle_timeout_max: Option<u32>,
    /// What adds workers, such as `QUEUE_DELAY`
    #[arg(long, value_name = "TYPE")]
    scaler_type: Option<String>,
    /// Seconds in the queue, or jobs per worker
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    scaler_value: Option<u32>,
    /// Longest run of a job, such as 10m
    #[arg(long, value_name = "TIME", value_parser = crate::jobs::span)]
    execution_timeout: Option<std::time::Duration>,
    /// Most retries of one job
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    max_retries: Option<u32>,
    /// Most queued jobs; more are refused
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    max_queue_length: Option<u64>,
    /// Time to stop a job before a kill
    #[arg(long, value_name = "TIME", value_parser = crate::jobs::span)]
    stop_grace: Option<std::time::Duration>,
    /// Time to start before a worker is replaced
    #[arg(long, value_name = "TIME", value_parser = crate::jobs::span)]
    start_patience: Option<std::time::Duration>,
    /// Response of /stream: array or object
    #[arg(long, value_name = "SHAPE")]
    stream_shape: Option<String>,
    /// Concurrent jobs of one worker
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    max_concurrency: Option<u32>,
    /// GPUs per worker
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    gpu_count: Option<u32>,
    /// A GPU type; repeat in order of preference
    #[arg(long, value_name = "TYPE")]
    gpu_type: Vec<String>,
    /// Most memory of one worker, in bytes
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    memory_bytes: Option<u64>,
    /// Most processors of one worker, such as 1.5
    #[arg(long, value_name = "N")]
    vcpus: Option<f64>,
    /// Any fields: a JSON object, @FILE, or -
    #[arg(long, value_name = "JSON")]
    json: Option<String>,
}

impl EndpointFields {
    fn members(&self) -> CommandResult<Members> {
        let mut members = Members::of_argument(self.json.as_ref())?;
        members.set("name", self.name.as_ref())?;
        members.set("slug", self.slug.as_ref())?;
        members.set("type", self.kind.as_ref())?;
        members.set("templateId", self.template.as_ref())?;
        members.set("provider", self.provider.as_ref())?;
        members.set("workersMin", self.workers_min)?;
        members.set("workersMax", self.workers_max)?;
        members.set("idleTimeout", self.idle_timeout)?;
        members.set("idleTimeoutMax", self.idle_timeout_max)?;
        members.set("scalerType", self.scaler_type.as_ref())?;
        members.set("scalerValue", self.scaler_value)?;
        members.set("executionTimeoutMs", self.execution_timeout.map(|time| time.as_millis() as u64))?;
        members.set("maxRetries", self.max_retries)?;
        members.set("maxQueueLength", self.max_queue_length)?;
        members.set("stopGraceMs", self.stop_grace.map(|time| time.as_millis() as u64))?;
        members.set("startPatienceMs", self.start_patience.map(|time| time.as_millis() as u64))?;
        members.set("streamShape", self.stream_shape.as_ref())?;
        members.set("maxConcurrency", self.max_concurrency)?;
        members.set("gpuCount", self.gpu_count)?;
        members.set("memoryBytes", self.memory_bytes)?;
        members.set("vcpus", self.vcpus)?;
        members.set("gpuTypeIds", Some(&self.gpu_type).filter(|types| !types.is_empty()))?;
        Ok(members)
    }
}

impl EndpointCommand {
    pub(crate) async fn run(&self) -> CommandResult {
        const OF: Collection = Collection::Endpoints;
        match self {
            Self::Create(args) => create(&args.remote, OF, &args.fields.members()?).await,
            Self::List(args) => list(args, OF, COLUMNS).await,
            Self::Get(args) => get_endpoint(args).await,
            Self::Update(args) => update_endpoint(args).await,
            Self::Delete(args) => delete_endpoint(args).await,
            Self::Pause(args) => pause(args).await,
            Self::Resume(args) => resume(args).await,
        }
    }
}

/// Changes the endpoint and prints the changed fields; the JSON formats have all.
async fn update_endpoint(args: &UpdateEndpointArgs) -> CommandResult {
    let members = args.fields.members()?;
    let (session, record) = updated(&args.remote, Collection::Endpoints, &args.id, &members).await?;
    session.output.part(&record, |name| NAMES.contains(&name) || members.get(name).is_some())?;
    Ok(CommandExit::Success)
}

async fn get_endpoint(args: &GetEndpointArgs) -> CommandResult {
    let query = format!("includeWorkers={}&includeTemplate={}", args.workers, args.template);
    let session = args.remote.connect()?;
    let record = session.client.get(Collection::Endpoints, &args.id, &query).await;
    let record = record.map_err(|error| named(error.into(), Collection::Endpoints))?;
    let mut members = Members::of(&record)?;
    let for_people = session.output.format == OutputFormat::Table;
    traffic::add(&mut members, &session.client, &args.id, for_people).await?;
    let is_shown = |name: &str| args.all || MAIN_FIELDS.contains(&name) || traffic::NAMES.contains(&name);
    let left_out = session.output.part(&members.record()?, is_shown)?;
    if left_out > 0 {
        let line = format!("{} more: add --all", count(left_out as u64, "field"));
        session.screen.line(&session.screen.dim(&line));
    }
    Ok(CommandExit::Success)
}

async fn delete_endpoint(args: &DeleteEndpointArgs) -> CommandResult {
    let session = args.delete.remote.connect()?;
    let template = deployed_template(&session.client, &args.delete.id).await;
    let deleted =
        delete(&args.delete, Collection::Endpoints, args.drain, " with all its jobs and results").await?;
    if let Some(template) = template {
        let line =
            format!("its code is stored until its template is deleted: longshore template delete {template}");
        session.screen.line(&session.screen.dim(&line));
    }
    Ok(deleted)
}

/// Returns the template that `longshore deploy` created for this endpoint, if any.
async fn deployed_template(client: &Client, endpoint: &str) -> Option<TemplateId> {
    let endpoint = client.endpoint(endpoint).await.ok()?;
    let template = client.template(endpoint.template_id).await.ok()?;
    (template.name == crate::deploy::template_name(&endpoint.slug?)).then_some(template.id)
}

async fn pause(args: &PauseArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let before = session.client.endpoint(&args.id).await?;
    let mut members = Members::default();
    members.set("workersMin", (before.workers_min > 0).then_some(0))?;
    members.set("workersMax", Some(0))?;
    session.client.update(Collection::Endpoints, &args.id, members.body()?).await?;
    session.output.say(&format!("{} is paused: queued jobs wait, running ones finish", args.id))?;
    let line = format!("resume it: longshore endpoint resume {}", args.id);
    session.screen.line(&session.screen.dim(&line));
    Ok(CommandExit::Success)
}

/// Resumes the endpoint. The server stores the number of workers before the pause.
async fn resume(args: &ResumeArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let present = session.client.endpoint(&args.id).await?;
    let before = present.paused_from;
    let most = match (args.workers_max, present.workers_max) {
        (Some(most), _) => most,
        (None, 0) => before.map_or(WORKERS_MAX_DEFAULT, |before| before.workers_max),
        (None, most) => {
            let workers = count(most.into(), "worker");
            session.output.say(&format!("{} is not paused: it may have up to {workers}", args.id))?;
            return Ok(CommandExit::Success);
        }
    };
    let mut members = Members::default();
    members.set("workersMin", before.map(|before| before.workers_min.min(most)))?;
    members.set("workersMax", Some(most))?;
    session.client.update(Collection::Endpoints, &args.id, members.body()?).await?;
    session.output.say(&format!("{} may have up to {} again", args.id, count(most.into(), "worker")))?;
    Ok(CommandExit::Success)
}
