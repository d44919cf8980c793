"""Owners of keys: rates, jobs, bills and numbers by owner; idempotency by key; and data directories from before all that."""

import json
import tarfile
from pathlib import Path

from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.server import Server
from harness.wait import until

OLD_FOLDER = Path(__file__).parent.parent / "crates/store/tests/fixtures/before-owners.tar.gz"


def key(api: Api, name: str, **fields) -> Api:
    """The server as a new key sees it; its id is `.id`."""
    scopes = [{"scope": "jobs"}, {"scope": "read"}]
    made = api.ok("POST", "/v1/apikeys", json={"name": name, "scopes": scopes, **fields})
    mine = Api(api.server, made["key"])
    mine.id = made["id"]
    return mine


def work_off(endpoint: Endpoint, jobs: int) -> None:
    worker = FakeWorker(endpoint)
    for _ in range(jobs):
        worker.done(worker.take()["id"], {"output": 1})


def test_two_keys_of_one_owner_share_a_rate(fresh_server):
    api = Api(fresh_server())
    endpoint = api.external()
    one, two = key(api, "one", owner="acme"), key(api, "two", owner="acme")
    other, default = key(api, "other", owner="beta"), key(api, "default")
    purge = lambda of: Endpoint(of, endpoint.record).call("POST", "/purge-queue").status_code
    assert [purge(one), purge(two), purge(one), purge(two)] == [200, 200, 429, 429]
    assert [purge(other), purge(other), purge(other)] == [200, 200, 429]
    # Keys that name no owner share the one that the server has, with the first key.
    assert [purge(default), purge(api), purge(default)] == [200, 200, 429]


