//! Reads JSON from an argument, a file (`@FILE`) or standard input (`-`), and numbers and times of options.

use std::io::Read as _;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use crate::exit::{CommandError, CommandResult, cannot};

/// Most characters of a line that an error message shows.
const SHOWN_CHARS_MAX: usize = 60;

/// Parses a whole number of an option.
pub(crate) fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if is_number { "too large" } else { "not a whole number, such as 100" };
        problem.to_owned()
    })
}

/// Parses a day, which begins at 0:00 UTC, or a time in RFC 3339.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp());
    let time = if text.contains(['T', 't']) { text.parse().ok() } else { day() };
    time.ok_or_else(|| "write a day like 2030-01-31, or a time like 2030-01-31T12:00:00Z".to_owned())
}

/// Returns the text of `argument` and its name for messages.
fn text(argument: &str) -> CommandResult<(String, String)> {
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| cannot("read standard input", error))?;
        return Ok((text, "standard input".to_owned()));
    }
    if let Some(path) = argument.strip_prefix('@') {
        let text = std::fs::read_to_string(path).map_err(|error| {
            cannot(format_args!("read {path}"), error).next("`@` names a file; JSON itself begins with `{`")
        })?;
        return Ok((text, path.to_owned()));
    }
    Ok((argument.to_owned(), "the argument".to_owned()))
}

/// Returns the JSON object of `argument`, with its numbers unchanged.
pub(crate) fn object(argument: &str) -> CommandResult<Box<RawValue>> {
    let (text, place) = text(argument)?;
    let parsed: Result<Box<RawValue>, _> = serde_json::from_str(text.trim_end());
    let json = parsed.map_err(|error| not_json(&text, &place, &error))?;
    if json.get().starts_with('{') {
        return Ok(json);
    }
    let start: String = json.get().chars().take(SHOWN_CHARS_MAX).collect();
    Err(CommandError::usage(format!("{place} must be a JSON object, not `{start}`"))
        .next("write it like '{\"prompt\": \"hi\"}'"))
}

/// An error with the place of the syntax error.
fn not_json(text: &str, place: &str, error: &serde_json::Error) -> CommandError {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let (line, column) = (error.line(), error.column());
    let message = format!("{place} is not JSON: {said} at line {line}, column {column}");
    let failure = CommandError::usage(message);
    let Some(shown) = text.lines().nth(line.saturating_sub(1)) else {
        return failure.next("give an object like '{\"prompt\": \"hi\"}', @FILE, or - for standard input");
    };
    // The column counts bytes from 1; 0 means the end of the previous line.
    let at = shown.floor_char_boundary(column.saturating_sub(1).min(shown.len()));
    let before = shown[..at].chars().count();
    let skipped = before.saturating_sub(SHOWN_CHARS_MAX / 2);
    let window: String = shown.chars().skip(skipped).take(SHOWN_CHARS_MAX).collect();
    failure
        .with_lines([window, format!("{:1$}^", "", before - skipped)])
        .next("give an object like '{\"prompt\": \"hi\"}', @FILE, or - for standard input")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_refused_in_words() {
        assert_eq!(whole::<u32>("100"), Ok(100));
        for text in ["x", "", "-1", "1.5"] {
            assert_eq!(whole::<u32>(text), Err("not a whole number, such as 100".to_owned()), "{text}");
        }
        assert_eq!(whole::<u32>("99999999999"), Err("too large".to_owned()));
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        for (text, expected) in
            [("2030-01-31", "2030-01-31T00:00:00Z"), ("2030-01-31T12:00:00+01:00", "2030-01-31T11:00:00Z")]
        {
            assert_eq!(moment(text).unwrap().to_string(), expected);
        }
        for text in ["", "yesterday", "2030-01", "2030-01-31T12:00:00"] {
            assert!(moment(text).unwrap_err().contains("2030-01-31"), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_shown_with_its_place() {
        let failure = object("{\"a\": 1,\n \"b\": oops}").unwrap_err();
        assert_eq!(failure.message, "the argument is not JSON: expected value at line 2, column 7");
        assert_eq!(failure.lines, [" \"b\": oops}", "      ^"]);
        let failure = object(&format!("{{\"a\": \"{}\" x", "é".repeat(100))).unwrap_err();
        let caret = failure.lines[1].chars().count() - 1;
        assert_eq!(failure.lines[0].chars().nth(caret), Some('x'), "{:?}", failure.lines);
    }

    #[test]
    fn numbers_keep_their_digits_and_other_values_are_refused() {
        assert_eq!(object("{\"a\": 1e400}\n").unwrap().get(), "{\"a\": 1e400}");
        assert!(object("[1]").unwrap_err().message.contains("must be a JSON object"));
        assert!(object("").unwrap_err().message.contains("line 1"));
        assert!(object("@/no/such/file").unwrap_err().message.contains("/no/such/file"));
    }
}
