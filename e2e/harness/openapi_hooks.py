"""What schemathesis is told about this API, in its own process: which endpoint is real, and what it must not do.

Requests are changed only where they would find nothing (a random endpoint), wait for long, or start processes.
"""

import os
import random

import requests
import schemathesis

from harness.server import ADMIN_KEY

# An endpoint with a worker, and jobs of it.
ENDPOINT = os.environ["LONGSHORE_OPENAPI_ENDPOINT"]
JOBS = os.environ["LONGSHORE_OPENAPI_JOBS"].split(",")
_chance = random.Random(int(os.environ["LONGSHORE_OPENAPI_SEED"]))
# The longest wait of a request, in milliseconds, by what names it.
WAITS = {"/runsync": "1000", "/status-sync": "1000", "/stream": "0"}


schemathesis.serializer.alias("application/gzip", "application/octet-stream")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Aims a generated request."""
    path, parts = case.operation.path, case.path_parameters
    if path.startswith("/v2/") and parts and _chance.random() < 0.8:
        parts["endpointId"] = ENDPOINT
        if "jobId" in parts:
            parts["jobId"] = _chance.choice(JOBS)
    elif path.startswith("/v2/{endpointId}/openai/") and parts:
        # As below: schemathesis remembers the ids of endpoints that it has made.
        parts["endpointId"] = "nosuchendpoint"
    if path.startswith("/openai/") and isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
        # Not one of the endpoints that were made by the way: those have no worker, and the answer waits for one.
        case.body["model"] = ENDPOINT if _chance.random() < 0.8 else "nosuchmodel"
    if path.startswith("/v1/endpoints/") and case.method != "GET" and parts and parts.get("endpointId") == ENDPOINT:
        parts["endpointId"] = "nosuchendpoint"
    if path.startswith("/v1/apikeys/") and case.method != "GET" and parts and parts.get("keyId") == "admin":
        # The key that all requests come with.
        parts["keyId"] = "nosuchkey"
    _shorten_wait(case, path)
    if path.startswith("/v1/endpoints") and isinstance(case.body, dict):
        case.body["provider"] = "external"


@schemathesis.hook
def after_call(context, case, response):
    """Ends a drain immediately: until its end no job is handed out, and each request that waits for one would wait for ever."""
    if case.operation.path == "/v1/server/drain" and case.method == "POST":
        ended = requests.delete(response.request.url, headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60)
        assert ended.status_code == 204, ended.text


def _shorten_wait(case, path: str) -> None:
    """Shortens valid waits of up to 90 s; an invalid wait stays."""
    most = next((wait for name, wait in WAITS.items() if name in path), None)
    if most is None:
        return
    wait = str((case.query or {}).get("wait", ""))
    if not wait or (wait.isdecimal() and int(wait) > int(most)):
        case.query = {**(case.query or {}), "wait": most}


@schemathesis.serializer("application/gzip")
def archive(context, value):
    """Bytes go as they are; what else comes up is no archive either way."""
    value = getattr(value, "data", value)
    return bytes(value) if isinstance(value, (bytes, bytearray)) else str(value).encode()
