"""The flows of the console by the keyboard alone: no test here uses the mouse, or sets the focus by a script."""

import re
import shlex
import sys

from playwright.sync_api import expect

from harness.browser import ADMIN_KEY, key_for, message
from harness.client import HANDLERS, Api, unique
from harness.console_pages import GPUS, failed_calls
from harness.docker_endpoint import IMAGE, daemon, docked, needs_docker  # noqa: F401
from harness.fake_worker import FakeWorker
from harness.keyboard import press, press_pair, walk, write
from harness.receiver import Receiver
from harness.wait import until


def test_one_signs_in_and_out(console):
    tab = console()
    tab.forget("401")
    page = tab.go("/")
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type("ls_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("does not know that key")
    # What was wrong is replaced by what is typed next.
    write(page, "API key", ADMIN_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_have_count(1)
    press(page, "Signed in as")
    expect(page.get_by_role("group", name="Signed in")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Signed in as")).to_be_focused()
    page.keyboard.press("Enter")
    press(page, "Sign out")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_key_is_made_and_revoked(console, api):
    page = console().sign_in(path="/api-keys").page
    expect(page.get_by_role("button", name="Make a key")).to_be_visible()
    press(page, "Make a key")
    expect(page.get_by_role("dialog", name="Make a key")).to_be_visible()
    write(page, "Name", "website")
    press(page, "Make the key")
    expect(page.get_by_text("This is the only time that it is shown")).to_be_visible()
    press(page, "I have kept it")
    [key] = [key for key in api.ok("GET", "/v1/apikeys") if key["name"] == "website"]
    press(page, "Revoke", row="website")
    expect(page.get_by_text("It was never used.")).to_be_visible()
    press(page, "Revoke it")
    until(lambda: key["id"] not in [one["id"] for one in api.ok("GET", "/v1/apikeys")], "the key is revoked", 10)


def test_a_key_is_used_until_it_is_revoked_in_another_tab(console, api):
    page = console().sign_in(path="/api-keys").page
    expect(page.get_by_role("button", name="Make a key")).to_be_visible()
    press(page, "Make a key")
    write(page, "Name", "second tab")
    press(page, "Make the key")
    expect(page.get_by_text("This is the only time that it is shown")).to_be_visible()
    text = page.get_by_role("dialog").locator(".code-line pre").first.inner_text()
    press(page, "I have kept it")
    other = console()
    other.forget("401")
    second = other.go("/")
    expect(second.get_by_label("API key")).to_be_focused()
    second.keyboard.type(text)
    second.keyboard.press("Enter")
    expect(second.get_by_role("heading", name="Overview", level=1)).to_have_count(1)
    # The two keys belong together only within a second.
    expect(second.locator(".loading, .loading-page")).to_have_count(0)
    press_pair(second, "g", "e")
    expect(second.get_by_role("heading", name="Endpoints", level=1)).to_have_count(1)
    press(page, "Revoke", row="second tab")
    expect(page.get_by_text("This session ends with it")).to_be_visible()
    press(page, "Revoke it")
    expect(second.get_by_text("Your session has ended")).to_be_visible()
    # Another key can be typed there.
    expect(second.get_by_label("API key")).to_be_focused()
    second.keyboard.type(ADMIN_KEY)
    second.keyboard.press("Enter")
    expect(second.get_by_role("heading", name="Endpoints", level=1)).to_have_count(1)


def test_the_focus_goes_on_when_its_row_goes_away(console, api):
    for name in ("revoked", "kept"):
        key_for(api, {"scope": "read"}, name=name)
    other = console().sign_in(key_for(api, {"scope": "manage"}, name="other")["key"])
    page = console().keep_asking().sign_in(path="/api-keys").page
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="revoked")).to_have_count(1)
    press(page, "Revoke", row="revoked")
    expect(page.get_by_role("dialog", name="Revoke revoked?")).to_be_visible()
    press(page, "Revoke it")
    expect(rows.filter(has_text="revoked")).to_have_count(0)
    expect(page.get_by_role("button", name="Change").and_(page.locator(":focus"))).to_have_count(1)
    # Enter ends no other session: none of their rows leads anywhere.
    press(page, "End", row="other")
    press(page, "Sure?", row="other")
    sessions = page.get_by_role("region", name="Sessions")
    expect(sessions.get_by_role("row").filter(has_text="other")).to_have_count(0)
    expect(sessions.get_by_role("heading", name="Sessions")).to_be_focused()
    other.forget("401")


def test_an_endpoint_is_paused_resumed_changed_and_deleted(console, api):
    endpoint = api.external(name="By keys", workersMax=3)
    record = lambda: api.ok("GET", f"/v1/endpoints/{endpoint.id}")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    tab.forget("412")
    # What the page shows is asked for while it is deleted.
    tab.forget("404")
    page = tab.page
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    press(page, "Pause")
    until(lambda: record()["workersMax"] == 0, "paused", 10)
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    press(page, "Resume")
    until(lambda: record()["workersMax"] == 3, "resumed", 10)
    press(page, "Settings")
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    write(page, "Most workers", "5")
    # Another one changes it meanwhile: both are shown, and a second press saves.
    endpoint.patch(idleTimeout=77)
    press(page, "Review and save")
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog).to_be_visible()
    press(page, "Save")
    expect(dialog.get_by_text("This endpoint was changed meanwhile")).to_be_visible()
    press(page, "Save")
    until(lambda: (record()["workersMax"], record()["idleTimeout"]) == (5, 77), "changed", 10)
    expect(dialog).to_have_count(0)
    press(page, "Delete")
    expect(page.get_by_label("Type “By keys”")).to_be_focused()
    page.keyboard.type("By keys")
    press(page, "Delete it")
    until(lambda: endpoint.id not in [one["id"] for one in api.ok("GET", "/v1/endpoints")], "deleted", 10)


