"""The list of requests: searched by tokens, counted by state, and changed, downloaded and purged as a whole."""

import csv
import io
import json
import re
import threading
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from harness.browser import PHONE, intercept, key_for, message
from harness.client import Api, Endpoint, unique
from harness.fake_worker import FakeWorker
from harness.keyboard import press
from harness.reverse_proxy import ReverseProxy
from harness.server import Server
from harness.wait import until

QUEUED, COMPLETED, FAILED = 6, 4, 3
BIG = 9007199254740993123


@pytest.fixture(scope="module")
def server():
    server = Server(flags=("--rate-limits", "off")).start()
    yield server
    server.close()


class Mixed:
    """An endpoint with jobs in several states: the completed ones ran on version 1, the failed ones on version 2."""

    def __init__(self, api: Api):
        self.endpoint: Endpoint = api.external(name="Mixed", slug=unique("mixed"))
        self.worker = FakeWorker(self.endpoint)
        self.completed = self.end(COMPLETED, {"output": {"n": BIG}}, city="Bremen")
        self.endpoint.patch(templateId=api.template(dockerStartCmd=["true"])["id"])
        self.failed = self.end(FAILED, {"error": "CUDA out of memory"}, city="Oslo Harbour")
        self.queued = [self.endpoint.run({"customer": {"id": n}}) for n in range(QUEUED)]
        self.path = f"/endpoints/{self.endpoint.id}/requests"

    def end(self, count: int, answer: dict, city: str) -> list[str]:
        jobs = [self.endpoint.run({"city": city, "n": n}) for n in range(count)]
        left = set(jobs)
        while left:
            for job in self.worker.take_batch(10):
                self.worker.done(job["id"], answer)
                left.discard(job["id"])
        return jobs


@pytest.fixture
def mixed(api) -> Mixed:
    return Mixed(api)


def row(page: Page, job: str):
    return page.get_by_role("row").filter(has_text=job[-12:])


def line(page: Page):
    return page.get_by_role("combobox", name="Search requests")


def chip(page: Page, text: str):
    return page.get_by_role("group", name="State").get_by_role("button", name=re.compile(f"^{text}$"))


def expect_only(page: Page, jobs: list[str]) -> None:
    """Only these jobs are listed, and the search has come to its end."""
    expect(page.get_by_text(f"{len(jobs)} loaded, all there are")).to_be_visible()
    for job in jobs:
        expect(row(page, job)).to_be_visible()


# Searches, with the jobs that they find.
SEARCHES = [
    ("state:failed", "failed"),
    ("state:failed,timed_out tries:1", "failed"),
    ("error:memory", "failed"),
    ('error:~"out of memory"', "failed"),
    ("out of memory", "failed"),
    ("CUDA", "failed"),
    ("version:2 state:failed", "failed"),
    ("version:1", "completed"),
    ('input.city:"Oslo Harbour"', "failed"),
    ("input.city:Bremen key:admin after:1h ran:>0ms", "completed"),
    ("state:queued before:0s waited:>1ms", "queued"),
    (str(BIG), "completed"),
]


def test_tokens_find_jobs(console, mixed):
    page = console().sign_in(path=mixed.path).page
    # The styles of this page stand over those of every page: the field fills its place.
    assert line(page).bounding_box()["width"] == page.locator(".search-line").bounding_box()["width"] > 300
    for search, found in SEARCHES:
        # From all of them, so that what the search before found does not count.
        line(page).fill("")
        page.keyboard.press("Enter")
        expect_only(page, mixed.queued + mixed.completed + mixed.failed)
        line(page).fill(search)
        page.keyboard.press("Enter")
        expect_only(page, getattr(mixed, found))
        expect(page.get_by_role("grid").get_by_role("row"), search).to_have_count(1 + len(getattr(mixed, found)))


def test_a_search_can_be_sent_to_a_colleague(console, mixed):
    search, found = "input.city:Bremen key:admin after:1h ran:>0ms", mixed.completed
    page = console().sign_in(path=f"{mixed.path}?{urlencode({'q': search})}").page
    expect(line(page)).to_have_value(search)
    expect_only(page, found)
    page.reload()
    expect(line(page)).to_have_value(search)
    expect_only(page, found)


