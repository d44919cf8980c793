"""Says how its worker was started, and uses what does not outlive a fork by itself: numpy's threads, random numbers, the SDK's
environment, threads and programs of its own."""

import os
import random
import subprocess
import sys
import threading
import time

import numpy
import runpod
from runpod.serverless.modules import worker_state

ANSWERS = numpy.arange(250_000, dtype=float).reshape(500, 500)


def handler(job):
    time.sleep(job["input"].get("seconds", 0))
    told = []
    thread = threading.Thread(target=lambda: told.append("of a thread"))
    thread.start()
    thread.join()
    return {
        "fork": "longshore_runtime.zygote" in sys.modules,
        "pid": os.getpid(),
        "worker": os.environ["RUNPOD_POD_ID"],
        "worker_of_sdk": worker_state.WORKER_ID,
        "own": os.environ.get("OWN"),
        "api_token": os.environ.get("MODEL_API_TOKEN"),
        "trace": float((ANSWERS @ ANSWERS.T).trace()),
        "random": [random.random(), float(numpy.random.random())],
        "thread": told,
        "program": subprocess.run(["sh", "-c", "exit 4"], check=False).returncode,
        "job": job["id"],
    }


runpod.serverless.start({"handler": handler})
