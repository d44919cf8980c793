"""Sleeps and blocks everything else in the worker; leaves files that say how far it came."""

import time
from pathlib import Path

import runpod


def mark(job, name):
    if name in job["input"]:
        with Path(job["input"][name]).open("a") as file:
            file.write(job["id"] + "\n")


def handler(job):
    mark(job, "started")
    time.sleep(job["input"].get("seconds", 1))
    mark(job, "finished")
    return {"slept": job["input"].get("seconds", 1)}


runpod.serverless.start({"handler": handler})
