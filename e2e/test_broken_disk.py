"""A full disk, a failing disk, and one that works again: nothing false is said, and service resumes by itself."""

import re

import pytest
import requests

from harness.client import Api
from harness.disk import Disk
from harness.server import Server
from harness.background_load import BackgroundLoad, is_result
from harness.wait import until

FAULTS = {
    "full": ["write ENOSPC", "create ENOSPC"],
    "writes fail": ["write EIO"],
    "syncs fail": ["sync EIO"],
    "syncs of the log fail": ["sync EIO .log", "sync EIO /log"],
}


@pytest.fixture
def broken(tmp_path):
    """A server that the test starts, and its disk."""
    server = Server(folder=tmp_path, flags=("--rate-limits", "off"))
    disk = Disk(server.data, tmp_path)
    server.environment = disk.environment
    yield server, disk
    disk.work()
    server.close()


def check_refusals(load: BackgroundLoad) -> None:
    for answer in load.refused:
        assert answer.status_code == 503, f"{answer.status_code} {answer.text[:500]}"
        assert int(answer.headers["Retry-After"]) >= 1
        assert set(answer.json()) == {"error", "code"}


def check_promises(load: BackgroundLoad) -> None:
    """Every acknowledged job and result is there, and nothing that was refused."""
    endpoint = load.endpoint
    for job, number in load.submitted.items():
        record = endpoint.status(job)
        assert job not in load.results or is_result(record, load.results[job]), str(record)[:500]
        assert load.results.get(job, number) == number
    counts = endpoint.health()["jobs"]
    there = sum(counts[state] for state in ("completed", "failed", "inProgress", "inQueue"))
    at_most = len(load.submitted) + load.unanswered
    assert len(load.submitted) <= there <= at_most, f"{counts}, {len(load.submitted)} were acknowledged"


def check_not_ready(server: Server, kind: str) -> None:
    """The readiness probe says that changes cannot be stored, and why."""
    until(lambda: requests.get(f"{server.url}/readyz", timeout=60).status_code == 503, "it is not ready")
    answer = requests.get(f"{server.url}/readyz", timeout=60)
    assert answer.status_code == 503 and "changes cannot be stored" in answer.json()["error"], answer.text
    assert kind != "full" or "disk is full" in answer.json()["error"], answer.text
    verbose = requests.get(f"{server.url}/readyz?verbose", timeout=60)
    assert verbose.status_code == 503 and "failed store: " in verbose.text, verbose.text


def check_log(server: Server, kind: str) -> None:
    """The log says what is wrong."""
    log = server.log()
    assert re.search("is full|No space left" if kind == "full" else "(?i)I/O error|input/output error", log), log[-4000:]
    assert "panicked" not in log


@pytest.mark.parametrize("durability", ["synced", "buffered"])
@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_false_is_said_while_the_disk_fails(broken, kind, durability):
    """Twice it fails under load and works again; in the end the server is killed."""
    server, disk = broken
    load = BackgroundLoad(Api(server.start()).external(durability=durability))
    try:
        load.wait_for_more()
        looks, refused_looks = load.looks, load.refused_looks
        for _ in range(2):
            disk.fail(*FAULTS[kind])
            load.wait_refused()
            assert requests.get(f"{server.url}/healthz", timeout=60).status_code == 200
            check_not_ready(server, kind)
            disk.work()
            until(lambda: requests.get(f"{server.url}/readyz", timeout=60).status_code == 200, "it is ready again")
            load.wait_for_more()
        looks, refused_looks = load.looks - looks, load.refused_looks - refused_looks
        assert refused_looks < looks / 2, f"{refused_looks} of {looks} reads were refused"
    finally:
        disk.work()
        load.stop()
    check_refusals(load)
    server.kill()
    server.start()
    check_promises(load)
    check_log(server, kind)


@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_is_lost_if_the_server_is_killed_while_the_disk_fails(broken, kind):
    server, disk = broken
    load = BackgroundLoad(Api(server.start()).external())
    try:
        for _ in range(3):
            load.wait_for_more()
            disk.fail(*FAULTS[kind])
            load.wait_refused(5)
            server.kill()
            disk.work()
            server.start()
        load.wait_for_more()
    finally:
        disk.work()
        load.stop()
    check_refusals(load)
    check_promises(load)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_server_on_a_broken_disk_does_not_start_and_says_why(broken, kind):
    server, disk = broken
    endpoint = Api(server.start()).external()
    job = endpoint.run({"n": 1})
    server.kill()
    disk.fail(*FAULTS[kind])
    process = server.spawn()
    try:
        assert process.wait(60) not in (0, None)
    finally:
        process.kill()
    check_log(server, kind)
    assert str(server.data) in server.log(), "it names the folder"
    disk.work()
    server.start()
    assert endpoint.status(job)["status"] == "IN_QUEUE"


@pytest.mark.parametrize("kind", ["full", "writes fail"])
def test_workers_outlive_a_broken_disk(broken, kind):
    """Their logs and their records are on the same disk; and one has a result to report meanwhile."""
    server, disk = broken
    endpoint = Api(server.start()).endpoint("sleep_blocking.py", workersMin=1, workersMax=1)
    endpoint.runsync({"seconds": 0})
    (before,) = server.workers(endpoint.id)
    job = endpoint.run({"seconds": 1})
    endpoint.wait_for(job, "IN_PROGRESS")
    disk.fail(*FAULTS[kind])
    until(lambda: "endpoint change not stored" in server.log(), "the result is refused")
    assert endpoint.call("POST", "/run", json={"input": {}}).status_code == 503
    disk.work()
    assert endpoint.wait_for(job)["status"] == "COMPLETED"
    assert endpoint.runsync({"seconds": 0})["status"] == "COMPLETED"
    assert server.workers(endpoint.id) == [before], "the worker is the same process"


# Programs that become the server, with a log that cannot be written.
LOGS = {
    "its disk is full": ("sh", "-c", 'exec "$@" 2>/dev/full', "sh"),
    "no reader": ("bash", "-c", 'exec "$@" 2> >(exec true)', "bash"),
    "there is none": ("sh", "-c", 'exec "$@" 2>&-', "sh"),
}


@pytest.mark.parametrize("log", LOGS)
def test_a_log_that_cannot_be_written_changes_nothing_else(fresh_server, log):
    server = fresh_server(prefix=LOGS[log])
    endpoint = Api(server).endpoint("echo.py", workersMax=1)
    assert endpoint.runsync({"n": 1})["output"]["echo"] == {"n": 1}
    assert endpoint.call("POST", "/run", data=b"{").status_code == 400
    refused = requests.post(f"{server.url}{endpoint.mount}/run", json={"input": {}}, timeout=60)
    assert refused.status_code == 401
    endpoint.ok("POST", "/purge-queue")
    endpoint.patch(workersMax=0)
    until(lambda: endpoint.workers() == [], "its worker ends")
    assert server.log().count("ERROR") == 0
    assert server.terminate() == 0
