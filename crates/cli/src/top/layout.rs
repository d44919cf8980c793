//! The table of `longshore top` in a terminal: fits its width, and has the reasons beside or below the endpoints.

use std::time::Duration;

use super::reading::EndpointRow;
use super::trend::bars;
use crate::output::{Styles, harmless};
use crate::screen::span;

/// Space between two columns.
const GAP: usize = 2;
/// Names are cut to this number of characters before a column is left out, or before reasons stand below.
const NAME_MIN: usize = 12;
const NAME_BESIDE_MIN: usize = 16;
const NAME_MAX: usize = 32;
/// A reason stands beside its endpoint if it has this number of characters there, else below it.
const REASON_MIN: usize = 36;
const TREND_WIDTH: usize = 8;

/// What a cell says, for its colour.
#[derive(Clone, Copy)]
enum Tone {
    Plain,
    /// Red unless the value is 0.
    Bad,
    /// Yellow unless the value is 0.
    Waiting,
    /// Cyan unless the value is 0.
    Active,
}

/// One column with figures.
struct TopColumn {
    title: &'static str,
    /// Columns with a smaller number are left out first.
    priority: u8,
    tone: Tone,
    cell: fn(&EndpointRow) -> String,
}

const fn column(
    title: &'static str,
    priority: u8,
    tone: Tone,
    cell: fn(&EndpointRow) -> String,
) -> TopColumn {
    TopColumn { title, priority, tone, cell }
}

const COLUMNS: [TopColumn; 11] = [
    column("QUEUED", 11, Tone::Waiting, |row| row.queued.to_string()),
    column("RUNNING", 10, Tone::Active, |row| row.running.to_string()),
    column("DONE/S", 9, Tone::Plain, |row| format!("{:.1}", row.done_per_s)),
    column("FAIL/S", 5, Tone::Bad, |row| format!("{:.1}", row.failed_per_s)),
    column("DELAY", 2, Tone::Plain, |row| {
        row.delay_ms.map_or_else(|| "-".to_owned(), |ms| span(Duration::from_millis(ms)))
    }),
    column("BUSY", 8, Tone::Active, |row| row.workers("running").to_string()),
    column("IDLE", 4, Tone::Plain, |row| row.workers("idle").to_string()),
    column("START", 1, Tone::Waiting, |row| row.workers("initializing").to_string()),
    column("ILL", 3, Tone::Bad, |row| row.workers("unhealthy").to_string()),
    column("GPUS", 7, Tone::Plain, |row| row.gpus.to_string()),
    column("TREND", 6, Tone::Plain, |row| bars(&row.trend, TREND_WIDTH)),
];

/// The columns that fit, and where the reasons stand.
struct Layout {
    /// Places of the columns in [`COLUMNS`], with their widths.
    columns: Vec<(usize, usize)>,
    name_width: usize,
    /// The width of the column with the reasons; `None` if they stand below the endpoints.
    reason_width: Option<usize>,
}

/// The lines of the table, none wider than `width` columns of the terminal.
pub(super) fn lines(rows: &[EndpointRow], width: usize, styles: Styles) -> Vec<String> {
    let layout = Layout::of(rows, width);
    let mut lines = vec![layout.heading(styles)];
    for row in rows {
        lines.push(layout.row(row, styles));
        if let (Some(reason), None) = (reason(row, width.saturating_sub(GAP), styles), layout.reason_width) {
            lines.push(format!("{:GAP$}{reason}", ""));
        }
    }
    lines
}

impl Layout {
    fn of(rows: &[EndpointRow], width: usize) -> Self {
        let names = rows.iter().map(|row| columns_of(&harmless(&row.name))).max().unwrap_or(0);
        let names = names.clamp("ENDPOINT".len(), NAME_MAX);
        let mut columns: Vec<(usize, usize)> =
            COLUMNS.iter().enumerate().map(|(at, column)| (at, column_width(column, rows))).collect();
        // `--once` has no trend.
        columns
            .retain(|(at, _)| COLUMNS[*at].title != "TREND" || rows.iter().any(|row| !row.trend.is_empty()));
        let total = |columns: &[(usize, usize)], name: usize| {
            name + columns.iter().map(|(_, width)| GAP + width).sum::<usize>()
        };
        let has_reasons = rows.iter().any(|row| row.reason.is_some());
        let reserved = if has_reasons { GAP + REASON_MIN } else { 0 };
        // Columns without a value make place for the reasons.
        let mut beside = columns.clone();
        let fits =
            |columns: &[(usize, usize)]| total(columns, names.min(NAME_BESIDE_MIN)) + reserved <= width;
        while !fits(&beside)
            && let Some(place) = least(&beside, |column| is_empty(column, rows))
        {
            beside.remove(place);
        }
        if fits(&beside) {
            let name_width = names.min(width - total(&beside, 0) - reserved);
            let reason_width = has_reasons.then(|| width - total(&beside, name_width) - GAP);
            return Self { columns: beside, name_width, reason_width };
        }
        let name_min = names.min(NAME_MIN);
        while total(&columns, name_min) > width
            && let Some(place) =
                least(&columns, |column| is_empty(column, rows)).or(least(&columns, |_| true))
        {
            columns.remove(place);
        }
        let name_width = names.min(width.saturating_sub(total(&columns, 0)));
        Self { columns, name_width, reason_width: None }
    }

