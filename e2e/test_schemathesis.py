"""The API against its own document: requests made from `/v1/openapi.json`, answers checked against it.

    LONGSHORE_OPENAPI_EXAMPLES=1000 LONGSHORE_OPENAPI_SEED=7 pytest e2e/test_schemathesis.py      # a longer run
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY

EXAMPLES = os.environ.get("LONGSHORE_OPENAPI_EXAMPLES", "2")
SEED = os.environ.get("LONGSHORE_OPENAPI_SEED", "1")
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "ignored_auth", "unsupported_method",
]
E2E = Path(__file__).parent


class Echo:
    """A worker that gives every job its input back, until told to stop."""

    def __init__(self, endpoint):
        self.worker = FakeWorker(endpoint)
        # What the server did not take or give as it should, with the time in s since the start.
        self.refusals: list[str] = []
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._stop.is_set():
            answer = self.worker.take_raw()
            if answer.status_code == 200:
                job = answer.json()
                for kind in ("job-stream", "job-done"):
                    self._note(f"{kind} {job['id']}", self.worker.post(kind, job["id"], {"output": job["input"]}))
            else:
                self._note("job-take", answer)

    def _note(self, asked: str, answer) -> None:
        if answer.status_code not in (200, 204):
            seconds = time.monotonic() - self._began
            self.refusals.append(f"{seconds:.1f} s: {asked}: {answer.status_code} {answer.text[:300]}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def world(fresh_server):
    """A server of its own (it makes and deletes what it likes), an endpoint with a worker, and jobs in every state."""
    api = Api(fresh_server(flags=("--rate-limits", "off"), config="worker_hold_ms = 500\n"))
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    failed, running, done = (endpoint.run() for _ in range(3))
    for job in (failed, running, done):
        assert worker.take(busy=job != failed)["id"] == job
    worker.done(failed, {"error": "it does"})
    worker.done(done, {"output": [1, None]})
    cancelled = endpoint.run()
    endpoint.cancel(cancelled)
    echo = Echo(endpoint)
    yield endpoint, [failed, running, done, cancelled], echo
    echo.close()


@pytest.mark.timeout(3600 if "LONGSHORE_OPENAPI_EXAMPLES" in os.environ else 900)
def test_every_answer_is_as_the_document_says(world, tmp_path):
    endpoint, jobs, echo = world
    url = endpoint.api.server.url
    environment = {
        **os.environ, "SCHEMATHESIS_HOOKS": "harness.openapi_hooks", "PYTHONPATH": str(E2E),
        "LONGSHORE_OPENAPI_ENDPOINT": endpoint.id, "LONGSHORE_OPENAPI_JOBS": ",".join(jobs), "LONGSHORE_OPENAPI_SEED": SEED,
    }
    command = [
        sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "--no-color", "run",
        f"{url}/v1/openapi.json", "--url", url, "--header", f"Authorization: Bearer {ADMIN_KEY}",
        "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES,
        "--seed", SEED, "--suppress-health-check", "too_slow", "--request-timeout", "60", "--continue-on-failure", "--warnings", "off",
        # A stream without an end.
        "--exclude-operation-id", "StreamEvents",
        # Every method is the worker's, and so is what it answers.
        "--exclude-path-regex", "^/lb/",
    ]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    print(run.stdout)
    # Why a request had no answer.
    print("refused to the worker:", *echo.refusals, sep="\n")
    for path in ("/v1/server", f"/v2/{endpoint.id}/health", f"/v2/{endpoint.id}/explain"):
        print(path, endpoint.api.ok("GET", path))
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert "panicked" not in endpoint.api.server.log()
