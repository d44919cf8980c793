"""Leaves a process behind that nothing leads back to its worker: another session, no parent, and an empty environment."""

import os

import runpod


def handler(job):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        escapee = os.fork()
        if escapee == 0:
            nothing = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os.write(writing, str(escapee).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        # The pipe ends when the escapee executes `sleep`: until then its environment names the worker.
        escapee = int(pipe.read())
    return {"escapee": escapee}


runpod.serverless.start({"handler": handler})
