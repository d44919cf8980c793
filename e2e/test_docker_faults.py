"""Containers when something dies: the server, the daemon, a container, the disk of the daemon."""

import os
import subprocess

import pytest

from harness.client import Api, unique
from harness.docker import PASSWORD, DockerDaemon, StallingProxy
from harness.docker_endpoint import IMAGE, api, cause, config, daemon, docked, end, endpoint, needs_docker, registry  # noqa: F401
from harness.server import Server
from harness.wait import until

pytestmark = needs_docker

# A killed daemon waits minutes for its own containerd on a busy machine.
kills_daemon = pytest.mark.skipif(
    "LONGSHORE_DAEMON_KILLS" not in os.environ, reason="NOT RUN: kills of the daemon are in `cargo xtask test --long`"
)

LARGE = "longshore-test-large:2"


def stalled(daemon, registry, name: str) -> tuple[StallingProxy, str]:
    """An image whose pull stops in the middle until the proxy is released."""
    daemon.make_image(name, os.urandom(6_000_000))
    image = registry.push(daemon, name)
    daemon.docker("rmi", name)
    proxy = StallingProxy(registry.port, 3_000_000)
    return proxy, image.replace(str(registry.port), str(proxy.port))


def with_login(api: Api) -> dict:
    auth = {"name": unique("auth"), "username": "ada", "password": PASSWORD}
    return {"containerRegistryAuthId": api.ok("POST", "/v1/containerregistryauth", json=auth)["id"]}


def until_pulling(mine) -> None:
    shown = lambda: mine.ok("GET", "/explain")["cause"]
    until(lambda: "MB" in shown()["title"], "the progress of the pull", 60)


def containers(daemon, mine) -> list[str]:
    """The names of the containers of an endpoint."""
    pods = [pod["id"] for pod in mine.api.ok("GET", "/v1/pods") if pod["endpointId"] == mine.id]
    return [name for name in daemon.containers() if any(name.endswith(pod) for pod in pods)]


def container(daemon, mine) -> str:
    (name,) = until(lambda: containers(daemon, mine), "the container", 60)
    return name


@kills_daemon
def test_a_daemon_that_dies_in_the_middle_of_a_pull_pulls_again(daemon, registry):
    server = Server(config=config(daemon)).start()
    proxy, image = stalled(daemon, registry, LARGE)
    try:
        mine = endpoint(Api(server), image, with_login(Api(server)))
        job = mine.run({"n": 1})
        until_pulling(mine)
        daemon.kill()
        assert "daemon" in cause(mine, "start_failed")["text"]
        proxy.released.set()
        daemon.restart()
        assert mine.wait_for(job, timeout_s=120)["status"] == "COMPLETED"
        end(mine)
    finally:
        proxy.close()
        server.close()


def test_a_server_that_dies_in_the_middle_of_a_pull_pulls_again(daemon, registry):
    server = Server(config=config(daemon)).start()
    proxy, image = stalled(daemon, registry, "longshore-test-large:3")
    try:
        mine = endpoint(Api(server), image, with_login(Api(server)))
        job = mine.run({"n": 1})
        until_pulling(mine)
        server.kill()
        assert not [name for name in daemon.containers() if name.startswith("ls-")], "nothing was created"
        proxy.released.set()
        server.start()
        assert mine.wait_for(job, timeout_s=120)["status"] == "COMPLETED"
        end(mine)
    finally:
        proxy.close()
        server.close()


