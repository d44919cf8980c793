"""The files of the worker runtime by themselves: what is edited, what is left alone, and how Python gets it."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness import sdk
from harness.wait import until

sys.path.insert(0, str(sdk.ROOT / "python"))

import make_known  # noqa: E402
from longshore_runtime import edits, known, processor  # noqa: E402

RUNTIME = str(sdk.ROOT / "python")
SCALE = "runpod.serverless.modules.rp_scale"


def run(code: str, *path: str, **env: str) -> subprocess.CompletedProcess:
    """Runs Python with the runtime first in PYTHONPATH, then these folders."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join((RUNTIME, *path)), **env}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run
    return run


def fake_sdk(folder: Path, scale: str) -> str:
    """A package tree with this source as the SDK's scaler."""
    package = folder
    for name in ("runpod", "serverless", "modules"):
        package = package / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (package / "rp_scale.py").write_text(scale)
    return str(folder)


@pytest.mark.parametrize("version", make_known.VERSIONS if sdk.IS_LONG else sdk.SHORT)
def test_the_table_has_the_edits_of_the_wheels(version):
    for name in make_known.FILES:
        source = make_known.source(version, name, sdk.WHEELS)
        wanted = make_known.edits_of(name, source)
        assert known.KNOWN.get(make_known.digest(source), ()) == wanted
        edited = edits.apply(source, wanted)
        compile(edited, name, "exec")
        assert edited.count("\n") == source.count("\n"), "tracebacks would name other lines"
        if name == make_known.SCALE:
            assert bool(wanted) == (version in sdk.EDITED), version


def test_an_unknown_source_runs_as_it_is_and_is_named_once(tmp_path):
    own = fake_sdk(tmp_path, "import asyncio\nVALUE = 7\n")
    code = (
        f"import subprocess, sys, {SCALE} as scale; assert scale.VALUE == 7;"
        "subprocess.run([sys.executable, '-c', sys.argv[1] if sys.argv[1:] else 'import " + SCALE + "'], check=True)"
    )
    lines = run(code, own).stderr.splitlines()
    assert len(lines) == 1 and SCALE in lines[0] and "LONGSHORE_RUNTIME=off" in lines[0], lines
    assert run(code, own, LONGSHORE_RUNTIME="off").stderr == ""


def test_an_edited_module_leaves_no_trace_on_disk_and_looks_like_its_file(tmp_path):
    text = make_known.source(sdk.SHORT[-1], make_known.SCALE, sdk.WHEELS)
    # The imports that need the rest of the SDK.
    stubs = "import sys, types\nfor name in ('runpod.http_client', 'runpod.serverless.modules.rp_job',"
    stubs += " 'runpod.serverless.modules.rp_logger', 'runpod.serverless.modules.worker_state'):\n"
    stubs += "    module = sys.modules[name] = types.ModuleType(name)\n"
    stubs += "    module.__getattr__ = lambda name: types.SimpleNamespace\n"
    check = f"import {SCALE} as scale, inspect, longshore_runtime.pace as pace\n"
    own = fake_sdk(tmp_path, text)
    edited = check + "assert scale.longshore_pace is pace and type(scale.__loader__).__name__ == 'SourceFileLoader'\n"
    edited += "assert 'go rapidly' in inspect.getsource(scale.JobScaler.get_jobs)\n"
    run(stubs + edited, own)
    unchanged = check + "assert not hasattr(scale, 'longshore_pace')\n"
    run(stubs + unchanged, own, LONGSHORE_RUNTIME="off")
    run(stubs + edited, own)


