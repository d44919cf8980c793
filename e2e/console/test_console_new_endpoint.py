"""Making an endpoint in the console: from each source, what is impossible, and the first worker and job."""

import os
import shlex
import subprocess
import sys
from urllib.parse import urlsplit

from playwright.sync_api import expect

from harness.browser import PHONE, key_for
from harness.client import HANDLERS, Api, unique
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY, QUICK, binary

GPU = "NVIDIA L4"
MACHINE = QUICK.replace('gpu_sharing = "off"', "") + f'[[gpus]]\ntype = "{GPU}"\ncount = 2\nmemory_gib = 24\n'


def command(handler: str) -> str:
    """A command line that starts a handler."""
    return shlex.join([sys.executable, "-u", str(HANDLERS / handler)])


def made(page) -> str:
    """The id of the endpoint whose start the page watches."""
    page.wait_for_url("**/new-endpoint?made=*")
    return page.url.split("made=")[1].split("&")[0]


def test_an_endpoint_is_made_from_a_command_and_runs_its_first_job(console, api):
    tab = console().sign_in(path="/endpoints")
    page = tab.page
    page.get_by_role("main").get_by_role("link", name="New endpoint").first.click()
    expect(page.get_by_text("Write the command that starts a worker.")).to_be_visible()
    page.get_by_label("Command", exact=True).fill(command("identity.py") + " 'two words")
    expect(page.get_by_text("A quotation mark of the command has no partner.")).to_be_visible()
    page.get_by_label("Command", exact=True).fill(command("environment.py"))
    expect(page.get_by_text("Give it a name.")).to_be_visible()
    name = unique("Made here")
    page.get_by_role("textbox", name="Name", exact=True).fill(name)
    page.get_by_label("Variables").fill("MODEL")
    expect(page.get_by_text("“MODEL” is not NAME=value.")).to_be_visible()
    page.get_by_label("Variables").fill("# a comment\nexport FLAVOUR='small one=b'")
    page.get_by_label("At all times").fill("4")
    expect(page.get_by_text("There cannot be more workers at all times than at most.")).to_be_visible()
    page.get_by_label("At all times").fill("0")
    expect(page.get_by_text("Nothing runs without a job. The first job starts a worker")).to_be_visible()
    assert tab.axe() == []
    page.get_by_role("button", name="Make the endpoint").click()
    endpoint = made(page)
    expect(page.get_by_text("None is needed without a job: the first job starts one.")).to_be_visible()
    page.get_by_label("Input, a JSON object").fill("{}")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("A worker asks for jobs. Its start took")).to_be_visible(timeout=60_000)
    output = page.get_by_role("region", name="Output")
    expect(output).to_contain_text('"small one=b"', timeout=60_000)
    assert tab.axe() == []
    # The address holds what is watched.
    page.reload()
    expect(page.get_by_role("region", name="Output")).to_contain_text('"small one=b"')
    record = api.ok("GET", f"/v1/endpoints/{endpoint}")
    assert (record["name"], record["provider"], record["workersMax"]) == (name, "process", 3), record


# Without anything that a shell would expand.
LINES = [
    r'''sh -c "printf '%s\n' hi"''', r'''a "\$b \` \" \\ \c \'" d''', r"""'a\nb' c\d \"e\" f\\g""", "a \\\n  b\\\nc \"d\\\ne\" 'f\\\ng'", r'''"" '' a""b'c'"d"''',
]  # fmt: skip


def test_a_command_has_the_words_that_a_shell_reads(console):
    page = console().sign_in(path="/new-endpoint").page
    expect(page.get_by_label("Command", exact=True)).to_be_visible()
    module = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name).find((name) => name.endsWith('/shell_words.js'))")
    found = page.evaluate("async ([module, lines]) => { const { parseWords } = await import(module); return lines.map(parseWords); }", [urlsplit(module).path, LINES])
    assert found[0] == ["sh", "-c", "printf '%s\\n' hi"]
    for line, words in zip(LINES, found):
        read = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True, check=True).stdout
        assert words == read.split("\0")[:-1], line


