"""Workers in cgroups of their own: what nothing else leads back to a worker ends with it all the same."""

import signal

import pytest

from harness import processes
from harness.cgroups import CgroupFolder
from harness.client import Api
from harness.server import QUICK, Server
from harness.wait import until


@pytest.fixture
def cgroup():
    """A fresh cgroup v2 folder."""
    folder = CgroupFolder()
    yield folder
    folder.close()


@pytest.fixture
def server(cgroup):
    """A server whose workers get cgroups there."""
    server = Server(config=QUICK + f'worker_cgroup = "{cgroup.path}"\n').start()
    yield server
    server.close()


def with_escapee(server):
    """An endpoint, the shim of its worker, and a process that the worker's handler left."""
    endpoint = Api(server).endpoint("escapee.py", workersMax=1)
    escapee = int(endpoint.runsync({}, wait_ms=40000)["output"]["escapee"])
    (worker,) = endpoint.workers()
    shim = processes.parent(worker.pid)
    assert processes.lives(escapee) and escapee not in processes.worker_pids(server.port), "no variable names its worker"
    return endpoint, worker, shim, escapee


def test_an_escaped_process_ends_although_the_shim_was_killed(server, cgroup):
    endpoint, worker, shim, escapee = with_escapee(server)
    (leaf,) = cgroup.leaves()
    assert leaf.name.endswith(worker.worker)
    assert cgroup.of(escapee) == cgroup.of(worker.pid) == leaf.name and cgroup.of(shim) == "shims"
    processes.send(shim, signal.SIGKILL)
    until(lambda: not processes.lives(escapee), "the escaped process is gone", 20)
    until(lambda: not leaf.exists(), "its worker's cgroup is gone", 20)
    assert endpoint.runsync({}, wait_ms=40000)["status"] == "COMPLETED", "a fresh worker takes its place"


def test_the_next_server_ends_what_escaped(server, cgroup):
    _, _, shim, escapee = with_escapee(server)
    (leaf,) = cgroup.leaves()
    server.kill()
    processes.send(shim, signal.SIGKILL)
    until(lambda: not processes.lives(shim), "the shim is gone", 20)
    assert processes.lives(escapee) and leaf.exists(), "no process ends it yet"
    server.start()
    until(lambda: not processes.lives(escapee), "the escaped process is gone", 20)
    until(lambda: not leaf.exists(), "its worker's cgroup is gone", 20)


def test_a_worker_is_adopted_with_its_cgroup(server, cgroup):
    endpoint, worker, shim, escapee = with_escapee(server)
    server.kill()
    server.start()
    assert [one.pid for one in endpoint.workers()] == [worker.pid] and processes.lives(escapee)
    processes.send(worker.pid, signal.SIGKILL)
    until(lambda: not processes.lives(escapee) and not processes.lives(shim), "the worker is gone with all", 20)
    until(lambda: not any(leaf.name.endswith(worker.worker) for leaf in cgroup.leaves()), "and its cgroup", 20)


def test_an_unknown_leaf_is_removed_at_the_start(server, cgroup):
    _, worker, _, _ = with_escapee(server)
    (leaf,) = cgroup.leaves()
    left = leaf.with_name(leaf.name.removesuffix(worker.worker) + "abcdefgh")
    others = leaf.with_name("longshore-1-1-abcdefgh")
    server.terminate()
    left.mkdir()
    others.mkdir()
    server.start()
    until(lambda: not left.exists(), "the left one is gone", 20)
    assert others.exists() and leaf.exists(), "another server's and a living worker's stay"


def test_a_folder_that_is_no_cgroup_keeps_the_server_from_starting(tmp_path):
    server = Server(config=QUICK + f'worker_cgroup = "{tmp_path}"\n')
    process = server.spawn()
    assert process.wait(20) == 1
    assert "`worker_cgroup` cannot be used" in server.log() and "no folder of a cgroup v2" in server.log()
    server.close()


def test_a_limit_that_cannot_hold_is_told(server, cgroup):
    """Where the file system has the controllers, both limits hold, and nothing is told."""
    api = Api(server)
    endpoint = api.endpoint("echo.py", workersMax=1, memoryBytes=2 << 30, vcpus=1.5)
    assert (endpoint.record["memoryBytes"], endpoint.record["vcpus"]) == (2 << 30, 1.5)
    assert endpoint.runsync({}, wait_ms=40000)["status"] == "COMPLETED", "it runs with or without limits"
    (leaf,) = cgroup.leaves()
    (pod,) = [pod for pod in api.ok("GET", "/v1/pods") if pod["endpointId"] == endpoint.id]
    told = pod.get("unenforcedLimits", "")
    for name, file, value in (("memoryBytes", "memory.max", str(2 << 30)), ("vcpus", "cpu.max", "150000 100000")):
        holds = (leaf / file).exists()
        assert holds == (f"`{name}` does not hold" not in told), told
        assert not holds or (leaf / file).read_text().strip() == value
    assert ("worker limits not enforced" in server.log()) == bool(told)
