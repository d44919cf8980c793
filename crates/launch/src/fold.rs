//! Folds repeated lines: the first one is written, and later the number of repetitions.
//!
//! Only complete lines with equal bytes are folded. A worker whose server is absent may repeat a few lines thousands of
//! times per second.

use std::time::{Duration, Instant};

/// The number of different lines that are remembered. A new one replaces the oldest.
const LINES_MAX: usize = 8;
/// Longer lines are never folded.
const LINE_BYTES_MAX: usize = 1_024;
/// The longest time between a repetition and the line that reports it.
const MENTION_AFTER: Duration = Duration::from_mins(1);

/// The lines that were written last, and the number of their repetitions.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    lines: Vec<RepeatedLine>,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// Whether the rest of the present line is written, because its beginning was.
    passes: bool,
    /// When the first repetition that is not reported yet was left out.
    left_out_since: Option<Instant>,
}

#[derive(Debug)]
struct RepeatedLine {
    text: Vec<u8>,
    left_out: u64,
}

impl Folding {
    /// A new fold. `in_line`: whether the output so far ends within a line.
    pub(crate) fn begin(in_line: bool) -> Self {
        Self { passes: in_line, ..Self::default() }
    }

    /// The bytes to write for this output.
    pub(crate) fn fold(&mut self, output: &[u8], now: Instant) -> Vec<u8> {
        let mut written = Vec::new();
        for part in output.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if self.passes {
                written.extend_from_slice(part);
                self.passes = !ends;
                continue;
            }
            self.begun.extend_from_slice(part);
            if ends {
                let line = std::mem::take(&mut self.begun);
                self.line(line, now, &mut written);
            } else if self.begun.len() > LINE_BYTES_MAX {
                written.append(&mut self.begun);
                self.passes = true;
            }
        }
        written
    }

    fn line(&mut self, text: Vec<u8>, now: Instant, written: &mut Vec<u8>) {
        if let Some(known) = self.lines.iter_mut().find(|line| line.text == text) {
            known.left_out += 1;
            self.left_out_since.get_or_insert(now);
            return;
        }
        written.extend_from_slice(&text);
        if text.len() > LINE_BYTES_MAX || text == b"\n" {
            return;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.remove(0).mention(written);
        }
        self.lines.push(RepeatedLine { text, left_out: 0 });
    }

    /// When repetitions have to be reported; `None` without any.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.left_out_since.map(|since| since + MENTION_AFTER)
    }

    /// The report of the repetitions that were left out.
    pub(crate) fn mention(&mut self) -> Vec<u8> {
        let mut written = Vec::new();
        self.left_out_since = None;
        self.lines.iter_mut().for_each(|line| line.mention(&mut written));
        written
    }

    /// Ends the folding: the report of repetitions, and the incomplete line.
    pub(crate) fn end(mut self) -> Vec<u8> {
        let mut written = self.mention();
        written.append(&mut self.begun);
        written
    }
}

impl RepeatedLine {
    fn mention(&mut self, written: &mut Vec<u8>) {
        if self.left_out > 0 {
            let times = if self.left_out == 1 { "time" } else { "times" };
            written.extend_from_slice(format!("[longshore] {} more {times}: ", self.left_out).as_bytes());
            written.extend_from_slice(&self.text);
            self.left_out = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_that_take_turns_are_written_once_and_counted() {
        let (mut folding, now) = (Folding::begin(false), Instant::now());
        assert_eq!(text(folding.fold(b"get\nfailed\nget\nfailed\nge", now)), "get\nfailed\n");
        assert_eq!(text(folding.fold(b"t\nother\n", now + MENTION_AFTER / 2)), "other\n");
        assert_eq!(folding.due(), Some(now + MENTION_AFTER));
        let mentioned = "[longshore] 2 more times: get\n[longshore] 1 more time: failed\n";
        assert_eq!(text(folding.mention()), mentioned);
        assert_eq!((folding.due(), text(folding.mention())), (None, String::new()));
        assert_eq!(text(folding.fold(b"get\nhalf", now)), "", "still known");
        assert_eq!(text(folding.end()), "[longshore] 1 more time: get\nhalf");
    }

    #[test]
    fn lines_that_differ_by_a_number_are_a_handlers_own() {
        let mut folding = Folding::begin(false);
        let steps = (0..100).map(|n| format!("step {n}\n")).collect::<Vec<_>>().concat();
        assert_eq!(text(folding.fold(steps.as_bytes(), Instant::now())), steps);
        assert_eq!((folding.due(), text(folding.end())), (None, String::new()));
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_says_what_it_left_out() {
        let (mut folding, now) = (Folding::begin(false), Instant::now());
        folding.fold(b"first\nfirst\n", now);
        let others = (0..LINES_MAX).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
        let written = text(folding.fold(others.as_bytes(), now));
        assert!(written.contains("[longshore] 1 more time: first\n"), "{written}");
        assert_eq!(text(folding.fold(b"first\n", now)), "first\n", "it is new again");
        assert_eq!(folding.lines.len(), LINES_MAX);
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        for _ in 0..2 {
            assert_eq!(text(folding.fold(long.as_bytes(), now)), long, "without waiting for its end");
            assert_eq!(text(folding.fold(b"end\n", now)), "end\n");
        }
    }

    #[test]
    fn the_rest_of_a_line_whose_beginning_was_written_goes_through() {
        let mut folding = Folding::begin(true);
        assert_eq!(text(folding.fold(b"rest\nrest\nrest\n", Instant::now())), "rest\nrest\n");
    }
}
