"""Multiplies matrices on the worker's GPU with CuPy, and says what it sees of the GPU and how it was started."""

import os
import sys

import cupy
import numpy
import runpod


def handler(job):
    left, right = (numpy.random.default_rng(seed).random((512, 512)) for seed in (1, 2))
    of_gpu = cupy.asnumpy(cupy.asarray(left) @ cupy.asarray(right))
    free, memory = cupy.cuda.runtime.memGetInfo()
    return {
        "fork": "longshore_runtime.zygote" in sys.modules,
        "pid": os.getpid(),
        "worker": os.environ["RUNPOD_POD_ID"],
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "devices": cupy.cuda.runtime.getDeviceCount(),
        "name": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "capability": ".".join(cupy.cuda.Device(0).compute_capability),
        "memory": memory,
        "free": free,
        "deviation": float(numpy.abs(of_gpu - left @ right).max()),
        "versions": [cupy.__version__],
    }


runpod.serverless.start({"handler": handler})
