"""Keys: made, limited, revoked; their use written down."""

from harness.client import Api, unique
from harness.server import QUICK
from harness.waiting import until


def make_key(api: Api, *scopes: dict, **fields) -> dict:
    """A new key: its record, with its text in `key`."""
    return api.ok("POST", "/v1/apikeys", json={"name": unique("key"), "scopes": list(scopes), **fields})


def jobs_of(endpoint) -> dict:
    return {"scope": "jobs", "endpointIds": [endpoint.id]}


def test_a_key_for_one_endpoint_works_there_and_nowhere_else(server, api):
    here, elsewhere = api.external(), api.external()
    key = Api(server, make_key(api, jobs_of(here))["key"])
    job = key.ok("POST", f"{here.mount}/run", json={"input": {}})["id"]
    assert key.ok("GET", f"{here.mount}/status/{job}")["status"] == "IN_QUEUE"
    assert key.call("POST", f"{elsewhere.mount}/run", json={"input": {}}).status_code == 401
    assert key.call("GET", "/v1/endpoints").status_code == 401
    assert key.call("POST", "/v1/apikeys", json={"name": "x", "scopes": [{"scope": "manage"}]}).status_code == 401


def test_a_revoked_key_is_refused_from_the_answer_on(server, api, endpoint):
    made = make_key(api, {"scope": "jobs"})
    key = Api(server, made["key"])
    for _ in range(50):
        assert key.call("GET", f"{endpoint.mount}/health").status_code == 200
        assert api.call("PATCH", f"/v1/apikeys/{made['id']}", json={"disabled": True}).status_code == 200
        assert key.call("GET", f"{endpoint.mount}/health").status_code == 401
        assert api.call("PATCH", f"/v1/apikeys/{made['id']}", json={"disabled": False}).status_code == 200
    assert api.call("DELETE", f"/v1/apikeys/{made['id']}").status_code == 204
    assert key.call("GET", f"{endpoint.mount}/health").status_code == 401
    assert api.call("GET", f"/v1/apikeys/{made['id']}").status_code == 404


def test_a_rate_of_a_keys_own_holds_over_all_of_its_requests(server, api, endpoint):
    key = Api(server, make_key(api, {"scope": "jobs"}, rateLimit=20)["key"])
    answers = [key.call("GET", f"{endpoint.mount}/health") for _ in range(25)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429] * 5
    refused = answers[-1]
    assert refused.headers["RateLimit-Policy"] == '"key";q=20;w=10'
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert api.call("GET", f"{endpoint.mount}/health").status_code == 200


def test_the_last_key_that_manages_stays(api):
    for call in (("DELETE", {}), ("PATCH", {"json": {"disabled": True}})):
        answer = api.call(call[0], "/v1/apikeys/admin", **call[1])
        assert answer.status_code == 400, answer.text
        assert "nobody could manage this server" in answer.json()["error"]


def test_the_use_of_a_key_outlives_the_server(fresh_server):
    server = fresh_server(config=QUICK + "key_use_interval_ms = 100\n")
    api = Api(server)
    used, idle, stopped = (make_key(api, {"scope": "read"}) for _ in range(3))
    Api(server, used["key"]).ok("GET", "/v1/endpoints")
    path = f"/v1/apikeys/{used['id']}"
    until(lambda: api.ok("GET", path).get("lastUsedAt"), "the use is seen", 10)
    # A use that is not written down yet is shown as of now.
    until(lambda: api.ok("GET", path)["lastUsedAt"] == api.ok("GET", path)["lastUsedAt"], "it is written down", 10)
    Api(server, stopped["key"]).ok("GET", "/v1/endpoints")
    server.terminate()
    server.start()
    shown = {key["id"]: key.get("lastUsedAt") for key in api.ok("GET", "/v1/apikeys")}
    assert shown[used["id"]] and shown[stopped["id"]] and shown[idle["id"]] is None, shown


def test_the_text_of_a_key_is_in_no_file_of_the_server(fresh_server):
    server = fresh_server(flags=("--log-level", "trace"))
    made = make_key(Api(server), {"scope": "jobs"})
    assert Api(server, made["key"]).call("GET", "/v2/none/health").status_code == 404
    server.terminate()
    secret = made["key"].rsplit("_", 1)[1].encode()
    for path in server.folder.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes(), path
