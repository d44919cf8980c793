//! The spec of a worker: its command, and the environment by which the SDK finds this server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use longshore_launch::{Limits, WorkerSpec};
use longshore_model::{CodeHash, ComputeType, Endpoint, EnvValue, HttpPorts, Placement, Template, WorkerId};

use super::http_ports::{PORT, PORT_HEALTH};
use super::{LoginLookup, SecretLookup, WorkerSettings};

/// Bytes of a GB, in which templates count.
const BYTES_PER_GB: u64 = 1_000_000_000;

/// How the workers of an endpoint reach this server.
pub(crate) struct ServerAccess<'a> {
    /// The base URL of this server for workers of the launcher.
    pub(crate) url: &'a str,
    /// The token of the worker. A secret.
    pub(crate) token: &'a str,
    /// The settings of workers.
    pub(crate) settings: &'a WorkerSettings,
}

/// Returns the spec of a worker.
///
/// # Errors
///
/// Why the template cannot be run: its `workdir` names no valid code, or it names a secret that `secret` does not find.
pub(super) fn spec(
    endpoint: &Endpoint,
    template: &Template,
    secret: &SecretLookup,
    server: &ServerAccess<'_>,
    worker: WorkerId,
    placement: Placement,
) -> Result<WorkerSpec, String> {
    let code = template.workdir.as_deref().and_then(CodeHash::in_workdir).transpose();
    let code = code.map_err(|error| format!("the workdir of template `{}`: {error}", template.name))?;
    let chosen = chosen_variables(template, secret)?;
    let private_home =
        !template.env.contains_key("HOME") && sdk_is_configured(std::env::home_dir().as_deref());
    Ok(WorkerSpec {
        endpoint: endpoint.id,
        version: endpoint.version,
        image: template.image_name.clone(),
        registry_login: None,
        entrypoint: template.docker_entrypoint.clone(),
        cmd: template.docker_start_cmd.clone(),
        workdir: template.workdir.as_ref().filter(|_| code.is_none()).map(PathBuf::from),
        code,
        volumes: endpoint.volumes().filter_map(|id| id.parse().ok()).collect(),
        server_url: server.url.to_owned(),
        env: with_ports(environment(endpoint, chosen, server, &worker), placement.http),
        private_home,
        compute_type: endpoint.compute_type,
        worker,
        placement,
        limits: limits(endpoint),
        flashboot: endpoint.flashboot,
        secret_variables: secret_variables(template),
        disk_bytes: Some(u64::from(template.container_disk_in_gb) * BYTES_PER_GB).filter(|bytes| *bytes > 0),
    })
}

/// Adds the ports on which a worker serves HTTP.
fn with_ports(mut env: BTreeMap<String, String>, ports: Option<HttpPorts>) -> BTreeMap<String, String> {
    if let Some(HttpPorts { port, health_port }) = ports {
        env.insert(PORT.to_owned(), port.to_string());
        env.insert(PORT_HEALTH.to_owned(), health_port.to_string());
    }
    env
}

/// Returns the spec with the login for the registry of its image.
///
/// # Errors
///
/// The template names credentials that do not exist.
pub(super) fn with_login(
    spec: WorkerSpec,
    template: &Template,
    login: &LoginLookup,
) -> Result<WorkerSpec, String> {
    let Some(id) = &template.container_registry_auth_id else { return Ok(spec) };
    let found = login(id).ok_or_else(|| {
        format!("`containerRegistryAuthId` of template `{}` names {id}, which does not exist", template.name)
    })?;
    Ok(WorkerSpec { registry_login: Some(found), ..spec })
}

/// Returns the variables of the template's environment, with the values of the secrets that it names.
///
/// # Errors
///
/// The first variable whose secret does not exist.
fn chosen_variables(template: &Template, secret: &SecretLookup) -> Result<BTreeMap<String, String>, String> {
    let valued = |(name, value): (&String, &EnvValue)| {
        let text = match value {
            EnvValue::Text(text) => text.clone(),
            EnvValue::Secret(reference) => secret(&reference.secret).ok_or_else(|| {
                let (template, secret) = (&template.name, &reference.secret);
                format!("`env.{name}` of template `{template}` names secret {secret}, which does not exist")
            })?,
        };
        Ok((name.clone(), text))
    };
    template.env.iter().map(valued).collect()
}