def test_the_sitecustomize_behind_the_runtime_is_imported(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.path.append('/of-theirs')\n")
    code = "import sys, sitecustomize; print(sitecustomize.__file__, '/of-theirs' in sys.path)"
    assert run(code, str(tmp_path)).stdout.split() == [str(tmp_path / "sitecustomize.py"), "True"]
    alone = run("import sys, longshore_runtime; print(any('Editing' in str(one) for one in sys.meta_path))")
    assert alone.stdout.split() == ["True"]


def test_an_error_in_the_sitecustomize_behind_is_still_told(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module_of_theirs\n")
    ended = run("print('goes on')", str(tmp_path))
    assert ended.stdout == "goes on\n" and "no_such_module_of_theirs" in ended.stderr, ended


def test_the_name_of_the_processor_is_read_or_asked_for(tmp_path):
    def name_in(text: str) -> str | None:
        (tmp_path / "cpuinfo").write_text(text)
        return processor._name_in(str(tmp_path / "cpuinfo"))

    assert name_in("processor\t: 0\nmodel name\t: Fast: 3 GHz\nmodel name\t: other\n") == "Fast: 3 GHz"
    assert name_in("processor\t: 0\nCPU part\t: 0xd0c\n") is None, "as on ARM"
    assert name_in("model name\t: \n") is None
    assert processor._name_in(str(tmp_path / "absent")) is None
    assert processor.get_cpu_info()["brand_raw"]


def test_waits_end_with_the_change_they_wait_for():
    checks = """
import asyncio, signal, threading, time
from longshore_runtime import pace

async def check():
    async def seconds(wait, announce):
        began = time.monotonic()
        task = asyncio.ensure_future(wait)
        await asyncio.sleep(0)
        announce()
        await task
        return time.monotonic() - began

    assert await seconds(pace.until_end(0.2), pace.job_ended) >= 0.2
    assert await seconds(pace.until_end(60), pace.stopping) < 30
    assert await seconds(pace.until_end(60), pace.job_ended) < 30, "it stops already"
    assert await seconds(pace.until_room(60), pace.job_ended) < 30
    assert await seconds(pace.until_room(60), pace.stopping) < 30
    # It waits for 1 s at most: a busy computer makes one of several as long.
    assert min([await seconds(pace.until_work(), pace.job_taken) for _ in range(5)]) < 0.9
    assert min([await seconds(pace.until_work(), lambda: threading.Thread(target=pace.stopping).start()) for _ in range(5)]) < 0.9
    assert await seconds(pace.until_room(0.2), pace.job_taken) >= 0.2, "a job that was taken makes no room"

    never, soon = asyncio.ensure_future(asyncio.sleep(60)), asyncio.ensure_future(asyncio.sleep(0, 7))
    done, pending = await pace.until_progress({never, soon})
    assert (done, pending) == ({soon}, {never}) and soon.result() == 7
    waiting = asyncio.ensure_future(pace.until_progress({never}))
    await asyncio.sleep(0)
    pace.job_taken()
    assert await waiting == (set(), {never})

    signal.signal(signal.SIGALRM, lambda *_: pace.stopping())
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    began = time.monotonic()
    await pace.until_room(60)
    assert time.monotonic() - began < 30, "a signal handler wakes the loop"

    cancelled = asyncio.ensure_future(pace.until_room(60))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    assert cancelled.cancelled() and not pace._room._waiters and not pace._work._waiters
    never.cancel()

asyncio.run(check())
pace.stopping()
"""
    run(checks)


def test_a_zygote_ends_with_its_launcher_in_the_middle_of_an_import(tmp_path):
    begun = tmp_path / "begun"
    (tmp_path / "never_ends.py").write_text(f"import signal\nopen({str(begun)!r}, 'w').close()\nsignal.pause()\n")
    ours, theirs = socket.socketpair()
    program = "from longshore_runtime import zygote; exec(*zygote.worker())"
    path = f"{RUNTIME}:{tmp_path}"
    zygote = subprocess.Popen([sys.executable, "-c", program], stdin=theirs, env={**os.environ, "PYTHONPATH": path})
    theirs.close()
    try:
        order = json.dumps({"modules": ["never_ends"], "command": ["p", "h.py"], "argv": ["h.py"]}).encode()
        ours.sendall(struct.pack("!I", len(order)) + order)
        until(begun.exists, "the import has begun", 30)
        assert zygote.poll() is None
        ours.close()
        assert zygote.wait(30) == -signal.SIGIO
    finally:
        zygote.kill()
        zygote.wait()


def test_the_package_has_the_version_of_the_program():
    def versions(path: str) -> list[str]:
        lines = (sdk.ROOT / path).read_text().splitlines()
        return [line for line in lines if line.startswith("version = ")]

    assert versions("python/pyproject.toml") == versions("Cargo.toml")


@pytest.mark.skipif(not sdk.IS_LONG, reason="long form only: the wheel is built with a package from PyPI")
def test_the_wheel_installs_the_runtime_for_an_external_worker(tmp_path):
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), RUNTIME], check=True)
    (wheel,) = tmp_path.glob("longshore_runtime-*.whl")
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    show = [str(python), "-c", "import sys; print(type(sys.meta_path[0]).__name__)"]
    clean = {"PATH": os.environ["PATH"]}
    assert subprocess.check_output(show, env=clean, text=True) == "EditingFinder\n"
    off = subprocess.check_output(show, env={**clean, "LONGSHORE_RUNTIME": "off"}, text=True)
    assert off != "EditingFinder\n"
