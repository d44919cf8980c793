"""A shell that types commands and keeps what they print."""

import os
import signal
import subprocess
import threading
from pathlib import Path

from . import processes
from .wait import until

END = "\x01end"


class Terminal:
    """One bash in a folder. Its variables and its current folder last from command to command."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._scripts = folder
        self._count = 0
        self._printed = ""
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=environment["HOME"], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while chunk := os.read(self._bash.stdout.fileno(), 65536):
            self._printed += chunk.decode(errors="replace")

    def type(self, command: str) -> None:
        """Starts a command."""
        self._count += 1
        self._printed = ""
        script = self._scripts / f"step-{id(self)}-{self._count}.sh"
        script.write_text(command)
        # In the shell itself, so that variables last; its standard input is not the commands that follow.
        self._bash.stdin.write(f"source {script} < /dev/null; printf '%s %d\\n' '{END}' $?\n")
        self._bash.stdin.flush()

    def interrupt(self) -> None:
        """Presses Ctrl-C: signals the command that runs, and waits until it ended."""
        for child in processes.children(self._bash.pid):
            processes.send(child, signal.SIGINT)
        self.wait()

    @property
    def printed(self) -> str:
        """What the command has printed since the last call of `forget`."""
        return self._printed.split(END)[0]

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return END in self._printed and self._printed.endswith("\n")

    def forget(self) -> None:
        """Counts what was printed as read."""
        self._printed = ""

    def wait(self) -> str:
        """Waits until the command ends; answers what it printed."""
        try:
            until(lambda: self.has_ended, "the command ends", 150)
        except AssertionError as late:
            raise AssertionError(f"{late}; it printed:\n{self._printed[-2000:]}") from None
        return self.printed

    def close(self) -> None:
        """Ends the shell."""
        self._bash.kill()
        self._bash.wait()