/// Returns the names of the variables whose values are secrets.
fn secret_variables(template: &Template) -> BTreeSet<String> {
    let is_secret = |value: &EnvValue| matches!(value, EnvValue::Secret(_));
    template.env.iter().filter(|(_, value)| is_secret(value)).map(|(name, _)| name.clone()).collect()
}

/// Returns the limits of each worker of an endpoint.
pub(crate) fn limits(endpoint: &Endpoint) -> Limits {
    Limits { memory_bytes: endpoint.memory_bytes, vcpus: endpoint.vcpus }
}

/// Returns whether the home directory contains a configuration of the SDK. An API key in it overrides the token in the
/// environment, and this server would reject the worker: the worker then gets a home directory without it.
fn sdk_is_configured(home: Option<&Path>) -> bool {
    home.is_some_and(|home| home.join(".runpod/config.toml").exists())
}

/// Returns a worker id of eight random lower-case letters: short, and safe in URLs and file names. `None` if they
/// are no valid id, which cannot happen.
pub(crate) fn mint_worker(mut entropy: u128) -> Option<WorkerId> {
    let mut letters = || {
        let letter = b'a' + (entropy % 26) as u8;
        entropy /= 26;
        char::from(letter)
    };
    (0..8).map(|_| letters()).collect::<String>().parse().ok()
}

