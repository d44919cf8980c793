"""Asks for a fresh worker after every job. REFRESH_CONFIG=1 asks for it in the SDK's configuration."""

import os

import runpod


def handler(job):
    answer = {"pid": os.getpid()}
    if os.environ.get("REFRESH_CONFIG") != "1":
        answer["refresh_worker"] = True
    return answer


runpod.serverless.start(
    {"handler": handler, "refresh_worker": os.environ.get("REFRESH_CONFIG") == "1"}
)
