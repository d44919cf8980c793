"""The management API: templates and endpoints."""

from urllib.parse import quote

import pytest
import requests

from harness.client import unique
from harness.fake_worker import FakeWorker
from test_job_interface import assert_error


def test_endpoint_defaults(api):
    template = api.template()
    made = api.ok("POST", "/v1/endpoints", json={"templateId": template["id"], "provider": "external"})
    expected = {
        "templateId": template["id"], "workersMin": 0, "workersMax": 3, "idleTimeout": 5, "scalerType": "QUEUE_DELAY",
        "scalerValue": 4, "gpuCount": 1, "executionTimeoutMs": 600000, "flashboot": True, "maxRetries": 2,
        "retryOn": ["workerLost"], "resultRetentionMs": 1800000, "syncResultRetentionMs": 60000, "maxConcurrency": 1,
        "version": 1,
    }
    assert {name: made.get(name) for name in expected} == expected
    assert len(made["id"]) == 14 and made["id"].isalnum() and made["id"].islower()
    assert made["createdAt"] and "no" not in made and "deleting" not in made
    assert api.ok("GET", f"/v1/endpoints/{made['id']}") == made
    assert made in api.ok("GET", "/v1/endpoints"), "lists are bare arrays"


def test_inline_template(api):
    body = {"name": unique("e"), "provider": "external", "template": {"name": unique("t"), "imageName": "i"}}
    made = api.ok("POST", "/v1/endpoints", json=body)
    assert api.ok("GET", f"/v1/templates/{made['templateId']}")["name"] == body["template"]["name"]


@pytest.mark.parametrize("method, suffix", [("PATCH", ""), ("POST", "/update")])
def test_update_changes_only_what_is_sent(api, method, suffix):
    endpoint = api.external(workersMax=2, idleTimeout=9)
    changed = api.ok(method, f"/v1/endpoints/{endpoint.id}{suffix}", json={"workersMax": 5})
    assert changed == {**endpoint.record, "workersMax": 5}
    template = api.template(env={"A": "1"})
    renamed = unique("renamed")
    changed = api.ok(method, f"/v1/templates/{template['id']}{suffix}", json={"name": renamed})
    assert changed == {**template, "name": renamed}


def test_delete_is_204_and_then_404(api):
    endpoint = api.external()
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    assert_error(api.call("GET", f"/v1/endpoints/{endpoint.id}"), 404)
    template = api.template()
    assert api.call("DELETE", f"/v1/templates/{template['id']}").status_code == 204
    assert_error(api.call("GET", f"/v1/templates/{template['id']}"), 404)


def test_template_in_use_cannot_be_deleted(api):
    endpoint = api.external()
    error = assert_error(api.call("DELETE", f"/v1/templates/{endpoint.record['templateId']}"), 400)
    assert endpoint.id in error["error"] or endpoint.record["name"] in error["error"]


def test_a_template_change_that_matters_bumps_the_version(api):
    endpoint = api.external()
    template = endpoint.record["templateId"]
    api.ok("PATCH", f"/v1/templates/{template}", json={"readme": "about"})
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == 1
    api.ok("PATCH", f"/v1/templates/{template}", json={"env": {"A": "2"}})
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == 2


def test_environment_values_are_never_returned(api):
    made = api.template(env={"TOKEN": "hidden-value"})
    endpoint = api.external(templateId=made["id"])
    for path in (f"/v1/templates/{made['id']}", "/v1/templates", "/v1/endpoints?includeTemplate=true",
                 f"/v1/endpoints/{endpoint.id}?includeTemplate=true&includeWorkers=true"):
        text = api.call("GET", path).text
        assert "hidden-value" not in text and "TOKEN" in text, path


