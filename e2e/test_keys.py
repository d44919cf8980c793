"""Keys: made, limited, revoked; their use written down."""

from harness.client import Api, unique
from harness.server import QUICK
from harness.wait import until


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
        assert "no key could manage this server" in answer.json()["error"]


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
    shown = {key["id"]: key for key in api.ok("GET", "/v1/apikeys")}
    assert all(shown[key["id"]]["lastUsedAt"] and shown[key["id"]]["lastUsedFrom"] == "127.0.0.1" for key in (used, stopped)), shown
    assert not {"lastUsedAt", "lastUsedFrom"} & set(shown[idle["id"]]), shown


def test_the_text_of_a_key_is_in_no_file_of_the_server(fresh_server):
    server = fresh_server(flags=("--log-level", "trace"))
    made = make_key(Api(server), {"scope": "jobs"})
    assert Api(server, made["key"]).call("GET", "/v2/none/health").status_code == 404
    server.terminate()
    secret = made["key"].rsplit("_", 1)[1].encode()
    for path in server.folder.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes(), path


def managed_by(api: Api, server, *endpoints) -> Api:
    """A client with a key that manages these endpoints and may look at everything."""
    scope = {"scope": "manage", "endpointIds": [endpoint.id for endpoint in endpoints]}
    return Api(server, make_key(api, scope, {"scope": "read"})["key"])


def test_a_key_for_one_endpoint_gets_at_nothing_of_another(server, api):
    secret = api.template("echo.py", env={"TOKEN": "of another tenant"})["id"]
    volume = api.ok("POST", "/v1/networkvolumes", json={"name": unique("volume"), "size": 1})["id"]
    auth = {"name": unique("auth"), "username": "u", "password": "p"}
    auth = api.ok("POST", "/v1/containerregistryauth", json=auth)["id"]
    api.ok("PATCH", f"/v1/templates/{secret}", json={"containerRegistryAuthId": auth})
    mine, theirs = api.external(), api.external(templateId=secret, networkVolumeId=volume)
    own = mine.record["templateId"]
    key = managed_by(api, server, mine)
    before = [api.ok("GET", path) for path in (f"/v1/endpoints/{mine.id}", f"/v1/templates/{own}")]
    for path, body in (
        (f"/v1/endpoints/{mine.id}", {"templateId": secret}),
        (f"/v1/endpoints/{mine.id}", {"networkVolumeId": volume}),
        (f"/v1/endpoints/{mine.id}", {"networkVolumeIds": [volume]}),
        (f"/v1/endpoints/{mine.id}", {"templateId": "nosuchtemplate"}),
        (f"/v1/templates/{own}", {"containerRegistryAuthId": auth}),
        (f"/v1/templates/{own}", {"endpoints": "*"}),
        (f"/v1/templates/{secret}", {"readme": "mine"}),
    ):
        for method, suffix in (("PATCH", ""), ("POST", "/update")):
            answer = key.call(method, path + suffix, json=body)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), (body, answer.text)
    for mutation, fields in (
        ("saveEndpoint", f'id: "{mine.id}", templateId: "{secret}"'),
        ("saveEndpoint", f'id: "{mine.id}", networkVolumeId: "{volume}"'),
        ("updateEndpointTemplate", f'endpointId: "{mine.id}", templateId: "{secret}"'),
        ("saveTemplate", f'id: "{own}", containerRegistryAuthId: "{auth}"'),
    ):
        query = f"mutation {{ {mutation}(input: {{ {fields} }}) {{ id }} }}"
        assert key.call("POST", "/graphql", json={"query": query}).status_code == 401, query
    assert [api.ok("GET", path) for path in (f"/v1/endpoints/{mine.id}", f"/v1/templates/{own}")] == before
    # What is meant for it, it may have.
    for path in (f"/v1/templates/{secret}", f"/v1/networkvolumes/{volume}", f"/v1/containerregistryauth/{auth}"):
        assert api.ok("PATCH", path, json={"endpoints": [mine.id]})["endpoints"] == [mine.id]
    key.ok("PATCH", f"/v1/templates/{own}", json={"containerRegistryAuthId": auth})
    key.ok("PATCH", f"/v1/endpoints/{mine.id}", json={"templateId": secret, "networkVolumeId": volume})
    assert key.call("PATCH", f"/v1/templates/{secret}", json={"readme": "mine"}).status_code == 401, theirs.id
    # And it keeps what it has after the resource was limited to other endpoints.
    for path in (f"/v1/templates/{secret}", f"/v1/networkvolumes/{volume}"):
        api.ok("PATCH", path, json={"endpoints": []})
    key.ok("PATCH", f"/v1/endpoints/{mine.id}", json={"templateId": secret, "networkVolumeIds": [volume]})
