"""How a page of the console gets its modules: those of a page are asked for together, not one import after the other."""

import json
import re

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import Console
from harness.client import Api
from harness.console_pages import GPUS, Shown, usual
from harness.server import Server
from harness.wait import until

# The pages whose modules the first script names.
FIRST = ("overview",)
# The routes of the router, each with the name of its page.
ROUTES = re.compile(r'\["(/[^"]*)", "(\w+)"\]')


@pytest.fixture(scope="module")
def server():
    """A server in which every page has something to show."""
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


def assets(server: Server) -> str:
    """The address of the assets."""
    page = requests.get(f"{server.url}/console/", timeout=10).text
    return server.url + re.search('[^"]*/console/a/[^/]+/', page)[0]


def table(server: Server) -> dict[str, list[str]]:
    """Which modules each module needs that is loaded later, as the pages read it."""
    text = requests.get(f"{assets(server)}imports.js", timeout=10).text
    return json.loads(re.sub(r",\s*\}", "}", text.removeprefix("export default ").rstrip(";\n")))


class Loads:
    """The modules that a tab asks for, as paths below the assets, and those among them that are held until `release`."""

    def __init__(self, tab: Console):
        self.asked: list[str] = []
        self._page = tab.page
        self._held: dict[str, list] = {}
        tab.page.on("request", self._note)

    def _note(self, request) -> None:
        if path := re.search(r"/console/a/[^/]+/(.+\.js)", request.url):
            self.asked.append(path[1])

    def hold(self, path: str) -> None:
        held = self._held.setdefault(path, [])
        self._page.route(f"**/{path}", lambda route: held.append(route))

    def wait_for(self, paths: set[str]) -> None:
        """Waits until these modules were asked for."""

        def all_asked() -> bool:
            # Playwright receives its events while it waits for an answer.
            self._page.evaluate("1")
            missing = {path for path in paths if path not in self.asked or self._held.get(path) == []}
            assert not missing, f"not asked for: {sorted(missing)}"
            return True

        until(all_asked, "the modules are asked for", 20)

    def release(self, path: str) -> None:
        for route in self._held.pop(path):
            route.continue_()


def shown_once(api: Api, server: Server) -> dict[str, Shown]:
    """A page of each module."""
    names = dict(ROUTES.findall(requests.get(f"{assets(server)}router.js", timeout=10).text))
    found: dict[str, Shown] = {}
    for page in usual(api):
        if page.route in names:
            found.setdefault(names[page.route], page)
    return found


def test_the_modules_of_a_page_are_asked_for_before_the_page_is_there(server, api, console):
    needs = table(server)
    pages = shown_once(api, server)
    signed_in = console(server).sign_in().context.storage_state()
    of_table = {name for name in pages if needs.get(f"pages/{name}.js") and name not in FIRST}
    assert len(of_table) > 18, of_table
    for name in of_table:
        module, tab = f"pages/{name}.js", console(server, storage_state=signed_in)
        loads = Loads(tab)
        loads.hold("main.js")
        loads.hold(module)
        tab.page.goto(tab.root + pages[name].path, wait_until="commit")
        loads.wait_for({"main.js", "imports.js"})
        loads.release("main.js")
        loads.wait_for({module, *needs[module]})
        before = len(loads.asked)
        loads.release(module)
        expect(tab.page.locator("main")).to_contain_text(pages[name].text)
        # What is loaded later is in the table, too.
        # The cache is off while requests are held, so that modules are asked for twice.
        later = set(loads.asked[before:]) - set(loads.asked[:before])
        told = {path for one in later for path in needs.get(one, [])}
        found_by_imports = later - told - needs.keys()
        assert not found_by_imports, (name, found_by_imports)
        tab.close()
