"""The tests of the console themselves: what goes wrong in a browser fails them, in the worker that all tabs share, too."""

import re

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import Console
from harness.reverse_proxy import Answer, ReverseProxy

WORKER = re.compile(r"/console/a/[^/]+/events_worker\.js$")
# What is added to the worker's module, and what the test is told.
FAULTS = {
    "throws": ("setTimeout(() => { throw new Error('it throws'); });", "shared worker: Error: it throws"),
    "rejects": ("void Promise.reject(new Error('it rejects'));", "shared worker: Error: it rejects"),
    "prints": ("console.error('it prints', 7);", "shared worker: error: it prints 7"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_shared_worker_fails_a_test(browser, server, fault):
    script, told = FAULTS[fault]

    def with_fault(method: str, path: str) -> Answer | None:
        if not WORKER.search(path):
            return None
        text = requests.get(server.url + path, timeout=10).text
        return Answer(200, f"{text}\n{script}".encode(), [("Content-Type", "text/javascript")])

    with ReverseProxy(server.port, intercept=with_fault) as proxy:
        tab = Console(browser, proxy).sign_in()
        expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
        with pytest.raises(AssertionError, match=re.escape(told)):
            tab.close()
