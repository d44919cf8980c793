"""Clients that use up connections, time and memory: the server stays within bounds, sheds them, and serves the others.

Every test says how much memory the attack may cost and why, and a good client works all the while.
"""

import os
import sys
import threading
import time

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.hostile_clients import GoodClient, ConnectionSwarm, ProcessStats, Wire, head, raise_descriptor_limit
from harness.wait import until

CONNECTIONS = int(os.environ.get("LONGSHORE_SLOW_CONNECTIONS", "10000"))
PARKED = int(os.environ.get("LONGSHORE_PARKED", "5000"))
UNREAD_S = float(os.environ.get("LONGSHORE_UNREAD_S", "20"))
GIGABYTE = 1_000_000_000


def tell(what: str) -> None:
    """Prints figures, visible with `-s`."""
    print(what, file=sys.stderr)


def wait_until_ended(swarm: ConnectionSwarm, timeout_s: float, trickle: bytes | None = None) -> float:
    """Waits until the server has disconnected a whole swarm, which sends a few bytes every second; returns the seconds."""
    began = time.monotonic()
    last = began
    while swarm.open and time.monotonic() - began < timeout_s:
        swarm.receive(0.2)
        if trickle and time.monotonic() - last >= 1:
            last = time.monotonic()
            swarm.send(trickle)
    assert not swarm.open, f"{len(swarm.open)} connections are still open after {timeout_s} s"
    return time.monotonic() - began


