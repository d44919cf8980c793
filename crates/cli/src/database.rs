//! Arguments of `longshore migrate` and `longshore copy`. The server's program runs both, because they work on stores.

use std::path::PathBuf;

use clap::Args;

pub(crate) const MIGRATE_EXAMPLES: &str = "\
Examples:
  longshore migrate --config /etc/longshore.toml
  longshore migrate --config /etc/longshore.toml --check
  LONGSHORE_STORE=postgres://admin@db.example/longshore longshore migrate

A server brings the tables up to date when it starts. This command does it as
another user, or before. Servers may run. --check changes nothing; exit code 1:
the tables are older than this program, or newer.";

pub(crate) const COPY_EXAMPLES: &str = "\
Examples:
  longshore copy --from /var/lib/longshore \\
      --to postgres://longshore@db.example/longshore \\
      --password-file /etc/longshore/database-password --files /srv/longshore
  longshore copy --from postgres://longshore@db.example/longshore \\
      --files /srv/longshore --to /var/lib/longshore-new

No server may use either place. The target must be empty; it is complete when
the command says so, or as it was. FROM stays as it is. A server with a database
keeps deployed code, volumes, logs and history in its data directory: --files
names that directory, or leaves them out. Give the secrets key as to a server:
secrets are copied as they are stored, and the next server needs the same key.";

/// Arguments of `longshore migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The settings file of `serve`
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only tell the version of the tables
    #[arg(long)]
    pub check: bool,
}

/// Arguments of `longshore copy`.
#[derive(Debug, Args)]
pub struct CopyArgs {
    /// The data directory or database to read
    #[arg(long, value_name = "DIR|URL")]
    pub from: String,
    /// The data directory or database to write; empty or missing
    #[arg(long, value_name = "DIR|URL")]
    pub to: String,
    /// The data directory for what a database has no place for
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// The setting `blobs` of the server that is read
    #[arg(long, value_name = "URL")]
    pub from_blobs: Option<String>,
    /// The setting `blobs` of the next server
    #[arg(long, value_name = "URL")]
    pub to_blobs: Option<String>,
    /// The file with the keys for object storage
    #[arg(long, value_name = "FILE")]
    pub blobs_credentials_file: Option<PathBuf>,
    /// The file with the database's password
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Also trust the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The file with the secrets key
    #[arg(long, value_name = "FILE")]
    pub secrets_key_file: Option<PathBuf>,
}
