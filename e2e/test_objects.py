"""Large payloads and deployed code in object storage: they outlive the server and its computer, none is lost or left, and
what cannot be used is refused in words that say what to do."""

import io
import os
import re
import shutil
import sys
import tarfile

import pytest
import requests

from harness.bucket import SECRET, Bucket
from harness.client import Api, Endpoint, unique
from harness.commands import longshore
from harness.fake_worker import FakeWorker
from harness.nodes import Nodes
from harness.postgres import DATABASE, Postgres
from harness.server import QUICK, Server
from harness.wait import until

FLAGS = ("--allow-private-webhooks", "--rate-limits", "off")
# Longer than a part of an upload.
HUGE = "h" * 9_000_000
LARGE = "x" * 300_000


GZIP = {"Content-Type": "application/gzip"}


def archive(files: dict[str, str]) -> bytes:
    """A gzipped tar."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.GNU_FORMAT) as tar:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return raw.getvalue()


@pytest.fixture(scope="module")
def bucket():
    """The bucket of these tests; each uses a prefix of its own."""
    bucket = Bucket()
    yield bucket
    bucket.close()


@pytest.fixture
def prefix():
    return unique("prefix")


@pytest.fixture(scope="module")
def postgres():
    postgres = Postgres()
    yield postgres
    postgres.close()


@pytest.fixture
def make_server():
    """Makes servers with settings, each with a data directory of its own."""
    made = []

    def make(config: str) -> Server:
        made.append(Server(config=QUICK + config, flags=FLAGS))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture(params=["embedded", "postgres"])
def store(request):
    """The settings of the store."""
    if request.param == "embedded":
        return ""
    postgres = request.getfixturevalue("postgres")
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    return postgres.config


def refusal(server: Server) -> str:
    """What a server says that does not start."""
    process = server.spawn()
    assert process.wait(120) == 1, server.log()
    return server.reason()


def storage_health(api: Api) -> dict[str, float]:
    """The metrics of the object storage by the ends of their names."""
    found = re.findall(r"^longshore_object_storage_(\S+) (\S+)$", api.call("GET", "/metrics").text, re.M)
    return {name: float(value) for name, value in found}


def test_payloads_outlive_the_server_and_go_with_their_jobs(bucket, prefix, make_server, store):
    server = make_server(store + bucket.config(prefix)).start()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    done, left, huge = endpoint.run({"text": LARGE}), endpoint.run({"text": LARGE}), endpoint.run({"text": HUGE})
    assert worker.take()["id"] == done
    worker.chunk(done, {"chunk": 1})
    worker.progress(done, {"progress": LARGE})
    worker.done(done, {"output": {"out": LARGE}})
    # An input each, and the output; the value of the progress is gone.
    until(lambda: len(bucket.payloads(prefix)) == 4, "a payload each", 20)
    server.kill()
    server.start()
    until(lambda: server.log().count("orphans deleted") == 2, "the payloads are listed", 20)
    assert endpoint.status(done)["output"] == {"out": LARGE}
    # What was listed after the start is deleted with its job.
    assert worker.take()["input"] == {"text": LARGE}
    worker.done(left, {"output": LARGE})
    assert worker.take()["input"] == {"text": HUGE}
    worker.done(huge, {"output": HUGE})
    assert endpoint.status(huge)["output"] == HUGE
    assert not [path for path in (server.data / "blobs").rglob("*") if path.is_file()]
    assert SECRET not in server.log()
    endpoint.api.call("DELETE", f"/v1/endpoints/{endpoint.id}")
    until(lambda: not bucket.payloads(prefix), "the payloads are gone", 20)


def test_a_storage_that_is_away_stops_no_small_job_and_loses_none(bucket, prefix, make_server, store):
    server = make_server(store + bucket.config(prefix)).start()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    kept = endpoint.run({"text": LARGE})
    server.terminate()
    server.start()
    bucket.gate.shut()
    try:
        answer = endpoint.call("POST", "/run", json={"input": {"text": LARGE}})
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), answer.text
        small = endpoint.run({"small": True})
        # The large one waits for the storage, and does not stop the small one.
        assert worker.take()["id"] == small
        worker.done(small, {"output": 1})
        assert endpoint.health()["jobs"]["inQueue"] == 1
        until(lambda: storage_health(endpoint.api)["failures_total"], "the failure is counted", 20)
        away = storage_health(endpoint.api)
        assert away["last_failure_timestamp_seconds"] > away["last_success_timestamp_seconds"] > 0, away
    finally:
        bucket.gate.open()
    taken = worker.take()
    assert taken["id"] == kept and taken["input"] == {"text": LARGE}
    worker.done(kept, {"output": LARGE})
    assert endpoint.status(kept)["output"] == LARGE
    answers = lambda: storage_health(endpoint.api)["last_success_timestamp_seconds"] > away["last_failure_timestamp_seconds"]
    until(answers, "the storage answers again", 20)


def test_a_job_waits_for_an_object_that_is_missing(bucket, prefix, make_server):
    server = make_server(bucket.config(prefix)).start()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    done, waiting = endpoint.run({"n": 1}), endpoint.run({"text": LARGE})
    worker.take()
    worker.done(done, {"output": LARGE})
    server.terminate()
    saved = {name: bucket.read(prefix, name) for name in bucket.payloads(prefix)}
    assert len(saved) == 2
    for name in saved:
        bucket.delete(prefix, name)
    server.start()
    answer = endpoint.call("GET", f"/status/{done}")
    assert (answer.status_code, answer.json()["code"]) == (503, "unreadable"), answer.text
    small = endpoint.run({"small": True})
    assert worker.take()["id"] == small
    worker.done(small, {"output": 1})
    assert "is missing in s3://jobs/" in server.log()
    assert endpoint.status(waiting)["status"] == "IN_QUEUE"
    for name, body in saved.items():
        bucket.write(prefix, name, body)
    assert endpoint.status(done)["output"] == LARGE
    assert worker.take()["id"] == waiting
    worker.done(waiting, {"output": 1})


def test_what_cannot_be_used_is_refused_at_the_start(bucket, prefix, make_server, tmp_path):
    def refused(config: str) -> str:
        told = refusal(make_server(config))
        assert SECRET not in told, told
        return told

    keys = f'blobs_credentials_file = "{bucket.credentials_file}"\n'
    at = f"?endpoint=http://127.0.0.1:{bucket.gate.port}"
    assert "begins with `ftp://`" in refused('blobs = "ftp://jobs"\n')
    assert "names no bucket" in refused('blobs = "s3://"\n')
    assert "has credentials" in refused(f'blobs = "s3://key:{SECRET}@jobs"\n')
    assert "create the bucket" in refused(f'blobs = "s3://missing{at}"\n' + keys)
    assert "there are no keys" in refused(f'blobs = "s3://jobs{at}"\n')
    assert "cannot be read" in refused(f'blobs = "s3://jobs{at}"\nblobs_credentials_file = "/no/such/file"\n')
    unreached = refused(f'blobs = "s3://jobs/{prefix}?endpoint=http://127.0.0.1:1"\n' + keys)
    assert "check that this computer reaches" in unreached, unreached
    (tmp_path / "doctor.toml").write_text(bucket.config(prefix))
    told = longshore("doctor", "--config", tmp_path / "doctor.toml", "--data-dir", tmp_path, "--listen", "127.0.0.1:0").stdout
    assert "writes, reads and deletes objects" in told, told


def test_keys_that_are_wrong_are_refused_and_right_ones_work(prefix, make_server):
    bucket = Bucket(checks_keys=True)
    try:
        wrong = bucket.write_credentials("wrong", "wrong-hidden-0123456789")
        server = make_server(f'blobs = "{bucket.url(prefix)}"\nblobs_credentials_file = "{wrong}"\n')
        told = refusal(server)
        assert "check the keys in the file of `blobs_credentials_file`" in told and "hidden" not in told, told
        endpoint = Api(make_server(bucket.config(prefix)).start()).external()
        assert FakeWorker(endpoint).id and endpoint.run({"text": LARGE})
        assert len(bucket.payloads(prefix)) == 1
        shown = endpoint.api.ok("GET", "/v1/server")
        assert bucket.secret not in str(shown), shown
        endpoint.api.call("DELETE", f"/v1/endpoints/{endpoint.id}")
    finally:
        bucket.close()


def test_a_place_has_the_payloads_of_one_installation_and_they_have_one_place(bucket, prefix, make_server):
    server = make_server(bucket.config(prefix)).start()
    server.terminate()
    assert "another installation" in refusal(make_server(bucket.config(prefix)))
    # The same rows with no place, and with another one.
    settings = server.config.read_text()
    server.config.write_text(QUICK)
    assert f"are in s3://jobs/{prefix}: set `blobs` to it" in refusal(server)
    server.config.write_text(QUICK + bucket.config(f"{prefix}-2"))
    assert "copy all objects from there with longshore.json" in refusal(server)
    # All objects were copied there.
    bucket.write(f"{prefix}-2", "longshore.json", bucket.read(prefix, "longshore.json"))
    server.start()
    server.terminate()
    server.config.write_text(settings)
    server.start()


def test_orphans_are_deleted_when_they_are_old_and_others_are_left(make_server, tmp_path, store):
    server = make_server(store + f'blobs = "file://{tmp_path}/objects"\n').start()
    endpoint = Api(server).external()
    job, gone = endpoint.run({"text": LARGE}), endpoint.run({"text": LARGE})
    deleted = Api(server).external()
    unknown = [deleted.run() for _ in range(2)]
    deleted.api.call("DELETE", f"/v1/endpoints/{deleted.id}")
    server.terminate()
    folder = tmp_path / "objects/payloads"
    own, theirs = (next(folder.rglob(f"{name}.input*")) for name in (job, gone))
    # As after a crash between a payload and its row; a number of an endpoint that was deleted; another program's file.
    lost, of_none, notes = own.with_name(f"{unknown[0]}.input.sum-0"), folder / "999" / theirs.name, folder / "notes.txt"
    young = own.with_name(f"{unknown[1]}.input.sum-1")
    of_none.parent.mkdir()
    for path in (lost, of_none, notes, young):
        path.write_bytes(b"left")
    two_hours_ago = own.stat().st_mtime - 7200
    for path in (lost, of_none, notes, own):
        os.utime(path, (two_hours_ago, two_hours_ago))
    server.start()
    until(lambda: not lost.exists() and not of_none.exists(), "the orphans are gone", 20)
    until(lambda: "orphans deleted" in server.log(), "the sweep is over", 20)
    assert own.exists() and theirs.exists() and notes.exists() and young.exists()
    # What the sweep found is deleted with its job.
    endpoint.api.call("DELETE", f"/v1/endpoints/{endpoint.id}")
    until(lambda: not own.exists() and not theirs.exists(), "the payloads are gone", 20)


def test_the_log_is_verified_and_backed_up_without_its_objects(bucket, prefix, make_server, tmp_path):
    server = make_server(bucket.config(prefix)).start()
    endpoint = Api(server).external()
    job = endpoint.run({"text": LARGE})
    longshore("backup", "--data-dir", server.data, "--to", tmp_path / "backup.tar.zst")
    server.terminate()
    assert "nothing is damaged" in longshore("store", "verify", server.data).stdout
    shutil.rmtree(server.data)
    longshore("restore", tmp_path / "backup.tar.zst", "--data-dir", server.data)
    server.start()
    worker = FakeWorker(endpoint)
    assert worker.take()["input"] == {"text": LARGE}
    worker.done(job, {"output": 1})


def test_a_data_directory_with_payloads_is_not_taken_apart(bucket, prefix, make_server):
    server = make_server("").start()
    endpoint = Api(server).external()
    endpoint.run({"text": LARGE})
    server.terminate()
    server.config.write_text(QUICK + bucket.config(prefix))
    assert "has large payloads" in refusal(server)
    server.config.write_text(QUICK)
    server.start()
    assert requests.get(f"{server.url}/healthz", timeout=10).status_code == 200


def test_a_second_node_starts_workers_of_code_that_the_first_was_sent(bucket, prefix, postgres):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    nodes = Nodes(postgres, ("a", "b"), bucket.config(prefix)).start()
    first, second = nodes.all
    try:
        through = Api(first)
        handler = "import runpod\n\nrunpod.serverless.start({'handler': lambda job: {'heard': job['input']}})\n"
        sent = through.call("POST", "/v1/code?name=hello", data=archive({"handler.py": handler}), headers=GZIP)
        version = sent.json()
        assert sent.status_code == 200 and version.pop("changed"), sent.text
        assert {f"code/{version['hash']}.tgz", f"code/{version['hash']}.json"} <= set(bucket.names(prefix))
        # As from before the storage was set.
        bucket.delete(prefix, f"code/{version['hash']}.json")
        first.terminate()
        first.start()
        until(lambda: nodes.owner() is second and "role" not in ready(second), "the second node owns the shards", 30)
        second.terminate()
        second.start()
        until(lambda: f"code/{version['hash']}.json" in bucket.names(prefix), "the first node has put its code there", 20)
        first.lose()
        until(lambda: nodes.owner() is second and "role" not in ready(second), "the second node owns the shards", 30)
        later = Api(second)
        assert later.ok("GET", "/v1/code?name=hello") == [version]
        template = later.ok("POST", "/v1/templates", json={"name": unique("code"), "imageName": "e2e", "workdir": version["workdir"], "dockerStartCmd": [sys.executable, "-u", "handler.py"]})
        endpoint = later.endpoint(templateId=template["id"])
        assert endpoint.runsync({"n": 1})["output"] == {"heard": {"n": 1}}
        assert (second.data / "code/hello" / version["hash"] / "handler.py").read_text() == handler
        assert "fetched deployed code from object storage" in second.log()
    finally:
        nodes.close()


def ready(node) -> dict:
    return requests.get(f"{node.url}/readyz", timeout=10).json()


def test_copy_moves_payloads_between_a_folder_a_database_and_a_bucket(bucket, prefix, make_server, postgres, tmp_path):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    server = make_server("").start()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    done, waiting = endpoint.run({"text": LARGE}), endpoint.run({"text": LARGE})
    worker.take()
    worker.done(done, {"output": LARGE})
    server.terminate()
    keys = ("--blobs-credentials-file", bucket.credentials_file)
    to_bucket = ("--to-blobs", bucket.url(prefix), *keys)
    from_bucket = ("--from-blobs", bucket.url(prefix), *keys)
    longshore("copy", "--from", server.data, "--to", tmp_path / "second", *to_bucket)
    # An input each, and an output.
    assert len(bucket.payloads(prefix)) == 3
    told = longshore("copy", "--from", tmp_path / "second", "--to", postgres.url, "--password-file", postgres.password_file, code=1)
    assert "name it with --from-blobs" in told.stderr, told
    database = ("--to", postgres.url, "--password-file", postgres.password_file)
    longshore("copy", "--from", tmp_path / "second", *database, *from_bucket, *to_bucket[:2])
    next_server = make_server(postgres.config + bucket.config(prefix)).start()
    after = Endpoint(Api(next_server), endpoint.record)
    assert after.status(done)["output"] == LARGE
    taken = FakeWorker(after)
    assert taken.take()["input"] == {"text": LARGE}
    taken.done(waiting, {"output": 1})
