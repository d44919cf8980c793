//! Where the database is, and connections to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longshore_store::StoreError;
use rustls::ClientConfig;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::with_cause;

/// The schema of the tables.
const SCHEMA: &str = "longshore";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long sent bytes may stay unacknowledged before the connection counts as broken.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is idle before it is probed, and the time between probes.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// Unanswered probes after which the connection counts as broken.
const KEEPALIVES_MAX: u32 = 3;

/// How the driver says that no host accepts writes.
const READ_ONLY: &str = "database does not allow writes";

/// Settings of every connection. Plans are pinned: each statement finds its rows by the primary key, with any statistics.
const SESSION: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
    SET enable_mergejoin = off; SET enable_bitmapscan = off; SET jit = off; SET statement_timeout = '30s'; \
    SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning; \
    SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;";

/// The address of a database, and how to connect to it. `Debug` shows no password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    schema: String,
    needs_tls: bool,
    tls: Option<Arc<ClientConfig>>,
    password_file: Option<PathBuf>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Writes batches, whose commits do not wait for the disk.
    Lane,
    /// Makes what the lanes wrote durable.
    Flusher,
    /// Reads rows and claims shards.
    Reader,
    /// Holds the lock that keeps other servers away.
    Lock,
    /// Renews the lease of a node.
    Lease,
    /// Appends and reads lines of logs.
    Log,
}

impl Role {
    fn application_name(self) -> &'static str {
        match self {
            Self::Lane => "longshore lane",
            Self::Flusher => "longshore flusher",
            Self::Reader => "longshore reader",
            Self::Lock => "longshore lock",
            Self::Lease => "longshore lease",
            Self::Log => "longshore log",
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Database {
    /// Reads an address of the form `postgres://USER@HOST:PORT/DATABASE?sslmode=…`. TLS is used for every host but local
    /// ones, except with `sslmode=disable`; certificates are always verified.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the text is no such address, or has a password, which belongs into a file. The message has
    /// no part of the text.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let unusable = |what: &str| {
            StoreError::Unusable(format!(
                "the setting `store` {what}; write postgres://USER@HOST:PORT/DATABASE, and the password into the file of \
                 `store_password_file`"
            ))
        };
        // Certificates are verified in every mode, so that those of libpq that ask for it mean no more than `require`.
        let url = url
            .replace("sslmode=verify-full", "sslmode=require")
            .replace("sslmode=verify-ca", "sslmode=require");
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(unusable("is no address of a PostgreSQL database"));
        }
        let mut config: Config =
            url.parse().map_err(|error| unusable(&format!("does not parse ({})", with_cause(&error))))?;
        if config.get_hosts().is_empty() {
            return Err(unusable("names no host"));
        }
        if config.get_dbname().is_none() {
            return Err(unusable("names no database"));
        }
        if config.get_password().is_some() {
            return Err(unusable("has a password"));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let needs_tls = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Prefer => !is_local,
            _ => true,
        };
        config
            .ssl_mode(if needs_tls { SslMode::Require } else { SslMode::Disable })
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(TCP_USER_TIMEOUT)
            .keepalives_idle(KEEPALIVE)
            .keepalives_interval(KEEPALIVE)
            .keepalives_retries(KEEPALIVES_MAX);
        Ok(Self { config, schema: SCHEMA.to_owned(), needs_tls, tls: None, password_file: None })
    }

    /// Whether connections use TLS, and so need [`Self::with_tls`].
    pub fn needs_tls(&self) -> bool {
        self.needs_tls
    }

    /// Sets which certificates are trusted.
    #[must_use]
    pub fn with_tls(self, tls: ClientConfig) -> Self {
        Self { tls: Some(Arc::new(tls)), ..self }
    }

    /// Reads the password from a file, again at each connection.
    #[must_use]
    pub fn with_password_file(self, path: &Path) -> Self {
        Self { password_file: Some(path.to_owned()), ..self }
    }

    /// Uses the tables of another schema, for tests that share a database.
    #[must_use]
    pub fn with_schema(self, schema: &str) -> Self {
        Self { schema: schema.to_owned(), ..self }
    }

    /// The schema of the tables.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// Hosts, port and name of the database, for messages; without user and password.
    pub fn address(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let ports: Vec<String> = self.config.get_ports().iter().map(ToString::to_string).collect();
        let port = if ports.is_empty() { "5432".to_owned() } else { ports.join(",") };
        format!("{} of {}, port {port}", self.config.get_dbname().unwrap_or_default(), hosts.join(","))
    }

    /// Opens a connection and prepares it for its role. The connection ends when the client is dropped.
    ///
    /// # Errors
    /// [`StoreError::Io`] with the cause and, for usual causes, what to do.
    pub(crate) async fn connect(&self, role: Role) -> Result<Client, StoreError> {
        let mut config = self.config.clone();
        config.application_name(role.application_name());
        if let Some(path) = &self.password_file {
            let password = tokio::fs::read_to_string(path).await.map_err(|error| {
                StoreError::Io(format!("cannot read `store_password_file` {}: {error}", path.display()))
            })?;
            config.password(password.trim_end_matches(['\r', '\n']));
        }
        let failed = |error: tokio_postgres::Error| {
            let cause = with_cause(&error);
            let advice = if cause.ends_with(READ_ONLY) {
                "; it is a standby or read-only, name the primary"
            } else {
                ""
            };
            StoreError::Io(format!("cannot connect to the database {}: {cause}{advice}", self.address()))
        };
        let client = if self.needs_tls {
            let no_tls =
                || StoreError::Unusable("no certificates are trusted, and the database needs TLS".to_owned());
            let tls = MakeRustlsConnect::new(ClientConfig::clone(self.tls.as_ref().ok_or_else(no_tls)?));
            let (client, connection) = config.connect(tls).await.map_err(failed)?;
            drive(connection);
            client
        } else {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            drive(connection);
            client
        };
        let schema = self.schema.replace('"', "\"\"");
        let commit = if role == Role::Lane { "off" } else { "on" };
        let role_settings = format!("SET search_path = \"{schema}\"; SET synchronous_commit = {commit};");
        client.batch_execute(&format!("{SESSION} {role_settings}")).await.map_err(failed)?;
        Ok(client)
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
    }
}

