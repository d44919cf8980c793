"""The management API against what clients of such an API already send and expect.

`contract/management-v1.json` holds it: every operation, field, type, default and limit. Ours takes and returns at least
that, with the same meaning; where it does not, `EXCEPTIONS` says so and why.
"""

import json
from pathlib import Path

import pytest

from harness.client import unique
from test_job_interface import assert_error

CONTRACT = json.loads((Path(__file__).parent / "contract/management-v1.json").read_text())
OPERATIONS, SCHEMAS = CONTRACT["operations"], CONTRACT["schemas"]

EXCEPTIONS = {
    "stock": "Kinds of GPUs and CPUs, CUDA versions and data centers are the owner's: lists of them take any text (CUDA versions any `N.N`), and "
    "`dataCenterIds` starts empty.",
    "update defaults": "A change has no defaults: only what is sent changes.",
    "ports default": "`ports` is a list, so its default is a list, too, and not a text with a comma.",
    "required": "Less is required: `imageName`, because processes have no image, `templateId`, because a template can come "
    "with its endpoint, and `dataCenterId`, because most owners have one.",
    "bounds": "Numbers and texts without a bound have one here, far above the values of real clients, so that no value does harm.",
    "env": "A value may also be a reference to a secret, besides the text that clients know.",
    "templates shown": "Lists always show every template; the parameters that ask for more are taken and change nothing.",
}


@pytest.fixture(scope="module")
def document(api) -> dict:
    return api.ok("GET", "/v1/openapi.json", headers={"Authorization": None})


def operation_of(document: dict, operation: str) -> dict:
    method, path = operation.split(" ")
    return document["paths"][path][method.lower()]


def json_schema(content: dict) -> dict:
    return content["content"]["application/json"]["schema"]


def fits(document: dict, expected: str, schema: dict) -> bool:
    """Whether a schema is of the expected type, or of one within it."""
    if expected.startswith("list of "):
        return schema.get("type") == "array" and fits(document, expected.removeprefix("list of "), schema["items"])
    if expected == "object of string":
        values = schema.get("additionalProperties", {})
        return schema.get("type") == "object" and {"type": "string"} in (values, *values.get("oneOf", ()))
    if expected[0].isupper():
        return schema.get("$ref") == f"#/components/schemas/{expected}" or (expected == "Pod" and schema.get("type") == "object")
    kind, _, form = expected.partition(" ")
    if form and schema.get("format") != form:
        return False
    return schema.get("type") == kind or (kind == "number" and schema.get("type") == "integer")


def check_field(document: dict, where: str, expected: dict, schema: dict, is_update: bool = False) -> None:
    assert fits(document, expected["type"], schema), f"{where} is {schema}, not {expected['type']}"
    for bound in ("minimum", "maximum", "maxLength"):
        if bound in expected:
            assert schema.get(bound) == expected[bound], f"{where}: {bound} is {schema.get(bound)}"
    if "enum" in expected:
        words = schema.get("enum") or schema["items"]["enum"]
        assert set(expected["enum"]) <= set(words), f"{where} lacks {set(expected['enum']) - set(words)}"
    if "stock" in expected:
        assert "enum" not in schema and "enum" not in schema.get("items", {}), f"{where}: see EXCEPTIONS"
    elif "default" in expected and not is_update:
        default = expected["default"]
        if where.endswith(".ports"):
            default = default.split(",")
        assert schema.get("default") == default, f"{where}: the default is {schema.get('default')}"


