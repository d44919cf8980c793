"""The management API: templates and endpoints."""

import pytest

from harness.client import unique
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
