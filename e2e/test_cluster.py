"""Several servers on one database: any of them answers, one takes over from another, and what is refused."""

import json
import math
import os
import re
import signal
import time

import pytest
import requests

from harness.certificates import Authority
from harness.client import Api
from harness.cluster_load import ClusterLoad
from harness.commands import longshore
from harness.fake_worker import FakeWorker
from harness.nodes import METRICS, Node, Nodes, seconds_of
from harness.postgres import DATABASE, Postgres
from harness.receiver import Receiver
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until
from test_load_balancing import call, make

KILLS = int(os.environ.get("LONGSHORE_NODE_KILLS", "2"))
PAUSES = int(os.environ.get("LONGSHORE_NODE_PAUSES", "1"))
PAUSE_S = float(os.environ.get("LONGSHORE_NODE_PAUSE_S", "0"))
"""How long a pause lasts at least: until another node has taken over in any case."""
DATABASE_RESTARTS = int(os.environ.get("LONGSHORE_DATABASE_RESTARTS", "1"))
ROLLS = int(os.environ.get("LONGSHORE_NODE_ROLLS", "1"))
KEPT_MS = 4 * 3_600_000
"""How long jobs are kept after their end: longer than the longest form of the test."""


@pytest.fixture(scope="module")
def postgres():
    """The PostgreSQL of the tests that do not end it."""
    postgres = Postgres()
    yield postgres
    postgres.close()


@pytest.fixture
def database(postgres):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    return postgres


def minutes(api: Api, endpoint: str) -> int:
    """The completed jobs of an endpoint in the minutes of the last hour that are stored."""
    shown = api.ok("GET", f"/v1/endpoints/{endpoint}/history?series=completed&step=60000")
    return shown["total"]["completed"] or 0


def ready(node: Node) -> dict:
    return requests.get(f"{node.url}/readyz", timeout=10).json()


