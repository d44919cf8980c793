//! The directory given to `dev`: its handler, and how to run it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longshore_client::{EndpointSpec, JsonText};
use longshore_model::{ENV_NAME_PATTERN, EndpointType, EnvValue, Provider, is_env_name};
use serde::{Deserialize, Serialize};

use super::error::DevError;
use super::manifest_error::explained;
use crate::image::{ImageArgs, short_name};
use crate::jobs::endpoint_name;

/// File name of the directory's own settings.
pub(crate) const MANIFEST: &str = "longshore.toml";
/// The file with the steps that build an image of the folder.
pub(crate) const DOCKERFILE: &str = "Dockerfile";
/// The file with a sample job.
const SAMPLE: &str = "test_input.json";
/// The file with the JSON Schema of the input.
const INPUT_SCHEMA: &str = "input_schema.json";
/// A longer sample is no example: the server refuses it.
const EXAMPLE_BYTES_MAX: usize = 65_536;
const HANDLER: &str = "handler.py";
const SLUG_CHARS_MAX: usize = 63;

/// A directory with a handler.
pub(crate) struct Project {
    /// Absolute path of the directory.
    pub(crate) dir: PathBuf,
    /// The endpoint's slug in addresses under `/v2`.
    pub(crate) slug: String,
    /// How the handler is started.
    pub(crate) program: Program,
    /// The Python interpreter that creates the environment; `None` is `python3`.
    pub(crate) python: Option<String>,
    /// Environment variables of the workers. Values may be confidential.
    pub(crate) env: BTreeMap<String, EnvValue>,
    /// Settings of the endpoint in `longshore.toml`.
    pub(crate) endpoint: EndpointSpec,
}

/// How a worker is started.
pub(crate) enum Program {
    /// A Python file, relative to the directory.
    Handler(String),
    /// A program and its arguments.
    Command(Vec<String>),
    /// A container image, and the words after its entrypoint; none: those of the image.
    Image(String, Vec<String>),
    /// An image that is built of the folder, and the words after its entrypoint; none: those of the image.
    Dockerfile(Vec<String>),
}

/// The contents of `longshore.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    name: Option<String>,
    handler: Option<String>,
    command: Option<Vec<String>>,
    python: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, EnvValue>,
    #[serde(default)]
    endpoint: EndpointSpec,
}

impl Project {
    /// Reads the directory, or that of an image, for a command that sends it to a server.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, or a variable of `longshore.toml` has a name that the server refuses.
    pub(crate) fn to_run(dir: &Path, image: &ImageArgs) -> Result<Self, DevError> {
        let project = match &image.image {
            Some(name) => Self::of_image(dir, image, name)?,
            None => Self::load(dir)?,
        };
        match project.env.keys().find(|name| !is_env_name(name)) {
            None => Ok(project),
            Some(name) => Err(DevError::new(format!(
                "`env` in {MANIFEST} has the name {name:?}; the name of a variable must be of the form \
                 {ENV_NAME_PATTERN}"
            ))),
        }
    }

    /// Reads the directory and its `longshore.toml`. Deployed code of an earlier version may have other names in `env`.
    pub(crate) fn load(dir: &Path) -> Result<Self, DevError> {
        let shown = dir.display();
        let dir = dir.canonicalize().map_err(|error| {
            DevError::new(format!("cannot open the folder {shown}: {error}; name a folder with a {HANDLER}"))
        })?;
        if !dir.is_dir() {
            return Err(DevError::new(format!("{shown} is not a folder; name the folder that holds it")));
        }
        let manifest = Manifest::load(&dir)?;
        let program = match (manifest.command, manifest.handler) {
            (Some(command), None) if !command.is_empty() => Program::Command(command),
            (None, handler) => Program::Handler(existing_handler(&dir, handler)?),
            (Some(_), None) => return Err(DevError::new(format!("`command` in {MANIFEST} is empty"))),
            (Some(_), Some(_)) => {
                return Err(DevError::new(format!(
                    "{MANIFEST} has both `handler` and `command`; keep the one that is meant"
                )));
            }
        };
        let slug = manifest.endpoint.slug.clone();
        let slug =
            slug.or_else(|| manifest.name.as_deref().map(slug_of)).unwrap_or_else(|| slug_of_dir(&dir));
        let (python, env) = (manifest.python, manifest.env);
        let endpoint = with_inputs(&dir, manifest.endpoint)?;
        Ok(Self { dir, slug, program, python, env, endpoint })
    }

