"""Prints `text` of its input, in one write, and before it `lines` numbered lines."""

import runpod


def handler(job):
    for number in range(job["input"].get("lines", 0)):
        print(f"{number:06} of many")
    print("said " + job["input"]["text"], flush=True)
    return "printed"


runpod.serverless.start({"handler": handler})