def test_any_node_answers_and_another_takes_over(database):
    nodes = Nodes(database, ("a", "b")).start()
    first, second = nodes.all
    try:
        assert nodes.owner() is first
        assert ready(second) == {"status": "ready", "role": "standby"}
        assert requests.get(f"{second.url}/healthz", timeout=10).json() == {"status": "ok", "role": "standby"}
        # Everything goes through the node that does not own the shards.
        through = Api(second)
        endpoint = through.external()
        job = endpoint.run({"large": "x" * 300_000})
        why = endpoint.ok("GET", f"/explain/{job}")
        assert (why["position"], why["cause"]["code"]) == (1, "no_external_worker"), why
        taken = FakeWorker(endpoint).take()
        assert taken["id"] == job and len(taken["input"]["large"]) == 300_000
        FakeWorker(endpoint).done(job, {"output": "done"})
        assert endpoint.wait_for(job)["output"] == "done"
        with Receiver() as receiver:
            reported = endpoint.run({}, webhook=receiver.url)
            assert FakeWorker(endpoint).take()["id"] == reported
            FakeWorker(endpoint).done(reported, {"output": 1})
            assert receiver.wait_for(1)[0]["json"]["id"] == reported
        delivered = until(lambda: endpoint.ok("GET", "/webhooks")["webhooks"], "the delivery is in the log")
        assert [delivery["state"] for delivery in delivered] == ["DELIVERED"]
        assert through.call("GET", "/v1/endpoints", headers={"Authorization": "Bearer wrong"}).status_code == 401
        wrong = through.call("POST", f"{endpoint.mount}/run", data="{", headers={"Content-Type": "application/json"})
        assert wrong.status_code == 400, wrong.text
        # What only peers may send is refused without their signature, and ignored from clients.
        peers = f"http://127.0.0.1:{first.peer_port}"
        forged = {"x-longshore-peer": "1 1.2.3.4 tls all - 00", "Authorization": f"Bearer {through.key}"}
        assert requests.get(f"{peers}/v1/endpoints", headers=forged, timeout=10).status_code == 403
        assert through.call("GET", "/v1/endpoints", headers={"x-longshore-peer": "junk"}).status_code == 200
        shown = requests.get(f"{second.url}/metrics", timeout=10).text
        assert "longshore_shards_owned 0" in shown and 'longshore_forwarded_total{outcome="answered"}' in shown

        # A client that disconnects takes no job with it.
        worker = FakeWorker(endpoint)
        with pytest.raises(requests.Timeout):
            worker.take_raw(timeout_s=0.5)
        kept = endpoint.run({"kept": True})
        waiting = worker.park()
        assert waiting.result(30).json()["id"] == kept
        worker.done(kept, {"output": 1})

        # A parked call goes on after the owner's end, and a submit waits for the next owner.
        parked = FakeWorker(endpoint).park()
        first.kill()
        later = endpoint.run({"later": True})
        assert parked.result(30).json()["id"] == later
        assert nodes.owner() is second and ready(second)["status"] == "ready"
        # What was changed, and what was told of its jobs, while another node owned the shards.
        created = [entry for entry in Api(second).ok("GET", "/v1/audit") if entry.get("path") == "/v1/endpoints"]
        assert any(entry["outcome"] == "done" for entry in created), created
        assert endpoint.ok("GET", "/webhooks")["webhooks"] == delivered
        assert endpoint.status(job)["output"] == "done"
        shown = Api(second).call("GET", "/metrics").text
        assert f"longshore_shards_owned {64}" in shown
        assert METRICS <= set(re.findall(r"^# TYPE (\S+)", shown, re.M))
        # The first node comes back as a standby.
        first.start()
        assert ready(first)["role"] == "standby"
        assert Api(first).ok("GET", f"{endpoint.mount}/status/{job}")["output"] == "done"
        # What a node recorded of an endpoint is shown by the next owner.
        done_here = endpoint.run({})
        FakeWorker(endpoint).done(FakeWorker(endpoint).take()["id"], {"output": 1})
        assert endpoint.wait_for(done_here)["status"] == "COMPLETED"
        recorded = lambda api: api.ok("GET", f"/v1/endpoints/{endpoint.id}/history?series=completed")["total"]["completed"]
        before = until(lambda: recorded(Api(second)), "the end is in the history", 20)
        # A node that stops in order hands over immediately.
        assert second.terminate() == 0
        until(lambda: minutes(Api(first), endpoint.id) >= before, "the next owner has the history", 30)
        assert Api(first).ok("GET", f"{endpoint.mount}/status/{later}")["status"] in ("IN_PROGRESS", "IN_QUEUE")
        assert nodes.owner() is first
    finally:
        nodes.close()


LEASES_ARE_OVER = "SELECT bool_and(until < clock_timestamp()) FROM longshore.node"
LOOKED_SINCE = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT cluster.owner, cluster.epoch%' AND query_start > to_timestamp({})"


def test_nodes_that_stood_still_together_keep_their_owner(database):
    nodes = Nodes(database, ("a", "b")).start()
    first, second = nodes.all
    try:
        endpoint, epoch = Api(second).external(), nodes.epoch()
        first.pause()
        second.pause()
        until(lambda: database.sql(LEASES_ARE_OVER, DATABASE) == "t", "the leases are over", 30)
        second.go_on()
        # The one that waits has looked, and again: the owner, which may renew its lease now, is not declared dead.
        went_on = time.time()
        until(lambda: database.sql(LOOKED_SINCE.format(went_on + 0.5), DATABASE) != "0", "the standby looks at the owner", 30)
        first.go_on()
        job = endpoint.run({})
        assert FakeWorker(endpoint).take()["id"] == job
        assert nodes.epoch() == epoch and nodes.owner() is first
    finally:
        nodes.close()


