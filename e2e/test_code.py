"""Deployed code on the server's disk: the files are as they were sent, also after they were changed, or the data directory
or the server's program was moved; and archives cost no memory."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import pytest
import requests

from harness import processes
from harness.client import HANDLERS, Api, Endpoint, unique
from harness.server import Server, binary
from harness.wait import until

GZIP = {"Content-Type": "application/gzip"}
MEGABYTE = 1_000_000


def archive(files: dict[str, str]) -> bytes:
    """A gzipped tar; the same files are the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip([raw.getvalue()])


def gzip(pieces) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


def keep(api: Api, name: str, body: bytes):
    return api.call("POST", f"/v1/code?name={name}", data=body, headers=GZIP)


def test_what_is_missing_or_empty_comes_back_when_it_is_deployed_again(api, server):
    name = unique("code")
    files = {"handler.py": "print()", "lib/deep/tool.py": "x = 1"}
    body = archive(files)
    first = keep(api, name, body).json()
    folder = server.data / "code" / name / first["hash"]

    def damage_handler():
        (folder / "handler.py").unlink()

    def empty_tool():
        (folder / "lib/deep/tool.py").write_text("")

    for damage in (damage_handler, empty_tool, lambda: shutil.rmtree(folder / "lib"), lambda: shutil.rmtree(folder)):
        damage()
        assert keep(api, name, body).json() == first
        assert {path: (folder / path).read_text() for path in files} == files


def peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def test_a_name_of_hundreds_of_megabytes_costs_no_memory(fresh_server):
    server = fresh_server()
    api = Api(server)
    keep(api, "warm", archive({"handler.py": "x"}))
    before = peak_bytes(server.process.pid)
    bytes_of_name = 400 * MEGABYTE
    for kind in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE):
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = kind, bytes_of_name
        pieces = [info.tobuf(tarfile.GNU_FORMAT), *[bytes(MEGABYTE)] * 400]
        answer = keep(api, "bomb", gzip(pieces))
        assert answer.status_code == 400, answer.text
        assert answer.json()["code"] == "bad_archive" and "has more than" in answer.text, answer.text
    grown = peak_bytes(server.process.pid) - before
    assert grown < 50 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB"


# Data directories that move.


def deployed(api: Api, text: str, command: list[str] | None = None) -> tuple[Endpoint, Path]:
    """An endpoint whose workers run deployed code that answers `{text: input}`, and the code's file on the server."""
    name = unique("moves")
    worker = (HANDLERS / "echo.py").read_text().replace('"echo"', f'"{text}"')
    manifest = f'command = ["{sys.executable}", "-u", "worker.py"]\n'
    version = keep(api, name, archive({"worker.py": worker, "longshore.toml": manifest})).json()
    assert version["workdir"] == f"code:{version['hash']}" and version["command"] == []
    template = {"name": name, "imageName": "code", "workdir": version["workdir"], "dockerStartCmd": command or []}
    made = api.ok("POST", "/v1/templates", json=template)
    assert made["workdir"] == version["workdir"]
    endpoint = api.endpoint(templateId=made["id"], slug=name)
    return endpoint, api.server.data / "code" / name / version["hash"] / "worker.py"


def end_workers(server: Server) -> None:
    """As when the machine goes."""
    for worker in server.workers():
        processes.signal_worker(worker, signal.SIGKILL)
    until(lambda: not server.workers(), "the workers are gone")


def elsewhere(tmp_path: Path, make: callable) -> Server:
    """A server on a folder of `make(folder)`, with its program in another place."""
    folder = tmp_path / "elsewhere" / "deep"
    folder.mkdir(parents=True)
    make(folder)
    server = Server(folder)
    server.program = str(shutil.copy(binary(), folder / "another-name"))
    return server


@pytest.mark.parametrize("names_folder", [False, True], ids=["by-hash", "by-folder"])
def test_a_folder_that_was_moved_runs_its_code_with_a_program_in_another_place(tmp_path, fresh_server, names_folder):
    server = fresh_server()
    api = Api(server)
    endpoint, file = deployed(api, "first")
    assert endpoint.runsync({"n": 1})["output"]["first"] == {"n": 1}
    if names_folder:
        # As a program before this one has kept it.
        old = {"workdir": str(file.parent), "dockerStartCmd": [binary(), "code-worker", str(file.parent)]}
        api.ok("PATCH", f"/v1/templates/{endpoint.record['templateId']}", json=old)
    server.terminate()
    end_workers(server)

    moved = elsewhere(tmp_path, lambda folder: shutil.move(server.data, folder / "data"))
    try:
        moved.start()
        there = Api(moved)
        assert Endpoint(there, endpoint.record).runsync({"n": 2})["output"]["first"] == {"n": 2}
        template = there.ok("GET", f"/v1/templates/{endpoint.record['templateId']}")
        assert template["workdir"] == f"code:{file.parent.name}" and template["dockerStartCmd"] == []
        assert (moved.data / file.relative_to(server.data)).exists()
    finally:
        moved.close()


