"""Greets the person whose name is in the input."""

import runpod


def handler(job):
    name = job["input"].get("name", "world")
    return {"greeting": f"Hello, {name}!"}


runpod.serverless.start({"handler": handler})
