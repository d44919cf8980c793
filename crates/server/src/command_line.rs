//! Reads the command line. An unknown subcommand gets the nearest known one as a suggestion.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use longshore_cli::Arguments;
use longshore_http::nearest;

/// Returns the arguments of this process. Prints help or an error and exits if they are no command.
pub(crate) fn parse() -> Arguments {
    let words: Vec<OsString> = std::env::args_os().collect();
    Arguments::try_parse_from(&words).unwrap_or_else(|error| suggest(error, &words).exit())
}

/// Names of subcommands in other programs, and what they are called here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("start", "serve"),
    ("up", "serve"),
    ("jobs", "requests"),
    ("ps", "workers"),
    ("ls", "list"),
    ("show", "get"),
    ("describe", "get"),
    ("add", "create"),
    ("new", "create"),
    ("edit", "update"),
    ("rm", "delete"),
    ("remove", "delete"),
    ("kill", "stop"),
];
/// Fewer letters are the beginning of a name by chance.
const PREFIX_CHARS_MIN: usize = 2;

/// Returns the known name that a person meant: the only one that begins like that, else the one for the name in other
/// programs, else the nearest.
fn meant<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let begins = |name: &&&str| typed.len() >= PREFIX_CHARS_MIN && name.starts_with(&typed.to_lowercase());
    let mut beginning = known.iter().filter(begins);
    if let (Some(only), None) = (beginning.next(), beginning.next()) {
        return Some(only);
    }
    let other = OTHER_NAMES.iter().find(|(other, here)| *other == typed && known.contains(here));
    let other = other.and_then(|(_, here)| known.iter().find(|name| *name == here));
    other.copied().or_else(|| nearest(typed, known.iter().copied()))
}

/// Replaces the suggestion of `clap`, which compares how names begin: it finds `runsync` for `rn`, not `run`.
fn suggest(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let mut command = Arguments::command();
    for word in words.iter().skip(1) {
        let Some(inner) = command.find_subcommand(word) else { break };
        command = inner.clone();
    }
    let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    let suggested = meant(typed, &known.collect::<Vec<_>>()).map(str::to_owned);
    error.remove(ContextKind::SuggestedSubcommand);
    if let Some(name) = suggested {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_subcommand_is_suggested() {
        let said = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            suggest(Arguments::try_parse_from(&words).unwrap_err(), &words).to_string()
        };
        for (line, suggested) in [
            ("longshore rn", "'run'"),
            ("longshore rnu", "'run'"),
            ("longshore WORKERS", "'workers'"),
            ("longshore endpoint lst", "'list'"),
            ("longshore endpoint ls", "'list'"),
            ("longshore start", "'serve'"),
            ("longshore dep", "'deploy'"),
            ("longshore jobs", "'requests'"),
            ("longshore worker", "'workers'"),
            ("longshore log", "'logs'"),
        ] {
            let text = said(line);
            assert!(text.contains(&format!("a similar subcommand exists: {suggested}")), "{text}");
        }
        assert!(!said("longshore xyzzy").contains("similar"));
        assert!(said("longshore run").contains("<ENDPOINT>"), "other errors stay as they are");
    }
}
