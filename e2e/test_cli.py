"""The command line, against a server with real workers: what commands print, how they end, what they say when it fails."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.client import HANDLERS, Api, unique
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY, binary
from harness.wait import until

ROOT = Path(__file__).parent.parent
USAGE, JOB_FAILED, NOT_FOUND, UNAUTHORIZED, UNREACHABLE, TIMED_OUT, INTERRUPTED = 2, 3, 4, 5, 6, 7, 130


@dataclass
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Cli:
    """The program with a configuration folder of its own, and a key for one server in it."""

    def __init__(self, home: Path, url: str, key: str = ADMIN_KEY):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("RUNPOD_", "LONGSHORE_", "XDG_"))}
        self.env = clean | {"XDG_CONFIG_HOME": str(home)}
        self.url = url
        self.key = key

    def command(self, *words: str) -> list[str]:
        return [binary(), *(str(word) for word in words)]

    def environment(self, **more: str) -> dict[str, str]:
        return self.env | {"LONGSHORE_URL": self.url, "LONGSHORE_API_KEY": self.key} | more

    def run(self, *words: str, stdin: str = "", env: dict | None = None, timeout_s: float = 300) -> Done:
        """Runs a command to its end."""
        done = subprocess.run(
            self.command(*words), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False,
            env=self.environment() if env is None else env,
        )
        assert self.key not in done.stdout + done.stderr, "a key was shown"
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *words: str, **more) -> Done:
        """The same; it must work."""
        done = self.run(*words, **more)
        assert done.code == 0, f"{words}: {done}"
        return done

    def spawn(self, *words: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment(),
        )


@pytest.fixture
def cli(server, tmp_path):
    return Cli(tmp_path / "config", server.url)


@pytest.fixture
def echo(api):
    """An endpoint with real workers that give back what they get."""
    return api.endpoint("echo.py")


def fails(done: Done, code: int, *said: str) -> None:
    assert done.code == code, done
    assert done.out == "", done
    for text in (*said, "error:"):
        assert text in done.err, done


# Jobs.


def test_a_job_is_run_and_its_output_is_all_that_is_on_standard_output(cli, echo):
    done = cli.ok("run", echo.id, '{"n": 1.0, "big": 12345678901234567890}', "--wait")
    assert done.json["echo"] == {"n": 1.0, "big": 12345678901234567890}
    assert '"n": 1.0' in done.out and "COMPLETED" in done.err


def test_input_comes_from_a_file_or_from_standard_input(cli, echo, tmp_path):
    file = tmp_path / "input.json"
    file.write_text('{"from": "file"}')
    assert cli.ok("runsync", echo.id, f"@{file}").json["echo"] == {"from": "file"}
    assert cli.ok("runsync", echo.id, "-", stdin='{"from": "stdin"}\n').json["echo"] == {"from": "stdin"}
    file.write_text('{"input": {"from": "sample"}}')
    assert cli.ok("run", echo.id, f"@{file}", "--whole", "-w").json["echo"] == {"from": "sample"}


def test_a_job_is_followed_from_its_id(cli, endpoint, worker):
    job = cli.ok("run", endpoint.id, '{"a": 1}', "-o", "json", "--ttl", "1h").json["id"]
    assert cli.ok("status", endpoint.id, job, "-o", "json").json["status"] == "IN_QUEUE"
    assert worker.take()["id"] == job
    waiting = cli.spawn("status", endpoint.id, job, "--wait")
    worker.post("job-stream", job, {"output": "text"})
    worker.post("job-stream", job, {"output": {"a": 1.0}})
    worker.done(job, {"output": [1, 2]})
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, json.loads(out)) == (0, [1, 2]), err
    assert cli.ok("stream", endpoint.id, job).out == 'text\n{"a": 1.0}\n'
    assert cli.ok("stream", endpoint.id, job, "--offset", "1", "-o", "jsonl").out == '{"a": 1.0}\n'
    assert cli.ok("stream", endpoint.id, job, "-o", "json").json == ["text", {"a": 1.0}]


def test_a_job_that_fails_is_exit_code_3_with_its_error_and_can_be_retried(cli, endpoint, worker):
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.done(job, {"error": "out of luck"})
    done = cli.run("status", endpoint.id, job, "--wait")
    assert (done.code, done.out) == (JOB_FAILED, ""), done
    assert "FAILED" in done.err and "out of luck" in done.err
    # To look is no failure.
    assert cli.ok("status", endpoint.id, job).out.splitlines()[1] == "status         FAILED"
    assert cli.ok("retry", endpoint.id, job).out == f"{job}  IN_QUEUE\n"
    assert cli.ok("cancel", endpoint.id, job, "-o", "json").json["status"] == "CANCELLED"
    done = cli.run("retry", endpoint.id, job)
    assert (done.code, "only a FAILED or TIMED_OUT job" in done.err) == (1, True), done


def test_a_wait_that_is_over_leaves_the_job_and_says_how_to_follow_it(cli, endpoint):
    done = cli.run("run", endpoint.id, "--wait", "--timeout", "200ms")
    assert done.code == TIMED_OUT and done.out == "", done
    job = re.search(rf"longshore status {endpoint.id} (\S+) --wait", done.err)[1]
    assert endpoint.status(job)["status"] == "IN_QUEUE"
    done = cli.run("runsync", endpoint.id, "--timeout", "1s")
    assert done.code == TIMED_OUT and "--wait" in done.err, done


def test_ctrl_c_ends_the_wait_and_not_the_job(cli, endpoint):
    waiting = cli.spawn("run", endpoint.id, "--wait")
    until(lambda: endpoint.health()["jobs"]["inQueue"] == 1, "the job is in the queue")
    # It listens for signals before it asks for the job's state, which it does at least once.
    until(lambda: "SigCgt" in status(waiting.pid) and catches(waiting.pid, signal.SIGINT), "it hears signals")
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (INTERRUPTED, ""), err
    job = re.search(rf"longshore status {endpoint.id} (\S+) --wait", err)[1]
    assert "the job continues" in err and endpoint.status(job)["status"] == "IN_QUEUE"


def test_a_wait_outlives_a_restart_of_the_server(cli, fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    cli = Cli(Path(cli.env["XDG_CONFIG_HOME"]), server.url)
    ours, theirs = pty.openpty()
    waiting = subprocess.Popen(
        cli.command("run", endpoint.id, "--wait"), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=cli.environment(TERM="xterm"),
    )
    os.close(theirs)
    # The job's position is shown once the request that submits it has its answer.
    shown = b""
    while b"queued, position 1 of 1" not in shown:
        shown += os.read(ours, 65536)
    server.kill()
    server.start()
    worker = FakeWorker(endpoint)
    worker.done(worker.take()["id"], {"output": "still here"})
    out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (0, '"still here"\n'), shown
    os.close(ours)


def test_a_terminal_shows_the_position_then_the_progress_then_the_end(cli, endpoint, worker):
    endpoint.run()
    ours, theirs = pty.openpty()
    waiting = subprocess.Popen(
        cli.command("run", endpoint.id, "--wait"), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=cli.environment(TERM="xterm"),
    )
    os.close(theirs)
    shown = b""

    def sees(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(ours, 65536)

    sees(b"queued, position 2 of 2")
    worker.take()
    sees(b"queued, position 1 of 1")
    job = worker.take(busy=True)["id"]
    worker.done(job, {"status": "IN_PROGRESS", "output": "half of it"})
    sees("running · half of it".encode())
    worker.done(job, {"output": {"all": "of it"}})
    sees(b"COMPLETED")
    assert json.loads(waiting.stdout.read()) == {"all": "of it"} and waiting.wait(60) == 0
    os.close(ours)


def test_a_terminal_gets_the_chunks_as_they_come_and_once(cli, endpoint, worker):
    ours, theirs = pty.openpty()
    waiting = subprocess.Popen(
        cli.command("run", endpoint.id, "--wait"), stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL,
        env=cli.environment(TERM="xterm"),
    )
    os.close(theirs)
    job = worker.take()["id"]
    shown = b""

    def sees(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(ours, 65536)

    worker.post("job-stream", job, {"output": "first\x1b[2J"})
    sees("first\ufffd[2J".encode())
    worker.post("job-stream", job, {"output": {"n": 1.0}})
    sees(b'{"n": 1.0}\r\n')
    worker.post("job-stream", job, {"output": "data:image/png;base64," + "aB3+" * 500})
    sees(b"<image/png, 1.5 kB as base64>\r\n")
    worker.done(job, {"output": []})
    with contextlib.suppress(OSError):  # Reading a terminal whose writer has ended.
        while more := os.read(ours, 65536):
            shown += more
    expected = 'first\ufffd[2J\r\n{"n": 1.0}\r\n<image/png, 1.5 kB as base64>\r\n[]\r\n'
    assert waiting.wait(60) == 0 and shown.decode() in (expected, expected.removesuffix("[]\r\n")), shown
    os.close(ours)


def test_chunks_of_text_continue_a_line(cli, endpoint, worker):
    ours, theirs = pty.openpty()
    waiting = subprocess.Popen(
        cli.command("run", endpoint.id, "--wait"), stdin=theirs, stdout=theirs, stderr=theirs,
        env=cli.environment(TERM="xterm"),
    )
    os.close(theirs)
    job = worker.take()["id"]
    texts, shown = ["Once ", "upon ", "a ", "time."], b""
    for text in texts:
        worker.post("job-stream", job, {"output": text})
        # Each chunk is shown before the next one comes, and the moving line does not come back in between.
        while text.encode() not in shown:
            shown += os.read(ours, 65536)
    worker.done(job, {"output": texts})
    with contextlib.suppress(OSError):  # Reading a terminal whose writer has ended.
        while more := os.read(ours, 65536):
            shown += more
    assert waiting.wait(60) == 0 and b"Once upon a time.\r\n" in shown, shown
    assert b"COMPLETED" in shown.split(b"time.")[1], shown
    os.close(ours)
    assert cli.ok("stream", endpoint.id, job).out == "Once upon a time.\n"
    assert cli.ok("stream", endpoint.id, job, "--offset", "2", "-o", "jsonl").out == '"a "\n"time."\n'


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def catches(pid: int, number: int) -> bool:
    caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status(pid))[1]
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_queues_are_looked_at_and_emptied(cli, endpoint):
    jobs = [endpoint.run() for _ in range(3)]
    assert cli.ok("health", endpoint.id, "-o", "json").json["jobs"]["inQueue"] == 3
    assert "3 in queue" in cli.ok("health", endpoint.id).out
    listed = cli.ok("requests", endpoint.id, "--limit", "2", "--status", "in_queue", "-o", "jsonl")
    assert [json.loads(line)["id"] for line in listed.out.splitlines()] == jobs[:0:-1]
    cursor = re.search(r"--cursor (\S+)", listed.err)[1]
    rest = cli.ok("requests", endpoint.id, "--cursor", cursor).out.splitlines()
    assert len(rest) == 2 and rest[1].startswith(jobs[0]), rest
    fails(cli.run("purge", endpoint.id), USAGE, "cancel the 3 jobs", "--yes")
    assert cli.ok("purge", endpoint.id, "--yes", "-o", "json").json == {"removed": 3}


# What goes wrong.


def test_errors_have_their_exit_code_and_a_next_step(cli, endpoint):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        fails(cli.run("health", "hello", "--url", url), UNREACHABLE, "cannot reach", "longshore serve")
    fails(cli.run("health", endpoint.id, "--api-key", "ls_wrong"), UNAUTHORIZED, "longshore login")
    fails(cli.run("health", "nosuchendpoint"), NOT_FOUND, "no endpoint has this", "longshore endpoint list")
    job = "0190163d-8694-739b-aea5-966c26f8ad90"
    fails(cli.run("status", endpoint.id, job), NOT_FOUND, "longshore requests")
    fails(cli.run("template", "get", "nosuchtemplate"), NOT_FOUND, "longshore template list")
    fails(cli.run("run", endpoint.id, '{"a": 1,\n "b": oops}'), USAGE, "line 2, column 7", ' "b": oops}', "      ^")
    fails(cli.run("run", endpoint.id, "[1]"), USAGE, "must be a JSON object")
    fails(cli.run("run", endpoint.id, "@/no/such/file"), USAGE - 1, "cannot read /no/such/file")
    fails(cli.run("endpoint", "update", endpoint.id), USAGE, "no field to change")
    fails(cli.run("endpoint", "update", endpoint.id, "--json", '{"workersMx": 2}'), 1, "workersMax")
    assert cli.run("run").code == USAGE and cli.run("status", endpoint.id, "x").code == USAGE
    assert cli.run("run", "a/../b").code == USAGE


def test_a_key_goes_to_the_server_that_it_was_stored_for_only(cli, tmp_path):
    fails(cli.run("endpoint", "list", env=cli.env), UNAUTHORIZED, "no key", "longshore login")
    stored = cli.ok("login", "--url", cli.url + "/", stdin=ADMIN_KEY + "\n", env=cli.env)
    assert "stored as `default`" in stored.out
    file = tmp_path / "config" / "longshore" / "config.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    cli.ok("endpoint", "list", env=cli.env)
    fails(cli.run("endpoint", "list", "--url", "http://127.0.0.1:9", env=cli.env), UNAUTHORIZED, "is for " + cli.url)
    fails(cli.run("endpoint", "list", "--profile", "lab", env=cli.env), USAGE, "known: default", "--profile lab")
    fails(cli.run("login", "--url", cli.url, stdin="ls_wrong\n", env=cli.env), UNAUTHORIZED, "does not accept this key")
    fails(cli.run("login", "--url", cli.url, stdin="\n", env=cli.env), USAGE, "no key given")
    file.write_text(file.read_text() + "oops\n")
    fails(cli.run("endpoint", "list", env=cli.env), USAGE, "line 4")


# Resources.


def test_templates_and_endpoints_are_made_changed_and_deleted(cli):
    name = unique("cli")
    template = cli.ok(
        "template", "create", "--name", name, "--command", sys.executable, "--command", "-u",
        "--command", HANDLERS / "echo.py", "--env", "A=1", "--env", "B=2", "-o", "json",
    ).json
    assert template["env"] == {"A": "***", "B": "***"}
    changed = cli.ok("template", "update", template["id"], "--env", "C=3", "--unset-env", "A", "-o", "json").json
    assert changed["env"] == {"B": "***", "C": "***"} and changed["dockerStartCmd"] == template["dockerStartCmd"]
    made = cli.ok(
        "endpoint", "create", "--slug", name, "--template", template["id"], "--provider", "process",
        "--workers-max", "2", "--json", '{"maxRetries": 5, "workersMax": 9, "idleTimeout": 60}', "-o", "json",
    ).json
    assert (made["workersMax"], made["maxRetries"], made["slug"]) == (2, 5, name)
    assert cli.ok("runsync", name, '{"x": 1}').json["echo"] == {"x": 1}
    fails(cli.run("template", "delete", template["id"], "--yes"), 1, made["id"])
    row = next(line for line in cli.ok("endpoint", "list").out.splitlines() if made["id"] in line)
    assert name in row and template["id"] in row
    assert cli.ok("endpoint", "get", name, "--workers", "-o", "json").json["workers"]
    shown = cli.ok("endpoint", "get", name)
    assert "workersMax" in shown.out and "maxRetries" not in shown.out and "--all" in shown.err, shown
    assert "maxRetries" in cli.ok("endpoint", "get", name, "--all").out
    paused = cli.ok("endpoint", "pause", name)
    assert f"longshore endpoint resume {name}" in paused.err
    assert cli.ok("endpoint", "get", name, "-o", "json").json["workersMax"] == 0
    cli.ok("endpoint", "pause", name)
    assert "2 workers" in cli.ok("endpoint", "resume", name).out, "as many as before"
    assert "not paused" in cli.ok("endpoint", "resume", name).out
    cli.ok("endpoint", "resume", name, "--workers-max", "1")
    assert cli.ok("endpoint", "get", name, "-o", "json").json["workersMax"] == 1
    assert cli.ok("endpoint", "update", name, "--idle-timeout", "7", "-o", "jsonl").json["idleTimeout"] == 7
    fails(cli.run("endpoint", "delete", name), USAGE, "--yes")
    cli.ok("endpoint", "delete", name, "--drain", "--yes")
    cli.ok("template", "delete", template["id"], "--yes")
    fails(cli.run("endpoint", "get", name), NOT_FOUND)


def test_keys_are_made_limited_and_revoked(cli, endpoint):
    made = cli.ok("keys", "create", "--name", "ci", "--scope", f"jobs:{endpoint.id}", "--expires", "1d", "-o", "json").json
    theirs = cli.env | {"LONGSHORE_URL": cli.url, "LONGSHORE_API_KEY": made["key"]}
    cli.ok("run", endpoint.id, env=theirs)
    fails(cli.run("endpoint", "list", env=theirs), UNAUTHORIZED)
    assert made["id"] in cli.ok("keys", "list").out and made["key"] not in cli.ok("keys", "list").out
    cli.ok("keys", "update", made["id"], "--disable")
    fails(cli.run("health", endpoint.id, env=theirs), UNAUTHORIZED)
    cli.ok("keys", "update", made["id"], "--enable", "--name", "again")
    assert cli.ok("keys", "get", made["id"], "-o", "json").json["name"] == "again"
    cli.ok("keys", "delete", made["id"], "--yes")
    fails(cli.run("keys", "get", made["id"]), NOT_FOUND, "longshore keys list")


# Workers and their logs.


def test_workers_are_listed_and_their_logs_followed_beyond_their_end(cli, api):
    endpoint = api.endpoint("echo.py", workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1)
    [worker] = [json.loads(line) for line in cli.ok("workers", endpoint.id, "-o", "jsonl").out.splitlines()]
    assert worker["status"] == "IDLE"
    logged = cli.ok("logs", endpoint.id)
    assert "Starting Serverless Worker" in logged.out and logged.out.startswith(worker["id"][:8]), logged
    assert cli.ok("logs", endpoint.id, "--worker", worker["id"], "--tail", "0").out == ""
    following = cli.spawn("logs", "-f", endpoint.id)
    try:
        for line in following.stdout:
            if "Starting Serverless Worker" in line:
                break
        endpoint.runsync({})
        for line in following.stdout:
            if "Finished" in line:
                break
        else:
            raise AssertionError(following.stderr.read())
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=60)
    assert following.returncode == 0
    endpoint.patch(workersMin=0, workersMax=0)

    def ended():
        rows = cli.ok("workers", endpoint.id, "--all", "-o", "jsonl").out.splitlines()
        assert [json.loads(row)["status"] for row in rows] == ["EXITED"], rows

    until(lambda: ended() or True, "the worker has ended", 30)
    shown = cli.ok("workers", endpoint.id, "-a").out
    assert re.search(rf"^{worker['id'][:8]} +EXITED .* stopped: .*, after [\d.]+ m?s$", shown, re.M), shown
    assert "Finished" in cli.ok("logs", endpoint.id).out
    assert "Finished" in cli.ok("logs", endpoint.id, "--worker", worker["id"], "-f").out
    fails(cli.run("logs", endpoint.id, "--worker", "unknown"), NOT_FOUND)
    other = api.external()
    fails(cli.run("logs", other.id, "--worker", worker["id"]), NOT_FOUND)


# Servers.


def test_top_shows_every_endpoint_once(cli, endpoint):
    endpoint.run()
    rows = cli.ok("top", "--once", "--interval", "100ms", "-o", "json").json
    [row] = [row for row in rows if row["id"] == endpoint.id]
    assert row["queued"] == 1 and row["donePerSecond"] == 0.0 and row["gpus"] == 0
    assert row["cause"]["code"] == "no_external_worker" and row["cause"]["blocking"], row
    assert cli.ok("top", "--once", "--interval", "100ms").out.startswith("ENDPOINT")


def test_top_redraws_a_terminal_and_leaves_it_as_it_was(cli, fresh_server):
    # The screen has room for a few endpoints only, so the server has no other than this one.
    server = fresh_server()
    Api(server).external().run()
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    watching = subprocess.Popen(
        cli.command("top", "--interval", "100ms"), stdin=theirs, stdout=theirs, stderr=theirs,
        env=cli.environment(TERM="xterm", LONGSHORE_URL=server.url),
    )
    os.close(theirs)
    shown = b""
    while shown.count(b"\x1b[H") < 3:
        shown += os.read(ours, 65536)
    assert shown.startswith(b"\x1b[?1049h") and b"ENDPOINT" in shown, shown
    # No line wraps, and the reason stands below its endpoint, in yellow or red.
    lines = [re.sub(r"\x1b\[[?\d;]*[A-Za-z]|\r", "", line) for line in shown.decode().split("\n")]
    assert max(map(len, lines)) <= 60, lines
    assert "TREND" in lines[3], lines
    assert b"  \x1b[31mNo worker is there: " in shown, shown
    watching.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # Reading a terminal whose writer has ended.
        while True:
            shown += os.read(ours, 65536)
    assert watching.wait(60) == 0 and shown.endswith(b"\x1b[?1049l"), shown[-100:]
    os.close(ours)


def test_bench_measures_and_leaves_nothing_behind(cli, fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"))
    env = cli.env | {"LONGSHORE_URL": server.url, "LONGSHORE_API_KEY": ADMIN_KEY}
    figures = cli.ok("bench", "-n", "50", "-c", "4", "-o", "json", env=env).json
    assert (figures["completed"], figures["lost"], figures["refused"]) == (50, 0, 0), figures
    assert 0 < figures["p50Ms"] <= figures["p99Ms"] <= figures["maxMs"] and figures["perSecond"] > 0
    assert cli.ok("endpoint", "list", "-o", "json", env=env).json == []
    assert cli.ok("template", "list", "-o", "json", env=env).json == []


def test_doctor_finds_what_keeps_a_server_from_working(cli, server, tmp_path):
    good = cli.ok("doctor", "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0", "-o", "json", env=cli.env).json
    found = {row["subject"]: row["status"] for row in good}
    assert {"config", "disk", "disk sync", "port", "clock", "open files", "gpus", "python", "secrets", "cgroup"} <= set(found)
    assert found["secrets"] == "warn" and "fail" not in found.values(), good
    ours = cli.ok("doctor", "--listen", f"127.0.0.1:{server.port}", "--data-dir", tmp_path, env=cli.env)
    assert "a Longshore server answers" in ours.out
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli.run("doctor", "--listen", f"127.0.0.1:{taken.getsockname()[1]}", env=cli.env)
        assert done.code == 1 and "another program" in done.out, done
    (tmp_path / "bad.toml").write_text("listn = 1\n")
    done = cli.run("doctor", "--config", tmp_path / "bad.toml", env=cli.env)
    assert done.code == 1 and "did you mean" in done.out, done


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts_that_their_shell_reads(cli, tmp_path, shell):
    script = tmp_path / "script"
    script.write_text(cli.ok("completions", shell).out)
    assert "runsync" in script.read_text()
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)


def test_man_pages_are_written_for_every_command(cli, tmp_path):
    assert cli.ok("man").out.startswith(".ie") or ".TH longshore" in cli.ok("man").out
    cli.ok("man", "--dir", tmp_path / "man1")
    pages = {page.name for page in (tmp_path / "man1").iterdir()}
    assert {"longshore.1", "longshore-run.1", "longshore-endpoint-create.1"} <= pages


# Deploying.


def folder(parent: Path, name: str, text: str) -> Path:
    """A folder whose handler needs no packages: a hand-written worker starts immediately."""
    target = parent / name
    target.mkdir(exist_ok=True)
    (target / "worker.py").write_text((HANDLERS / "echo.py").read_text().replace('"echo"', f'"{text}"'))
    (target / "longshore.toml").write_text(f'command = ["{sys.executable}", "-u", "worker.py"]\n')
    (target / "test_input.json").write_text('{"input": {"n": 1}}')
    return target


def test_a_folder_is_deployed_changed_and_brought_back(cli, tmp_path):
    name = unique("deploy")
    first = cli.ok("deploy", folder(tmp_path, name, "first"))
    assert "first" in first.json and "version 1" in first.err, first
    second = cli.ok("deploy", folder(tmp_path, name, "second"))
    assert "second" in second.json and "version 2" in second.err, second
    again = cli.ok("deploy", tmp_path / name, "--no-sample")
    assert "already runs" in again.err and "(version 2): nothing changed" in again.err, again
    newest, oldest = cli.ok("deploy", tmp_path / name, "--list", "-o", "json").json
    assert (newest["version"], oldest["version"]) == (2, 1) and newest["codeHash"] != oldest["codeHash"]
    back = cli.ok("deploy", tmp_path / name, "--to", oldest["codeHash"][:10])
    assert "first" in back.json and "version 3" in back.err, back
    assert cli.ok("runsync", name, '{"n": 2}').json["first"] == {"n": 2}
    back = cli.ok("deploy", tmp_path / name, "--to", "2", "--no-sample")
    assert f"runs {newest['codeHash'][:12]} (version 4)" in back.err, back
    assert cli.ok("runsync", name, '{"n": 3}').json["second"] == {"n": 3}
    table = cli.ok("deploy", tmp_path / name, "--list").out.splitlines()
    codes = [version["codeHash"][:12] for version in (newest, oldest)]
    assert table[1].split()[:3] == ["*", "4", codes[0]], table
    rest = [line.split()[:2] for line in table[2:]]
    assert rest == [["3", codes[1]], ["2", codes[0]], ["1", codes[1]]], table
    assert "workdir" in table[1] and "env.LONGSHORE_CODE_VERSION" in table[1], table
    for unknown in ("0000", "9"):
        fails(cli.run("deploy", tmp_path / name, "--to", unknown), NOT_FOUND, "--list")


def test_the_code_of_a_deployment_stays_when_its_template_goes(tmp_path, fresh_server):
    server = fresh_server()
    cli = Cli(tmp_path / "home", server.url)
    name = unique("deploy")
    cli.ok("deploy", folder(tmp_path, name, "x"), "--no-sample")
    deleted = cli.ok("endpoint", "delete", name, "--yes")
    template = re.search(r"longshore template delete (\w+)", deleted.err)[1]
    code = server.data / "code" / name
    for path in (code, *code.iterdir()):
        # Its age does not matter: it has to be unused for a day while a server runs.
        os.utime(path, (0, 0))
    cli.ok("template", "delete", template, "--yes")
    server.terminate()
    server.start()
    fails(cli.run("deploy", tmp_path / name, "--to", "1"), NOT_FOUND, "creates it")
    again = cli.ok("deploy", tmp_path / name)
    assert "x" in again.json and "(version 1)" in again.err, again
    assert len([path for path in code.iterdir() if path.is_dir() and not path.name.startswith("env-")]) == 1


def test_a_handler_that_does_not_start_is_shown_with_its_last_words(cli, tmp_path):
    target = folder(tmp_path, unique("deploy"), "x")
    (target / "worker.py").write_text('raise SystemExit("no model here")\n')
    done = cli.run("deploy", target)
    fails(done, 1, "keep exiting", "no model here", "--to VERSION")
    shown = cli.ok("workers", target.name, "-a").out
    assert re.search(r"^\w{8} +EXITED .* (now|\S+ m?s ago) .* code 1, after [\d.]+ m?s$", shown, re.M), shown

    (target / "worker.py").write_text("def handler(job):\n    return 1\n")
    fails(cli.run("deploy", target), 1, "exited with code 0", 'runpod.serverless.start({"handler": handler})')


def test_what_is_no_archive_is_refused(api, server):
    for body in (b"", b"{}", b"\x1f\x8b" + b"x" * 100):
        answer = api.call("POST", "/v1/code?name=hello", data=body, headers={"Content-Type": "application/gzip"})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_archive"), answer.text
    assert not (server.data / "code" / "hello").exists() or not list((server.data / "code" / "hello").iterdir())


def test_an_endpoint_is_named_by_a_slug_with_a_slash(cli, api):
    slug = f"Org/{unique('Model')}.v1_x"
    endpoint = api.external(slug=slug)
    assert cli.ok("endpoint", "get", slug, "-o", "json").json["id"] == endpoint.id
    job = cli.ok("run", slug, "{}", "-o", "json").json["id"]
    assert cli.ok("status", slug, job, "-o", "json").json["status"] == "IN_QUEUE"
    assert "1 in queue" in cli.ok("health", slug).out
    cli.ok("cancel", slug, job)
    cli.ok("endpoint", "update", slug, "--workers-max", "1")
    cli.ok("endpoint", "delete", slug, "--yes")
    assert api.call("GET", f"/v1/endpoints/{endpoint.id}").status_code == 404
