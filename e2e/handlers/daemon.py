"""Leaves a daemon behind: a process in a session of its own whose parent has ended."""

import subprocess
import sys

import runpod

FORKS_TWICE = """
import os, subprocess
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
process = subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
print(process.pid, flush=True)
os._exit(0)
"""


def handler(job):
    made = subprocess.run([sys.executable, "-c", FORKS_TWICE], capture_output=True, text=True, check=True)
    return {"daemon": made.stdout.strip()}


runpod.serverless.start({"handler": handler})
