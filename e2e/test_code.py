"""Deployed code on the server's disk: it is what was sent, whatever became of it meanwhile, and archives cost no memory."""

import io
import shutil
import tarfile
import zlib
from pathlib import Path

from harness.client import Api, unique

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
