"""Imports a package that uses CUDA when it is imported. Its worker must not be a fork."""

import sys

import runpod
import uses_cuda


def handler(job):
    return {"fork": "longshore_runtime.zygote" in sys.modules, "sum": uses_cuda.total()}


runpod.serverless.start({"handler": handler})
