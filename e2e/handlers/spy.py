"""Tells what it can read of the processes above it, up to the one with the pid `server`."""

import os
from pathlib import Path

import runpod


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def attempt(read):
    try:
        return repr(read())
    except OSError as error:
        return type(error).__name__


def looks(pid):
    at = Path(f"/proc/{pid}")
    return {
        "environ": attempt((at / "environ").read_bytes),
        "memory": attempt(lambda: (at / "mem").open("rb").close()),
        "files": attempt(lambda: os.readlink(at / "fd" / "2")),
    }


def handler(job):
    shim = parent(os.getpid())
    # Process 1 may be one of Python, too: a shim whose server was killed is its child.
    while parent(shim) != 1 and Path(f"/proc/{parent(shim)}/comm").read_text().strip().startswith("python"):
        shim = parent(shim)
    return {"uid": os.getuid(), "pid": shim, "shim": looks(shim), "server": looks(job["input"]["server"])}


runpod.serverless.start({"handler": handler})
