"""Finding and using what is on a page with the keyboard alone."""

from playwright.sync_api import Page

# Far more than a page has of what Tab reaches before a button.
STEPS_MAX = 120

# The name of what has the focus: what it is labelled with, or the text on it.
FOCUSED = """(row) => {
  const focused = document.activeElement;
  if (row && !focused.closest("tr")?.innerText.includes(row)) return "";
  return (focused.getAttribute("aria-label") ?? focused.labels?.[0]?.innerText ?? focused.innerText ?? "").replaceAll("\\u2009", " ").trim();
}"""

# Two keys belong together within this time, in ms.
PAIR_MS = 1000
# The times of the keys that are pressed, by the clock by which the page itself takes two keys together.
KEY_TIMES = """() => {
  if (!window.key_times) addEventListener("keydown", (event) => window.key_times.push(event.timeStamp), { capture: true });
  window.key_times = [];
}"""
# Far more than one pair after the other is too slow on a computer that stands still now and then.
PAIRS_MAX = 10


def walk(page: Page, name: str, row: str = "") -> None:
    """Presses Tab until what has this name has the focus, in the row of a table with this text; of a field, the name may be
    the beginning of its label."""
    for _ in range(STEPS_MAX):
        focused = page.evaluate(FOCUSED, row)
        if focused == name or focused.startswith(f"{name}\n") or focused.startswith(f"{name} "):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"nothing with this name is reached by Tab: {name}")


def press(page: Page, name: str, row: str = "") -> None:
    """Walks to a button and presses Enter."""
    walk(page, name, row)
    page.keyboard.press("Enter")


def write(page: Page, name: str, text: str) -> None:
    """Walks to a field and replaces its text."""
    walk(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def press_pair(page: Page, first: str, second: str) -> None:
    """Presses two keys that mean something together. A computer that stands still between them parts them, and then the page
    has to take them for two keys: only in that case they are pressed again."""
    for _ in range(PAIRS_MAX):
        page.evaluate(KEY_TIMES)
        page.keyboard.press(first)
        page.keyboard.press(second)
        earlier, later = page.evaluate("window.key_times")
        if later - earlier < PAIR_MS:
            return
    raise AssertionError(f"{first} and {second} were never pressed within {PAIR_MS} ms")
