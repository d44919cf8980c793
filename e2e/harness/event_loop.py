"""Coroutines in tests that are no coroutines."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor


def run(coroutine: Coroutine):
    """Runs it to its end, in a thread of its own: in the main thread, the browser of earlier tests has an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
