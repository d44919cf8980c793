"""The sessions in README and manual, typed as they stand there. `harness/transcript.py` describes their blocks.

With LONGSHORE_RECORD=1 the documents get the outputs that were seen, to be read before they are kept. An output with
`…` stays as it is.
"""

import os
import re
import signal
import socket
import sys
from pathlib import Path

import pytest

from harness import processes, transcript
from harness.server import binary
from harness.terminal import Terminal
from harness.transcript import ROOT, Block, Step
from harness.wait import until

PORTS = ("8080", "8081", "8443", "9000")
"""Ports in the documents; a session has free ones in their place."""
FOLDERS = ("/var/lib/longshore", "/etc/longshore", "/srv/longshore", "/backup")
"""Folders in the documents that a session has in a temporary folder."""
WRAPPER = """#!/bin/sh
case "$1 $*" in
  "dev "*--port*) ;;
  "dev "*) set -- "$@" --port {port} ;;
  "serve "*--listen*) ;;
  "serve "*) set -- "$@" --listen 127.0.0.1:{port} ;;
esac
exec {program} "$@"
"""
JOB = re.compile(r"(?:sync-)?[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
RECORDS = bool(os.environ.get("LONGSHORE_RECORD"))


class Session:
    """The terminals of one page, and the places of its ports and folders."""

    def __init__(self, folder: Path):
        self.home = folder / "home"
        self.home.mkdir()
        (folder / "scripts").mkdir()
        (folder / "bin").mkdir()
        # Not on a terminal, curl draws a progress meter.
        (self.home / ".curlrc").write_text("silent\nshow-error\n")
        self._folder = folder
        self._reserved = [socket.socket() for _ in PORTS]
        for reserved in self._reserved:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind(("127.0.0.1", 0))
        self._places = [
            (f":{port}", f":{reserved.getsockname()[1]}") for port, reserved in zip(PORTS, self._reserved, strict=True)
        ]
        self._places += [(place, f"{folder}{place}") for place in FOLDERS]
        for _, place in self._places[len(PORTS):]:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
        self._terminals: dict[str, Terminal] = {}
        self._job = ""
        self._install()

    def _install(self) -> None:
        """Puts the program into the PATH. Where a command leaves the port to it, it gets the one of the session."""
        port = self.typed(":8080")[1:]
        program = self._folder / "bin" / "longshore"
        program.write_text(WRAPPER.format(port=port, program=Path(binary()).resolve()))
        program.chmod(0o755)

    @property
    def _environment(self) -> dict[str, str]:
        """That of the tests, without proxy, key or settings of the person who runs them."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RUNPOD_", "LONGSHORE_", "XDG_"))}
        path = f"{self._folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        cache = Path(os.environ.get("PIP_CACHE_DIR", Path.home() / ".cache/pip"))
        more = {"HOME": str(self.home), "PATH": path, "REPOSITORY": str(ROOT), "PIP_CACHE_DIR": str(cache)}
        return kept | more | {"NO_PROXY": "127.0.0.1,localhost"}

    def terminal(self, name: str) -> Terminal:
        """The terminal of this name, opened where it is new."""
        if name not in self._terminals:
            self._terminals[name] = Terminal(self._folder / "scripts", self._environment)
        return self._terminals[name]

    def typed(self, text: str) -> str:
        """What the session types for a text of the page. A job's id stands for that of the last job."""
        if self._job:
            text = JOB.sub(self._job, text)
        for shown, place in self._places:
            text = text.replace(shown, place)
        return text

    def shown(self, text: str) -> str:
        """What the page shows for a text of the session."""
        for shown, place in self._places:
            text = text.replace(place, shown)
        if jobs := JOB.findall(text):
            self._job = jobs[-1]
        return text.replace(str(self.home), "~")

    def left(self) -> list[int]:
        """Processes that the session has started: by their arguments, and by the server that workers work for."""
        ports = [int(place[1:]) for _, place in self._places[: len(PORTS)]]
        workers = {pid for port in ports for pid in processes.worker_pids(port)}
        home = {pid for pid in processes.pids() if processes.environment(pid).get("HOME") == str(self.home)}
        return sorted(workers | home | set(processes.started_under(self._folder)))

    def close(self) -> None:
        """Ends everything that the session has started."""
        for terminal in self._terminals.values():
            terminal.close()
        until(self._is_empty, "the processes of the session are gone", 10)
        for reserved in self._reserved:
            reserved.close()

    def _is_empty(self) -> bool:
        for pid in self.left():
            processes.send(pid, signal.SIGKILL)
        return not self.left()


@pytest.fixture
def terminals(tmp_path):
    """A session in an empty home."""
    session = Session(tmp_path)
    yield session
    session.close()


def play(step: Step, session: Session, terminal: Terminal, goes_on: bool) -> str:
    """Types a step; answers what it printed, as the page would show it."""
    if step.command == "^C\n":
        terminal.forget()
        terminal.interrupt()
    elif step.command is not None:
        terminal.type(session.typed(step.command))
    if goes_on:
        until(lambda: has_printed(step, session.shown(terminal.printed)), "the command prints what the page shows", 150)
        printed = session.shown(terminal.printed)
        terminal.forget()
        return printed
    return session.shown(terminal.wait())


def has_printed(step: Step, printed: str) -> bool:
    """Fails with what was printed where it is not yet what the page shows."""
    assert transcript.matches(step.output, printed, goes_on=True), printed
    return True


def run(block: Block, session: Session) -> None:
    """Types the commands of a block, and compares or records what they print."""
    terminal = session.terminal(block.terminal)
    for at, step in enumerate(block.steps):
        goes_on = step.command is None or (block.stays and at + 1 == len(block.steps))
        print(f"terminal {block.terminal}: {step.command or step.output}")
        printed = play(step, session, terminal, goes_on)
        if block.hidden or goes_on:
            continue
        if RECORDS and "…" not in step.output:
            step.output = transcript.recorded(printed)
        assert transcript.matches(step.output, printed), f"$ {step.command}prints now:\n{printed}"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", transcript.pages(), ids=lambda page: page.stem)
def test_the_sessions_of_the_page_are_true(page, terminals):
    text = page.read_text()
    blocks = transcript.blocks(text)
    assert any(block.steps for block in blocks)
    for block in blocks:
        if block.save:
            file = terminals.home / block.save
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(terminals.typed(block.content))
        else:
            run(block, terminals)
    if RECORDS:
        for block in reversed([block for block in blocks if block.steps and not block.hidden]):
            text = text[: block.start] + transcript.session(block.steps) + text[block.end :]
        page.write_text(text)


def test_an_output_that_differs_is_seen():
    assert transcript.matches("a 12 ms\n", "a 7.5 s\n")
    assert not transcript.matches("a\n", "a\nb\n")
    assert not transcript.matches("a\nb\n", "a\n")
    assert transcript.matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert transcript.matches("a\n…\nd\n", "a\nd\n")
    assert not transcript.matches("a\n…\nd\n", "a\nb\nc\n")
    assert transcript.matches("a … d\n", "a b c d\n")
    assert transcript.matches("…\nlast\n", "first\nlast\n")
    assert transcript.matches("first\n…\n", "first\nsecond\nlast\n")
    assert transcript.matches("first\n", "first\nsecond\n", goes_on=True)