/// Runs the connection until its client is dropped or it breaks. Clients learn of the break from their statements.
fn drive<S, T>(connection: Connection<S, T>)
where
    Connection<S, T>: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %with_cause(&error), "a connection to the database ended");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        Database::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_refused_without_showing_its_password() {
        for (url, expected) in [
            ("mysql://u:hidden@h/d", "is no address of a PostgreSQL database"),
            ("postgres://u:hidden@h", "names no database"),
            ("postgres:///d", "names no host"),
            ("postgres://u:hidden@h:port/d", "does not parse"),
            ("postgres://u@h/d?sslmode=perhaps&password=hidden", "does not parse"),
            ("postgres://u:hidden@h/d", "has a password"),
            ("postgres://u@h/d?password=hidden", "has a password"),
        ] {
            let refusal = refusal(url);
            assert!(refusal.contains(expected) && !refusal.contains("hidden"), "{url}: {refusal}");
        }
        let database = Database::parse("postgres://u@h1,h2:6000/d").unwrap();
        assert_eq!(database.address(), "d of h1,h2, port 5432,6000");
    }

    #[test]
    fn only_local_connections_go_without_tls_unless_the_operator_says_so() {
        for (url, needs_tls) in [
            ("postgres://u@localhost/d", false),
            ("postgres://u@[::1]/d", false),
            ("postgres://u@/d?host=/run/postgresql", false),
            ("postgres://u@127.0.0.1/d?sslmode=require", true),
            ("postgres://u@db.example/d", true),
            ("postgres://u@db.example,localhost/d", true),
            ("postgres://u@db.example/d?sslmode=verify-full", true),
            ("postgres://u@db.example/d?sslmode=disable", false),
        ] {
            assert_eq!(Database::parse(url).unwrap().needs_tls(), needs_tls, "{url}");
        }
    }
}
