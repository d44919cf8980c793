"""A worker of the official SDK that returns its input: the smallest unmodified handler."""

import runpod

runpod.serverless.start({"handler": lambda job: job["input"]})
