"""Reports progress, waits for a file to appear, then finishes."""

import time
from pathlib import Path

import runpod


def handler(job):
    runpod.serverless.progress_update(job, "half way")
    go = Path(job["input"]["go"])
    deadline = time.monotonic() + 30
    while not go.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return "all the way"


runpod.serverless.start({"handler": handler})
