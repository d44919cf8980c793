"""The console in Debian's Firefox, over plain HTTP and under a name, as on another computer of the same network."""

import json

import pytest

from harness.browser import LAN_NAME
from harness.fake_worker import FakeWorker
from harness.firefox import ENTER, Firefox
from harness.server import ADMIN_KEY
from harness.wait import until

WATCH = """window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective + event.blockedURI))"""


@pytest.fixture
def firefox():
    firefox = Firefox()
    yield firefox
    firefox.close()


def test_the_smoke_flow(firefox, server, api):
    endpoint = api.external(name="Seen by Firefox")
    root = f"http://{LAN_NAME}:{server.port}/console"
    firefox.call("script.addPreloadScript", functionDeclaration=f"() => {{ {WATCH} }}")
    firefox.go(f"{root}/endpoints")
    firefox.wait_for("Sign in")
    assert firefox.evaluate("isSecureContext") is False
    until(lambda: firefox.evaluate("document.activeElement.localName") == "input", "the field has the focus")
    firefox.type(ADMIN_KEY + ENTER)
    firefox.click("link", "Seen by Firefox")
    firefox.wait_for("Live")
    # A job is run from the page, worked on, and seen while it streams.
    firefox.click("button", "Run a job")
    firefox.click("button", "Run")
    worker = FakeWorker(endpoint)
    job = worker.take()["id"]
    firefox.wait_for(job)
    worker.chunk(job, "the tide ")
    firefox.wait_for("the tide")
    assert endpoint.status(job)["status"] == "IN_PROGRESS"
    worker.done(job, {"output": {"turns": 9007199254740993123}})
    firefox.wait_for("9007199254740993123")
    firefox.wait_for("Completed")
    # News comes to the list by itself.
    firefox.go(f"{root}/endpoints/{endpoint.id}/requests")
    firefox.wait_for(job[-12:])
    newest = endpoint.run()
    firefox.wait_for(newest[-12:])
    endpoint.cancel(newest)
    firefox.wait_for("Cancelled")
    for path, shown in (("/", "Overview"), ("/api-keys", "the operator"), (f"/endpoints/{endpoint.id}/metrics", "Delay"), ("/health", "Ready")):
        firefox.go(root + path)
        firefox.wait_for(shown)
    assert firefox.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    refused = "try { document.body.innerHTML = '<b>'; 'taken' } catch { 'refused' }"
    policy = firefox.evaluate(f"typeof trustedTypes === 'undefined' ? 'refused' : {{}}; {refused}")
    assert policy == "refused" or firefox.evaluate("typeof trustedTypes") == "undefined"
    violations = json.loads(firefox.evaluate("JSON.stringify(window.violations)"))
    assert [one for one in violations if not one.startswith("require-trusted-types-for")] == []
    firefox.go(f"{root}/endpoints")
    firefox.click("button", f"Signed in as {api.ok('GET', '/v1/me')['key']['name']}")
    firefox.click("button", "Sign out")
    firefox.wait_for("Use any API key of this server")
    until(lambda: len(api.ok("GET", "/v1/sessions")) == 0, "the session has ended", 10)
    # The first page of a browser asks for a session before there is one.
    # Firefox says on plain HTTP that it ignores a header, and prints the markup that this test tried to put in.
    expected = ("Cross-Origin-Opener-Policy", "require-trusted-types-for")
    printed = [text for text in firefox.printed if not any(one in text for one in expected)]
    assert printed == []
