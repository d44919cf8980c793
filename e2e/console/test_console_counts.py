"""The counts of many endpoints, which are read in one request: when that fails, is overtaken by an event, or is not all."""

import threading
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from harness.browser import key_for
from harness.client import ADMIN_KEY, Api
from harness.events import follow
from harness.reverse_proxy import Answer, ReverseProxy
from harness.server import Server
from harness.wait import until

# The counts of more than 50 are read in one request.
MANY = 53
ALL = "/v1/endpoints?includeHealth=true"
AWAY = Answer(503, b'{"error":"the database does not answer"}', [("Content-Type", "application/json")])


@pytest.fixture(scope="module")
def server():
    """What is asked is counted here: without limits."""
    server = Server(flags=("--rate-limits", "off")).start()
    api = Api(server)
    template = api.template()["id"]
    for number in range(MANY):
        api.external(name=f"Many {number:02}", templateId=template)
    yield server
    server.close()


@pytest.fixture(scope="module")
def first(api):
    return api.external(name="A first one")


def waiting_of(page, name: str):
    """The cell with the number of jobs that wait."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True)).get_by_role("cell").nth(1)


def test_counts_that_could_not_be_read_are_read_again(console, server, first):
    is_away, asked = threading.Event(), []
    is_away.set()

    def intercept(_method: str, path: str) -> Answer | None:
        asked.append(path)
        return AWAY if path == ALL and is_away.is_set() else None

    with ReverseProxy(server.port, intercept=intercept) as proxy:
        tab = console(proxy)
        tab.forget("503")
        page = tab.sign_in(path="/endpoints").page
        expect(page.get_by_text("could not be read. The database does not answer.")).to_be_visible()
        expect(waiting_of(page, first.record["name"])).to_have_text("–")
        is_away.clear()
        page.get_by_role("button", name="Try again").click()
        expect(waiting_of(page, first.record["name"])).to_have_text("0")
        expect(page.get_by_text("could not be read")).to_have_count(0)
        assert not [path for path in asked if path.endswith("/health")], "the counts of one endpoint were asked for"
        tab.close()


def test_a_change_during_the_first_read_of_the_counts_is_shown(console, server, first):
    waits = first.health()["jobs"]["inQueue"]
    events = follow(f"{server.url}/v1/events?topics=stats&endpoint={first.id}", ADMIN_KEY)
    is_held, jobs = threading.Event(), []

    def hold(_method: str, path: str, _answer: Answer) -> None:
        """The first answer comes after the events of a change that it does not have."""
        if path == ALL and not is_held.is_set():
            is_held.set()
            jobs.extend(first.run() for _ in range(2))
            assert waits + 2 in (event.json.get("queued") for event in events)

    with ReverseProxy(server.port, record=hold) as proxy:
        tab = console(proxy).sign_in(path="/endpoints")
        expect(waiting_of(tab.page, first.record["name"])).to_have_text(str(waits + 2))
        tab.close()
    for job in jobs:
        first.ok("POST", f"/cancel/{job}")


def test_problems_of_workers_do_not_have_the_counts_of_each_endpoint_read(console, api):
    template = api.template("crash.py")["id"]
    tab = console().sign_in(path="/endpoints")
    asked: list[str] = []
    tab.context.on("request", lambda request: asked.append(request.url.removeprefix(api.server.url)))
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    crashing = [api.endpoint(name=f"Crashes {number}", templateId=template, workersMax=1) for number in range(3)]
    for endpoint in crashing:
        endpoint.run()
    search = tab.page.get_by_label("Search endpoints")
    search.fill("Crashes")
    for endpoint in crashing:
        row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name=endpoint.record["name"], exact=True))
        expect(row).to_contain_text("Crash", timeout=60_000)
    of_each = [path for path in asked if path.endswith("/health")]
    # One that is new has no counts yet in the answer for all.
    assert len(of_each) == len(set(of_each)) <= len(crashing), of_each
    for endpoint in crashing:
        api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 0})


def test_a_key_for_jobs_of_one_and_settings_of_another_is_refused_nothing(console, api, first):
    other = api.external(name="Only its settings")
    key = key_for(api, {"scope": "read", "endpointIds": [other.id]}, {"scope": "jobs", "endpointIds": [first.id]})["key"]
    tab = console()
    answers: list[tuple[int, str]] = []
    tab.context.on("response", lambda answer: answers.append((answer.status, urlsplit(answer.url).path)))
    tab.sign_in(key, f"/endpoints/{first.id}")
    expect(tab.page.get_by_role("button", name="Run a job").first).to_be_visible()
    # The counts come after what is asked about the endpoint itself.
    until(lambda: tab.page.evaluate("1") and any(path.endswith("/health") for _, path in answers), "the counts are there")
    assert not [path for status, path in answers if status == 401 and path != "/console/session"], answers
