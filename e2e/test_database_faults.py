"""A database that fails in other ways than to be away, while servers use it: what they say, and that they go on."""

import contextlib
import signal
from types import SimpleNamespace

import pytest
import requests

from harness.around_postgres import standby
from harness.client import Api
from harness.gate import Gate
from harness.nodes import Node, Nodes
from harness.postgres import DATABASE, PASSWORD, USER, Postgres
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until

END_SESSIONS = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{USER}'"
END_LANES = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore lane'"
DISK_IS_FULL = """
CREATE FUNCTION longshore.full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE UPDATE ON longshore.shard FOR EACH ROW EXECUTE FUNCTION longshore.full_disk();
"""
FLAGS = ("--allow-private-webhooks", "--rate-limits", "off")


@pytest.fixture
def database():
    postgres = Postgres()
    yield postgres
    postgres.close()


def accepts(endpoint) -> bool:
    return endpoint.call("POST", "/run", json={"input": {}}).status_code == 200


def refuses(endpoint) -> bool:
    answer = endpoint.call("POST", "/run", json={"input": {}})
    assert answer.status_code == 200 or (answer.status_code == 503 and "Retry-After" in answer.headers), answer.text
    return answer.status_code == 503


def test_a_server_goes_on_when_its_database_accepts_changes_again(database):
    server = Server(config=QUICK + database.config, flags=FLAGS).start()
    key = {"Authorization": f"Bearer {ADMIN_KEY}"}

    def new_password(password: str) -> None:
        database.sql(f"ALTER ROLE {USER} PASSWORD '{password}'")
        database.sql(END_SESSIONS)

    def limit_of_connections(count: int) -> None:
        database.sql(f"ALTER ROLE {USER} CONNECTION LIMIT {count}")
        if count == 0:
            database.sql(END_SESSIONS)

    def read_only(value: str) -> None:
        database.sql(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        database.sql("SELECT pg_reload_conf()")

    # What happens, what is said of it, and what ends it.
    causes = [
        (lambda: new_password("rotated"), "password authentication failed", lambda: database.password_file.write_text("rotated\n")),
        (lambda: limit_of_connections(0), "too many connections", lambda: limit_of_connections(-1)),
        (lambda: read_only("on"), "read-only", lambda: read_only("off")),
        (
            lambda: database.sql(DISK_IS_FULL, DATABASE),
            "No space left on device",
            lambda: database.sql("DROP FUNCTION longshore.full_disk CASCADE", DATABASE),
        ),
    ]
    try:
        endpoint = Api(server).external()
        kept = [endpoint.run({"number": 0})]
        for happens, words, ends in causes:
            happens()
            until(lambda: refuses(endpoint), f"a job is refused: {words}", 30)
            ready = lambda: requests.get(f"{server.url}/readyz?verbose", headers=key, timeout=30)
            until(lambda: ready().status_code == 503 and words in ready().text, f"the server says: {words}", 30)
            assert PASSWORD not in ready().text
            ends()
            until(lambda: accepts(endpoint), f"a job is accepted after: {words}", 30, 0.2)
            kept.append(endpoint.run({"number": len(kept)}))
        assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in kept)
        assert server.process.poll() is None and "panicked" not in server.log()
    finally:
        server.close()


def test_a_standby_that_becomes_the_primary_is_found_with_all_jobs(database):
    with standby(database, "another") as other:
        until(lambda: database.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1", "it follows", 30)
        database.sql("ALTER SYSTEM SET synchronous_standby_names = 'another'")
        database.sql("SELECT pg_reload_conf()")
        until(lambda: "sync" in database.sql("SELECT sync_state FROM pg_stat_replication"), "it is synchronous", 30)
        both = database.config.replace(f"127.0.0.1:{database.port}", f"127.0.0.1:{database.port},127.0.0.1:{other.port}")
        server = Server(config=QUICK + both, flags=FLAGS).start()
        try:
            endpoint = Api(server).external()
            kept = [endpoint.run({"number": number}) for number in range(10)]
            database.stop(signal.SIGKILL)
            other.sql("ALTER SYSTEM RESET synchronous_standby_names")
            other.sql("SELECT pg_promote()")
            until(lambda: accepts(endpoint), "a job is accepted", 30, 0.2)
            assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in kept)
            assert server.process.poll() is None
        finally:
            server.close()


def test_a_server_ends_when_the_database_has_forgotten_what_was_durable(database):
    nodes = Nodes(database, ("a", "b")).start()
    first, second = nodes.all
    try:
        endpoint = Api(second).external()
        kept = endpoint.run({"number": 1})
        # As after a failover to a standby that was behind.
        database.sql("UPDATE longshore.shard SET batches = batches - 1 WHERE batches > 0", DATABASE)
        database.sql(END_LANES)
        # The owner notices with its next change.
        with contextlib.suppress(requests.ConnectionError):
            assert Api(first).call("POST", f"{endpoint.mount}/run", json={"input": {}}).status_code == 503
        assert first.process.wait(60) == 1
        assert "does not have what it had made durable" in first.reason(), first.log()[-2000:]
        assert endpoint.status(kept)["status"] == "IN_QUEUE"
        assert nodes.owner() is second
    finally:
        nodes.close()


def test_a_node_that_reaches_only_the_database_or_only_the_nodes(database):
    with Gate(database.port) as to_database, Gate() as to_first:
        config = database.config.replace(f":{database.port}/", f":{to_database.port}/")
        first = Node(SimpleNamespace(config=config), "a", f'cluster_address = "127.0.0.1:{to_first.port}"\n')
        second = Node(database, "b")
        to_first.target = first.peer_port
        nodes = Nodes(database, ())
        nodes.all = [first, second]
        try:
            nodes.start()
            endpoint = Api(second).external()
            epoch = nodes.epoch()

            # The second node reaches the database and not the owner: it passes nothing on, and does not take over.
            to_first.cut()
            refused = endpoint.call("POST", "/run", json={"input": {}})
            assert refused.status_code == 503 and "Retry-After" in refused.headers, refused.text
            assert nodes.epoch() == epoch and nodes.owner() is first
            direct = Api(first).call("POST", f"{endpoint.mount}/run", json={"input": {}})
            assert direct.status_code == 200, direct.text
            to_first.join()
            until(lambda: accepts(endpoint), "the second node passes on again", 30, 0.2)

            # The owner reaches the other node and not the database: that one takes over.
            to_database.part()
            until(lambda: nodes.epoch() > epoch, "the second node takes over", 30, 0.1)
            until(lambda: accepts(endpoint), "the second node decides", 30, 0.2)
            late = Api(first).call("POST", f"{endpoint.mount}/run", json={"input": {}})
            assert late.status_code == 503, late.text
            to_database.join()
            assert first.process.wait(60) == 1
            assert "declared this one dead" in first.reason(), first.log()[-2000:]
        finally:
            nodes.close()
