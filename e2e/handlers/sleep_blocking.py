"""Sleeps and blocks everything else in the worker, at most until its file `go` is there; leaves files that say how far it came."""

import time
from pathlib import Path

import runpod


def mark(job, name):
    if name in job["input"]:
        with Path(job["input"][name]).open("a") as file:
            file.write(job["id"] + "\n")


def sleep(seconds, go):
    if go is None:
        time.sleep(seconds)
        return
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not Path(go).exists():
        time.sleep(0.05)


def handler(job):
    mark(job, "started")
    sleep(job["input"].get("seconds", 1), job["input"].get("go"))
    mark(job, "finished")
    return {"slept": job["input"].get("seconds", 1)}


runpod.serverless.start({"handler": handler})
