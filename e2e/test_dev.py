"""`longshore dev`: from a folder with a handler to a printed result, with one command.

The first run in a folder makes a virtual environment and installs the SDK into it, as it does for a person; all share
pip's cache.
"""

import itertools
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import requests

from harness import processes
from harness.server import binary
from harness.wait import until

EXAMPLES = Path(__file__).parent.parent / "examples"


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("RUNPOD_", "LONGSHORE_"))}


def assert_nothing_runs_under(folder: Path) -> None:
    def no_zygote() -> bool:
        running = processes.started_under(folder)
        return not any("longshore_runtime import zygote" in processes.arguments(pid) for pid in running)

    # It ends when it sees that the server has ended. Workers end before the server.
    until(no_zygote, "the zygote has ended", 10)
    left = {pid: processes.arguments(pid) for pid in processes.started_under(folder)}
    for pid in left:
        processes.send(pid, signal.SIGKILL)
    assert not left, f"still running: {left}"


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """The template `hello`, and what its first run printed, which installs what it needs. Its packages are those of all examples."""
    folder = tmp_path_factory.mktemp("dev") / "hello"
    made = subprocess.run([binary(), "init", "hello", folder], capture_output=True, text=True, check=True)
    assert f"longshore dev {folder}" in made.stdout, made
    code, printed = once(folder)
    assert code == 0, printed
    yield folder, printed


@pytest.fixture(scope="module")
def installed(first_run):
    """The template as it is after its first run."""
    return first_run[0]


@pytest.fixture
def hello(installed):
    """The same with the files of the example; no process may be left there afterwards."""
    for name in ("handler.py", "test_input.json"):
        shutil.copy(EXAMPLES / "hello" / name, installed / name)
    yield installed
    assert_nothing_runs_under(installed)


def once(folder: Path, timeout_s: float = 500) -> tuple[int, str]:
    """`longshore dev FOLDER --once`; answers the exit code and everything printed."""
    done = subprocess.run(
        [binary(), "dev", str(folder), "--once"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=environment(), timeout=timeout_s, check=False,
    )
    return done.returncode, done.stdout


def test_the_first_run_of_a_template_installs_what_it_needs(first_run):
    folder, printed = first_run
    assert "COMPLETED" in printed, printed
    assert (folder / ".longshore/venv/bin/python").exists()
    assert_nothing_runs_under(folder)


@pytest.mark.parametrize("example", ["stream", "concurrent", "openai"])
def test_examples_run_once(hello, example):
    """In a folder whose first run was that of the template: all of them need the same packages."""
    files = [path for path in (EXAMPLES / example).iterdir() if path.is_file() and path.name != "README.md"]
    for path in files:
        shutil.copy(path, hello)
    try:
        code, printed = once(hello)
    finally:
        (hello / "longshore.toml").unlink(missing_ok=True)
    assert code == 0, printed
    assert "COMPLETED" in printed, printed


def test_hello_prints_its_result(hello):
    (hello / "test_input.json").write_text('{"input": {"name": "Ada"}}')
    code, printed = once(hello)
    assert code == 0 and "Ada" in printed, printed


@pytest.mark.parametrize("broken, says", [
    ("import runpod\n\nraise RuntimeError('no weights here')\n", "no weights here"),
    ("import no_such_module_anywhere\n", "no_such_module_anywhere"),
    ("def handler(job):\n    return 1\n", 'runpod.serverless.start({"handler": handler})'),
    ("import runpod\n\ndef handler(job):\n    raise ValueError('bad prompt')\n\n"
     "runpod.serverless.start({'handler': handler})\n", "bad prompt"),
])
def test_broken_handler_is_exit_1_with_the_reason(hello, broken, says):
    (hello / "handler.py").write_text(broken)
    code, printed = once(hello)
    assert code == 1 and says in printed, printed


def test_folder_without_handler_says_what_is_missing(tmp_path):
    code, printed = once(tmp_path)
    assert code == 1 and "handler.py" in printed and "longshore init hello" in printed


def test_other_commands_find_a_running_dev_until_it_ends(hello, tmp_path):
    env = environment() | {"XDG_CONFIG_HOME": str(tmp_path)}
    # `pip` reads its settings from there, but the packages are installed already.
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [binary(), "dev", "--port", "0"], cwd=hello, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
        )

    def longshore(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([binary(), *words], capture_output=True, text=True, env=env, timeout=100, check=False)

    try:
        until(lambda: "watching for changes" in log.read_text() or process.poll() is not None, "the sample ran", 140)
        assert "    longshore run hello '{\"name\":" in log.read_text(), log.read_text()
        [file] = (tmp_path / "longshore" / "dev").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        done = longshore("run", "hello", '{"name": "Grace"}', "--wait")
        assert done.returncode == 0 and "Hello, Grace!" in done.stdout, done
        assert "hello" in longshore("top", "--once").stdout
        assert "Finished" in longshore("logs", "hello").stdout
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130), log.read_text()
    assert not file.exists()
    assert "no key" in longshore("run", "hello").stderr


