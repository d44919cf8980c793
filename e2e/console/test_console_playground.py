"""The playground of an endpoint: running, following and cancelling a job beside its input, and the history of runs."""

import json
import re

from playwright.sync_api import expect

from harness.browser import PHONE, intercept, key_for, message
from harness.server import ADMIN_KEY

INPUT = "Input, a JSON object"
EXACT = '{"seed": 9007199254740993123, "prompt": "a harbour"}'


def run(page, text: str) -> str:
    """Runs an input by keys; the id of its job."""
    page.get_by_label(INPUT).fill(text)
    before = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_url(lambda url: "job=" in url and url != before)
    return page.url.rsplit("job=", 1)[1]


def test_an_input_is_run_and_its_output_stands_beside_it(console, api):
    endpoint = api.endpoint("echo.py", name="Echo")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    page.get_by_role("link", name="Playground").click()
    job = run(page, EXACT)
    output = page.get_by_role("region", name="Output")
    # All digits, which a number of JavaScript does not have.
    expect(output.get_by_text("9007199254740993123")).to_be_visible(timeout=60_000)
    assert "9007199254740993123" in endpoint.call("GET", f"/status/{job}").text
    # The address holds what is shown.
    page.reload()
    expect(output.get_by_text("9007199254740993123")).to_be_visible()
    expect(page.get_by_label(INPUT)).to_have_value(EXACT)


def test_policy_and_webhook_are_sent_and_copied_as_they_were_run(console, api):
    endpoint = api.external(name="With a policy")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    page.get_by_label("Longest run, in s").fill("30")
    page.get_by_label("Kept at most, in s").fill("3600")
    page.get_by_label("Low priority").check()
    page.get_by_label("Webhook").fill("http://127.0.0.1:9/done?token=hidden")
    job = run(page, EXACT)
    life = endpoint.ok("GET", f"/jobs/{job}")
    assert life["policy"] == {"executionTimeout": 30_000, "ttl": 3_600_000, "lowPriority": True}, life
    page.get_by_role("button", name="Copy this run as").click()
    # The command line has no flags for a policy and a webhook.
    expect(page.get_by_role("menuitem")).to_have_text(["curl", "Python", "JavaScript", "Go"])
    page.get_by_role("menuitem", name="curl").click()
    expect(message(page)).to_contain_text("Copied as curl.")
    # A page may not read the clipboard; a person may paste.
    page.get_by_label(INPUT).fill("")
    page.keyboard.press("Control+v")
    copied = page.get_by_label(INPUT).input_value()
    assert f'-d \'{{"input":{EXACT},"policy":{{"executionTimeout":30000,"ttl":3600000,"lowPriority":true}}' in copied
    assert '"webhook":"http://127.0.0.1:9/done?token=hidden"}' in copied and "$LONGSHORE_API_KEY" in copied
    # The address of a webhook can hold a secret.
    assert "hidden" not in page.evaluate("JSON.stringify(localStorage)")


def test_what_is_no_json_is_named_with_its_place_and_not_sent(console, api):
    endpoint = api.external(name="Strict")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    faults = {
        '{"a": 1,\n "b": }': "line 2, column 7 must have a value.",
        '{"a": 1 "b": 2}': "line 1, column 9 must have a comma or }.",
        '{"a": 1,}': "line 1, column 9 must have a name between quotes.",
        '{"a": 01}': "line 1, column 7 must have a value.",
        "[1]": "The input must be a JSON object",
        "": "The input is empty.",
    }
    for text, sentence in faults.items():
        page.get_by_label(INPUT).fill(text)
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("alert").filter(has_text=sentence)).to_be_visible()
    assert endpoint.health()["jobs"]["inQueue"] == 0


def test_a_stream_is_followed_and_a_running_job_cancelled(console, api):
    endpoint = api.endpoint("generator.py")
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    job = run(page, '{"count": 600, "pause": 0.1}')
    expect(page.get_by_role("region", name="Stream")).to_contain_text('"n": 3', timeout=60_000)
    page.get_by_role("button", name="Cancel job").click()
    page.get_by_role("button", name="Sure?").click()
    expect(page.get_by_role("region", name="Job", exact=True)).to_contain_text("Cancelled")
    assert endpoint.status(job)["status"] == "CANCELLED"


