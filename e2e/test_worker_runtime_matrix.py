"""Every version of the SDK that the worker runtime edits, with the runtime and without it: the same behaviour.

The cases that need minutes. The other tests run the installed version with the runtime, and `test_worker_runtime.py` has
the cases that every run has time for.
"""

import http.server
import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from harness import processes, sdk
from harness.client import HANDLERS, Api
from harness.wait import until
from test_cli import Cli
from test_worker_runtime import server, started, variant  # noqa: F401

pytestmark = pytest.mark.skipif(not sdk.IS_LONG, reason="long form only: LONGSHORE_SDK_VERSIONS=all")

DEBOUNCE_S = 5
"""How long the SDK waits after a response 429."""


def test_eight_jobs_run_concurrently(variant):
    endpoint = variant.endpoint("eight_at_once.py", maxConcurrency=8)
    jobs = [endpoint.run({"seconds": 2}) for _ in range(8)]
    records = [endpoint.wait_for(job, timeout_s=60) for job in jobs]
    assert max(record["output"]["at_once"] for record in records) == 8, records
    assert len({record["workerId"] for record in records}) == 1, records


def test_a_job_starts_beside_a_running_one(variant):
    endpoint = variant.endpoint("eight_at_once.py", maxConcurrency=8)
    long = endpoint.run({"seconds": 6})
    until(lambda: endpoint.status(long)["status"] == "IN_PROGRESS", "the long job runs", 60)
    short = endpoint.run({"seconds": 0})
    assert endpoint.wait_for(short)["status"] == "COMPLETED"
    if variant.is_edited:
        assert endpoint.status(long)["status"] == "IN_PROGRESS", "the SDK until 1.9.0 waits for its end"
    assert endpoint.wait_for(long)["status"] == "COMPLETED"


def test_progress_is_visible(variant, tmp_path):
    endpoint = variant.endpoint("progress.py")
    go = tmp_path / "go"
    job = endpoint.run({"go": str(go)})
    until(lambda: endpoint.status(job).get("output") == "half way", "progress is visible", 40)
    go.touch()
    assert endpoint.wait_for(job)["output"] == "all the way"


@pytest.mark.parametrize("in_config", ["0", "1"])
def test_a_worker_is_refreshed_after_one_job(variant, in_config):
    endpoint = variant.endpoint("refresh.py", {"REFRESH_CONFIG": in_config})
    jobs = [endpoint.run() for _ in range(3)]
    pids = [endpoint.wait_for(job, timeout_s=90)["output"]["pid"] for job in jobs]
    assert len(set(pids)) == 3, pids
    assert endpoint.health()["jobs"]["retried"] == 0


def test_an_idle_worker_ends_with_sigterm(variant):
    endpoint = variant.endpoint("echo.py")
    endpoint.runsync(wait_ms=90000)
    (worker,) = endpoint.workers()
    processes.send(worker.pid, signal.SIGTERM)
    until(lambda: not processes.lives(worker.pid), "the worker has ended", 15)


def test_a_stopped_worker_gives_its_job_back(variant, tmp_path):
    endpoint = variant.endpoint("sleep_async.py", stopGraceMs=500)
    cli, began = Cli(tmp_path / "config", variant.server.url), tmp_path / "started"
    job = endpoint.run({"seconds": 60, "started": str(began)})
    until(lambda: started(began) == [job], "the job runs", 60)
    cli.ok("workers", "stop", endpoint.id, "--all")
    until(lambda: started(began) == [job, job], "another worker runs the job", 60)
    assert endpoint.status(job).get("retries", 0) == 0
    endpoint.cancel(job)


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers the first take with 429, the second with a job, and takes its result."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """A take, a poll for stop signals, or a ping."""
        if "/job-take/" not in self.path:
            return self.answer(204)
        takes = self.server.takes
        takes.append(time.monotonic())
        if len(takes) == 1:
            return self.answer(429)
        return self.answer(200, {"id": "job-1", "input": {"n": 1}}) if len(takes) == 2 else self.answer(204)

    def do_POST(self):
        """A result."""
        self.server.results.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.answer(200, {})

    def answer(self, status: int, body=None):
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Says nothing."""


def test_a_refused_take_is_repeated_after_the_pause_of_the_sdk(variant, tmp_path):
    hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    hub.takes, hub.results = [], []
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{hub.server_address[1]}/v2/x"
    (runtime,) = (variant.server.data / "cache").glob("worker-runtime-*")
    path = f"{runtime}:{variant.env['PYTHONPATH']}"
    environment = Api(variant.server).external().worker_token()["env"] | variant.env | {"PYTHONPATH": path}
    environment["RUNPOD_WEBHOOK_GET_JOB"] = f"{base}/job-take/$ID?gpu=cpu"
    environment["RUNPOD_WEBHOOK_POST_OUTPUT"] = f"{base}/job-done/$RUNPOD_POD_ID/$ID?gpu=cpu"
    environment["RUNPOD_WEBHOOK_PING"] = f"{base}/ping/$RUNPOD_POD_ID?gpu=cpu"
    command = [sys.executable, "-u", str(HANDLERS / "echo.py")]
    worker = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        until(lambda: hub.results, "the result arrives", 40)
        assert hub.takes[1] - hub.takes[0] > DEBOUNCE_S * 0.9, hub.takes
        assert json.loads(hub.results[0])["output"]["echo"] == {"n": 1}, hub.results
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
        hub.shutdown()
