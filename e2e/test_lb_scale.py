"""A load-balancing endpoint with very many requests and connections: none is lost, each answer is right, each costs little."""

import os
import re
import socket
import subprocess
import threading

import pytest

from harness.client import Api
from harness.hostile_clients import ConnectionSwarm, ProcessStats, head, raise_descriptor_limit
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until
from test_load_balancing import call, make

REQUESTS = int(os.environ.get("LONGSHORE_LB_REQUESTS", "5000"))
"""The requests during three replacements of all workers."""
CONNECTIONS = int(os.environ.get("LONGSHORE_LB_IDLE", "500"))
"""Idle WebSockets, with twice as many idle connections; fewer if the limit of open files is lower."""
RESERVED = 600
"""Descriptors that the server needs for other things."""
SOCKET_KB, CONNECTION_KB = 20, 20
ALLOCATED_MB = 4
"""What the allocator may keep beside that, for few connections."""
ASKERS = 4


@pytest.fixture(scope="module")
def lb_api():
    server = Server(flags=("--rate-limits", "off"), config=QUICK).start()
    yield Api(server)
    server.close()


class Asker:
    """One connection over which requests that may not be repeated follow each other."""

    def __init__(self, endpoint):
        self.port = endpoint.api.server.port
        self.request = head(f"POST /lb/{endpoint.id}/fine", "Content-Length: 1") + b"x"
        self.done = 0
        self.pids: set[bytes] = set()
        self.failure = ""
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=240) as connection:
                while not self._stops.is_set():
                    connection.sendall(self.request)
                    answer = b""
                    while not answer.endswith(b"\r\n\r\nhello"):
                        piece = connection.recv(65_536)
                        assert piece, f"the connection ended after {answer!r}"
                        answer += piece
                    assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
                    self.pids.add(re.search(rb"x-pid: (\d+)", answer).group(1))
                    self.done += 1
        except (OSError, AssertionError) as error:
            self.failure = repr(error)

    def stop(self) -> None:
        self._stops.set()
        self._thread.join()


def test_no_request_is_lost_in_three_rolling_replacements(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=2, workersMax=3)
    call(endpoint, "GET", "/fine")
    askers = [Asker(endpoint) for _ in range(ASKERS)]

    def failures():
        return [asker.failure for asker in askers if asker.failure]

    try:
        for version in range(1, 4):
            before = {pid for asker in askers for pid in asker.pids}
            lb_api.ok("PATCH", f"/v1/templates/{endpoint.record['templateId']}", json={"env": {"APP_VERSION": str(version)}})

            def replaced():
                if failures():
                    return True
                workers = lb_api.ok("GET", f"/v1/endpoints/{endpoint.id}?includeWorkers=true")["workers"]
                pids = {pid for asker in askers for pid in asker.pids}
                assert len({worker.get("version") for worker in workers}) == 1 and len(pids - before) >= 2, workers
                done = sum(asker.done for asker in askers)
                assert done >= REQUESTS * version / 3, f"{done} requests"
                return True

            until(replaced, "the workers are replaced under load", 600, every_s=0.1)
    finally:
        for asker in askers:
            asker.stop()
    done = sum(asker.done for asker in askers)
    assert not failures(), (failures(), done)
    lb = endpoint.health()["lb"]
    assert lb["requests"] == {"1xx": 0, "2xx": done + 1, "3xx": 0, "4xx": 0, "5xx": 0, "refused": 0}, (lb, done)
    print(f"{done} requests during three replacements, {lb['retries']} sent again")


def test_every_answer_to_h2load_is_right(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=2, workersMax=2)
    call(endpoint, "GET", "/fine")
    count = max(REQUESTS // 3, 1000)
    command = ["h2load", "--h1", "-n", str(count), "-c", "16", "-t", "1", "-H", f"Authorization: Bearer {ADMIN_KEY}"]
    told = subprocess.run([*command, f"{lb_api.server.url}/lb/{endpoint.id}/fine"], capture_output=True, text=True, timeout=500)
    assert told.returncode == 0, told.stderr
    assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in told.stdout, told.stdout
    assert f"status codes: {count} 2xx, 0 3xx, 0 4xx, 0 5xx" in told.stdout, told.stdout
    lb = until(lambda: (lb := endpoint.health()["lb"])["durationMs"]["count"] == count + 1 and lb, "all have ended")
    assert lb["requests"]["2xx"] == count + 1 and lb["requests"]["refused"] == 0


def open_in_steps(swarm: ConnectionSwarm, count: int, request: bytes, end: bytes) -> None:
    """Opens connections, each with a request, and waits for the answers: no more together than a listener's backlog has."""
    left = count
    while left > 0:
        swarm.connect(min(left, 250), request)
        left -= 250

        def answered():
            swarm.receive(0.05)
            assert swarm.ended == 0, f"{swarm.ended} ended"
            return all(answer.endswith(end) for answer in swarm.received.values())

        until(answered, "all connections have their answer", 60)


def test_an_idle_websocket_costs_little(lb_api):
    count = min(CONNECTIONS, (raise_descriptor_limit() - RESERVED) // 2)
    endpoint = make(lb_api, "idle_sockets.py", workersMin=1, scalerValue=1_000_000, lb={"idleTimeoutMs": 0})
    call(endpoint, "GET", "/fine")
    upgrade = head(
        f"GET /lb/{endpoint.id}/ws", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    stats = ProcessStats(lb_api.server.process.pid)
    with stats, ConnectionSwarm(lb_api.server.port) as swarm:
        open_in_steps(swarm, count, upgrade, b"\r\n\r\n")
        assert all(answer.startswith(b"HTTP/1.1 101 ") for answer in swarm.received.values())
        endpoint.wait_health("jobs", "inProgress", count)
        grown_mb = stats.grown_mb()
        print(f"{count} idle WebSockets: {grown_mb:.1f} MB, {grown_mb * 1e3 / count:.1f} kB each")
        assert grown_mb < ALLOCATED_MB + count * SOCKET_KB / 1e3, grown_mb
        # Each of them works.
        frame = b"\x81\x85\0\0\0\0hello"
        swarm.send(frame)

        def echoed():
            swarm.receive(0.05)
            return all(answer.endswith(frame) for answer in swarm.received.values())

        until(echoed, "every WebSocket is alive", 60)
    endpoint.wait_health("jobs", "inProgress", 0)


def test_an_idle_connection_costs_little(lb_api):
    count = min(CONNECTIONS * 2, raise_descriptor_limit() - RESERVED)
    endpoint = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1_000_000)
    call(endpoint, "GET", "/fine")
    with ProcessStats(lb_api.server.process.pid) as stats, ConnectionSwarm(lb_api.server.port) as swarm:
        open_in_steps(swarm, count, head(f"GET /lb/{endpoint.id}/fine"), b"\r\n\r\nhello")
        assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in swarm.received.values())
        endpoint.wait_health("jobs", "inProgress", 0)
        grown_mb = stats.grown_mb()
        print(f"{count} idle connections: {grown_mb:.1f} MB, {grown_mb * 1e3 / count:.1f} kB each")
        assert grown_mb < ALLOCATED_MB + count * CONNECTION_KB / 1e3, grown_mb
        assert call(endpoint, "GET", "/fine").content == b"hello"
