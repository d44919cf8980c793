"""Yields one large chunk of the kind that its input names, or a chunk with metrics."""

import runpod

TEXT = "🦜é\\\"\n" * 300_000
KINDS = {
    "text": TEXT,
    "list": [{"n": n, "text": "x" * 100} for n in range(30_000)],
    "member": {"id": 1, "text": TEXT, "usage": {"tokens": 2}},
    "nested": {"a": {"b": {"c": ["x" * 1000] * 3000, "d": 1}, "e": 2}, "f": 3},
    "metrics": {"output": "hello", "metrics": {"tokens": 1, "speed": float("nan")}},
    "output": {"output": "hello", "metrics": {"tokens": 1}, "more": True},
}


async def handler(job):
    yield KINDS[job["input"]["kind"]]


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
