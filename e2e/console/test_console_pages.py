"""Every page of the console in every state, at three widths, light and dark: no fault that axe-core knows, nothing that
scrolls sideways, nothing printed by the browser."""

import os
import re
import threading
from collections import Counter
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from harness.browser import MIDDLE, PHONE, WIDE, Console, key_for
from harness.client import Api
from harness.console_pages import GPUS, Shown, failed_calls, faults, routes, usual
from harness.reverse_proxy import Answer, ReverseProxy
from harness.server import Server

WIDTHS = (WIDE, MIDDLE, PHONE)
SCHEMES = ("light", "dark")
EVERYTHING = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]
# In an ordinary run, each page is looked at in one size of each state.
IS_LONG = os.environ.get("LONGSHORE_PAGES") == "all"
# A folder that gets a picture of every page that is looked at.
SHOTS = os.environ.get("LONGSHORE_SHOTS")


def sizes(*few: tuple[int, str]):
    """Parametrizes a test with the sizes of a state: `few`, or all of them in a long run."""
    return pytest.mark.parametrize("width, scheme", EVERYTHING if IS_LONG else few)


@pytest.fixture(scope="module")
def server():
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def pages(server) -> list[Shown]:
    """The pages of a server with endpoints, jobs and workers."""
    return usual(Api(server))


# Whether the page's policy refuses markup. The policy reports the try: that is no fault.
REFUSES_MARKUP = """(() => {
  let isRefused = false;
  try { document.body.innerHTML = "<b>"; } catch { isRefused = true; }
  return isRefused;
})()"""
FORGET_TRY = "window.violations = window.violations.filter((text) => !text.startsWith('require-trusted-types-for'))"


def open_tab(console, at, width: int, scheme: str) -> Console:
    tab = console(at, width=width, color_scheme=scheme, has_touch=width == PHONE).watch_hosts()
    tab.size = f"{width}-{scheme}"
    tab.go("/sign-in")
    expect(tab.page.get_by_role("heading", name="Sign in")).to_be_visible()
    found = faults(tab)
    assert not found, found
    return tab.sign_in()


def look(state: str, tab: Console, pages: list[Shown], wait) -> None:
    """Goes to each page, waits for what `wait` waits for, and collects the faults of all pages."""
    found = []
    for shown in pages:
        tab.go(shown.path)
        wait(tab, shown)
        found += [f"{shown.path}: {fault}" for fault in faults(tab)]
        if SHOTS:
            name = re.sub(r"[^a-z0-9]+", "-", shown.path.lower()).strip("-") or "overview"
            tab.page.screenshot(path=f"{SHOTS}/{state}-{name}-{tab.size}.png", full_page=True)
    assert not found, "\n".join(found)


def for_its_text(tab: Console, shown: Shown) -> None:
    expect(tab.page.locator("#app").get_by_text(shown.text).filter(visible=True).first, shown.path).to_be_visible()
    expect(tab.page.locator(".loading, .loading-page")).to_have_count(0)


def for_its_text_alone(tab: Console, shown: Shown) -> None:
    """Waits for the page's text; the page takes no markup."""
    for_its_text(tab, shown)
    assert tab.page.evaluate(REFUSES_MARKUP), f"{shown.path} takes markup"
    tab.page.evaluate(FORGET_TRY)


def test_every_page_of_the_router_is_looked_at(pages):
    # The page of signing in is looked at before one has.
    assert set(routes()) - {"/sign-in"} <= {shown.route for shown in pages}


USUAL = ((WIDE, "light"), (MIDDLE, "dark"), (PHONE, "light"))


@sizes(*USUAL)
def test_usual_pages_have_no_fault(console, server, pages, width, scheme):
    """In an ordinary run, each page in one of the sizes."""
    seen = pages if IS_LONG else pages[USUAL.index((width, scheme)) :: len(USUAL)]
    tab = open_tab(console, server, width, scheme)
    tab.forget("404")
    tab.forget("TrustedHTML")
    look("usual", tab, seen, for_its_text_alone)


