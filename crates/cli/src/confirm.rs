//! Asks for confirmation of an irreversible action.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{CommandError, CommandExit, CommandResult, cannot};

/// Returns `Ok` if `yes` is set or the answer on the terminal is yes.
pub(crate) fn confirm(yes: bool, question: &str) -> CommandResult<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(
            CommandError::usage(format!("{question} No terminal to confirm on")).next("confirm with --yes")
        );
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
