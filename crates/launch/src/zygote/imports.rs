//! The note in which a worker says what it has imported.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

/// The largest note that is read, in bytes: a worker with 10 000 modules writes 2 MB.
const NOTE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a worker ran after its first job, and what it had imported.
#[derive(Clone, Deserialize)]
pub(crate) struct Imports {
    /// The process that wrote the note. One that is not the worker's own is a program that the worker started.
    pub(crate) pid: i32,
    pub(super) executable: PathBuf,
    /// The command line: the interpreter, its options, the program and its arguments.
    pub(super) command: Vec<String>,
    /// The program and its arguments, as Python shows them to the program.
    pub(super) argv: Vec<String>,
    /// The names of the modules, in the order of their import.
    pub(super) modules: Vec<String>,
    /// The files of the modules that are no part of Python.
    files: Vec<PathBuf>,
}

/// The versions of files: what changes if one of them is written.
#[derive(PartialEq, Eq)]
pub(super) struct FileVersions(Vec<Option<(SystemTime, u64)>>);

impl Imports {
    /// Reads the note at `path`; `None` if it is not there yet, or is no note.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let length = fs::metadata(path).ok()?.len();
        let note: Self =
            serde_json::from_slice(&fs::read(path).ok().filter(|_| length <= NOTE_BYTES_MAX)?).ok()?;
        note.program_at().is_some().then_some(note)
    }

    /// The options of the interpreter that the imports need.
    pub(super) fn options(&self) -> &[String] {
        let program = self.program_at().unwrap_or(1);
        let before = &self.command[1..program];
        before.strip_suffix(&["-m".to_owned()]).or(before.strip_suffix(&["-c".to_owned()])).unwrap_or(before)
    }

    /// The place of the program in the command line: a script, or what follows `-m` or `-c`. `None` if the command line does
    /// not end with the program and the arguments that Python shows.
    fn program_at(&self) -> Option<usize> {
        let program = self.command.len().checked_sub(self.argv.len()).filter(|at| *at >= 1)?;
        let (own, shown) = (self.command.get(program)?, self.argv.first()?);
        let is_script = !matches!(self.command[program - 1].as_str(), "-m" | "-c");
        let fits = self.command[program + 1..] == self.argv[1..] && (!is_script || own == shown);
        (fits && !own.starts_with('-')).then_some(program)
    }

    /// The versions of the modules' files now.
    pub(super) fn file_versions(&self) -> FileVersions {
        let version = |path: &PathBuf| {
            let facts = fs::metadata(path).ok()?;
            Some((facts.modified().ok()?, facts.len()))
        };
        FileVersions(self.files.iter().map(version).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(command: &[&str], argv: &[&str]) -> Imports {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let (command, argv) = (words(command), words(argv));
        Imports { pid: 1, executable: "/p".into(), command, argv, modules: vec![], files: vec![] }
    }

    #[test]
    fn options_are_told_from_the_program() {
        for (command, argv, options) in [
            (&["python", "-u", "handler.py", "a"][..], &["handler.py", "a"][..], &["-u"][..]),
            (&["python", "handler.py"], &["handler.py"], &[]),
            (&["python", "-u", "-m", "handler", "-x"], &["/w/handler.py", "-x"], &["-u"]),
            (&["python", "-c", "print()"], &["-c"], &[]),
        ] {
            let note = note(command, argv);
            assert!(note.program_at().is_some(), "{command:?}");
            assert_eq!(note.options(), options, "{command:?}");
        }
    }

    #[test]
    fn a_command_line_that_the_program_has_changed_is_no_note() {
        for (command, argv) in [
            (&["python", "handler.py"][..], &["other.py"][..]),
            (&["python", "handler.py", "a"], &["handler.py"]),
            (&["python", "-mhandler"], &["/w/handler.py"]),
            (&["python"], &["handler.py"]),
            (&["python", "handler.py"], &[]),
            (&[], &[]),
        ] {
            assert!(note(command, argv).program_at().is_none(), "{command:?} {argv:?}");
        }
    }
}
