"""Runs up to eight jobs at once and says how many it saw at once."""

import asyncio

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


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: 8})
