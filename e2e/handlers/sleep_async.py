"""Sleeps without blocking, at most until its file `go` is there; leaves files that say how far it came."""

import asyncio
import time
from pathlib import Path

import runpod


def mark(job, name):
    if name in job["input"]:
        with Path(job["input"][name]).open("a") as file:
            file.write(job["id"] + "\n")


async def sleep(seconds, go):
    if go is None:
        await asyncio.sleep(seconds)
        return
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not Path(go).exists():
        await asyncio.sleep(0.05)


async def handler(job):
    mark(job, "started")
    try:
        await sleep(job["input"].get("seconds", 1), job["input"].get("go"))
    except asyncio.CancelledError:
        mark(job, "cancelled")
        raise
    mark(job, "finished")
    return {"slept": job["input"].get("seconds", 1)}


runpod.serverless.start({"handler": handler})
