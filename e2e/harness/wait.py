"""Waiting for conditions, always with a deadline."""

import time
from typing import Callable, TypeVar

T = TypeVar("T")

PATIENCE = 4
"""Deadlines are written for a machine that has nothing else to do: on a busy one, the wait is this number of times as long."""


def until(probe: Callable[[], T], what: str, timeout_s: float = 20, every_s: float = 0.03) -> T:
    """Calls `probe` until it answers something truthy; fails with `what` and the last answer after
    `timeout_s`, with patience.

    An AssertionError of the probe counts as "not yet" and is shown if time runs out.
    """
    timeout_s *= PATIENCE
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            last = probe()
            if last:
                return last
        except AssertionError as error:
            last = error
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {timeout_s} s; last seen: {last!r}")
        time.sleep(every_s)


def holds(probe: Callable[[], object], what: str, for_s: float, every_s: float = 0.05) -> None:
    """Checks that `probe` stays truthy for `for_s` seconds: for things that must not happen."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        seen = probe()
        assert seen, f"{what}: no longer holds; saw {seen!r}"
        time.sleep(every_s)
