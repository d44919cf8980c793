"""Where the servers under test keep their rows: in their data directories, or each in a database of its own.

`LONGSHORE_E2E_STORE=postgres` runs the tests that are about jobs over PostgreSQL, and `LONGSHORE_E2E_STORE=postgres-short` those of
them that would notice what a store does otherwise than another one. Tests say nothing of it."""

import atexit
import itertools
import os
from pathlib import Path

from .postgres import USER, Postgres

IS_SHORT = os.environ.get("LONGSHORE_E2E_STORE", "") == "postgres-short"
IS_DATABASE = IS_SHORT or os.environ.get("LONGSHORE_E2E_STORE", "") == "postgres"

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

ABOUT_ROWS = (
    "test_a_new_attempt_goes_on_with_the_offsets", "test_a_restarted_server_knows_which_tokens_have_ended",
    "test_a_webhook_that_failed_is_delivered_again", "test_body_limit_is_exact",
    "test_events_go_on_across_a_restart", "test_idempotency_key_returns_the_first_job", "test_metrics_are_kept_and_shown_everywhere",
    "test_numbers_keep_their_digits", "test_purge_cancels_what_is_queued_and_nothing_else", "test_requests_lists_pages_newest_first",
    "test_retention_of_finished_jobs", "test_retry_of_a_failed_job_starts_it_anew", "test_run_status_output", "test_secrets_are_shown_once_and_survive_a_restart", "test_status_ttl_deletes_a_job_in_any_state",
    "test_stream_drains_and_offset_does_not", "test_text_survives_in_every_script", "test_the_chunks_go_with_their_job",
)
"""The tests in these files that are about what a store keeps: bytes, order, deletions, and what is there after a restart."""

_postgres: Postgres | None = None
_databases: dict[Path, str] = {}
_numbers = itertools.count(1)


def is_run(test: str) -> bool:
    """Whether the test of this name runs over PostgreSQL, if its file does."""
    return test in ABOUT_ROWS if IS_SHORT else test not in ABOUT_FILES


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
