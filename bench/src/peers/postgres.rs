//! PostgreSQL: one insert per job, batches taken with SKIP LOCKED, one update per result; each is a commit.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use tempfile::TempDir;

use super::pg_wire::{self, Prepared};
use super::{Peer, SLOTS, folder};
use crate::load::{Protocol, Role, Tally, Target, Worker};
use crate::program::{CpuPlacement, Program, free_address};
use crate::scenarios::ScenarioContext;

/// Directory in which Debian installs each version's programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// PostgreSQL refuses to run as root; the package creates this user.
const USER: &str = "postgres";

const TABLE: &str = "CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
     state smallint NOT NULL DEFAULT 0, input text NOT NULL, output text, \
     created_at timestamptz NOT NULL DEFAULT now(), taken_at timestamptz, finished_at timestamptz); \
     CREATE INDEX job_waiting ON job (id) WHERE state = 0";
const SUBMIT: Prepared =
    Prepared { name: "submit", query: "INSERT INTO job (input) VALUES ($1) RETURNING id" };
const TAKE: Prepared = Prepared {
    name: "take",
    query: "UPDATE job SET state = 1, taken_at = now() WHERE id IN (SELECT id FROM job WHERE state = 0 \
            ORDER BY id LIMIT $1::text::int FOR UPDATE SKIP LOCKED) RETURNING id",
};
const DONE: Prepared = Prepared {
    name: "done",
    query: "UPDATE job SET state = 2, output = $2, finished_at = now() WHERE id = $1::text::bigint",
};

pub(super) struct Postgres {
    _program: Program,
    _folder: TempDir,
    address: SocketAddr,
}

impl Peer for Postgres {
    const NAME: &'static str = "postgresql";

    fn start(ground: &ScenarioContext) -> Result<Self, String> {
        let (folder, address, programs) = (folder(ground)?, free_address()?, programs()?);
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
        let mut program = Program::start(command, CpuPlacement::Measured, ground.cores)?;
        program.wait_listening(address)?;
        let postgres = Self { _program: program, _folder: folder, address };
        postgres.make_table().map_err(|error| format!("cannot make the table: {error}"))?;
        Ok(postgres)
    }

    fn dial(&self) -> Target {
        Target::new(self.address, pg_wire::reply).greeting(prepare)
    }

    fn submit(&self, body: &[u8]) -> Vec<u8> {
        SUBMIT.execute(&[body])
    }

    fn consumer(&mut self, tally: Rc<Tally>) -> Result<Box<dyn Role>, String> {
        Ok(Box::new(Worker::speaking(Consumer(self.dial()), SLOTS, tally)))
    }
}

impl Postgres {
    /// PostgreSQL listens before it accepts sessions, so the connection is retried.
    fn make_table(&self) -> io::Result<()> {
        let mut tries = 0;
        loop {
            let made = TcpStream::connect(self.address).and_then(|mut stream| {
                pg_wire::start(&mut stream, USER)?;
                pg_wire::ask(&mut stream, &pg_wire::query(TABLE))
            });
            tries += 1;
            if made.is_ok() || tries == 100 {
                return made;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

struct Consumer(Target);

impl Protocol for Consumer {
    fn dial(&self) -> Target {
        self.0
    }

    fn take(&self, free: usize, _busy: bool) -> Vec<u8> {
        TAKE.execute(&[free.to_string().as_bytes()])
    }

    fn jobs(&self, answer: &[u8]) -> Result<Vec<String>, String> {
        Ok(pg_wire::first_columns(answer))
    }

    fn done(&self, job: &str) -> Vec<u8> {
        DONE.execute(&[job.as_bytes(), br#"{"ok":true}"#])
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(2)
    }
}

fn prepare(stream: &mut TcpStream) -> io::Result<()> {
    pg_wire::start(stream, USER)?;
    pg_wire::ask(stream, &[SUBMIT.parse(), TAKE.parse(), DONE.parse(), pg_wire::sync()].concat())
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
