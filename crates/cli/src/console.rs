//! `longshore console`: an address that signs a browser in once.

use std::process::{Command, Stdio};

use clap::Args;
use longshore_client::ConsoleCode;
use serde_json::value::to_raw_value;

use crate::exit::{CommandExit, CommandResult, cannot};
use crate::output::OutputFormat;
use crate::remote::ServerArgs;

/// The program that opens an address in the browser.
const OPENER: &str = "xdg-open";

pub(crate) const CONSOLE_EXAMPLES: &str = "\
Examples:
  longshore console                      print an address for the browser
  longshore console --open               open it
  longshore console --profile lab

The address signs in once, within a minute, with the key that the command uses.
The browser may do what this key may do.";

/// Arguments of `longshore console`.
#[derive(Debug, Args)]
pub struct ConsoleArgs {
    /// Open the address in the browser instead of printing it
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    remote: ServerArgs,
}

/// Makes a code, and prints or opens the address that has it.
pub(crate) async fn console(args: &ConsoleArgs) -> CommandResult {
    let session = args.remote.connect()?;
    let code: ConsoleCode = session.client.console_code().await?;
    if args.open {
        // The address is an argument of a process of this user for a moment; it signs in only once.
        let opening =
            Command::new(OPENER).arg(&code.url).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let status = opening.map_err(|cause| cannot(format!("run {OPENER}"), cause))?;
        if !status.success() {
            return Err(cannot("open the address", format!("{OPENER} failed; print it without --open")));
        }
        return Ok(CommandExit::Success);
    }
    if session.output.format == OutputFormat::Table {
        session.output.line(&code.url)?;
    } else {
        let record = to_raw_value(&code).map_err(|cause| cannot("write the response", cause))?;
        session.output.record(&record)?;
    }
    Ok(CommandExit::Success)
}
