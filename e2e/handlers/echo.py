"""Answers its input and who it is."""

import os

import runpod


def handler(job):
    return {"echo": job["input"], "worker": os.environ["RUNPOD_POD_ID"], "pid": os.getpid()}


runpod.serverless.start({"handler": handler})