def test_a_run_is_waited_for_and_its_stream_is_seen_meanwhile(console, api, tmp_path):
    endpoint = api.endpoint("generator.py", name="Waited for")
    go = tmp_path / "go"
    tab = console(width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/playground")
    page = tab.page
    page.get_by_label(INPUT).fill(json.dumps({"count": 30, "pause": 0.1, "go": str(go)}))
    page.get_by_role("button", name="Run and wait").tap()
    editor = page.get_by_role("region", name="Input").first
    expect(editor).to_contain_text("Waits for the end", timeout=60_000)
    expect(page.get_by_role("region", name="Stream")).to_contain_text('"n": 3', timeout=60_000)
    job = page.url.rsplit("job=", 1)[1]
    assert endpoint.ok("GET", f"/jobs/{job}")["mode"] == "sync"
    go.touch()
    expect(editor).to_contain_text(re.compile(r"Completed\s*after .* s, as this browser saw it"))
    # The result is below the input: it comes into view.
    expect(page.get_by_role("region", name="Job", exact=True)).to_be_in_viewport()
    assert tab.axe() == [] and tab.sideways() <= 0
    # What is copied is what was run.
    page.get_by_role("button", name="Copy this run as").tap()
    page.get_by_role("menuitem", name="curl").tap()
    expect(message(page)).to_contain_text("Copied as curl.")
    page.get_by_label(INPUT).fill("")
    page.keyboard.press("Control+v")
    assert f"/v2/{endpoint.id}/runsync'" in page.get_by_label(INPUT).input_value()
    # By keys, and without waiting to the end.
    page.get_by_label(INPUT).fill('{"count": 600, "pause": 0.1}')
    page.keyboard.press("Control+Shift+Enter")
    expect(editor).to_contain_text("Waits for the end")
    page.get_by_role("button", name="Do not wait").tap()
    expect(editor).not_to_contain_text("Waits for the end")
    long = page.url.rsplit("job=", 1)[1]
    assert long != job and endpoint.status(long)["status"] == "IN_PROGRESS"
    endpoint.cancel(long)


def test_a_run_of_the_history_is_copied_over_the_route_that_it_took(console, api):
    endpoint = api.external(name="Two routes")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    queued = run(page, '{"run": 1}')
    page.get_by_label(INPUT).fill('{"run": 2}')
    page.keyboard.press("Control+Shift+Enter")
    page.wait_for_url("**job=sync-*")
    history = page.get_by_role("region", name="History")
    for number, route in ((1, "run"), (2, "runsync"), (1, "run")):
        history.get_by_role("button", name=f'{{"run": {number}}}').click()
        expect(page.get_by_label(INPUT)).to_have_value(f'{{"run": {number}}}')
        assert f"/v2/{endpoint.id}/{route}'" in copied_as_curl(page)
    waited = page.url.replace(queued, endpoint.ok("GET", "/requests?input.run=2")["requests"][0]["id"])
    page.goto(waited)
    assert f"/v2/{endpoint.id}/runsync'" in copied_as_curl(page)


def copied_as_curl(page) -> str:
    """The run that is shown, as a command. A page may not read the clipboard; a person may paste."""
    page.get_by_role("button", name="Copy this run as").click()
    page.get_by_role("menuitem", name="curl").click()
    expect(message(page)).to_contain_text("Copied as curl.")
    page.get_by_label(INPUT).fill("")
    page.keyboard.press("Control+v")
    return page.get_by_label(INPUT).input_value()


def test_a_waiting_job_says_why(console, api):
    endpoint = api.external(name="No workers")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    run(page, "{}")
    expect(page.get_by_role("heading", name="No worker is there")).to_be_visible()


def test_the_history_keeps_runs_of_this_endpoint_but_no_secret(console, api):
    endpoint, other = api.external(name="Remembered"), api.external(name="Another")
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    first = run(page, '{"run": 1}')
    run(page, '{"run": 2}')
    history = page.get_by_role("region", name="History")
    expect(history.get_by_role("listitem")).to_have_count(2)
    history.get_by_role("button", name='{"run": 1}').click()
    expect(page.get_by_label(INPUT)).to_have_value('{"run": 1}')
    expect(page.get_by_role("region", name="Job", exact=True).get_by_role("link")).to_have_text(first[-12:])
    run(page, '{"api_key": "of another service"}')
    expect(page.get_by_text("seems to hold a secret").first).to_be_visible()
    run(page, json.dumps({"text": "x" * 70_000}))
    expect(page.get_by_text("larger than 64 KiB").first).to_be_visible()
    expect(history.get_by_role("listitem")).to_have_count(2)
    assert "another service" not in page.evaluate("JSON.stringify(localStorage)")
    page.goto(page.url.replace(endpoint.id, other.id).split("?")[0])
    expect(history.get_by_text("The last 50 runs")).to_be_visible()
    page.go_back()
    expect(history.get_by_role("listitem")).to_have_count(2)
    history.get_by_role("button", name="Clear").click()
    history.get_by_role("button", name="Sure?").click()
    expect(history.get_by_role("listitem")).to_have_count(0)
    assert "playground" not in page.evaluate("JSON.stringify(localStorage)")


def test_a_job_is_run_again_with_changes(console, api):
    endpoint = api.external(name="Again")
    job = endpoint.run({"first": True})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    page.get_by_role("link", name="Run again with changes").click()
    expect(page.get_by_label(INPUT)).to_have_value('{\n  "first": true\n}')


def test_only_a_key_that_runs_jobs_has_it(console, api):
    endpoint = api.external(name="Looked at")
    reader = console().sign_in(key_for(api, {"scope": "read"})["key"], path=f"/endpoints/{endpoint.id}")
    expect(reader.page.get_by_role("link", name="Logs")).to_be_visible()
    expect(reader.page.get_by_role("link", name="Playground")).to_have_count(0)
    reader.go(f"/endpoints/{endpoint.id}/playground")
    expect(reader.page.get_by_text("This key may not run jobs on this endpoint.")).to_be_visible()
    key = key_for(api, {"scope": "jobs", "endpointIds": [endpoint.id]})["key"]
    page = console().sign_in(key, path=f"/endpoints/{endpoint.id}/playground").page
    job = run(page, "{}")
    assert endpoint.status(job)["status"] == "IN_QUEUE"


SCHEMA = {
    "type": "object",
    "required": ["prompt", "size"],
    "properties": {
        "prompt": {"type": "string", "title": "Prompt", "description": "What the picture shows."},
        "size": {"$ref": "#/$defs/Size"},
        "seed": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": 7},
        "strength": {"type": "number", "exclusiveMaximum": 1},
        "tiled": {"type": "boolean", "default": True},
        "picture": {"type": "string", "contentEncoding": "base64", "contentMediaType": "text/plain"},
        "camera": {"type": "object", "title": "Camera", "properties": {"lens": {"type": "string", "maxLength": 5}}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "__proto__": {"type": "string", "format": "hostname"},
    },
    "$defs": {"Size": {"enum": ["small", "large", 3], "title": "Size"}, "Loop": {"$ref": "#/$defs/Loop"}},
}


def test_an_input_is_filled_in_by_a_form_of_its_schema(console, api):
    endpoint = api.external(name="With a form", inputSchema=SCHEMA, example={"input": {"prompt": "a quay", "scale": 1}})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/playground")
    page = tab.page
    form = page.get_by_role("region", name="Input")
    expect(form.get_by_label("Prompt")).to_have_value("a quay")
    expect(form.get_by_text("1 member of the input has no field here")).to_be_visible()
    expect(form.get_by_label("tiled")).to_be_checked()
    assert tab.axe() == []
    # What is missing or wrong is said, and nothing is sent.
    page.get_by_role("button", name="Run", exact=True).click()
    expect(form.get_by_role("alert")).to_have_text("Size needs a value.")
    form.get_by_label("Size").select_option("3")
    for name, text, sentence in (("seed", "-1", "seed is at least 0."), ("seed", "1.5", "seed takes a whole number."), ("strength", "1", "strength is less than 1."), ("lens", "fisheye", "lens has at most 5 characters."), ("tags", "[1,", "tags takes JSON")):
        form.get_by_label(name).fill(text)
        expect(form.get_by_role("alert")).to_contain_text(sentence)
        page.keyboard.press("Control+Enter")
        expect(form.get_by_role("alert").last).to_contain_text(sentence)
        form.get_by_label(name).fill("")
        expect(form.get_by_role("alert")).to_have_count(0)
    assert endpoint.health()["jobs"]["inQueue"] == 0
    form.get_by_label("seed").fill("9007199254740993123")
    form.get_by_label("strength").fill("0.50")
    form.get_by_label("tiled").uncheck()
    form.get_by_label("lens").fill("35mm")
    form.get_by_label("tags").fill('["dawn", 2]')
    form.get_by_label("__proto__").fill("host")
    form.get_by_label("picture").set_input_files({"name": "note.txt", "mimeType": "text/plain", "buffer": b"harbour"})
    expect(form.get_by_text("note.txt")).to_be_visible()
    # The JSON is a press away, and the way back.
    form.get_by_role("button", name="JSON").click()
    expect(page.get_by_label(INPUT)).to_have_value(re.compile("9007199254740993123"))
    form.get_by_role("button", name="Form").press("Enter")
    expect(form.get_by_label("lens")).to_have_value("35mm")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "job=" in url)
    job = page.url.rsplit("job=", 1)[1]
    sent = endpoint.call("GET", f"/jobs/{job}/input").text
    assert '"scale": 1,' in sent and '"seed": 9007199254740993123' in sent and '"strength": 0.50' in sent, sent
    rest = {name: value for name, value in json.loads(sent).items() if name not in ("scale", "seed", "strength")}
    assert rest == {"prompt": "a quay", "size": 3, "tiled": False, "camera": {"lens": "35mm"}, "tags": ["dawn", 2], "__proto__": "host", "picture": "aGFyYm91cg=="}


def test_a_switch_that_is_needed_is_sent_as_it_is_shown(console, api):
    switch, on = {"type": "boolean"}, {"type": "boolean", "default": True}
    camera = {"type": "object", "required": ["flash"], "properties": {"flash": switch, "lens": {"type": "string"}}}
    schema = {"type": "object", "required": ["tiled", "safe", "camera"], "properties": {"tiled": switch, "safe": on, "other": switch, "camera": camera, "second": camera}}
    endpoint = api.external(name="Switches", inputSchema=schema, example={"input": {"n": 1.50}})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    form = page.get_by_role("region", name="Input")
    expect(form.get_by_label("tiled")).not_to_be_checked()
    expect(form.get_by_label("safe")).to_be_checked()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "job=" in url)
    sent = endpoint.ok("GET", f"/jobs/{page.url.rsplit('job=', 1)[1]}/input")
    assert sent == {"n": 1.5, "tiled": False, "safe": True, "camera": {"flash": False}}
    form.get_by_role("button", name="JSON").click()
    expect(page.get_by_label(INPUT)).to_have_value(re.compile('"safe": true'))


