"""The console's pages about the server: webhooks, metrics, machines, usage and health."""

import csv
import json
import re

import pytest
from playwright.sync_api import expect

from harness.browser import intercept, key_for
from harness.client import Api
from harness.console_pages import GPUS
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.reverse_proxy import Answer, ReverseProxy
from harness.server import Server
from harness.wait import until

# A price at which seconds cost something.
CONFIG = 'currency = "EUR"\n' + GPUS.replace("0.8", "3600.0")


@pytest.fixture(scope="module")
def server():
    server = Server(config=CONFIG, flags=("--allow-private-webhooks",)).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def worked(api):
    """An endpoint with a GPU whose worker ran jobs, and its history when it has them."""
    endpoint = api.endpoint("outcomes.py", name="Worked", gpuCount=1, gpuTypeIds=["NVIDIA L4"], idleTimeout=600, workersMin=1)
    for mood in ("text", "text", "raise"):
        endpoint.wait_for(endpoint.run({"mood": mood}), "COMPLETED" if mood == "text" else "FAILED", timeout_s=60)
    total = f"/v1/endpoints/{endpoint.id}/history?last=900000"
    until(lambda: api.ok("GET", total)["total"]["completed"] == 2, "the jobs are in a step that is over", 30)
    return endpoint


def test_metrics_show_every_chart_and_compare_with_the_range_before(console, worked):
    page = console().sign_in(path=f"/endpoints/{worked.id}").page
    page.get_by_role("link", name="Metrics").click()
    for title in ("Jobs", "Submitted a second", "Refused, by operation", "Not completed", "Failures by kind", "Delay", "Run time", "Cold starts", "Jobs that met a cold start"):
        expect(page.get_by_role("img", name=f"{title}, latest")).to_be_visible()
    figures = page.get_by_role("region", name="Figures of this range")
    expect(figures.get_by_role("row").filter(has_text="Completed")).to_contain_text("2")
    expect(figures.get_by_role("row").filter(has_text="Failed, of those that ended")).to_contain_text("33 %")
    expect(figures.get_by_role("row").filter(has_text="Failed, error of the handler")).to_contain_text("1")
    # What did not happen has no row.
    expect(figures.get_by_role("row").filter(has_text="Refused")).to_have_count(0)
    page.get_by_role("button", name="Compare with the range before").click()
    expect(figures.get_by_role("columnheader", name="The range before")).to_be_visible()
    expect(page).to_have_url(re.compile("compare=1"))
    page.reload()
    expect(figures.get_by_role("columnheader", name="Change")).to_be_visible()


def test_metrics_have_the_use_of_gpus_where_there_are_gpus(console, api, worked):
    page = console().sign_in(path=f"/endpoints/{worked.id}/metrics").page
    # Only the settings name these GPUs, so that no driver says how busy they are.
    expect(page.get_by_text("Nothing says how busy these GPUs were in this time range.")).to_be_visible()
    figures = page.get_by_role("region", name="Figures of this range")
    expect(figures.get_by_role("rowheader", name="Time of GPUs")).to_be_visible()
    expect(figures.get_by_role("rowheader", name="GPU use")).to_have_count(0)

    def as_said(route):
        answer = route.fetch()
        body = answer.json()
        if "gpuMs" in body["series"]:
            body["series"] |= {"gpuReadMs": body["series"]["gpuMs"], "gpuBusyMs": [value and value / 4 for value in body["series"]["gpuMs"]]}
            body["total"] |= {"gpuReadMs": body["total"]["gpuMs"], "gpuBusyMs": body["total"]["gpuMs"] / 4}
        route.fulfill(response=answer, json=body)

    intercept(page, "**/history?**", as_said)
    page.reload()
    expect(page.get_by_role("img", name="GPU use, latest: of the workers' GPUs 25 %")).to_be_visible()
    expect(figures.get_by_role("row").filter(has_text="GPU use")).to_contain_text("25 %")
    page.unroute("**/history?**")
    without = api.external(name="Without GPUs")
    page.goto(page.url.replace(worked.id, without.id))
    expect(page.get_by_role("heading", name="GPUs of workers")).to_be_visible()
    expect(page.get_by_role("heading", name="GPU use")).to_have_count(0)


