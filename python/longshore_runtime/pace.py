"""What the edited lines of the SDK call: waits that end as soon as there is something to do.

Every wait has a limit too, the SDK's own pause or a second: a change that was not announced delays a job as it would
without the runtime, and no longer.
"""

import asyncio

from . import imports

FALLBACK_S = 1.0
"""The limit in seconds of waits that have none in the SDK, or a shorter one that only served to look again."""


class Change:
    """A kind of change that coroutines wait for."""

    def __init__(self):
        self._waiters = set()

    def announce(self):
        """Wakes every coroutine that waits now. May be called by other threads and by signal handlers."""
        for waiter in tuple(self._waiters):
            try:
                waiter.get_loop().call_soon_threadsafe(_finish, waiter)
            except RuntimeError:
                # The loop of the waiter is closed, so the wait is over.
                self._waiters.discard(waiter)

    def enter(self):
        """Answers a future that is done at the next change. `leave` must follow."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        return waiter

    def leave(self, waiter):
        """Forgets a future of `enter`."""
        self._waiters.discard(waiter)
        waiter.cancel()


def _finish(waiter):
    if not waiter.done():
        waiter.set_result(None)


_room = Change()
"""A job ended, or the worker stops: another job may be taken."""

_work = Change()
"""A job was taken, or the worker stops: another job may be started."""


_end = Change()
"""The worker stops: a pause between two questions is over."""

_is_ending = False
"""Whether the worker stops, which can be before such a pause begins."""


def job_taken():
    """Announces a job that was taken and waits to be started."""
    _work.announce()


def job_ended():
    """Announces that a job is no longer in progress."""
    _room.announce()
    imports.job_ended()


def stopping():
    """Announces that the worker takes no further job."""
    global _is_ending
    _is_ending = True
    _room.announce()
    _work.announce()
    _end.announce()


async def until_room(seconds):
    """Waits until a job ends or the worker stops, `seconds` at most."""
    await _wait(_room, (), seconds)


async def until_end(seconds):
    """Waits until the worker stops, `seconds` at most."""
    waiter = _end.enter()
    try:
        if not _is_ending:
            await asyncio.wait({waiter}, timeout=seconds)
    finally:
        _end.leave(waiter)


async def until_work():
    """Waits until a job was taken or the worker stops, `FALLBACK_S` at most."""
    await _wait(_work, (), FALLBACK_S)


async def until_progress(tasks):
    """Waits until one of `tasks` is done, a job was taken or the worker stops, `FALLBACK_S` at most. Answers the done and
    the pending tasks, as `asyncio.wait` does."""
    return await _wait(_work, tasks, FALLBACK_S)


async def _wait(change, tasks, seconds):
    waiter = change.enter()
    try:
        done, pending = await asyncio.wait(
            {waiter, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        change.leave(waiter)
    return done - {waiter}, pending - {waiter}
