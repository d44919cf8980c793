"""Backups: made while a server works, restored elsewhere under another program, and refused where they are not whole."""

import json
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.server import Server, binary
from harness.wait import until
from test_code import deployed, end_workers

LARGE = "x" * 600_000
KINDS = ["folder", "archive"]


def longshore(*words, program: str | None = None, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([program or binary(), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done
    return done


def back_up(server: Server, to: Path, *more: str) -> Path:
    done = longshore("backup", "--data-dir", server.data, "--to", to, *more)
    assert "reading back" in done.stdout, done
    return to


def target(tmp_path: Path, kind: str) -> Path:
    return tmp_path / "backups" / ("monday.tar.zst" if kind == "archive" else "monday")


def restored(backup: Path, folder: Path) -> Server:
    """A server on what the backup was of, in another place and with its program in another place."""
    folder.mkdir()
    program = str(shutil.copy(binary(), folder / "another-name"))
    longshore("restore", backup, "--data-dir", folder / "data", program=program)
    server = Server(folder)
    server.program = program
    return server


def volume_of(api: Api, endpoint: Endpoint) -> Path:
    volume = api.ok("POST", "/v1/networkvolumes", json={"name": "weights", "size": 1})
    endpoint.patch(networkVolumeId=volume["id"])
    return api.server.data / "volumes" / volume["id"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_runs_on_another_path_with_another_program(tmp_path, fresh_server, kind):
    server = fresh_server()
    api = Api(server)
    endpoint, file = deployed(api, "first")
    volume = volume_of(api, endpoint)
    (volume / "deep").mkdir()
    (volume / "deep" / "weights.bin").write_bytes(bytes(range(256)) * 1000)
    (volume / "latest").symlink_to("deep")
    done = endpoint.runsync({"text": LARGE})
    assert done["output"]["first"]["text"] == LARGE
    audit = api.ok("GET", "/v1/audit")

    backup = back_up(server, target(tmp_path, kind))
    # What comes later is not in it, and what becomes of the original does not matter.
    file.write_text("raise SystemExit")
    server.terminate()
    end_workers(server)

    there = restored(backup, tmp_path / "elsewhere")
    try:
        there.start()
        moved = Endpoint(Api(there), endpoint.record)
        assert moved.status(done["id"])["output"]["first"]["text"] == LARGE, "large payloads are there"
        assert moved.runsync({"n": 2})["output"]["first"] == {"n": 2}
        weights = there.data / volume.relative_to(server.data) / "latest" / "weights.bin"
        assert weights.read_bytes() == bytes(range(256)) * 1000
        ids = {entry["id"] for entry in Api(there).ok("GET", "/v1/audit")} if audit and "id" in audit[0] else None
        assert ids is None or {entry["id"] for entry in audit} <= ids
    finally:
        there.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_of_a_busy_server_has_everything_that_was_acknowledged_before(tmp_path, fresh_server, kind):
    server = fresh_server(flags=("--rate-limits", "off"))
    api = Api(server)
    endpoint = api.external()
    before = [endpoint.run({"n": n}) for n in range(50)]
    large = [endpoint.run({"text": LARGE, "n": n}) for n in range(5)]
    going = True

    def submit_and_delete() -> int:
        """Jobs with files of their own come and go while the backup is made."""
        count = 0
        mine = Api(server)
        while going:
            other = mine.external()
            other.run({"text": LARGE})
            other.run({"n": count})
            mine.call("DELETE", f"/v1/endpoints/{other.id}")
            count += 1
        return count

    with ThreadPoolExecutor() as pool:
        busy = [pool.submit(submit_and_delete) for _ in range(3)]
        try:
            backups = [back_up(server, target(tmp_path / str(n), kind)) for n in range(3)]
        finally:
            going = False
        assert sum(each.result() for each in busy) > 0

    for n, backup in enumerate(backups):
        there = restored(backup, tmp_path / f"there-{n}")
        try:
            there.start()
            moved = Endpoint(Api(there), endpoint.record)
            for job in before + large:
                assert moved.status(job)["status"] == "IN_QUEUE"
            seen = {json.dumps(job["input"], sort_keys=True)[:30] for job in FakeWorker(moved).take_batch(60)}
            assert len(seen) >= 6, seen
        finally:
            there.close()


def test_volumes_can_be_left_out_and_are_empty_then(tmp_path, fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint, _ = deployed(api, "first")
    volume = volume_of(api, endpoint)
    (volume / "weights.bin").write_text("w")
    backup = back_up(server, tmp_path / "small", "--without-volumes")
    assert not (backup / "data" / "volumes").exists()
    there = restored(backup, tmp_path / "there")
    try:
        there.start()
        assert list((there.data / volume.relative_to(server.data)).iterdir()) == []
        assert Endpoint(Api(there), endpoint.record).runsync({"n": 1})["output"]["first"] == {"n": 1}
    finally:
        there.close()


def test_what_is_not_whole_is_refused_and_nothing_is_overwritten(tmp_path, fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    endpoint.run({"text": LARGE})
    server.terminate()
    folder = back_up(server, tmp_path / "folder")
    archive = back_up(server, tmp_path / "archive.tar.zst")
    for there in (folder, archive):
        refused = longshore("backup", "--data-dir", server.data, "--to", there, code=1)
        assert "already exists" in refused.stderr, refused
    refused = longshore("restore", folder, "--data-dir", server.data, code=1)
    assert "already exists" in refused.stderr, refused
    refused = longshore("backup", "--data-dir", tmp_path, "--to", tmp_path / "x", code=1)
    assert "name the data directory of a server" in refused.stderr, refused

    new = tmp_path / "new"

    def is_refused(backup: Path, *reasons: str):
        refused = longshore("restore", backup, "--data-dir", new, code=1)
        assert any(reason in refused.stderr for reason in reasons), refused
        assert not list(tmp_path.glob("new*")), "nothing is left"

    whole = archive.read_bytes()
    for cut in (len(whole) // 2, len(whole) - 1, 10, 0):
        archive.write_bytes(whole[:cut])
        is_refused(archive, "not a complete backup", "cannot read")
    for at in range(0, len(whole), max(1, len(whole) // 20)):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        tried = subprocess.run([binary(), "restore", archive, "--data-dir", new], capture_output=True, text=True)
        if tried.returncode == 0:
            # A bit that says nothing, such as padding: what came out is what went in.
            assert contents(new) == contents(folder / "data"), at
            shutil.rmtree(new)
        assert not list(tmp_path.glob("new*")), "nothing is left"
    for path in [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]:
        kept, mode = path.read_bytes(), path.stat().st_mode
        path.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        is_refused(folder, "not a complete backup")
        path.unlink()
        is_refused(folder, "not a complete backup")
        path.write_bytes(kept)
        path.chmod(mode)
    longshore("restore", folder, "--data-dir", new)


def test_store_verify_reads_every_file_of_a_backup(tmp_path, fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    jobs = [endpoint.run({"text": LARGE}), endpoint.run({"n": 1})]
    server.terminate()
    folder = back_up(server, tmp_path / "folder")
    archive = back_up(server, tmp_path / "archive.tar.zst")
    before = contents(folder)

    def verified(backup: Path, code: int = 0) -> str:
        done = longshore("store", "verify", backup, code=code)
        return done.stdout + done.stderr

    for backup in (folder, archive):
        said = verified(backup)
        assert f"read: backup with {len(before) - 2} files" in said and f"{len(jobs)} jobs" in said, said
        assert "1 large payload with" in said and "nothing is damaged" in said, said
    assert contents(folder) == before, "nothing is changed"
    for path in [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]:
        kept, mode = path.read_bytes(), path.stat().st_mode
        name = str(path.relative_to(folder))
        path.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        assert name in verified(folder, 1)
        path.unlink()
        said = verified(folder, 1)
        assert name in said and ("damaged: 1 place;" in said or "not a complete backup" in said), said
        path.write_bytes(kept)
        path.chmod(mode)
    (folder / "data" / "blobs" / "more").write_text("x")
    said = verified(folder, 1)
    assert "data/blobs/more: is not in `backup.list`" in said and "damaged: 1 place;" in said, said
    whole = archive.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], b"", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
        archive.write_bytes(damaged)
        said = verified(archive, 1)
        assert str(archive) in said and "not a complete backup" in said, said


def test_a_backup_that_was_cut_short_leaves_nothing_that_looks_whole(tmp_path, fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint, _ = deployed(api, "first")
    volume = volume_of(api, endpoint)
    with (volume / "huge.bin").open("wb") as file:
        file.truncate(2_000_000_000)
    for kind in KINDS:
        to = target(tmp_path, kind)
        partial = to.with_name(to.name + ".partial")
        running = subprocess.Popen([binary(), "backup", "--data-dir", server.data, "--to", to], stderr=subprocess.DEVNULL)
        try:
            until(lambda: partial.exists() and (partial.is_file() or list(partial.rglob("huge.bin"))), "the backup has started")
            busy = longshore("backup", "--data-dir", server.data, "--to", to, code=1)
            assert "another process" in busy.stderr, busy
        finally:
            running.kill()
            running.wait()
        assert partial.exists() and not to.exists()
        refused = longshore("restore", partial, "--data-dir", tmp_path / "new", code=1)
        assert "not a complete backup" in refused.stderr, refused
        back_up(server, to, "--without-volumes")
        assert not partial.exists()
    assert not list(to.parent.glob(".longshore-backup-*/*.tar.zst"))


def test_a_damaged_data_folder_is_not_backed_up(tmp_path, fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    endpoint.run({"text": LARGE})
    server.terminate()
    [blob] = (path for path in (server.data / "blobs").rglob("*") if path.is_file() and path.stat().st_size > 500_000)
    blob.write_bytes(blob.read_bytes()[:-1])
    refused = longshore("backup", "--data-dir", server.data, "--to", tmp_path / "x", code=1)
    assert "damaged" in refused.stderr and blob.name in refused.stderr, refused
    assert not list(tmp_path.glob("x*"))


def test_tar_reads_an_archive(tmp_path, fresh_server):
    archive = back_up(fresh_server(), tmp_path / "a.tar.zst")
    unpacked = subprocess.run(["zstd", "-dc", archive], capture_output=True, check=True).stdout
    (tmp_path / "a.tar").write_bytes(unpacked)
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.getnames()[-2:] == ["backup.list", "backup.json"]
