"""What opens over a page, in both themes: every dialog, menu and palette that the console has, for axe-core."""

import io
import re
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from playwright.sync_api import Page, expect

from harness.browser import key_for
from harness.client import Api
from harness.console_pages import GPUS, failed_calls
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import Server
from harness.wait import until

ASSETS = Path(__file__).parents[2] / "crates/console/assets"
# How a source opens something over a page.
OPENS = re.compile(r'<\$\{(?:Form|Sure)?Dialog\} |<\$\{Menu\} |<dialog |class="(?:who-menu|unsaved)"')
# What the others are made of.
MADE_OF = ("ui/dialog.js", "ui/form_dialog.js", "ui/sure_dialog.js")


@pytest.fixture(scope="module")
def server():
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


def sent_code(api: Api) -> str:
    """Sends a version of a worker's code; answers the folder that a template names."""
    packed, text = io.BytesIO(), b"greet = 'Hello'"
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        file = tarfile.TarInfo("handler.py")
        file.size = len(text)
        tar.addfile(file, io.BytesIO(text))
    return api.ok("POST", "/v1/code?name=greeter", data=packed.getvalue(), headers={"Content-Type": "application/gzip"})["workdir"]


@pytest.fixture(scope="module")
def paths(api) -> dict[str, str]:
    """Makes what can be opened, and answers the addresses where it is."""
    first, second = (api.template(name=name)["id"] for name in ("First program", "Second program"))
    running = api.endpoint(name="Runs", templateId=first, workersMin=1)
    running.patch(templateId=second)
    endpoint = api.external(name="Waits")
    job, worker = endpoint.run({"n": 1}), FakeWorker(endpoint)
    assert worker.take()["id"] == job
    for word in ("The", " tide", " turns"):
        worker.chunk(job, word)
    endpoint.run({"n": 2})
    with Receiver(500) as receiver:
        endpoint.cancel(endpoint.run({"n": 3}, webhook=receiver.url))
        until(lambda: failed_calls(api), "the call is given up", 30)
    key_for(api, {"scope": "read"}, name="website")
    api.ok("POST", "/v1/networkvolumes", json={"name": "weights", "size": 200})
    code = api.template(name="Greeter", workdir=sent_code(api), dockerStartCmd=[])["id"]
    api.endpoint(name="Greets", templateId=code, workersMax=0)
    running.wait_health("workers", "idle", 1)
    return {"running": f"/endpoints/{running.id}", "waiting": f"/endpoints/{endpoint.id}", "job": f"/endpoints/{endpoint.id}/requests/{job}"}


Step = str | Callable[[Page], None]


@dataclass
class Over:
    """What is open over a page: where, after which presses (the names of buttons and of items of menus), and its name."""

    path: str
    steps: tuple[Step, ...]
    name: str
    role: str = "dialog"


def of_key(name: str) -> Step:
    return lambda page: page.get_by_role("row").filter(has_text="website").get_by_role("button", name=name).click()


def fill(label: str, text: str) -> Step:
    return lambda page: page.get_by_label(label, exact=True).fill(text)


def key(name: str) -> Step:
    return lambda page: page.keyboard.press(name)


def change_a_setting(page: Page) -> None:
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    page.get_by_label(re.compile("^Most workers ")).fill("5")


def choose_a_range(page: Page) -> None:
    page.get_by_label("Time range").select_option("Custom …")


def open_a_chunk(page: Page) -> None:
    page.get_by_role("grid", name="Chunks").get_by_role("row").filter(has_text="tide").click()


def choose_a_job(page: Page) -> None:
    page.get_by_role("row").filter(has_text="Queued").click(modifiers=["Control"])