def test_a_job_is_found_by_its_worker_its_input_and_its_retries(console, mixed):
    page = console().sign_in(path=mixed.path).page
    line(page).fill(f"worker:{mixed.worker.id}")
    expect_only(page, mixed.completed + mixed.failed)
    line(page).fill("input.customer.id:3")
    expect_only(page, [mixed.queued[3]])
    line(page).fill("tries:>1")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    # What matches later comes by itself.
    line(page).fill("input.customer.id:70")
    expect(page.get_by_text("No job matches.")).to_be_visible()
    job = mixed.endpoint.run({"customer": {"id": 70}})
    expect(row(page, job)).to_be_visible()


def test_a_list_that_shows_no_more_rows_says_so(console, mixed):
    tab = console().sign_in()
    # As it is with 400 000 rows.
    rows = len(mixed.queued) + len(mixed.completed)
    intercept(tab.page, "**/request_list.js", lambda route: route.fulfill(response=(answer := route.fetch()), body=answer.text().replace("= 400000;", f"= {rows};")))
    page = tab.go(mixed.path)
    expect(page.get_by_text("the most that a list shows: narrow the filter for older ones")).to_be_visible()
    line(page).fill("state:failed")
    page.keyboard.press("Enter")
    expect_only(page, mixed.failed)


