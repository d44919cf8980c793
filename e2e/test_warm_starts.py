"""Workers that are forks of a zygote behave as those that are started by their command."""

import os
import signal

import pytest

from harness import processes
from harness.client import Api, Endpoint
from harness.server import QUICK, Server
from harness.wait import until

NEVER_TOLD = "horse-battery-staple"


@pytest.fixture(scope="module")
def server():
    server = Server(config=QUICK + "zygotes_max = 2\n").start()
    yield server
    server.close()


def own_kib(pid: int) -> int:
    """The memory of a process that it shares with no other, in KiB."""
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean:", "Private_Dirty:")))


def stop_worker(endpoint: Endpoint) -> None:
    (worker,) = endpoint.workers()
    endpoint.api.ok("POST", f"/v1/endpoints/{endpoint.id}/workers/{worker.worker}/stop")
    until(lambda: not os.path.exists(f"/proc/{worker.pid}"), "the worker has ended", 20)


def output_of_fork(endpoint: Endpoint) -> dict:
    """What a job answers whose worker is a fork: workers are stopped until one is."""

    def forked():
        output = endpoint.runsync(wait_ms=60_000)["output"]
        if output["fork"]:
            return output
        stop_worker(endpoint)
        return None

    return until(forked, "a worker is a fork", 60)


def warm_endpoint(server: Server, **fields) -> Endpoint:
    env = {"OWN": "of the template", "MODEL_API_TOKEN": NEVER_TOLD}
    return Api(server).endpoint("warm.py", env=env, workersMax=1, flashboot=True, **fields)


def test_a_fork_does_what_a_plain_start_does(server):
    endpoint = warm_endpoint(server)
    plain = endpoint.runsync(wait_ms=60_000)["output"]
    assert plain["fork"] is False
    plain_kib = own_kib(plain["pid"])
    stop_worker(endpoint)
    fork = output_of_fork(endpoint)
    assert own_kib(fork["pid"]) < plain_kib / 2, (own_kib(fork["pid"]), plain_kib)
    own = {"fork", "pid", "worker", "worker_of_sdk", "random", "job"}
    assert {name: fork[name] for name in fork.keys() - own} == {name: plain[name] for name in plain.keys() - own}
    assert fork["worker"] == fork["worker_of_sdk"] and fork["worker"] != plain["worker"]
    assert fork["api_token"] == NEVER_TOLD and fork["thread"] == ["of a thread"] and fork["program"] == 4
    (shown,) = endpoint.workers()
    assert (shown.pid, shown.worker) == (fork["pid"], fork["worker"])
    stop_worker(endpoint)
    other = endpoint.runsync(wait_ms=60_000)["output"]
    assert other["fork"] and not set(other["random"]) & set(fork["random"])


def test_without_flashboot_no_worker_is_a_fork(server):
    endpoint = warm_endpoint(server)
    output_of_fork(endpoint)
    endpoint.patch(flashboot=False)
    stop_worker(endpoint)
    assert endpoint.runsync(wait_ms=60_000)["output"]["fork"] is False


def terminated(endpoint: Endpoint) -> dict:
    """The record of a job whose worker gets SIGTERM while it runs, as an operator or a container's runtime sends it."""
    job = endpoint.run({"seconds": 2})
    endpoint.wait_for(job, "IN_PROGRESS")
    (worker,) = endpoint.workers()
    processes.send(worker.pid, signal.SIGTERM)
    record = endpoint.wait_for(job, timeout_s=60)
    until(lambda: not os.path.exists(f"/proc/{worker.pid}"), "the worker has ended", 20)
    return record


def test_sigterm_during_a_job_ends_as_with_a_plain_start(server):
    endpoint = warm_endpoint(server)
    plain = terminated(endpoint)
    output_of_fork(endpoint)
    fork = terminated(endpoint)
    assert (fork["status"], fork.get("retries")) == (plain["status"], plain.get("retries"))
    assert fork["status"] == "COMPLETED"