def test_jobs_carry_key_and_owner_over_a_kill(fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint = api.external()
    one, two = key(api, "one", owner="acme"), key(api, "two", owner="beta-1_x")
    jobs = {Endpoint(of, endpoint.record).run(): (owner, of_id) for of, owner, of_id in
            [(one, "acme", one.id), (two, "beta-1_x", two.id), (api, "server", "admin")]}
    api.ok("PATCH", f"/v1/apikeys/{one.id}", json={"owner": "gamma"})
    late = Endpoint(one, endpoint.record).run()
    jobs[late] = ("gamma", one.id)
    submitters = lambda: {job["id"]: (job["owner"], job["key"]) for job in endpoint.ok("GET", "/requests")["requests"]}
    assert submitters() == jobs
    server.kill()
    server.start()
    assert submitters() == jobs
    work_off(endpoint, 4)
    assert submitters() == jobs
    assert {made["id"]: made["owner"] for made in api.ok("GET", "/v1/apikeys")} == {
        "admin": "server", one.id: "gamma", two.id: "beta-1_x",
    }
    # A number is never given to a second owner, also after a restart.
    three = key(api, "three", owner="delta")
    job = Endpoint(three, endpoint.record).run()
    assert submitters()[job] == ("delta", three.id) and submitters()[late] == ("gamma", one.id)


def test_an_idempotency_key_is_one_api_keys_at_one_endpoint_also_after_a_kill(fresh_server):
    server = fresh_server()
    api = Api(server)
    first, second = api.external(), api.external()
    one, two = key(api, "one", owner="acme"), key(api, "two", owner="acme")

    def submit(of: Api, endpoint: Endpoint, number: int = 0):
        return of.call("POST", f"{endpoint.mount}/run", json={"input": {"n": number}}, headers={"Idempotency-Key": "same"})

    asked = [(of, endpoint) for of in (one, two, api) for endpoint in (first, second)]
    jobs = [submit(of, endpoint).json()["id"] for of, endpoint in asked]
    assert len(set(jobs)) == 6
    assert [submit(of, endpoint).json()["id"] for of, endpoint in asked] == jobs
    server.kill()
    server.start()
    assert [submit(of, endpoint).json()["id"] for of, endpoint in asked] == jobs
    assert submit(two, first, 1).status_code == 409
    assert first.health()["jobs"]["inQueue"] == second.health()["jobs"]["inQueue"] == 3


def test_bills_and_numbers_by_owner(fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint = api.external()
    one, two = key(api, "one", owner="acme"), key(api, "two", owner="acme")
    for of in (one, one, two, api):
        Endpoint(of, endpoint.record).run()
    work_off(endpoint, 4)
    bill = lambda **query: api.ok("GET", "/v1/billing/endpoints", params={"endpointId": endpoint.id, **query})
    assert {record.get("owner"): record["jobs"] for record in bill(grouping="owner")} == {"acme": 3, "server": 1}
    by_key = {(record["owner"], record["key"]): record["jobs"] for record in bill(grouping="key")}
    assert by_key == {("acme", one.id): 2, ("acme", two.id): 1, ("server", "admin"): 1}
    assert [record["jobs"] for record in bill(grouping="owner", owner="acme")] == [3]
    # External workers are not metered: no time to divide, and no record without a grouping by owner.
    assert all(record["timeBilledMs"] == 0 for record in bill(grouping="owner")) and bill() == []
    # They are kept when the server stops.
    server.terminate()
    server.start()
    assert {record.get("owner"): record["jobs"] for record in bill(grouping="owner")} == {"acme": 3, "server": 1}
    job = Endpoint(two, endpoint.record).run()
    endpoint.cancel(job)

    def counted():
        lines = api.call("GET", "/metrics").text.splitlines()
        assert 'longshore_owner_submitted_total{owner="acme"} 1' in lines
        assert 'longshore_owner_ended_total{owner="acme"} 1' in lines
        assert 'longshore_owner_submitted_total{owner="other"} 0' in lines
        assert not any(two.id in line for line in lines)
        return lines

    until(counted, "the owner's job is counted", 15)


def test_a_thousand_owners_make_no_longer_page(fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"))
    api = Api(server)
    endpoint = api.external()
    mine = key(api, "moves")
    for number in range(120):
        api.ok("PATCH", f"/v1/apikeys/{mine.id}", json={"owner": f"owner-{number}"})
        Endpoint(mine, endpoint.record).run()

    def counted():
        lines = api.call("GET", "/metrics").text.splitlines()
        of = {line.split('"')[1]: float(line.split()[-1]) for line in lines if line.startswith("longshore_owner_submitted_total{")}
        assert len(of) == 51 and sum(of.values()) == 120 and of["other"] == 70, of
        return of

    until(counted, "50 owners and the others", 15)


def test_workers_time_is_shared_out_by_execution_time(fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint = api.endpoint(workersMin=1, workersMax=1)
    one, two = key(api, "one", owner="acme"), key(api, "two", owner="beta")
    for of in (one, two, two):
        Endpoint(of, endpoint.record).runsync()
    bill = lambda **query: api.ok("GET", "/v1/billing/endpoints", params={"endpointId": endpoint.id, **query})
    shared = bill(grouping="owner")
    jobs = {record["owner"]: record["jobs"] for record in shared if "owner" in record}
    assert jobs == {"acme": 1, "beta": 2}
    # The worker runs on between the two answers.
    before, whole, after = (sum(record["timeBilledMs"] for record in bill(**query))
                            for query in ({"grouping": "owner"}, {}, {"grouping": "owner"}))
    assert 0 < before <= whole <= after


def test_a_folder_from_before_owners_opens(tmp_path):
    with tarfile.open(OLD_FOLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((tmp_path / "expected.json").read_text())
    server = Server(folder=tmp_path)
    try:
        server.start()
        api = Api(server)
        assert [template["id"] for template in api.ok("GET", "/v1/templates")] == [expected["template"]]
        assert {endpoint["id"] for endpoint in api.ok("GET", "/v1/endpoints")} == {expected["endpoint"], expected["other"]}
        keys = {made["id"]: made["owner"] for made in api.ok("GET", "/v1/apikeys")}
        assert keys == dict.fromkeys(["admin", *(made["id"] for made in expected["keys"].values())], "server")
        # Jobs of that time have run out by now, or have not: those that are there are the server's and no key's.
        endpoint = Endpoint(api, api.ok("GET", f"/v1/endpoints/{expected['endpoint']}"))
        old = {job["id"] for job in expected["jobs"].values()}
        for job in endpoint.ok("GET", "/requests?limit=100")["requests"]:
            assert job["id"] in old and (job["owner"], job["key"]) == ("server", None)
        website = Api(server, expected["keys"]["website"]["text"])
        new = Endpoint(website, endpoint.record).run()
        newest = endpoint.ok("GET", "/requests?limit=1")["requests"][0]
        assert (newest["id"], newest["key"]) == (new, expected["keys"]["website"]["id"])
    finally:
        server.close()