def test_a_form_sends_null_where_its_schema_permits_it_and_refuses_it_elsewhere(console, api):
    nothing = {"type": "null"}
    properties = {
        "seed": {"anyOf": [{"type": "integer"}, nothing]},
        "scale": {"type": ["number", "null"], "minimum": 1},
        "steps": {"type": "integer", "nullable": True},
        "voice": {"anyOf": [{"type": "string", "minLength": 5}, nothing]},
        "camera": {"anyOf": [{"$ref": "#/$defs/Camera"}, nothing]},
        "count": {"type": "integer"},
    }
    camera = {"type": "object", "required": ["lens"], "properties": {"lens": {"type": "string"}}}
    given = {name: None for name in properties}
    schema = {"type": "object", "required": ["seed", "voice", "camera"], "properties": properties, "$defs": {"Camera": camera}}
    endpoint = api.external(name="With nulls", inputSchema=schema, example={"input": given})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    form = page.get_by_role("region", name="Input")
    expect(form.get_by_label("seed")).to_have_value("null")
    expect(form.get_by_label("voice")).to_have_value("")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(form.get_by_role("alert")).to_have_text("count takes a whole number.")
    form.get_by_label("count").fill("2")
    form.get_by_label("scale").fill("3")
    form.get_by_label("scale").fill("null")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "job=" in url)
    assert endpoint.ok("GET", f"/jobs/{page.url.rsplit('job=', 1)[1]}/input") == given | {"count": 2}


