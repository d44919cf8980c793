"""How a page of the console gets its modules: those of a page are asked for together, not one import after the other."""

import json
import re

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import Console, intercept
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
    return server.url + re.search(r'[^"]*/console/a/\w+/', page)[0]


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
        intercept(self._page, f"**/{path}", lambda route: held.append(route))

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


@pytest.mark.parametrize("points", [lambda link: link.hover(), lambda link: link.focus()], ids=["pointer", "focus"])
def test_the_page_of_a_link_is_loaded_while_it_is_pointed_at(console, server, api, points):
    api.external(name="Just made")
    tab = console(server).sign_in()
    expect(tab.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    # The last part of the overview, which needs some of the same modules, is there.
    expect(tab.page.get_by_role("region", name="Just now").get_by_role("listitem").first).to_be_visible()
    loads, there = Loads(tab), loaded(tab)
    link = tab.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Audit log")
    points(link)
    assert "pages/audit.js" not in there
    loads.wait_for({"pages/audit.js", *table(server)["pages/audit.js"]} - there)
    # Nothing is shown before the link is followed.
    expect(tab.page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    before = len(loads.asked)
    link.click()
    expect(tab.page.get_by_role("heading", name="Audit log", level=1)).to_be_visible()
    assert "pages/audit.js" not in loads.asked[before:]


def loaded(tab: Console, which: str = "() => true") -> set[str]:
    """The modules that the page has, as paths below the assets; `which` is a condition of their entries."""
    names = tab.page.evaluate(f"performance.getEntriesByType('resource').filter({which}).map(({{name}}) => name)")
    return {found[1] for name in names if (found := re.search(r"/console/a/[^/]+/(.+\.js)$", name))}


def test_what_is_likely_opened_next_is_loaded_after_the_page(console, server, api):
    endpoint = api.external(name="Opened next")
    job = endpoint.run()
    endpoint.ok("POST", f"/cancel/{job}")
    tab = console(server).sign_in(path=f"/endpoints/{endpoint.id}/requests")
    row = tab.page.get_by_role("row").filter(has_text=job[-12:])
    expect(row).to_be_visible()
    next_ones = {"ui/job.js", "ui/run_dialog.js"}
    until(lambda: next_ones <= loaded(tab), "the parts are loaded")
    # With all that they need.
    needed = {path for one in next_ones for path in table(server)[one]}
    # Into the browser's cache, and then into the page.
    until(lambda: needed <= loaded(tab, "({initiatorType}) => initiatorType !== 'fetch'"), "what they need is loaded")
    loads = Loads(tab)
    row.click()
    expect(tab.page.get_by_role("region", name=re.compile("^Request "))).to_contain_text(job)
    tab.page.get_by_role("button", name="Run a job").click()
    expect(tab.page.get_by_role("dialog", name="Run a job on Opened next")).to_be_visible()
    assert loads.asked == []


def test_an_endpoint_is_shown_as_the_list_has_it_until_it_is_read(console, server, api):
    api.external(name="Listed")
    tab = console(server).sign_in()
    held: list = []
    intercept(tab.page, re.compile(r"/v1/endpoints/[^/?]+$"), lambda route: held.append(route))
    tab.page.get_by_role("link", name="Listed").first.click()
    expect(tab.page.get_by_role("heading", name="Listed", level=1)).to_be_visible()
    expect(tab.page.get_by_role("navigation", name="Pages of this endpoint").get_by_role("link", name="Settings")).to_be_visible()
    until(lambda: tab.page.evaluate("1") and held, "the endpoint is asked for")
    # What is read takes its place.
    for route in held:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"name": "As it was read"})
    expect(tab.page.get_by_role("heading", name="As it was read", level=1)).to_be_visible()
