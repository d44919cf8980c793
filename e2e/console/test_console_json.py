"""JSON of a job: searched, a path of it copied, and a long row of numbers in one line."""

from playwright.sync_api import Locator, expect

from harness.fake_worker import FakeWorker
from harness.wait import until


def pasted(field: Locator) -> str:
    """What a person pastes into the field now: a page may not read the clipboard, and copies a moment after the press."""
    field.fill("")
    field.press("Control+v")
    return field.input_value()


def test_json_is_searched_and_a_path_of_it_is_copied(console, api):
    endpoint = api.external()
    deep = {"steps": [{"name": "first"}] * 120 + [{"name": "needle one", "x-y": {"Needle": [1]}}]}
    job = endpoint.run({"deep": deep, "vector": [0.25, -0.5, *range(1, 765)], "short": [1, 2]})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}")
    shown = tab.page.get_by_role("region", name="Input")
    # The numbers of an embedding are one line, and can be unfolded.
    expect(shown).to_contain_text("0.25, -0.5, 1, 2, 3, 4, 5, 6, …")
    expect(shown).to_contain_text("766 numbers from -0.5 to 764")
    expect(shown.get_by_text("needle one")).to_have_count(0)
    field = shown.get_by_label("Find in input")
    field.fill("nEEdle")
    # Found behind the hundred items that are shown at first, and unfolded.
    expect(shown.get_by_role("status")).to_have_text("1 of 2")
    expect(shown.get_by_text("needle one")).to_be_in_viewport()
    expect(shown.locator(".found")).to_have_count(1)
    field.press("Enter")
    expect(shown.get_by_role("status")).to_have_text("2 of 2")
    expect(shown.locator("code")).to_have_text('.deep.steps[120]["x-y"].Needle')
    field.press("Enter")
    expect(shown.get_by_role("status")).to_have_text("1 of 2")
    field.press("Shift+Enter")
    for button, path in [
        (shown.get_by_role("button", name="Copy the path", exact=True), '.deep.steps[120]["x-y"].Needle'),
        (shown.get_by_role("button", name="Copy the path .deep.steps[120].name"), ".deep.steps[120].name"),
        (shown.get_by_role("button", name="Copy the path .short[1]"), ".short[1]"),
    ]:
        button.click()
        until(lambda path=path: pasted(field) == path, f"{path} is copied")
    field.fill("harbour")
    expect(shown.get_by_role("status")).to_have_text("not found")
    field.press("Escape")
    expect(field).to_have_value("")
    expect(shown.locator(".found")).to_have_count(0)


def test_a_text_keeps_its_lines(console, api):
    endpoint = api.external()
    job = endpoint.run({})
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.done(job, {"output": "first line\n  second line"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    text = page.get_by_role("region", name="Output").locator(".s")
    expect(text).to_be_visible()
    assert text.inner_text() == '"first line\n  second line"'


def test_json_of_more_than_a_megabyte_is_folded_until_one_unfolds_it(console, api):
    endpoint = api.external()
    job = endpoint.run({"note": "small beside it", "texts": ["x" * 1000] * 1100})
    shown = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page.get_by_role("region", name="Input")
    expect(shown).to_contain_text("2 members")
    expect(shown).not_to_contain_text("small beside it")
    shown.get_by_role("button", name="Unfold").click()
    expect(shown).to_contain_text("small beside it")
    expect(shown).to_contain_text("1 100 items")