def test_limits_of_a_form_are_exclusive_where_an_older_schema_says_so(console, api):
    number = {"type": "number", "minimum": 0, "maximum": 5}
    properties = {"inner": number | {"exclusiveMinimum": True, "exclusiveMaximum": True}, "whole": number | {"exclusiveMinimum": False, "exclusiveMaximum": False}}
    endpoint = api.external(name="Older limits", inputSchema={"type": "object", "properties": properties})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    form = page.get_by_role("region", name="Input")
    faults = {
        "inner": {"-1": "inner is more than 0.", "0": "inner is more than 0.", "3": "", "5": "inner is less than 5.", "6": "inner is less than 5."},
        "whole": {"-1": "whole is at least 0.", "0": "", "3": "", "5": "", "6": "whole is at most 5."},
    }
    for name, texts in faults.items():
        for text, sentence in texts.items():
            form.get_by_label(name).fill(text)
            expect(form.get_by_role("alert")).to_have_text([sentence] if sentence else [])
        form.get_by_label(name).fill("")


# Files are read when the test says so, in the order in which they were chosen.
HOLD_FILES = """() => {
  const read = FileReader.prototype.readAsDataURL;
  window.held = [];
  FileReader.prototype.readAsDataURL = function (file) { window.held.push(() => read.call(this, file)); };
}"""


