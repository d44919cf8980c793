"""Clients that mean harm, or cannot do better: the server stays within its memory, sheds them, and serves the others.

Every test says how much memory the attack may cost and why, and most let a good client work all the while.
"""

import os
import sys
import time

import pytest

from harness.client import Api
from harness.server import QUICK
from harness.siege import GoodClient, Swarm, Vitals, head, raise_descriptor_limit

CONNECTIONS = int(os.environ.get("LONGSHORE_SLOW_CONNECTIONS", "10000"))

LONGEST_S = 5.0
"""What a good client may have to wait for a job that takes no time, while the server is besieged: with a debug build
and one processor for everything."""


@pytest.fixture
def besieged(fresh_server):
    """A server without rate limits: nothing but the limits under test may protect it."""
    raise_descriptor_limit()
    # Short polls: a test's worker ends when its poll does.
    return fresh_server(flags=("--rate-limits", "off"), config=QUICK + "worker_hold_ms = 1000\n")


def tell(what: str) -> None:
    """Figures for whoever runs the tests with `-s`."""
    print(what, file=sys.stderr)


def wait_until_ended(swarm: Swarm, timeout_s: float, trickle: bytes | None = None) -> float:
    """Until the server has hung up on all of a swarm, which sends a few bytes every second; after how long."""
    began = time.monotonic()
    last = began
    while swarm.open and time.monotonic() - began < timeout_s:
        swarm.receive(0.2)
        if trickle and time.monotonic() - last >= 1:
            last = time.monotonic()
            swarm.send(trickle)
    assert not swarm.open, f"{len(swarm.open)} connections are still open after {timeout_s} s"
    return time.monotonic() - began


@pytest.mark.timeout(180)
def test_slow_loris(besieged):
    """Half of them trickle a head, half a body; all are shed, and meanwhile others are served."""
    endpoint = Api(besieged).external()
    with Vitals(besieged.process.pid) as vitals, GoodClient(endpoint) as good, Swarm(besieged.port) as swarm:
        swarm.connect(CONNECTIONS // 2, b"GET /healthz HTTP/1.1\r\nHost: longshore\r\nX-Slow: ")
        swarm.connect(CONNECTIONS // 2, head(f"POST {endpoint.mount}/run", "Content-Length: 20000") + b'{"input":')
        seconds = wait_until_ended(swarm, 60, b"x")
        good.stop()
        tell(f"{CONNECTIONS} slow connections: shed after {seconds:.1f} s, {vitals.grown_mb():.0f} MB; {good.summary()}")
        good.was_served(LONGEST_S)
        # Per connection: a task, an 8 KB buffer, a parsed head.
        assert vitals.grown_mb() < 20 + CONNECTIONS * 0.03
