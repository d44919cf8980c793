//! The handler's Python environment: found or created in `.longshore/venv`, with the requirements installed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use longshore_model::{EndpointType, StartStage};
use tokio::process::Command;

use super::dev_dir::DevDir;
use super::error::DevError;
use super::install::{self, Tool};
use super::project::{Program, Project};
use crate::screen::{Screen, span};

/// Prints the interpreter's version, and fails if it cannot create environments.
const PROBE: &str = "import sys; print('.'.join(map(str, sys.version_info[:3]))); import venv, ensurepip";
/// File in the environment that lists the installed requirements.
const STAMP: &str = "longshore-installed.txt";
/// Bytes of a script that are read to find its interpreter.
const SCRIPT_HEAD_BYTES: u64 = 8_192;
/// Installed when the directory has no `requirements.txt`.
const DEFAULT_REQUIREMENTS: &str = "runpod";

/// Prepares the environment and returns the command line of the handler. Calls `say` when a stage begins.
pub(crate) async fn prepare(
    project: &Project,
    home: &DevDir,
    screen: &Screen,
    say: &(dyn Fn(StartStage) + Sync),
) -> Result<Vec<String>, DevError> {
    let wanted = match (&project.program, project.requirements()) {
        // The project's own command without requirements runs without an environment.
        (Program::Command(command), None)
        | (Program::Image(_, command) | Program::Dockerfile(command), _) => return Ok(command.clone()),
        (_, Some(path)) => std::fs::read_to_string(&path)
            .map_err(|error| DevError::new(format!("cannot read {}: {error}", path.display())))?,
        (Program::Handler(_), None) if project.endpoint_type() == EndpointType::Lb => {
            screen.note("no requirements.txt here: the environment gets no packages");
            String::new()
        }
        (Program::Handler(_), None) => {
            screen.note("no requirements.txt here: the environment gets the `runpod` SDK and nothing else");
            format!("{DEFAULT_REQUIREMENTS}\n")
        }
    };
    let has_packages = !wanted.is_empty();
    let venv = home.venv();
    let interpreter = format!("# python: {}\n", project.python.as_deref().unwrap_or("python3"));
    let wanted = format!("{interpreter}{wanted}");
    let installed = std::fs::read_to_string(venv.join(STAMP)).unwrap_or_default();
    let usable = installed.starts_with(&interpreter) && runs(&venv.join("bin/python")).await;
    if usable && installed == wanted {
        screen.good(&format!("python environment is up to date {}", screen.dim("(.longshore/venv)")));
    } else {
        let tool = if responds("uv").await { Tool::Uv } else { Tool::Pip };
        // Workers may be running in a usable environment, so packages are added to it.
        if !usable || tool == Tool::Pip && !venv.join("bin/pip").exists() {
            say(StartStage::Environment);
            make(tool, project, &venv, screen).await?;
        }
        if has_packages {
            say(StartStage::Packages);
            install(tool, project, home, screen).await?;
        }
        std::fs::write(venv.join(STAMP), &wanted)
            .map_err(|error| DevError::new(format!("cannot write to {}: {error}", venv.display())))?;
    }
    Ok(command(project, &venv))
}

/// The handler with the environment's interpreter, or the project's own command. Its program is looked up in the
/// environment first.
fn command(project: &Project, venv: &Path) -> Vec<String> {
    let bin = venv.join("bin");
    match &project.program {
        Program::Handler(file) => {
            vec![bin.join("python").display().to_string(), "-u".to_owned(), file.clone()]
        }
        Program::Image(_, command) | Program::Dockerfile(command) => command.clone(),
        Program::Command(command) => {
            let mut command = command.clone();
            if let Some(program) = command.first_mut() {
                let ours = bin.join(&*program);
                if !program.contains('/') && ours.exists() {
                    *program = ours.display().to_string();
                    if is_script_of_elsewhere(&ours, &bin) {
                        command.insert(0, bin.join("python").display().to_string());
                    }
                }
            }
            command
        }
    }
}