def test_what_is_typed_while_files_are_read_stays(console, api):
    files = {name: {"type": "string", "contentEncoding": "base64"} for name in ("first", "second")}
    endpoint = api.external(name="Two files", inputSchema={"type": "object", "properties": {"prompt": {"type": "string"}, "steps": {"type": "integer"}, **files}})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    form = page.get_by_role("region", name="Input")
    page.evaluate(HOLD_FILES)
    for name in ("first", "second"):
        form.get_by_label(name).set_input_files({"name": f"{name}.txt", "mimeType": "text/plain", "buffer": name.encode()})
    form.get_by_label("prompt").fill("a harbour")
    form.get_by_label("steps").fill("many")
    page.evaluate("held.forEach((read) => read())")
    for name in ("first", "second"):
        expect(form.get_by_text(f"{name}.txt")).to_be_visible()
    expect(form.get_by_label("prompt")).to_have_value("a harbour")
    expect(form.get_by_label("steps")).to_have_value("many")
    form.get_by_label("steps").fill("4")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url(lambda url: "job=" in url)
    sent = endpoint.ok("GET", f"/jobs/{page.url.rsplit('job=', 1)[1]}/input")
    assert sent == {"prompt": "a harbour", "steps": 4, "first": "Zmlyc3Q=", "second": "c2Vjb25k"}


def test_a_schema_alone_gives_the_first_input(console, api):
    schema = {"type": "object", "properties": {"steps": {"type": "integer", "default": 4, "maximum": 9223372036854775807}, "voice": {"type": "string", "examples": ["ada"]}, "loop": {"$ref": "#/properties/loop"}}}
    endpoint = api.external(name="Without an example", inputSchema=schema)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground?view=json").page
    expect(page.get_by_label(INPUT)).to_have_value('{\n  "steps": 4,\n  "voice": "ada"\n}')


