"""A disk that is really full: a small file system of its own. The server shows and deletes, and starts on it too."""

import errno
import os
import subprocess

import pytest
import requests

from harness.client import Api
from harness.server import ADMIN_KEY, Server
from harness.wait import until
from test_cli import Cli

DISK_BYTES = 48 << 20
KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}


@pytest.fixture
def small_disk(tmp_path):
    """A server whose data directory is a file system of its own."""
    server = Server(folder=tmp_path)
    server.data.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(server.data)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"NOT RUN, because a file system cannot be mounted (are we root?): {mounted.stderr.decode()}")
    try:
        yield server
    finally:
        try:
            (server.data / "filler").unlink(missing_ok=True)
            server.close()
        finally:
            subprocess.run(["umount", "-l", str(server.data)], check=True)


def fill(server: Server) -> None:
    """Takes all free space of the disk in one step: the server then uses its reserve."""

    def filled() -> bool:
        disk = os.statvfs(server.data)
        try:
            with (server.data / "filler").open("wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, disk.f_bavail * disk.f_frsize)
        except OSError as error:
            # The server has written meanwhile.
            assert error.errno == errno.ENOSPC, error
            return False
        return True

    until(filled, "the disk is full")


def ready(server: Server) -> requests.Response:
    return requests.get(f"{server.url}/readyz", timeout=60)


def is_read_only(server: Server) -> bool:
    shown = requests.get(f"{server.url}/v1/server", headers=KEY, timeout=60).json()
    return shown["state"] == "READ_ONLY" and f"the disk of {server.data}, mounted at {server.data}, is full" in shown["reason"]


def test_a_full_disk_is_looked_at_and_emptied_also_after_a_restart(small_disk, tmp_path):
    server = small_disk
    api = Api(server.start())
    endpoint, other = api.external(), api.external()
    cli = Cli(tmp_path / "config", server.url)
    job = endpoint.run({"n": 1})
    until(lambda: (server.data / "reserve").exists(), "the server has a reserve", 10)

    fill(server)
    until(lambda: is_read_only(server), "the server says that its disk is full", 20)
    assert ready(server).status_code == 503 and "disk is full" in ready(server).json()["error"]
    assert str(server.data) not in ready(server).text, "without a key no folder is named"
    told = requests.get(f"{server.url}/readyz", headers=KEY, timeout=60)
    assert told.status_code == 503 and str(server.data) in told.json()["error"]
    cause = endpoint.ok("GET", f"/explain/{job}")["cause"]
    assert cause["code"] == "store_failing" and "Its disk is full. " in cause["text"], cause
    assert str(server.data) not in cause["text"], "keys that may not read folders ask, too"
    refused = endpoint.call("POST", "/run", json={"input": {}})
    assert refused.status_code == 503 and refused.json()["code"] == "disk_full", refused.text
    said = cli.run("run", endpoint.id, "{}")
    assert said.code == 1 and "the server's disk is full" in said.err and "longshore server" in said.err, said
    assert endpoint.status(job)["status"] == "IN_QUEUE"

    # What would store more is refused before it is read; the answer names the folder and what to do.
    for path in ("/v1/code?name=large", "/v1/templates", f"/v1/endpoints/{endpoint.id}/update"):
        answer = requests.post(f"{server.url}{path}", headers=KEY, data=b"{}", timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (507, "disk_full"), answer.text
        assert str(server.data) in answer.json()["error"] and "delete jobs or endpoints" in answer.json()["error"]
    said = cli.run("template", "create", "--name", "t", "--image", "i")
    assert said.code == 1 and str(server.data) in said.err and "longshore endpoint delete" in said.err, said

    server.kill()
    server.process = server.spawn()
    until(lambda: server._alive() and (tmp_path / "port").exists(), "it starts on the full disk", 30)
    until(lambda: is_read_only(server), "it says so", 30)
    assert endpoint.status(job)["status"] == "IN_QUEUE" and cli.ok("requests", endpoint.id).out.count(job) == 1
    assert str(server.data) in cli.ok("server").out
    assert endpoint.cancel(job)["status"] == "CANCELLED"
    assert endpoint.call("POST", "/run", json={"input": {}}).json()["code"] == "disk_full"
    assert requests.delete(f"{server.url}/v1/endpoints/{other.id}", headers=KEY, timeout=60).status_code == 204

    (server.data / "filler").unlink()
    until(lambda: ready(server).status_code == 200, "it is ready again", 20)
    again = endpoint.run({"n": 2})
    assert endpoint.status(again)["status"] == "IN_QUEUE"
    assert "panicked" not in server.log()
