//! The checks of a database one by one, for `longshore doctor`.

use std::time::{Duration, Instant};

use longshore_store::StoreError;
use tokio_postgres::Client;

use super::{Facts, check_order, known, refuse_pooler, single, unfit};
use crate::connect::{Database, Role};
use crate::{exclusive, schema, store};

/// Time of a commit above which the check warns: each accepted job waits for one.
const SLOW_COMMIT: Duration = Duration::from_millis(20);
const COMMITS: usize = 5;
/// Age of the oldest transaction from which it is named.
const OLD_TRANSACTION_S: i64 = 300;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    /// A server works with it, and nothing needs to be done.
    Ok,
    /// A server works, with a consequence that the text names.
    Warn,
    /// A server does not start.
    Fail,
}

/// The result of one check of a database.
#[derive(Clone, Debug)]
pub struct DatabaseFinding {
    /// Whether a server can work with it.
    pub level: FindingLevel,
    /// What was found, and what to do.
    pub text: String,
}

impl DatabaseFinding {
    fn new(level: FindingLevel, text: impl Into<String>) -> Self {
        Self { level, text: text.into() }
    }

    fn ok(text: impl Into<String>) -> Self {
        Self::new(FindingLevel::Ok, text)
    }

    fn warn(text: impl Into<String>) -> Self {
        Self::new(FindingLevel::Warn, text)
    }

    fn fail(error: &StoreError) -> Self {
        Self::new(FindingLevel::Fail, error.to_string())
    }

    fn of(result: Result<(), StoreError>, good: &str) -> Self {
        result.map_or_else(|error| Self::fail(&error), |()| Self::ok(good))
    }
}

/// Checks a database as a start does, and what a start does not refuse. Changes nothing, and a server may use the database.
pub async fn examine(database: &Database) -> Vec<DatabaseFinding> {
    let began = Instant::now();
    let client = match database.connect(Role::Reader).await {
        Ok(client) => client,
        Err(error) => return vec![DatabaseFinding::fail(&error)],
    };
    let connected = began.elapsed();
    let other = match database.connect(Role::Reader).await {
        Ok(other) => other,
        Err(error) => return vec![DatabaseFinding::fail(&error)],
    };
    if let Err(error) = refuse_pooler(&client, &other).await {
        return vec![DatabaseFinding::fail(&error)];
    }
    let facts = match known(&client).await {
        Ok(facts) => facts,
        Err(error) => return vec![DatabaseFinding::fail(&error)],
    };
    let version = facts.version.split(" on ").next().unwrap_or_default();
    let address = database.address();
    let mut findings =
        vec![DatabaseFinding::ok(format!("{address}: {version}, connected in {} ms", connected.as_millis()))];
    findings.extend(of_facts(&facts));
    if !facts.is_standby {
        findings.push(DatabaseFinding::of(
            check_order(&client, &other).await,
            "commits become durable in their order",
        ));
        findings.push(commits(&other).await);
    }
    findings.push(connections(database, &client, &facts).await);
    findings.push(tables(database).await);
    findings.extend(old_transaction(&client).await);
    findings
}

/// What the settings of the database mean for jobs.
fn of_facts(facts: &Facts) -> Vec<DatabaseFinding> {
    let mut findings: Vec<DatabaseFinding> =
        unfit(facts).into_iter().map(|text| DatabaseFinding::new(FindingLevel::Fail, text)).collect();
    if findings.is_empty() {
        findings.push(DatabaseFinding::ok("fsync and full_page_writes are on"));
    }
    findings.push(match facts.standbys {
        _ if !facts.synchronous_standbys.is_empty() => {
            DatabaseFinding::ok(format!("waits for a standby: {}", facts.synchronous_standbys))
        }
        0 => DatabaseFinding::ok("no standby is connected; jobs are lost with the database's disk"),
        standbys => DatabaseFinding::warn(format!(
            "commits wait for none of {standbys} standbys: a failover can lose acknowledged jobs; set synchronous_standby_names"
        )),
    });
    findings
}

/// How long a commit takes.
async fn commits(client: &Client) -> DatabaseFinding {
    let mut times = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let began = Instant::now();
        let emit = "SELECT pg_logical_emit_message(true, 'longshore', '')::text";
        if let Err(error) = single::<String>(client, emit).await {
            return DatabaseFinding::fail(&error);
        }
        times.push(began.elapsed());
    }
    times.sort();
    let median = times[times.len() / 2];
    let text = format!("a commit takes {:.1} ms (median of {COMMITS})", median.as_secs_f64() * 1_000.0);
    if median > SLOW_COMMIT {
        DatabaseFinding::warn(format!("{text}; every accepted job waits that long"))
    } else {
        DatabaseFinding::ok(text)
    }
}

/// Whether a server gets its connections. One that runs has its own already.
async fn connections(database: &Database, client: &Client, facts: &Facts) -> DatabaseFinding {
    let needed = store::CONNECTIONS + 2;
    // The two of this check are free again when a server starts.
    let free = facts.free_connections + 2;
    match exclusive::holder(database, client).await {
        Err(error) => DatabaseFinding::fail(&error),
        Ok(Some(origin)) => {
            DatabaseFinding::ok(format!("a server{origin} uses it; {free} connections are free"))
        }
        Ok(None) if free < needed => DatabaseFinding::new(
            FindingLevel::Fail,
            format!(
                "{} connections are free, and a server needs {needed}; raise max_connections",
                free.max(0)
            ),
        ),
        Ok(None) => DatabaseFinding::ok(format!("{free} connections are free, and a server needs {needed}")),
    }
}

/// Which version the tables have.
async fn tables(database: &Database) -> DatabaseFinding {
    match schema::versions(database).await {
        Err(error) => DatabaseFinding::fail(&error),
        Ok(found) if found.present == found.known => {
            DatabaseFinding::ok(format!("the tables have version {}, the newest", found.known))
        }
        Ok(found) if found.present == 0 => DatabaseFinding::ok("no tables yet; the first start makes them"),
        Ok(found) => DatabaseFinding::warn(format!(
            "the tables have version {}; the next start, or `longshore migrate`, changes them to {}",
            found.present, found.known
        )),
    }
}

/// A transaction that keeps the database from removing old rows.
async fn old_transaction(client: &Client) -> Option<DatabaseFinding> {
    let oldest = "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - since)), 0)::int8 FROM ( \
        SELECT xact_start AS since FROM pg_stat_activity WHERE datname = current_database() \
            AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) AND pid <> pg_backend_pid() \
        UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()) held";
    match single::<i64>(client, oldest).await {
        Ok(seconds) if seconds >= OLD_TRANSACTION_S => Some(DatabaseFinding::warn(format!(
            "a transaction of another program is open for {} min: old rows stay, and commits become slower; end it",
            seconds / 60
        ))),
        Ok(_) => None,
        Err(error) => Some(DatabaseFinding::fail(&error)),
    }
}
