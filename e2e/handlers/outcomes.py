"""Ends as its input says: every way a handler can answer, fail or die."""

import os
import sys

import runpod


def handler(job):
    mood = job["input"]["mood"]
    if mood == "raise":
        raise ValueError("the handler raised")
    if mood == "die":
        print("the handler ends its own process", file=sys.stderr, flush=True)
        os._exit(7)
    answers = {
        "error": {"error": "the handler said so", "partial": 1},
        "error object": {"error": {"message": "structured", "code": 4}},
        "empty": {},
        "none": None,
        "text": "just text",
        "number": 4.5,
        "list": [1, "two", None],
        "nan": {"value": float("nan"), "more": [float("inf"), -float("inf")]},
        "unserialisable": {"value": {1, 2, 3}},
        "see": {key: job[key] for key in sorted(job)},
        "cwd": os.getcwd(),
    }
    if mood == "big":
        return "x" * job["input"]["bytes"]
    return answers[mood]


runpod.serverless.start({"handler": handler})
