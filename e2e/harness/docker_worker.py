"""The program of the tests' container image: the worker protocol on the standard library alone, by the variables that the
hosted service sets. Inputs say what it does."""

import http.client
import json
import os
import signal
import sys
import urllib.parse

POD = os.environ["RUNPOD_POD_ID"]
KEY = os.environ["RUNPOD_AI_API_KEY"]


def call(method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=100)
    headers = {"Authorization": KEY, "Content-Type": "application/x-www-form-urlencoded"}
    connection.request(method, f"{parts.path}?{parts.query}", body, headers)
    response = connection.getresponse()
    return response.status, response.read()


def handle(given: dict) -> object:
    print("handling", json.dumps(given), flush=True)
    match given.get("do"):
        case "crash":
            os._exit(7)
        case "eat memory":
            return len(b"x" * given["bytes"])
        case "write":
            with open(given["path"], "w") as file:
                file.write(given["text"])
        case "wait":
            open(given["path"] + ".begun", "w").close()
            while not os.path.exists(given["path"]):
                signal.sigtimedwait([signal.SIGUSR1], 0.05)
    return {"echo": given, "pod": POD, "cwd": os.getcwd(), "env": {name: os.environ.get(name) for name in given.get("env", [])}}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("ready", " ".join(sys.argv[1:]), flush=True)
    take = os.environ["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", POD)
    done = os.environ["RUNPOD_WEBHOOK_POST_OUTPUT"].replace("$RUNPOD_POD_ID", POD)
    while True:
        status, body = call("GET", f"{take}&job_in_progress=0")
        if status == 200:
            job = json.loads(body)
            output = json.dumps({"output": handle(job["input"])}).encode()
            call("POST", f"{done.replace('$ID', job['id'])}&isStream=false", output)


main()
