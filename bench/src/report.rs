//! The report of a run: tables on standard output, and `<date>.json`, `.md` and `.svg`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::goals::{Goal, GoalResult, judge, missing};
use crate::machine::Machine;
use crate::plot;
use crate::readings::{Readings, Spread, spreads};
use crate::table::{Table, number};

/// The report of one run.
#[derive(Serialize)]
pub struct Report {
    /// The command line that repeats the run.
    pub command: String,
    /// Start time of the run in UTC, RFC 3339.
    pub began: String,
    /// The computer that ran the bench.
    pub machine: Machine,
    /// All readings of each repetition.
    pub repetitions: Vec<Readings>,
    /// The goals that the readings are judged by.
    #[serde(skip)]
    pub targets: &'static [Goal],
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    targets: Vec<GoalResult>,
    /// Goals without readings in this run.
    missing: Vec<&'static str>,
    summary: BTreeMap<&'a str, Spread>,
}

impl Report {
    /// Returns the tables for a terminal.
    pub fn text(&self) -> String {
        let mut text = readings_table(&self.repetitions).text();
        let targets = targets_table(&judge(self.targets, &self.repetitions));
        if !targets.is_empty() {
            text.push('\n');
            text.push_str(&targets.text());
        }
        text
    }

    /// Returns the tables in Markdown.
    fn markdown(&self) -> String {
        let Machine { cpu, cpus, kernel, pinning } = &self.machine;
        let targets = targets_table(&judge(self.targets, &self.repetitions)).markdown();
        format!(
            "`{}`\n\n{}; {cpu}, {cpus} processors, Linux {kernel}; {pinning}; {} repetitions.\n\n{targets}\n{}",
            self.command,
            self.began,
            self.repetitions.len(),
            readings_table(&self.repetitions).markdown()
        )
    }

    /// Writes `<date>.json`, `.md` and `.svg` to the directory and returns the JSON file's path.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, String> {
        let path = folder.join(format!("{}.json", self.began.replace(':', "")));
        let whole = Whole {
            report: self,
            targets: judge(self.targets, &self.repetitions),
            missing: missing(self.targets, &self.repetitions),
            summary: spreads(&self.repetitions),
        };
        let json =
            serde_json::to_string_pretty(&whole).map_err(|error| format!("cannot write JSON: {error}"))?;
        let (cpu, times) = (&self.machine.cpu, self.repetitions.len());
        let picture = plot::svg(&whole.targets, &format!("{}, {cpu}, {times} repetitions", self.began));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, json + "\n"))
            .and_then(|()| fs::write(path.with_extension("svg"), picture))
            .and_then(|()| fs::write(path.with_extension("md"), self.markdown()))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }
}

fn readings_table(repetitions: &[Readings]) -> Table {
    let mut table = Table::new(&["reading", "min", "median", "max"]);
    for (name, spread) in spreads(repetitions) {
        let Spread { min, median, max, .. } = spread;
        table.row([vec![name.to_owned()], [min, median, max].map(number).to_vec()].concat());
    }
    table
}

fn targets_table(verdicts: &[GoalResult]) -> Table {
    let mut table = Table::new(&["target", "bound", "min", "median", "max", "", "of"]);
    for GoalResult { what, unit, bound, figure, met } in verdicts {
        let Spread { min, median, max, .. } = *figure;
        let figures = [min, median, max].map(number).to_vec();
        let mark = if *met { "pass" } else { "MISS" };
        let ends = vec![mark.to_owned(), (*unit).to_owned()];
        table.row([vec![(*what).to_owned(), bound.shown()], figures, ends].concat());
    }
    table
}
