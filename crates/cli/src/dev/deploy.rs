//! Makes the folder an endpoint of the running server, or updates the one that is there.

use std::collections::BTreeMap;

use longshore_client::{Client, Endpoint, EndpointSpec, Template, TemplateSpec};
use longshore_model::Provider;

use super::error::DevError;
use super::project::Project;

/// A worker that stays warm makes the next try fast.
const IDLE_TIMEOUT_S: u32 = 300;
/// Changes with the source files, and so replaces the workers when they change.
const SOURCES_ENV: &str = "LONGSHORE_DEV_SOURCES";

/// What to deploy, besides what the project itself says.
pub(crate) struct Deployment<'a> {
    pub(crate) project: &'a Project,
    pub(crate) command: &'a [String],
    /// Says which state of the source files the workers are to run.
    pub(crate) fingerprint: &'a str,
    /// Keep a worker even when there is nothing to do: a mistake in the handler shows at once.
    pub(crate) stay: bool,
}

/// Brings template and endpoint to what they are to be.
pub(crate) async fn deploy(client: &Client, deployment: &Deployment<'_>) -> Result<Endpoint, DevError> {
    let slug = &deployment.project.slug;
    let template = put_template(client, &template_spec(deployment)).await?;
    let spec = endpoint_spec(deployment, &template);
    let endpoint = match client.endpoint(slug).await {
        Ok(endpoint) => client.update_endpoint(endpoint.id, &spec).await,
        Err(error) if error.is_not_found() => client.create_endpoint(&spec).await,
        Err(error) => Err(error),
    };
    endpoint.map_err(|error| DevError::new(format!("cannot make the endpoint `{slug}`: {error}")))
}

async fn put_template(client: &Client, spec: &TemplateSpec) -> Result<Template, DevError> {
    let present =
        client.templates().await?.into_iter().find(|present| Some(&present.name) == spec.name.as_ref());
    let template = match present {
        Some(present) => client.update_template(present.id, spec).await,
        None => client.create_template(spec).await,
    };
    template.map_err(|error| DevError::new(format!("cannot make the worker template: {error}")))
}

fn template_spec(deployment: &Deployment<'_>) -> TemplateSpec {
    let project = deployment.project;
    TemplateSpec {
        name: Some(format!("dev-{}", project.slug)),
        image_name: Some("python".to_owned()),
        docker_entrypoint: Some(Vec::new()),
        docker_start_cmd: Some(deployment.command.to_vec()),
        workdir: Some(project.dir.display().to_string()),
        env: Some(worker_env(project, deployment.fingerprint)),
        is_serverless: Some(true),
    }
}

fn endpoint_spec(deployment: &Deployment<'_>, template: &Template) -> EndpointSpec {
    let project = deployment.project;
    let asked = project.endpoint.clone();
    EndpointSpec {
        name: asked.name.or_else(|| Some(project.slug.clone())),
        slug: Some(project.slug.clone()),
        template_id: Some(template.id),
        provider: Some(Provider::Process),
        workers_min: asked.workers_min.or(Some(u32::from(deployment.stay))),
        workers_max: asked.workers_max.or(Some(1)),
        idle_timeout: asked.idle_timeout.or(Some(IDLE_TIMEOUT_S)),
        ..asked
    }
}

fn worker_env(project: &Project, fingerprint: &str) -> BTreeMap<String, String> {
    let mut env = project.env.clone();
    // The SDK's own default tells of every poll. The first of the two names wins, there as here.
    let chosen = ["RUNPOD_LOG_LEVEL", "RUNPOD_DEBUG_LEVEL"]
        .iter()
        .any(|name| env.contains_key(*name) || std::env::var_os(name).is_some());
    if !chosen {
        env.insert("RUNPOD_LOG_LEVEL".to_owned(), "INFO".to_owned());
    }
    env.insert(SOURCES_ENV.to_owned(), fingerprint.to_owned());
    env
}
