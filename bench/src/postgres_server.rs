//! A PostgreSQL of the bench: a cluster in a new directory, on the processor of the measured programs.

use std::cell::Cell;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::cores::Cores;
use crate::pg_wire;
use crate::program::{CpuPlacement, Program, free_address};

/// Directory in which Debian installs each version's programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// PostgreSQL refuses to run as root; the package creates this user.
pub const USER: &str = "postgres";

/// A running PostgreSQL. Its data is deleted on drop.
pub struct PostgresServer {
    program: Program,
    _folder: TempDir,
    address: SocketAddr,
    /// The number of databases that were made.
    databases: Cell<usize>,
}

impl PostgresServer {
    /// Makes a cluster in a new directory of `data`, and starts its server with default settings.
    ///
    /// # Errors
    ///
    /// If PostgreSQL is not installed or does not start.
    pub fn start(data: &Path, cores: Cores) -> Result<Self, String> {
        let folder = tempfile::tempdir_in(data)
            .map_err(|error| format!("cannot create a directory in {}: {error}", data.display()))?;
        let (address, programs) = (free_address()?, programs()?);
        let data = folder.path().join("data");
        let owner = owner(folder.path())?;
        let mut init = Command::new(programs.join("initdb"));
        init.args(["--auth", "trust", "--username", USER, "--no-sync", "--pgdata"]).arg(&data);
        let made = as_user(&mut init, owner).stdout(Stdio::null()).status();
        if !made.is_ok_and(|status| status.success()) {
            return Err(format!("initdb failed in {}", data.display()));
        }
        let mut command = Command::new(programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "-k", ""]);
        command.args(["-c", "logging_collector=off", "-c", "log_min_messages=panic"]);
        let command = as_user(&mut command, owner);
        let mut program = Program::start(command, CpuPlacement::Measured, cores)?;
        program.wait_listening(address)?;
        Ok(Self { program, _folder: folder, address, databases: Cell::new(0) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process that started all others of this server.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Makes an empty database, each flush of whose sessions takes `flush_ms` longer. Returns its name.
    ///
    /// # Errors
    ///
    /// If the database cannot be made.
    pub fn new_database(&self, flush_ms: u64) -> Result<String, String> {
        self.databases.set(self.databases.get() + 1);
        let name = format!("bench_{}", self.databases.get());
        let made = self.ask(&format!("CREATE DATABASE {name}"));
        made.map_err(|error| format!("cannot make the database {name}: {error}"))?;
        self.slow_flushes(&name, flush_ms)?;
        Ok(name)
    }

    /// The address of a database, as a Longshore server takes it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.address)
    }

    /// Makes each flush of later sessions of a database take `flush_ms` longer, as with a standby that answers first.
    ///
    /// # Errors
    ///
    /// If the settings cannot be changed.
    pub fn slow_flushes(&self, database: &str, flush_ms: u64) -> Result<(), String> {
        // The delay is for the sake of other commits; without siblings it is taken in any case.
        let settings = [("commit_delay", flush_ms * 1_000), ("commit_siblings", 0)];
        settings.iter().try_for_each(|(name, value)| {
            let done = self.ask(&format!("ALTER DATABASE {database} SET {name} = {value}"));
            done.map_err(|error| format!("cannot set {name} of {database}: {error}"))
        })
    }

    /// Runs one of PostgreSQL's own programs against a database of this server. Returns what it printed.
    ///
    /// # Errors
    ///
    /// If the program fails.
    pub fn run_program(&self, name: &str, arguments: &[&str], database: &str) -> Result<String, String> {
        let mut command = Command::new(programs()?.join(name));
        command.args(["-h", "127.0.0.1", "-p", &self.address.port().to_string(), "-U", USER]).args(arguments);
        let output = command.arg(database).output().map_err(|error| format!("cannot run {name}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a query in a database. Returns the first number of its first row.
    ///
    /// # Errors
    ///
    /// If the query fails, or returns no number.
    pub fn number(&self, sql: &str, database: &str) -> Result<f64, String> {
        let printed = self.run_program("psql", &["-X", "-A", "-t", "-c", sql], database)?;
        printed.trim().parse().map_err(|_| format!("no number but `{printed}`: {sql}"))
    }

    /// Runs statements. PostgreSQL listens before it accepts sessions, so the connection is retried.
    ///
    /// # Errors
    ///
    /// If no connection succeeds, or a statement fails.
    pub fn ask(&self, statements: &str) -> io::Result<()> {
        let mut tries = 0;
        loop {
            let done = TcpStream::connect(self.address).and_then(|mut stream| {
                pg_wire::start(&mut stream, USER)?;
                pg_wire::ask(&mut stream, &pg_wire::query(statements))
            });
            tries += 1;
            if done.is_ok() || tries == 100 {
                return done;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The directory of the newest version's programs.
fn programs() -> Result<PathBuf, String> {
    let versions = fs::read_dir(VERSIONS).map_err(|error| format!("no PostgreSQL in {VERSIONS}: {error}"))?;
    let versions = versions.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let newest = versions.max_by_key(|version| version.parse::<u32>().unwrap_or_default());
    Ok(Path::new(VERSIONS).join(newest.ok_or_else(|| format!("no version in {VERSIONS}"))?).join("bin"))
}

/// Gives the directory to the PostgreSQL user. `None` if this process runs as that user.
fn owner(folder: &Path) -> Result<Option<(u32, u32)>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| format!("cannot read users: {error}"))?;
    let line = users.lines().find_map(|line| line.strip_prefix(USER)?.strip_prefix(':'));
    let mut ids = line.ok_or_else(|| format!("there is no user `{USER}`"))?.split(':').skip(1);
    let mut id = || ids.next()?.parse::<u32>().ok();
    let (Some(user), Some(group)) = (id(), id()) else { return Err(format!("the user `{USER}` has no id")) };
    chown(folder, Some(user), Some(group)).map_err(|error| format!("cannot give a folder away: {error}"))?;
    Ok(Some((user, group)))
}

fn as_user(command: &mut Command, owner: Option<(u32, u32)>) -> &mut Command {
    match owner {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
    .current_dir("/")
}
