"""Times in which the whole machine stood still, for tests of what happens within a time."""

import threading
import time

STEP_S = 0.01
GAP_S = 0.3
"""A busy machine has a thread wait less than this for its turn."""


class Standstills:
    """Notes, within `with`, when a thread that only sleeps for short times did not get its turn."""

    def __init__(self):
        self._ended = threading.Event()
        self._gaps: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Standstills":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(STEP_S):
            now = time.monotonic()
            if now - last > GAP_S:
                self._gaps.append((last, now))
            last = now

    def any_between(self, begin: float, end: float) -> bool:
        """Whether there was one between these times of the monotonic clock, even in part."""
        return any(begin < to and since < end for since, to in self._gaps)

    def __str__(self) -> str:
        return f"{len(self._gaps)} standstills of {sum(to - since for since, to in self._gaps):.1f} s in all"
