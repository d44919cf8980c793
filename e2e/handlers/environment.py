"""Answers what its worker was given, after `seconds`."""

import os
import time

import runpod

SHOWN = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "FLAVOUR")


def handler(job):
    time.sleep((job["input"] or {}).get("seconds", 0))
    return {"worker": os.environ["RUNPOD_POD_ID"], **{name: os.environ.get(name) for name in SHOWN}}


runpod.serverless.start({"handler": handler})
