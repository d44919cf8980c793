"""What every resource of the management API has in common, and the small ones: container registry auths, volumes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.client import Api, unique
from harness.wait import until
from test_job_interface import assert_error

AUTHS, VOLUMES, TEMPLATES, ENDPOINTS, KEYS = (
    f"/v1/{name}" for name in ("containerregistryauth", "networkvolumes", "templates", "endpoints", "apikeys")
)


@pytest.fixture
def auth(api) -> dict:
    body = {"name": unique("auth"), "username": "ada-the-user", "password": "hidden-password"}
    return api.ok("POST", AUTHS, json=body)


@pytest.fixture
def volume(api) -> dict:
    return api.ok("POST", VOLUMES, json={"name": unique("volume"), "size": 5, "dataCenterId": "cellar"})


def fields(record: dict, *names: str) -> dict:
    return {name: record.get(name) for name in names}


# --- container registry auths


def test_an_auths_password_is_taken_and_never_shown(api, auth):
    assert set(auth) == {"id", "name", "endpoints", "createdAt"}
    assert api.ok("GET", f"{AUTHS}/{auth['id']}") == auth
    assert auth in api.ok("GET", AUTHS)
    for path in (AUTHS, f"{AUTHS}/{auth['id']}"):
        text = api.call("GET", path).text
        assert "hidden-password" not in text and "ada-the-user" not in text
    assert "hidden-password" not in api.server.log()


def test_an_auth_in_use_cannot_be_deleted(api, auth):
    template = api.template(containerRegistryAuthId=auth["id"])
    error = assert_error(api.call("DELETE", f"{AUTHS}/{auth['id']}"), 400)
    assert template["id"] in error["error"]
    api.ok("PATCH", f"{TEMPLATES}/{template['id']}", json={"containerRegistryAuthId": None})
    assert api.call("DELETE", f"{AUTHS}/{auth['id']}").status_code == 204
    assert_error(api.call("GET", f"{AUTHS}/{auth['id']}"), 404)
    body = {"containerRegistryAuthId": auth["id"]}
    error = assert_error(api.call("PATCH", f"{TEMPLATES}/{template['id']}", json=body), 400)
    assert auth["id"] in error["error"]


@pytest.mark.parametrize("body, says", [
    ({"username": "u", "password": "p"}, "`name` is required"),
    ({"name": "n", "password": "p"}, "`username` is required"),
    ({"name": "n", "username": "u"}, "`password` is required"),
    ({"name": " ", "username": "u", "password": "p"}, "`name` must not be blank"),
    ({"name": "n", "username": "u", "passwort": "sesame"}, "the nearest known field is `password`"),
    ({"name": "n", "username": "u", "password": ["sesame"]}, "`password` must be a string"),
    ({"name": "n", "username": "u", "password": "p", "id": "x"}, "`id` is set by the server"),
])
def test_a_bad_auth_is_400_and_shows_no_password(api, body, says):
    before = api.ok("GET", AUTHS)
    error = assert_error(api.call("POST", AUTHS, json=body), 400)["error"]
    assert says in error and "sesame" not in error
    assert api.ok("GET", AUTHS) == before


# --- network volumes


@pytest.mark.parametrize("method, suffix", [("PATCH", ""), ("POST", "/update")])
def test_a_volume_can_be_read_changed_and_deleted(api, volume, method, suffix):
    path = f"{VOLUMES}/{volume['id']}"
    assert fields(volume, "size", "dataCenterId") == {"size": 5, "dataCenterId": "cellar"}
    measured = lambda: (shown := api.ok("GET", path))["diskBytes"] == 0 and shown
    volume = until(measured, "the volume is measured", 10)
    assert api.ok("GET", path) == volume and volume in api.ok("GET", VOLUMES)
    assert api.ok(method, path + suffix, json={"size": 4000}) == {**volume, "size": 4000}
    assert "dataCenterId" in assert_error(api.call(method, path + suffix, json={"dataCenterId": "x"}), 400)["error"]
    assert api.call("DELETE", path).status_code == 204
    assert_error(api.call("GET", path), 404)
    assert_error(api.call(method, path + suffix, json={"size": 1}), 404)


@pytest.mark.parametrize("body, says", [
    ({"size": 1}, "`name` is required"), ({"name": "n"}, "`size` is required"),
    ({"name": "n", "size": 4001}, "`size` is 4001; it must be an integer from 0 to 4000"),
    ({"name": "n", "size": -1}, "`size` is -1"), ({"name": "n", "size": "1"}, "`size`"),
    ({"name": "n", "size": 1, "dataCentreId": "x"}, "the nearest known field is `dataCenterId`"),
])
def test_a_bad_volume_is_400(api, body, says):
    assert says in assert_error(api.call("POST", VOLUMES, json=body), 400)["error"]


def test_workers_of_several_endpoints_share_a_volume(api, volume, tmp_path):
    handler = tmp_path / "handler.py"
    handler.write_text(
        "import os, pathlib, runpod\n"
        "def handler(job):\n"
        "    place = pathlib.Path(os.environ['LONGSHORE_VOLUME_PATH']) / 'note'\n"
        "    if 'note' in job['input']: place.write_text(job['input']['note'])\n"
        "    return [place.read_text(), str(place), os.environ['RUNPOD_VOLUME_ID'], os.environ['LONGSHORE_VOLUME_PATHS']]\n"
        "runpod.serverless.start({'handler': handler})\n"
    )
    writer = api.endpoint(str(handler), networkVolumeId=volume["id"])
    reader = api.endpoint(str(handler), networkVolumeIds=[volume["id"], volume["id"]])
    written = writer.runsync({"note": "shared"})
    assert written["status"] == "COMPLETED", written
    text, place, known_as, paths = written["output"]
    directory = Path(place).parent
    assert (text, known_as, paths) == ("shared", volume["id"], str(directory))
    assert directory.is_relative_to(api.server.data), "it is in the data directory"
    assert reader.runsync()["output"][0] == "shared"

    error = assert_error(api.call("DELETE", f"{VOLUMES}/{volume['id']}"), 400)
    assert writer.id in error["error"] or reader.id in error["error"]
    for endpoint in (writer, reader):
        assert api.call("DELETE", f"{ENDPOINTS}/{endpoint.id}").status_code == 204
    until(lambda: not writer.workers() and not reader.workers(), "the workers are gone")
    assert (directory / "note").exists(), "a volume outlives its workers"
    assert api.call("DELETE", f"{VOLUMES}/{volume['id']}").status_code == 204
    assert not directory.exists()


def test_an_endpoint_cannot_name_a_volume_that_is_not_there(api, volume):
    body = {"templateId": api.template()["id"], "provider": "external", "networkVolumeId": "nosuchvolume"}
    assert "nosuchvolume" in assert_error(api.call("POST", ENDPOINTS, json=body), 400)["error"]
    endpoint = api.external()
    error = assert_error(api.call("PATCH", f"{ENDPOINTS}/{endpoint.id}", json={"networkVolumeIds": ["gone"]}), 400)
    assert "gone" in error["error"]
    changed = endpoint.patch(networkVolumeIds=[volume["id"]])
    assert changed["version"] == endpoint.record["version"] + 1, "workers are replaced to see the volume"


def test_small_records_survive_a_kill(fresh_server):
    server = fresh_server()
    api = Api(server)
    made = [api.ok("POST", VOLUMES, json={"name": f"v{n}", "size": n}) for n in range(3)]
    auth = api.ok("POST", AUTHS, json={"name": "a", "username": "u", "password": "p"})
    api.call("DELETE", f"{VOLUMES}/{made[1]['id']}")
    tag = api.call("GET", f"{VOLUMES}/{made[0]['id']}").headers["ETag"]
    server.kill()
    server.start()
    assert api.ok("GET", VOLUMES) == [made[0], made[2]]
    assert api.ok("GET", AUTHS) == [auth]
    assert api.call("GET", f"{VOLUMES}/{made[0]['id']}").headers["ETag"] == tag


def test_a_deletion_that_a_kill_cut_short_is_ended_or_taken_back(fresh_server):
    server = fresh_server()
    api = Api(server)
    kept, gone = (api.ok("POST", VOLUMES, json={"name": unique("volume"), "size": 1}) for _ in range(2))
    folder = server.data / "volumes"
    for record in (kept, gone):
        (folder / record["id"] / "weights").write_text(record["id"])
    assert api.call("DELETE", f"{VOLUMES}/{gone['id']}").status_code == 204
    server.kill()
    # As it is between the steps of a deletion: the one is not decided, the other is, and not carried out.
    (folder / kept["id"]).rename(folder / f"{kept['id']}.deleted")
    (folder / f"{gone['id']}.deleted").mkdir()
    (folder / f"{gone['id']}.deleted" / "weights").write_text("old")
    server.start()
    until(lambda: [path.name for path in folder.iterdir()] == [kept["id"]], "the folder has the one volume")
    assert api.ok("GET", VOLUMES) == [kept]
    assert (folder / kept["id"] / "weights").read_text() == kept["id"]


# --- lists


@pytest.mark.parametrize("path, body", [
    (TEMPLATES, {"imageName": "i"}), (AUTHS, {"username": "u", "password": "p"}), (VOLUMES, {"size": 1}),
    (ENDPOINTS, {"provider": "external"}),
])
def test_lists_come_in_pages_that_cover_everything_once(api, path, body):
    if path == ENDPOINTS:
        body = {**body, "templateId": api.template()["id"]}
    made = {api.ok("POST", path, json={"name": unique("paged"), **body})["id"] for _ in range(5)}
    seen, next_page = [], f"{path}?limit=2"
    while next_page:
        answer = api.call("GET", next_page)
        assert answer.status_code == 200 and len(answer.json()) <= 2
        seen += [record["id"] for record in answer.json()]
        next_page = answer.links.get("next", {}).get("url")
    assert len(seen) == len(set(seen)) and made <= set(seen)
    assert "Link" not in api.call("GET", path).headers, "without a limit there is one page"


def test_a_deleted_record_does_not_break_the_next_page(api):
    made = [api.ok("POST", VOLUMES, json={"name": unique("paged"), "size": 1}) for _ in range(3)]
    everything = [record["id"] for record in api.ok("GET", VOLUMES)]
    answer = api.call("GET", f"{VOLUMES}?limit={everything.index(made[0]['id']) + 1}")
    assert answer.json()[-1]["id"] == made[0]["id"]
    assert api.call("DELETE", f"{VOLUMES}/{made[0]['id']}").status_code == 204
    rest = api.ok("GET", answer.links["next"]["url"].replace("limit=", "limit=100&was="))
    assert [record["id"] for record in rest][:2] == [made[1]["id"], made[2]["id"]]


def test_the_next_page_keeps_what_else_was_asked_for(api):
    for _ in range(2):
        api.external()
    answer = api.call("GET", f"{ENDPOINTS}?includeTemplate=true&limit=1")
    again = api.call("GET", answer.links["next"]["url"])
    assert "template" in again.json()[0]


@pytest.mark.parametrize("path", [TEMPLATES, ENDPOINTS, AUTHS, VOLUMES])
@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "cursor=x", "cursor=1", "cursor="])
def test_a_bad_page_is_400_and_names_the_parameter(api, path, query):
    assert query.split("=")[0] in assert_error(api.call("GET", f"{path}?{query}"), 400)["error"]


# --- ETag, If-Match, If-None-Match


@pytest.fixture(params=["endpoint", "template", "volume", "auth", "key"])
def resource(api, request) -> str:
    """The path of a fresh resource."""
    if request.param == "endpoint":
        return f"{ENDPOINTS}/{api.external().id}"
    if request.param == "template":
        return f"{TEMPLATES}/{api.template()['id']}"
    if request.param == "volume":
        path = f"{VOLUMES}/{request.getfixturevalue('volume')['id']}"
        until(lambda: api.ok("GET", path)["diskBytes"] is not None, "the volume is measured", 10)
        return path
    if request.param == "key":
        body = {"name": unique("key"), "scopes": [{"scope": "jobs"}]}
        return f"{KEYS}/{api.ok('POST', KEYS, json=body)['id']}"
    return f"{AUTHS}/{request.getfixturevalue('auth')['id']}"


def test_a_tag_says_whether_a_resource_changed(api, resource):
    first = api.call("GET", resource)
    tag = first.headers["ETag"]
    assert tag.startswith('"') and tag.endswith('"')
    for known in (tag, f'"other", {tag}', "*", f"W/{tag}"):
        again = api.call("GET", resource, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag), known
    for other in ('"other"', tag.strip('"'), ""):
        assert api.call("GET", resource, headers={"If-None-Match": other}).json() == first.json(), other
    if not resource.startswith(AUTHS):
        renamed = api.call("PATCH", resource, json={"name": unique("renamed")})
        assert renamed.headers["ETag"] != tag
        assert api.call("GET", resource, headers={"If-None-Match": tag}).status_code == 200
        assert api.call("GET", resource).headers["ETag"] == renamed.headers["ETag"]


@pytest.mark.parametrize("method, suffix", [("PATCH", ""), ("POST", "/update"), ("DELETE", "")])
def test_a_change_of_what_was_not_seen_is_refused(api, resource, method, suffix):
    if resource.startswith(AUTHS) and method != "DELETE":
        method, suffix = "DELETE", ""  # nothing else changes it
    before = api.call("GET", resource)
    tag = before.headers["ETag"]
    body = {"name": unique("renamed")}
    for other in ('"other"', f"W/{tag}", tag.strip('"'), "nonsense", ""):
        answer = api.call(method, resource + suffix, json=body, headers={"If-Match": other})
        assert assert_error(answer, 412)["code"] == "precondition_failed", other
        after = api.call("GET", resource)
        assert (after.json(), after.headers["ETag"]) == (before.json(), tag), "nothing was changed"
    answer = api.call(method, resource + suffix, json=body, headers={"If-Match": f'"other", {tag}'})
    assert answer.status_code in (200, 204), answer.text


def test_of_two_changes_of_the_same_record_one_is_refused(api):
    path = f"{TEMPLATES}/{api.template()['id']}"
    tag = api.call("GET", path).headers["ETag"]
    first = api.call("PATCH", path, json={"readme": "first"}, headers={"If-Match": tag})
    assert first.status_code == 200
    second = api.call("PATCH", path, json={"readme": "second"}, headers={"If-Match": tag})
    assert_error(second, 412)
    assert api.ok("GET", path)["readme"] == "first"
    assert api.call("PATCH", path, json={"readme": "any"}, headers={"If-Match": "*"}).status_code == 200


def test_of_many_concurrent_changes_exactly_one_is_made(api, server):
    path = f"{VOLUMES}/{api.ok('POST', VOLUMES, json={'name': unique('raced'), 'size': 0})['id']}"
    tag = api.call("GET", path).headers["ETag"]

    def change(size: int) -> int:
        return Api(server).call("PATCH", path, json={"size": size}, headers={"If-Match": tag}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(change, range(1, 17)))
    assert sorted(statuses) == [200] + [412] * 15
    assert api.ok("GET", path)["size"] == statuses.index(200) + 1


def test_a_secret_that_changes_changes_the_tag(api):
    template = api.template(env={"TOKEN": "one"})
    path = f"{TEMPLATES}/{template['id']}"
    tag = api.call("GET", path).headers["ETag"]
    api.ok("PATCH", path, json={"env": {"TOKEN": "two"}})
    assert api.call("GET", path).headers["ETag"] != tag


def test_a_tag_of_more_than_the_record_is_good_for_a_change(api):
    path = f"{ENDPOINTS}/{api.external().id}"
    plain, more = (api.call("GET", path + query).headers["ETag"] for query in ("", "?includeTemplate=true"))
    assert plain != more
    again = api.call("GET", f"{path}?includeTemplate=true", headers={"If-None-Match": more})
    assert again.status_code == 304
    assert api.call("PATCH", path, json={"workersMax": 5}, headers={"If-Match": more}).status_code == 200


def test_a_drain_that_is_not_expected_leaves_the_endpoint_at_work(api):
    endpoint = api.external()
    tag = api.call("GET", f"{ENDPOINTS}/{endpoint.id}").headers["ETag"]
    endpoint.patch(workersMax=7)
    path = f"{ENDPOINTS}/{endpoint.id}?drain=true"
    assert_error(api.call("DELETE", path, headers={"If-Match": tag}), 412)
    assert endpoint.run()
