//! Whether a database can keep the promises of a store, checked at the start.

pub(crate) mod examine;

use longshore_store::StoreError;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::error::store_error;

/// The oldest version, as the database writes it.
const VERSION_MIN: i32 = 140_000;
/// Databases that speak PostgreSQL's protocol, but have no log of one sequence.
const LOOK_ALIKES: [&str; 6] = ["CockroachDB", "YB-", "Yugabyte", "Redshift", "Greenplum", "Materialize"];

/// The session that answers.
const PID: &str = "SELECT pg_backend_pid()";

/// The facts of a database that are checked.
#[derive(Clone, Debug)]
struct Facts {
    version: String,
    version_number: i32,
    is_standby: bool,
    fsync: String,
    full_page_writes: String,
    /// Connections that this user can still open.
    free_connections: i64,
    /// The standbys that are connected. Only privileged users see which of them are synchronous.
    standbys: i64,
    /// The standbys that commits wait for; empty for none.
    synchronous_standbys: String,
}

const FACTS: &str = "SELECT version(), current_setting('server_version_num')::int4, pg_is_in_recovery(), \
    current_setting('fsync'), current_setting('full_page_writes'), \
    least( \
        current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8 \
            - (SELECT sum(numbackends) FROM pg_stat_database), \
        (SELECT datconnlimit - numbackends FROM pg_database JOIN pg_stat_database USING (datname) \
            WHERE datname = current_database() AND datconnlimit >= 0), \
        (SELECT rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user) FROM pg_roles \
            WHERE rolname = current_user AND rolconnlimit >= 0))::int8, \
    (SELECT count(*) FROM pg_stat_replication), \
    current_setting('synchronous_standby_names')";

/// Checks the database. `other` is a second connection, and `connections` is how many the store will open beside these two.
///
/// # Errors
/// [`StoreError::Unusable`] with what is wrong and what to do.
pub(crate) async fn check(client: &Client, other: &Client, connections: i64) -> Result<(), StoreError> {
    refuse_pooler(client, other).await?;
    let facts = known(client).await?;
    verdict(&facts, connections)?;
    check_order(client, other).await?;
    if facts.is_failover_lossy() {
        tracing::warn!(
            standbys = facts.standbys,
            "every standby of the database is asynchronous: a failover can lose acknowledged jobs; set \
             synchronous_standby_names"
        );
    }
    Ok(())
}

impl Facts {
    /// Whether a failover can lose acknowledged jobs.
    fn is_failover_lossy(&self) -> bool {
        self.standbys > 0 && self.synchronous_standbys.is_empty()
    }
}

/// Reads the facts, of nothing but PostgreSQL.
async fn known(client: &Client) -> Result<Facts, StoreError> {
    let version = single::<String>(client, "SELECT version()").await?;
    refuse_look_alike(&version)?;
    facts(client).await
}

/// Refuses a pooler that gives the transactions of one connection to several sessions. The queries are simple ones, which every
/// pooler passes on.
async fn refuse_pooler(client: &Client, other: &Client) -> Result<(), StoreError> {
    let refusal = || {
        Err(StoreError::Unusable(
            "a pooler in transaction mode stands before the database; connect to the database itself, or use a pool in \
             session mode"
                .to_owned(),
        ))
    };
    let first = session_of(client, PID).await?;
    // A pooler gives the session that was used last to the next one that asks, or the sessions in turn.
    let of_other = session_of(other, &format!("BEGIN; {PID}")).await?;
    let second = session_of(client, PID).await;
    other.batch_execute("COMMIT").await.map_err(|error| store_error(&error))?;
    let second = second?;
    if first != second || [&first, &second].contains(&&of_other) {
        return refusal();
    }
    Ok(())
}

async fn session_of(client: &Client, query: &str) -> Result<String, StoreError> {
    let messages = client.simple_query(query).await.map_err(|error| store_error(&error))?;
    let pid = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    pid.ok_or_else(|| {
        StoreError::Unusable("the database does not tell the session of a connection".to_owned())
    })
}

async fn facts(client: &Client) -> Result<Facts, StoreError> {
    let row = client.query_one(FACTS, &[]).await.map_err(|error| store_error(&error))?;
    let facts = || -> Result<Facts, tokio_postgres::Error> {
        Ok(Facts {
            version: row.try_get(0)?,
            version_number: row.try_get(1)?,
            is_standby: row.try_get(2)?,
            fsync: row.try_get(3)?,
            full_page_writes: row.try_get(4)?,
            free_connections: row.try_get(5)?,
            standbys: row.try_get(6)?,
            synchronous_standbys: row.try_get(7)?,
        })
    };
    facts().map_err(|error| store_error(&error))
}

