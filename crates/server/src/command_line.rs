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
    let suggested = nearest(typed, known).map(str::to_owned);
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
        ] {
            let text = said(line);
            assert!(text.contains(&format!("a similar subcommand exists: {suggested}")), "{text}");
        }
        assert!(!said("longshore xyzzy").contains("similar"));
        assert!(said("longshore run").contains("<ENDPOINT>"), "other errors stay as they are");
    }
}
