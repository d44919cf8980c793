//! A PostgreSQL of the tests: one for all tests of this program, and one alone for a test that ends its processes.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use longshore_postgres::{Database, PostgresStore};

/// Makes a cluster in a temporary folder and runs its server until standard input is closed. Prints the folder of the socket and
/// the server's process when the server answers. `$1` is the folder of PostgreSQL's programs. The server refuses to run as root.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
as=
if [ "$(id -u)" = 0 ]; then
    as="setpriv --reuid=postgres --regid=postgres --clear-groups"
    chown postgres "$folder"
fi
cd "$folder"
$as "$1/initdb" -D data -A trust -U postgres --no-sync --no-instructions >initdb.log 2>&1 || { cat initdb.log >&2; exit 1; }
$as "$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=400 -c shared_buffers=64MB \
    -c recovery_init_sync_method=syncfs \
    >server.log 2>&1 </dev/null &
server=$!
until $as "$1/pg_isready" -q -h "$folder"; do kill -0 $server || { cat server.log >&2; exit 1; }; sleep 0.05; done
echo "$folder"
echo "$server"
cat >/dev/null
kill -QUIT $server 2>/dev/null || true
wait $server || true
cd /
rm -rf "$folder"
"#;

/// A running server. It ends with this value, or with this program.
pub struct Server {
    script: Child,
    /// Closing it ends the server.
    stdin: Option<ChildStdin>,
    /// The folder of the socket, and of the cluster.
    pub folder: PathBuf,
    /// The process of the server.
    pub pid: u32,
}

impl Server {
    /// Starts a server of its own.
    pub fn start() -> Self {
        let mut script = Command::new("sh")
            .args(["-c", SCRIPT, "sh", programs().to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let folder = lines.next().expect("PostgreSQL did not start; its messages are above").unwrap().into();
        let pid = lines.next().unwrap().unwrap().parse().unwrap();
        Self { stdin: script.stdin.take(), script, folder, pid }
    }

    /// The address of the database `postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@/postgres?host={}", self.folder.display())
    }

    /// The database with a schema that no other test uses.
    pub fn database(&self) -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Database::parse(&self.url()).unwrap().with_schema(&schema)
    }

    /// A connection to look into the database with.
    pub async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.script.wait();
    }
}

/// The folder of the newest installed PostgreSQL.
fn programs() -> PathBuf {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").expect("install PostgreSQL: apt-get install postgresql");
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    versions.map(|entry| entry.unwrap().path()).max_by_key(version).expect("an installed version").join("bin")
}

/// The server that the tests share. It ends with this program, whose end closes the script's standard input.
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

/// A store without rows.
pub async fn fresh_store() -> (PostgresStore, ()) {
    (PostgresStore::open(shared().database()).await.unwrap(), ())
}
