"""The program of the tests' container image: the worker protocol on the standard library alone, by the variables that the
hosted service sets. Inputs say what it does."""

import http.client
import json
import os
import signal
import sys
import time
import urllib.parse

POD = os.environ["RUNPOD_POD_ID"]
KEY = os.environ["RUNPOD_AI_API_KEY"]


def call(method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
    """The answer of the server. While it is away, the request is sent again, as by the SDK."""
    while True:
        try:
            return call_once(method, url, body)
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)


def call_once(method: str, url: str, body: bytes | None = None) -> tuple[int, bytes]:
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
        case "fork":
            if os.fork() == 0:
                os.setsid()
                os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(3600)", given["mark"]])
        case "eat memory":
            return len(b"x" * given["bytes"])
        case "write":
            with open(given["path"], "w") as file:
                file.write(given["text"])
        case "append":
            with open(given["path"], "a") as file:
                file.write(given["text"])
        case "list":
            return sorted(os.listdir(given["path"]))
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
