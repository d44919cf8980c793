"""Starts a child and a daemon, notes their pids after that of a helper from before any job, and waits to be cancelled."""

import asyncio
import subprocess
import sys
from pathlib import Path

import runpod

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
FORKS_TWICE = """
import os, subprocess
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
process = subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
print(process.pid, flush=True)
os._exit(0)
"""

helper = subprocess.Popen(["sleep", "601"], **QUIET)


async def handler(job):
    # A process of the clock tick in which the job came could be of another job, and is not ended.
    await asyncio.sleep(0.05)
    child = await asyncio.create_subprocess_exec("sleep", "600", **QUIET)
    made = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", FORKS_TWICE], capture_output=True, text=True, check=True
    )
    Path(job["input"]["note"]).write_text(f"{helper.pid} {child.pid} {made.stdout.strip()}")
    await asyncio.sleep(600)


runpod.serverless.start({"handler": handler})
