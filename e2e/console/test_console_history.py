"""The history of endpoints: recorded by the server, read by the API, drawn by the console."""

import re
from datetime import datetime

import pytest
from playwright.sync_api import expect

from harness.browser import intercept, is_quiet
from harness.client import Endpoint
from harness.fake_worker import FakeWorker
from harness.wait import until


@pytest.fixture(scope="module")
def worked(api):
    """An endpoint whose jobs ended in every way, and its history when it has them."""
    endpoint = api.endpoint("outcomes.py", name="Recorded")
    for mood in ("text", "text", "raise"):
        endpoint.wait_for(endpoint.run({"mood": mood}), "COMPLETED" if mood == "text" else "FAILED", timeout_s=60)

    def is_counted() -> bool:
        counted = total(api, endpoint)
        return (counted["completed"], counted["failed"]) == (2, 1) and counted["starts"] > 0

    until(is_counted, "the jobs and the start of their worker are in steps that are over", 30)
    return endpoint


def total(api, endpoint) -> dict:
    return api.ok("GET", f"/v1/endpoints/{endpoint.id}/history?last=900000")["total"]


def test_the_history_has_what_the_counters_have(api, worked):
    history = api.ok("GET", f"/v1/endpoints/{worked.id}/history?last=900000")
    counters = worked.health()["jobs"]
    sums = {name: sum(value or 0 for value in column) for name, column in history["series"].items()}
    assert (sums["submitted"], sums["completed"], sums["failed"]) == (3, counters["completed"], counters["failed"])
    assert sums["starts"] >= 1 and history["total"]["startP50Ms"] > 0
    # The worker was started because the first job waited; the others did not wait for it.
    assert (sums["delivered"], sums["metColdStart"], sums["failedHandler"], sums["failedWorkerLost"]) == (3, 1, 1, 0)
    assert len(history["t"]) <= 300 and history["stepMs"] == history["t"][1] - history["t"][0]
    # The server did not run 15 minutes ago.
    assert history["series"]["completed"][0] is None
    assert datetime.fromisoformat(history["missingBefore"]) > datetime.fromisoformat(history["from"])
    everything = api.ok("GET", "/v1/history?last=900000&by=endpoint&series=completed")
    assert {"id": worked.id, "total": {"completed": 2}}.items() <= next(
        {**one, "series": None} for one in everything["endpoints"] if one["id"] == worked.id
    ).items()


def test_charts_show_it_and_a_drag_shows_less_of_it(console, worked):
    tab = console().sign_in(path=f"/endpoints/{worked.id}")
    page = tab.page
    for title in ("Jobs", "Ended a second", "Delay", "Run time", "Workers", "Cold starts"):
        expect(page.get_by_role("img", name=f"{title}, latest")).to_be_visible()
    expect(page.get_by_text("No data before").first).to_be_visible()
    jobs = page.get_by_role("region", name="Jobs", exact=True)
    # What is under the pointer is shown by every chart.
    over = jobs.locator(".u-over")
    expect(over).to_be_visible()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 50)
    values = page.get_by_role("region", name="Run time").locator(".plot-values b")
    expect(values.first).to_be_visible()
    page.get_by_role("button", name="Show Jobs as a table").click()
    expect(jobs.get_by_role("columnheader", name="waiting", exact=True)).to_be_visible()
    assert tab.axe() == []
    page.get_by_role("button", name="Show Jobs as a chart").click()
    over.hover()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 70, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Back to now")).to_be_visible()
    expect(page).to_have_url(re.compile("(?=.*from=)(?=.*to=)"))
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_label("Time range")).to_have_value("15 min")
    page.get_by_label("Time range").select_option("6 h")
    expect(page).to_have_url(re.compile("range=6"))
    page.get_by_label("Time range").select_option("Custom …")
    dialog = page.get_by_role("dialog", name="Choose a time range")
    dialog.get_by_label("From").fill("2020-01-31T12:00")
    dialog.get_by_label("To").fill("2020-01-31T11:00")
    dialog.get_by_role("button", name="Show it").click()
    expect(dialog.get_by_role("alert")).to_have_text("It ends before it begins.")
    dialog.get_by_label("To").fill("2020-01-31T13:00")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Show it").click()
    expect(page.get_by_label("Time range").locator("option:checked")).to_contain_text("1 h")
    page.get_by_label("Time range").select_option("6 h")
    # No minute is over yet, or only the first ones.
    expect(page.get_by_text("No data").first).to_be_visible()


def test_the_time_range_stays_from_page_to_page(console, worked):
    page = console().sign_in(path=f"/endpoints/{worked.id}").page
    chosen = page.get_by_label("Time range")
    chosen.select_option("6 h")
    page.get_by_role("link", name="Metrics", exact=True).click()
    expect(page.get_by_role("region", name="Figures of this range")).to_be_visible()
    expect(chosen).to_have_value("6 h")
    page.get_by_label("Where you are").get_by_role("link", name="Recorded").click()
    expect(page.get_by_role("region", name="Newest requests")).to_be_visible()
    expect(chosen).to_have_value("6 h")
    page.get_by_label("Pages", exact=True).get_by_role("link", name="Overview").click()
    expect(chosen).to_have_value("6 h")
    page.get_by_role("region", name="Endpoints", exact=True).get_by_role("link", name="Recorded").click()
    expect(page.get_by_role("region", name="Newest requests")).to_be_visible()
    expect(chosen).to_have_value("6 h")


