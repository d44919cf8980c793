//! Standard output of commands: tables for people, JSON for programs.

use std::io::{IsTerminal, Write};

use clap::{Args, ValueEnum};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::{CommandResult, cannot};
use crate::human::{in_words, with_ages, with_unit};
use crate::members::Members;
use crate::pretty::pretty;
use crate::table::{Column, Table};

/// Members that are shown first.
const FIRST_MEMBERS: [&str; 4] = ["id", "name", "slug", "status"];

/// The format of results on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table or `name value` lines, for people.
    #[default]
    Table,
    /// One indented JSON document.
    Json,
    /// One JSON document per line.
    Jsonl,
}

/// The option that chooses the format of results.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FormatArgs {
    /// Format of results: table, json, jsonl [default: table]
    #[arg(
        short,
        long,
        value_name = "FORM",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) output: OutputFormat,
}

/// Colours for a terminal, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Styles {
    coloured: bool,
}

impl Styles {
    /// Colours if `stream` is a terminal and the environment does not disable them.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { coloured: stream.is_terminal() && !set("NO_COLOR") && !dumb }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { coloured: false }
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self { coloured: true }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Colours the state of a job or worker.
    pub(crate) fn state(self, text: &str) -> String {
        match text.trim_end() {
            "COMPLETED" | "IDLE" | "ok" => self.green(text),
            "FAILED" | "TIMED_OUT" | "fail" => self.red(text),
            "CANCELLED" | "EXITED" | "DRAINING" | "warn" => self.yellow(text),
            "IN_PROGRESS" | "RUNNING" => self.cyan(text),
            _ => text.to_owned(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Standard output in the chosen format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: OutputFormat,
    pub(crate) styles: Styles,
    /// Whether large and binary values are shortened: the reader is a person at a terminal.
    pub(crate) summarizes: bool,
}

impl Output {
    pub(crate) fn new(format: OutputFormat) -> Self {
        let summarizes = format == OutputFormat::Table && std::io::stdout().is_terminal();
        Self { format, styles: Styles::of(&std::io::stdout()), summarizes }
    }

    /// Shortens nothing if `raw`.
    pub(crate) fn whole_if(self, raw: bool) -> Self {
        Self { summarizes: self.summarizes && !raw, ..self }
    }

    /// Prints several records. A table shows `columns` of them.
    pub(crate) fn records(self, columns: &[Column], records: &[Box<RawValue>]) -> CommandResult<()> {
        match self.format {
            OutputFormat::Table => {
                let mut table = Table::new(columns);
                for record in records {
                    table.add(&parsed(record));
                }
                self.text(&table.show(self.styles))
            }
            OutputFormat::Json => {
                let texts: Vec<&str> = records.iter().map(|record| record.get()).collect();
                let all = RawValue::from_string(format!("[{}]", texts.join(",")));
                self.line(&all.map_or_else(|_| String::new(), |all| pretty(&all)))
            }
            OutputFormat::Jsonl => records.iter().try_for_each(|record| self.line(&one_line(record.get()))),
        }
    }

    /// Prints all members of one record.
    pub(crate) fn record(self, record: &RawValue) -> CommandResult<()> {
        match self.format {
            OutputFormat::Table => self.text(&members(record, self.styles)),
            OutputFormat::Json => self.line(&pretty(record)),
            OutputFormat::Jsonl => self.line(&one_line(record.get())),
        }
    }

    /// Prints the members of one record that `shows`; the JSON formats have all. Returns how many were left out.
    pub(crate) fn part(self, record: &RawValue, shows: impl Fn(&str) -> bool) -> CommandResult<usize> {
        if self.format != OutputFormat::Table {
            return self.record(record).map(|()| 0);
        }
        let all = Members::of(record)?;
        let left_out = all.iter().filter(|(name, _)| !shows(name)).count();
        self.text(&members_of(all.iter().filter(|(name, _)| shows(name)), self.styles))?;
        Ok(left_out)
    }

    /// Prints a sentence in the table format, nothing in the JSON formats.
    pub(crate) fn say(self, text: &str) -> CommandResult<()> {
        if self.format == OutputFormat::Table { self.line(text) } else { Ok(()) }
    }

    pub(crate) fn line(self, text: &str) -> CommandResult<()> {
        self.text(&format!("{text}\n"))
    }

    /// Writes text. A closed pipe ends the program with success, because the reader needs no more output.
    #[expect(clippy::unused_self, reason = "every way to standard output is a method of this")]
    pub(crate) fn text(self, text: &str) -> CommandResult<()> {
        let mut out = std::io::stdout().lock();
        end_if_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }
}

/// Ends the program with success if standard output is closed. Returns other errors of a write.
pub(crate) fn end_if_closed(written: std::io::Result<()>) -> CommandResult<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(|error| cannot("write to standard output", error)),
    }
}

/// The members of an object, one per line, with aligned names.
fn members(record: &RawValue, styles: Styles) -> String {
    let Ok(members) = Members::of(record) else { return format!("{}\n", pretty(record)) };
    members_of(members.iter(), styles)
}

fn members_of<'a>(members: impl Iterator<Item = (&'a str, &'a RawValue)>, styles: Styles) -> String {
    let mut out = String::new();
    let (first, rest): (Vec<_>, Vec<_>) = members.partition(|(name, _)| FIRST_MEMBERS.contains(name));
    let width = first.iter().chain(&rest).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in first.into_iter().chain(rest) {
        // Numbers and order stay unchanged; strings are shown without quotes.
        let shown = match parsed(value) {
            Value::String(text) if name == "reason" => harmless(&with_ages(&text)),
            value @ (Value::String(_) | Value::Null) => cell(&value),
            number => with_unit(name, &number).unwrap_or_else(|| one_line(value.get())),
        };
        let words = in_words(name, &parsed(value)).map(|words| styles.dim(&format!(" ({words})")));
        let shown = shown + &words.unwrap_or_default();
        let shown = if name == "status" { styles.state(&shown) } else { shown };
        out.push_str(&styles.dim(&format!("{name:width$}")));
        out.push_str("  ");
        out.push_str(&shown.replace('\n', &format!("\n{:width$}  ", "")));
        out.push('\n');
    }
    out
}

/// A value as a table cell: strings without quotes, other values as JSON.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => harmless(text.trim_end()),
        other => other.to_string(),
    }
}

/// Replaces control characters, escape sequences and direction marks in untrusted text with `�`, so that the text
/// cannot control the terminal.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => '\n',
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

pub(crate) fn parsed(record: &RawValue) -> Value {
    serde_json::from_str(record.get()).unwrap_or_default()
}

/// Joins indented JSON into one line. A JSON string contains no raw line break.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_shows_its_members_below_each_other() {
        let record = RawValue::from_string(
            r#"{"id":"a","status":"FAILED","error":"one\ntwo","retries":2,"none":null,"startMs":90000}"#
                .to_owned(),
        );
        let shown = members(&record.unwrap(), Styles::plain());
        assert_eq!(
            shown,
            "id       a\nstatus   FAILED\nerror    one\n         two\nretries  2\nnone     -\nstartMs  90000 (1 min 30 s)\n"
        );
    }

    #[test]
    fn a_part_of_a_record_has_the_shown_members_only() {
        let record = RawValue::from_string(r#"{"z":1,"id":"a","hidden":2}"#.to_owned()).unwrap();
        let members = Members::of(&record).unwrap();
        let shown = members_of(members.iter().filter(|(name, _)| *name != "hidden"), Styles::plain());
        assert_eq!(shown, "id  a\nz   1\n");
    }
}