/// Returns the environment variables of a worker: defaults, overridden by the template's `chosen`, overridden by the
/// variables that the worker needs to reach this server.
pub(crate) fn environment(
    endpoint: &Endpoint,
    chosen: BTreeMap<String, String>,
    server: &ServerAccess<'_>,
    worker: &WorkerId,
) -> BTreeMap<String, String> {
    let gpu = match endpoint.compute_type {
        ComputeType::Gpu => "gpu",
        ComputeType::Cpu => "cpu",
    };
    let base = format!("{}/v2/{}", server.url, endpoint.id);
    let defaults = [
        // The checks need internet access, 4 GB of free memory and more; a worker that fails one exits.
        ("RUNPOD_SKIP_AUTO_SYSTEM_CHECKS", "true".to_owned()),
        ("RUNPOD_SKIP_GPU_CHECK", "true".to_owned()),
        // Inputs in the local network are usual for a self-hosted server.
        ("RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS", "true".to_owned()),
        ("PYTHONUNBUFFERED", "1".to_owned()),
    ];
    // The SDK appends `&…` to these URLs, so they need a query, and it replaces `$ID` and `$RUNPOD_POD_ID`.
    let required = [
        ("RUNPOD_WEBHOOK_GET_JOB", format!("{base}/job-take/$ID?gpu={gpu}")),
        ("RUNPOD_WEBHOOK_POST_OUTPUT", format!("{base}/job-done/$RUNPOD_POD_ID/$ID?gpu={gpu}")),
        ("RUNPOD_WEBHOOK_POST_STREAM", format!("{base}/job-stream/$RUNPOD_POD_ID/$ID?gpu={gpu}")),
        ("RUNPOD_WEBHOOK_PING", format!("{base}/ping/$RUNPOD_POD_ID?gpu={gpu}")),
        ("RUNPOD_PING_INTERVAL", server.settings.ping_interval_ms.max(1_000).to_string()),
        ("RUNPOD_AI_API_KEY", server.token.to_owned()),
        ("RUNPOD_POD_ID", worker.to_string()),
        ("RUNPOD_POD_HOSTNAME", worker.to_string()),
        ("RUNPOD_ENDPOINT_ID", endpoint.id.to_string()),
    ];
    let mut env = BTreeMap::from(defaults.map(|(name, value)| (name.to_owned(), value)));
    env.extend(chosen);
    env.extend(required.map(|(name, value)| (name.to_owned(), value)));
    env
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_template, an_endpoint};
    use longshore_model::SecretName;

    use super::*;

    #[test]
    fn the_template_overrides_defaults_but_no_required_variable() {
        let mut template = a_template();
        for name in ["RUNPOD_SKIP_GPU_CHECK", "RUNPOD_AI_API_KEY", "MODEL"] {
            template.env.insert(name.into(), "theirs".into());
        }
        template.env.insert("TOKEN".into(), EnvValue::secret("HF_TOKEN".parse().unwrap()));
        let secrets = |name: &SecretName| Some(format!("the value of {name}"));
        let worker = mint_worker(12_345).unwrap();
        let settings = WorkerSettings { ping_interval_ms: 10, ..WorkerSettings::default() };
        let server = ServerAccess { url: "http://10.0.0.5:9000", token: "lsw_token", settings: &settings };
        let spec = spec(&an_endpoint(), &template, &secrets, &server, worker, Placement::default()).unwrap();
        assert_eq!(spec.server_url, "http://10.0.0.5:9000");
        let base = format!("{}/v2/{}", spec.server_url, spec.endpoint);
        assert_eq!(spec.env["RUNPOD_SKIP_GPU_CHECK"], "theirs");
        assert_eq!(spec.env["MODEL"], "theirs");
        assert_eq!(spec.env["TOKEN"], "the value of HF_TOKEN");
        assert!(spec.flashboot && spec.secret_variables.iter().eq(["TOKEN"]));
        assert_eq!(spec.env["RUNPOD_AI_API_KEY"], "lsw_token");
        assert_eq!(spec.env["RUNPOD_WEBHOOK_GET_JOB"], format!("{base}/job-take/$ID?gpu=gpu"));
        assert_eq!(spec.env["RUNPOD_WEBHOOK_PING"], format!("{base}/ping/$RUNPOD_POD_ID?gpu=gpu"));
        assert_eq!(spec.env["RUNPOD_PING_INTERVAL"], "1000", "a shorter interval would stop the pings");
        assert_eq!((spec.entrypoint, spec.cmd), (vec!["python".to_owned()], vec!["handler.py".to_owned()]));
    }

    /// The spec of a worker without secrets.
    fn plain_spec(template: &Template) -> Result<WorkerSpec, String> {
        let settings = WorkerSettings::default();
        let server = ServerAccess { url: "", token: "", settings: &settings };
        spec(&an_endpoint(), template, &|_| None, &server, mint_worker(0).unwrap(), Placement::default())
    }

    #[test]
    fn a_secret_that_does_not_exist_is_an_error_that_names_it() {
        let mut template = a_template();
        template.env.insert("TOKEN".into(), EnvValue::secret("HF_TOKEN".parse().unwrap()));
        let reason = plain_spec(&template).unwrap_err();
        assert_eq!(reason, "`env.TOKEN` of template `hello` names secret HF_TOKEN, which does not exist");
    }

    #[test]
    fn deployed_code_needs_neither_a_command_nor_a_workdir() {
        let hash = "0a".repeat(32);
        let workdir = Some(format!("code:{hash}"));
        let template =
            Template { docker_entrypoint: vec![], docker_start_cmd: vec![], workdir, ..a_template() };
        let run = plain_spec(&template).unwrap();
        assert_eq!((run.code, run.workdir), (Some(hash.parse().unwrap()), None));
        assert!(run.entrypoint.is_empty() && run.cmd.is_empty());
        let with_command = Template { docker_start_cmd: vec!["python".into()], ..template.clone() };
        assert_eq!(plain_spec(&with_command).unwrap().cmd, ["python"]);
        let unknown = Template { workdir: Some("code:x".into()), ..template };
        assert!(plain_spec(&unknown).unwrap_err().contains("no hash of code"));
    }

    #[test]
    fn a_home_directory_is_replaced_only_if_the_sdk_is_configured_there() {
        let home = tempfile::tempdir().unwrap();
        assert!(!sdk_is_configured(Some(home.path())));
        std::fs::create_dir(home.path().join(".runpod")).unwrap();
        std::fs::write(home.path().join(".runpod/config.toml"), "").unwrap();
        assert!(sdk_is_configured(Some(home.path())));
        assert!(!sdk_is_configured(None));
    }
}