def test_machines_show_the_worker_of_a_gpu_and_the_waiting_endpoint(console, api, worked):
    waiting = api.endpoint("echo.py", name="Too large", gpuCount=2, gpuTypeIds=["NVIDIA L4"])
    job = waiting.run({})
    tab = console().sign_in(path="/machines")
    page = tab.page
    gpus = page.get_by_role("region", name="GPUs", exact=True)
    expect(gpus.get_by_role("row").filter(has_text="Worked")).to_have_count(1)
    expect(gpus.get_by_role("row").filter(has_text="free")).to_have_count(1)
    line = page.get_by_role("region", name="Waiting for GPUs")
    expect(line).to_contain_text("1. Too large wants 2 × NVIDIA L4 for each worker. 1 × NVIDIA L4 is free. 1 more has to come free.", timeout=30_000)
    expect(line).to_contain_text("This worker would have to end:")
    expect(line.get_by_role("link", name="Worked")).to_be_visible()
    assert tab.axe() == []
    [machine] = api.ok("GET", "/v1/machines")
    [first] = machine["line"]
    assert (first["endpoint"], first["missing"], machine["waiting"]) == (waiting.id, 1, [waiting.id])
    assert [holder["endpoint"] for holder in first["workers"]] == [worked.id]
    waiting.cancel(job)
    expect(line).to_have_count(0, timeout=30_000)
    [machine] = api.ok("GET", "/v1/machines")
    assert [gpu["endpoint"] for gpu in machine["gpus"]].count(worked.id) == 1
    assert machine["cpuCount"] >= 1 and 0 < machine["memoryFreeBytes"] <= machine["memoryBytes"]


def test_requests_over_a_limit_are_counted_by_operation(console, api, worked):
    answers = [worked.call("POST", "/purge-queue").status_code for _ in range(4)]
    assert answers == [200, 200, 429, 429]
    path = f"/v1/endpoints/{worked.id}/history?last=900000&series=limitedPurgeQueue,limitedRun,refused"
    counted = {"limitedPurgeQueue": 2, "limitedRun": 0, "refused": 0}
    until(lambda: api.ok("GET", path)["total"] == counted, "the refused requests are in a step that is over", 30)
    page = console().sign_in(path=f"/endpoints/{worked.id}/metrics").page
    expect(page.get_by_role("img", name=re.compile("^Refused, by operation, latest: purge-queue "))).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Refused, purge-queue")
    expect(row).to_contain_text("2")


def test_endpoints_are_grouped_by_state_and_by_the_machine_of_their_workers(console, api, worked):
    elsewhere = api.external(name="Lent by others")
    FakeWorker(elsewhere).ping()
    api.external(name="Without any")
    tab = console().sign_in(path="/endpoints?q=")
    page = tab.page
    groups = page.get_by_role("combobox", name="Groups")
    groups.focus()
    page.keyboard.type("By s")
    heads = page.locator(".group button")
    expect(heads.filter(has_text="Ready")).to_be_visible()
    expect(page).to_have_url(re.compile("group=state"))
    groups.select_option("By machine")
    [machine] = api.ok("GET", "/v1/machines")
    assert worked.id in machine["endpoints"] and elsewhere.id not in machine["endpoints"]
    order = page.locator("tbody tr")
    texts = lambda: [text.split("\n")[0] for text in order.all_inner_texts()]
    expect(heads).to_have_count(3)
    shown = " ".join(texts())
    names = [machine["name"], "Worked", "Elsewhere", "Lent by others", "No worker runs", "Without any"]
    assert [shown.index(name) for name in names] == sorted(shown.index(name) for name in names), shown
    assert tab.axe() == [] and tab.sideways() <= 0
    workers = tab.go("/workers").get_by_role("region", name="Running")
    expect(workers.get_by_role("row").filter(has_text="Worked")).to_contain_text(machine["name"])
    expect(workers.get_by_role("row").filter(has_text="Lent by others")).to_contain_text("elsewhere")
    tab.go("/endpoints?group=machine")
    heads.filter(has_text="Elsewhere").press("Enter")
    expect(page.get_by_role("link", name="Lent by others", exact=True)).to_have_count(0)
    expect(heads.filter(has_text="Elsewhere")).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("link", name="Worked", exact=True)).to_be_visible()