# What a page may ask for until it has its final layout: counted, since times depend on what else the computer does.
DATA_MAX, FILES_MAX = 16, 48
GO = "path => (history.pushState(null, '', path), dispatchEvent(new PopStateEvent('popstate')))"


def test_a_page_change_asks_for_little(console, server, pages):
    tab = console(server)
    tab.forget("404")
    asked: list[str] = []
    loads: Counter[tuple[str, str]] = Counter()

    def ask(request) -> None:
        path = urlsplit(request.url).path
        asked.append(path)
        if "/console/a/" in path:
            loads[path, request.resource_type] += 1

    tab.page.on("request", ask)
    tab.sign_in()
    found = []
    for is_again in (False, True):
        for shown in pages:
            asked.clear()
            tab.page.evaluate(GO, f"{urlsplit(tab.root).path}{shown.path}")
            for_its_text(tab, shown)
            files = {path for path in asked if "/console/a/" in path}
            data = [path for path in asked if is_data(path)]
            print(f"{shown.path}: {len(data)} requests and {len(files)} files")
            # Nothing loads the frame anew.
            if len(data) > DATA_MAX or len(files) > FILES_MAX or any(path.endswith("/session") for path in asked):
                found.append(f"{shown.path}{' again' if is_again else ''}: {asked}")
    # A file is loaded once, whichever page asks for it: what a page loads ahead may come at the second visit only. The browser is
    # asked for a module twice: by what fetches it early, and by its import, which takes it from the cache.
    found += [f"{kind} {path}: loaded {times} times" for (path, kind), times in loads.items() if times > 1]
    assert not found, "\n".join(found)


CHANGES = {
    "Add a login", "Cancel job", "Change", "Delete", "Delete this endpoint", "Deliver again", "Deliver failed ones again", "Deploy this", "Disable",
    "Drain", "Drain all", "Enable", "End", "Make a key", "Make a secret", "Make a template", "Make a volume", "New endpoint", "Pause", "Purge the queue",
    "Pause N of the list", "Remove", "Restore", "Resume", "Resume N of the list", "Retry", "Review and save", "Revoke", "Roll the secret", "Run a job", "Save",
    "Show the variables", "Stop", "Try now",
}  # fmt: skip
# Those of them that are in dialogs, or for what the server of these pages has not.
NOT_HERE = {"Deploy this", "Enable", "Remove", "Restore", "Resume", "Roll the secret", "Save", "Show the variables", "Try now"}
# What a key for jobs may do.
OF_JOBS = {"Cancel job", "Deliver again", "Deliver failed ones again", "Purge the queue", "Retry", "Run a job"}
# What a key that manages one endpoint may do.
OF_ONE = {
    "Change", "Delete", "Delete this endpoint", "Drain", "Drain all", "Make a secret", "Pause", "Pause N of the list", "Remove", "Restore", "Resume",
    "Resume N of the list", "Review and save",
    "Roll the secret", "Save", "Show the variables", "Stop", "Try now",
}  # fmt: skip


# A key's scope, whether it is for all endpoints, for each by its id or for one of them, and what it may do.
RIGHTS = [
    ("read", "all", set()), ("read", "each", set()), ("read", "one", set()), ("jobs", "all", OF_JOBS), ("jobs", "each", OF_JOBS), ("jobs", "one", OF_JOBS),
    ("manage", "one", OF_ONE),
]  # fmt: skip
# What a press can do, in a page, a menu and the palette.
OFFERS = "#app button, #app a.button, [role^=menuitem], dialog [role=option] .choice-name"
# The palette has no more choices than fit it: these name all that it offers to do.
SOUGHT = ("new endpoint", "make a key", "pause", "resume")