    /// Reads the folder of a container image: its `longshore.toml`, if it has one. `name` is the endpoint's name, if the
    /// command line has one.
    pub(crate) fn of_image(dir: &Path, image: &ImageArgs, name: &str) -> Result<Self, DevError> {
        let shown = dir.display();
        let dir = dir
            .canonicalize()
            .map_err(|error| DevError::new(format!("cannot open the folder {shown}: {error}")))?;
        let manifest = Manifest::load(&dir)?;
        let own = image.name.clone().or(manifest.name).unwrap_or_else(|| short_name(name).to_owned());
        let slug = manifest.endpoint.slug.clone().filter(|_| image.name.is_none());
        let endpoint = EndpointSpec {
            slug: None,
            provider: Some(Provider::Docker),
            gpu_type_ids: (!image.gpu.is_empty())
                .then(|| image.gpu.clone())
                .or(manifest.endpoint.gpu_type_ids),
            network_volume_ids: (!image.volume.is_empty())
                .then(|| image.volume.clone())
                .or(manifest.endpoint.network_volume_ids),
            ..manifest.endpoint
        };
        let endpoint = with_inputs(&dir, endpoint)?;
        Ok(Self {
            dir,
            slug: slug.unwrap_or_else(|| slug_of(&own)),
            program: Program::Image(name.to_owned(), manifest.command.unwrap_or_default()),
            python: None,
            env: manifest.env,
            endpoint,
        })
    }

    /// Reads a folder with a `Dockerfile` whose workers are containers; `None` for another folder. `wanted` is the provider of
    /// the command line, if it names one.
    pub(crate) fn of_dockerfile(dir: &Path, wanted: Option<Provider>) -> Result<Option<Self>, DevError> {
        if !dir.join(DOCKERFILE).is_file() {
            return Ok(None);
        }
        let manifest = Manifest::load(dir)?;
        if wanted.or(manifest.endpoint.provider) != Some(Provider::Docker) {
            return Ok(None);
        }
        if manifest.handler.is_some() {
            return Err(DevError::new(format!(
                "{MANIFEST} names a `handler`, and the {DOCKERFILE} says what a container runs; keep the one that is meant"
            )));
        }
        let dir = dir
            .canonicalize()
            .map_err(|error| DevError::new(format!("cannot open the folder {}: {error}", dir.display())))?;
        let slug = manifest.endpoint.slug.clone();
        let slug =
            slug.or_else(|| manifest.name.as_deref().map(slug_of)).unwrap_or_else(|| slug_of_dir(&dir));
        let endpoint = EndpointSpec { provider: Some(Provider::Docker), ..manifest.endpoint };
        let endpoint = with_inputs(&dir, endpoint)?;
        let program = Program::Dockerfile(manifest.command.unwrap_or_default());
        Ok(Some(Self { dir, slug, program, python: None, env: manifest.env, endpoint }))
    }

    /// A project without files, for commands about an endpoint that exists.
    pub(crate) fn named(dir: &Path, name: &str) -> Self {
        let slug = endpoint_name(name).unwrap_or_else(|_| slug_of(name));
        Self {
            dir: dir.to_path_buf(),
            slug,
            program: Program::Command(Vec::new()),
            python: None,
            env: BTreeMap::new(),
            endpoint: EndpointSpec::default(),
        }
    }

    /// The name of the project's code on the server: the slug, without the characters that only slugs may have.
    pub(crate) fn code_name(&self) -> String {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_one =
            self.slug.len() <= SLUG_CHARS_MAX && !self.slug.starts_with('-') && self.slug.chars().all(fits);
        if is_one { self.slug.clone() } else { slug_of(&self.slug) }
    }

    /// The `longshore.toml` of deployed code, as text: how a worker is started. Empty if that needs no words.
    ///
    /// # Errors
    ///
    /// The text could not be written as TOML.
    pub(crate) fn worker_manifest(&self) -> Result<String, toml::ser::Error> {
        #[derive(Serialize)]
        struct WorkerManifest<'a> {
            handler: Option<&'a str>,
            command: Option<&'a [String]>,
            python: Option<&'a str>,
        }
        let (handler, command) = match &self.program {
            Program::Handler(file) => (Some(&**file).filter(|file| *file != HANDLER), None),
            Program::Command(command) => (None, Some(&**command)),
            Program::Image(..) | Program::Dockerfile(_) => (None, None),
        };
        let manifest = WorkerManifest { handler, command, python: self.python.as_deref() };
        toml::to_string(&manifest)
    }

    /// How work reaches the workers.
    pub(crate) fn endpoint_type(&self) -> EndpointType {
        self.endpoint.endpoint_type.unwrap_or_default()
    }

    /// Returns the path of `requirements.txt`, if it exists.
    pub(crate) fn requirements(&self) -> Option<PathBuf> {
        Some(self.dir.join("requirements.txt")).filter(|path| path.is_file())
    }

    /// Returns the path of the sample job, if it exists.
    pub(crate) fn sample(&self) -> Option<PathBuf> {
        if self.endpoint_type() == EndpointType::Lb {
            return None;
        }
        Some(self.dir.join(SAMPLE)).filter(|path| path.is_file())
    }
}

