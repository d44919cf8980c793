"""The page of webhooks: failed calls are delivered again."""

import re

import pytest
from playwright.sync_api import expect

from harness.client import Api
from harness.browser import PHONE, key_for, message
from harness.console_pages import GPUS, failed_calls
from harness.fake_worker import FakeWorker
from harness.gate import Gate
from harness.keyboard import press
from harness.receiver import Receiver
from harness.server import QUICK
from harness.wait import until


def test_failed_calls_since_a_time_are_delivered_again(fresh_server, console):
    server = fresh_server(config=GPUS)
    api = Api(server)
    endpoint = api.external(name="Calling")
    worker = FakeWorker(endpoint)
    # Each call is tried twice, and once more when the page asks for it.
    with Receiver(500, 500, 500, 500, 200) as receiver:
        jobs = [endpoint.run(webhook=receiver.url) for _ in range(2)]
        for _ in jobs:
            worker.done(worker.take()["id"], {"output": 1})
        until(lambda: len(failed_calls(api)) == 2, "both calls are given up", 30)
        phone = console(server, width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/webhooks")
        phone.page.get_by_role("button", name="Deliver failed ones again").tap()
        expect(phone.page.get_by_role("menuitem", name="All")).to_be_in_viewport(ratio=1)
        assert phone.axe() == [] and phone.sideways() == 0
        tab = console(server).sign_in(path=f"/endpoints/{endpoint.id}/webhooks")
        page = tab.page
        page.get_by_role("button", name="Deliver failed ones again").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="Of the last 15 min")).to_be_focused()
        assert tab.axe() == []
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Deliver 2 failed calls of Calling again?")
        expect(dialog).to_contain_text("They are to 1 receiver.")
        assert tab.axe() == []
        press(page, "Deliver again")
        expect(message(page)).to_contain_text("2 calls are delivered again.")
        receiver.wait_for(6)
        until(lambda: not failed_calls(api), "both calls are delivered", 30)


def test_failed_calls_of_all_endpoints_are_delivered_again(fresh_server, console):
    server = fresh_server(config=GPUS)
    api = Api(server)
    with Receiver(500, 500, 500, 500, 200) as receiver:
        endpoints = [api.external(name=name) for name in ("Calling", "Calling, too")]
        for endpoint in endpoints:
            endpoint.cancel(endpoint.run(webhook=receiver.url))
        until(lambda: len(failed_calls(api)) == 2, "both calls are given up", 30)
        # Another key has no button for what it may not do, and only its own endpoints in the numbers.
        reader = console(server).sign_in(key_for(api, {"scope": "read"})["key"], path="/webhooks")
        expect(reader.page.get_by_role("row").filter(has_text="Failed")).to_have_count(2)
        expect(reader.page.get_by_role("button", name="Deliver failed ones again")).to_have_count(0)
        key = key_for(api, {"scope": "read"}, {"scope": "jobs", "endpointIds": [endpoints[0].id]})["key"]
        some = console(server).sign_in(key, path="/webhooks").page
        some.get_by_role("button", name="Deliver failed ones again").click()
        some.get_by_role("menuitem", name="All").click()
        expect(some.get_by_role("dialog", name="Deliver 1 failed call of all endpoints again?")).to_be_visible()
        tab = console(server).sign_in(path="/webhooks")
        page = tab.page
        page.get_by_role("button", name="Deliver failed ones again").click()
        page.get_by_role("menuitem", name="Of the last hour").click()
        dialog = page.get_by_role("dialog", name="Deliver 2 failed calls of all endpoints again?")
        expect(dialog).to_contain_text("They are to 1 receiver, of 2 endpoints.")
        dialog.get_by_role("button", name="Deliver again").click()
        expect(message(page)).to_contain_text("2 calls are delivered again.")
        receiver.wait_for(6)
        until(lambda: not failed_calls(api), "both calls are delivered", 30)


def test_a_call_that_is_tried_again_says_when(fresh_server, console):
    server = fresh_server(config=QUICK + "webhook_retry_delay_ms = 600000\n")
    endpoint = Api(server).external(name="Refused")
    with Receiver(500) as receiver:
        job = endpoint.run(webhook=receiver.url)
        endpoint.cancel(job)
        page = console(server).sign_in(path=f"/endpoints/{endpoint.id}/webhooks").page
        row = page.get_by_role("row").filter(has_text=job[-12:])
        expect(row).to_contain_text(re.compile(r"Pending.*HTTP 500.*in (9 min|10 min)"))
        page.goto(page.url.replace("/webhooks", f"/requests/{job}"))
        expect(page.get_by_role("region", name="Webhook")).to_contain_text(re.compile(r"StatePendingAttempt 1HTTP 500 after .*Next attemptin (9|10) min"))


