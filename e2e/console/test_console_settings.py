"""The settings of an endpoint in the console: changing them, versions, and deleting the endpoint."""

import re

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, intercept, key_for, message
from harness.client import unique
from harness.wait import until


def test_settings_are_reviewed_and_saved(console, api):
    endpoint = api.external(name="Tuned", workersMax=3)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    page.get_by_role("link", name="Settings").click()
    save = page.get_by_role("button", name="Review and save")
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    most = page.get_by_label("Most workers workersMax")
    expect(most).to_have_accessible_description("0 pauses the endpoint: running jobs finish, others wait. Default: 3.")
    most.fill("many")
    expect(page.get_by_role("alert")).to_have_text("Most workers takes a number.")
    page.get_by_label("Most workers workersMax").fill("5")
    page.get_by_label("Longest run executionTimeoutMs").fill("90000")
    page.get_by_label("handlerError").check()
    page.get_by_label("GPU types gpuTypeIds").fill("L4, H100")
    expect(page.get_by_text("4 settings are changed.")).to_be_visible()
    assert tab.axe() == []
    save.click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog.get_by_role("row").filter(has_text="executionTimeoutMs")).to_contain_text("10 min")
    expect(dialog.get_by_role("row").filter(has_text="executionTimeoutMs")).to_contain_text("1 min 30 s")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(message(page)).to_contain_text("The settings are saved.")
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    record = api.ok("GET", f"/v1/endpoints/{endpoint.id}")
    assert (record["workersMax"], record["executionTimeoutMs"]) == (5, 90_000)
    assert (record["retryOn"], record["gpuTypeIds"]) == (["workerLost", "handlerError"], ["L4", "H100"])
    versions = page.get_by_role("region", name="Versions")
    expect(versions.get_by_role("row").filter(has_text="workersMax")).to_contain_text("3 → 5")


def defaults(tab) -> dict[str, str]:
    """What stands beside the settings of an endpoint."""
    expect(tab.page.locator("[id='setting-workersMax-about']")).to_contain_text("Default: 3.")
    return {
        line.get_attribute("id").removeprefix("setting-").removesuffix("-about"): line.inner_text()
        for line in tab.page.locator(".settings-about").all()
    }


def test_each_setting_says_its_default(console, api):
    queue = defaults(console().sign_in(path=f"/endpoints/{api.external().id}/settings"))
    balancer = api.endpoint("web_app.py", type="LB")
    forwards = defaults(console().sign_in(path=f"/endpoints/{balancer.id}/settings"))
    for lines in (queue, forwards):
        assert [name for name, line in lines.items() if "Default: " not in line] == ["templateId"]
    for name, default in {"slo.delayTarget": "95 %", "maxQueueLength": "the server's limit", "name": "its id", "gpuTypeIds": "none"}.items():
        assert queue[name].endswith(f"Default: {default}."), queue[name]
    # A new endpoint has what is said: times are written in words beside the numbers that they are.
    for name, line in forwards.items():
        words = re.search(r"ms are (.+?)\. Default: (.+)\.$", line)
        assert not words or not name.startswith("lb.") or words[1] == words[2], line
    lb = balancer.record["lb"]
    assert (lb["healthPath"], lb["maxConcurrency"], lb["queueMax"], lb["bodyBytesMax"]) == ("/ping", 0, 100, 30_000_000)
    for name, default in {"healthPath": "/ping", "maxConcurrency": "0", "queueMax": "100", "bodyBytesMax": "30 MB", "public": "a key"}.items():
        assert forwards[f"lb.{name}"].endswith(f"Default: {default}."), forwards[f"lb.{name}"]


