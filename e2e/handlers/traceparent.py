"""Answers the trace context that its job has."""

import runpod

runpod.serverless.start({"handler": lambda job: job.get("traceparent")})
