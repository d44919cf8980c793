"""Rows in PostgreSQL: jobs outlive the server, its computer and restarts of the database; what is refused, and in which words."""

import json
import os
import random
import re
import signal
import subprocess

import pytest
import requests

from harness.around_postgres import pooler, standby
from harness.client import Api
from harness.commands import longshore
from harness.expectations import Expectations
from harness.fake_worker import FakeWorker
from harness.flood import Flood
from harness.postgres import DATABASE, PASSWORD, USER, Postgres
from harness.receiver import Receiver
from harness.server import QUICK, Server
from harness.wait import until

KILLS = int(os.environ.get("LONGSHORE_KILLS", "8"))
FLAGS = ("--allow-private-webhooks", "--rate-limits", "off")


@pytest.fixture(scope="module")
def cluster():
    """The PostgreSQL of the tests that do not end it."""
    postgres = Postgres()
    yield postgres
    postgres.close()


@pytest.fixture
def database(cluster):
    """The cluster with an empty database."""
    cluster.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    return cluster


@pytest.fixture
def own_database():
    """A PostgreSQL of the test's own."""
    postgres = Postgres()
    yield postgres
    postgres.close()


@pytest.fixture
def make_server():
    """Makes servers that use a database, each with a data directory of its own."""
    made = []

    def make(database: Postgres, config: str = "") -> Server:
        made.append(Server(config=QUICK + database.config + config, flags=FLAGS))
        return made[-1]

    yield make
    for server in made:
        server.close()


def refusal(server: Server) -> str:
    """What a server says that does not start."""
    process = server.spawn()
    assert process.wait(60) == 1, server.log()
    return server.reason()


