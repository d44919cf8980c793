"""Fixtures: one shared server per test process, and fresh ones for tests that kill, restart or configure theirs."""

from pathlib import Path

import pytest

from harness import stores
from harness.browser import Browser, Console
from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.server import QUICK, Server
from harness.hostile_clients import raise_descriptor_limit


if stores.IS_DATABASE:
    # The other tests are about the data directory, or about what a store has no part in.
    collect_ignore = ["console"] + [
        path.name for path in Path(__file__).parent.glob("test_*.py") if path.stem.removeprefix("test_") not in stores.ABOUT_JOBS
    ]


# The files of tests that take longest, longest first. They are begun first: a file is run by one process, and others have something
# to do meanwhile.
LONG = [
    "test_console_pages", "test_dev", "test_console_requests", "test_hostile_clients", "test_workers", "test_schemathesis", "test_cluster",
    "test_explain", "test_postgres", "test_console_hostile_text",
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if stores.IS_DATABASE:
        items[:] = [item for item in items if stores.is_run(getattr(item, "originalname", item.name))]


# How much of the log of a server is shown with a failed test, in characters.
LOG_SHOWN = 10_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Notes for the fixtures of a test that it failed."""
    report = yield
    if report.when == "call":
        item.has_failed = report.failed
    return report


@pytest.fixture(scope="session")
def server():
    """The server that most tests share. It may call webhooks on this machine."""
    server = Server(flags=("--allow-private-webhooks",)).start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def api(server) -> Api:
    """The management API of the shared server."""
    return Api(server)


@pytest.fixture
def endpoint(api) -> Endpoint:
    """A fresh endpoint of the shared server, worked by fake workers."""
    return api.external()


@pytest.fixture
def worker(endpoint) -> FakeWorker:
    """A fake worker of `endpoint`."""
    return FakeWorker(endpoint)


@pytest.fixture
def fresh_server(request):
    """Makes servers of a test's own: `fresh_server(flags=...)`, started. The end of their logs is shown with a failed test."""
    made = []

    def make(flags: tuple[str, ...] = ("--allow-private-webhooks",), **more) -> Server:
        server = Server(flags=flags, **more)
        made.append(server)
        return server.start()

    yield make
    if getattr(request.node, "has_failed", False):
        for server in made:
            print(f"{server.log_path} ends with:\n{server.log()[-LOG_SHOWN:]}")
    for server in made:
        server.close()


@pytest.fixture
def besieged(fresh_server):
    """A server without rate limits, so that nothing but the limits under test protects it. Polls are short: a test's
    worker ends when its poll does."""
    raise_descriptor_limit()
    return fresh_server(flags=("--rate-limits", "off"), config=QUICK + "worker_hold_ms = 1000\n")


@pytest.fixture(scope="session")
def browser():
    """The browser that the tests of the console share."""
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def console(browser, server):
    """Opens the console in a profile of its own: `console()`, or `console(other_server, width=390, host=...)`."""
    opened = []

    def open_console(at=None, **options) -> Console:
        opened.append(Console(browser, at or server, **options))
        return opened[-1]

    yield open_console
    for each in opened:
        each.close()
