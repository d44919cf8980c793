"""The settings of an endpoint in the console: changing them, versions, and deleting the endpoint."""

from playwright.sync_api import expect

from harness.browser import PHONE, key_for


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
    expect(page.get_by_text("The settings are saved.")).to_be_visible()
    expect(page.get_by_text("Nothing is changed.")).to_be_visible()
    record = api.ok("GET", f"/v1/endpoints/{endpoint.id}")
    assert (record["workersMax"], record["executionTimeoutMs"]) == (5, 90_000)
    assert (record["retryOn"], record["gpuTypeIds"]) == (["workerLost", "handlerError"], ["L4", "H100"])
    versions = page.get_by_role("region", name="Versions")
    expect(versions.get_by_role("row").filter(has_text="workersMax")).to_contain_text("3 → 5")


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
    expect(page.get_by_text("The settings are saved.")).to_be_visible()
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 0
    # Another browser resumes it with what it had.
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Disputed runs again.")).to_be_visible()
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
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/settings").page
    versions = page.get_by_role("region", name="Versions")
    row = versions.get_by_role("row").filter(has_text="created")
    row.get_by_role("button", name="Restore").click()
    row.get_by_role("button", name="Sure?").click()
    expect(page.get_by_text("Version 1 is back, as a new version.")).to_be_visible()
    expect(versions.get_by_text("version 3 is the present one")).to_be_visible()
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == 3


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
