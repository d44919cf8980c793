//! Creates or updates the endpoint of the directory.

use std::collections::BTreeMap;

use longshore_client::{Client, Endpoint, EndpointSpec, Template, TemplateSpec};
use longshore_model::Provider;

use super::error::DevError;
use super::project::Project;

/// What is deployed, in addition to the project's own settings.
pub(crate) struct Deployment<'a> {
    pub(crate) project: &'a Project,
    /// Name of the template.
    pub(crate) template: String,
    /// Directory that workers see as their working directory.
    pub(crate) workdir: String,
    pub(crate) command: &'a [String],
    /// A variable that changes with the source files. The changed template replaces the workers.
    pub(crate) mark: (&'a str, &'a str),
    /// Worker counts where the project sets none. `None` leaves the endpoint's counts unchanged.
    pub(crate) fleet: Option<Fleet>,
}

/// Worker counts and the idle timeout of an endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Fleet {
    pub(crate) workers_min: u32,
    pub(crate) workers_max: u32,
    pub(crate) idle_timeout_s: u32,
}

/// Creates or updates the template and the endpoint.
pub(crate) async fn deploy(client: &Client, deployment: &Deployment<'_>) -> Result<Endpoint, DevError> {
    let slug = &deployment.project.slug;
    let template = put_template(client, &template_spec(deployment)).await?;
    let spec = endpoint_spec(deployment, &template);
    let endpoint = match client.endpoint(slug).await {
        Ok(endpoint) => client.update_endpoint(endpoint.id, &spec).await,
        Err(error) if error.is_not_found() => client.create_endpoint(&spec).await,
        Err(error) => Err(error),
    };
    endpoint.map_err(|error| DevError::new(format!("cannot create the endpoint `{slug}`: {error}")))
}

async fn put_template(client: &Client, spec: &TemplateSpec) -> Result<Template, DevError> {
    let present =
        client.templates().await?.into_iter().find(|present| Some(&present.name) == spec.name.as_ref());
    let template = match present {
        Some(present) => client.update_template(present.id, spec).await,
        None => client.create_template(spec).await,
    };
    template.map_err(|error| DevError::new(format!("cannot create the worker template: {error}")))
}

fn template_spec(deployment: &Deployment<'_>) -> TemplateSpec {
    let project = deployment.project;
    TemplateSpec {
        name: Some(deployment.template.clone()),
        image_name: Some("python".to_owned()),
        docker_entrypoint: Some(Vec::new()),
        docker_start_cmd: Some(deployment.command.to_vec()),
        workdir: Some(deployment.workdir.clone()),
        env: Some(worker_env(project, deployment.mark)),
        is_serverless: Some(true),
    }
}

fn endpoint_spec(deployment: &Deployment<'_>, template: &Template) -> EndpointSpec {
    let project = deployment.project;
    let asked = project.endpoint.clone();
    let fleet = deployment.fleet;
    EndpointSpec {
        name: asked.name.or_else(|| Some(project.slug.clone())),
        slug: Some(project.slug.clone()),
        template_id: Some(template.id),
        provider: Some(Provider::Process),
        workers_min: asked.workers_min.or(fleet.map(|fleet| fleet.workers_min)),
        workers_max: asked.workers_max.or(fleet.map(|fleet| fleet.workers_max)),
        idle_timeout: asked.idle_timeout.or(fleet.map(|fleet| fleet.idle_timeout_s)),
        ..asked
    }
}

fn worker_env(project: &Project, mark: (&str, &str)) -> BTreeMap<String, String> {
    let mut env = project.env.clone();
    // The SDK's default level logs every poll. Like the SDK, this uses the first of the two variables that is set.
    let chosen = ["RUNPOD_LOG_LEVEL", "RUNPOD_DEBUG_LEVEL"]
        .iter()
        .any(|name| env.contains_key(*name) || std::env::var_os(name).is_some());
    if !chosen {
        env.insert("RUNPOD_LOG_LEVEL".to_owned(), "INFO".to_owned());
    }
    env.insert(mark.0.to_owned(), mark.1.to_owned());
    env
}
