"""The page of webhooks: failed calls are delivered again."""

import re

from playwright.sync_api import expect

from harness.client import Api
from harness.browser import PHONE
from harness.console_pages import GPUS, failed_calls
from harness.fake_worker import FakeWorker
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
        expect(page.get_by_text("2 calls are delivered again.")).to_be_visible()
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
        expect(page.get_by_role("region", name="Webhook")).to_contain_text(re.compile(r"HTTP 500 after .*Next attemptin (9|10) min"))
