"""Dialogs that ask before something is done: they say why it failed, and are for what they were opened for."""

import pytest
from playwright.sync_api import Locator, Page, expect

from harness.browser import intercept, message
from harness.client import Api
from harness.console_pages import GPUS, failed_calls
from harness.receiver import Receiver
from harness.server import Server
from harness.wait import until

WHY = "the disk is full"


@pytest.fixture(scope="module")
def server():
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


def choose(page: Page, menu: str, item: str) -> None:
    page.get_by_role("button", name=menu).click()
    page.get_by_role("menuitem", name=item).click()


def fails_and_then_works(tab, dialog: Locator, action: str, path: str, method: str, said: str) -> None:
    """The dialog shows why its action failed, and closes when that works; a message has what is `said` then."""
    page = tab.page
    tab.forget("503")
    intercept(page, path, lambda route: route.fulfill(status=503, json={"error": WHY, "code": "unavailable"}) if route.request.method == method else route.fallback())
    act = dialog.get_by_role("button", name=action, exact=True)
    act.click()
    expect(dialog.get_by_role("alert")).to_contain_text(WHY, ignore_case=True)
    expect(dialog.get_by_role("alert")).to_be_in_viewport()
    assert tab.axe() == []
    page.unroute(path)
    act.click()
    # The message is looked for first: it is shown for 5 s.
    expect(message(page)).to_contain_text(said)
    expect(dialog).to_have_count(0)


def test_a_purge_that_fails_says_so_in_its_dialog(console, api):
    endpoint = api.external(name="Purged")
    endpoint.run()
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    expect(tab.page.locator(".vrow")).to_have_count(1)
    choose(tab.page, "More", "Purge the queue")
    dialog = tab.page.get_by_role("dialog", name="Cancel 1 waiting job of Purged?")
    fails_and_then_works(tab, dialog, "Cancel the waiting jobs", "**/purge-queue", "POST", said="1 job is cancelled.")
    assert endpoint.ok("GET", "/health")["jobs"]["inQueue"] == 0


def test_a_drain_of_all_that_fails_says_so_in_its_dialog(console, api):
    endpoint = api.endpoint("echo.py", name="Drained", workersMin=1, workersMax=1)
    until(lambda: api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers"), "a worker is there", 60)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/workers")
    tab.page.get_by_role("button", name="Drain all").click()
    fails_and_then_works(tab, tab.page.get_by_role("dialog", name="of Drained?"), "Drain", "**/workers/drain", "POST", said="1 worker of Drained ends after its jobs.")


def test_a_delivery_that_fails_says_so_in_its_dialog(console, api):
    endpoint = api.external(name="Called")
    with Receiver(500, 500, 200) as receiver:
        endpoint.cancel(endpoint.run(webhook=receiver.url))
        until(lambda: failed_calls(api), "the call is given up", 30)
        tab = console().sign_in(path=f"/endpoints/{endpoint.id}/webhooks")
        choose(tab.page, "Deliver failed ones again", "All")
        dialog = tab.page.get_by_role("dialog", name="Deliver 1 failed call of Called again?")
        fails_and_then_works(tab, dialog, "Deliver again", "**/webhooks/redeliver", "POST", said="1 call is delivered again.")
        receiver.wait_for(3)


def test_a_key_that_cannot_be_revoked_says_so_in_its_dialog(console, api):
    record = api.ok("POST", "/v1/apikeys", json={"name": "stubborn", "scopes": [{"scope": "read"}]})
    tab = console().sign_in(path="/api-keys")
    tab.page.get_by_role("row").filter(has_text="stubborn").get_by_role("button", name="Revoke").click()
    dialog = tab.page.get_by_role("dialog", name="Revoke stubborn?")
    fails_and_then_works(tab, dialog, "Revoke it", f"**/v1/apikeys/{record['id']}", "DELETE", said="stubborn is revoked.")


def maxima(api: Api, *endpoints) -> list[int]:
    return [api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] for endpoint in endpoints]


def test_a_pause_is_for_the_endpoints_of_the_time_when_it_was_asked_for(console, api):
    first = api.external(name="Crane one", workersMax=3)
    second = api.external(name="Crane two", workersMax=4)
    tab = console().sign_in(path="/endpoints?q=crane")
    page = tab.page
    expect(page.get_by_role("row").filter(has_text="Crane")).to_have_count(2)
    choose(page, "More", "Pause 2 of the list")
    dialog = page.get_by_role("dialog", name="Pause 2 endpoints?")
    expect(dialog).to_contain_text("Crane one, Crane two")
    third = api.external(name="Crane three", workersMax=5)
    expect(page.locator("tbody tr").filter(has_text="Crane")).to_have_count(3)
    expect(dialog).to_be_visible()
    expect(dialog).not_to_contain_text("Crane three")
    dialog.get_by_role("button", name="Pause them").click()
    expect(message(page)).to_contain_text("2 endpoints are paused.")
    assert maxima(api, first, second, third) == [0, 0, 5]


def test_a_pause_of_many_that_fails_goes_on_with_those_that_are_left(console, api):
    first = api.external(name="Winch one", workersMax=3)
    second = api.external(name="Winch two", workersMax=4)
    tab = console().sign_in(path="/endpoints?q=winch")
    page = tab.page
    expect(page.get_by_role("row").filter(has_text="Winch")).to_have_count(2)
    choose(page, "More", "Pause 2 of the list")
    dialog = page.get_by_role("dialog", name="Pause")
    expect(dialog).to_contain_text("Winch one, Winch two")
    changed = []
    page.on("request", lambda request: changed.append(request.url) if request.method == "PATCH" else None)
    fails_and_then_works(tab, dialog, "Pause them", f"**/v1/endpoints/{second.id}", "PATCH", said="2 endpoints are paused.")
    assert maxima(api, first, second) == [0, 0]
    assert len([url for url in changed if url.endswith(first.id)]) == 1
    # What was before is still known.
    choose(page, "More", "Resume 2 of the list")
    page.get_by_role("button", name="Resume them").click()
    expect(message(page)).to_contain_text("2 endpoints are resumed.")
    assert maxima(api, first, second) == [3, 4]


def test_a_question_is_taken_back_after_4_s(console, api):
    endpoint = api.external(name="Asked about")
    job = endpoint.run()
    tab = console()
    tab.context.clock.install()
    page = tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    cancel, sure = page.get_by_role("button", name="Cancel job"), page.get_by_role("button", name="Sure?")
    expect(cancel).to_be_visible()
    # From here on, the page's time passes only as it is told. That begins later than this computer stands still at times.
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 20)
    cancel.click()
    expect(sure).to_be_visible()
    page.clock.run_for(3_900)
    expect(sure).to_be_visible()
    # Besides the 4 s, up to 100 ms until the page counts them, and a frame.
    page.clock.run_for(300)
    expect(sure).to_have_count(0)
    # What is pressed then asks again.
    cancel.click()
    expect(sure).to_be_visible()
    assert endpoint.status(job)["status"] == "IN_QUEUE"
