"""The page of webhooks: failed calls are delivered again."""

from playwright.sync_api import expect

from harness.client import Api
from harness.browser import PHONE
from harness.console_pages import GPUS, failed_calls
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
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
