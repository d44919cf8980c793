"""Works on several jobs at once.

The handler is `async`, so that it can wait for one job's network or disk while it serves others, and
`concurrency_modifier` tells the SDK how many jobs the worker may hold.
"""

import asyncio
import os

import runpod

JOBS_AT_ONCE = int(os.environ.get("JOBS_AT_ONCE", "10"))

working = 0


async def handler(job):
    global working
    working += 1
    beside_this = working
    try:
        await asyncio.sleep(float(job["input"].get("seconds", 1)))
        return {"jobs_at_once_when_it_started": beside_this}
    finally:
        working -= 1


def concurrency_modifier(current):
    """Called before every take; a real handler might look at its free memory here."""
    return JOBS_AT_ONCE


runpod.serverless.start({"handler": handler, "concurrency_modifier": concurrency_modifier})