def test_slow_loris(besieged):
    """Half of them trickle a head, half a body; all are shed, and meanwhile others are served."""
    endpoint = Api(besieged).external()
    with ProcessStats(besieged.process.pid) as stats, GoodClient(endpoint) as good, ConnectionSwarm(besieged.port) as swarm:
        swarm.connect(CONNECTIONS // 2, b"GET /healthz HTTP/1.1\r\nHost: longshore\r\nX-Slow: ")
        swarm.connect(CONNECTIONS // 2, head(f"POST {endpoint.mount}/run", "Content-Length: 20000") + b'{"input":')
        seconds = wait_until_ended(swarm, 180, b"x")
        good.stop()
        tell(f"{CONNECTIONS} slow connections: shed after {seconds:.1f} s, {stats.grown_mb():.0f} MB; {good.summary()}")
        good.was_served()
        # Per connection: a task, an 8 KB buffer, a parsed head.
        assert stats.grown_mb() < 20 + CONNECTIONS * 0.03


def test_heads_that_grow_and_never_end(besieged):
    """Each stops at the size of the largest head: the server reads no further, or disconnects."""
    endpoint = Api(besieged).external()
    count = CONNECTIONS // 20
    with ProcessStats(besieged.process.pid) as stats, GoodClient(endpoint) as good, ConnectionSwarm(besieged.port) as swarm:
        swarm.connect(count, b"GET /healthz HTTP/1.1\r\nHost: longshore\r\nX-Large: ")
        for _ in range(40):
            swarm.send(b"x" * 10_000)
            swarm.receive()
        seconds = wait_until_ended(swarm, 180)
        good.stop()
        tell(f"{count} endless heads: shed after {seconds:.1f} s, {stats.grown_mb():.0f} MB; {good.summary()}")
        good.was_served()
        # 64 KB of head each, in a buffer that may have doubled.
        assert stats.grown_mb() < 20 + count * 0.15


def test_a_server_out_of_descriptors(fresh_server):
    """More connections than the server may have files: it does not spin, keeps some for its own work, serves
    connected clients, and accepts further ones when descriptors are free."""
    raise_descriptor_limit()
    config = QUICK + "worker_hold_ms = 1000\n"
    server = fresh_server(flags=("--rate-limits", "off"), config=config, prefix=("prlimit", "--nofile=600:600"))
    endpoint = Api(server).external()
    with ProcessStats(server.process.pid) as stats, ConnectionSwarm(server.port) as swarm:
        assert endpoint.health()["jobs"]["inQueue"] == 0
        swarm.connect(650, b"GET /healthz HTTP/1.1\r\nHost: longshore\r\nX-Slow: ")
        until(lambda: stats.descriptors() > 350, "connections are accepted", 10)
        used = stats.cpu_s()
        began = time.monotonic()
        # The connection that was there before works, and so does what needs files: a payload of its own.
        job = endpoint.run({"text": "x" * 3_000_000})
        assert endpoint.status(job)["status"] == "IN_QUEUE"
        assert stats.descriptors() < 600
        seconds = wait_until_ended(swarm, 180)
        used = stats.cpu_s() - used
        tell(f"650 connections for 600 descriptors: shed after {seconds:.1f} s, {used:.2f} s of processor time")
        assert used < 0.3 * (time.monotonic() - began), "it waits, it does not spin"
    until(lambda: Api(server).call("GET", "/readyz", timeout=60).status_code == 200, "newcomers are served", 20)
    assert len(server.log().splitlines()) < 100, "and the log is not flooded"


HALF_OPEN = {
    "shorter than its length": (("Content-Length: 5000",), b'{"input":'),
    "nothing of its length": (("Content-Length: 9000000",), b""),
    "a chunk that does not end": (("Transfer-Encoding: chunked",), b"ffff\r\n{"),
    "chunks without an end": (("Transfer-Encoding: chunked",), b'1\r\n{\r\n1\r\n"\r\n'),
    "half a chunk's size": (("Transfer-Encoding: chunked",), b"ff"),
    "never asked for": (("Content-Length: 100", "Expect: 100-continue"), b""),
}


def test_bodies_that_stop(besieged):
    """Silence, half a close or a reset within a body: refused or dropped in time, and nothing is left behind."""
    endpoint = Api(besieged).external()
    pid = besieged.process.pid
    with ProcessStats(pid) as stats, GoodClient(endpoint) as good:
        with ConnectionSwarm(besieged.port) as swarm:
            for headers, body in HALF_OPEN.values():
                for path in ("run", "runsync?wait=1000"):
                    swarm.connect(25, head(f"POST {endpoint.mount}/{path}", *headers) + body)
            for headers, body in HALF_OPEN.values():
                for ending in ("half close", "reset"):
                    with Wire(besieged.port) as wire:
                        wire.send(head(f"POST {endpoint.mount}/run", *headers) + body)
                        wire.half_close() if ending == "half close" else wire.reset()
            seconds = wait_until_ended(swarm, 180)
        good.stop()
        until(lambda: stats.descriptors() < 100, "their connections are closed", 10)
        tell(f"300 bodies that stop: shed after {seconds:.1f} s, {stats.grown_mb():.0f} MB; {good.summary()}")
        good.was_served()
        assert endpoint.health()["jobs"]["inQueue"] == 0, "none of them became a job"
        # 9 MB are announced by a sixth of them: memory is taken as bytes come.
        assert stats.grown_mb() < 60


def routes_with_bodies(endpoint) -> dict[str, tuple[str, str]]:
    """Every kind of route that reads a body: its path, and the credential."""
    token = FakeWorker(endpoint).token
    key = endpoint.api.key
    return {
        "run": (f"{endpoint.mount}/run", key),
        "runsync": (f"{endpoint.mount}/runsync", key),
        "cancel": (f"{endpoint.mount}/cancel/{endpoint.run()}", key),
        "a result": (f"{endpoint.mount}/job-done/w/{endpoint.run()}?x", token),
        "a chunk": (f"{endpoint.mount}/job-stream/w/{endpoint.run()}?x", token),
        "an endpoint": ("/v1/endpoints", key),
        "a template": ("/v1/templates", key),
        "nowhere": ("/v2/nowhere/run", key),
        "a stranger": (f"{endpoint.mount}/run", "ls_unknown"),
    }


def test_gigabyte_bodies(besieged):
    """Announced or in endless chunks, on every route that reads a body: cut off far before the gigabyte."""
    endpoint = Api(besieged).external()
    routes = routes_with_bodies(endpoint)
    worked = Api(besieged).external()
    longest = 0
    with ProcessStats(besieged.process.pid) as stats, GoodClient(worked) as good:
        for name, (path, credential) in routes.items():
            for framing in (f"Content-Length: {GIGABYTE}", "Transfer-Encoding: chunked"):
                with Wire(besieged.port) as wire:
                    wire.send(head(f"POST {path}", framing, key=credential))
                    chunk = b"x" * 65_536
                    chunk = b"10000\r\n" + chunk + b"\r\n" if "chunked" in framing else chunk
                    sent = wire.flood(chunk, GIGABYTE)
                    longest = max(longest, sent)
                    # The most that any route takes or throws away, and what the kernel holds on the way.
                    assert sent < 160_000_000, f"{name}, {framing}: {sent} bytes were taken"
        good.stop()
        tell(f"gigabyte bodies: at most {longest / 1e6:.0f} MB taken, {stats.grown_mb():.0f} MB; {good.summary()}")
        good.was_served()
        # One at a time: the largest body that is kept (64 MB, in a buffer that may have doubled).
        assert stats.grown_mb() < 200
    with Wire(besieged.port) as wire:
        wire.send(head(f"POST {endpoint.mount}/run", f"Content-Length: {GIGABYTE}"))
        assert wire.first_status() == 413, "and a client that listens is told before it sends"


def test_large_slow_bodies_do_not_keep_small_ones_out(besieged):
    """They may use up the memory for bodies, but for the part that is kept for small ones."""
    endpoint = Api(besieged).external()
    with ProcessStats(besieged.process.pid) as stats, GoodClient(endpoint) as good, ConnectionSwarm(besieged.port) as swarm:
        swarm.connect(200, head(f"POST {endpoint.mount}/runsync", "Content-Length: 20000000") + b'{"input":')
        large = {"text": "x" * 5_000_000}
        refused = endpoint.call("POST", "/run", json={"input": large})
        assert refused.status_code == 503 and refused.json()["code"] == "overloaded"
        seconds = wait_until_ended(swarm, 180, b"x")
        assert endpoint.call("POST", "/run", json={"input": large}).status_code == 200, "and then there is room again"
        good.stop()
        tell(f"200 slow large bodies: shed after {seconds:.1f} s, {stats.grown_mb():.0f} MB; {good.summary()}")
        good.was_served()
        assert stats.grown_mb() < 60


def test_parked_waits(besieged):
    """This number of clients wait concurrently for a result; then a purge answers all of them."""
    # Each is a connection of the server's too; some files are its own.
    count = min(PARKED, raise_descriptor_limit() - 300)
    api = Api(besieged)
    endpoint, worked = api.external(), api.external()
    body = b'{"input":{}}'
    request = head(f"POST {endpoint.mount}/runsync?wait=300000", f"Content-Length: {len(body)}") + body
    with ProcessStats(besieged.process.pid) as stats, GoodClient(worked) as good, ConnectionSwarm(besieged.port) as swarm:
        began = time.monotonic()
        swarm.connect(count, request)
        until(lambda: endpoint.health()["jobs"]["inQueue"] == count, "all of them wait", 60, 0.2)
        parked_s = time.monotonic() - began
        parked_mb = stats.now_mb() - stats.before_mb
        began = time.monotonic()
        purge = threading.Thread(target=lambda: endpoint.ok("POST", "/purge-queue", timeout=60))
        purge.start()
        answered = set()
        while len(answered) < count and time.monotonic() - began < 300:
            swarm.receive(0.2)
            answered = {fd for fd, data in swarm.received.items() if b"}" in data}
        purge.join()
        assert len(answered) == count, f"{len(answered)} of {count} were answered"
        assert all(b"HTTP/1.1 200" in data and b'"CANCELLED"' in data for data in swarm.received.values())
        good.stop()
        tell(
            f"{count} parked waits in {parked_s:.1f} s: {parked_mb:.0f} MB, {parked_mb * 1000 / count:.1f} KB each; all "
            f"answered {time.monotonic() - began:.1f} s after the purge; {good.summary()}"
        )
        good.was_served()
        # Per wait: a connection's buffers and task, a request's future, and the job.
        assert stats.grown_mb() < 20 + count * 0.05


@pytest.mark.timeout(600 + UNREAD_S)
def test_readers_that_do_not_read(fresh_server):
    """200 clients ask for an output of 9.9 MB and do not read it, and workers do not read batches of 60 such inputs: bytes
    in flight stay within `bytes_in_flight_max`, and small jobs are served meanwhile."""
    raise_descriptor_limit()
    bound_mb, large = 100, "x" * 9_900_000
    config = QUICK + f"worker_hold_ms = 1000\nbytes_in_flight_max = {bound_mb}000000\n"
    server = fresh_server(flags=("--rate-limits", "off"), config=config)
    api = Api(server)
    read, taken, worked = api.external(), api.external(), api.external()
    job = read.run({})
    reader = FakeWorker(read)
    assert reader.take()["id"] == job
    reader.done(job, {"output": large})
    jobs = [taken.run({"text": large}) for _ in range(60)]
    # The allocator keeps what the bodies took: a fresh process has only what is read for the clients.
    assert server.terminate() == 0
    server.start()
    worker = FakeWorker(taken)
    look = head(f"GET {read.mount}/status/{job}")
    with ProcessStats(server.process.pid) as stats, GoodClient(worked) as good:
        began = time.monotonic()
        rounds = 0
        while rounds == 0 or time.monotonic() - began < UNREAD_S:
            with ConnectionSwarm(server.port) as swarm:
                for other in range(3):
                    path = f"/v2/{taken.id}/job-take-batch/unread-{rounds}-{other}?batch_size=60"
                    swarm.connect(1, head(f"GET {path}", key=worker.token))
                swarm.connect(200, look)
                until_s = time.monotonic() + min(10, UNREAD_S)
                until(lambda: time.monotonic() > until_s, "the time without readers has passed", 30, 0.2)
            rounds += 1
        good.stop()
        most_mb = max(stats.peak_mb, stats.now_mb())
        tell(f"{rounds} times 200 clients that do not read: at most {most_mb:.0f} MB in all; {good.summary()}")
        good.was_served()
        # All memory of the server: bytes in flight, and its own.
        assert most_mb < bound_mb + 64

    def is_readable() -> bool:
        answer = read.call("GET", f"/status/{job}")
        assert answer.status_code == 200 or answer.json()["code"] == "overloaded", answer.text[:500]
        assert answer.status_code == 200 or answer.headers["Retry-After"] == "1"
        return answer.status_code == 200 and answer.json()["output"] == large

    until(is_readable, "there is room again", 60)
    # In a long run the first jobs end with their workers, which never ping: by retries, or after 600 s by their timeout.
    jobs += [taken.run({"text": large}) for _ in range(5)]
    delivered = {}

    def take() -> bool:
        batch = worker.take_batch(60)
        assert len(batch) <= 2, "a batch is cut where its bytes are enough"
        for got in batch:
            delivered[got["id"]] = got["input"]["text"] == large
            worker.done(got["id"], {"output": 1})
        return len(delivered) >= 5

    until(take, "and jobs are delivered", 60)
    assert set(delivered) <= set(jobs) and all(delivered.values())


def test_an_error_and_a_progress_value_have_a_longest_size(endpoint, worker):
    """A worker's error is cut at 1 MB and says its whole size; a longer progress value is dropped."""
    job = endpoint.run({})
    assert worker.take()["id"] == job
    worker.progress(job, "half")
    worker.progress(job, "x" * 1_000_000)
    assert endpoint.status(job)["output"] == "half", "the last one stays"
    worker.done(job, {"error": "e" * 5_000_000})
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and record["error"].startswith("e" * 1_000_000 + "…")
    assert "5000000 bytes" in record["error"] and len(record["error"]) < 1_000_100