def test_the_page_of_metrics_has_every_percentile_and_every_row_of_a_table(console, worked):
    page = console().sign_in(path=f"/endpoints/{worked.id}/metrics").page
    figures = page.get_by_role("region", name="Figures of this range")
    for name in ("Delay, p90", "Run time, p90", "Cold start, p95"):
        expect(figures.get_by_role("row", name=name)).to_contain_text(re.compile(r"\d+(\.\d+)? (ms|s)$"))
    for name in ("Submitted a second", "How long jobs waited"):
        page.get_by_role("button", name=f"Show {name} as a table").click()
        table = page.get_by_role("region", name=name)
        expect(table.get_by_role("row")).to_have_count(61)
        more = table.get_by_role("button", name=re.compile(r"^\d+ more$"))
        left = int(more.inner_text().split()[0])
        assert left > 60
        more.click()
        expect(table.get_by_role("row")).to_have_count(61 + left)
        expect(more).to_have_count(0)


def test_a_range_over_15_minutes_is_read_once_a_minute(console, worked):
    tab = console()
    tab.context.clock.install()
    page, read = tab.page, []
    page.on("request", lambda request: read.append(request.url) if "history?last=3600000" in request.url else None)
    tab.sign_in(path=f"/endpoints/{worked.id}/metrics?range=1+h")
    expect(page.locator(".range-note")).to_contain_text("No data")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    until(lambda: is_quiet(page, read), "nothing more is read", 20)
    # The next read may come sooner or later: from then on they are a minute apart.
    with page.expect_request(re.compile("history.last=3600000")):
        page.clock.fast_forward(65_000)
    until(lambda: is_quiet(page, read), "nothing more is read", 20)
    known = len(read)
    page.clock.fast_forward(40_000)
    page.wait_for_timeout(500)
    assert len(read) == known, read
    with page.expect_request(re.compile("history.last=3600000")):
        page.clock.fast_forward(25_000)


def test_the_figures_of_the_range_before_stay_until_the_next_are_there(console, worked):
    tab = console()
    tab.context.clock.install()
    page, held = tab.page, []

    def first_only(route) -> None:
        if held:
            return
        answer = route.fetch()
        held.append(route.request.url)
        route.fulfill(response=answer, json={**answer.json(), "total": {**answer.json()["total"], "completed": 7}})

    intercept(page, re.compile(r"/history\?from="), first_only)
    tab.sign_in(path=f"/endpoints/{worked.id}/metrics?compare=1")
    row = page.get_by_role("region", name="Figures of this range").get_by_role("row", name=re.compile("^Completed"))
    expect(row.get_by_role("cell").nth(1)).to_have_text("7")
    with page.expect_request(lambda request: "/history?from=" in request.url and request.url not in held):
        page.clock.fast_forward(61_000)
    expect(row.get_by_role("cell").nth(1)).to_have_text("7")


def test_an_endpoint_after_the_first_50_has_its_times_and_failures(console, api):
    added = [api.external(name=f"One of many {number}") for number in range(51)]
    last = [one for one in api.ok("GET", "/v1/endpoints") if one["id"] in {endpoint.id for endpoint in added}][-1]
    endpoint = Endpoint(api, last)
    endpoint.patch(name="After all others")
    worker = FakeWorker(endpoint)
    job = endpoint.run({})
    assert worker.take()["id"] == job
    worker.done(job, {"error": "the anchor is lost"})
    until(lambda: (total(api, endpoint)["failed"] or 0) > 0, "the failure is in a step that is over", 40)
    tab = console().sign_in()
    page = tab.page
    news = page.get_by_role("region", name="Just now")
    expect(news).to_contain_text("the anchor is lost")
    page.get_by_role("searchbox").fill("After all others")
    row = page.get_by_role("region", name="Endpoints").get_by_role("row").filter(has_text="After all others")
    expect(row).to_contain_text("100 %", timeout=60_000)
    # An open page may ask for the health of an endpoint in the moment of its deletion.
    tab.close()
    for endpoint in added:
        assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204


# The highest value of an axis, by what the chart shows and its largest value.
TOPS = """async () => {
  const address = (end) => performance.getEntriesByType("resource").map(({ name }) => name).find((name) => name.endsWith(end));
  const [{ optionsOf }, { count, duration, rate, size }] = [await import(address("/ui/plot.js")), await import(address("/format.js"))];
  const top = (unit, max) => optionsOf(null, { lines: [], width: 100, unit, span: () => [0, 1], marks: () => [], onHover: () => {} }).scales.y.range(null, 0, max)[1];
  return [count, duration, rate, size].map((unit) => [null, 0, 0.5, 100].map((max) => top(unit, max)));
}"""


def test_small_values_fill_their_chart(console, api):
    endpoint = api.external(name="Slow")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/metrics").page
    expect(page.get_by_role("region", name="Ended a second")).to_be_visible()
    # No half job is drawn, and no half millisecond.
    whole, parts = [1, 1, 1, 112], [1, 1, 0.56, 112]
    assert [[round(top, 9) for top in tops] for tops in page.evaluate(TOPS)] == [whole, whole, parts, parts]


# What the marks of an axis say.
MARKS = """async (marks) => {
  const address = (end) => performance.getEntriesByType("resource").map(({ name }) => name).find((name) => name.endsWith(end));
  const [{ optionsOf }, { rate }] = [await import(address("/ui/plot.js")), await import(address("/format.js"))];
  return optionsOf(null, { lines: [], width: 100, unit: rate, span: () => [0, 1], marks: () => [], onHover: () => {} }).axes[1].values(null, marks);
}"""


def test_marks_of_small_rates_differ(console, api):
    endpoint = api.external(name="Slower")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/metrics").page
    expect(page.get_by_role("region", name="Ended a second")).to_be_visible()
    assert page.evaluate(MARKS, [0, 0.005, 0.01, 0.015, 0.1]) == ["0", "0.005", "0.01", "0.015", "0.10"]
    assert page.evaluate(MARKS, [0.0005, 8.5, 120]) == ["0.0005", "8.5", "120"]