def test_the_command_of_the_review_makes_the_same_endpoint(console, api):
    api.ok("POST", "/v1/secrets", json={"name": "HF_TOKEN", "value": "hush-hush"})
    tab = console().sign_in(path="/new-endpoint")
    page = tab.page
    name, slug = "It's $HOME \"quoted\"", unique("quoted")
    page.get_by_label("Command", exact=True).fill(r"""sh -c 'echo "a b"' "it's" \$HOME""")
    page.get_by_label("Folder", exact=True).fill("/tmp")
    page.get_by_label("Variables").fill("A=$(reboot)\nB=`x` 'y'")
    page.get_by_label("HF_TOKEN").check()
    page.get_by_role("textbox", name="Name", exact=True).fill(name)
    page.get_by_label("Slug").fill(slug)
    page.get_by_label("At all times").fill("0")
    page.get_by_label("At most", exact=True).fill("0")
    page.get_by_label("Idle for at most, in s").fill("77")
    review = page.get_by_role("region", name="Review")
    typed = review.locator("pre").inner_text()
    assert "hush-hush" not in typed
    page.get_by_role("button", name="Make the endpoint").click()
    first = api.ok("GET", f"/v1/endpoints/{made(page)}?includeTemplate=true")
    assert first["template"]["dockerStartCmd"] == ["sh", "-c", 'echo "a b"', "it's", "$HOME"]
    tab.go("/templates")
    # Names of templates and slugs are unique: the second one is made when the first is gone.
    assert api.call("DELETE", f"/v1/endpoints/{first['id']}").status_code == 204
    assert api.call("DELETE", f"/v1/templates/{first['templateId']}").status_code == 204
    script = typed.replace("longshore", shlex.quote(binary()), 1) + " --output json"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LONGSHORE_")}
    environment = clean | {"LONGSHORE_URL": api.server.url, "LONGSHORE_API_KEY": ADMIN_KEY}
    subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=60, capture_output=True)
    second = api.ok("GET", f"/v1/endpoints/{slug}?includeTemplate=true")
    for record in (first, second):
        for field in ("id", "createdAt", "templateId"):
            record.pop(field)
        for field in ("id", "createdAt"):
            record["template"].pop(field)
    assert first == second


def test_a_template_is_chosen_with_the_keyboard_alone(console, api):
    template = api.template("echo.py", name=unique("by keys"))
    page = console().sign_in(path="/new-endpoint").page
    expect(page.get_by_label("A command")).to_be_checked()
    page.get_by_label("A command").focus()
    # This server has no Docker: the arrow skips the image.
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("A template")).to_be_checked()
    expect(page.get_by_label("Template", exact=True).get_by_role("option", name=template["name"])).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.type(template["name"])
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("By keys")
    page.keyboard.press("Enter")
    record = api.ok("GET", f"/v1/endpoints/{made(page)}")
    assert (record["name"], record["templateId"], record["provider"]) == ("By keys", template["id"], "process")
    expect(page.get_by_role("heading", name="By keys is made")).to_be_visible()


def test_a_worker_that_crashes_says_why_and_is_repaired(console, api):
    tab = console().sign_in(path="/new-endpoint")
    page = tab.page
    page.get_by_label("Command", exact=True).fill(command("crash.py"))
    page.get_by_role("textbox", name="Name", exact=True).fill(unique("Crashes"))
    page.get_by_role("button", name="Make the endpoint").click()
    endpoint = made(page)
    page.get_by_role("button", name="Run it").click()
    expect(page.get_by_role("heading", name="Every worker crashes while it starts")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("region", name="What the workers print")).to_contain_text("no model file: giving up")
    expect(page.get_by_role("region", name="Worker", exact=True)).to_contain_text("Crashed")
    assert tab.axe() == []
    template = api.ok("GET", f"/v1/endpoints/{endpoint}")["templateId"]
    repaired = [sys.executable, "-u", str(HANDLERS / "echo.py")]
    api.ok("PATCH", f"/v1/templates/{template}", json={"dockerStartCmd": repaired})
    expect(page.get_by_role("region", name="First job", exact=True)).to_contain_text("Completed", timeout=60_000)


def test_gpus_that_no_machine_has_are_refused_immediately(fresh_server, console):
    server = fresh_server(config=MACHINE)
    api = Api(server)
    tab = console(server).sign_in(path="/new-endpoint")
    page = tab.page
    page.get_by_label("Command", exact=True).fill(command("echo.py"))
    page.get_by_role("textbox", name="Name", exact=True).fill("Large")
    expect(page.get_by_text("2 of 2 free now")).to_be_visible()
    expect(page.get_by_text("2 workers can start now.")).to_be_visible()
    page.get_by_label("GPUs of each worker").fill("3")
    impossible = f"A worker asks for 3 {GPU}, and no machine has more than 2: it could never start."
    expect(page.get_by_text(impossible).first).to_be_visible()
    make = page.get_by_role("button", name="Make the endpoint")
    expect(make).to_have_attribute("aria-disabled", "true")
    make.press("Enter")
    assert api.ok("GET", "/v1/endpoints") == []
    page.get_by_label("GPUs of each worker").fill("2")
    page.get_by_label(GPU).check()
    expect(page.get_by_text("One worker can start now.")).to_be_visible()
    assert tab.axe() == []
    page.get_by_label("At all times").fill("1")
    make.click()
    record = api.ok("GET", f"/v1/endpoints/{made(page)}")
    assert (record["gpuCount"], record["gpuTypeIds"], record["workersMin"]) == (2, [GPU], 1)
    expect(page.get_by_text("A worker asks for jobs.")).to_be_visible(timeout=60_000)
    tab.go("/new-endpoint")
    expect(page.get_by_text("All of them are taken now")).to_be_visible()