def test_usage_has_the_cost_and_a_file_of_it(console, api, worked):
    def billed():
        records = api.ok("GET", "/v1/billing/endpoints")
        return sum(record["amount"] for record in records) > 0

    until(billed, "the running worker is metered", 90)
    page = console().sign_in().page

    def half_busy(route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=[{**one, "busyMs": one["timeBilledMs"] // 2} for one in answer.json()])

    intercept(page, "**/v1/billing/endpoints?bucketSize=day&grouping=endpointId&*", half_busy)
    page.get_by_role("link", name="Usage and cost").click()
    row = page.get_by_role("region", name="By endpoint").get_by_role("row").filter(has_text="Worked")
    expect(row.get_by_role("cell").nth(2)).to_have_text(re.compile(r"^50(\.0)? %$"))
    page.get_by_role("button", name="GPU type").click()
    expect(page.get_by_text("of the workers' time had a job")).to_be_visible()
    expect(page.get_by_role("region", name="By GPU type").get_by_role("row").filter(has_text="NVIDIA L4")).to_be_visible()
    expect(page).to_have_url(re.compile("by=gpuTypeId"))
    page.get_by_role("button", name="Show Cost as a table").click()
    expect(page.get_by_role("region", name="Cost", exact=True).get_by_role("columnheader", name="NVIDIA L4")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert {row["gpuTypeId"] for row in rows} >= {"NVIDIA L4"} and sum(float(row["amount"]) for row in rows) > 0
    page.get_by_role("link", name="Endpoints").click()
    expect(page.get_by_role("columnheader", name="Cost an hour")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Worked")).to_contain_text("3\N{THIN SPACE}600.00 EUR")
    page.get_by_role("link", name="Worked").first.click()
    page.get_by_role("link", name="Metrics").click()
    expect(page.get_by_role("img", name=re.compile(r"Cost an hour, latest: cost [\d\N{THIN SPACE}]+\.\d\d EUR"))).to_be_visible()


def test_health_shows_the_state_and_what_the_operator_changed(console, api, worked):
    page = console().sign_in(path="/health").page
    expect(page.get_by_text("Ready", exact=True)).to_be_visible()
    changed = page.get_by_role("region", name="Changed settings")
    expect(changed.get_by_role("row").filter(has_text="ping_interval_ms")).to_contain_text("3000")
    expect(page.get_by_text("stored unencrypted")).to_be_visible()
    expect(page.get_by_text("not sent: `otlp_endpoint` is empty")).to_be_visible()
    budgets = page.get_by_role("region", name="Memory by budget")
    expect(budgets.get_by_role("row").filter(has_text="Payloads that were written last")).to_contain_text("17 MB")
    expect(page.get_by_text(re.compile(r"^all \d+ loaded$"))).to_be_visible()
    expect(page.get_by_text("0 a second, 0 since the start")).to_be_visible()
    facts = api.ok("GET", "/v1/server")
    assert facts["memory"]["jobs"] >= 3 and facts["memory"]["recent"] > 0 and facts["memory"]["history"] > 0
    assert facts["commits"]["count"] > 0 and facts["commits"]["failed"] == 0
    assert facts["connections"]["open"] >= 1 and facts["bytes"]["resident"] > 1_000_000
    api.ok("POST", "/v1/server/drain")
    expect(page.get_by_role("heading", name="Draining")).to_be_visible(timeout=30_000)
    api.call("DELETE", "/v1/server/drain")
    expect(page.get_by_role("heading", name="Draining")).to_have_count(0, timeout=30_000)


def test_webhooks_of_all_endpoints_are_listed_and_delivered_again(console, api, worked):
    with Receiver(500, 500, 200) as receiver:
        job = worked.run({"mood": "text"}, webhook=receiver.url)
        page = console().sign_in(path="/webhooks").page
        row = page.get_by_role("row").filter(has_text=job[-12:])
        expect(row).to_contain_text("Failed", timeout=40_000)
        expect(row).to_contain_text("HTTP 500")
        row.get_by_role("button", name="Show the attempts").click()
        expect(page.get_by_role("dialog")).to_contain_text("Attempt 2")
        # While the dialog is open, it shows what comes.
        [call] = worked.ok("GET", f"/webhooks?job={job}")["webhooks"]
        worked.ok("POST", f"/webhooks/{call['id']}/redeliver")
        expect(page.get_by_role("dialog")).to_contain_text("HTTP 200", timeout=40_000)
        page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
        expect(row).to_contain_text("Delivered", timeout=40_000)
        row.get_by_role("button", name="Deliver again").click()
        assert len(receiver.wait_for(4)) == 4
    history = f"/v1/endpoints/{worked.id}/history?last=900000&series=webhooksDelivered,webhooksRetried,webhooksFailed"
    counted = {"webhooksDelivered": 2, "webhooksRetried": 1, "webhooksFailed": 1}
    until(lambda: api.ok("GET", history)["total"] == counted, "the calls are in a step that is over", 30)
    page.get_by_role("button", name="Pending").click()
    expect(page.get_by_text("No call is in this state.")).to_be_visible()


def test_the_secret_of_an_endpoint_is_shown_once_and_removed(console, api, worked):
    page = console().keep_asking().sign_in(path=f"/endpoints/{worked.id}/webhooks").page
    page.get_by_role("button", name="Make a secret").click()
    expect(page.get_by_role("dialog")).to_contain_text("whsec_")
    page.get_by_role("button", name="I have kept it").click()
    expect(page.get_by_text("whsec_")).to_have_count(0)
    card = page.get_by_role("region", name="Signing secret")
    expect(card).to_contain_text("in use")
    card.get_by_role("button", name="Remove").click()
    card.get_by_role("button", name="Sure?").click()
    expect(card).to_contain_text("Webhooks are not signed.")


def test_a_receiver_that_does_not_respond_is_named(console, api, worked):
    with Receiver() as receiver:
        gone = receiver.url
    for _ in range(6):
        worked.run({"mood": "text"}, webhook=gone)
    page = console().sign_in(path="/webhooks").page
    alert = page.get_by_text("has not responded since")
    expect(alert).to_be_visible(timeout=60_000)
    [paused] = api.ok("GET", "/v1/webhooks")["pausedReceivers"]
    assert paused["receiver"] in gone and paused["since"] <= paused["until"]
    # Also on the endpoint's own page, for a key that reads no other endpoint; and not on that of another one.
    [same] = worked.ok("GET", "/webhooks")["pausedReceivers"]
    assert same["receiver"] == paused["receiver"]
    key = key_for(api, {"scope": "read", "endpointIds": [worked.id]})["key"]
    own = console().sign_in(key, path=f"/endpoints/{worked.id}/webhooks").page
    expect(own.get_by_text("has not responded since")).to_be_visible(timeout=60_000)
    assert api.external(name="Calls nothing").ok("GET", "/webhooks")["pausedReceivers"] == []


def test_what_a_key_may_not_see_is_not_asked_for(console, api, server, worked):
    key = key_for(api, {"scope": "read", "endpointIds": [worked.id]})["key"]
    tab = console().sign_in(key)
    for name in ("Machines", "Usage and cost", "Health"):
        expect(tab.page.get_by_role("link", name=name)).to_have_count(0)
    for path in ("/machines", "/usage", "/health"):
        tab.go(path)
        expect(tab.page.get_by_text("Only a key that reads all endpoints")).to_be_visible()
    other = api.external(name="Another")
    limited = Api(server, key)
    listed = limited.ok("GET", "/v1/webhooks")
    assert {call["endpoint"] for call in listed["webhooks"]} <= {worked.id} and listed["pausedReceivers"] == []
    assert limited.call("GET", "/v1/machines").status_code == 401
    tab.go("/workers")
    expect(tab.page.get_by_role("row").filter(has_text="Worked").first).to_be_visible()
    expect(tab.page.get_by_role("columnheader", name="Machine")).to_have_count(0)
    tab.go("/endpoints?group=machine")
    expect(tab.page.get_by_role("link", name="Worked", exact=True)).to_be_visible()
    expect(tab.page.get_by_role("combobox", name="Groups").get_by_role("option")).to_have_text(["Not grouped", "By state"])
    assert other.id != worked.id


def test_many_machines_are_folded(console, api, server, worked):
    (machine,) = api.ok("GET", "/v1/machines")
    many = json.dumps([{**machine, "id": f"m{number}", "name": f"berth-{number}"} for number in range(5)]).encode()

    def intercept(method: str, path: str) -> Answer | None:
        return Answer(200, many, [("Content-Type", "application/json")]) if path == "/v1/machines" else None

    with ReverseProxy(server.port, intercept=intercept) as proxy:
        tab = console(proxy).sign_in(path="/machines")
        page = tab.page
        folded = page.get_by_role("group").filter(has_text="berth-3")
        expect(folded).to_contain_text(re.compile(r"of 2 GPUs taken"))
        expect(page.get_by_role("region", name="GPUs")).to_have_count(0)
        folded.locator("summary").press("Enter")
        expect(page.get_by_role("region", name="GPUs")).to_have_count(1)
        assert tab.axe() == [] and tab.sideways() <= 0
        tab.close()


def test_figures_of_the_overview_are_of_the_chosen_range(console, worked):
    page = console().sign_in().page
    failed = page.locator(".gauge").filter(has_text="Failed")
    expect(failed).to_contain_text("1in 15 min")
    page.get_by_label("Time range").select_option("1 h")
    expect(failed).to_contain_text("in 1 h")


def test_usage_names_what_costs_nothing_in_each_grouping(console, api):
    """By endpoint, one record holds workers with and without a price."""

    def by_type(route) -> None:
        metered = {"time": "2026-01-01T00:00:00.000Z", "timeBilledMs": 60000, "busyMs": None}
        types = (("NVIDIA L4", 1.5), ("Tesla T4", 0), ("CPU", 0))
        route.fulfill(json=[metered | {"gpuTypeId": name, "amount": amount} for name, amount in types])

    tab = console().sign_in()
    page = tab.page
    intercept(page, "**/v1/billing/endpoints?*grouping=gpuTypeId*", by_type)
    page.get_by_role("link", name="Usage and cost").click()
    expect(page.get_by_role("heading", name="By endpoint")).to_be_visible()
    expect(page.get_by_text("The price is 0 or not set for Tesla T4, workers without a GPU (cpu).")).to_be_visible()
    page.get_by_role("button", name="Worker", exact=True).click()
    expect(page.get_by_role("heading", name="By worker")).to_be_visible()
    expect(page.get_by_text("The price is 0 or not set for Tesla T4, workers without a GPU (cpu).")).to_be_visible()
