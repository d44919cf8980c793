//! The audit log as lines in the database.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longshore_http::{AuditLine, AuditRuns, AuditStorage};
use longshore_postgres::{LogTable, NumberedLine};
use longshore_store::StoreError;
use tokio::runtime::Handle;

use super::AUDIT;

/// Lines that are read together.
const RUN_LINES: i64 = 1_000;
/// Which part of its limit the log may grow before its oldest lines are removed.
const TRIM_SHARE: u64 = 8;

/// The audit log as lines in the database. Its calls block, and must not come from a task.
pub(super) struct AuditLines {
    table: Arc<LogTable>,
    runtime: Handle,
    /// The length that the log is cut to, in bytes.
    bytes_max: u64,
    /// Bytes that were appended since the log was last cut. The first append after a start cuts it.
    grown: AtomicU64,
}

impl AuditLines {
    pub(super) fn new(table: Arc<LogTable>, runtime: Handle, bytes_max: u64) -> Self {
        Self { table, runtime, bytes_max, grown: AtomicU64::new(bytes_max) }
    }

    /// Counts bytes that were written, and removes the oldest lines from time to time.
    fn trim_after(&self, bytes: usize) -> io::Result<()> {
        let grown = self.grown.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if grown > self.bytes_max / TRIM_SHARE {
            self.grown.store(0, Ordering::Relaxed);
            self.wait(self.table.trim(AUDIT, self.bytes_max))?;
        }
        Ok(())
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> io::Result<T> {
        self.runtime.block_on(call).map_err(io::Error::other)
    }

    /// The lines before `before`, the newest of them only, oldest first. Moves `before`.
    fn run(&self, before: &mut i64) -> io::Result<Vec<u8>> {
        let lines = self.wait(self.table.newest(AUDIT, *before, RUN_LINES))?;
        *before = lines.last().map_or(*before, |oldest| oldest.no);
        let mut text = Vec::new();
        for NumberedLine { line, .. } in lines.iter().rev() {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        Ok(text)
    }
}

impl AuditStorage for AuditLines {
    fn last_id(&self) -> io::Result<u64> {
        let last = self.wait(self.table.last_no(AUDIT))?;
        Ok(last.map_or(0, i64::unsigned_abs))
    }

    fn append(&self, lines: &[AuditLine]) -> io::Result<()> {
        let bytes: usize = lines.iter().map(|line| line.json.len()).sum();
        let numbered: Vec<NumberedLine> =
            lines.iter().map(|line| NumberedLine { no: number(line.id), line: line.json.clone() }).collect();
        if !self.wait(self.table.append_numbered(AUDIT, &numbered))? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.trim_after(bytes)
    }

    fn name_in_store(&self) -> Option<&'static str> {
        Some(AUDIT)
    }

    fn replace(&self, line: &AuditLine) -> io::Result<()> {
        let numbered = NumberedLine { no: number(line.id), line: line.json.clone() };
        self.wait(self.table.replace(AUDIT, &numbered))?;
        self.trim_after(numbered.line.len())
    }

    fn runs(&self, before: Option<u64>) -> AuditRuns<'_> {
        let mut before = before.map_or(i64::MAX, number);
        Box::new(std::iter::from_fn(move || {
            let run = self.run(&mut before);
            Some(run).filter(|run| !run.as_ref().is_ok_and(Vec::is_empty))
        }))
    }
}

/// The number of a line. Ids are times in ms times 1 024, which fit.
fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}