def test_external_workers_get_their_variables_when_asked(console, api):
    tab = console(width=PHONE, has_touch=True).sign_in(path="/new-endpoint")
    page = tab.page
    page.get_by_label("External workers").check()
    page.get_by_role("textbox", name="Name", exact=True).fill(unique("Elsewhere"))
    assert tab.axe() == [] and tab.sideways() <= 0
    page.get_by_role("button", name="Make the endpoint").click()
    endpoint = made(page)
    token = api.ok("POST", f"/v1/endpoints/{endpoint}/worker-token")["token"]
    card = page.get_by_role("region", name="Worker token")
    expect(card).to_be_visible()
    assert token not in page.content()
    card.get_by_role("button", name="Show the variables").click()
    expect(card).to_contain_text(f"export RUNPOD_AI_API_KEY='{token}'")
    assert tab.axe() == [] and tab.sideways() <= 0
    card.get_by_role("button", name="Hide").click()
    expect(card).not_to_contain_text(token)
    worker = FakeWorker(api.external())
    worker.base, worker.token = f"{api.server.url}/v2/{endpoint}", token
    worker.session.headers["Authorization"] = token
    page.get_by_role("button", name="Run it").click()
    assert worker.take()["input"] == {"prompt": "a harbour at dawn"}
    expect(page.get_by_text("A worker asks for jobs.")).to_be_visible()


def test_an_endpoint_that_is_deployed_meanwhile_is_shown(console, api):
    page = console().sign_in(path="/new-endpoint").page
    page.get_by_label("A folder").check()
    expect(page.get_by_text("longshore deploy my-worker")).to_be_visible()
    # The page knows what was there before.
    expect(page.locator("#side .count").first).to_be_visible()
    expect(page.get_by_role("link", name="Watch its first start")).to_have_count(0)
    endpoint = api.endpoint("echo.py", name="Deployed")
    page.get_by_role("link", name="Watch its first start").click()
    assert made(page) == endpoint.id


def test_the_first_start_of_an_endpoint_that_forwards_requests_leads_to_its_address(console, api):
    """It takes no jobs."""
    endpoint = api.endpoint("web_app.py", name="Forwards at first", slug=unique("forwards"), type="LB", workersMin=1, workersMax=1, lb={"public": True})
    tab = console().sign_in(path=f"/new-endpoint?made={endpoint.id}")
    page = tab.page
    expect(page.get_by_text("A worker is healthy.")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("region", name="Address")).to_contain_text(f"/lb/{endpoint.record['slug']}/")
    expect(page.get_by_role("button", name="Run it")).to_have_count(0)
    assert tab.axe() == []


def test_what_the_server_refuses_is_said_and_nothing_is_lost(console, api):
    taken = api.external(slug=unique("taken"))
    tab = console().sign_in(path="/new-endpoint")
    tab.forget("409")
    tab.forget("400")
    page = tab.page
    page.get_by_label("External workers").check()
    page.get_by_role("textbox", name="Name", exact=True).fill(unique("Second"))
    page.get_by_label("Slug").fill("a b")
    expect(page.get_by_text("A slug has letters, digits")).to_be_visible()
    page.get_by_label("Slug").fill(taken.record["slug"])
    page.get_by_role("button", name="Make the endpoint").click()
    expect(page.get_by_role("alert")).to_contain_text("is taken: choose another.")
    expect(page.get_by_label("Slug")).to_have_value(taken.record["slug"])


def test_only_a_key_that_manages_everything_makes_one(console, api):
    endpoint = api.external(name="Limited to this")
    key = key_for(api, {"scope": "manage", "endpointIds": [endpoint.id]})["key"]
    tab = console().sign_in(key, path="/endpoints")
    expect(tab.page.get_by_text("Limited to this")).to_be_visible()
    expect(tab.page.get_by_role("link", name="New endpoint")).to_have_count(0)
    tab.go("/new-endpoint")
    expect(tab.page.get_by_text("Only a key that manages all endpoints may make one.")).to_be_visible()


def test_an_endpoint_whose_gpus_no_machine_has_is_impossible(fresh_server, console):
    server = fresh_server(config=MACHINE)
    endpoint = Api(server).endpoint("echo.py", name="Large", workersMin=1, gpuCount=3)
    page = console(server).sign_in(path=f"/endpoints/{endpoint.id}").page
    expect(page.get_by_role("heading", name="Large", level=1).locator("..")).to_contain_text("Impossible")
    expect(page.get_by_text("this machine has 2 x NVIDIA L4").first).to_be_visible()