def test_port_that_is_taken_and_ctrl_c(hello):
    holders = []
    try:
        for port in (8080, 8081):
            holder = socket.socket()
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holders.append(holder)
            try:
                holder.bind(("127.0.0.1", port))
                holder.listen()
            except OSError:
                pass  # Another program has the port, which is also a taken port.
        log = hello.parent / "log"
        env = environment() | {"XDG_CONFIG_HOME": str(hello.parent)}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [binary(), "dev", str(hello)], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
            )
        try:

            def has_printed_all() -> bool:
                lines = ("COMPLETED", "curl", "runpod.Endpoint", "runpodSdk")
                return all(line in log.read_text() for line in lines) or process.poll() is not None

            until(has_printed_all, "the sample ran, and lines to copy are there", 140)
            printed = log.read_text()
            assert process.poll() is None and "8080 is in use" in printed, printed
            port = int(printed.split("http://127.0.0.1:")[1].split("/")[0].split()[0])
            assert port not in (8080, 8081)
            assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) in (0, 130), log.read_text()
    finally:
        for holder in holders:
            holder.close()


NOTED = """
import os

with open({note!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
"""
IMPORTS = """
import sys

import runpod
import noted_package


def handler(job):
    return {{"edit": {edit}, "isFork": "longshore_runtime.zygote" in sys.modules}}


runpod.serverless.start({{"handler": handler}})
"""


def test_a_saved_file_is_run_without_its_imports(hello):
    """`dev` starts later workers as forks: the imports of packages in the folder's own environment happen once."""
    (packages,) = (hello / ".longshore/venv/lib").glob("python3.*/site-packages")
    note = hello.parent / "imports"
    (packages / "noted_package.py").write_text(NOTED.format(note=str(note)))
    (hello / "handler.py").write_text(IMPORTS.format(edit=0))
    log = hello.parent / "noted.log"
    env = environment() | {"XDG_CONFIG_HOME": str(hello.parent)}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [binary(), "dev", "--port", "0", str(hello)], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
        )

    def result_of(edit: int) -> str:
        answer = until(lambda: log.read_text().partition(f'"edit": {edit}')[2] or process.poll() is not None, "the result", 100)
        assert process.poll() is None, log.read_text()
        return answer.partition("}")[0]

    def is_fork(edits=itertools.count(1)) -> bool:
        edit = next(edits)
        (hello / "handler.py").write_text(IMPORTS.format(edit=edit))
        return '"isFork": true' in result_of(edit)

    def has_imports_already() -> bool:
        before = note.read_text()
        return is_fork() and note.read_text() == before

    try:
        assert '"isFork": false' in result_of(0)
        until(has_imports_already, "the worker of a saved file is a fork of a process with its imports", 100)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130), log.read_text()
        (packages / "noted_package.py").unlink()
