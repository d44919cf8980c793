//! The reference of commands and options in the manual: its text follows from the definitions of the command line.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _};

use crate::Arguments;

/// The page, whose reference is the one block of this kind.
const PAGE: &str = "../../docs/manual/command-line.md";
const BEGIN: &str = "```text reference\n";
const END: &str = "```\n";

/// The heading of the options that many commands share. The page describes them once.
const SHARED_HEADING: &str = "Server and output";

/// Adds the command and those below it, if they are shown in help pages.
fn add(command: &Command, typed: &str, text: &mut String) {
    let inner: Vec<&Command> =
        command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help").collect();
    // A command that only groups others is not typed alone.
    if inner.is_empty() || !command.is_subcommand_required_set() {
        let mut positionals: Vec<&Arg> = command.get_positionals().collect();
        positionals.sort_by_key(|arg| arg.get_index());
        text.push_str(typed);
        for argument in positionals {
            write!(text, " {argument}").unwrap();
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "\n    {about}").unwrap();
        for option in command.get_opts().chain(flags(command)).filter(|arg| is_own(arg)) {
            add_option(option, text);
        }
        text.push('\n');
    }
    for command in inner {
        add(command, &format!("{typed} {}", command.get_name()), text);
    }
}

/// The options without a value.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.get_action().takes_values())
}

fn is_own(arg: &Arg) -> bool {
    !arg.is_hide_set() && arg.get_help_heading() != Some(SHARED_HEADING) && arg.get_id() != "help"
}

fn add_option(option: &Arg, text: &mut String) {
    let short = option.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let name = format!("{short}{}", option.to_string().trim_end_matches("..."));
    let mut help = option.get_help().map(ToString::to_string).unwrap_or_default();
    if let [value] = option.get_default_values()
        && option.get_action().takes_values()
        && !option.is_hide_default_value_set()
    {
        write!(help, " [default: {}]", value.to_string_lossy()).unwrap();
    }
    writeln!(text, "    {name:<28}  {help}").unwrap();
}

#[test]
fn the_manual_has_every_command_and_every_option() {
    let mut arguments = Arguments::command();
    arguments.build();
    let mut reference = String::new();
    for command in arguments.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        add(command, &format!("longshore {}", command.get_name()), &mut reference);
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the block of the reference");
    let (_, after) = rest.split_once(END).expect("the block ends");
    let wanted = format!("{before}{BEGIN}{}\n{END}{after}", reference.trim_end());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(
        page == wanted || std::env::var_os("UPDATE_EXPECT").is_some(),
        "the reference in docs/manual/command-line.md is out of date; run \
         `UPDATE_EXPECT=1 cargo test -p longshore-cli the_manual_has`"
    );
}
