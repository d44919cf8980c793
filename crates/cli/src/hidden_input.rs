//! Reads what must not be shown: from a terminal without echo, or from a pipe.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::exit::{CommandResult, cannot};

/// Reads one line. The `prompt` is for a terminal only.
pub(crate) fn line(prompt: &str) -> CommandResult<String> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    let mut read = || stdin.lock().read_line(&mut line).map_err(|error| cannot("read standard input", error));
    if !stdin.is_terminal() {
        read()?;
        return Ok(line);
    }
    let mut err = std::io::stderr();
    let cannot_hide = |error| cannot("hide what is typed", error);
    let shown = tcgetattr(&stdin).map_err(cannot_hide)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &hidden).map_err(cannot_hide)?;
    let _ = write!(err, "{prompt}").and_then(|()| err.flush());
    let outcome = read();
    tcsetattr(&stdin, OptionalActions::Now, &shown).map_err(cannot_hide)?;
    let _ = writeln!(err);
    outcome?;
    Ok(line)
}

/// Reads a text without its last line break: one line from a terminal, everything from a pipe.
pub(crate) fn text(prompt: &str) -> CommandResult<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        text = line(prompt)?;
    } else {
        std::io::stdin().read_to_string(&mut text).map_err(|error| cannot("read standard input", error))?;
    }
    Ok(without_line_break(&text).to_owned())
}

/// A text without its last line break.
pub(crate) fn without_line_break(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}
