"""Slow, huge and idle clients and workers of a load-balancing endpoint, and what passes through unread."""

import asyncio
import contextlib
import json
import os
import socket
import struct
import time

import pytest
import websockets

from harness import event_loop
from harness.client import Api
from harness.hostile_clients import ProcessStats
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import PATIENCE, until
from test_load_balancing import KEY, call, make

BYTES = int(os.environ.get("LONGSHORE_LB_BYTES", str(64 << 20)))
"""The length of an upload and of a download."""
STREAM_MB = 2.1
"""What the server may take for a transfer: 2 MiB. Buffers of sockets are the kernel's."""
MEMORY_MB = 24
"""What the server may take for a worker that sends without end."""


@pytest.fixture(scope="module")
def lb_api():
    server = Server(flags=("--rate-limits", "off"), config=QUICK).start()
    yield Api(server)
    server.close()


@pytest.fixture(scope="module")
def raw(lb_api):
    """An endpoint whose worker writes its answers by hand. No limit ends a request within the time of a test."""
    return make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"idleTimeoutMs": 0})


def head(endpoint, method: str, path: str, *headers: str) -> bytes:
    lines = [f"{method} /lb/{endpoint.id}{path} HTTP/1.1", "Host: x", f"Authorization: Bearer {ADMIN_KEY}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def connect(endpoint) -> socket.socket:
    return socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=60 * PATIENCE)


def test_a_body_that_stops_and_a_head_that_drips_end_in_time(lb_api):
    raw = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"requestTimeoutMs": 2000})
    with connect(raw) as slow, connect(raw) as dripping:
        slow.sendall(head(raw, "POST", "/raw", "Content-Length: 100") + b"a")
        dripping.sendall(head(raw, "GET", "/drip"))
        for connection, expected in ((slow, (b"408", b"body_timeout")), (dripping, (b"504", b"upstream_timeout"))):
            answer = connection.recv(10_000)
            assert answer.startswith(b"HTTP/1.1 " + expected[0]) and expected[1] in answer, answer
    # Neither occupies the worker any longer.
    raw.wait_health("jobs", "inProgress", 0)


def test_a_body_that_drips_frees_its_worker(lb_api):
    """Every part comes in time. The worker that waits for the rest is freed, and its connection ends."""
    # Long enough for a busy machine to see the request at its worker before its end.
    raw = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"requestTimeoutMs": 8000})
    with connect(raw) as slow:
        slow.sendall(head(raw, "POST", "/swallow", "Content-Length: 100000"))
        raw.wait_health("jobs", "inProgress", 1)
        slow.settimeout(0.1)
        answer, began = b"", time.monotonic()
        while not answer and time.monotonic() - began < 30 * PATIENCE:
            slow.sendall(b"a")
            with contextlib.suppress(TimeoutError):
                answer = slow.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 408 ") and b"body_timeout" in answer and b"requestTimeoutMs" in answer, answer
    raw.wait_health("jobs", "inProgress", 0)
    assert call(raw, "GET", "/cut").status_code == 200


def test_a_head_that_is_never_complete_reaches_no_worker(raw):
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", "/fine")[:-2])
        assert call(raw, "GET", "/fine").content == b"hello"
        assert raw.health()["jobs"]["inProgress"] == 0


