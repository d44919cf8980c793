"""Runs several jobs concurrently.

The handler is `async`: while one job waits for network or disk, others run. `concurrency_modifier` tells the SDK how many
jobs the worker may take.
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
    """Returns the maximum number of jobs. The SDK calls it before every take, so it could depend on free memory."""
    return JOBS_AT_ONCE


runpod.serverless.start({"handler": handler, "concurrency_modifier": concurrency_modifier})
