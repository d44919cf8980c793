"""Runs up to eight jobs concurrently, or `AT_ONCE`, and returns the highest number that it saw."""

import asyncio
import os

import runpod

running = 0


async def handler(job):
    global running
    running += 1
    try:
        await asyncio.sleep(job["input"].get("seconds", 0.5))
        return {"at_once": running}
    finally:
        running -= 1


AT_ONCE = int(os.environ.get("AT_ONCE", "8"))
runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: AT_ONCE})