def test_the_exceptions_are_few():
    assert len(EXCEPTIONS) <= 10 and all(EXCEPTIONS.values())


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_there(document, operation):
    expected, ours = OPERATIONS[operation], operation_of(document, operation)
    answer = ours["responses"][str(expected["status"])]
    query = {each["name"]: each for each in ours.get("parameters", []) if each["in"] == "query"}
    for name, facts in expected.get("query", {}).items():
        assert name in query, f"{operation} lacks ?{name}"
        assert not query[name].get("required")
        check_field(document, f"{operation} ?{name}", facts, query[name]["schema"])
    if "takes" in expected:
        assert json_schema(ours["requestBody"]) == {"$ref": f"#/components/schemas/{expected['takes']}"}
    gives = expected.get("gives", "")
    if gives.startswith("list of "):
        assert json_schema(answer)["items"] == {"$ref": f"#/components/schemas/{gives.removeprefix('list of ')}"}
    elif gives and gives != "object":
        assert json_schema(answer) == {"$ref": f"#/components/schemas/{gives}"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_is_there(document, name):
    ours = document["components"]["schemas"][name]
    for field, expected in SCHEMAS[name]["fields"].items():
        assert field in ours["properties"], f"{name} lacks {field}"
        is_update, is_read = name.endswith("UpdateInput"), not name.endswith("Input")
        check_field(document, f"{name}.{field}", expected, ours["properties"][field], is_update or is_read)
    if name.endswith("Input"):
        assert set(ours.get("required", [])) <= set(SCHEMAS[name]["required"]), "more is required than clients send"


# --- The document says so; now the server.


def bodies(api) -> dict[str, tuple[str, dict]]:
    """The path of each kind of thing that can be made, and the least that it can be made from."""
    return {
        "Endpoint": ("/v1/endpoints", {"templateId": api.template()["id"]}),
        "Template": ("/v1/templates", {"name": unique("contract"), "imageName": "image"}),
        "ContainerRegistryAuth": (
            "/v1/containerregistryauth", {"name": unique("contract"), "username": "u", "password": "p"},
        ),
        "NetworkVolume": ("/v1/networkvolumes", {"name": unique("contract"), "size": 1, "dataCenterId": "here"}),
    }


@pytest.mark.parametrize("kind", ["Endpoint", "Template", "ContainerRegistryAuth", "NetworkVolume"])
def test_what_is_not_sent_has_its_default_and_every_field_is_read(api, kind):
    path, body = bodies(api)[kind]
    made = api.ok("POST", path, json=body)
    assert made["id"] == api.ok("GET", f"{path}/{made['id']}")["id"]
    for field, facts in SCHEMAS[f"{kind}CreateInput"]["fields"].items():
        if field in body or "default" not in facts:
            continue
        default = facts["default"].split(",") if field == "ports" else facts["default"]
        assert made[field] == default, field
    unset = {"template", "workers", "containerRegistryAuthId", "minCudaVersion", "networkVolumeId"}
    assert set(SCHEMAS[kind]["fields"]) - unset <= set(made)


@pytest.mark.parametrize("kind, field, facts", [
    (kind, field, facts)
    for kind in ("Endpoint", "Template", "NetworkVolume")
    for field, facts in SCHEMAS[f"{kind}CreateInput"]["fields"].items()
    if facts["type"] == "integer" or "maxLength" in facts
])
def test_limits_are_kept_to_the_letter(api, kind, field, facts):
    path, body = bodies(api)[kind]
    beside = {"workersMax": {"workersMin": 0}, "workersMin": {"workersMax": 5}}.get(field, {})
    made = api.ok("POST", path, json=body)["id"]
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound not in facts:
            continue
        edge = facts[bound]
        assert api.ok("PATCH", f"{path}/{made}", json={**beside, field: edge})[field] == edge
        for method, where in (("POST", path), ("PATCH", f"{path}/{made}")):
            sent = {**(body if method == "POST" else {}), **beside, field: edge + step}
            assert f"`{field}`" in assert_error(api.call(method, where, json=sent), 400)["error"]
    if "maxLength" in facts:
        longest = "ü" * facts["maxLength"]
        assert api.ok("PATCH", f"{path}/{made}", json={field: longest})[field] == longest
        assert_error(api.call("PATCH", f"{path}/{made}", json={field: longest + "ü"}), 400)
    wrong = "1" if facts["type"] == "integer" else 1
    error = assert_error(api.call("PATCH", f"{path}/{made}", json={field: wrong}), 400)["error"]
    assert f"`{field}`" in error and "must be" in error


def test_stock_fields_take_any_text(api):
    path, body = bodies(api)["Endpoint"]
    lists = {field: ["17.4" if "Cuda" in field else "anything"] for field, facts in SCHEMAS["EndpointCreateInput"]["fields"].items()
             if facts.get("stock") and facts["type"].startswith("list")}
    made = api.ok("POST", path, json={**body, "provider": "external", **lists})
    assert {field: made[field] for field in lists} == lists