@pytest.mark.parametrize("scope, on, may", RIGHTS)
def test_no_page_asks_for_or_offers_what_a_key_may_not(console, server, pages, scope, on, may):
    """A refused request would be printed, and fail the test."""
    api = Api(server)
    ids = {endpoint["id"] for endpoint in api.ok("GET", "/v1/endpoints")}
    known = {ended_of(pages)} if on == "one" else ids
    named = {} if on == "all" else {"endpointIds": sorted(known)}
    tab = console(server)
    # A job, a worker and an endpoint that are not there.
    tab.forget("404")
    tab.sign_in(key_for(api, {"scope": scope, **named})["key"])
    # The key does not know of what is not there, either; and no page leads it to the endpoints of others.
    others = (ids - known) | {"nowhere"}
    for shown in (page for page in pages if not others & set(page.path.split("/"))):
        tab.go(shown.path)
        expect(tab.page.get_by_role("heading", level=1).first, shown.path).to_be_visible()
        expect(tab.page.locator(".loading, .loading-page"), shown.path).to_have_count(0)
        offered = offers(tab.page, shown)
        assert not (CHANGES - may) & offered, (shown.path, offered)
        leads = tab.page.get_by_role("main").get_by_role("link").evaluate_all("(links) => links.map((link) => link.href)")
        assert not [link for link in leads if others & set(link.split("/"))], (shown.path, leads)


def test_a_key_that_may_do_everything_is_offered_it(console, server, pages):
    """What the test above misses on the pages of other keys is there for this one."""
    tab = console(server)
    tab.forget("404")
    tab.sign_in()
    offered = set()
    for shown in pages:
        tab.go(shown.path)
        until_read(tab, shown)
        offered |= offers(tab.page, shown)
    assert CHANGES - offered == NOT_HERE


def offers(page, shown: Shown) -> set[str]:
    """The names of all that a page offers to do, with its menus open, and with the palette on the pages that have choices of their own."""
    names = offered_now(page)
    for menu in page.locator("[aria-haspopup=menu]:visible").all():
        menu.click()
        expect(page.get_by_role("menu")).to_be_visible()
        names |= offered_now(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("menu")).to_have_count(0)
    if shown.route in ("/", "/endpoints/:endpoint"):
        page.keyboard.press("Control+k")
        for text in SOUGHT:
            page.get_by_role("combobox", name="Find anything").fill(text)
            page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
            names |= offered_now(page)
        page.keyboard.press("Escape")
    return names


def offered_now(page) -> set[str]:
    """The names of what can be pressed now, with N for numbers; a menu ends those with a dialog by three points."""
    texts = page.locator(OFFERS).filter(visible=True).all_inner_texts()
    return {re.sub("[0-9]+", "N", text).strip().removesuffix("…").strip() for text in texts}


def ended_of(pages: list[Shown]) -> str:
    """The id of the endpoint that has most pages."""
    return Counter(page.path.split("/")[2] for page in pages if page.path.startswith("/endpoints/")).most_common(1)[0][0]


def test_further_columns_are_chosen_and_a_webhook_is_searched(console, server, pages):
    api = Api(server)
    [failed] = failed_calls(api)
    requests = f"/v2/{failed['endpoint']}/requests"
    job = failed["job"]
    tab = open_tab(console, server, WIDE, "light")
    page = tab.go(f"/endpoints/{failed['endpoint']}/requests")
    for name in ("key", "size", "webhook"):
        page.get_by_role("button", name="More").click()
        page.get_by_role("menuitemcheckbox", name=f"Column: {name}").click()
    row = page.get_by_role("row").filter(has_text=job[-12:])
    expect(row.get_by_role("gridcell").nth(8)).to_have_text("admin")
    expect(row.get_by_role("gridcell").nth(9)).to_contain_text("B, ")
    expect(row.get_by_role("gridcell").nth(10)).to_have_text("given up")
    assert faults(tab) == []
    # This browser keeps them.
    page.reload()
    expect(row.get_by_role("gridcell").nth(10)).to_have_text("given up")
    page.get_by_role("combobox", name="Search requests").fill("webhook:failed")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 loaded, all there are")).to_be_visible()
    tab.go("/requests")
    expect(page.get_by_role("columnheader", name="Webhook")).to_be_visible()
    expect(row.get_by_role("gridcell").last).to_have_text("given up")
    expect(page.get_by_role("row").filter(has_text="Whisper large v3").get_by_role("gridcell").last).to_have_text("–")
    assert faults(tab) == []
    for query, found in (("webhook=FAILED", [job]), ("webhook=DELIVERED", []), ("webhook=FAILED&error=x", [])):
        assert [one["id"] for one in api.ok("GET", f"{requests}?{query}")["requests"]] == found
    assert api.ok("GET", f"{requests}?webhooks=true&webhook=FAILED")["requests"][0]["webhook"] == "FAILED"
    assert api.call("GET", f"{requests}?webhook=LOST").status_code == 400
    listed = api.ok("GET", "/v1/requests?webhooks=true")["requests"]
    assert {one["id"]: one["webhook"] for one in listed if one["webhook"]} == {job: "FAILED"}
    assert all("webhook" not in one for one in api.ok("GET", "/v1/requests")["requests"])


