"""Does a job immediately."""

import runpod


def handler(job: dict) -> dict:
    return {"ok": True}


runpod.serverless.start({"handler": handler})
