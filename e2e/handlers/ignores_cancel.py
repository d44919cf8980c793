"""Runs four jobs concurrently. Each ends when its file `go` appears; a stubborn one does not let itself be cancelled."""

import asyncio
import time
from pathlib import Path

import runpod


async def handler(job):
    input = job["input"]
    deadline = time.monotonic() + input["seconds"]
    while time.monotonic() < deadline and not ("go" in input and Path(input["go"]).exists()):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            if not input.get("stubborn"):
                raise
    return "ended by itself"


runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: 4})
