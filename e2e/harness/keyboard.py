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
