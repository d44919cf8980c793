"""`kill -9` at random moments, under the load of real workers and of clients that keep at it.

Fifteen kills in a normal run; `LONGSHORE_KILLS=100` for the long one, `LONGSHORE_SEED` for other moments.
"""

import os
import random
import sys
import time

import pytest

from harness.audit import Audit, webhook_repeats, webhooks_due
from harness.client import Api
from harness.chaos_clients import ChaosClients
from harness.flood import Flood
from harness.expectations import Expectations
from harness.receiver import Receiver
from harness.server import QUICK, Server
from harness.wait import until

KILLS = int(os.environ.get("LONGSHORE_KILLS", "10"))
SEED = int(os.environ.get("LONGSHORE_SEED", "1"))
CONFIG = QUICK + "webhook_retry_delay_ms = 300\n"
WORKERS_MIN = {"plain": 1, "many": 0, "stream": 0}


@pytest.fixture
def server():
    server = Server(config=CONFIG, flags=("--allow-private-webhooks", "--rate-limits", "off"))
    yield server.start()
    server.close()


def make_endpoints(api: Api) -> dict:
    """One endpoint for each flavour of the handler."""
    kept = {"resultRetentionMs": 86_400_000, "syncResultRetentionMs": 86_400_000}
    scaling = {"workersMax": 2, "idleTimeout": 3, "scalerType": "REQUEST_COUNT", "scalerValue": 20}
    return {
        flavour: api.endpoint(
            "identity.py",
            env={"FLAVOUR": flavour},
            workersMin=workers_min,
            # A job may meet many kills; each may cost it an attempt.
            maxRetries=100,
            durability="buffered" if flavour == "many" else "synced",
            **scaling,
            **kept,
        )
        for flavour, workers_min in WORKERS_MIN.items()
    }


def wait_a_while(chance: random.Random) -> None:
    """Lets the server run for milliseconds or for seconds: no kill may depend on what the server just does."""
    time.sleep(chance.choice([chance.uniform(0.001, 0.1), chance.uniform(0.1, 1), chance.uniform(1, 4)]))


def kill_again_and_again(server: Server, expectations: Expectations, flood: Flood, chance: random.Random) -> None:
    """Kills the server `KILLS` times, often before it is ready again; leaves it running."""
    done = 0
    while done < KILLS:
        if chance.random() < 0.5:
            # However slow the machine is, most kills shall find work that they can destroy.
            seen, flooded = len(expectations.acknowledged()), flood.count()

            def get_on() -> bool:
                return len(expectations.acknowledged()) >= seen + 5 and flood.count() >= flooded + 40

            until(lambda: expectations.violations or get_on(), "clients get on", 20, 0.005)
        wait_a_while(chance)
        since = time.time()
        server.kill()
        done += 1
        while done < KILLS and chance.random() < 0.25:
            # In the middle of its start.
            server.process = server.spawn()
            time.sleep(chance.uniform(0.001, 0.15))
            server.kill()
            done += 1
        server.start()
        expectations.note_down(since)


def settle(expectations: Expectations, endpoints: dict) -> float:
    """Waits until every job has ended; answers after how many seconds."""
    began = time.monotonic()

    def over():
        jobs = {flavour: endpoint.health()["jobs"] for flavour, endpoint in endpoints.items()}
        assert not any(count["inQueue"] or count["inProgress"] for count in jobs.values()), jobs
        return True

    until(over, "every job has ended", 90, 0.2)
    for order in expectations.unfinished():
        answer = endpoints[order.flavour].call("GET", f"/status/{order.id}")
        if answer.status_code == 200:
            expectations.observe(order, answer.json(), answer.text, order.asked())
    return time.monotonic() - began


@pytest.mark.timeout(600 + 20 * KILLS)
def test_nothing_is_lost_however_often_the_server_is_killed(server, tmp_path):
    began = time.monotonic()
    expectations = Expectations()
    api = Api(server)
    endpoints = make_endpoints(api)
    with Receiver() as receiver:
        chaos_clients = ChaosClients(expectations, endpoints, receiver.url, tmp_path, SEED)
        flood = Flood([api.external(durability=kind) for kind in ("synced", "buffered")], expectations)
        try:
            until(lambda: expectations.violations or any(order.end for order in expectations.acknowledged()), "work is done", 30)
            kill_again_and_again(server, expectations, flood, random.Random(SEED))
        finally:
            flood.stop()
            chaos_clients.stop()
        settled_s = settle(expectations, endpoints)
        until(lambda: not webhooks_due(expectations, receiver.calls), "every webhook was accepted", 30, 0.2)
        calls = list(receiver.calls)
    audit = Audit(expectations, endpoints)
    findings = audit.run(calls) + flood.findings()
    flooded = flood.count()
    repeats = webhook_repeats(expectations, calls)
    print(
        f"{KILLS} kills with seed {SEED} in {time.monotonic() - began:.0f} s: "
        f"{len(expectations.acknowledged())} jobs acknowledged, {dict(audit.states)}, "
        f"and {flooded} in queues without workers; "
        f"{expectations.answers_lost} answers lost, {expectations.answers_503} times 503; {len(calls)} webhooks accepted, {repeats} "
        f"of them repeated; {audit.chunks} chunks read, {audit.chunks_lost_on_the_way} never reached a server; "
        f"everything had ended {settled_s:.1f} s after the last client; {len(findings)} findings",
        file=sys.stderr,
    )
    assert not findings, "\n".join(findings[:20])
    assert len(expectations.acknowledged()) >= 2 * KILLS and audit.states["COMPLETED"] >= KILLS
    assert flooded >= 10 * KILLS
    # A call that was accepted a moment before the kill is made again: its receiver is called at four at a time.
    assert repeats <= 4 * KILLS, repeats
    for flavour, count in WORKERS_MIN.items():
        endpoint = endpoints[flavour]
        until(lambda: len(endpoint.workers()) == count, f"the fleet of {flavour} is back at {count}", 40, 0.2)