def test_objectives_example_and_schema_are_set_with_all_their_digits(console, api):
    endpoint = api.external(name="Aimed", slo={"successTarget": 0.999})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    page.get_by_label("Starts within slo.delayMs").fill("5000")
    page.get_by_label("Share of jobs that complete slo.successTarget").fill("99.95")
    page.get_by_label("Messages of failures keepFailureTexts").select_option("not stored")
    page.get_by_label("Models models").fill("llama-3-8b, embed")
    page.get_by_label("Schema of the input inputSchema").fill('{"type": }')
    expect(page.get_by_role("alert")).to_have_text("Schema of the input is not JSON: line 1, column 10 must have a value.")
    page.get_by_label("Schema of the input inputSchema").fill('{"type": "object", "properties": {"seed": {"type": "integer"}}}')
    page.get_by_label("Example example").fill('{"input": {"seed": 9007199254740993123}}')
    expect(page.get_by_text("6 settings are changed.")).to_be_visible()
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    row = dialog.get_by_role("row").filter(has_text="slo.successTarget")
    expect(row.get_by_role("cell")).to_have_text(["99.9 %", "99.95 %"])
    expect(dialog.get_by_role("row").filter(has_text="Example")).to_contain_text("9007199254740993123")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(message(page)).to_contain_text("The settings are saved.")
    answer = api.call("GET", f"/v1/endpoints/{endpoint.id}")
    record = answer.json()
    assert record["slo"] == {"delayMs": 5000, "delayTarget": 0.95, "successTarget": 0.9995, "windowDays": 30}, record["slo"]
    assert (record["keepFailureTexts"], record["models"]) == (False, ["llama-3-8b", "embed"])
    assert record["inputSchema"] == {"type": "object", "properties": {"seed": {"type": "integer"}}}
    assert "9007199254740993123" in answer.text
    expect(page.get_by_label("Example example")).to_have_value('{\n  "input": {\n    "seed": 9007199254740993123\n  }\n}')
    # Without a member there are no objectives.
    for name in ("Starts within", "Share of jobs that start in time", "Share of jobs that complete", "Window in days"):
        page.get_by_label(name).fill("")
    page.get_by_role("button", name="Review and save").click()
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog).to_have_count(0)
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}").get("slo") is None


def test_a_change_by_another_is_shown_before_it_is_overwritten(console, api):
    endpoint = api.external(name="Disputed", workersMax=3)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    tab.forget("412")
    page = tab.page
    page.get_by_label("Most workers workersMax").fill("0")
    endpoint.patch(workersMax=7)
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog).to_contain_text("The endpoint is paused")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_text("This endpoint was changed meanwhile")).to_be_visible()
    expect(dialog.get_by_role("row").filter(has_text="workersMax")).to_contain_text("7")
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 7
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(message(page)).to_contain_text("The settings are saved.")
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 0
    # Another browser resumes it with what it had.
    page.get_by_role("button", name="Resume").click()
    expect(message(page)).to_contain_text("Disputed runs again.")
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 7


def test_what_the_server_refuses_is_said_and_nothing_is_lost(console, api):
    endpoint = api.external(name="Refused")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    page.get_by_label("Idle timeout idleTimeout", exact=True).fill("0")
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("idleTimeout")
    dialog.get_by_role("button", name="Go back").click()
    expect(page.get_by_label("Idle timeout idleTimeout", exact=True)).to_have_value("0")
    tab.forget("400")


def test_an_earlier_version_comes_back(console, api):
    first, second = api.template("echo.py", env={"MODEL": "small"}), api.template("echo.py", env={"MODEL": "large"})
    endpoint = api.external(name="Returned", templateId=first["id"])
    endpoint.patch(templateId=second["id"])
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    versions = page.get_by_role("region", name="Versions")
    row = versions.get_by_role("row").filter(has_text="created")
    row.get_by_role("button", name="Restore").click()
    row.get_by_role("button", name="Sure?").click()
    expect(message(page)).to_contain_text("Version 1 is back, as a new version.")
    expect(versions.get_by_text("version 3 is the present one")).to_be_visible()
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == 3


def save_most_workers(page, number: str) -> None:
    page.get_by_label("Most workers workersMax").fill(number)
    page.get_by_role("button", name="Review and save").click()
    page.get_by_role("dialog", name="Save these changes?").get_by_role("button", name="Save", exact=True).click()
    expect(message(page)).to_contain_text("The settings are saved.")


def save_slug(page, slug: str) -> None:
    page.get_by_label("Slug slug").fill(slug)
    page.get_by_role("button", name="Review and save").click()
    page.get_by_role("dialog", name="Save these changes?").get_by_role("button", name="Save", exact=True).click()


def test_the_page_goes_on_at_the_slug_that_was_saved(console, api):
    old, new = unique("old"), unique("new")
    endpoint = api.external(name="Renamed", slug=old)
    # A read of the old slug would be answered 404, printed by the browser, and fail the test.
    tab = console().sign_in(path="/endpoints")
    page = tab.page
    page.get_by_role("main").get_by_role("link", name="Renamed").click()
    page.get_by_role("link", name="Settings").click()
    expect(page).to_have_url(f"{tab.root}/endpoints/{old}/settings")
    # With a slug, with another one, and without: then the address has the id.
    for slug, name in ((new, new), ("", endpoint.id)):
        save_slug(page, slug)
        # The message is looked for first: it is shown for 5 s.
        expect(message(page)).to_contain_text("The settings are saved.")
        expect(page).to_have_url(f"{tab.root}/endpoints/{name}/settings")
        expect(page.get_by_role("heading", name="Renamed", level=1)).to_be_visible()
        expect(page.get_by_label("Slug slug")).to_have_value(slug)
        expect(page.get_by_text("Nothing is changed.")).to_be_visible()
        expect(page.get_by_text("Your changes are not saved.")).to_have_count(0)
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}").get("slug") is None
    # Where the address has the id, it stays.
    save_slug(page, new)
    expect(page.get_by_label("Slug slug")).to_have_value(new)
    expect(page).to_have_url(f"{tab.root}/endpoints/{endpoint.id}/settings")