def test_a_volume_is_made_and_deleted(console, api):
    page = console().sign_in(path="/volumes").page
    expect(page.get_by_role("button", name="Make a volume")).to_be_visible()
    press(page, "Make a volume")
    write(page, "Name", "weights")
    write(page, "Size in GB", "200")
    press(page, "Make the volume")
    expect(page.get_by_role("button", name="Delete weights")).to_be_visible()
    press(page, "Delete weights")
    expect(page.get_by_label("Type “weights”")).to_be_focused()
    page.keyboard.type("weights")
    press(page, "Delete it")
    until(lambda: api.ok("GET", "/v1/networkvolumes") == [], "deleted", 10)


def run(page, endpoint, text: str) -> str:
    """Runs a job from the endpoint's page; the id of the job, whose page is shown then."""
    expect(page.get_by_role("button", name="Run a job")).to_be_visible()
    press(page, "Run a job")
    expect(page.get_by_label("Input, a JSON object")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/requests/*")
    return page.url.rsplit("/", 1)[1]


def test_a_stream_is_followed_before_its_end_and_cancelled(console, api):
    endpoint = api.endpoint("generator.py", name="Streams by keys")
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}").page
    job = run(page, endpoint, '{"count": 600, "pause": 0.1}')
    stream = page.get_by_role("region", name="Stream")
    expect(stream).to_contain_text('"n": 3', timeout=60_000)
    assert endpoint.status(job)["status"] == "IN_PROGRESS"
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Sure?")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("main").get_by_text("Cancelled", exact=True).first).to_be_visible()
    assert endpoint.wait_for(job)["status"] == "CANCELLED"


def test_a_crash_loop_is_explained_and_repaired_by_another_template(console, api):
    crashes, works = (api.template(handler, name=unique(name)) for handler, name in (("crash.py", "crashes"), ("echo.py", "works")))
    endpoint = api.endpoint(name="Repaired by keys", templateId=crashes["id"], workersMax=1)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}").page
    job = run(page, endpoint, '{"prompt": "a harbour"}')
    expect(page.get_by_role("heading", name="Every worker crashes while it starts")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("main")).to_contain_text("no model file: giving up")
    expect(page.get_by_role("link", name="Open the log")).to_have_attribute("href", re.compile(f"/endpoints/{endpoint.id}/logs$"))
    page.go_back()
    expect(page.get_by_role("link", name="Settings")).to_be_visible()
    press(page, "Settings")
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    expect(page.locator("option").filter(has_text=works["name"])).to_have_count(1)
    walk(page, "Template")
    page.keyboard.type(works["name"])
    press(page, "Review and save")
    row = page.get_by_role("dialog", name="Save these changes?").get_by_role("row").filter(has_text="templateId")
    expect(row.get_by_role("cell")).to_have_text([crashes["name"], works["name"]])
    press(page, "Save")
    expect(message(page)).to_contain_text("The settings are saved.")
    assert endpoint.wait_for(job, timeout_s=60)["status"] == "COMPLETED"


# The number of the row that has the focus, or -1.
FOCUSED_ROW = "[...document.querySelectorAll('main tbody tr')].findIndex((row) => row.contains(document.activeElement))"


def go_along(page, path: str, text: str) -> None:
    """Opens a page and presses `j` until the row of a table with this text has the focus."""
    page.goto(page.url.split("/console")[0] + "/console" + path)
    rows = page.get_by_role("main").get_by_role("row")
    expect(rows.filter(has_text=text).first).to_be_visible()
    for number in range(rows.count()):
        page.keyboard.press("j")
        until(lambda number=number: page.evaluate(FOCUSED_ROW) >= number, "the next row has the focus", 10)
        if text in rows.filter(has=page.locator(":focus")).inner_text():
            return
    raise AssertionError(f"j does not reach {text} on {path}")


def test_j_k_and_enter_go_along_the_rows_of_tables(console, api):
    template = api.template("echo.py", name="Along rows")
    endpoint = api.endpoint(name="Rows by keys", templateId=template["id"], workersMin=1)
    key_for(api, {"scope": "jobs"}, name="rower")
    with Receiver() as receiver:
        job = endpoint.run({"prompt": "a row"}, webhook=receiver.url)
        endpoint.wait_for(job)
        until(lambda: api.ok("GET", "/v1/webhooks?state=DELIVERED")["webhooks"], "delivered", 20)
    worker = api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers")[0]["id"]
    page = console().sign_in(path="/endpoints").page
    leads = {
        "/": ("Rows by keys", endpoint.id),
        "/endpoints": ("Rows by keys", endpoint.id),
        "/workers": (worker[-8:], f"workers/{worker}"),
        "/webhooks": (job[-12:], f"requests/{job}"),
        "/audit": (f"endpoints/{endpoint.id}", f"endpoints/{endpoint.id}"),
    }
    for path, (row, opened) in leads.items():
        go_along(page, path, row)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{opened}*")
    # A row whose own page is a dialog opens it; what deletes is never where Enter is.
    for path, row, title in (("/templates", "Along rows", "Along rows"), ("/api-keys", "rower", "Change rower")):
        go_along(page, path, row)
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
    go_along(page, "/templates", "Along rows")
    first = page.locator(":focus").get_attribute("aria-label")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.get_by_role("button", name=first, exact=True)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("The next row: Enter opens it")


def test_an_endpoint_is_made_from_a_command_and_runs_its_first_job(console, api):
    page = console().sign_in(path="/new-endpoint").page
    expect(page.get_by_label("A command")).to_be_checked()
    write(page, "Command", shlex.join([sys.executable, "-u", str(HANDLERS / "echo.py")]))
    write(page, "Name", "From a command")
    press(page, "Make the endpoint")
    expect(page.get_by_role("heading", name="From a command is made")).to_be_visible()
    write(page, "Input, a JSON object", '{"prompt": "by keys"}')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Output")).to_contain_text("by keys", timeout=60_000)
    [record] = [one for one in api.ok("GET", "/v1/endpoints") if one["name"] == "From a command"]
    assert record["provider"] == "process", record


def test_a_failed_job_is_retried_and_run_again_with_changes(console, api):
    endpoint = api.external(name="Fails by keys")
    worker = FakeWorker(endpoint)
    job = endpoint.run({"n": 1})
    worker.done(worker.take()["id"], {"error": "out of memory"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    page.keyboard.press("r")
    expect(message(page)).to_contain_text("The job is queued again.")
    assert worker.take()["id"] == job
    worker.done(job, {"output": 1})
    expect(page.get_by_role("main").get_by_text("Completed", exact=True).first).to_be_visible()
    press(page, "Run again with changes")
    expect(page.get_by_label("Input, a JSON object")).to_have_value(re.compile('"n": 1'))
    write(page, "Input, a JSON object", '{"n": 2}')
    page.keyboard.press("Control+Enter")
    again = worker.take()
    assert again["id"] != job and again["input"] == {"n": 2}, again
    worker.done(again["id"], {"output": "twice"})
    expect(page.get_by_role("region", name="Output")).to_contain_text("twice")


def test_a_failed_call_is_looked_at_and_delivered_again(fresh_server, console):
    server = fresh_server(config=GPUS)
    api = Api(server)
    endpoint = api.external(name="Calls by keys")
    # The call is tried twice, and once more when the page asks for it.
    with Receiver(500, 500, 200) as receiver:
        job = endpoint.run(webhook=receiver.url)
        endpoint.cancel(job)
        until(lambda: failed_calls(api), "the call is given up", 30)
        page = console(server).sign_in(path=f"/endpoints/{endpoint.id}/webhooks").page
        attempts = f"Show the attempts for {job[-12:]}"
        expect(page.get_by_role("button", name=attempts)).to_be_visible()
        press(page, attempts)
        expect(page.get_by_role("dialog")).to_contain_text("Attempt 2")
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name=attempts)).to_be_focused()
        press(page, f"Deliver again {job[-12:]}")
        receiver.wait_for(3)
        expect(page.get_by_role("row").filter(has_text=job[-12:])).to_contain_text("Delivered")


@needs_docker
def test_an_endpoint_is_made_from_an_image_and_runs_its_first_job(console, docked):
    page = console(docked).sign_in(path="/new-endpoint").page
    expect(page.get_by_label("A command")).to_be_checked()
    walk(page, "A command")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("An image")).to_be_checked()
    write(page, "Image", IMAGE)
    write(page, "Name", "From an image")
    press(page, "Make the endpoint")
    expect(page.get_by_role("heading", name="From an image is made")).to_be_visible()
    write(page, "Input, a JSON object", '{"do": "write", "path": "/tmp/note", "text": "by keys"}')
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="First job", exact=True)).to_contain_text("Completed", timeout=60_000)
    [record] = Api(docked).ok("GET", "/v1/endpoints?includeTemplate=true")
    assert (record["provider"], record["template"]["imageName"]) == ("docker", IMAGE), record
