"""Answers what its worker was given, after `seconds` or when the file `go` is there."""

import os
import time

import runpod

SHOWN = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "FLAVOUR")


def handler(job):
    input = job["input"] or {}
    time.sleep(input.get("seconds", 0))
    while "go" in input and not os.path.exists(input["go"]):
        time.sleep(0.05)
    return {"worker": os.environ["RUNPOD_POD_ID"], **{name: os.environ.get(name) for name in SHOWN}}


runpod.serverless.start({"handler": handler})
