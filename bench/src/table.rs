//! Text tables for a terminal and for Markdown.

use std::fmt::Write as _;

/// A table. The first column is left-aligned, the others are right-aligned.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|text| (*text).to_owned()).collect()] }
    }

    /// Adds a row with one cell per heading.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Returns the table in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            // Writing to memory cannot fail.
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if at == 0 {
                let rule = ["---:"].repeat(row.len().saturating_sub(1)).join("|");
                let _ = writeln!(text, "|---|{rule}|");
            }
        }
        text
    }

    /// Returns the table as aligned text.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or_default()).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = if at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
                line.push_str(&cell);
            }
            // Writing to memory cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// Formats a number: two decimals below 10, one below 100, none above.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => return grouped(value),
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Separates groups of three digits with a space.
fn grouped(value: f64) -> String {
    let plain = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in plain.chars().enumerate() {
        if at > 0 && digit != '-' && (plain.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["what", "median"]);
        assert!(table.is_empty());
        table.row(vec!["submit".to_owned(), "1".to_owned()]);
        table.row(vec!["ü".to_owned(), "12345678".to_owned()]);
        assert!(table.markdown().starts_with("| what | median |\n|---|---:|\n| submit | 1 |\n"));
        assert_eq!(table.text(), "what      median\nsubmit         1\nü       12345678\n");
    }

    #[test]
    fn numbers_are_short() {
        for (value, shown) in [
            (0.456, "0.46"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1 234"),
            (-1_234_567.0, "-1 234 567"),
        ] {
            assert_eq!(number(value), shown);
        }
    }
}