def test_an_empty_list_says_what_is_kept_or_how_much_the_filter_hides(console, api):
    endpoint = api.external(example={"prompt": "a harbour"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    kept = "No job in the last 30 min. Finished ones are kept 30 min; resultRetentionMs changes that."
    expect(page.get_by_text(kept)).to_be_visible()
    expect(page.locator(".code-line")).to_contain_text(f"/v2/{endpoint.id}/run' \\")
    expect(page.locator(".code-line")).to_contain_text("""-d '{"input":{"prompt":"a harbour"}}'""")
    # No filter hides what is not there.
    line(page).fill("state:failed")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=state"))
    expect(page.get_by_text(kept)).to_be_visible()
    endpoint.run({})
    expect(page.get_by_text("No job matches. 1 is here without the filter.")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_text("1 loaded, all there are")).to_be_visible()


@pytest.mark.parametrize("example", [{"input": {"prompt": "a harbour"}}, {"prompt": "a harbour"}], ids=["a-body", "an-input"])
def test_what_is_copied_sends_the_input_of_the_example_once(console, api, example):
    endpoint = api.external(example=example)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    body = """-d '{"input":{"prompt":"a harbour"}}'"""
    expect(page.locator(".code-line")).to_contain_text(body)
    page.get_by_role("button", name="Copy as").click()
    page.get_by_role("menuitem", name="curl").click()
    expect(message(page)).to_contain_text("Copied as curl.")
    # A page may not read the clipboard; a person may paste.
    line(page).focus()
    page.keyboard.press("Control+v")
    expect(line(page)).to_have_value(re.compile(re.escape(body)))
    page.goto(page.url.split("/requests")[0] + "/webhooks")
    expect(page.locator(".code-line")).to_contain_text("""-d '{"input":{"prompt":"a harbour"},"webhook":"https://""")


# Types a search and Enter, and clears it by the page's button while the browser is too busy for the timer of what was typed.
CLEAR_WHILE_BUSY = """async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const field = document.getElementById("search");
  field.focus();
  field.value = "state:failed";
  const begun = performance.now();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await frame();
  await frame();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const button = () => [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Show all");
  while (!button()) await frame();
  while (performance.now() < begun + 400);
  button().click();
}"""


def test_a_search_that_was_cleared_does_not_come_back(console, api):
    endpoint = api.external()
    endpoint.run({})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests").page
    expect(page.get_by_text("1 loaded, all there are")).to_be_visible()
    for _ in range(5):
        page.evaluate(CLEAR_WHILE_BUSY)
        expect(page.get_by_text("1 loaded, all there are")).to_be_visible()
        expect(line(page)).to_have_value("")
        expect(page).not_to_have_url(re.compile("q="))


# Searches that cannot be, with what is said of them.
FAULTS = [
    ("state:lost", "`state:` takes queued, running, completed, failed, timed_out, cancelled"),
    ("waited:soon", "`waited:` takes a duration, such as waited:10min."),
    ("ran:2026-01-31", "`ran:` takes a duration"),
    ("tries:many", "`tries:` takes a number"),
    ("version:new", "`version:` takes the number of a version"),
    ("worker:a/b", "`worker:` takes the whole id of a worker"),
    ("key:mine", "`key:` takes the id of an API key, or admin."),
    ("worker:abcdefgh worker:ijklmnop", "`worker:` is there twice."),
    ("x" * 201, "A text has at most 200 characters."),
]


def test_a_fault_in_a_search_is_said_in_words(console, mixed):
    page = console().sign_in(path=mixed.path).page
    for search, fault in FAULTS:
        line(page).fill(search)
        expect(page.get_by_text(fault)).to_be_visible()
        expect(line(page)).to_have_attribute("aria-invalid", "true")
        expect(line(page)).to_have_attribute("aria-describedby", "search-fault")
        page.get_by_role("button", name="Clear the search").click()
        expect(page.get_by_text(fault)).to_have_count(0)
        expect(row(page, mixed.queued[0])).to_be_visible()


def test_tokens_are_completed_with_the_keyboard_alone(console, api, mixed):
    key = key_for(api, {"scope": "jobs"}, name="the nightly run")
    tab = console().sign_in(path=mixed.path)
    page = tab.page
    expect(row(page, mixed.queued[0])).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("sta")
    expect(page.get_by_role("option", name="state:")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(line(page)).to_have_attribute("aria-activedescendant", "search-0")
    page.keyboard.press("Enter")
    page.keyboard.type("failed,com")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(line(page)).to_have_value("state:failed,completed ")
    expect_only(page, mixed.failed + mixed.completed)
    # What is typed on is not overtaken by the search.
    page.keyboard.type("worker:")
    expect(page.get_by_role("option", name=mixed.worker.id)).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.type("version:")
    expect(page.get_by_role("option", name="the present one")).to_have_text(re.compile("^version:2"))
    page.keyboard.press("Escape")
    page.keyboard.type("2 ")
    expect_only(page, mixed.failed)
    page.keyboard.type("key:")
    expect(page.get_by_role("option").filter(has_text="the nightly run")).to_contain_text(key["id"])


def test_the_chips_count_the_jobs_of_each_state_as_they_change(console, mixed):
    tab = console().sign_in(path=mixed.path)
    page = tab.page
    for word, number in (("Queued", QUEUED), ("Running", 0), ("Completed", COMPLETED), ("Failed", FAILED), ("Timed out", 0), ("Cancelled", 0)):
        expect(chip(page, f"{word} {number}")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    mixed.endpoint.ok("POST", f"/cancel/{mixed.queued[0]}")
    expect(chip(page, f"Queued {QUEUED - 1}")).to_be_visible()
    expect(chip(page, "Cancelled 1")).to_be_visible()
    chip(page, f"Failed {FAILED}").click()
    expect(chip(page, f"Failed {FAILED}")).to_have_attribute("aria-pressed", "true")
    expect_only(page, mixed.failed)
    mixed.endpoint.ok("POST", f"/retry/{mixed.failed[0]}")
    # It has left the filter, and stays where it is.
    expect(row(page, mixed.failed[0])).to_have_class(re.compile("gone"))
    expect(chip(page, f"Failed {FAILED - 1}")).to_be_visible()


def test_a_search_says_how_far_it_is_and_is_stopped_and_goes_on(console, api):
    endpoint = api.external(name="Searched")
    # The server has no condition for an exact number of attempts: it lists all, and the page compares them.
    for n in range(450):
        endpoint.run({"city": "Bremen", "n": n})
    gate = threading.Event()

    def hold(method: str, path: str) -> None:
        if "/requests?" in path and "cursor=" in path:
            gate.wait(60)

    with ReverseProxy(api.server.port, intercept=hold) as proxy:
        tab = console(proxy).sign_in(path=f"/endpoints/{endpoint.id}/requests")
        page = tab.page
        line(page).fill("tries:9")
        expect(page.get_by_text("searched 200 of 450 jobs")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        gate.set()
        expect(page.get_by_text("searched 400 of 450 jobs")).to_be_visible()
        expect(page.get_by_text("No job was found so far.")).to_be_visible()
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_text("No job matches.")).to_be_visible()
        tab.close()


def selection(page: Page):
    return page.get_by_role("group", name="Chosen jobs")


def test_the_list_of_all_goes_on_when_an_endpoint_is_made_or_deleted(console, api, mixed):
    tab = console().sign_in(path="/requests")
    page = tab.page
    kept = row(page, mixed.failed[0])
    kept.click(modifiers=["Control"])
    expect(selection(page)).to_contain_text("1 chosen")
    added = api.external(name="Added meanwhile")
    job = added.run()
    expect(row(page, job)).to_contain_text("Added meanwhile")
    expect(kept).to_have_attribute("aria-selected", "true")
    expect(selection(page)).to_contain_text("1 chosen")
    assert api.call("DELETE", f"/v1/endpoints/{added.id}").status_code == 204
    expect(row(page, job)).to_have_class(re.compile("gone"))
    expect(kept).to_have_attribute("aria-selected", "true")
    # A text is searched in each endpoint.
    page.goto(f"{tab.root}/requests?q=Oslo")
    kept.click(modifiers=["Control"])
    found = api.external(name="Added to the search").run({"city": "Oslo Harbour"})
    expect(row(page, found)).to_contain_text("Added to the search")
    expect(selection(page)).to_contain_text("1 chosen")


def test_a_search_goes_on_in_another_endpoint_when_one_of_those_searched_is_deleted(fresh_server, console):
    server = fresh_server()
    api = Api(server)
    for number in range(21):
        api.external(name=f"Berth {number}")
    *searched, other = [Endpoint(api, record) for record in api.ok("GET", "/v1/endpoints")]
    # The one that is not searched has the oldest job, the newest, and one between.
    hit = {"city": "Oslo Harbour"}
    added = [other.run(hit)]
    kept = [endpoint.run(hit) for endpoint in searched[:10]]
    added.append(other.run(hit))
    kept += [endpoint.run(hit) for endpoint in searched[10:]]
    added.append(other.run(hit))
    page = console(server).sign_in(path="/requests?q=Oslo").page
    expect_only(page, kept)
    expect(page.get_by_text("searched 20 of 20 jobs")).to_be_visible()
    assert api.call("DELETE", f"/v1/endpoints/{searched[3].id}").status_code == 204
    expect(row(page, kept[3])).to_have_class(re.compile("gone"))
    expect_only(page, kept + added)
    expect(page.get_by_text("searched 22 of 22 jobs")).to_be_visible()
    ids = page.locator("[role=row] .c-job").evaluate_all("(cells) => cells.map((cell) => cell.title)")
    assert ids == sorted(kept + added, reverse=True)


def test_a_range_of_rows_is_chosen_and_changed(console, mixed):
    tab = console().sign_in(path=mixed.path)
    page = tab.page
    newest = mixed.queued[::-1]
    row(page, newest[0]).click(modifiers=["Control"])
    row(page, newest[3]).click(modifiers=["Shift"])
    expect(selection(page)).to_contain_text("4 chosen")
    row(page, newest[1]).click(modifiers=["Control"])
    expect(selection(page)).to_contain_text("3 chosen")
    expect(row(page, newest[2])).to_have_attribute("aria-selected", "true")
    expect(row(page, newest[1])).to_have_attribute("aria-selected", "false")
    assert tab.axe() == []
    selection(page).get_by_role("button", name="Cancel 3").click()
    dialog = page.get_by_role("dialog", name="Cancel 3 jobs of Mixed?")
    expect(dialog).to_contain_text("It cannot be undone.")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Keep them").click()
    expect(dialog).to_have_count(0)
    assert mixed.endpoint.health()["jobs"]["inQueue"] == QUEUED
    selection(page).get_by_role("button", name="Cancel 3").click()
    dialog.get_by_role("button", name="Cancel the jobs").click()
    expect(page.get_by_role("list", name="Tasks")).to_contain_text("3 jobs cancelled")
    for at in (0, 2, 3):
        expect(row(page, newest[at])).to_contain_text("Cancelled")
    expect(row(page, newest[1])).to_contain_text("Queued")
    expect(selection(page)).to_have_count(0)
    page.get_by_role("list", name="Tasks").get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("list", name="Tasks")).to_be_hidden()
    assert mixed.endpoint.ok("GET", "/bulk") == []


def test_all_that_match_are_retried_with_the_keyboard_alone(console, mixed):
    tab = console().sign_in(path=f"{mixed.path}?q=input.city:%22Oslo+Harbour%22")
    page = tab.page
    expect_only(page, mixed.failed)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("X")
    expect(selection(page)).to_contain_text("2 chosen")
    page.keyboard.press("Escape")
    expect(selection(page)).to_have_count(0)
    page.keyboard.press("x")
    press(page, f"All {FAILED} that match")
    expect(selection(page).get_by_role("button", name=f"Retry {FAILED}")).to_be_visible()
    expect(selection(page)).to_contain_text(f"All {FAILED} that match")
    press(page, f"Retry {FAILED}")
    dialog = page.get_by_role("dialog", name=f"Retry {FAILED} jobs of Mixed?")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Retry the jobs")).not_to_have_attribute("aria-disabled", "true")
    press(page, "Retry the jobs")
    expect(page.get_by_role("list", name="Tasks")).to_contain_text(f"{FAILED} jobs queued again")
    for job in mixed.failed:
        assert mixed.endpoint.status(job)["status"] == "IN_QUEUE"
    task = mixed.endpoint.ok("GET", "/bulk")[0]
    assert (task["do"], task["done"], task["failed"]) == ("retry", FAILED, 0)


def test_all_that_match_in_every_endpoint_are_deleted(fresh_server, console):
    server = fresh_server(flags=("--rate-limits", "off"))
    api = Api(server)
    mixed = Mixed(api)
    other = api.external(name="Another")
    job = other.run({"mark": mixed.endpoint.id})
    other.ok("POST", f"/cancel/{job}")
    own = mixed.endpoint.run({"mark": mixed.endpoint.id})
    mixed.endpoint.ok("POST", f"/cancel/{own}")
    page = console(server).sign_in(path=f"/requests?q=input.mark:{mixed.endpoint.id}").page
    expect_only(page, [own, job])
    row(page, job).click(modifiers=["Control"])
    selection(page).get_by_role("button", name="All 2 that match").click()
    selection(page).get_by_role("button", name="Delete 2").click()
    dialog = page.get_by_role("dialog", name="Delete 2 jobs of 2 endpoints?")
    dialog.get_by_role("button", name="Delete the jobs").click()
    expect(page.get_by_role("list", name="Tasks")).to_contain_text("Another: 1 job deleted")
    expect(page.get_by_role("list", name="Tasks")).to_contain_text("Mixed: 1 job deleted")
    assert other.call("GET", f"/status/{job}").status_code == 404
    assert other.health()["jobs"]["inQueue"] == 0 and mixed.endpoint.health()["jobs"]["inQueue"] == QUEUED


def test_a_task_of_many_jobs_shows_how_far_it_is_and_is_stopped(console, api):
    endpoint = api.external(name="Many")
    jobs = [endpoint.run({"n": n}) for n in range(2500)]
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    page = tab.page
    row(page, jobs[-1]).click(modifiers=["Control"])
    selection(page).get_by_role("button", name=re.compile("^All 2.500 that match$")).click()
    selection(page).get_by_role("button", name=re.compile("^Cancel 2.500$")).click()
    page.get_by_role("button", name="Cancel the jobs").click()
    tasks = page.get_by_role("list", name="Tasks")
    expect(tasks.get_by_role("progressbar")).to_have_count(1)
    # Pressed too late, the button forgets a task that is done. The list is as it stays once the server has answered.
    with page.expect_response(lambda answer: answer.request.method == "DELETE" and "/bulk/" in answer.url):
        tasks.get_by_role("button", name=re.compile("Stop|Dismiss")).click()
    # It is over, stopped or done before: what it says is what was done.
    until(lambda: all(task["state"] != "running" for task in endpoint.ok("GET", "/bulk")), "the task ends")
    counts = endpoint.ok("GET", "/requests?counts=true&limit=1")["counts"]
    assert counts["IN_QUEUE"] + counts["CANCELLED"] == 2500 and counts["CANCELLED"] > 0, counts
    expect(chip(page, f"Cancelled {spaced(counts['CANCELLED'])}")).to_be_visible()
    if endpoint.ok("GET", "/bulk"):
        expect(tasks).to_contain_text(re.compile(f"{spaced(counts['CANCELLED'])} jobs cancelled"))


def spaced(number: int) -> str:
    """The pattern of a number as the console writes it. The accessible name of an element has a plain space where its text has a thin one."""
    return f"{number:,}".replace(",", r"\s")


def download(page: Page, act) -> str:
    with page.expect_download() as found:
        act()
    with open(found.value.path(), encoding="utf-8", newline="") as file:
        return file.read()


def test_jobs_are_downloaded_as_lines_and_as_a_table(console, mixed):
    page = console().sign_in(path=f"{mixed.path}?state=COMPLETED").page
    expect_only(page, mixed.completed)

    def choose(name: str) -> None:
        page.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name=name).click()

    def choose_lines() -> None:
        choose("Download as JSONL")
        # The message is looked for before the file is waited for: it is shown for 5 s.
        expect(message(page)).to_contain_text(f"{COMPLETED} jobs are in the file.")

    text = download(page, choose_lines)
    assert [json.loads(found)["id"] for found in text.splitlines()] == mixed.completed[::-1]
    # Numbers keep all their digits.
    assert text.count(f'"output":{{"n":{BIG}}}') == COMPLETED
    rows = list(csv.DictReader(io.StringIO(download(page, lambda: choose("Download as CSV")))))
    assert [(found["id"], found["status"], found["endpoint"]) for found in rows] == [
        (job, "COMPLETED", "Mixed") for job in mixed.completed[::-1]
    ]
    row(page, mixed.completed[1]).click(modifiers=["Control"])
    text = download(page, selection(page).get_by_role("button", name="Download the chosen jobs as JSONL").click)
    assert [json.loads(found)["id"] for found in text.splitlines()] == [mixed.completed[1]]


def test_the_queue_is_purged_from_the_menu_with_the_keyboard_alone(console, mixed):
    tab = console().sign_in(path=mixed.path)
    page = tab.page
    expect(row(page, mixed.queued[0])).to_be_visible()
    press(page, "More")
    expect(page.get_by_role("menuitem", name="Choose jobs")).to_be_focused()
    assert tab.axe() == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="More")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Choose jobs")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=f"Cancel {QUEUED} waiting jobs of Mixed?")
    expect(dialog).to_contain_text("None runs.")
    press(page, "Cancel the waiting jobs")
    expect(message(page)).to_contain_text(f"{QUEUED} jobs are cancelled.")
    expect(chip(page, f"Cancelled {QUEUED}")).to_be_visible()
    press(page, "More")
    expect(page.get_by_role("menuitem", name="Purge the queue")).to_have_attribute("title", "No job waits.")


def test_jobs_are_chosen_with_a_finger_on_a_phone(console, mixed):
    tab = console(width=PHONE, has_touch=True).sign_in(path=mixed.path)
    page = tab.page
    page.get_by_role("button", name="More").tap()
    assert tab.sideways() == 0
    page.get_by_role("menuitem", name="Choose jobs").tap()
    expect(selection(page)).to_contain_text("Press the jobs to choose")
    row(page, mixed.queued[-1]).tap()
    row(page, mixed.queued[-2]).tap()
    expect(selection(page)).to_contain_text("2 chosen")
    expect(selection(page).get_by_role("button", name="Choose none")).to_be_in_viewport()
    assert tab.axe() == [] and tab.sideways() == 0
    expect(selection(page).get_by_role("button", name="Delete")).to_have_count(0)
    selection(page).get_by_role("button", name="Cancel 2").tap()
    page.get_by_role("button", name="Cancel the jobs").tap()
    expect(row(page, mixed.queued[-1])).to_contain_text("Cancelled")
    assert tab.axe() == [] and tab.sideways() == 0


def test_a_key_that_reads_downloads_and_changes_nothing(console, api, mixed):
    key = key_for(api, {"scope": "read", "endpointIds": [mixed.endpoint.id]})
    answer = mixed.endpoint.call("POST", "/bulk", json={"do": "delete", "ids": [mixed.completed[0]]})
    assert answer.status_code == 202, answer.text
    page = console().sign_in(key["key"], mixed.path).page
    expect(page.get_by_role("list", name="Tasks")).to_contain_text("1 job deleted")
    row(page, mixed.queued[0]).click(modifiers=["Control"])
    expect(selection(page)).to_contain_text("1 chosen")
    names = selection(page).get_by_role("button").all_inner_texts()
    assert [name for name in names if not name.startswith("All ")] == ["JSONL", "CSV", "Choose none"], names
    expect(page.get_by_role("list", name="Tasks").get_by_role("button")).to_have_count(0)
    page.get_by_role("button", name="More").click()
    expect(page.get_by_role("menuitem", name="Purge the queue")).to_have_count(0)


def test_a_request_is_shown_beside_the_list_and_the_address_holds_it(console, mixed):
    tab = console().sign_in(path=f"{mixed.path}?state=COMPLETED")
    page, newer, older = tab.page, mixed.completed[1], mixed.completed[0]
    lists = page.locator(".grid-scroll")
    row(page, newer).click(modifiers=["Control"])
    expect(row(page, newer)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("link", name="Open as a page")).to_have_count(0)
    page.keyboard.press("Escape")
    row(page, newer).click()
    panel = page.get_by_role("region", name=f"Request {newer[-12:]}")
    expect(panel.get_by_role("heading", name=newer, level=2)).to_be_visible()
    expect(panel.get_by_role("region", name="Output")).to_contain_text(str(BIG))
    expect(page).to_have_url(f"{tab.root}{mixed.path}?state=COMPLETED&job={newer}")
    expect(row(page, newer)).to_have_attribute("aria-current", "true")
    assert tab.axe() == []
    # The keys stay those of the list.
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=older)).to_be_visible()
    expect(panel).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name=older, level=2)).to_be_visible()
    expect(row(page, older)).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Close the request").click()
    expect(page.get_by_role("heading", name=older)).to_have_count(0)
    expect(lists).to_be_focused()
    expect(page).to_have_url(f"{tab.root}{mixed.path}?state=COMPLETED")
    row(page, older).click()
    page.get_by_role("button", name="Copy the id").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name=older)).to_have_count(0)
    expect(lists).to_be_focused()


