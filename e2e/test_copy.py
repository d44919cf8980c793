"""`longshore copy` between a data directory and PostgreSQL: everything arrives, and what cannot be copied is refused."""

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.client import TERMINAL, Api, Endpoint
from harness.commands import longshore
from harness.fake_worker import FakeWorker
from harness.postgres import DATABASE, Postgres
from harness.receiver import Receiver
from harness.server import QUICK, Server, binary
from harness.wait import until

FLAGS = ("--allow-private-webhooks", "--rate-limits", "off")
LARGE = "x" * 600_000
# A worker that does nothing keeps its job for the time of a test.
SLOW = QUICK.replace("ping_interval_ms = 3000", "ping_interval_ms = 60000")


@pytest.fixture(scope="module")
def postgres():
    """The PostgreSQL of these tests."""
    postgres = Postgres()
    yield postgres
    postgres.close()


@pytest.fixture
def database(postgres):
    """The PostgreSQL with an empty database."""
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE; DROP SCHEMA IF EXISTS longshore_copy CASCADE", DATABASE)
    return postgres


@pytest.fixture
def keys(tmp_path):
    """A file with a secrets key."""
    path = tmp_path / "keys"
    longshore("secret", "new-key", path)
    return path


def copy(database: Postgres, *words, code: int = 0):
    return longshore("copy", "--password-file", database.password_file, *words, code=code)


def shown(api: Api) -> dict:
    """All that the API shows of endpoints, jobs and settings."""
    found = {}
    for path in ("endpoints", "templates", "apikeys", "secrets", "networkvolumes", "containerregistryauth"):
        found[path] = api.ok("GET", f"/v1/{path}")
    for record in found["endpoints"]:
        endpoint = Endpoint(api, record)
        jobs = [job["id"] for job in endpoint.ok("GET", "/requests?limit=100")["requests"]]
        states = [endpoint.status(job) for job in jobs]
        # A queued job's waiting time and a running one's time change while they are looked at.
        moving = {"IN_QUEUE": ("delayTime",), "IN_PROGRESS": ("executionTime",)}
        found[endpoint.id] = [{k: v for k, v in state.items() if k not in moving.get(state["status"], ())} for state in states]
        ended = [job for job, state in zip(jobs, states) if state["status"] in TERMINAL]
        found[endpoint.id, "attempts"] = [endpoint.ok("GET", f"/jobs/{job}") for job in ended]
        found[endpoint.id, "chunks"] = [endpoint.ok("GET", f"/stream/{job}?offset=0&wait=0") for job in jobs]
        found[endpoint.id, "attempts"] = [endpoint.ok("GET", f"/jobs/{job}")["attempts"] for job in jobs]
        found[endpoint.id, "webhooks"] = endpoint.ok("GET", "/webhooks")["webhooks"]
        found[endpoint.id, "counts"] = endpoint.health()["jobs"]
    return found


def settled(value):
    """A value without the times at which keys and sessions were used last, and what is measured of volumes in the background."""
    text = json.dumps({str(name): part for name, part in value.items()}, sort_keys=True)
    return json.loads(text, object_hook=lambda part: {k: v for k, v in part.items() if not k.startswith(("lastUsed", "diskBytes")) and "version" != k})


def assert_same(now: dict, before: dict) -> None:
    for name, value in before.items():
        if isinstance(value, list) and now[name] != value:
            for one, other in zip(now[name], value):
                assert one == other, name
        assert now[name] == value, name


def filled(server: Server) -> tuple[Endpoint, list[str]]:
    """A server with jobs in every state; answers an endpoint with queued jobs, and these."""
    api = Api(server)
    api.ok("POST", "/v1/secrets", json={"name": "HF_TOKEN", "value": "hidden"})
    api.ok("POST", "/v1/containerregistryauth", json={"name": "a", "username": "u", "password": "hidden"})
    endpoint, gone = api.external(), api.external()
    api.template(env={"PLAIN": "text"})
    volume = api.ok("POST", "/v1/networkvolumes", json={"name": "weights", "size": 1})["id"]
    (server.data / "volumes" / volume).mkdir(parents=True, exist_ok=True)
    (server.data / "volumes" / volume / "weights.bin").write_bytes(bytes(range(256)))
    worker = FakeWorker(endpoint)
    with Receiver() as receiver:
        done = endpoint.run({"large": LARGE}, webhook=receiver.url)
        assert worker.take()["id"] == done
        worker.done(done, {"output": {"large": LARGE}})
        assert receiver.wait_for(1)[0]["json"]["id"] == done
        until(lambda: endpoint.ok("GET", "/webhooks")["webhooks"], "the delivery is in the log")
        streamed = endpoint.run({})
        assert worker.take()["id"] == streamed
        for number in range(3):
            worker.chunk(streamed, {"number": number})
        worker.done(streamed, {"output": "streamed"})
        failed = endpoint.run({})
        assert worker.take()["id"] == failed
        worker.done(failed, {"error": "it failed"})
        endpoint.cancel(endpoint.run({}))
    running = endpoint.run({})
    assert worker.take()["id"] == running
    queued = [endpoint.run({"number": number, "large": LARGE if number == 1 else ""}) for number in range(3)]
    # Its number is not given to another endpoint.
    assert api.call("DELETE", f"/v1/endpoints/{gone.id}").status_code < 300
    return endpoint, queued