@pytest.mark.parametrize("body, says", [
    ({}, "templateId"), ({"templateId": "doesnotexist00"}, "template"), ({"worksMax": 1}, "workersMax"),
    ({"workersMin": -1}, "workersMin"), ({"workersMax": "many"}, "workersMax"), ({"idleTimeout": 0}, "idleTimeout"),
    ({"idleTimeout": 3601}, "idleTimeout"), ({"slug": "Not A Slug"}, "slug"), ({"scalerType": "MAGIC"}, "scalerType"),
    ({"executionTimeoutMs": 1}, "executionTimeoutMs"), ({"resultRetentionMs": 2_592_000_001}, "resultRetentionMs"),
    ({"name": "n" * 192}, "name"), ({"provider": "abacus"}, "provider"),
])
def test_bad_endpoints_are_400_and_say_which_field(api, body, says):
    if body and "templateId" not in body:
        body = {"templateId": api.template()["id"], **body}
    before = len(api.ok("GET", "/v1/endpoints"))
    assert says in assert_error(api.call("POST", "/v1/endpoints", json=body), 400)["error"]
    assert len(api.ok("GET", "/v1/endpoints")) == before


def test_slugs_and_template_names_are_unique(api):
    slug = unique("slug")
    api.external(slug=slug)
    template = api.template()
    body = {"templateId": template["id"], "slug": slug, "provider": "external"}
    assert slug in assert_error(api.call("POST", "/v1/endpoints", json=body), 400)["error"]
    body = {"name": template["name"], "imageName": "i"}
    assert template["name"] in assert_error(api.call("POST", "/v1/templates", json=body), 400)["error"]


@pytest.mark.parametrize("body", ["", "[]", "{", '{"imageName": "x"}', '{"name": 5, "imageName": "x"}'])
def test_bad_templates_are_400(api, body):
    assert_error(api.call("POST", "/v1/templates", data=body), 400)


@pytest.mark.parametrize("method, path", [
    ("GET", "/v1/endpoints"), ("POST", "/v1/endpoints"), ("GET", "/v1/endpoints/x"), ("PATCH", "/v1/endpoints/x"),
    ("DELETE", "/v1/endpoints/x"), ("GET", "/v1/templates"), ("POST", "/v1/templates"), ("DELETE", "/v1/templates/x"),
    ("POST", "/v1/endpoints/x/worker-token"),
])
@pytest.mark.parametrize("key", [None, "Bearer wrong"])
def test_without_a_key_is_401(api, method, path, key):
    assert_error(api.call(method, path, json={}, headers={"Authorization": key}), 401)


@pytest.mark.parametrize("slug", ["Qwen2.5-0.5B_Instruct", "Org/Model", "a/B.c/d_e-f"])
def test_a_slug_is_what_model_identifiers_are(server, api, slug):
    slug = f"{slug}-{unique('s')}"
    endpoint = api.external(slug=slug, models=["m"])
    escaped = quote(slug, safe="")
    assert api.ok("GET", f"/v1/endpoints/{escaped}")["id"] == endpoint.id
    job = api.ok("POST", f"/v2/{escaped}/run", json={"input": {}})["id"]
    worker = FakeWorker(endpoint)
    taken = requests.get(
        f"{server.url}/v2/{escaped}/job-take/{worker.id}", headers={"Authorization": worker.token}, timeout=60)
    assert taken.json()["id"] == job
    done = f"{server.url}/v2/{escaped}/job-done/{worker.id}/{job}"
    assert requests.post(done, headers={"Authorization": worker.token}, json={"output": 7}, timeout=60).status_code == 200
    for mount in ("/v2", "/sdk/v2"):
        assert api.ok("GET", f"{mount}/{escaped}/status/{job}")["output"] == 7
        assert api.ok("POST", f"{mount}/{escaped}/runsync?wait=1000", json={"input": {}})["status"] == "IN_QUEUE"
    assert api.ok("GET", f"/v2/{escaped}/openai/v1/models")["data"][0]["id"] == "m"
    assert api.call("GET", f"/v2/{escaped.swapcase()}/health").status_code == 404, "matched exactly"
    # Unique regardless of case, and different from all ids.
    for other in (slug, slug.upper(), slug.lower(), endpoint.id, endpoint.id.upper()):
        body = {"templateId": endpoint.record["templateId"], "provider": "external", "slug": other}
        assert "is taken" in assert_error(api.call("POST", "/v1/endpoints", json=body), 400)["error"]


