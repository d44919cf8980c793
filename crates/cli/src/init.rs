//! `longshore init`: makes a folder from one of the examples, which are part of the program.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};

use crate::dev::project::slug_of_dir;
use crate::exit::{CommandError, CommandExit, CommandResult, cannot};
use crate::output::{Output, OutputFormat};

/// Arguments of `longshore init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The name of a template; without it, list them
    #[arg(value_name = "TEMPLATE", value_parser = TemplateName, hide_possible_values = true)]
    template: Option<String>,
    /// The folder to make [default: the template's name]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A folder of `examples/`.
struct Template {
    name: &'static str,
    /// What it shows, in one line.
    about: &'static str,
    /// Names and contents.
    files: &'static [(&'static str, &'static str)],
}

macro_rules! template {
    ($name:literal, $about:literal, [$($file:literal),*]) => {
        Template {
            name: $name,
            about: $about,
            files: &[$(($file, include_str!(concat!("../../../examples/", $name, "/", $file)))),*],
        }
    };
}

const TEMPLATES: &[Template] = &[
    template!(
        "hello",
        "the smallest worker: a function from an input to an output",
        ["handler.py", "requirements.txt", "test_input.json", "README.md"]
    ),
    template!(
        "stream",
        "a generator: clients read each chunk while the job runs",
        ["handler.py", "requirements.txt", "test_input.json", "README.md"]
    ),
    template!(
        "concurrent",
        "an async handler that runs several jobs concurrently",
        ["handler.py", "requirements.txt", "test_input.json", "longshore.toml", "README.md"]
    ),
    template!(
        "openai",
        "a fake chat model with the OpenAI API",
        ["handler.py", "requirements.txt", "test_input.json", "longshore.toml", "README.md"]
    ),
    template!(
        "fastapi",
        "a web application: requests are forwarded to it, without a queue",
        ["app.py", "requirements.txt", "longshore.toml", "README.md"]
    ),
    template!(
        "websocket",
        "a web application with WebSockets",
        ["app.py", "requirements.txt", "longshore.toml", "README.md"]
    ),
];

/// Accepts the names of the templates. Clap's own parser would offer the most similar name, however different it is.
#[derive(Clone)]
struct TemplateName;

impl TypedValueParser for TemplateName {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let known = TEMPLATES.iter().find(|known| value == known.name);
        known.map(|known| known.name.to_owned()).ok_or_else(|| {
            let names: Vec<&str> = TEMPLATES.iter().map(|known| known.name).collect();
            let (value, names) = (value.display(), names.join(", "));
            let text = format!("no template is named `{value}`; the templates are {names}\n");
            clap::Error::raw(ErrorKind::InvalidValue, text).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(TEMPLATES.iter().map(|known| PossibleValue::new(known.name))))
    }
}

/// Makes a folder from a template, or lists the templates.
pub(crate) fn init(args: &InitArgs) -> CommandResult {
    let output = Output::new(OutputFormat::Table);
    let Some(template) = TEMPLATES.iter().find(|known| Some(known.name) == args.template.as_deref()) else {
        for template in TEMPLATES {
            output.line(&format!("{:11} {}", template.name, template.about))?;
        }
        output.line("\nmake a folder from one: longshore init hello my-worker")?;
        return Ok(CommandExit::Success);
    };
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(template.name));
    template.write_to(&dir)?;
    let names: Vec<_> = template.files.iter().map(|(name, _)| *name).collect();
    output.line(&format!("{} has {}", dir.display(), names.join(", ")))?;
    output.line(&format!("run it: longshore dev {}", dir.display()))?;
    Ok(CommandExit::Success)
}