def test_bodies_of_forwarded_requests_pass_through_any_node(database):
    """Of every method, in any size: the node that does not own the shards keeps none of them."""
    nodes = Nodes(database, ("a", "b")).start()
    first, second = nodes.all
    try:
        assert nodes.owner() is first
        endpoint = make(Api(second), "raw_web.py", workersMin=1, scalerValue=1000)
        body = b"~" * 3_000_000
        for method in ("GET", "OPTIONS", "POST"):
            assert call(endpoint, method, "/raw", data=body).content.endswith(b"\r\n\r\n" + body), method
            # An iterator is sent in chunks.
            chunked = call(endpoint, method, "/raw", data=iter([body[:70_000], body[70_000:]]))
            assert chunked.content.count(b"~") == len(body) and chunked.content.endswith(b"\r\n0\r\n\r\n"), method
    finally:
        nodes.close()


def test_what_nodes_send_each_other_is_encrypted(database, tmp_path):
    (tmp_path / "theirs").mkdir()
    ours, theirs = Authority(tmp_path), Authority(tmp_path / "theirs")
    certificate, key = ours.issue("node", 7)
    config = f'cluster_tls_cert = "{certificate}"\ncluster_tls_key = "{key}"\ncluster_ca_file = "{{}}"\n'
    nodes = Nodes(database, ("a", "b"), config.format(ours.path)).start()
    theirs_for_node = theirs.issue("node", 7)
    own = f'cluster_tls_cert = "{theirs_for_node[0]}"\ncluster_tls_key = "{theirs_for_node[1]}"\n'
    stranger = Node(database, "c", own + f'cluster_ca_file = "{theirs.path}"\n')
    unsigned = Node(database, "d", own + f'cluster_ca_file = "{ours.path}"\n')
    try:
        first, second = nodes.all
        endpoint = Api(second).external()
        job = endpoint.run({"large": "x" * 300_000})
        worker = FakeWorker(endpoint)
        taken = worker.take()
        assert taken["id"] == job and len(taken["input"]["large"]) == 300_000
        worker.done(job, {"output": "done"})
        assert endpoint.wait_for(job)["output"] == "done"
        address = f"127.0.0.1:{first.peer_port}"
        rows = Api(second).ok("GET", "/v1/nodes")
        assert f"https://{address}" in [row["address"] for row in rows]
        # Nothing there speaks without TLS.
        with pytest.raises(requests.ConnectionError):
            requests.get(f"http://{address}/internal/1/node", timeout=10)
        asked = {"url": f"https://{address}/internal/1/node", "verify": str(ours.path), "timeout": 10}
        told = requests.get(**asked, cert=(str(certificate), str(key))).text
        assert told.startswith("longshore node ")
        # And nothing to a client that shows no certificate of the cluster's authority.
        for shown in (None, tuple(map(str, theirs_for_node))):
            with pytest.raises(requests.ConnectionError):
                requests.get(**asked, cert=shown)
        said = refusal(unsigned)
        assert "the other nodes would refuse the certificate" in said, said
        # A node that does not trust the others passes nothing on.
        stranger.start()
        assert Api(stranger).call("GET", "/v1/endpoints").status_code == 503
        until(lambda: "no encrypted connection to another node" in stranger.log(), "the log says why", 20)
        stranger.kill()
        first.kill()
        assert endpoint.status(endpoint.run({}))["status"] == "IN_QUEUE"
        assert nodes.owner() is second
    finally:
        nodes.close()
        stranger.close()
        unsigned.close()


def listed(node: Node) -> dict[str, str]:
    """The state of each node by its name, as `longshore nodes` prints it."""
    asks = {"LONGSHORE_URL": node.url, "LONGSHORE_API_KEY": ADMIN_KEY, "HOME": str(node.folder)}
    table = longshore("nodes", **asks).stdout.splitlines()
    assert table[0].split() == ["NODE", "STATE", "ADDRESS", "VERSION", "SINCE"], table
    rows = json.loads(longshore("nodes", "-o", "json", **asks).stdout)
    states = {row["name"]: row["state"] for row in rows}
    assert {line.split()[0]: line.split()[1] for line in table[1:]} == states, (table, rows)
    api = Api(node).ok("GET", "/v1/nodes")
    assert {row["name"]: row["state"] for row in api} == states
    return states


