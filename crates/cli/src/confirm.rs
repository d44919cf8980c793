//! Asks before something is gone for good.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{CommandError, CommandExit, CommandResult, cannot};

/// Returns when it is meant: said with `yes`, or answered on the terminal.
pub(crate) fn confirm(yes: bool, question: &str) -> CommandResult<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage(format!("{question} There is no terminal to ask on"))
            .next("say so with --yes"));
    }
    let mut out = std::io::stderr().lock();
    let asked = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    asked.map_err(|error| cannot("ask", error))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|error| cannot("read the answer", error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(CommandError::new(CommandExit::Failure, "nothing was changed")),
    }
}