def test_the_fields_show_what_a_restore_and_a_pause_have_stored(console, api):
    first, second = api.template("echo.py", env={"MODEL": "small"}), api.template("echo.py", env={"MODEL": "large"})
    endpoint = api.external(name="Followed", templateId=first["id"])
    endpoint.patch(templateId=second["id"])
    page = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    template, most = page.get_by_label("templateId"), page.get_by_label("Most workers workersMax")
    expect(template).to_have_value(second["id"])
    row = page.get_by_role("region", name="Versions").get_by_role("row").filter(has_text="created")
    row.get_by_role("button", name="Restore").click()
    row.get_by_role("button", name="Sure?").click()
    expect(template).to_have_value(first["id"])
    save_most_workers(page, "4")
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 4
    page.get_by_role("button", name="Pause").click()
    expect(most).to_have_value("0")
    save_most_workers(page, "6")


def test_what_is_typed_stays_while_another_changes_the_endpoint(console, api):
    endpoint = api.external(name="Typed over", workersMax=3)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    most, idle = page.get_by_label("Most workers workersMax"), page.get_by_label("Idle timeout idleTimeout", exact=True)
    most.fill("4")
    endpoint.patch(workersMax=7, idleTimeout=30)
    expect(page.get_by_text("The endpoint was changed meanwhile")).to_be_visible()
    expect(most).to_have_value("4")
    page.get_by_role("button", name="Undo").click()
    expect(most).to_have_value("7")
    expect(idle).to_have_value("30")
    expect(page.get_by_text("The endpoint was changed meanwhile")).to_have_count(0)


def hold_reads(page, address: re.Pattern):
    """Holds what the page reads of an address, until what this answers is called."""
    held: list | None = []

    def hold(route) -> None:
        if held is None or route.request.method != "GET":
            route.continue_()
        else:
            held.append(route)

    def let_go() -> None:
        nonlocal held
        routes, held = held or [], None
        for route in routes:
            route.continue_()

    intercept(page, address, hold)
    return let_go


@pytest.mark.parametrize("is_read_first", [True, False])
def test_what_is_typed_after_a_save_is_a_change_of_what_was_saved(console, api, is_read_first):
    endpoint = api.external(name="Saved twice", workersMax=3)
    # A second save that the server refuses would be printed, and fail the test.
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    most, idle = page.get_by_label("Most workers workersMax"), page.get_by_label("Idle timeout idleTimeout", exact=True)
    overtaken = page.get_by_text("The endpoint was changed meanwhile")
    expect(most).to_have_value("3")
    address = re.compile(f"/v1/endpoints/{endpoint.id}$")
    let_go = hold_reads(page, address)
    save_most_workers(page, "5")
    idle.fill("30")
    expect(page.get_by_text("1 setting is changed.")).to_be_visible()
    expect(most).to_have_value("5")
    if is_read_first:
        with page.expect_response(address):
            let_go()
        expect(idle).to_have_value("30")
        expect(overtaken).to_have_count(0)
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog.get_by_role("row").filter(has_text="workersMax")).to_have_count(0)
    expect(dialog.get_by_role("row").filter(has_text="idleTimeout").get_by_role("cell").last).to_have_text("30.0 s")
    dialog.get_by_role("button", name="Save", exact=True).click()
    if not is_read_first:
        let_go()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    expect(overtaken).to_have_count(0)
    record = api.ok("GET", f"/v1/endpoints/{endpoint.id}")
    assert (record["workersMax"], record["idleTimeout"]) == (5, 30)


def test_what_another_changes_after_a_save_is_not_overwritten(console, api):
    endpoint = api.external(name="Saved and disputed", workersMax=3)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    most = page.get_by_label("Most workers workersMax")
    expect(most).to_have_value("3")
    let_go = hold_reads(page, re.compile(f"/v1/endpoints/{endpoint.id}$"))
    save_most_workers(page, "5")
    most.fill("6")
    endpoint.patch(workersMax=7)
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    dialog.get_by_role("button", name="Save", exact=True).click()
    let_go()
    expect(dialog.get_by_text("This endpoint was changed meanwhile")).to_be_visible()
    expect(dialog.get_by_role("row").filter(has_text="workersMax").get_by_role("cell")).to_have_text(["7", "6"])
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 7
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog).to_have_count(0)
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 6