def test_bad_and_reserved_slugs_are_400_at_create_and_rename(api):
    endpoint = api.external()
    reserved = ("account billing catalog clusters global-volumes network-volumes openapi.json pods registries serverless "
                "templates user v2 Serverless").split()
    bad = ("a", "-a", ".a", "a//b", "/a", "a/", "a/../b", "a b", "a%2Fb", "ü-b", "a" * 129)
    for slug, says in [(slug, "reserved for the management API") for slug in reserved] + [(slug, "of the form") for slug in bad]:
        body = {"templateId": endpoint.record["templateId"], "provider": "external", "slug": slug}
        for answer in (
            api.call("POST", "/v1/endpoints", json=body),
            api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"slug": slug}),
        ):
            error = assert_error(answer, 400)["error"]
            assert "`slug`" in error and says in error, error
        query = "mutation M($in: EndpointInput!) { saveEndpoint(input: $in) { id } }"
        sent = {"query": query, "variables": {"in": {"id": endpoint.id, "slug": slug}}}
        assert says in api.ok("POST", "/graphql", json=sent)["errors"][0]["message"]
    assert "slug" not in api.ok("GET", f"/v1/endpoints/{endpoint.id}")


@pytest.mark.parametrize("field, bad, known", [
    ("category", "INTEL", '"NVIDIA", "AMD", "CPU"'),
])
def test_unknown_values_of_a_templates_enums_are_400(api, field, bad, known):
    error = assert_error(api.call("POST", "/v1/templates", json={"name": unique("t"), field: bad}), 400)["error"]
    assert f"`{field}`" in error and bad in error and known in error, error


@pytest.mark.parametrize("field, bad, known", [
    ("computeType", "TPU", '"GPU", "CPU"'),
    ("scalerType", "MAGIC", '"QUEUE_DELAY", "REQUEST_COUNT"'),
    ("minCudaVersion", "twelve", "[0-9]"),
    ("allowedCudaVersions", ["12.8", "12"], "[0-9]"),
])
def test_unknown_values_of_an_endpoints_enums_are_400(api, field, bad, known):
    endpoint = api.external()
    body = {"templateId": endpoint.record["templateId"], "provider": "external", field: bad}
    for answer in (
        api.call("POST", "/v1/endpoints", json=body),
        api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={field: bad}),
        api.call("POST", f"/v1/endpoints/{endpoint.id}/update", json={field: bad}),
    ):
        error = assert_error(answer, 400)["error"]
        shown = bad if isinstance(bad, str) else bad[-1]
        assert f"`{field}`" in error and shown in error and known in error, error


def test_open_lists_take_what_the_owner_has(api):
    fields = {"gpuTypeIds": ["My GPU"], "dataCenterIds": ["cellar"], "cpuFlavorIds": ["mine"],
              "allowedCudaVersions": ["14.7", "11.0"], "minCudaVersion": "14.0"}
    record = api.external(**fields).record
    assert {name: record[name] for name in fields} == fields


@pytest.mark.parametrize("path, name, known", [
    ("/v1/billing/endpoints", "bucketSize", "hour, day, week, month, year"),
    ("/v1/billing/endpoints", "grouping", "endpointId, podId, gpuTypeId"),
    ("/v1/pods", "computeType", "GPU, CPU"),
    ("/v1/pods", "desiredStatus", "RUNNING, EXITED, TERMINATED"),
])
def test_unknown_values_of_a_querys_enums_are_400(api, path, name, known):
    error = assert_error(api.call("GET", f"{path}?{name}=odd"), 400)["error"]
    assert f"`{name}`" in error and "odd" in error and known in error, error
    assert api.call("GET", f"{path}?{name}={known.split(', ')[0]}").status_code == 200


@pytest.mark.parametrize("route", ["run", "runsync?wait=1000"])
def test_fields_of_an_s3_config_are_strings(api, route):
    endpoint = api.external()
    for field in ("accessId", "accessSecret", "bucketName", "endpointUrl"):
        for bad in (5, True, ["x"], {"x": 1}):
            body = {"input": {}, "s3Config": {"accessId": "i", "bucketName": "b", field: bad}}
            error = assert_error(endpoint.call("POST", f"/{route}", json=body), 400)["error"]
            assert f"`s3Config.{field}` must be a string" in error, error
    config = {"accessId": "i", "accessSecret": None, "bucketName": "b", "region": 1}
    assert endpoint.ok("POST", f"/{route}", json={"input": {}, "s3Config": config})["status"] == "IN_QUEUE"
    assert FakeWorker(endpoint).take()["s3Config"] == config
