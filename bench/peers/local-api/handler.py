"""Does a job at once."""

import runpod


def handler(job: dict) -> dict:
    return {"ok": True}


runpod.serverless.start({"handler": handler})