def test_a_transfer_takes_little_memory_while_one_side_does_not_read(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"requestTimeoutMs": 330_000, "idleTimeoutMs": 0})
    # The first transfers find the server's own pages and the allocator's.
    assert call(endpoint, "POST", "/raw", data=b"u" * (8 << 20)).content.endswith(b"u" * 1000)
    assert len(call(endpoint, "GET", f"/flood?{8 << 20}").content) == 8 << 20
    with ProcessStats(lb_api.server.process.pid) as stats, connect(endpoint) as up, connect(endpoint) as down:
        # The worker reads nothing of an upload, so the client cannot send much of it.
        up.sendall(head(endpoint, "POST", "/silent", f"Content-Length: {BYTES}"))
        up.settimeout(1)
        sent, piece = 0, b"u" * (1 << 20)
        with contextlib.suppress(TimeoutError):
            while sent < BYTES:
                sent += up.send(piece)
        assert sent < BYTES, "everything was taken from the client"
        # The client reads nothing of a download at first, so the worker cannot send much of it.
        down.sendall(head(endpoint, "GET", f"/flood?{BYTES}"))
        assert down.recv(4).startswith(b"HTTP")
        endpoint.wait_health("jobs", "inProgress", 2)
        print(f"unread: {stats.grown_mb():.2f} MB")
        assert stats.grown_mb() < 2 * STREAM_MB, stats.grown_mb()
        received, end = 0, b""
        while piece := down.recv(1 << 20):
            if not received and b"\r\n\r\n" not in end:
                end += piece
                piece = end.partition(b"\r\n\r\n")[2]
            received += len(piece)
            if received == BYTES:
                break
        assert received == BYTES
        print(f"read: {stats.grown_mb():.2f} MB")
        assert stats.grown_mb() < 2 * STREAM_MB, stats.grown_mb()


def test_an_upload_takes_little_memory(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000)
    piece = b"u" * (1 << 20)
    for length in (8 << 20, BYTES):
        # The first transfer finds the server's own pages and the allocator's.
        with ProcessStats(lb_api.server.process.pid) as stats, connect(endpoint) as connection:
            connection.sendall(head(endpoint, "POST", "/swallow", f"Content-Length: {length}"))
            for _ in range(length >> 20):
                connection.sendall(piece)
            assert read_until(connection, b"swallowed %d" % length).startswith(b"HTTP/1.1 200 OK\r\n")
            grown_mb = stats.grown_mb()
    print(f"uploaded: {grown_mb:.2f} MB")
    assert grown_mb < STREAM_MB, grown_mb


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """What arrives up to this end."""
    answer = bytearray()
    while not answer.endswith(end):
        piece = connection.recv(1 << 20)
        assert piece, f"the connection ended after {answer[-1000:]!r}"
        answer += piece
    return bytes(answer)


HINTS = (
    b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n"
    b"content-security-policy: sandbox allow-scripts allow-forms allow-popups allow-downloads\r\n\r\n"
)


def test_early_hints_arrive_before_the_answer(raw):
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", "/hints-held"))
        assert read_until(connection, b"\r\n\r\n") == HINTS
        raw.wait_health("jobs", "inProgress", 1)
        call(raw, "GET", "/release")
        answer = read_until(connection, b"after hints")
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer
        # The connection goes on.
        connection.sendall(head(raw, "GET", "/fine"))
        assert read_until(connection, b"hello").startswith(b"HTTP/1.1 200 OK\r\n")


def test_hints_that_come_with_the_answer_keep_their_order(raw):
    """Behind an answer that the client has not read yet, and without what concerns the worker's connection."""
    bytes_before = 24_000_000
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", f"/flood?{bytes_before}") + head(raw, "GET", "/hints"))
        raw.wait_health("jobs", "inProgress", 1)
        answer = read_until(connection, b"after hints")
    first, _, rest = answer.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest[:bytes_before] == b"f" * bytes_before
    after = rest[bytes_before:]
    assert after.startswith(HINTS + b"HTTP/1.1 100 Continue\r\n"), after
    assert after.count(b"HTTP/1.1 ") == 3 and b"\r\n\r\nHTTP/1.1 200 OK\r\n" in after, after


def test_a_client_of_http_1_0_gets_no_hints(raw):
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", "/hints").replace(b"HTTP/1.1", b"HTTP/1.0"))
        answer = read_until(connection, b"after hints")
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n") and b"Early Hints" not in answer


