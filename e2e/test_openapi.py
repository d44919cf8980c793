"""The API's document: valid, complete, readable by people, and usable to generate a client."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_schema_validator import OAS30Validator
from openapi_spec_validator import OpenAPIV30SpecValidator

from harness.client import HANDLERS, unique
from harness.wait import until

ROOT = Path(__file__).resolve().parents[1]
CONSOLE_TYPES = ROOT / "crates/console/types/api.d.ts"


@pytest.fixture(scope="module")
def document(api) -> dict:
    return api.ok("GET", "/v1/openapi.json", headers={"Authorization": None})


def operations(document: dict):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_the_document_is_valid(document):
    assert (document["openapi"], document["info"]["version"]) == ("3.0.3", "0.1.0")
    assert [str(error) for error in OpenAPIV30SpecValidator(document).iter_errors()] == []


def test_every_interface_is_in_it(document):
    assert {path.split("/")[1] for path in document["paths"]} == {"v1", "v2", "openai", "lb"}


def test_every_operation_says_what_it_does_and_how_it_is_refused(document):
    for name, operation in operations(document):
        assert operation["summary"] and operation["operationId"] and operation["tags"], name
        if operation.get("security") != []:
            # What a worker answers for itself can have any status: `default`.
            assert {"401", "503"} <= set(operation["responses"]) or "default" in operation["responses"], name
        if "{" in name:
            assert {"404", "default"} & set(operation["responses"]), name
        for status, response in operation["responses"].items():
            if "$ref" in response:
                response = document["components"]["responses"][response["$ref"].split("/")[-1]]
                assert "Error" in str(response["content"]), f"{name} {status}"
            assert "X-Request-ID" in response["headers"], f"{name} {status}"


def test_the_types_of_the_console_are_those_of_the_document(document, tmp_path):
    """With LONGSHORE_RECORD=1 they are written anew."""
    records, made = tmp_path / "records.json", tmp_path / "api.d.ts"
    records.write_text(json.dumps({**document, "paths": {}, "components": {"schemas": document["components"]["schemas"]}}))
    generator = ROOT / "e2e/api_types/node_modules/.bin/openapi-typescript"
    subprocess.run([generator, records, "--output", made], check=True, capture_output=True, timeout=120)
    if os.environ.get("LONGSHORE_RECORD"):
        CONSOLE_TYPES.write_bytes(made.read_bytes())
    assert CONSOLE_TYPES.read_bytes() == made.read_bytes(), "the document has changed; run this test with LONGSHORE_RECORD=1"


def test_every_example_is_of_its_schema(document):
    examples = 0
    for name, schema in document["components"]["schemas"].items():
        if "example" not in schema:
            continue
        validator = OAS30Validator({**schema, "components": document["components"]})
        assert [str(error) for error in validator.iter_errors(schema["example"])] == [], name
        examples += 1
    assert examples >= 15
    for name, operation in operations(document):
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            schema = content["application/json"]["schema"]["$ref"].split("/")[-1]
            assert "example" in document["components"]["schemas"][schema], name


def test_headers_are_described_where_they_are_sent(document):
    paths = document["paths"]
    assert "Link" in paths["/v1/endpoints"]["get"]["responses"]["200"]["headers"]
    assert "ETag" in paths["/v1/endpoints/{endpointId}"]["get"]["responses"]["200"]["headers"]
    assert {"RateLimit", "RateLimit-Policy"} <= set(paths["/v2/{endpointId}/run"]["post"]["responses"]["200"]["headers"])
    assert "Retry-After" in document["components"]["responses"]["TooManyRequests"]["headers"]


def test_every_path_of_the_document_exists(api, document):
    """A method that a path does not have is 405 where the path exists, and 404 where it does not."""
    for path in document["paths"]:
        made_up = path.replace("{", "").replace("}", "")
        if path.startswith("/lb/"):
            # Its worker takes every method, and this endpoint does not exist.
            answer = api.call("PUT", made_up)
            assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (404, "endpoint_not_found"), path
            continue
        assert api.call("PUT", made_up).status_code == 405, path


def test_the_page_needs_no_key_and_no_other_host(api):
    page = api.call("GET", "/v1/docs", headers={"Authorization": None})
    assert page.status_code == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "<script" not in page.text and "//cdn" not in page.text
    style = api.call("GET", "/v1/docs/style.css", headers={"Authorization": None})
    assert style.headers["Content-Type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in style.text and "url(" not in style.text


def test_the_page_shows_every_operation_with_a_command(api, document):
    page = api.call("GET", "/v1/docs").text
    for name, operation in operations(document):
        assert f'id="{operation["operationId"]}"' in page, name
    assert page.count("curl ") == sum(1 for _ in operations(document))


# --- A client that a generator made


@pytest.fixture(scope="module")
def generated(api, tmp_path_factory):
    """The package of a client, generated from the document."""
    folder = tmp_path_factory.mktemp("generated")
    package = f"longshore_generated_{folder.name.replace('-', '_')}"
    (folder / "openapi.json").write_bytes(api.call("GET", "/v1/openapi.json").content)
    # The generator knows bytes by this name only.
    (folder / "config.yml").write_text(
        "post_hooks: []\ncontent_type_overrides:\n  application/gzip: application/octet-stream\n"
        "  text/event-stream: text/plain\n  application/x-ndjson: text/plain\n"
    )
    command = [Path(sys.executable).parent / "openapi-python-client", "generate", "--path", folder / "openapi.json",
               "--output-path", folder / package, "--meta", "none", "--config", folder / "config.yml", "--fail-on-warning"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert run.returncode == 0, run.stdout + run.stderr
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{package}.{name}")
    sys.path.remove(str(folder))


def test_a_generated_client_does_real_work(api, generated):
    models = generated("models")
    client = generated("client").AuthenticatedClient(base_url=api.server.url, token=api.key, timeout=40)

    def call(name: str, *parts, **more):
        answer = generated(f"api.{name}").sync_detailed(*parts, client=client, **more)
        assert answer.status_code in (200, 204), answer
        return answer.parsed

    template = call("templates.create_template", body=models.TemplateCreateInput(
        name=unique("generated"), image_name="e2e", docker_start_cmd=[sys.executable, "-u", str(HANDLERS / "echo.py")],
    ))
    endpoint = call("endpoints.create_endpoint", body=models.EndpointCreateInput(
        template_id=template.id, name=unique("generated"), workers_max=1, idle_timeout=60,
    ))
    assert (endpoint.template_id, endpoint.workers_max, endpoint.scaler_value) == (template.id, 1, 4)

    request = models.JobRequest(input_=models.JobRequestInput.from_dict({"words": ["one", "two"]}))
    job = call("jobs.run", endpoint.id, body=request)

    def over():
        record = call("jobs.status", endpoint.id, job.id)
        assert record.status == "COMPLETED", record
        return record

    assert until(over, "the job is done", 40).output["echo"] == {"words": ["one", "two"]}
    assert call("jobs.run_sync", endpoint.id, body=request, wait=30000).status == "COMPLETED"
    assert call("jobs.health", endpoint.id).jobs.completed == 2

    changed = call("endpoints.update_endpoint", endpoint.id, body=models.EndpointUpdateInput(workers_max=2))
    assert changed.workers_max == 2
    paused = call("endpoints.update_endpoint", endpoint.id, body=models.EndpointUpdateInput(workers_max=0))
    assert (paused.paused_from.workers_min, paused.paused_from.workers_max) == (0, 2)
    assert endpoint.id in {each.id for each in call("endpoints.list_endpoints")}
    assert len(call("templates.list_templates", limit=1)) == 1

    refused = generated("api.templates.delete_template").sync_detailed(template.id, client=client)
    assert refused.status_code == 400 and endpoint.id in refused.parsed.error, refused
    call("endpoints.delete_endpoint", endpoint.id)
    call("templates.delete_template", template.id)
    gone = generated("api.endpoints.get_endpoint").sync_detailed(endpoint.id, client=client)
    assert gone.status_code == 404 and gone.parsed.code == "endpoint_not_found"
