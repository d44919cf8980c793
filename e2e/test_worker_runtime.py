"""The worker runtime beside the official SDK: the same behaviour in every version that it edits, at another pace."""

import itertools
import signal
from datetime import datetime

import pytest

from harness import processes, sdk
from harness.client import Api, Endpoint
from harness.server import QUICK, Server
from harness.wait import until
from test_workers import started

OFF = {"LONGSHORE_RUNTIME": "off"}
PAUSE_S = 1.0
"""How long the SDK pauses after it has taken a job."""


@pytest.fixture(scope="module")
def server():
    """A server of this module: its endpoints start many workers."""
    server = Server(config=QUICK + "worker_hold_ms = 2000\n").start()
    yield server
    server.close()


class Variant:
    """A version of the SDK, with the runtime or unchanged."""

    def __init__(self, server: Server, version: str, is_edited: bool):
        self.server = server
        self.is_edited = is_edited
        self.env = {"PYTHONPATH": sdk.python_path(version), **({} if is_edited else OFF)}

    def endpoint(self, handler: str, env: dict[str, str] | None = None, **fields) -> Endpoint:
        """An endpoint with one worker of this variant."""
        return Api(self.server).endpoint(handler, {**self.env, **(env or {})}, workersMax=1, **fields)


EDITED = [(version, True) for version in sdk.VERSIONS]
UNCHANGED = [(version, False) for version in sdk.VERSIONS]


def named(variant: tuple[str, bool]) -> str:
    version, is_edited = variant
    return f"{version}-{'edited' if is_edited else 'unchanged'}"


@pytest.fixture(params=EDITED + (UNCHANGED if sdk.IS_LONG else []), ids=named)
def variant(request, server) -> Variant:
    """Every version with the runtime; in the long form also without it."""
    return Variant(server, *request.param)


def test_an_async_handler_is_cancelled_stopped_and_lets_its_job_end(variant, tmp_path):
    endpoint = variant.endpoint("sleep_async.py", stopGraceMs=1000)
    began, finished = tmp_path / "started", tmp_path / "finished"
    assert endpoint.runsync({"seconds": 0}, wait_ms=90000)["output"] == {"slept": 0}

    cancelled = endpoint.run({"seconds": 60, "started": str(began)})
    until(lambda: started(began) == [cancelled], "the job runs")
    endpoint.cancel(cancelled)
    assert endpoint.wait_for(cancelled)["status"] == "CANCELLED"

    last = endpoint.run({"seconds": 1, "started": str(began), "finished": str(finished)})
    until(lambda: last in started(began), "the next job runs")
    (worker,) = endpoint.workers()
    processes.send(worker.pid, signal.SIGTERM)
    record = endpoint.wait_for(last)
    assert record["status"] == "COMPLETED" and record.get("retries", 0) == 0, record
    assert started(finished) == [last]
    until(lambda: not processes.lives(worker.pid), "the worker has ended", 15)


def test_a_generator_streams_and_aggregates_and_errors_are_told(variant):
    endpoint = variant.endpoint("generator.py", {"AGGREGATE": "1"})
    job = endpoint.run({"count": 4})
    record = endpoint.wait_for(job, timeout_s=60)
    assert record["status"] == "COMPLETED" and record["output"] == [{"n": n} for n in range(4)], record
    broken = endpoint.wait_for(endpoint.run({"count": 2, "fail": True}))
    assert broken["status"] == "FAILED" and "broke after the last chunk" in str(broken), broken


def test_jobs_follow_each_other_without_the_pause(variant):
    gaps = gaps_of_jobs(variant, 12)
    # With the pause, none is shorter than it. A busy computer makes some longer.
    if variant.is_edited:
        assert gaps[3] < 0.5 * PAUSE_S, f"the times between jobs are {gaps} s"


def test_the_sdk_pauses_where_the_runtime_is_off(server):
    gaps = gaps_of_jobs(Variant(server, *UNCHANGED[-1]), 4)
    assert gaps[0] > 0.9 * PAUSE_S, f"the SDK no longer pauses: the times between jobs are {gaps} s"


def gaps_of_jobs(variant: Variant, count: int) -> list[float]:
    """The times from take to take of one worker, for that many jobs that wait for it; the shortest first."""
    endpoint = variant.endpoint("echo.py")
    endpoint.runsync(wait_ms=90000)
    jobs = [endpoint.run({"n": n}) for n in range(count)]
    assert [endpoint.wait_for(job)["output"]["echo"]["n"] for job in jobs] == list(range(count))
    attempts = [endpoint.ok("GET", f"/jobs/{job}")["attempts"][0] for job in jobs]
    assert len({attempt["worker"] for attempt in attempts}) == 1, attempts
    taken = [datetime.fromisoformat(attempt["takenAt"]) for attempt in attempts]
    return sorted((later - earlier).total_seconds() for earlier, later in itertools.pairwise(taken))