    fn heading(&self, styles: Styles) -> String {
        let mut line = fitted("ENDPOINT", self.name_width);
        for (at, width) in &self.columns {
            push_cell(&mut line, &aligned(&COLUMNS[*at], COLUMNS[*at].title, *width));
        }
        if self.reason_width.is_some() {
            push_cell(&mut line, "WHY JOBS WAIT");
        }
        styles.bold(line.trim_end())
    }

    fn row(&self, row: &EndpointRow, styles: Styles) -> String {
        let mut line = fitted(&harmless(&row.name), self.name_width);
        for (at, width) in &self.columns {
            let column = &COLUMNS[*at];
            let cell = (column.cell)(row);
            let is_zero = cell.parse() == Ok(0.0);
            let text = aligned(column, &cell, *width);
            let text = match column.tone {
                Tone::Bad if !is_zero => styles.red(&text),
                Tone::Waiting if !is_zero => styles.yellow(&text),
                Tone::Active if !is_zero => styles.cyan(&text),
                _ => text,
            };
            push_cell(&mut line, &text);
        }
        if let Some(reason) = self.reason_width.and_then(|width| reason(row, width, styles)) {
            push_cell(&mut line, &reason);
        }
        line
    }
}

/// Appends a cell after the gap between two columns.
fn push_cell(line: &mut String, text: &str) {
    line.extend([" "; GAP]);
    line.push_str(text);
}

/// The place of the column with the lowest priority among those that `may_go`.
fn least(columns: &[(usize, usize)], may_go: impl Fn(&TopColumn) -> bool) -> Option<usize> {
    let places = (0..columns.len()).filter(|place| may_go(&COLUMNS[columns[*place].0]));
    places.min_by_key(|place| COLUMNS[columns[*place].0].priority)
}

/// Whether every endpoint has 0 or nothing in the column.
fn is_empty(column: &TopColumn, rows: &[EndpointRow]) -> bool {
    // The numbers that everyone looks for stay.
    let may_go = matches!(column.title, "FAIL/S" | "DELAY" | "START" | "ILL" | "GPUS");
    may_go && rows.iter().map(column.cell).all(|cell| cell == "-" || cell.parse() == Ok(0.0))
}

fn column_width(column: &TopColumn, rows: &[EndpointRow]) -> usize {
    if column.title == "TREND" {
        return TREND_WIDTH;
    }
    let cells = rows.iter().map(|row| (column.cell)(row).chars().count());
    cells.chain([column.title.len()]).max().unwrap_or(0)
}

/// A cell in its column: text on the left, numbers on the right.
fn aligned(column: &TopColumn, text: &str, width: usize) -> String {
    if column.title == "TREND" { format!("{text:width$}") } else { format!("{text:>width$}") }
}

/// The reason in at most `width` columns: red if no job starts before it is removed.
fn reason(row: &EndpointRow, width: usize, styles: Styles) -> Option<String> {
    let reason = row.reason.as_ref()?;
    let text = harmless(&format!("{}: {}", reason.title, reason.text)).replace('\n', " ");
    let text = cut(&text, width);
    Some(if reason.is_blocking { styles.red(&text) } else { styles.yellow(&text) })
}

/// The text in exactly `width` columns of the terminal, cut or filled up.
fn fitted(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let missing = width - columns_of(&text);
    format!("{text}{:missing$}", "")
}

/// The beginning of a text in at most `width` columns of the terminal, with `…` where it is cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    let mut taken = 1;
    let fits = |c: &char| {
        taken += columns_of_char(*c);
        taken <= width
    };
    let start: String = text.chars().take_while(fits).collect();
    if width == 0 { start } else { format!("{}…", start.trim_end()) }
}

fn columns_of(text: &str) -> usize {
    text.chars().map(columns_of_char).sum()
}

/// The columns of a terminal that a character takes, at most: 2 in scripts with wide characters and for emoji.
fn columns_of_char(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2600}'..='\u{27bf}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f000}'..='\u{3ffff}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