def test_a_job_that_is_gone_says_when_it_was_made_and_how_long_jobs_are_kept(console, api):
    endpoint = api.external()
    job = endpoint.run({})
    endpoint.cancel(job)
    assert endpoint.call("POST", "/bulk", json={"do": "delete", "ids": [job]}).status_code == 202
    until(lambda: endpoint.call("GET", f"/status/{job}").status_code == 404, "deleted", 10)
    tab = console()
    tab.forget("404")
    page = tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    expect(page.get_by_text("Finished jobs of this endpoint are kept 30 min.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"By its id, it was made \d+ s ago\."))).to_be_visible()


def test_the_browsers_back_closes_the_request_beside_the_list(console, mixed):
    tab = console().sign_in(path=mixed.path)
    page, newer, older = tab.page, mixed.completed[1], mixed.completed[0]
    lists = f"{tab.root}{mixed.path}?state=COMPLETED"
    chip(page, r"Completed\s*4").click()
    row(page, newer).click()
    expect(page.get_by_role("heading", name=newer, level=2)).to_be_visible()
    # One goes from job to job, and back to the list.
    row(page, older).click()
    expect(page.get_by_role("heading", name=older, level=2)).to_be_visible()
    page.get_by_role("button", name="Copy the id").focus()
    page.go_back()
    expect(page).to_have_url(lists)
    expect(page.locator(".job-panel")).to_have_count(0)
    expect(page.locator(".grid-scroll")).to_be_focused()
    page.go_forward()
    expect(page.get_by_role("heading", name=older, level=2)).to_be_visible()
    page.go_back()
    expect(page).to_have_url(lists)
    # What was opened and closed leaves nothing to go back to.
    row(page, newer).click()
    page.get_by_role("button", name="Close the request").click()
    expect(page).to_have_url(lists)
    # A filter that was changed beside the job stays when the job is closed.
    row(page, newer).click()
    chip(page, "All").click()
    page.get_by_role("button", name="Close the request").click()
    expect(page).to_have_url(f"{tab.root}{mixed.path}")
    page.go_back()
    expect(page).to_have_url(lists)


def test_a_request_of_all_is_beside_the_list_where_there_is_room_and_else_a_page(console, mixed):
    job = mixed.completed[0]
    tab = console().sign_in(path="/requests")
    page, slug = tab.page, mixed.endpoint.record["slug"]
    row(page, job).click()
    expect(page.get_by_role("heading", name=job, level=2)).to_be_visible()
    sent = f"/requests?job={job}&endpoint={slug}"
    expect(page).to_have_url(f"{tab.root}{sent}")
    phone = console(width=PHONE).sign_in(path=sent)
    expect(phone.page.get_by_role("heading", name=job, level=1)).to_be_visible()
    expect(phone.page).to_have_url(f"{tab.root}/endpoints/{slug}/requests/{job}")
    # In two lines, a row still names its endpoint.
    phone.go("/requests")
    expect(row(phone.page, job)).to_contain_text(mixed.endpoint.record["name"])
    row(phone.page, job).scroll_into_view_if_needed()
    expect(row(phone.page, job).get_by_text(mixed.endpoint.record["name"])).to_be_in_viewport()
    assert phone.sideways() <= 0