def test_a_worker_that_hints_for_ever_fills_no_memory(lb_api):
    """The client does not read at first. It gets some of the hints, and 504 after them."""
    # Long enough for a busy machine to pass on the first of them.
    raw = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"requestTimeoutMs": 8000})
    with connect(raw) as connection, ProcessStats(raw.api.server.process.pid) as stats:
        connection.sendall(head(raw, "GET", "/hints-flood", "Connection: close"))
        raw.wait_health("jobs", "inProgress", 1)
        raw.wait_health("jobs", "inProgress", 0)
        assert stats.grown_mb() < MEMORY_MB, stats.grown_mb()
        answer = bytearray()
        while piece := connection.recv(1 << 20):
            answer += piece
    *hints, final, body = bytes(answer).split(b"\r\n\r\n")
    assert hints and all(hint.startswith(b"HTTP/1.1 103") and b"h" * 10_000 in hint for hint in hints)
    assert final.startswith(b"HTTP/1.1 504 ") and json.loads(body)["code"] == "upstream_timeout", (final, body)


def test_hints_arrive_during_an_upload(raw):
    with connect(raw) as connection:
        connection.sendall(head(raw, "POST", "/hints", "Content-Length: 4"))
        answer = read_until(connection, b"after hints")
        assert answer.startswith(HINTS), answer
        connection.sendall(b"body")


IDLE_S, TALK_S = 4, 6
"""How long a WebSocket may be idle, and how long one talks that must not be cut."""
TALKS_MAX = 5


async def talks_on(connection, active: float) -> bool:
    """Whether messages pass all the time; fails if the connection is cut although it was active. It may be cut if the test itself stood
    still for as long as a connection may be idle: the answer is no then. The connection was active at `active` or later."""
    began = time.monotonic()
    try:
        while time.monotonic() - began < TALK_S:
            sent = time.monotonic()
            await connection.send("still here")
            assert await connection.recv() == "ereh llits"
            # The server passed on this message after its time.
            active = sent
            await asyncio.sleep(0.05)
    except websockets.ConnectionClosed:
        idle_s = time.monotonic() - active
        assert idle_s >= IDLE_S, f"cut at most {idle_s} s after a message"
        return False
    return True


def test_pings_of_a_websocket_are_no_activity(lb_api):
    app = make(lb_api, workersMin=1, scalerValue=1000, lb={"idleTimeoutMs": IDLE_S * 1000})
    url = f"{lb_api.server.url}/lb/{app.id}/ws".replace("http", "ws", 1)

    async def talk() -> int | None:
        """How the connection ended after the talk; `None` if the test stood still."""
        # Both sides ping and pong all the time.
        options = {"additional_headers": KEY, "ping_interval": 0.1, "ping_timeout": 60}
        asked = time.monotonic()
        async with websockets.connect(url, **options) as connection:
            await connection.recv()
            if not await talks_on(connection, asked):
                return None
            # Nothing but pings from now on.
            await asyncio.wait_for(connection.wait_closed(), 30 * PATIENCE)
            return connection.close_code

    codes = (event_loop.run(talk()) for _ in range(TALKS_MAX))
    assert next((code for code in codes if code), None) == 1006, "the connection was cut once it was idle"
    app.wait_health("jobs", "inProgress", 0)


def test_a_client_whose_connection_breaks_frees_its_worker(raw):
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", "/pause"))
        read_until(connection, b"hello")
        raw.wait_health("jobs", "inProgress", 1)
        # The close is a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.wait_health("jobs", "inProgress", 0)
    until(lambda: call(raw, "GET", "/fine").content == b"hello", "the worker goes on")


def test_a_client_that_leaves_in_a_pause_frees_its_worker_at_its_end(lb_api):
    """The end of what it sends could be that of a client that still reads."""
    raw = make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"idleTimeoutMs": 1500})
    with connect(raw) as connection:
        connection.sendall(head(raw, "GET", "/pause"))
        read_until(connection, b"hello")
    raw.wait_health("jobs", "inProgress", 0)
    until(lambda: call(raw, "GET", "/fine").content == b"hello", "the worker goes on")
