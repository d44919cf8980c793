"""Waiting for conditions, always with a deadline."""

import time
from typing import Callable, TypeVar

T = TypeVar("T")

PATIENCE = 4
"""Deadlines are written for a machine that has nothing else to do: on a busy one, the wait is this number of times as long."""
PAUSE_MAX_S = 0.2
"""What takes long is asked for less often, so that waiting tests leave the processors to the others."""


def until(probe: Callable[[], T], what: str, timeout_s: float = 20, every_s: float = 0.03) -> T:
    """Calls `probe` until it answers something truthy; fails with `what` and the last answer after
    `timeout_s`, with patience. It is called every `every_s` at first; the pauses grow to a tenth of the time that has
    passed, at most 0.2 s.

    An AssertionError of the probe counts as "not yet" and is shown if time runs out.
    """
    timeout_s *= PATIENCE
    begun = time.monotonic()
    while True:
        try:
            last = probe()
            if last:
                return last
        except AssertionError as error:
            last = error
        waited_s = time.monotonic() - begun
        if waited_s >= timeout_s:
            raise AssertionError(f"{what}: not within {timeout_s} s; last seen: {last!r}")
        time.sleep(max(every_s, min(waited_s / 10, PAUSE_MAX_S)))


def holds(probe: Callable[[], object], what: str, for_s: float, every_s: float = 0.05) -> None:
    """Checks that `probe` stays truthy for `for_s` seconds: for things that must not happen."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        seen = probe()
        assert seen, f"{what}: no longer holds; saw {seen!r}"
        time.sleep(every_s)
