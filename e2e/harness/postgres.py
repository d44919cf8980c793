"""A PostgreSQL of a test's own: started, killed and restarted as processes."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .wait import until

USER = "longshore"
PASSWORD = "pg-hidden-0123456789"
DATABASE = "jobs"

# Over the network with a password, over the socket of the folder without one.
HBA = """
local all,replication all trust
host all all 127.0.0.1/32 scram-sha-256
"""


def programs() -> Path:
    """The folder of the newest installed PostgreSQL."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    assert versions, "install PostgreSQL: apt-get install postgresql"
    return versions[-1]


class Postgres:
    """A cluster in a temporary folder, with a role and a database for Longshore, and its server while it runs. The server
    refuses to run as root, so that root's tests run it as `postgres`."""

    def __init__(self, *options: str):
        self.options = options
        """Further arguments of the server."""
        self._own = tempfile.TemporaryDirectory(prefix="longshore-pg-")
        self.folder = Path(self._own.name)
        self.as_user: list[str] = []
        """What a command begins with that runs as the user of the server."""
        if os.geteuid() == 0:
            self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            subprocess.run(["chown", "postgres", self.folder], check=True)
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self.password_file = self.folder / "password"
        self.password_file.write_text(PASSWORD + "\n")
        self.process: subprocess.Popen | None = None
        initdb = [programs() / "initdb", "-D", self.folder / "data", "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run([*self.as_user, *initdb], check=True, capture_output=True, cwd=self.folder)
        (self.folder / "data/pg_hba.conf").write_text(HBA)
        self.start()
        self.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        self.sql(f"CREATE DATABASE {DATABASE} OWNER {USER}")

    @property
    def url(self) -> str:
        """The address for the setting `store`."""
        return f"postgres://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def config(self) -> str:
        """Settings of a Longshore server that uses this database."""
        return f'store = "{self.url}"\nstore_password_file = "{self.password_file}"\n'

    def start(self) -> None:
        """Starts the server and returns when it answers."""
        # After a kill, the server's own processes take a moment to end; until then another one refuses to start.
        deadline = time.monotonic() + 60
        while not self._try_start():
            assert time.monotonic() < deadline, self.log()[-4000:]

    def _try_start(self) -> bool:
        command = [programs() / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.as_user, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        is_ready = [programs() / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        answers = lambda: subprocess.run(is_ready).returncode == 0
        until(lambda: self.process.poll() is not None or answers(), "the database answers or has ended", 60, 0.05)
        return self.process.poll() is None

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stops the server: SIGQUIT immediately and without a checkpoint, SIGINT in order, SIGKILL as the kernel does it."""
        children = []
        if how == signal.SIGKILL:
            listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
            children = [int(pid) for pid in listed.stdout.split()]
        self.process.send_signal(how)
        for pid in children:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass
        self.process.wait(60)

    def sql(self, text: str, database: str | None = None) -> str:
        """Runs statements as the superuser; answers the values."""
        found = subprocess.run(self._psql(text, database), capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return found.stdout.strip()

    def spawn_sql(self, text: str) -> subprocess.Popen:
        """Starts statements in the database of the jobs, without waiting for their end."""
        return subprocess.Popen(self._psql(text, DATABASE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _psql(self, text: str, database: str | None) -> list[str]:
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres", "-d", database or "postgres"]
        return [str(programs() / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *where, "-c", text]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
        self._reserved.close()
        self._own.cleanup()
