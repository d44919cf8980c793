"""Sleeps without blocking; leaves files that say how far it came."""

import asyncio
from pathlib import Path

import runpod


def mark(job, name):
    if name in job["input"]:
        with Path(job["input"][name]).open("a") as file:
            file.write(job["id"] + "\n")


async def handler(job):
    mark(job, "started")
    try:
        await asyncio.sleep(job["input"].get("seconds", 1))
    except asyncio.CancelledError:
        mark(job, "cancelled")
        raise
    mark(job, "finished")
    return {"slept": job["input"].get("seconds", 1)}


runpod.serverless.start({"handler": handler})
