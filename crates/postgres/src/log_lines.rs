//! Logs in a table: numbered lines under the name of their log.

use longshore_store::StoreError;
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::connect::{Database, Role};
use crate::error::{breaks_connection, store_error};

/// Statements that a broken connection does not end: it is opened again, once.
const TRIES: usize = 2;

const APPEND: &str = "INSERT INTO log_line (log, line) SELECT u.log, u.line \
    FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY u(log, line, at) ORDER BY u.at";
const APPEND_NUMBERED: &str = "INSERT INTO log_line (log, no, line) SELECT $1, u.no, u.line \
    FROM unnest($2::int8[], $3::bytea[]) u(no, line) \
    WHERE NOT EXISTS (SELECT FROM log_line WHERE log = $1 AND no >= $4)";
const REPLACE: &str = "UPDATE log_line SET line = $3 WHERE log = $1 AND no = $2";
const LINES: &str = "SELECT line FROM log_line WHERE log = $1 ORDER BY no";
const NEWEST: &str = "SELECT no, line FROM log_line WHERE log = $1 AND no < $2 ORDER BY no DESC LIMIT $3";
const NAMES: &str = "SELECT DISTINCT log FROM log_line ORDER BY 1";
const LAST: &str = "SELECT max(no) FROM log_line WHERE log = $1";
const REMOVE_BEFORE: &str = "DELETE FROM log_line WHERE log = $1 AND no < $2";
const REMOVE: &str = "DELETE FROM log_line WHERE log = $1";
/// Removes the lines before the newest ones that have `$2` bytes together.
const TRIM: &str = "DELETE FROM log_line WHERE log = $1 AND no <= (SELECT max(no) FROM \
    (SELECT no, sum(octet_length(line)) OVER (ORDER BY no DESC) AS bytes FROM log_line WHERE log = $1) newest \
    WHERE bytes > $2)";

/// A line with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    /// The place of the line in its log; larger numbers are later lines.
    pub no: i64,
    /// The bytes of the line, without a newline.
    pub line: Vec<u8>,
}

/// The logs of a database, over one connection. It is opened when it is needed.
///
/// The result of an append whose connection breaks is not known, so that a line may be there twice.
#[derive(Debug)]
pub struct LogTable {
    database: Database,
    client: Mutex<Option<Client>>,
}

impl LogTable {
    /// The logs of a database with tables of this program's version.
    pub fn of(database: Database) -> Self {
        Self { database, client: Mutex::new(None) }
    }

    /// Appends lines to their logs, in order. Each log numbers them.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn append(&self, lines: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        let (logs, lines): (Vec<&str>, Vec<&[u8]>) =
            lines.iter().map(|(log, line)| (log.as_str(), line.as_slice())).unzip();
        self.query(APPEND, &[&logs, &lines]).await.map(drop)
    }

    /// Appends lines with growing numbers to a log. Returns false, and appends nothing, if the log has a line with the first
    /// number or a later one.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn append_numbered(&self, log: &str, lines: &[NumberedLine]) -> Result<bool, StoreError> {
        let Some(first) = lines.first() else { return Ok(true) };
        let (numbers, texts): (Vec<i64>, Vec<&[u8]>) =
            lines.iter().map(|line| (line.no, line.line.as_slice())).unzip();
        let returning = format!("{APPEND_NUMBERED} RETURNING no");
        let appended = self.query(&returning, &[&log, &numbers, &texts, &first.no]).await?;
        Ok(!appended.is_empty())
    }

    /// Replaces the line of a log with the same number. Without such a line nothing happens.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn replace(&self, log: &str, line: &NumberedLine) -> Result<(), StoreError> {
        self.query(REPLACE, &[&log, &line.no, &line.line]).await.map(drop)
    }

    /// The lines of a log, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn lines(&self, log: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let rows = self.query(LINES, &[&log]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(|error| store_error(&error))).collect()
    }

    /// At most `count` lines of a log with smaller numbers than `before`, newest first.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn newest(&self, log: &str, before: i64, count: i64) -> Result<Vec<NumberedLine>, StoreError> {
        let rows = self.query(NEWEST, &[&log, &before, &count]).await?;
        let line = |row: &Row| Ok(NumberedLine { no: row.try_get(0)?, line: row.try_get(1)? });
        rows.iter().map(|row| line(row).map_err(|error: tokio_postgres::Error| store_error(&error))).collect()
    }

    /// The names of the logs that have lines.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn names(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.query(NAMES, &[]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(|error| store_error(&error))).collect()
    }

    /// The largest number of a log; `None` if it is empty.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn last_no(&self, log: &str) -> Result<Option<i64>, StoreError> {
        let rows = self.query(LAST, &[&log]).await?;
        rows.first().map_or(Ok(None), |row| row.try_get(0)).map_err(|error| store_error(&error))
    }

    /// Removes a log.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn remove(&self, log: &str) -> Result<(), StoreError> {
        self.query(REMOVE, &[&log]).await.map(drop)
    }

    /// Removes the lines of a log with smaller numbers than `before`.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn remove_before(&self, log: &str, before: i64) -> Result<(), StoreError> {
        self.query(REMOVE_BEFORE, &[&log, &before]).await.map(drop)
    }

    /// Removes the oldest lines of a log, so that the others have at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn trim(&self, log: &str, bytes_max: u64) -> Result<(), StoreError> {
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        self.query(TRIM, &[&log, &bytes_max]).await.map(drop)
    }

    async fn query(&self, sql: &str, arguments: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let mut client = self.client.lock().await;
        let mut tries = TRIES;
        loop {
            let open = match &mut *client {
                Some(open) => open,
                none => none.insert(self.database.connect(Role::Log).await?),
            };
            tries -= 1;
            match open.query(sql, arguments).await {
                Ok(rows) => return Ok(rows),
                Err(error) => {
                    let is_broken = open.is_closed() || breaks_connection(&error);
                    if is_broken {
                        *client = None;
                    }
                    if !is_broken || tries == 0 {
                        return Err(store_error(&error));
                    }
                }
            }
        }
    }
}
