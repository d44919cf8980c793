"""Returns outputs that show which job they belong to, and how often the job was run.

FLAVOUR is `plain` (one job at a time, blocking), `many` (sixteen concurrently) or `stream` (a generator, two concurrently).
A job whose input has `fails_until` fails until that file exists.
"""

import asyncio
import hashlib
import os
import time
import uuid
from pathlib import Path

import runpod

FLAVOUR = os.environ["FLAVOUR"]
AT_ONCE = {"plain": 1, "many": 16, "stream": 4}[FLAVOUR]


def testimony(job):
    """What the output must be; `audit.expected` says the same from the outside."""
    input = job["input"]
    if "fails_until" in input and not Path(input["fails_until"]).exists():
        return {"error": f"not yet: {input['key']}"}
    digest = hashlib.sha256(input["text"].encode()).hexdigest()
    return {"id": job["id"], "key": input["key"], "digest": digest, "text": input["text"]}


def plain(job):
    time.sleep(job["input"]["seconds"])
    return testimony(job)


async def many(job):
    await asyncio.sleep(job["input"]["seconds"])
    return testimony(job)


async def stream(job):
    attempt = uuid.uuid4().hex
    for n in range(job["input"]["count"]):
        yield {"id": job["id"], "key": job["input"]["key"], "attempt": attempt, "n": n, "at": time.time()}
        await asyncio.sleep(job["input"]["seconds"] / job["input"]["count"])


runpod.serverless.start(
    {
        "handler": {"plain": plain, "many": many, "stream": stream}[FLAVOUR],
        "concurrency_modifier": lambda _: AT_ONCE,
        "return_aggregate_stream": True,
    }
)
