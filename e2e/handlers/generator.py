"""Yields `count` numbers; with a file `go`, ends when that is there. AGGREGATE=1 keeps the numbers as the job's output as well."""

import asyncio
import os
from pathlib import Path

import runpod


async def handler(job):
    for n in range(job["input"].get("count", 3)):
        yield {"n": n}
        await asyncio.sleep(job["input"].get("pause", 0))
    go = job["input"].get("go")
    while go and not Path(go).exists():
        await asyncio.sleep(0.05)
    if job["input"].get("fail"):
        raise ValueError("broke after the last chunk")


runpod.serverless.start(
    {"handler": handler, "return_aggregate_stream": os.environ.get("AGGREGATE") == "1"}
)