fn refuse_look_alike(version: &str) -> Result<(), StoreError> {
    let look_alike = LOOK_ALIKES.into_iter().find(|name| version.contains(name));
    if look_alike.is_some() || !version.starts_with("PostgreSQL ") {
        return Err(StoreError::Unusable(format!(
            "`store` needs PostgreSQL itself, whose commits become durable in one order; this is: {version}"
        )));
    }
    Ok(())
}

fn verdict(facts: &Facts, connections: i64) -> Result<(), StoreError> {
    let mut unfit = unfit(facts);
    if facts.free_connections < connections {
        unfit.push(format!(
            "the database has {} free connections, and {connections} are needed; raise max_connections, or end other programs",
            facts.free_connections.max(0)
        ));
    }
    unfit.into_iter().next().map_or(Ok(()), |text| Err(StoreError::Unusable(text)))
}

/// Why no server may use the database, each with what to do; empty if nothing is wrong.
fn unfit(facts: &Facts) -> Vec<String> {
    let mut unfit = Vec::new();
    if facts.version_number < VERSION_MIN {
        unfit.push(format!("PostgreSQL 14 or later is needed; this is {}", facts.version));
    }
    if facts.is_standby {
        unfit.push("the database is a standby, which is read-only; connect to the primary".to_owned());
    }
    for (name, value) in [("fsync", &facts.fsync), ("full_page_writes", &facts.full_page_writes)] {
        if value != "on" {
            unfit.push(format!(
                "the database has {name} = {value}, with which a power cut loses acknowledged jobs; set {name} = on"
            ));
        }
    }
    unfit
}

/// Checks the rule that flushers rest on: a commit that waits for the disk makes earlier commits of other connections durable.
async fn check_order(client: &Client, other: &Client) -> Result<(), StoreError> {
    let emit = "SELECT (pg_logical_emit_message(true, 'longshore', '') - '0/0'::pg_lsn)::int8";
    client.batch_execute("SET synchronous_commit = off").await.map_err(|error| store_error(&error))?;
    let early = single::<i64>(client, emit).await?;
    client.batch_execute("SET synchronous_commit = on").await.map_err(|error| store_error(&error))?;
    let late = single::<i64>(other, emit).await?;
    let flushed = single::<i64>(other, "SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8").await?;
    if early < late && early < flushed {
        return Ok(());
    }
    Err(StoreError::Unusable(format!(
        "the database does not make commits durable in their order (positions {early}, {late}, flushed {flushed}), so it cannot \
         be used"
    )))
}

async fn single<T: for<'a> tokio_postgres::types::FromSql<'a>>(
    client: &Client,
    query: &str,
) -> Result<T, StoreError> {
    let row = client.query_one(query, &[]).await.map_err(|error| store_error(&error))?;
    row.try_get(0).map_err(|error| store_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            version: "PostgreSQL 15.1 on x86_64".into(),
            version_number: 150_001,
            is_standby: false,
            fsync: "on".into(),
            full_page_writes: "on".into(),
            free_connections: 8,
            standbys: 0,
            synchronous_standbys: String::new(),
        }
    }

    #[test]
    fn each_unfit_database_is_refused_with_what_to_do() {
        assert!(verdict(&good(), 8).is_ok());
        for (facts, expected) in [
            (Facts { version_number: 130_012, ..good() }, "PostgreSQL 14 or later"),
            (Facts { is_standby: true, ..good() }, "connect to the primary"),
            (Facts { fsync: "off".into(), ..good() }, "set fsync = on"),
            (Facts { full_page_writes: "off".into(), ..good() }, "set full_page_writes = on"),
            (Facts { free_connections: 7, ..good() }, "raise max_connections"),
        ] {
            let refusal = verdict(&facts, 8).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
        for version in ["CockroachDB CCL v23", "PostgreSQL 11.2-YB-2.15 on x86_64", "Dolt 1.0"] {
            assert!(refuse_look_alike(version).is_err(), "{version}");
        }
        assert!(refuse_look_alike("PostgreSQL 15.18 (Debian 15.18-0+deb12u1)").is_ok());
    }
}