/// Whether a script's first line names an interpreter outside `bin`: the environment was moved or copied.
fn is_script_of_elsewhere(script: &Path, bin: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(script).and_then(|file| file.take(SCRIPT_HEAD_BYTES).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    // With a long path the first line names the shell, and the second line the interpreter.
    let names: String = head.lines().take(2).collect();
    read.is_ok()
        && names.starts_with("#!")
        && names.contains("python")
        && !names.contains(&*bin.to_string_lossy())
}

/// Whether the interpreter starts. It fails after an upgrade of the system's Python or a move of the directory.
async fn runs(python: &Path) -> bool {
    // Every handler begins with this import, which also proves that the package was installed.
    succeeds(Command::new(python).args(["-c", "import runpod"])).await
}

/// Creates the environment and replaces an existing one.
async fn make(tool: Tool, project: &Project, venv: &Path, screen: &Screen) -> Result<(), DevError> {
    let python = project.python.clone().unwrap_or_else(|| "python3".to_owned());
    let version = match (tool, probe(&python).await) {
        (_, Ok(version)) => version,
        // uv can install an interpreter itself.
        (Tool::Uv, Err(_)) => "of uv".to_owned(),
        (Tool::Pip, Err(error)) => return Err(error),
    };
    let _ = std::fs::remove_dir_all(venv);
    let step = screen.step("creating a python environment");
    let mut command = match tool {
        Tool::Uv => {
            let mut command = Command::new("uv");
            command.args(["venv", "--quiet"]);
            if let Some(python) = &project.python {
                command.args(["--python", python]);
            }
            command
        }
        Tool::Pip => {
            let mut command = Command::new(&python);
            command.args(["-m", "venv"]);
            command
        }
    };
    let output = command.arg(venv).stdin(Stdio::null()).kill_on_drop(true).output().await;
    let failure = match output {
        Ok(output) if output.status.success() => {
            let seconds = span(step.elapsed());
            step.done(&format!("python {version} {}", screen.dim(&format!("(.longshore/venv, {seconds})"))));
            return Ok(());
        }
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
        }
        Err(error) => vec![error.to_string()],
    };
    drop(step);
    // An incomplete environment would be taken for a complete one.
    let _ = std::fs::remove_dir_all(venv);
    Err(DevError::new(format!("cannot create a python environment in {}:", venv.display()))
        .with_lines(failure))
}

async fn install(tool: Tool, project: &Project, home: &DevDir, screen: &Screen) -> Result<(), DevError> {
    let python = home.venv().join("bin/python");
    let packages = match project.requirements() {
        Some(path) => vec!["-r".to_owned(), path.display().to_string()],
        None => vec![DEFAULT_REQUIREMENTS.to_owned()],
    };
    let what = if project.requirements().is_some() { "requirements.txt" } else { DEFAULT_REQUIREMENTS };
    let step = screen.step(format!("installing {what} with {}", tool.name()));
    match install::run(tool, &python, &packages, &project.dir, &home.install_log(), &step).await {
        Ok(()) => {
            let seconds = span(step.elapsed());
            step.done(&format!("installed {what} {}", screen.dim(&format!("({}, {seconds})", tool.name()))));
            Ok(())
        }
        Err(error) => {
            drop(step);
            Err(error)
        }
    }
}

/// Returns the interpreter's version if it can create environments.
async fn probe(python: &str) -> Result<String, DevError> {
    let output =
        Command::new(python).args(["-c", PROBE]).stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            DevError::new(format!(
                "`{python}` is not installed; handlers are Python programs. On Debian or Ubuntu:"
            ))
            .with_lines(["sudo apt install python3 python3-venv".to_owned()])
        } else {
            DevError::new(format!("cannot run `{python}`: {error}"))
        }
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("No module named 'venv'") || said.contains("No module named 'ensurepip'") {
        let advice =
            "`python3` cannot create environments: its `venv` module is missing. On Debian or Ubuntu:";
        return Err(DevError::new(advice).with_lines(["sudo apt install python3-venv".to_owned()]));
    }
    Err(DevError::new(format!("`{python}` does not work:")).with_lines(said.lines().map(str::to_owned)))
}

async fn responds(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version")).await
}

/// Runs a command without input and output. Returns whether it exits with code 0.
async fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).status().await.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_an_environment_that_was_moved_are_run_by_its_own_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path();
        for (text, is_elsewhere) in [
            ("#!/old/venv/bin/python3\nimport x", true),
            ("#!/bin/sh\n'''exec' \"/old/venv/bin/python\" \"$0\"\n", true),
            (&*format!("#!{}/python\nimport x", bin.display()), false),
            ("#!/bin/bash\necho", false),
            ("\u{7f}ELF python", false),
            ("", false),
        ] {
            std::fs::write(bin.join("serve"), text).unwrap();
            assert_eq!(is_script_of_elsewhere(&bin.join("serve"), bin), is_elsewhere, "{text}");
        }
        assert!(!is_script_of_elsewhere(&bin.join("missing"), bin));
    }
}
