//! The chunks of a job on standard output, for people.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use longshore_client::{Chunk, ClientError, StreamPage};
use longshore_model::JobId;
use serde_json::value::RawValue;

use super::summary::short_chunk;
use crate::output::{OutputFormat, harmless};
use crate::remote::Connection;

/// Printed once below chunks of which some were shortened.
const SHORTENED: &str =
    "large and binary chunks are shortened; `longshore stream … --raw` prints all of them";

/// Prints chunks one after the other. Its end ends the last line.
pub(super) struct ChunkPrinter<'a> {
    session: &'a Connection,
    /// Whether standard output is a terminal, which control characters of a chunk must not reach.
    is_terminal: bool,
    has_shortened: bool,
}

impl<'a> ChunkPrinter<'a> {
    pub(super) fn of(session: &'a Connection) -> Self {
        Self { session, is_terminal: io::stdout().is_terminal(), has_shortened: false }
    }

    pub(super) fn print(&mut self, chunk: &Chunk) -> io::Result<()> {
        let (piece, is_short) = piece(&chunk.output, self.session.output.summarizes);
        self.has_shortened |= is_short;
        let shown = |text: String| if self.is_terminal { harmless(&text) } else { text };
        match piece {
            Piece::Text(text) => self.session.screen.part(&shown(text)),
            Piece::Line(line) => {
                self.session.screen.end_part();
                self.session.screen.part(&format!("{}\n", shown(line)))
            }
        }
    }
}

impl Drop for ChunkPrinter<'_> {
    fn drop(&mut self) {
        let screen = &self.session.screen;
        screen.end_part();
        if self.has_shortened {
            screen.line(&screen.dim(&format!("({SHORTENED})")));
        }
    }
}

/// What is printed for one chunk.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// A piece of a text, which the next piece continues.
    Text(String),
    /// A value on its own line.
    Line(String),
}

/// Returns what is printed for a chunk, and whether that is less than the whole chunk.
fn piece(output: &RawValue, summarizes: bool) -> (Piece, bool) {
    if let Some(short) = summarizes.then(|| short_chunk(output.get())).flatten() {
        return (Piece::Line(short), true);
    }
    let text = serde_json::from_str::<String>(output.get());
    (text.map_or_else(|_| Piece::Line(output.get().to_owned()), Piece::Text), false)
}

/// Prints the chunks of one job on a terminal, each once and in order.
pub(super) struct Chunks<'a> {
    session: &'a Connection,
    endpoint: &'a str,
    job: JobId,
    printer: ChunkPrinter<'a>,
    /// Number of chunks that are printed.
    printed: u64,
}

impl<'a> Chunks<'a> {
    /// `None` if standard output is no terminal or a program reads it: it gets only the job's output.
    pub(super) fn of(session: &'a Connection, endpoint: &'a str, job: JobId) -> Option<Self> {
        let for_people = session.output.format == OutputFormat::Table && io::stdout().is_terminal();
        for_people.then(|| Self { session, endpoint, job, printer: ChunkPrinter::of(session), printed: 0 })
    }

    /// Prints new chunks. Waits up to `hold` if there are none and the job has not ended. Returns whether there were any.
    pub(super) async fn print_new(&mut self, hold: Duration) -> Result<bool, ClientError> {
        let page: StreamPage =
            self.session.client.stream(self.endpoint, self.job, self.printed, hold).await?;
        for chunk in &page.stream {
            // The terminal may be gone; the wait for the job goes on.
            let _ = self.printer.print(chunk);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: &str, summarizes: bool) -> (Piece, bool) {
        piece(&RawValue::from_string(json.to_owned()).unwrap(), summarizes)
    }

    #[test]
    fn text_continues_a_line_and_other_values_have_their_own() {
        let text = |text: &str| (Piece::Text(text.into()), false);
        let line = |line: &str| (Piece::Line(line.into()), false);
        for summarizes in [true, false] {
            assert_eq!(printed(r#""Once ""#, summarizes), text("Once "));
            assert_eq!(printed(r#""time.\n""#, summarizes), text("time.\n"));
            assert_eq!(printed(r#""""#, summarizes), text(""));
            assert_eq!(printed(r#"{"n": 1.0}"#, summarizes), line(r#"{"n": 1.0}"#));
            assert_eq!(printed("null", summarizes), line("null"));
        }
    }

    #[test]
    fn people_see_the_kind_and_the_size_of_a_binary_chunk() {
        let image = format!("iVBORw0KGgo{}", "aB3+".repeat(500));
        let (frame, whole) = (format!("{{\"frame\": \"{image}\"}}"), format!("\"{image}\""));
        let short = "<image/png, 1.5 kB as base64>";
        assert_eq!(printed(&whole, true), (Piece::Line(short.into()), true));
        assert_eq!(printed(&frame, true), (Piece::Line(format!("{{\"frame\": \"{short}\"}}")), true));
        assert_eq!(printed(&whole, false), (Piece::Text(image), false));
        let long = printed(&format!("\"{}\"", "ü".repeat(3_000)), true);
        assert_eq!(long, (Piece::Line(format!("{} … (6.0 kB)", "ü".repeat(512))), true));
        let list = printed(&format!("[{}0]", "1,".repeat(3_000)), true);
        assert_eq!(list, (Piece::Line(format!("[{}1 … (6.0 kB)", "1,".repeat(511))), true));
    }
}