/// Adds what people need to try the endpoint, unless the settings have it: the sample as the example of a request, and the
/// schema of its input. A sample that is no JSON is refused when it is run.
fn with_inputs(dir: &Path, mut endpoint: EndpointSpec) -> Result<EndpointSpec, DevError> {
    let fits = |text: &str| text.len() <= EXAMPLE_BYTES_MAX;
    if endpoint.example.is_none()
        && let Some(text) = std::fs::read_to_string(dir.join(SAMPLE)).ok().filter(|text| fits(text))
    {
        endpoint.example = JsonText::parse(&text).ok();
    }
    if endpoint.input_schema.is_none() && dir.join(INPUT_SCHEMA).is_file() {
        let text = std::fs::read_to_string(dir.join(INPUT_SCHEMA))
            .map_err(|error| DevError::new(format!("cannot read {INPUT_SCHEMA}: {error}")))?;
        let schema = JsonText::parse(&text)
            .map_err(|error| DevError::new(format!("{INPUT_SCHEMA} is not JSON: {error}")))?;
        if !schema.get().starts_with('{') {
            return Err(DevError::new(format!(
                "{INPUT_SCHEMA} must be an object, the JSON Schema of the input"
            )));
        }
        endpoint.input_schema = Some(schema);
    }
    Ok(endpoint)
}

impl Manifest {
    fn load(dir: &Path) -> Result<Self, DevError> {
        match std::fs::read_to_string(dir.join(MANIFEST)) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                let (meant, lines) = explained(&text, &error);
                let hint = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                DevError::new(format!("{MANIFEST} cannot be used{hint}")).with_lines(lines)
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(DevError::new(format!("cannot read {MANIFEST}: {error}"))),
        }
    }
}

fn existing_handler(dir: &Path, named: Option<String>) -> Result<String, DevError> {
    if let Some(handler) = named {
        return if dir.join(&handler).is_file() {
            Ok(handler)
        } else {
            Err(DevError::new(format!(
                "{MANIFEST} names `{handler}` as the handler, but there is no such file"
            )))
        };
    }
    if dir.join(HANDLER).is_file() {
        return Ok(HANDLER.to_owned());
    }
    Err(DevError::new(format!(
        "there is no {HANDLER} in {}; name a folder that has one, or say in its {MANIFEST} what is started:",
        dir.display()
    ))
    .with_lines(
        [
            "handler = \"src/main.py\"            # a file that calls runpod.serverless.start(…)",
            "command = [\"python\", \"app.py\"]    # any program, such as an HTTP server (`type = \"LB\"` under [endpoint])",
            "",
            "`longshore init hello` makes a folder with a handler, `longshore init fastapi` one with an HTTP server",
        ]
        .map(str::to_owned),
    ))
}