def leave_unsaved(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("others")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Your changes are not saved.")).to_be_visible()


def find_a_job(page: Page) -> None:
    job = page.url.rsplit("/", 1)[1]
    page.get_by_role("combobox", name="Find anything").fill(job[-12:])
    expect(page.get_by_role("option").filter(has_text=job)).to_be_visible()


# By the source that shows it; one of several has a word after it.
OVER = {
    "pages/endpoints.js": Over("/endpoints", ("More",), "More", "menu"),
    "pages/registries.js": Over("/registries", ("Add a login",), "Add a login"),
    "ui/settings_review.js": Over("{running}/settings", (change_a_setting, "Review and save"), "Save these changes?"),
    "pages/templates.js": Over("/templates", ("Show Greeter",), "Greeter"),
    "pages/volumes.js": Over("/volumes", ("Make a volume",), "Make a volume"),
    "pages/webhooks.js": Over("{waiting}/webhooks", (re.compile("^Show the attempts"),), "Attempts for job"),
    "ui/bulk.js": Over("{waiting}/requests", (choose_a_job, "Cancel 1"), "Cancel 1 job of Waits?"),
    "ui/change_key.js": Over("/api-keys", (of_key("Change"),), "Change website"),
    "ui/chunks.js": Over("{job}", ("Chunks", open_a_chunk), "Chunk 1"),
    "ui/code_versions.js": Over("/templates", ("Code of Greeter",), "Code of Greeter"),
    "ui/copy_as.js": Over("{job}", ("Copy as",), "Copy as", "menu"),
    "ui/custom_range.js": Over("{running}/metrics", (choose_a_range,), "Choose a time range"),
    "ui/delete_by_name.js": Over("/volumes", ("Delete weights",), "Delete weights?"),
    "ui/drain_all.js": Over("{running}/workers", ("Drain all",), "Drain 1 worker of Runs?"),
    "ui/key_help.js": Over("{waiting}/requests", (key("?"),), "Keys"),
    "ui/make_key.js": Over("/api-keys", ("Make a key",), "Make a key"),
    "ui/make_key.js made": Over("/api-keys", ("Make a key", fill("Name", "kept"), "Make the key"), "The key “kept”"),
    "ui/palette.js": Over("{job}", (key("Control+k"), find_a_job), "Find anything"),
    "ui/pause_many.js": Over("/endpoints?q=runs", ("More", "Pause 1 of the list"), "Pause 1 endpoint?"),
    "ui/purge.js": Over("{waiting}/requests", ("More", "Purge the queue"), "Cancel 1 waiting job of Waits?"),
    "ui/redeliver.js": Over("{waiting}/webhooks", ("Deliver failed ones again", "All …"), "Deliver 1 failed call of Waits again?"),
    "ui/redeliver.js menu": Over("{waiting}/webhooks", ("Deliver failed ones again",), "Deliver failed ones again", "menu"),
    "ui/request_filters.js": Over("{waiting}/requests", ("More",), "More", "menu"),
    "ui/revoke_key.js": Over("/api-keys", (of_key("Revoke"),), "Revoke website?"),
    "ui/run_dialog.js": Over("{waiting}", ("Run a job",), "Run a job on Waits"),
    "ui/template_form.js": Over("/templates", ("Change Greeter",), "Change Greeter"),
    "ui/unsaved.js": Over("/volumes", ("Change weights", leave_unsaved), "Change weights"),
    "ui/versions.js": Over("{running}/settings", ("Compare version 1",), "Compare two versions"),
    "ui/webhook_secrets.js": Over("{waiting}/webhooks", (re.compile("^(Make a|Roll the) secret$"),), "The new secret"),
    "ui/who.js": Over("/", (re.compile("^Signed in as"),), "Signed in", "group"),
}


def test_everything_that_opens_over_a_page_is_opened_here():
    sources = {file.relative_to(ASSETS).as_posix(): file for file in ASSETS.glob("**/*.js") if "vendor" not in file.parts}
    opens = {name: len(OPENS.findall(file.read_text())) for name, file in sources.items() if name not in MADE_OF}
    assert Counter(name.split()[0] for name in OVER) == {name: number for name, number in opens.items() if number > 0}


def do(page: Page, step: Step) -> None:
    if isinstance(step, (str, re.Pattern)):
        found = page.get_by_role("button", name=step, exact=True).or_(page.get_by_role("menuitem", name=step, exact=True))
        found.first.click()
    else:
        step(page)


@pytest.mark.parametrize("name", OVER)
def test_what_opens_over_a_page_has_no_fault(console, paths, name):
    over = OVER[name]
    tab = console(color_scheme="light").sign_in(path=over.path.format(**paths))
    page = tab.page
    for step in over.steps:
        do(page, step)
    opened = page.get_by_role(over.role, name=over.name)
    expect(opened).to_be_visible()
    expect(opened.locator(".loading")).to_have_count(0)
    found = tab.axe()
    page.emulate_media(color_scheme="dark")
    assert found + tab.axe() == []
