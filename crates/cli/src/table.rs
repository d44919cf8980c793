//! Text tables with aligned columns.

use serde_json::Value;

use crate::output::{Styles, cell};

/// One column: its title and the member of a record that it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Path of the member, with dots for nested ones: `workers.idle`.
    pub(crate) member: &'static str,
    show: fn(&Value) -> String,
}

impl Column {
    pub(crate) const fn new(title: &'static str, member: &'static str) -> Self {
        Self { title, member, show: cell }
    }

    /// Sets the function that formats values other than strings and numbers.
    pub(crate) const fn shown_as(self, show: fn(&Value) -> String) -> Self {
        Self { show, ..self }
    }
}

/// Collects rows; column widths are known when all rows are added.
pub(crate) struct Table<'a> {
    columns: &'a [Column],
    rows: Vec<Vec<String>>,
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: &'a [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, record: &Value) {
        let member =
            |column: &Column| column.member.split('.').try_fold(record, |value, name| value.get(name));
        self.rows.push(self.columns.iter().map(|column| shown(member(column), column.show)).collect());
    }

    /// Returns the table. Numbers are right-aligned. Cells are never cut, so that they can be copied.
    pub(crate) fn show(&self, styles: Styles) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.iter().map(|row| row[at].chars().count());
                cells.chain([self.columns[at].title.len()]).max().unwrap_or(0)
            })
            .collect();
        let numeric: Vec<bool> = (0..self.columns.len())
            .map(|at| {
                let mut cells =
                    self.rows.iter().map(|row| row[at].as_str()).filter(|text| *text != "-").peekable();
                cells.peek().is_some() && cells.all(|text| text.parse::<f64>().is_ok())
            })
            .collect();
        let line = |cells: Vec<&str>, paint: &dyn Fn(usize, &str) -> String| {
            let mut line = String::new();
            for (at, text) in cells.into_iter().enumerate() {
                let width = widths[at];
                let padded = if numeric[at] { format!("{text:>width$}") } else { format!("{text:width$}") };
                line.push_str(if at == 0 { "" } else { "  " });
                line.push_str(&paint(at, &padded));
            }
            format!("{}\n", line.trim_end())
        };
        let titles = self.columns.iter().map(|column| column.title).collect();
        let mut out = line(titles, &|_, text| styles.bold(text));
        for row in &self.rows {
            out.push_str(&line(row.iter().map(String::as_str).collect(), &|at, text| {
                if self.columns[at].title == "STATUS" { styles.state(text) } else { text.to_owned() }
            }));
        }
        out
    }
}

fn shown(value: Option<&Value>, show: fn(&Value) -> String) -> String {
    let text = value.map_or_else(|| "-".to_owned(), show);
    // A cell shows one line.
    text.lines().next().unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_on_the_right_and_nothing_is_cut() {
        let columns =
            [Column::new("ID", "id"), Column::new("DEPTH", "jobs.inQueue"), Column::new("SLUG", "slug")];
        let mut table = Table::new(&columns);
        table.add(&json!({"id": "abc", "jobs": {"inQueue": 12}, "slug": "x"}));
        table.add(&json!({"id": "a long id", "jobs": {"inQueue": 3}}));
        let shown = table.show(Styles::plain());
        assert_eq!(shown, "ID         DEPTH  SLUG\nabc           12  x\na long id      3  -\n");
    }

    #[test]
    fn a_name_moves_no_cursor() {
        let columns = [Column::new("NAME", "name")];
        let mut table = Table::new(&columns);
        table.add(&json!({"name": "a\u{1b}[2J\tb\u{7}\u{202e}\nanother line"}));
        assert_eq!(table.show(Styles::plain()), "NAME\na\u{fffd}[2J b\u{fffd}\u{fffd}\n");
    }
}
