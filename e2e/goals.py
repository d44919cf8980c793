"""Measures what the project promises to stay under, on this machine. Not part of the test suite.

usage: LONGSHORE_BIN=target/release/longshore python e2e/goals.py [--jobs 1000000] [NAME...]
names: size start latency million (all by default)

The client shares the machine with the server and is written in Python: the figures are upper bounds.
"""

import argparse
import asyncio
import json
import multiprocessing
import shutil
import statistics
import time
from http.client import HTTPConnection
from pathlib import Path

from harness.client import ADMIN_KEY, Api
from harness.server import Server, binary


def say(name: str, value: str, bar: str) -> None:
    print(f"{name:<52} {value:>14}   bar {bar}", flush=True)


def size(_) -> None:
    say("binary", f"{Path(binary()).stat().st_size / 1e6:.1f} MB", "<= 30 MB")


def start(_) -> None:
    """From the start of the process to the first 200 of /readyz, on an empty folder."""
    taken = []
    for _ in range(10):
        server = Server()
        # The port is chosen beforehand so that nothing but the server is waited for.
        server.start()
        server.terminate()
        shutil.rmtree(server.data)
        began = time.perf_counter()
        server.process = server.spawn()
        while not _ready(server.port):
            time.sleep(0.0005)
        taken.append((time.perf_counter() - began) * 1000)
        server.close()
    say("start to ready on an empty folder, median of 10", f"{statistics.median(taken):.1f} ms", "<= 50 ms")


def _ready(port: int) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", port, timeout=2)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False


def _work(port: int, endpoint: str, token: str, jobs: int) -> None:
    """A worker in a process of its own: takes one job at a time and reports it immediately."""
    connection = HTTPConnection("127.0.0.1", port, timeout=40)
    headers = {"Authorization": token}
    done = 0
    while done < jobs:
        connection.request("GET", f"/v2/{endpoint}/job-take/bar?gpu=x&job_in_progress=0", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            continue
        job = json.loads(body)["id"]
        connection.request(
            "POST", f"/v2/{endpoint}/job-done/bar/{job}?gpu=x&isStream=false", b'{"output": 1}', headers
        )
        connection.getresponse().read()
        done += 1


def latency(_) -> None:
    """`/runsync` of a no-op job; the worker's own next poll is not part of it."""
    server = Server(flags=("--rate-limits", "off")).start()
    endpoint = Api(server).external()
    count = 1000
    token = endpoint.worker_token()["token"]
    worker = multiprocessing.Process(target=_work, args=(server.port, endpoint.id, token, count))
    worker.start()
    connection = HTTPConnection("127.0.0.1", server.port, timeout=40)
    headers = {"Authorization": f"Bearer {ADMIN_KEY}", "Content-Type": "application/json"}
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        connection.request("POST", f"/v2/{endpoint.id}/runsync", b'{"input":{}}', headers)
        answer = connection.getresponse()
        record = json.loads(answer.read())
        taken.append((time.perf_counter() - began) * 1000)
        assert record["status"] == "COMPLETED", record
    worker.join()
    taken.sort()
    for name, at in (("p50", count // 2), ("p99", count * 99 // 100)):
        say(f"warm runsync, one client, one worker, {name}", f"{taken[at]:.2f} ms", "<= 2 ms (p50)")
    server.close()


class Submitter(asyncio.Protocol):
    """One connection that keeps `DEPTH` submits in flight."""

    DEPTH = 16

    def __init__(self, request: bytes, budget: list[int], done: asyncio.Future, tally: list[int]):
        self.request, self.budget, self.done, self.tally = request, budget, done, tally
        self.in_flight = 0
        self.rest = b""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self._send(self.DEPTH)

    def _send(self, count: int) -> None:
        count = min(count, self.budget[0])
        self.budget[0] -= count
        self.in_flight += count
        if count:
            self.transport.write(self.request * count)
        elif self.in_flight == 0 and not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        accepted = data.count(b'"IN_QUEUE"}')
        # Complete answers end with their body; what comes after the last one is kept for the next read.
        cut = data.rfind(b'"IN_QUEUE"}')
        self.rest = data[cut + len(b'"IN_QUEUE"}'):] if cut >= 0 else data
        assert b"HTTP/1.1 4" not in data and b"HTTP/1.1 5" not in data, data[:500]
        self.tally[0] += accepted
        self.in_flight -= accepted
        self._send(accepted)


async def _submit(port: int, endpoint: str, jobs: int, connections: int = 128) -> float:
    """Hands in `jobs`; answers the rate per second."""
    body = b'{"input":{"prompt":"a small job","n":1}}'
    request = (
        f"POST /v2/{endpoint}/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    loop = asyncio.get_running_loop()
    budget, tally, ends, transports = [jobs], [0], [], []
    began = time.perf_counter()
    for _ in range(connections):
        end = loop.create_future()
        ends.append(end)
        transport, _ = await loop.create_connection(
            lambda end=end: Submitter(request, budget, end, tally), "127.0.0.1", port
        )
        transports.append(transport)
    await asyncio.gather(*ends)
    rate = tally[0] / (time.perf_counter() - began)
    assert tally[0] == jobs, tally
    for transport in transports:
        transport.close()
    return rate


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    return 0.0


def million(asked) -> None:
    """Fills the queue in ten parts; then restarts on it."""
    server = Server(flags=("--rate-limits", "off"), config="log_level = \"warn\"\n").start()
    endpoint = Api(server).external()
    rates = []
    for part in range(10):
        rates.append(asyncio.run(_submit(server.port, endpoint.id, asked.jobs // 10)))
        print(f"  part {part}: {rates[-1]:,.0f} jobs/s, {_resident_mb(server.process.pid):.0f} MB", flush=True)
    say(f"{asked.jobs:,} queued jobs, resident", f"{_resident_mb(server.process.pid):.0f} MB", "<= 210 MB (200 MiB)")
    say("submit rate, last tenth / first tenth", f"{rates[-1] / rates[0]:.2f}", ">= 0.8")
    assert endpoint.health()["jobs"]["inQueue"] == asked.jobs
    server.kill()
    began = time.perf_counter()
    server.start()
    say("restart after kill -9 to ready", f"{time.perf_counter() - began:.2f} s", "<= 3 s")
    say("resident after the restart", f"{_resident_mb(server.process.pid):.0f} MB", "<= 210 MB (200 MiB)")
    assert endpoint.health()["jobs"]["inQueue"] == asked.jobs
    server.kill()
    server.close()


BARS = {"size": size, "start": start, "latency": latency, "million": million}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("names", nargs="*", metavar="NAME")
    asked = parser.parse_args()
    for name in asked.names or BARS:
        BARS[name](asked)