def metrics(node: Node) -> dict[str, float]:
    """The metrics of a node about the cluster, by name and labels."""
    text = Api(node).call("GET", "/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("longshore_")]
    return {name: float(value) for name, value in lines if name.split("{")[0] in METRICS}


def test_nodes_readiness_and_metrics_tell_the_owner_and_the_lost(database):
    nodes = Nodes(database, ("a", "b")).start()
    first, second = nodes.all
    try:
        for node in nodes.all:
            # The owner reads the nodes once a second.
            until(lambda: listed(node) == {"a": "OWNER", "b": "STANDBY"}, "both nodes are listed", 30, 0.2)
            assert 0 < metrics(node)["longshore_lease_left_seconds"] <= 3
        assert [ready(node).get("role") for node in nodes.all] == [None, "standby"]
        assert [metrics(node)["longshore_shards_owned"] for node in nodes.all] == [64, 0]
        before = metrics(second)['longshore_forwarded_total{outcome="answered"}']
        Api(second).external()
        assert metrics(second)['longshore_forwarded_total{outcome="answered"}'] >= before + 2
        until(lambda: metrics(first)['longshore_nodes{state="standby"}'] == 1, "the owner counts the standby")

        # A standby whose computer is lost is away, and one that stopped is gone.
        second.pause()
        until(lambda: listed(first)["b"] == "AWAY", "the standby is away", 30, 0.2)
        second.go_on()
        until(lambda: listed(first)["b"] == "STANDBY", "the standby is back", 30, 0.2)
        second.will_end = False
        second.terminate()
        until(lambda: listed(first).get("b", "GONE") == "GONE", "the standby is gone", 30, 0.2)
        second.start()
        until(lambda: listed(second)["b"] == "STANDBY", "the standby is listed again", 30, 0.2)

        # The database is away: no node is ready.
        database.stop()
        for node in nodes.all:
            until(lambda: requests.get(f"{node.url}/readyz", timeout=30).status_code == 503, "the node is not ready", 30)
            assert requests.get(f"{node.url}/healthz", timeout=30).status_code == 200
        lease = "longshore_lease_left_seconds 0\n"
        until(lambda: lease in requests.get(f"{second.url}/metrics", timeout=30).text, "the lease is over", 30)
        database.start()
        for node in nodes.all:
            until(lambda: requests.get(f"{node.url}/readyz", timeout=30).status_code == 200, "the node is ready", 30)

        first.kill()
        until(lambda: listed(second)["a"] == "GONE", "the owner is gone", 30, 0.2)
        assert listed(second)["b"] == "OWNER"
        assert metrics(second)["longshore_shards_owned"] == 64
        assert 0 < metrics(second)["longshore_takeover_seconds"] < 20
    finally:
        nodes.close()


def test_a_server_without_peers_says_so(server):
    asks = {"LONGSHORE_URL": server.url, "LONGSHORE_API_KEY": ADMIN_KEY, "HOME": str(server.folder)}
    assert "shares its database with no other" in longshore("nodes", **asks).stdout
    assert json.loads(longshore("nodes", "-o", "json", **asks).stdout) == []
    assert not METRICS & set(re.findall(r"^# TYPE (\S+)", Api(server).call("GET", "/metrics").text, re.M))


def refusal(server: Server) -> str:
    """What a server says that does not start."""
    process = server.spawn()
    assert process.wait(60) == 1, server.log()
    return server.reason()


def test_what_does_not_belong_to_the_cluster_is_refused_in_words(database, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"lsk_{'ab' * 32}\n")
    keys.chmod(0o600)
    nodes = Nodes(database, ("a",), f'secrets_key_file = "{keys}"\n').start()
    others = []
    try:
        other_keys = tmp_path / "other"
        other_keys.write_text(f"lsk_{'cd' * 32}\n")
        other_keys.chmod(0o600)
        others = [
            Node(database, "b", f'secrets_key_file = "{other_keys}"\n'),
            Node(database, "c"),
            Node(database, "a", f'secrets_key_file = "{keys}"\n'),
            Server(config=QUICK + database.config),
        ]
        expected = [
            "cannot decrypt the secrets of the other servers",
            "cannot decrypt the secrets of the other servers",
            'has the name "a" too',
            "another server",
        ]
        for other, words in zip(others, expected):
            said = refusal(other)
            assert words in said and database.url not in said, said
        # A data directory remembers its cluster.
        node = nodes.all[0]
        node.terminate()
        database.sql("UPDATE longshore.cluster SET id = 'another'", DATABASE)
        said = refusal(node)
        assert "belongs to another cluster than the database" in said, said
    finally:
        nodes.close()
        for other in others:
            other.close()


def share(seconds: list[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed; 0 without values."""
    ordered = sorted(seconds) or [0.0]
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


@pytest.mark.timeout(300 + 20 * (KILLS + 2 * PAUSES + DATABASE_RESTARTS + 3 * ROLLS))
def test_nothing_is_lost_while_nodes_and_the_database_come_and_go():
    database = Postgres()
    nodes = Nodes(database, ("a", "b", "c")).start()
    load = None
    by_kill, by_pause, by_order = [], [], []
    try:
        # A job that is over must not be deleted before the end of the test.
        endpoint = Api(nodes.all[0]).external(resultRetentionMs=KEPT_MS, syncResultRetentionMs=KEPT_MS)
        load = ClusterLoad(endpoint, nodes.all)

        def goes_on() -> None:
            reached = load.count() + 10
            until(lambda: load.count() >= reached, "callers are answered", 60, 0.05)

        for _ in range(KILLS):
            goes_on()
            owner, other = nodes.owner(), nodes.standbys()[0]
            owner.kill()
            by_kill.append(seconds_of(lambda: Api(other).ok("GET", f"{endpoint.mount}/health")))
            owner.start()
        for _ in range(PAUSES):
            goes_on()
            owner, other = nodes.owner(), nodes.standbys()[0]
            load.may_refuse.set()
            owner.pause()
            paused_at = time.monotonic()
            by_pause.append(seconds_of(lambda: Api(other).ok("GET", f"{endpoint.mount}/health")))
            assert nodes.owner() is not owner
            while time.monotonic() < paused_at + PAUSE_S:
                goes_on()
            owner.go_on()
            # The sleeper was declared dead: it says so and ends.
            assert owner.process.wait(30) == 1
            assert "declared this one dead" in owner.reason(), owner.log()[-2000:]
            owner.start()
            load.may_refuse.clear()
        for _ in range(DATABASE_RESTARTS):
            goes_on()
            load.may_refuse.set()
            epoch = nodes.epoch()
            database.stop(signal.SIGQUIT)
            database.start()
            goes_on()
            # The owner lives, and keeps its place.
            assert nodes.epoch() == epoch
            load.may_refuse.clear()
        for _ in range(ROLLS):
            for node in nodes.all:
                goes_on()
                other = next(other for other in nodes.all if other is not node)
                assert node.terminate() == 0, node.log()[-2000:]
                by_order.append(seconds_of(lambda: Api(other).ok("GET", f"{endpoint.mount}/health")))
                node.start()
        goes_on()
        load.finish()
        shown = {"kill": by_kill, "pause": by_pause, "order": by_order}
        for how, seconds in shown.items():
            print(f"take-over by {how}: {len(seconds)} times, p50 {share(seconds, 0.5):.2f} s, p99 {share(seconds, 0.99):.2f} s")
        print(f"{DATABASE_RESTARTS} restarts of the database, {ROLLS} rolling restarts; {load.counts()}")
        assert not load.violations, load.violations[:5]
    finally:
        if load is not None:
            load.stop()
        nodes.close()
        database.close()