def test_jobs_go_to_a_database_and_back_as_they_are(database, keys, tmp_path):
    own = f'secrets_key_file = "{keys}"\n'
    first = Server(config=SLOW + own, flags=FLAGS).start()
    second = Server(config=SLOW + own + database.config, flags=FLAGS)
    third = Server(config=SLOW + own, flags=FLAGS)
    try:
        endpoint, queued = filled(first)
        before = settled(shown(Api(first)))
        audit = Api(first).ok("GET", "/v1/audit")
        assert audit
        first.terminate()

        more = ("--secrets-key-file", keys)
        done = copy(database, "--from", first.data, "--to", database.url, "--files", second.data, *more)
        assert "1 endpoint, " in done.stdout and "8 jobs with" in done.stdout and "3 chunks" in done.stdout, done
        assert "read back and compared" in done.stdout and "audit" in done.stdout, done
        assert "copied: 8 jobs" in done.stderr and "compared: 8 jobs" in done.stderr, done
        # What was copied stays as it is.
        longshore("store", "verify", first.data)
        assert "blobs" not in {path.name for path in second.data.iterdir()}

        second.start()
        assert_same(settled(shown(Api(second))), before)
        now = Api(second).ok("GET", "/v1/audit")
        assert all(entry in now for entry in audit)
        weights = next((second.data / "volumes").rglob("weights.bin"))
        assert weights.read_bytes() == bytes(range(256))
        there = Endpoint(Api(second), endpoint.record)
        worker = FakeWorker(there)
        taken = worker.take()
        assert taken["id"] == queued[0]
        worker.done(queued[0], {"output": "by the database"})
        assert there.wait_for(queued[0])["output"] == "by the database"
        between = settled(shown(Api(second)))
        second.terminate()

        done = copy(database, "--from", database.url, "--to", third.data, "--files", second.data, *more)
        assert "read back and compared" in done.stdout, done
        assert any((third.data / "blobs").rglob("*.input*")), "a large payload is a file again"
        longshore("store", "verify", third.data)
        third.start()
        assert_same(settled(shown(Api(third))), between)
        back = Endpoint(Api(third), endpoint.record)
        rest = FakeWorker(back).take_batch(10)
        assert {job["id"] for job in rest} == set(queued[1:])
        assert [len(job["input"]["large"]) for job in rest if job["id"] == queued[1]] == [len(LARGE)]
        Api(third).external().run({})
    finally:
        for server in (first, second, third):
            server.close()


def test_what_cannot_be_copied_is_refused_in_words_and_changes_nothing(database, keys, tmp_path):
    server = Server(config=QUICK + f'secrets_key_file = "{keys}"\n', flags=FLAGS).start()
    with_database = Server(config=QUICK + database.config, flags=FLAGS)
    url, to = database.url, tmp_path / "new"
    more = ("--secrets-key-file", keys)

    def refused(*words) -> str:
        done = copy(database, *words, code=1)
        assert not to.exists() and database.url.split("@")[0] not in done.stderr, done
        return done.stderr

    try:
        filled(server)
        assert "in use" in refused("--from", server.data, "--to", url, *more)
        server.terminate()
        assert "is not a data directory" in refused("--from", tmp_path, "--to", url)
        assert "one of --from and --to must be" in refused("--from", server.data, "--to", to)
        assert "one of --from and --to must be" in refused("--from", url, "--to", url)
        secret_url = url.replace("@", ":hidden@", 1)
        assert "--to has a password" in (said := refused("--from", server.data, "--to", secret_url)) and "hidden" not in said
        assert "has no tables of Longshore" in refused("--from", url, "--to", to)
        assert "KEY" in refused("--from", server.data, "--to", url)
        assert database.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'longshore%'", DATABASE) == "0"
        # A payload that is gone.
        blob = next(path for path in (server.data / "blobs").rglob("*.input*"))
        kept = blob.read_bytes()
        blob.unlink()
        assert "is missing" in refused("--from", server.data, "--to", url, *more)
        assert database.sql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'longshore%'", DATABASE) == "0"
        blob.write_bytes(kept)

        with_database.start()
        # Each waits for 10 s: the database may notice the end of a killed server late.
        with ThreadPoolExecutor() as pool:
            both = [("--from", server.data, "--to", url, *more), ("--from", url, "--to", to)]
            assert all("another server" in said for said in pool.map(lambda words: refused(*words), both))
        with_database.terminate()
        assert "is not empty: its table" in refused("--from", server.data, "--to", url, *more)
        (tmp_path / "full").mkdir()
        (tmp_path / "full/file").write_text("")
        assert "already exists" in refused("--from", url, "--to", tmp_path / "full")
        assert "no directory" in refused("--from", url, "--to", to, "--files", tmp_path / "none")
        database.sql("DELETE FROM longshore.migration WHERE version > 2", DATABASE)
        assert "run `longshore migrate` first" in refused("--from", url, "--to", to)
    finally:
        server.close()
        database.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
        with_database.close()


def test_a_copy_that_was_killed_is_made_again(database, tmp_path):
    server = Server(config=QUICK, flags=FLAGS).start()
    try:
        endpoint = Api(server).external()
        for number in range(40):
            endpoint.run({"number": number, "large": LARGE})
        server.terminate()
        command = [binary(), "copy", "--from", server.data, "--to", database.url, "--password-file", database.password_file]
        begun = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        there = "SELECT count(*) FROM pg_namespace WHERE nspname = 'longshore_copy'"
        until(lambda: database.sql(there, DATABASE) == "1" or begun.poll() is not None, "the copy has begun", 30, 0.01)
        begun.send_signal(signal.SIGKILL)
        begun.wait(30)
        # Either it was complete, or there is nothing of it.
        jobs = "SELECT count(*) FROM longshore.job"
        if database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'longshore'", DATABASE) == "1":
            assert database.sql(jobs, DATABASE) == "40"
            return
        done = copy(database, "--from", server.data, "--to", database.url)
        assert "40 jobs" in done.stdout and database.sql(jobs, DATABASE) == "40", done
        assert database.sql(there, DATABASE) == "0"
    finally:
        server.close()
