"""Yields `count` numbers. AGGREGATE=1 keeps them as the job's output as well."""

import asyncio
import os

import runpod


async def handler(job):
    for n in range(job["input"].get("count", 3)):
        yield {"n": n}
        await asyncio.sleep(job["input"].get("pause", 0))
    if job["input"].get("fail"):
        raise ValueError("broke after the last chunk")


runpod.serverless.start(
    {"handler": handler, "return_aggregate_stream": os.environ.get("AGGREGATE") == "1"}
)