/// Returns the slug of an endpoint whose `longshore.toml` gives it no name: that of its folder.
pub(crate) fn slug_of_dir(dir: &Path) -> String {
    slug_of(&dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Returns a slug for a directory's name: `My Model_v2` → `my-model-v2`.
fn slug_of(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(SLUG_CHARS_MAX);
    let slug = slug.trim_end_matches('-');
    // The API requires at least two characters.
    if slug.len() < 2 { format!("handler{slug}") } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_made_of_any_folder_name() {
        assert_eq!(slug_of("hello"), "hello");
        assert_eq!(slug_of("My Model_v2!"), "my-model-v2");
        assert_eq!(slug_of("..x"), "handlerx");
        assert_eq!(slug_of("日本"), "handler");
        assert_eq!(slug_of(&"a".repeat(80)).len(), 63);
    }

    #[test]
    fn a_folder_without_a_handler_is_told_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let error = Project::load(dir.path()).err().unwrap();
        assert!(error.message.contains("there is no handler.py"), "{error}");
    }

    #[test]
    fn the_manifest_names_handler_env_and_endpoint_settings() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("main.py"), "").unwrap();
        let text = "name = \"Chat\"\nhandler = \"main.py\"\nenv = { A = \"1\", B = { secret = \"TOKEN\" } }\n[endpoint]\nworkersMax = 2\n";
        std::fs::write(dir.path().join(MANIFEST), text).unwrap();
        let project = Project::load(dir.path()).unwrap();
        assert_eq!(project.slug, "chat");
        assert_eq!(project.endpoint.workers_max, Some(2));
        assert_eq!(project.env["A"], "1".into());
        assert_eq!(project.env["B"].secret_name().unwrap().as_str(), "TOKEN");
        assert!(matches!(project.program, Program::Handler(handler) if handler == "main.py"));
    }

    #[test]
    fn the_sample_is_the_example_unless_the_manifest_has_one() {
        let dir = tempfile::tempdir().unwrap();
        let load = || Project::load(dir.path());
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        put("handler.py", "");
        let text = |json: Option<JsonText>| json.unwrap().get().to_owned();
        put(SAMPLE, r#" {"input": {"b": 0.50, "a": 1}} "#);
        put(INPUT_SCHEMA, r#" {"type": "object", "required": []}"#);
        let endpoint = load().unwrap().endpoint;
        assert_eq!(text(endpoint.example), r#"{"input": {"b": 0.50, "a": 1}}"#);
        assert_eq!(text(endpoint.input_schema), r#"{"type": "object", "required": []}"#);
        put(
            MANIFEST,
            "[endpoint]\nexample = { input = { b = 2, a = [0.5, true] } }\nslo = { delayMs = 5000, windowDays = 7 }\n",
        );
        let endpoint = load().unwrap().endpoint;
        assert_eq!(text(endpoint.example), r#"{"input":{"b":2,"a":[0.5,true]}}"#);
        let slo = endpoint.slo.unwrap();
        assert_eq!((slo.delay_ms, slo.window_days, slo.success_target), (Some(5000), 7, 0.99));
        put(INPUT_SCHEMA, "[]");
        assert!(load().err().unwrap().message.starts_with("input_schema.json must be an object"));
        put(INPUT_SCHEMA, "{");
        assert!(load().err().unwrap().message.starts_with("input_schema.json is not JSON"));
    }

    #[test]
    fn a_wrong_name_of_a_variable_is_refused_before_anything_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("handler.py"), "").unwrap();
        std::fs::write(dir.path().join(MANIFEST), "env = { A = \"1\", \"1A\" = \"hush\" }\n").unwrap();
        for image in [None, Some("image".to_owned())] {
            let image = ImageArgs { image, ..ImageArgs::default() };
            let error = Project::to_run(dir.path(), &image).err().unwrap();
            let expected =
                "`env` in longshore.toml has the name \"1A\"; the name of a variable must be of the form ";
            assert_eq!(error.message, format!("{expected}{ENV_NAME_PATTERN}"));
        }
        // A worker runs the code that an earlier version stored.
        assert_eq!(Project::load(dir.path()).unwrap().env.len(), 2);
    }

    #[test]
    fn an_unknown_name_in_the_manifest_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("handler.py"), "").unwrap();
        std::fs::write(dir.path().join(MANIFEST), "[endpoint]\nworkerMax = 2\n").unwrap();
        let error = Project::load(dir.path()).err().unwrap();
        assert!(error.lines.join("\n").contains("workerMax"), "{error:?}");
        std::fs::write(dir.path().join(MANIFEST), "[endpoint]\nworkers_max = 2\n").unwrap();
        let error = Project::load(dir.path()).err().unwrap();
        assert!(error.message.contains("did you mean `workersMax`?"), "{error:?}");
        for (text, hint) in [
            ("[endpoint]\ngpuTypeIDs = [\"x\"]\n", "; did you mean `gpuTypeIds`?"),
            ("[endpoint]\nidleTimout = 2\n", "; did you mean `idleTimeout`?"),
            ("[endpoint]\ncomputeType = \"GPUS\"\n", "; did you mean `GPU`?"),
            ("handlr = \"x.py\"\n", "; did you mean `handler`?"),
            ("[endpoint]\nzzz = 2\n", ""),
            ("[endpoint]\ntemplateId = \"x\"\n", ""),
            ("[endpoint]\nworkersMax = \"2\"\n", ""),
            ("[endpoint]\ngpuTypeIds = \"x\"\n", ""),
        ] {
            std::fs::write(dir.path().join(MANIFEST), text).unwrap();
            let error = Project::load(dir.path()).err().unwrap();
            assert_eq!(error.message, format!("{MANIFEST} cannot be used{hint}"), "{text}");
            assert!(!error.lines.is_empty(), "{text}");
        }
    }
}
