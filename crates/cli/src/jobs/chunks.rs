//! The chunks of a job that `--wait` prints on a terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

use longshore_client::{Chunk, ClientError, StreamPage};
use longshore_model::JobId;
use serde_json::value::RawValue;

use crate::output::{OutputFormat, harmless};
use crate::remote::Connection;

/// Prints the chunks of one job, each once and in order.
pub(super) struct Chunks<'a> {
    session: &'a Connection,
    endpoint: &'a str,
    job: JobId,
    /// Number of chunks that are printed.
    printed: u64,
}

impl<'a> Chunks<'a> {
    /// `None` if standard output is no terminal or a program reads it: it gets only the job's output.
    pub(super) fn of(session: &'a Connection, endpoint: &'a str, job: JobId) -> Option<Self> {
        let for_people = session.output.format == OutputFormat::Table && std::io::stdout().is_terminal();
        for_people.then_some(Self { session, endpoint, job, printed: 0 })
    }

    /// Prints new chunks. Waits up to `hold` if there are none and the job has not ended. Returns whether there were any.
    pub(super) async fn print_new(&mut self, hold: Duration) -> Result<bool, ClientError> {
        let page: StreamPage =
            self.session.client.stream(self.endpoint, self.job, self.printed, hold).await?;
        for chunk in &page.stream {
            self.session.screen.result(&harmless(&text(chunk)));
            self.printed += 1;
        }
        Ok(!page.stream.is_empty())
    }

    /// Prints the chunks up to the end of a terminal job.
    pub(super) async fn print_rest(&mut self) -> Result<(), ClientError> {
        while self.print_new(Duration::ZERO).await? {}
        Ok(())
    }

    /// Whether the output of the job is the list of the printed chunks, or empty.
    pub(super) fn have_all_of(&self, output: &RawValue) -> bool {
        let items = serde_json::from_str::<Vec<&RawValue>>(output.get());
        self.printed > 0 && items.is_ok_and(|items| items.is_empty() || items.len() as u64 == self.printed)
    }
}

/// Returns a text chunk without its quotes, other values as JSON.
pub(super) fn text(chunk: &Chunk) -> String {
    let json = chunk.output.get();
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}