@kills_daemon
def test_nothing_is_lost_and_nothing_runs_twice_when_servers_and_daemons_are_killed_in_turns(daemon):
    server = Server(config=config(daemon)).start()
    try:
        api = Api(server)
        volume = api.ok("POST", "/v1/networkvolumes", json={"name": unique("volume"), "size": 1})["id"]
        mine = endpoint(api, workersMax=2, networkVolumeId=volume, maxRetries=3)
        folder = server.data / "volumes" / volume
        done = {}
        for turn in range(4):
            waiting = {"do": "wait", "path": f"/runpod-volume/go-{turn}"}
            held = mine.run(waiting)
            mine.wait_for(held, "IN_PROGRESS", timeout_s=120)
            jobs = [mine.run({"do": "append", "path": f"/runpod-volume/ran-{turn}", "text": f"{n}\n"}) for n in range(5)]
            if turn % 2 == 0:
                server.kill()
                server.start()
            else:
                daemon.kill()
                daemon.restart()
            (folder / f"go-{turn}").touch()
            for job in [held, *jobs]:
                done[job] = mine.wait_for(job, timeout_s=180)
            assert all(job["status"] == "COMPLETED" for job in done.values()), done
            ran = sorted((folder / f"ran-{turn}").read_text().split())
            if turn % 2 == 0:
                assert ran == [str(n) for n in range(5)], "each job ran once: containers outlive the server"
            else:
                assert set(ran) == {str(n) for n in range(5)}
        end(mine)
        until(lambda: not [name for name in daemon.containers() if name.startswith("ls-")], "no container is left", 60)
    finally:
        server.close()


def test_a_container_that_another_program_ends_is_told_and_its_job_runs_again(api, daemon):
    mine = endpoint(api, maxRetries=1)
    job = mine.run({"do": "wait", "path": "/tmp/go"})
    mine.wait_for(job, "IN_PROGRESS", timeout_s=60)
    first = container(daemon, mine)
    daemon.docker("kill", first)
    second = lambda: [name for name in containers(daemon, mine) if name != first]
    (name,) = until(second, "another container", 60)
    until(lambda: daemon.docker("exec", name, "/bin/sh", "-c", ": > /tmp/go", check=False).returncode == 0, "it runs", 60)
    assert mine.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
    end(mine)
    # Without a retry, the error of the job says who did it.
    alone = endpoint(api, maxRetries=0)
    job = alone.run({"do": "wait", "path": "/tmp/go"})
    alone.wait_for(job, "IN_PROGRESS", timeout_s=60)
    daemon.docker("kill", container(daemon, alone))
    failed = alone.wait_for(job, timeout_s=60)
    assert failed["status"] == "FAILED" and "killed by another program" in failed["error"], failed
    end(alone)


def test_an_image_for_which_there_is_no_space_is_told(daemon, registry):
    daemon.make_image(LARGE, os.urandom(30_000_000))
    image = registry.push(daemon, LARGE)
    small = DockerDaemon(disk_mb=32)
    server = Server(config=config(small))
    try:
        small.start()
        mine = endpoint(Api(server.start()), image, with_login(Api(server)))
        mine.run({})
        assert "the disk of the daemon is full" in cause(mine, "start_failed")["text"]
        end(mine)
    finally:
        server.close()
        small.close()


def test_an_image_without_python_starts_as_any_other_with_flashboot(api):
    script = ["/bin/sh", "-c", "echo there is no python here; exit 3"]
    mine = endpoint(api, template={"dockerEntrypoint": script}, flashboot=True)
    mine.run({})
    told = cause(mine, "workers_crash")
    assert "ended with code 3" in told["text"] and "there is no python here" in str(told), told
    end(mine)


def test_what_a_handler_forked_ends_with_its_container(api):
    mine = endpoint(api, maxRetries=0)
    mark = unique("forked")

    def runs() -> bool:
        # A process may end while its file is read.
        files = subprocess.run("cat /proc/[0-9]*/cmdline", shell=True, capture_output=True).stdout
        return mark.encode() in files

    assert mine.runsync({"do": "fork", "mark": mark}, wait_ms=60000)["status"] == "COMPLETED"
    until(runs, "the forked process", 30)
    assert mine.wait_for(mine.run({"do": "crash"}), timeout_s=60)["status"] == "FAILED"
    until(lambda: not runs(), "the end of what the handler forked", 30)
    end(mine)