def test_an_example_and_a_default_keep_all_digits(console, api):
    big = 9007199254740993123
    endpoint = api.external(name="With a seed", example={"input": {"seed": big}})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    expect(page.get_by_label(INPUT)).to_have_value(f'{{\n  "seed": {big}\n}}')
    job = run(page, page.get_by_label(INPUT).input_value())
    assert str(big) in endpoint.call("GET", f"/jobs/{job}/input").text
    # An event brings the endpoint again.
    schema = {"type": "object", "properties": {"seed": {"type": "integer", "default": big}, "of": {"enum": [big, big + 2]}}}
    endpoint.patch(example=None, inputSchema=schema)
    page.goto(page.url.split("?")[0] + "?view=json")
    expect(page.get_by_label(INPUT)).to_have_value(f'{{\n  "seed": {big}\n}}')
    page.get_by_role("button", name="Form").click()
    page.get_by_label("of optional").select_option(str(big + 2))
    page.get_by_role("button", name="JSON").click()
    expect(page.get_by_label(INPUT)).to_have_value(re.compile(f'"of": {big + 2}'))


def test_the_form_and_the_editor_have_the_order_of_the_schema_and_the_example(console, api):
    names = ("voice", "prompt", "angle", "Zoom")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    endpoint = api.external(name="In order", inputSchema=schema, example={"input": {name: name.upper() for name in reversed(names)}})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground").page
    form = page.get_by_role("region", name="Input")
    expect(form.get_by_label("Zoom")).to_have_value("ZOOM")
    assert [field.input_value() for field in form.get_by_role("textbox").all()][: len(names)] == [name.upper() for name in names]
    form.get_by_role("button", name="JSON").click()
    expect(page.get_by_label(INPUT)).to_have_value(json.dumps({name: name.upper() for name in reversed(names)}, indent=2))


def test_what_is_typed_stays_while_one_looks_at_another_page(console, api):
    endpoint = api.external(name="Left and found")
    jobs = [endpoint.run({"first": True}), endpoint.run({"second": True})]
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/playground")
    page = tab.page
    page.get_by_label(INPUT).fill('{"typed": 1}')
    page.get_by_label("Longest run, in s").fill("30")
    page.get_by_label("Webhook").fill("http://127.0.0.1:9/done")
    page.get_by_label("Low priority").check()
    look_away(page)
    expect(page.get_by_label(INPUT)).to_have_value('{"typed": 1}')
    expect(page.get_by_label("Longest run, in s")).to_have_value("30")
    expect(page.get_by_label("Webhook")).to_have_value("http://127.0.0.1:9/done")
    expect(page.get_by_label("Low priority")).to_be_checked()
    # A job that is to be run again with changes is not that draft; what is changed then stays, too.
    for name, job in zip(("first", "second"), jobs):
        page.evaluate("path => (history.pushState(null, '', path), dispatchEvent(new PopStateEvent('popstate')))", f"/console/endpoints/{endpoint.id}/requests/{job}")
        page.get_by_role("link", name="Run again with changes").click()
        expect(page.get_by_label(INPUT)).to_have_value(f'{{\n  "{name}": true\n}}')
        page.get_by_label(INPUT).fill(f'{{"{name}": 2}}')
        look_away(page)
        expect(page.get_by_label(INPUT)).to_have_value(f'{{"{name}": 2}}')
    assert "second" not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    # The next person at this browser does not find it.
    tab.sign_out()
    page.get_by_label("API key").fill(ADMIN_KEY)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label(INPUT)).to_have_value(re.compile("second.: true"))


def look_away(page) -> None:
    """Goes to the logs, and back."""
    page.get_by_role("link", name="Logs").click()
    expect(page.get_by_label("Search the logs")).to_be_visible()
    page.go_back()


def test_what_is_typed_before_the_input_of_a_job_comes_stays(console, api):
    endpoint = api.external(name="Slow to come")
    job = endpoint.run({"first": True})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    held = []
    intercept(page, "**/input", lambda route: held.append(route))
    with page.expect_request("**/input"):
        tab.go(f"/endpoints/{endpoint.id}/playground?from={job}")
    page.get_by_label(INPUT).fill('{"typed": 1}')
    with page.expect_response("**/input") as answered:
        held[0].continue_()
    answered.value.finished()
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    expect(page.get_by_label(INPUT)).to_have_value('{"typed": 1}')
