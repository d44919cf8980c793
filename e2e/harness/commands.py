"""Commands of the program under test that need no server."""

import os
import subprocess

from .server import binary


def longshore(*words, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
    """Runs the program with these words, and expects the exit code. Nothing of the person who runs the tests leaks in."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("RUNPOD_", "LONGSHORE_"))}
    command = [binary(), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=known | environment)
    assert done.returncode == code, done
    return done