@pytest.fixture(scope="module")
def empty():
    """A server on which nothing was done."""
    server = Server(flags=("--rate-limits", "off")).start()
    yield server
    server.close()


@sizes((PHONE, "dark"))
def test_pages_without_content_have_no_fault(console, empty, width, scheme):
    api = Api(empty)
    endpoints = api.ok("GET", "/v1/endpoints")
    endpoint = endpoints[0]["id"] if endpoints else api.external(name="Unused").id
    skipped = (":job", ":worker", "/sign-in")
    paths = [route.replace(":endpoint", endpoint) for route in routes() if not any(part in route for part in skipped)]
    tab = open_tab(console, empty, width, scheme)
    look("empty", tab, [Shown(path, path, "") for path in paths], until_read)


def until_read(tab: Console, shown: Shown) -> None:
    """Until the page has its heading and nothing of it is loading."""
    expect(tab.page.locator("h1")).to_have_count(1)
    expect(tab.page.locator(".loading, .loading-page"), shown.path).to_have_count(0)


def is_data(path: str) -> bool:
    """Whether a page reads this: not its files, not the session."""
    return path.startswith(("/v1/", "/v2/")) and path != "/v1/me"


def failing(method: str, path: str) -> Answer | None:
    """The answer of a server whose disk has failed."""
    if not is_data(path):
        return None
    body = b'{"error":"the server cannot read its disk: Input/output error","code":"storeFailed"}'
    return Answer(500, body, [("Content-Type", "application/json"), ("X-Request-Id", "0f3c")])


def for_the_failure(tab: Console, shown: Shown) -> None:
    until_read(tab, shown)
    if shown.route != "not found":
        expect(tab.page.get_by_text("The server cannot read its disk").first).to_be_visible()


@sizes((MIDDLE, "light"))
def test_pages_that_cannot_be_read_say_so_and_have_no_fault(console, server, pages, width, scheme):
    with ReverseProxy(server.port, intercept=failing) as proxy:
        tab = open_tab(console, proxy, width, scheme)
        tab.forget("500")
        look("failing", tab, pages, for_the_failure)
        tab.close()


SLOW_S = 3


@sizes((WIDE, "dark"))
def test_pages_that_are_slow_show_their_layout_and_have_no_fault(console, server, pages, width, scheme):
    gate = threading.Event()

    def slowly(method: str, path: str) -> None:
        if is_data(path) and not path.startswith("/v1/events"):
            gate.wait(SLOW_S)

    def while_it_loads(tab: Console, shown: Shown) -> None:
        expect(tab.page.locator("h1")).to_have_count(1)

    def then(tab: Console, shown: Shown) -> None:
        while_it_loads(tab, shown)
        found = faults(tab)
        assert not found, (shown.path, found)
        for_its_text(tab, shown)

    with ReverseProxy(server.port, intercept=slowly) as proxy:
        tab = open_tab(console, proxy, width, scheme)
        tab.forget("404")
        look("slow", tab, pages, then if IS_LONG else while_it_loads)
        gate.set()
        tab.close()