def test_jobs_are_served_from_another_computer_with_all_their_payloads(database, make_server):
    first = make_server(database).start()
    api = Api(first)
    large = "x" * 2_000_000
    with Receiver() as receiver:
        echo, stream = api.endpoint("echo.py"), api.endpoint("generator.py")
        done = echo.runsync({"message": "hello"})
        assert done["status"] == "COMPLETED", done
        called = echo.run({"message": large}, webhook=receiver.url)
        finished = echo.wait_for(called)
        streamed = stream.run({"count": 3})
        stream.wait_for(streamed)
        assert receiver.wait_for(1)[0]["json"]["id"] == called
    waiting = api.external()
    left = [waiting.run({"number": number, "large": large}) for number in range(3)]
    taken = FakeWorker(waiting).take()
    # What another computer needs is in the database, and not in a file.
    blobs = [path for path in (first.data / "blobs").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert not blobs and not (first.data / "log").exists()
    first.lose()

    second = make_server(database).start()
    api = Api(second)
    for endpoint, job, record in [(echo, done["id"], done), (echo, called, finished)]:
        found = api.ok("GET", f"/v2/{endpoint.id}/status/{job}")
        assert found["output"] == record["output"] and found["status"] == "COMPLETED"
    chunks = api.ok("GET", f"/v2/{stream.id}/stream/{streamed}?offset=0")
    assert [chunk["output"] for chunk in chunks] == [{"n": 0}, {"n": 1}, {"n": 2}]
    waiting.api = api
    until(lambda: waiting.health()["jobs"]["inQueue"] + waiting.health()["jobs"]["inProgress"] == 3, "the jobs are there")
    FakeWorker(waiting).done(taken["id"], {"output": "done by the first attempt"})
    assert waiting.wait_for(taken["id"])["output"] == "done by the first attempt"
    rest = FakeWorker(waiting).take_batch(10)
    assert {job["id"] for job in rest} == set(left) - {taken["id"]}
    assert all(job["input"]["large"] == large for job in rest)


@pytest.mark.timeout(300 + 20 * KILLS)
def test_no_acknowledged_job_is_lost_when_the_server_is_killed(database, make_server):
    server = make_server(database).start()
    expectations, chance = Expectations(), random.Random(1)
    flood = Flood([Api(server).external(durability=kind) for kind in ("synced", "buffered")], expectations)
    try:
        for _ in range(max(KILLS // 5, 3)):
            acknowledged = sum(map(len, flood.acknowledged.values()))
            more = acknowledged + chance.randrange(20, 60)
            until(lambda: sum(map(len, flood.acknowledged.values())) >= more, "jobs are acknowledged", 30)
            server.kill()
            server.start()
    finally:
        flood.stop()
    assert not flood.findings()


@pytest.mark.timeout(300 + 20 * KILLS)
def test_no_acknowledged_job_is_lost_when_the_database_is_killed(own_database, make_server):
    # Servers ask for durable commits themselves.
    own_database.sql("ALTER SYSTEM SET synchronous_commit = off")
    own_database.sql("SELECT pg_reload_conf()")
    server = make_server(own_database).start()
    expectations, chance = Expectations(), random.Random(2)
    endpoints = [Api(server).external() for _ in range(4)]
    flood = Flood(endpoints, expectations)
    hows = [signal.SIGKILL, signal.SIGQUIT, signal.SIGINT]
    try:
        for round in range(max(KILLS // 5, 3)):
            more = sum(map(len, flood.acknowledged.values())) + chance.randrange(40, 120)
            until(lambda: sum(map(len, flood.acknowledged.values())) >= more, "jobs are acknowledged", 60)
            own_database.stop(hows[round % len(hows)])
            own_database.start()
    finally:
        flood.stop()
    # The server found the database again by itself.
    assert server.process.poll() is None
    until(lambda: requests.get(f"{server.url}/readyz", timeout=10).status_code == 200, "the server is ready", 30)
    # A queue that was reloaded changes nothing for a moment.
    for endpoint in endpoints:
        until(lambda: endpoint.call("POST", "/run", json={"input": {}}).status_code == 200, "a job is accepted", 30, 0.2)
    assert not flood.findings()
    flushes = re.search(r"^longshore_flush_seconds_count (\d+)$", Api(server).call("GET", "/metrics").text, re.M)
    assert int(flushes[1]) > 0


def test_while_the_database_is_away_jobs_are_refused_in_words_and_then_accepted(own_database, make_server):
    server = make_server(own_database).start()
    server_api = Api(server)
    endpoint = server_api.external()
    kept = endpoint.run({"number": 1})
    own_database.stop()
    answer = endpoint.call("POST", "/run", json={"input": {"number": 2}})
    assert answer.status_code == 503 and "cannot store the change" in answer.text, answer.text
    assert "Retry-After" in answer.headers
    ready = server_api.call("GET", "/readyz?verbose")
    assert ready.status_code == 503 and "database jobs of 127.0.0.1" in ready.text, ready.text
    own_database.start()
    until(lambda: endpoint.call("POST", "/run", json={"input": {"number": 3}}).status_code == 200, "a job is accepted", 30, 0.2)
    assert endpoint.status(kept)["status"] == "IN_QUEUE"


def test_a_second_server_is_refused_and_the_first_goes_on(database, make_server):
    first = make_server(database).start()
    endpoint = Api(first).external()
    said = refusal(make_server(database))
    assert "another server from 127.0.0.1" in said and "stop it first" in said, said
    endpoint.run({})


def test_a_server_that_lost_the_database_to_another_one_stops(database, make_server):
    server = make_server(database).start()
    Api(server).external().run({})
    key = "hashtextextended('longshore longshore', 0)"
    thief = database.spawn_sql(f"SET application_name = 'thief'; SELECT pg_advisory_lock({key}), pg_sleep(120)")
    try:
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: database.sql(waits) == "1", "the other one waits for the lock")
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore lock'")
        assert server.process.wait(60) == 1
        assert "another server" in server.reason(), server.log()
    finally:
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'thief'")
        thief.wait(10)


def test_the_password_is_never_shown(database, make_server):
    server = make_server(database, 'log_level = "trace"\n').start()
    api = Api(server)
    api.external().run({})
    shown = api.ok("GET", "/v1/server")["changedSettings"]
    assert shown["store"] == database.url and shown["store_password_file"] == str(database.password_file)
    assert PASSWORD not in json.dumps(api.ok("GET", "/v1/server")) + server.log()
    server.terminate()
    secret_url = database.url.replace("@", ":" + PASSWORD + "@", 1)
    wrong = Server(config=QUICK + f'store = "{secret_url}"\n')
    said = refusal(wrong)
    assert "has a password" in said and "store_password_file" in said and PASSWORD not in wrong.log()
    wrong.close()


def test_what_cannot_work_is_refused_at_the_start_in_words(own_database, make_server):
    wrong_password = own_database.folder / "wrong"
    wrong_password.write_text("wrong\n")
    server = make_server(own_database)
    server.config.write_text(QUICK + f'store = "{own_database.url}"\nstore_password_file = "{wrong_password}"\n')
    said = refusal(server)
    assert "password authentication failed" in said and "jobs of 127.0.0.1" in said, said

    embedded = Server(config=QUICK).start()
    embedded.terminate()
    embedded.config.write_text(QUICK + own_database.config)
    said = refusal(embedded)
    assert "has the log of an embedded store" in said, said
    embedded.close()

    own_database.sql("ALTER SYSTEM SET fsync = off")
    own_database.sql("SELECT pg_reload_conf()")
    until(lambda: own_database.sql("SHOW fsync") == "off", "fsync is off")
    said = refusal(make_server(own_database))
    assert "fsync = off" in said and "set fsync = on" in said, said

    own_database.stop()
    said = refusal(make_server(own_database))
    assert "cannot connect to the database jobs of 127.0.0.1" in said, said


def test_tables_are_migrated_by_hand_and_checked(database, make_server):
    server = make_server(database)
    more = ("--config", server.config)
    assert "there are no tables yet" in longshore("migrate", "--check", *more, code=1).stdout
    assert "made tables of version" in longshore("migrate", *more).stdout
    server.start()
    assert "are up to date" in longshore("migrate", "--check", *more).stdout
    assert "are up to date" in longshore("migrate", *more).stdout
    server.terminate()
    database.sql("INSERT INTO longshore.migration (version, name) VALUES (99, 'later')", DATABASE)
    for words in [("migrate", "--check"), ("migrate",)]:
        assert "start the newer program" in longshore(*words, *more, code=1).stderr
    assert "start the newer program" in refusal(server)
    assert "names no database" in longshore("migrate", code=1).stderr
    wrong = longshore("migrate", LONGSHORE_STORE="postgres://127.0.0.1:1/jobs?password=hidden", code=1).stderr
    assert "has a password" in wrong and "hidden" not in wrong


def findings(server: Server, code: int = 0) -> dict[str, list[str]]:
    """What `longshore doctor` says about the database, by status."""
    data = ("--data-dir", server.data, "--listen", "127.0.0.1:0", "-o", "json")
    rows = json.loads(longshore("doctor", "--config", server.config, *data, code=code).stdout)
    found = {"ok": [], "warn": [], "fail": []}
    for row in rows:
        if row["subject"] == "database":
            found[row["status"]].append(row["text"])
    return found


def test_doctor_checks_the_database(own_database, make_server):
    server = make_server(own_database)

    def said(status: str, words: str, code: int = 0) -> None:
        found = findings(server, code)
        assert any(words in text for text in found[status]), found
        assert PASSWORD not in str(found)

    good = findings(server)
    # On a busy disk, a commit takes long enough for a warning.
    commit = [text for text in good["ok"] + good["warn"] if "a commit takes" in text]
    assert commit and not good["fail"] and set(good["warn"]) <= set(commit), good
    for words in ("PostgreSQL 1", "no tables yet", "in their order", "connections are free", "no standby"):
        assert any(words in text for text in good["ok"]), (words, good)
    server.start()
    assert any("a server from 127.0.0.1" in text for text in findings(server)["ok"])
    server.terminate()
    own_database.sql("DELETE FROM longshore.migration WHERE version > 2", DATABASE)
    said("warn", "the tables have version 2")
    own_database.sql("INSERT INTO longshore.migration (version, name) VALUES (99, 'later')", DATABASE)
    said("fail", "start the newer program", 1)
    own_database.sql("DROP SCHEMA longshore CASCADE", DATABASE)

    # Connections that a role or a database may not have do not count as free.
    for limit in (f"ROLE {USER}", f"DATABASE {DATABASE}"):
        own_database.sql(f"ALTER {limit} CONNECTION LIMIT 6")
        said("fail", "a server needs 9", 1)
        own_database.sql(f"ALTER {limit} CONNECTION LIMIT -1")

    for setting in ("fsync", "full_page_writes"):
        own_database.sql(f"ALTER SYSTEM SET {setting} = off")
        own_database.sql("SELECT pg_reload_conf()")
        until(lambda: own_database.sql(f"SHOW {setting}") == "off", f"{setting} is off")
        said("fail", f"set {setting} = on", 1)
        assert f"set {setting} = on" in refusal(server)
        own_database.sql(f"ALTER SYSTEM RESET {setting}")
        own_database.sql("SELECT pg_reload_conf()")
        until(lambda: own_database.sql(f"SHOW {setting}") == "on", f"{setting} is on")

    # A standby that is asynchronous, and then one that commits wait for.
    with standby(own_database, "another") as other:
        until(lambda: own_database.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1", "it follows", 30)
        said("warn", "commits wait for none of 1 standbys")
        server.start()
        assert "every standby of the database is asynchronous" in server.log()
        server.terminate()
        own_database.sql("ALTER SYSTEM SET synchronous_standby_names = 'another'")
        own_database.sql("SELECT pg_reload_conf()")
        until(lambda: "'sync'" in repr(own_database.sql("SELECT sync_state FROM pg_stat_replication")), "it is synchronous", 30)
        said("ok", "waits for a standby: another")
        # The standby itself takes no writes.
        server.config.write_text(QUICK + other.config)
        said("fail", "it is a standby or read-only, name the primary", 1)
        server.config.write_text(QUICK + own_database.config)
        own_database.sql("ALTER SYSTEM RESET synchronous_standby_names")
        own_database.sql("SELECT pg_reload_conf()")

    own_database.stop()
    said("fail", "cannot connect to the database jobs of 127.0.0.1", 1)
    server.config.write_text(QUICK + 'store = "sqlite"\n')
    assert "is no address of a PostgreSQL" in longshore("doctor", "--config", server.config, code=1).stdout


def test_a_pooler_in_transaction_mode_is_refused(own_database, make_server):
    with pooler(own_database, "transaction") as before:
        server = make_server(own_database)
        server.config.write_text(QUICK + before.config)
        said = refusal(server)
        assert "a pooler in transaction mode" in said, said
        assert "a pooler in transaction mode" in str(findings(server, 1)["fail"])
    with pooler(own_database, "session") as before:
        server.config.write_text(QUICK + before.config)
        server.start()
        Api(server).external().run({})


def test_a_backup_names_the_tools_of_the_database(database, make_server, tmp_path):
    server = make_server(database).start()
    command = [server.program, "backup", "--config", str(server.config), "--to", str(tmp_path / "backup")]
    environment = {**os.environ, "LONGSHORE_DATA_DIR": str(server.data)}
    backup = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert backup.returncode == 1 and "pg_dump" in backup.stderr, backup.stderr
    assert not (tmp_path / "backup").exists()


def test_people_can_read_the_states_of_jobs_with_sql(database, make_server):
    server = make_server(database).start()
    endpoint = Api(server).external()
    endpoint.run({})
    endpoint.cancel(endpoint.run({}))
    until(lambda: endpoint.health()["jobs"]["inQueue"] == 1, "one job is left")
    states = "SELECT longshore.job_state(row), count(*) FROM longshore.job GROUP BY 1 ORDER BY 1"
    assert database.sql(states, DATABASE).split() == ["CANCELLED|1", "IN_QUEUE|1"]


ON_AUDIT = """
SET search_path = longshore;
CREATE FUNCTION at_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}; RETURN NEW; END $$;
CREATE TRIGGER at_audit BEFORE {when} ON log_line FOR EACH ROW WHEN (NEW.log = 'audit') EXECUTE FUNCTION at_audit();
"""
NOT_ON_AUDIT = "SET search_path = longshore; DROP TRIGGER at_audit ON log_line; DROP FUNCTION at_audit"
END_LOG_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore log'"


def changes(api: Api, key: str) -> list[dict]:
    """What the audit log has of changes of templates by a key, oldest first."""
    entries = api.ok("GET", f"/v1/audit?key={key}")
    return [entry for entry in reversed(entries) if entry["event"] == "change" and entry["path"].startswith("/v1/templates")]


def test_a_change_is_stored_if_and_only_if_its_audit_entry_is(database, make_server):
    server = make_server(database).start()
    api = Api(server)
    made = api.ok("POST", "/v1/templates", json={"name": "first", "imageName": "a"})
    key = api.ok("GET", "/v1/me")["key"]["id"]
    first = changes(api, key)
    assert [(entry["status"], entry["resource"], entry["outcome"]) for entry in first] == [(200, f"templates/{made['id']}", "done")]

    # An entry that cannot be written is no change.
    endpoint = api.external()
    many = {"do": "cancel", "ids": [endpoint.run({})]}
    database.sql(ON_AUDIT.format(when="INSERT", does="RAISE EXCEPTION 'no'"), DATABASE)
    refused = api.call("POST", "/v1/templates", json={"name": "second", "imageName": "a"})
    assert refused.status_code == 503, refused.text
    refused = endpoint.call("POST", "/bulk", json=many)
    assert refused.status_code == 503 and endpoint.ok("GET", "/bulk") == [], refused.text
    database.sql(NOT_ON_AUDIT, DATABASE)

    # The server ends after the commit of a change, before its entry has the status of the response.
    database.sql(ON_AUDIT.format(when="UPDATE", does="PERFORM pg_sleep(60)"), DATABASE)
    assert api.call("PATCH", f"/v1/templates/{made['id']}", json={"name": "third"}).status_code == 200
    task = endpoint.call("POST", "/bulk", json=many).json()["id"]
    server.kill()
    database.sql(END_LOG_SESSIONS)
    database.sql(NOT_ON_AUDIT, DATABASE)
    server.start()
    names = [template["name"] for template in api.ok("GET", "/v1/templates")]
    assert "third" in names and not {"first", "second"} & set(names), names
    last = changes(api, key)[-1]
    assert (last["method"], last["resource"], last["outcome"]) == ("PATCH", f"templates/{made['id']}", "done")
    assert last["fields"] == ["name"] and "status" not in last
    assert [entry["id"] for entry in changes(api, key)] == sorted({entry["id"] for entry in changes(api, key)})
    tasks = [entry for entry in api.ok("GET", f"/v1/audit?key={key}") if entry.get("resource") == f"endpoints/{endpoint.id}/bulk/{task}"]
    assert [(entry["outcome"], entry.get("status")) for entry in tasks] == [("done", None)]