def test_a_refused_save_says_why_what_is_stored_could_not_be_read(console, api):
    endpoint = api.external(name="Unread", workersMax=3)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    page.get_by_label("Most workers workersMax").fill("4")
    endpoint.patch(workersMax=7)
    page.get_by_role("button", name="Review and save").click()
    address = re.compile(f"/v1/endpoints/{endpoint.id}$")
    unread = lambda route: route.fulfill(status=503, json={"error": "no disk"}) if route.request.method == "GET" else route.continue_()  # noqa: E731
    intercept(page, address, unread)
    dialog = page.get_by_role("dialog", name="Save these changes?")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("could not be read. No disk.")
    for status in ("412", "503"):
        tab.forget(status)


def test_versions_say_how_they_ran_and_are_compared(console, api):
    template = api.template("outcomes.py", env={"MODEL": "small"})
    endpoint = api.endpoint(name="Compared", templateId=template["id"], workersMax=1)
    for mood in ("text", "raise", "text", "raise"):
        endpoint.wait_for(endpoint.run({"mood": mood}), timeout_s=60)

    def counted():
        total = api.ok("GET", f"/v1/endpoints/{endpoint.id}/history?last=900000&series=completed,failed")["total"]
        assert (total["completed"], total["failed"]) == (2, 2), total
        return total

    # The history has the last 2 s when they have passed.
    until(counted, "the history has the jobs", 30)
    api.ok("PATCH", f"/v1/templates/{template['id']}", json={"env": {"MODEL": "large"}})
    endpoint.patch(workersMax=2, idleTimeout=30)
    endpoint.patch(workersMax=1)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    versions = tab.page.get_by_role("region", name="Versions")
    expect(versions.get_by_role("row").filter(has_text="created")).to_contain_text("50 %")
    versions.get_by_role("button", name="Compare version 1").press("Enter")
    dialog = tab.page.get_by_role("dialog", name="Compare two versions")
    row = lambda name: dialog.get_by_role("row").filter(has=tab.page.get_by_role("rowheader", name=name, exact=True))  # noqa: E731
    expect(row("Jobs that ended").get_by_role("cell").first).to_have_text("4")
    expect(row("Failed of them").get_by_role("cell").first).to_have_text("50 %")
    expect(row("env.MODEL")).to_contain_text("the values are not shown")
    expect(row("idleTimeout").get_by_role("cell")).to_have_text(["60", "30"])
    # It was changed, and changed back.
    expect(row("workersMax")).to_have_count(0)
    assert tab.axe() == []
    dialog.get_by_label("Other").select_option("Version 1")
    expect(dialog.get_by_text("This is the same version twice.")).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_what_a_change_does_now_is_said_before_it_is_saved(console, api):
    endpoint = api.endpoint("echo.py", name="Affected", workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "idle", 2, 60)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    page.get_by_label("Fewest workers workersMin").fill("1")
    page.get_by_label("GPUs of a worker gpuCount").fill("2")
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Save these changes?")
    expect(dialog).to_contain_text("1 idle worker ends once without a job for the idle timeout.")
    expect(dialog).to_contain_text("Workers that run keep what they have; the next ones get the new hardware.")


def test_an_endpoint_is_deleted_by_its_name(console, api):
    endpoint = api.external(name="Short-lived")
    endpoint.run()
    tab = console(width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    page.get_by_role("button", name="Delete this endpoint").click()
    dialog = page.get_by_role("dialog", name="Delete Short-lived?")
    expect(dialog).to_contain_text("1 waiting and 0 running jobs are dropped.")
    remove = dialog.get_by_role("button", name="Delete it")
    # A disabled button keeps its place in the order of focus.
    remove.press("Enter")
    assert api.call("GET", f"/v1/endpoints/{endpoint.id}").status_code == 200
    dialog.get_by_label("Type “Short-lived”").fill("Short-lived")
    assert tab.axe() == [] and tab.sideways() <= 0
    remove.click()
    expect(page.get_by_role("heading", name="Endpoints", level=1)).to_be_visible()
    assert api.call("GET", f"/v1/endpoints/{endpoint.id}").status_code == 404
    tab.forget("404")


def test_a_key_that_only_looks_changes_nothing(console, api):
    endpoint = api.external(name="Seen")
    key = key_for(api, {"scope": "read"})
    page = console().sign_in(key["key"], path=f"/endpoints/{endpoint.id}/settings").page
    expect(page.get_by_label("Most workers workersMax")).to_be_disabled()
    for name in ("Review and save", "Delete this endpoint", "Restore"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
