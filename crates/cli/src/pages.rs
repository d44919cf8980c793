//! `longshore completions` and `longshore man`, generated from the definitions of the command line.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, ValueEnum};

use crate::Arguments;
use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::{Output, OutputFormat};

/// A shell with completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU bash (`bash`), sourced from `bash_completion.d`.
    Bash,
    /// The Z shell (`zsh`), as an autoloaded function.
    Zsh,
    /// The fish shell (`fish`), from its `completions` directory.
    Fish,
}

/// Arguments of `longshore completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// bash, zsh or fish
    #[arg(value_name = "SHELL", value_enum, hide_possible_values = true)]
    shell: Shell,
}

/// Arguments of `longshore man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for every command to this folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> CommandResult {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    let name = "longshore";
    match args.shell {
        Shell::Bash => clap_complete::generate(clap_complete::Shell::Bash, &mut command, name, &mut script),
        Shell::Zsh => clap_complete::generate(clap_complete::Shell::Zsh, &mut command, name, &mut script),
        Shell::Fish => clap_complete::generate(clap_complete::Shell::Fish, &mut command, name, &mut script),
    }
    Output::new(OutputFormat::Table).text(&String::from_utf8_lossy(&script))?;
    Ok(CommandExit::Success)
}

/// Prints the program's manual page, or writes the pages of all commands.
pub(crate) fn man(args: &ManArgs) -> CommandResult {
    if let Some(dir) = &args.dir {
        let written =
            fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Arguments::command(), dir));
        written.map_err(|error| cannot(format_args!("write to {}", dir.display()), error))?;
        return Ok(CommandExit::Success);
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Arguments::command()).render(&mut page);
    rendered.map_err(|error| cannot("write the page", error))?;
    Output::new(OutputFormat::Table).text(&String::from_utf8_lossy(&page))?;
    Ok(CommandExit::Success)
}
