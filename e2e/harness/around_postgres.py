"""What stands beside a PostgreSQL: a standby that follows it, and a pooler in front of it."""

import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from .postgres import DATABASE, PASSWORD, USER, Postgres, programs
from .wait import until


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _config(database: Postgres, port: int) -> str:
    """Settings of a Longshore server that uses this port."""
    return f'store = "postgres://{USER}@127.0.0.1:{port}/{DATABASE}"\nstore_password_file = "{database.password_file}"\n'


@contextmanager
def _running(database: Postgres, command: list, log: Path, port: int):
    """Runs a program as the user of PostgreSQL until the block ends."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*database.as_user, *map(str, command)], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=database.folder
        )

    def answers():
        if process.poll() is not None:
            raise RuntimeError(log.read_text(errors="replace")[-4000:])
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers, "the program listens", 60, 0.05)
        yield SimpleNamespace(config=_config(database, port))
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


@contextmanager
def standby(database: Postgres, name: str):
    """A standby that follows the database over its socket."""
    folder, port = database.folder / name, _free_port()
    source = f"host={database.folder} port={database.port} user=postgres application_name={name}"
    copy = [programs() / "pg_basebackup", "-D", folder, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"]
    subprocess.run([*database.as_user, *map(str, copy)], check=True, capture_output=True, cwd=database.folder)
    command = [programs() / "postgres", "-D", folder, "-k", database.folder, "-p", port, "-c", "listen_addresses=127.0.0.1"]
    psql = [programs() / "psql", "-X", "-q", "-A", "-t", "-h", database.folder, "-p", port, "-U", "postgres", "-d", "postgres", "-c"]
    with _running(database, command, database.folder / f"{name}.log", port) as running:
        running.port = port
        running.sql = lambda text: subprocess.run([*map(str, psql), text], check=True, capture_output=True, text=True).stdout.strip()
        yield running


@contextmanager
def pooler(database: Postgres, mode: str):
    """PgBouncer before the database; `mode` is `transaction` or `session`."""
    port = _free_port()
    settings = database.folder / f"pooler-{mode}.ini"
    settings.write_text(
        f"""
[databases]
{DATABASE} = host=127.0.0.1 port={database.port} dbname={DATABASE} user={USER} password={PASSWORD}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 40
"""
    )
    settings.chmod(0o644)
    with _running(database, ["/usr/sbin/pgbouncer", settings], database.folder / f"pooler-{mode}.log", port) as running:
        yield running