def test_more_calls_than_a_page_has_are_listed_and_new_ones_are_told(fresh_server, console):
    server = fresh_server(config=QUICK, flags=("--rate-limits", "off", "--allow-private-webhooks"))
    endpoint = Api(server).external(name="Many calls")
    with Receiver() as receiver:
        for _ in range(205):
            endpoint.run(webhook=receiver.url)
        endpoint.ok("POST", "/purge-queue")
        receiver.wait_for(205, 30)
        tab = console(server).sign_in(path=f"/endpoints/{endpoint.id}/webhooks")
        page = tab.page
        calls = page.get_by_role("region", name="Calls")
        expect(calls.get_by_role("row")).to_have_count(201)
        expect(calls).to_contain_text("the newest 200")
        newest = set(calls.get_by_role("row").locator("td.mono a").all_text_contents())
        older = calls.get_by_role("button", name="Older calls")
        older.press("Enter")
        expect(calls.get_by_role("row")).to_have_count(6)
        expect(calls).to_contain_text("5 older")
        expect(calls.get_by_role("group", name="Older calls")).to_be_focused()
        rest = set(calls.get_by_role("row").locator("td.mono a").all_text_contents())
        assert len(newest | rest) == 205, "each call is on one page"
        expect(older).to_have_count(0)
        expect(page).to_have_url(re.compile("cursor="))
        assert tab.axe() == []
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        job = endpoint.run(webhook=receiver.url)
        endpoint.cancel(job)
        # It comes to the first page, as soon as it is told, and not with the next of several reads.
        page.go_back()
        expect(calls.get_by_role("row").filter(has_text=job[-12:])).to_be_visible(timeout=15_000)
        older.click()
        expect(calls.get_by_role("row")).to_have_count(7)
        calls.get_by_role("button", name="Newest calls").click()
        expect(calls.get_by_role("row")).to_have_count(201)
        tab.forget("400")
        page.goto(page.url + "?cursor=x")
        expect(calls.get_by_role("alert")).to_contain_text("must be the `cursor` of an earlier answer")
        calls.get_by_role("button", name="Newest calls").click()
        expect(calls.get_by_role("row")).to_have_count(201)


def test_calls_of_all_endpoints_are_listed_in_pages(fresh_server, console):
    server = fresh_server(config=QUICK, flags=("--rate-limits", "off", "--allow-private-webhooks"))
    api = Api(server)
    with Receiver() as receiver:
        for name, number in (("One of two", 120), ("Two of two", 90)):
            endpoint = api.external(name=name)
            for _ in range(number):
                endpoint.run(webhook=receiver.url)
            endpoint.ok("POST", "/purge-queue")
        until(lambda: api.ok("GET", "/v1/webhooks", params={"state": "DELIVERED"})["of"] == 210, "all calls are logged", 30)
        page = console(server).sign_in(path="/webhooks?state=DELIVERED").page
        calls = page.get_by_role("region", name="Calls")
        expect(calls).to_contain_text("the newest 200 of 210")
        calls.get_by_role("button", name="Older calls").click()
        expect(calls.get_by_role("row")).to_have_count(11)
        expect(calls).to_contain_text("10 older of 210")
        expect(calls.get_by_role("row").filter(has_text="One of two")).to_have_count(10)
        # Another state begins with its newest calls.
        calls.get_by_role("button", name="All", exact=True).click()
        expect(calls.get_by_role("row")).to_have_count(201)


def test_failed_calls_are_delivered_again_from_a_list_without_one(console, api):
    """Those that failed can be older than the calls that are shown."""
    endpoint = api.external(name="Delivered")
    with Receiver() as receiver:
        endpoint.cancel(endpoint.run(webhook=receiver.url))
        receiver.wait_for(1)
        page = console().sign_in(path=f"/endpoints/{endpoint.id}/webhooks").page
        expect(page.get_by_role("row").filter(has_text="Delivered")).to_have_count(1)
        page.get_by_role("button", name="Deliver failed ones again").click()
        page.get_by_role("menuitem", name="All").click()
        dialog = page.get_by_role("dialog", name="Deliver 0 failed calls of Delivered again?")
        expect(dialog).to_contain_text("No call has failed in this time.")


def test_that_no_call_was_made_yet_is_said_of_a_job_that_names_a_webhook(console, api):
    endpoint = api.external(name="Calls later")
    job = endpoint.run(webhook="http://127.0.0.1:9/done")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/webhooks")
    expect(tab.page.get_by_role("region", name="Calls")).to_contain_text("No call was made so far.")
    tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
    expect(tab.page.get_by_role("region", name="Webhook")).to_contain_text("No call was made so far.")


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "with all others"])
def test_a_call_that_is_delivered_again_is_pending_until_its_next_attempt(fresh_server, console, is_alone):
    """The server lists another delivery only after its first attempt, which can take long."""
    server = fresh_server(config="webhook_timeout_ms = 60000\n" + GPUS)
    api = Api(server)
    endpoint = api.external(name="Called slowly")
    with Receiver(500, 500, 200) as receiver, Gate(receiver.port) as gate:
        job = endpoint.run(webhook=f"http://127.0.0.1:{gate.port}/hook")
        endpoint.cancel(job)
        until(lambda: len(failed_calls(api)) == 1, "the call is given up", 30)
        page = console(server).sign_in(path=f"/endpoints/{endpoint.id}/webhooks").page
        row = page.get_by_role("row").filter(has_text=job[-12:])
        expect(row).to_contain_text("Failed")
        gate.is_open.clear()
        if is_alone:
            row.get_by_role("button", name="Deliver again").click()
        else:
            page.get_by_role("button", name="Deliver failed ones again").click()
            page.get_by_role("menuitem", name="All …").click()
            page.get_by_role("dialog", name="Deliver 1 failed call of").get_by_role("button", name="Deliver again").click()
        expect(row).to_contain_text("Pending")
        expect(row.get_by_role("button", name="Deliver again")).to_have_count(0)
        row.get_by_role("link", name=job[-12:]).click()
        expect(page.get_by_role("region", name="Webhook")).to_contain_text("StatePendingAttempt 1")
        assert len(failed_calls(api)) == 1
        gate.is_open.set()
        expect(page.get_by_role("region", name="Webhook")).to_contain_text("StateDelivered")
        page.go_back()
        expect(row).to_contain_text("Delivered")
