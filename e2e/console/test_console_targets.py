"""What one presses is large enough for a finger on every page of a phone, and Tab reaches all of it in the order that is seen."""

import pytest
from playwright.sync_api import Page, expect

from harness.browser import PHONE, WIDE, Console
from harness.client import Api
from harness.console_pages import GPUS, Shown, usual
from harness.server import Server

# Far more than a page has of what Tab reaches.
STEPS_MAX = 400
PRESSED = "a[href], button, input, select, textarea, summary, [role=button], [role=tab], [tabindex='0']"

# What is pressed and is smaller than it must be: 44 pixels, and 24 in rows of two lines and of JSON. Lines of a log are text, as
# links in a sentence are.
SMALL = """(pressed) => [...document.querySelectorAll(pressed)].filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest(".offscreen, .log-row, p, [tabindex='0']:not(a, button, input)")).map((node) => {
  const target = node.matches("[type=checkbox], [type=radio]") ? node.closest("label") : node;
  const { width, height } = target.getBoundingClientRect();
  const [high, wide] = node.closest(".json, .of-all") ? [24, 24] : [44, node.matches("a") ? 24 : 44];
  return height === 0 || (Math.ceil(height) >= high && Math.ceil(width) >= wide) ? "" : `${node.outerHTML.slice(0, 100)}: ${width.toFixed()} by ${height.toFixed()}`;
}).filter(Boolean)"""

# Numbers what Tab must reach: of the choices of one group, those that arrows lead to are no stops.
NUMBER = """(pressed) => {
  const all = [...document.querySelectorAll(pressed)].filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true }) && !(node.type === "radio" && !node.checked && document.querySelector(`[name="${node.name}"]:checked`)));
  all.forEach((node, at) => (node.dataset.stop = at));
  return all.map((node) => node.outerHTML.slice(0, 100));
}"""

# What has the focus: its number, where it is on the page, in which part of it, and whether one sees that it has the focus.
FOCUSED = """() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const { left, right, top, bottom } = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  const part = node.closest("main, header, nav, dialog");
  return { stop: node.dataset.stop ?? "", isScrolled: node.closest(".log-row, .chunk-row") !== null, left, right, top: top + scrollY, bottom: bottom + scrollY, part: part?.tagName + part?.className, ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, text: node.outerHTML.slice(0, 100) };
}"""


@pytest.fixture(scope="module")
def server():
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def pages(server) -> list[Shown]:
    return usual(Api(server))


def show(tab: Console, shown: Shown) -> Page:
    page = tab.go(shown.path)
    expect(page.locator("#app").get_by_text(shown.text).filter(visible=True).first, shown.path).to_be_visible()
    expect(page.locator(".loading, .loading-page")).to_have_count(0)
    return page


def test_what_is_pressed_is_large_enough_for_a_finger(console, server, pages):
    tab = console(server, width=PHONE, has_touch=True, is_mobile=True)
    tab.forget("404")
    tab.sign_in()
    found = [f"{shown.path}: {small}" for shown in pages for small in show(tab, shown).evaluate(SMALL, PRESSED)]
    tab.page.get_by_role("button", name="Menu").click()
    expect(tab.page.get_by_role("link", name="API keys")).to_be_visible()
    found += tab.page.evaluate(SMALL, PRESSED)
    assert not found, "\n".join(found)


def is_behind(before: dict, after: dict) -> bool:
    """Whether a stop is above the one before it and not in a column to the right, or left of it in the same line."""
    is_above = after["bottom"] <= before["top"] and after["left"] < before["right"]
    is_left = after["right"] <= before["left"] and after["top"] < before["bottom"] and before["top"] < after["bottom"]
    # Rows of a log move while the focus goes through them.
    return before["part"] == after["part"] and not after["isScrolled"] and (is_above or is_left)


def walked(page: Page) -> tuple[list[dict], list[str]]:
    """The stops of Tab from the first one on until the page is left, and what they should be."""
    wanted, stops, seen = page.evaluate(NUMBER, PRESSED), [], set()
    for _ in range(STEPS_MAX):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None or focused["stop"] and focused["stop"] in seen:
            break
        seen.add(focused["stop"])
        stops.append(focused)
    return stops, wanted


def faults(page: Page) -> list[str]:
    stops, wanted = walked(page)
    reached = {stop["stop"] for stop in stops}
    return [
        *[f"not reached: {text}" for number, text in enumerate(wanted) if str(number) not in reached],
        *[f"without a ring: {stop['text']}" for stop in stops if not stop["ring"]],
        *[f"not in the order that is seen: {before['text']} then {after['text']}" for before, after in zip(stops, stops[1:]) if is_behind(before, after)],
        *(["Tab does not leave the page"] if len(stops) == STEPS_MAX else []),
    ]


def test_tab_reaches_everything_in_the_order_that_is_seen(console, server, pages):
    tab = console(server, width=WIDE)
    tab.forget("404")
    tab.sign_in()
    found = []
    # One page of each route; the log has hundreds of links.
    for route, shown in {shown.route: shown for shown in pages}.items():
        if not route.endswith("/logs"):
            found += [f"{shown.path}: {fault}" for fault in faults(show(tab, shown))]
    assert not found, "\n".join(found)


# What opens over a page: the page, and the name of the button; or the keys.
OVER = (
    ("/endpoints/{}", "Run a job"),
    ("/endpoints/{}/settings", "Delete this endpoint"),
    ("/api-keys", "Make a key"),
    ("/volumes", "Make a volume"),
    ("/templates", "Make a template"),
    ("/registries", "Add a login"),
    ("/", "Control+k"),
    ("/", "?"),
)


def test_dialogs_keep_the_focus_and_give_it_back(console, server, pages):
    endpoint = pages[2].path.rsplit("/", 1)[1]
    tab = console(server).sign_in()
    page = tab.page
    for pattern, opener in OVER:
        tab.go(pattern.format(endpoint))
        button = page.get_by_role("button", name=opener, exact=True)
        by_keys = opener in ("Control+k", "?")
        if by_keys:
            button = page.get_by_role("button", name="Signed in as")
        button.first.focus()
        page.keyboard.press(opener if by_keys else "Enter")
        dialog = page.locator("dialog[open]")
        expect(dialog).to_have_count(1)
        for key in ["Tab"] * 16 + ["Shift+Tab"] * 16:
            page.keyboard.press(key)
            # After the last stop, the browser's own controls have the focus.
            assert page.evaluate("document.activeElement === document.body || document.activeElement.closest('dialog[open]') !== null"), (opener, page.evaluate(FOCUSED))
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(button.first, f"after {opener}").to_be_focused()
