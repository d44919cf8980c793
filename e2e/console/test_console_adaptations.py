"""The console as a browser shows it that is set up otherwise: without JavaScript, enlarged, in few colours, without motion."""

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, WIDE
from harness.console_pages import GPUS, faults, usual
from harness.server import Server

# What scrolls sideways by itself may be wider than the window.
CUT_OFF = """() => [...document.querySelectorAll("main h1, main h2, main .button, main .gauge dd, main label, main input, main select")]
  .filter((node) => node.checkVisibility() && !node.closest(".table-box, .grid-scroll, .menu, pre, nav, .chips, .offscreen"))
  .filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(".offscreen"))
  .map((node) => `${node.tagName} ${node.textContent.slice(0, 40)}`)"""

# What is drawn by a background alone, with the class of what it is in, and those that have the colour of what is behind them. In forced
# colours, a browser gives every background that is not transparent the same colour.
DRAWN = """() => {
  const colour = (node) => getComputedStyle(node).backgroundColor;
  const isOpaque = (text) => text.startsWith("rgb(");
  const behind = (node) => (isOpaque(colour(node)) ? colour(node) : node.parentElement ? behind(node.parentElement) : "the page's");
  const drawn = [...document.querySelectorAll("i, .caret")].filter((node) => node.checkVisibility() && node.getClientRects().length > 0)
    .filter((node) => getComputedStyle(node).backgroundImage === "none");
  const named = (node) => `${node.className} in ${node.parentElement.className}`;
  return { where: drawn.map((node) => node.parentElement.className),
           unseen: drawn.filter((node) => !isOpaque(colour(node)) || colour(node) === behind(node.parentElement)).map(named) };
}"""
# Icons, the dot of the connection, and bars of jobs: in lists, in the life of one, and of a worker.
PLACES = {"nav", "button primary", "live live", "job-bar", "life-track", "worker-jobs"}

MOVING = """() => document.getAnimations().filter(({ playState }) => playState === "running")
  .map(({ effect }) => effect.target.className)"""


@pytest.fixture(scope="module")
def server():
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def pages(api):
    return usual(api)


def shown(tab, page) -> None:
    """Goes to a page, and waits until it has its text."""
    tab.go(page.path)
    expect(tab.page.locator("#app").get_by_text(page.text).filter(visible=True).first, page.path).to_be_visible()
    expect(tab.page.locator(".loading, .loading-page")).to_have_count(0)


def test_without_javascript_one_sentence_says_what_is_needed(console):
    page = console(java_script_enabled=False).go("/endpoints")
    expect(page.locator("noscript p")).to_have_text("The console needs JavaScript. The command line does the same without: longshore --help lists its commands.")
    expect(page.locator("noscript p")).to_be_visible()


def test_at_200_percent_nothing_is_cut_off(console, pages):
    # A window at 200 % has half the width in the pixels of the page.
    tab = console(viewport={"width": WIDE // 2, "height": 450}, device_scale_factor=2).sign_in()
    tab.forget("404")
    found = []
    for page in pages:
        shown(tab, page)
        found += [f"{page.path}: {fault}" for fault in tab.page.evaluate(CUT_OFF)]
        if tab.sideways() > 0:
            found.append(f"{page.path}: {tab.sideways()} px wider than the window")
    assert not found, "\n".join(found)


def test_in_forced_colours_states_and_buttons_are_seen(console, pages):
    tab = console(forced_colors="active").sign_in()
    tab.forget("404")
    places = set()
    for page in pages:
        shown(tab, page)
        drawn = tab.page.evaluate(DRAWN)
        assert drawn["unseen"] == [], page.path
        places.update(drawn["where"])
    assert places >= PLACES, places
    # The keys of a chart's colours.
    tab.go(next(page.path for page in pages if page.route.endswith("/metrics")))
    expect(tab.page.locator(".legend .mark").first).to_be_visible()
    assert tab.page.evaluate(DRAWN)["unseen"] == []
    assert faults(tab) == []
    # A button and the focus have a border in a colour of the system.
    button = tab.page.get_by_role("button", name="Find anything")
    button.focus()
    assert button.evaluate("node => getComputedStyle(node).outlineStyle") != "none"


def test_without_motion_nothing_moves(console, api, pages):
    tab = console(reduced_motion="reduce").sign_in()
    for path in ("/", "/requests"):
        tab.go(path)
        expect(tab.page.locator(".loading, .loading-page")).to_have_count(0)
        assert tab.page.evaluate(MOVING) == [], path
    endpoint = api.external(name="Still")
    tab.go(f"/endpoints/{endpoint.id}/requests")
    endpoint.run()
    expect(tab.page.locator(".vrow")).to_have_count(1)
    assert tab.page.evaluate(MOVING) == []
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("combobox", name="Find anything")).to_be_visible()
    assert tab.page.evaluate(MOVING) == []


def test_the_present_tab_of_an_endpoint_is_seen_on_a_phone(console, api):
    endpoint = api.external(name="Many tabs")
    tab = console(width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/settings")
    tabs = tab.page.get_by_role("navigation", name="Pages of this endpoint")
    expect(tabs.get_by_role("link", name="Settings")).to_be_in_viewport(ratio=0.9)
    tab.go(f"/endpoints/{endpoint.id}")
    expect(tabs.get_by_role("link", name="Overview")).to_be_in_viewport(ratio=0.9)
    assert tab.sideways() == 0