impl Template {
    /// Creates `dir` with the template's files. Fails and changes nothing if `dir` has files already.
    fn write_to(&self, dir: &Path) -> CommandResult<()> {
        let shown = dir.display();
        let is_empty = is_empty(dir).map_err(|error| cannot(format_args!("make a folder {shown}"), error))?;
        if !is_empty {
            return Err(CommandError::usage(format!("the folder {shown} is not empty; nothing was written"))
                .next(format!("name a new folder: longshore init {} {}", self.name, unused(dir).display())));
        }
        fs::create_dir_all(dir).map_err(|error| cannot(format_args!("make the folder {shown}"), error))?;
        // The current folder, `.`, has its name in its full path only.
        let endpoint = slug_of_dir(&dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
        for (name, text) in self.files {
            let path = dir.join(name);
            let text = if *name == "README.md" { self.readme(text, &endpoint) } else { (*text).to_owned() };
            fs::write(&path, text)
                .map_err(|error| cannot(format_args!("write {}", path.display()), error))?;
        }
        Ok(())
    }

    /// The template's README for an endpoint with this slug: the commands in it name the endpoint.
    fn readme(&self, text: &str, endpoint: &str) -> String {
        let name = self.name;
        let text = text.replace(&format!("/v2/{name}/"), &format!("/v2/{endpoint}/"));
        let text = text.replace(&format!("/lb/{name}/"), &format!("/lb/{endpoint}/"));
        let text = text.replace(&format!("/v2/{name}\n"), &format!("/v2/{endpoint}\n"));
        text.replace(&format!("longshore run {name} "), &format!("longshore run {endpoint} "))
    }
}

/// The first free name after that of a folder: `hello-2` for `hello`.
fn unused(dir: &Path) -> PathBuf {
    let name = dir.file_name().map_or_else(|| "my-worker".into(), |name| name.to_string_lossy().into_owned());
    // A hundred such folders have another reason than a free name.
    let numbered = (2..100).map(|number| dir.with_file_name(format!("{name}-{number}")));
    numbered.into_iter().find(|dir| !dir.exists()).unwrap_or_else(|| PathBuf::from("NEW-FOLDER"))
}

/// Whether `dir` does not exist or has nothing but a Git repository without files.
fn is_empty(dir: &Path) -> io::Result<bool> {
    match fs::read_dir(dir) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            Ok(names.iter().all(|name| name == ".git"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: InitArgs,
    }

    #[test]
    fn an_unknown_template_is_told_the_known_ones() {
        let parsed = |line: &str| <Line as clap::Parser>::try_parse_from(line.split(' '));
        let error = parsed("init nope").err().unwrap().to_string();
        assert!(!error.contains("similar"), "{error}");
        assert!(error.contains("no template is named `nope`; the templates are hello, stream, "), "{error}");
        assert_eq!(parsed("init hello").unwrap().args.template.as_deref(), Some("hello"));
    }

    /// Names and contents of the files in a folder, without what a run of the example leaves there.
    fn files(dir: &Path) -> BTreeMap<String, String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let named = files.map(|entry| entry.file_name().into_string().unwrap());
        named.map(|name| (name.clone(), fs::read_to_string(dir.join(name)).unwrap())).collect()
    }

    #[test]
    fn every_example_is_a_template_and_every_template_an_example() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let folders = fs::read_dir(&examples).unwrap().map(|entry| entry.unwrap());
        let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
        let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        let mut known: Vec<_> = TEMPLATES.iter().map(|template| template.name).collect();
        known.sort_unstable();
        assert_eq!(names, known);
        let home = tempfile::tempdir().unwrap();
        for template in TEMPLATES {
            let dir = home.path().join("new").join(template.name);
            template.write_to(&dir).unwrap();
            assert_eq!(files(&dir), files(&examples.join(template.name)), "{}", template.name);
        }
    }

    #[test]
    fn the_readme_names_the_endpoint_of_its_folder() {
        let home = tempfile::tempdir().unwrap();
        for template in TEMPLATES {
            let dir = home.path().join(format!("My {}", template.name));
            template.write_to(&dir).unwrap();
            let text = fs::read_to_string(dir.join("README.md")).unwrap();
            let (endpoint, name) = (format!("my-{}", template.name), template.name);
            let has = |part: &str| text.contains(part);
            assert!(has(&format!("/v2/{endpoint}")) || has(&format!("/lb/{endpoint}/")), "{text}");
            let old = [format!("/v2/{name}"), format!("/lb/{name}"), format!("run {name} ")];
            assert!(!old.iter().any(|old| has(old)), "{text}");
        }
    }

    #[test]
    fn the_suggested_folder_is_a_new_one() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("my-worker");
        fs::create_dir(&dir).unwrap();
        fs::create_dir(home.path().join("my-worker-2")).unwrap();
        assert_eq!(unused(&dir), home.path().join("my-worker-3"));
        fs::write(dir.join("a"), "").unwrap();
        let failure = TEMPLATES[0].write_to(&dir).unwrap_err();
        assert!(failure.next.unwrap().ends_with("/my-worker-3"));
        assert_eq!(unused(Path::new("some")), Path::new("some-2"));
        assert_eq!(unused(Path::new(".")), Path::new("./my-worker-2"));
    }

    #[test]
    fn a_folder_with_files_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join("handler.py"), "mine").unwrap();
        let failure = TEMPLATES[0].write_to(dir.path()).unwrap_err();
        assert_eq!(failure.exit, CommandExit::Usage);
        assert!(failure.message.contains("is not empty") && failure.next.is_some(), "{failure}");
        assert_eq!(files(dir.path()), BTreeMap::from([("handler.py".to_owned(), "mine".to_owned())]));
        fs::remove_file(dir.path().join("handler.py")).unwrap();
        TEMPLATES[0].write_to(dir.path()).unwrap();
        assert!(TEMPLATES[0].write_to(&dir.path().join("handler.py")).is_err(), "a file is no folder");
    }
}