def test_a_copy_beside_its_original_runs_its_own_code_and_leaves_the_others_workers_alone(tmp_path, fresh_server):
    server = fresh_server()
    endpoint, file = deployed(Api(server), "first", [sys.executable, "-u", "worker.py"])
    endpoint.runsync({"n": 1})
    [worker] = endpoint.workers()
    server.terminate()

    def copy(folder: Path) -> None:
        shutil.copytree(server.data, folder / "data", symlinks=True)
        copied = folder / "data" / file.relative_to(server.data)
        copied.write_text(copied.read_text().replace('"first"', '"copy"'))

    copied = elsewhere(tmp_path, copy)
    server.start()
    try:
        copied.start()
        assert Endpoint(Api(copied), endpoint.record).runsync({"n": 2})["output"]["copy"] == {"n": 2}
        assert not list(copied.data.glob(f"workers/*/{worker.worker}")), "the original's worker is not the copy's"
    finally:
        copied.close()
    assert endpoint.runsync({"n": 3})["output"]["first"] == {"n": 3}
    assert [each.pid for each in endpoint.workers()] == [worker.pid], "it lives on"


def test_code_that_is_not_there_is_refused(api):
    for code, reason in (("0" * 64, "not here"), ("x", "no hash of code"), ("../../etc", "no hash of code")):
        body = {"name": unique("code"), "imageName": "x", "workdir": f"code:{code}"}
        endpoint = {"name": unique("code"), "template": body}
        for path, asked in (("/v1/templates", body), ("/v1/endpoints", endpoint)):
            answer = api.call("POST", path, json=asked)
            assert answer.status_code == 400 and reason in answer.text, answer.text
        template = api.template()
        answer = api.call("PATCH", f"/v1/templates/{template['id']}", json={"workdir": f"code:{code}"})
        assert answer.status_code == 400 and reason in answer.text, answer.text


def test_a_worker_of_another_computer_fetches_its_code_and_nothing_else(api, server, tmp_path):
    name = unique("fetched")
    worker = (HANDLERS / "echo.py").read_text().replace('"echo"', '"fetched"')
    manifest = f'command = ["{sys.executable}", "-u", "worker.py"]\n'
    body = archive({"worker.py": worker, "lib/deep.py": "x = 1", "longshore.toml": manifest})
    version = keep(api, name, body).json()
    template = {"name": name, "imageName": "code", "workdir": version["workdir"]}
    mine = api.external(templateId=api.ok("POST", "/v1/templates", json=template)["id"])
    given = mine.worker_token()
    url = given["env"]["LONGSHORE_CODE_URL"]
    assert url.endswith(f"/v2/{mine.id}/code/{version['hash']}")
    token = {"Authorization": f"Bearer {given['token']}"}
    assert requests.get(url, headers=token).content == body
    rest = requests.get(url, headers=token | {"Range": "bytes=7-"})
    assert (rest.status_code, rest.content) == (206, body[7:])
    assert requests.get(url, headers={"Authorization": f"Bearer {api.key}"}).status_code == 401, "no client may read code"
    assert requests.get(url[:-1] + ("0" if url[-1] != "0" else "1"), headers=token).status_code == 404

    cache = tmp_path / "cache"
    environment = os.environ | given["env"]
    command = [binary(), "code-worker", "--cache", str(cache)]
    stored = server.data / "code" / name / f"{version['hash']}.tgz"
    stored.write_bytes(archive({"worker.py": "raise SystemExit('not this')"}))
    refused = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert refused.returncode == 1 and "is not the code" in refused.stdout + refused.stderr, refused
    assert not list(cache.glob("*")), "nothing of it was kept"
    stored.unlink()
    refused = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "deploy the same folder again" in refused.stdout + refused.stderr, refused
    assert keep(api, name, body).json() == version
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            assert mine.runsync({"n": 1})["output"]["fetched"] == {"n": 1}
        finally:
            process.terminate()
    assert (cache / version["hash"] / "lib/deep.py").read_text() == "x = 1"
