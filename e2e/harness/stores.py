"""Where the servers under test keep their rows: in their data directories, or each in a database of its own.

`LONGSHORE_E2E_STORE=postgres` runs the tests that are about jobs over PostgreSQL. Tests say nothing of it."""

import atexit
import itertools
import os
from pathlib import Path

from .postgres import USER, Postgres

IS_DATABASE = os.environ.get("LONGSHORE_E2E_STORE", "") == "postgres"

ABOUT_JOBS = (
    "bulk", "contract", "drain", "explain", "failures", "job_interface", "keys", "kill_nine", "management", "openai", "openai_raw",
    "owners", "rate_limits", "sdk_python", "secrets", "streams", "webhook_delivery", "webhooks", "worker_control", "worker_protocol",
    "workers",
)
"""The files of tests that run on both stores."""

ABOUT_FILES = (
    "test_a_folder_from_before_owners_opens", "test_a_store_that_cannot_write", "test_no_secret_is_in_any_file_and_workers_get_them",
)
"""The tests in these files that are about the files of a data directory."""

_postgres: Postgres | None = None
_databases: dict[Path, str] = {}
_numbers = itertools.count(1)


def settings(folder: Path, config: str) -> str:
    """The settings of the store for the server in a folder, if its own ones name none. A folder keeps its database."""
    if not IS_DATABASE or "store =" in config:
        return ""
    global _postgres
    if _postgres is None:
        _postgres = Postgres("-c", "max_connections=400")
        atexit.register(_postgres.close)
    if folder not in _databases:
        _databases[folder] = f"jobs_{next(_numbers)}"
        _postgres.sql(f"CREATE DATABASE {_databases[folder]} OWNER {USER}")
    url = _postgres.url.rsplit("/", 1)[0]
    return f'store = "{url}/{_databases[folder]}"\nstore_password_file = "{_postgres.password_file}"\n'
