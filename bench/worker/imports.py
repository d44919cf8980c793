"""A worker of the official SDK that imports the packages named in IMPORTS. Its output is its processor time so far, in seconds, with
that of the programs that it started, and whether it is a fork of a zygote."""

import importlib
import os
import resource
import sys

for name in os.environ["IMPORTS"].split():
    importlib.import_module(name)

import runpod  # noqa: E402


def handler(job):
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "worker": os.environ["RUNPOD_POD_ID"],
        "cpu_s": sum(one.ru_utime + one.ru_stime for one in used),
        "fork": "longshore_runtime.zygote" in sys.modules,
    }


runpod.serverless.start({"handler": handler})
