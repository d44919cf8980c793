//! Creates or updates the endpoint of the directory.

use std::collections::BTreeMap;

use longshore_client::{
    Client, ClientError, DeploySpec, Deployed, Endpoint, EndpointSpec, Template, TemplateSpec,
};
use longshore_model::{EnvValue, Provider};

use super::project::{Program, Project};

/// The variables that choose the log level of the SDK, which uses the first that is set.
const LOG_LEVELS: [&str; 2] = ["RUNPOD_LOG_LEVEL", "RUNPOD_DEBUG_LEVEL"];

/// What is deployed, in addition to the project's own settings.
pub(crate) struct Deployment<'a> {
    pub(crate) project: &'a Project,
    /// Name of the template of a new endpoint.
    pub(crate) template: String,
    /// Directory that workers see as their working directory; `None` for an image, which has its own.
    pub(crate) workdir: Option<String>,
    pub(crate) command: &'a [String],
    /// A variable that changes with the source files. The changed template replaces the workers. `None` for an image.
    pub(crate) mark: Option<(&'a str, &'a str)>,
    /// The id of the credentials for the image's registry.
    pub(crate) registry_auth: Option<String>,
    /// Worker counts where the project sets none. `None` leaves the endpoint's counts unchanged.
    pub(crate) fleet: Option<Fleet>,
    /// Whether the workers inherit the environment of this process.
    pub(crate) is_local: bool,
}

/// Worker counts and the idle timeout of an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) workers_min: u32,
    pub(crate) workers_max: u32,
    pub(crate) idle_timeout_s: u32,
}

/// Returns the endpoint of a project; `None` if there is none.
pub(crate) async fn present(client: &Client, project: &Project) -> Result<Option<Endpoint>, ClientError> {
    match client.endpoint(&project.slug).await {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deploys to the `present` endpoint, or creates the endpoint with its template.
pub(crate) async fn deploy(
    client: &Client,
    deployment: &Deployment<'_>,
    present: Option<&Endpoint>,
) -> Result<Deployed, ClientError> {
    let env = worker_env(deployment, present);
    if let Some(present) = present {
        // The type cannot change; one that differs is sent, so that the server says so.
        let is_same = deployment.project.endpoint_type() == present.endpoint_type;
        let endpoint_type = own_fields(deployment).endpoint_type.filter(|_| !is_same);
        let own = EndpointSpec { endpoint_type, ..own_fields(deployment) };
        let template = TemplateSpec { env: Some(env), ..program(deployment) };
        return client.deploy(present.id, &DeploySpec { template, endpoint: own }).await;
    }
    let asked = own_fields(deployment);
    let deployed_env = env.keys().cloned().collect();
    let program = program(deployment);
    let spec = TemplateSpec {
        name: Some(deployment.template.clone()),
        image_name: program.image_name.clone().or_else(|| Some("python".to_owned())),
        env: Some(env),
        is_serverless: Some(true),
        ..program
    };
    let template = put_template(client, &spec).await?;
    let spec = EndpointSpec {
        name: asked.name.or_else(|| Some(deployment.project.slug.clone())),
        slug: Some(deployment.project.slug.clone()),
        template_id: Some(template.id),
        provider: asked.provider.or(Some(Provider::Process)),
        deployed_env: Some(deployed_env),
        ..asked
    };
    let created = client.create_endpoint(&spec).await?;
    Ok(Deployed { id: created.id, version: created.version, changed: true })
}

/// Creates a template, or changes the one with its name that an earlier endpoint of the project has left.
async fn put_template(client: &Client, spec: &TemplateSpec) -> Result<Template, ClientError> {
    let present =
        client.templates().await?.into_iter().find(|present| Some(&present.name) == spec.name.as_ref());
    match present {
        Some(present) => client.update_template(present.id, spec).await,
        None => client.create_template(spec).await,
    }
}

/// The command line, and the folder or the image of the workers.
fn program(deployment: &Deployment<'_>) -> TemplateSpec {
    let image = match &deployment.project.program {
        Program::Image(image, _) => Some(image.clone()),
        Program::Handler(_) | Program::Command(_) | Program::Dockerfile(_) => None,
    };
    TemplateSpec {
        image_name: image,
        container_registry_auth_id: deployment.registry_auth.clone(),
        docker_entrypoint: Some(Vec::new()),
        docker_start_cmd: Some(deployment.command.to_vec()),
        workdir: deployment.workdir.clone(),
        ..TemplateSpec::default()
    }
}

/// The endpoint's fields that the project sets. The slug is its address, which no deploy changes.
fn own_fields(deployment: &Deployment<'_>) -> EndpointSpec {
    let asked = deployment.project.endpoint.clone();
    let fleet = deployment.fleet;
    EndpointSpec {
        slug: None,
        workers_min: asked.workers_min.or(fleet.map(|fleet| fleet.workers_min)),
        workers_max: asked.workers_max.or(fleet.map(|fleet| fleet.workers_max)),
        idle_timeout: asked.idle_timeout.or(fleet.map(|fleet| fleet.idle_timeout_s)),
        ..asked
    }
}

fn worker_env(deployment: &Deployment<'_>, present: Option<&Endpoint>) -> BTreeMap<String, EnvValue> {
    let mut env = deployment.project.env.clone();
    let is_operators = |name: &str| {
        present.is_some_and(|present| {
            present.env.contains_key(name) && present.deployed_env.iter().all(|deployed| deployed != name)
        })
    };
    let is_inherited = |name: &str| deployment.is_local && std::env::var_os(name).is_some();
    let is_chosen = |name: &&str| env.contains_key(*name) || is_operators(name) || is_inherited(name);
    // The SDK's default level logs every poll.
    if !LOG_LEVELS.iter().any(is_chosen) {
        env.insert(LOG_LEVELS[0].to_owned(), "INFO".into());
    }
    if let Some((name, value)) = deployment.mark {
        env.insert(name.to_owned(), value.into());
    }
    env
}
