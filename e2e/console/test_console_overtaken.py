"""Changes that another one overtook: templates, volumes and keys are shown as they are now, beside what was to be saved."""

import pytest
from playwright.sync_api import expect

from harness.browser import intercept

RESOURCES = {
    "template": ("/templates", "/v1/templates", {"imageName": "theirs:2"}, "Image", "mine:3", "imageName"),
    "volume": ("/volumes", "/v1/networkvolumes", {"size": 7}, "Size in GB", "9", "size"),
    "key": ("/api-keys", "/v1/apikeys", {"rateLimit": 7}, "Most requests in 10 s", "9", "rateLimit"),
}
BODIES = {
    "template": {"name": "Disputed", "imageName": "e2e"},
    "volume": {"name": "Disputed", "size": 1},
    "key": {"name": "Disputed", "scopes": [{"scope": "read"}]},
}


@pytest.mark.parametrize("what", RESOURCES)
def test_what_another_changed_is_shown_before_it_is_overwritten(console, api, what):
    page_path, route, theirs, label, mine, field = RESOURCES[what]
    made = api.ok("POST", route, json=BODIES[what])
    tab = console().sign_in(path=page_path)
    tab.forget("412")
    page = tab.page
    with page.expect_response(f"**{route}/{made['id']}"):
        page.get_by_role("row").filter(has_text="Disputed").get_by_role("button", name="Change").click()
    form = page.get_by_role("dialog", name="Change Disputed")
    form.get_by_label(label).fill(mine)
    api.ok("PATCH", f"{route}/{made['id']}", json=theirs)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("heading", name=f"This {what} was changed meanwhile")).to_be_visible()
    now, then = (f"{value} GB" if what == "volume" else str(value) for value in (theirs[field], mine))
    expect(form.get_by_role("row").filter(has_text=field).get_by_role("cell")).to_have_text([now, then])
    assert api.ok("GET", f"{route}/{made['id']}")[field] == theirs[field]
    assert tab.axe() == []
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    assert str(api.ok("GET", f"{route}/{made['id']}")[field]) == mine


@pytest.mark.parametrize("what", RESOURCES)
def test_what_is_stored_now_must_be_read_before_it_is_changed(console, api, what):
    page_path, route, theirs, label, mine, field = RESOURCES[what]
    name = f"Unread {what}"
    made = api.ok("POST", route, json=BODIES[what] | {"name": name})
    path = f"{route}/{made['id']}"
    tab = console().sign_in(path=page_path)
    tab.forget("503")
    page = tab.page
    fault = {"status": 503, "json": {"error": "the server is starting", "code": "starting"}}
    intercept(page, f"**{path}", lambda call: call.fulfill(**fault) if call.request.method == "GET" else call.continue_())
    page.get_by_role("row").filter(has_text=name).get_by_role("button", name="Change").click()
    form = page.get_by_role("dialog", name=f"Change {name}")
    expect(form.get_by_text("The server is starting.")).to_be_visible()
    form.get_by_label(label).fill(mine)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("Nothing is saved: what is stored now could not be read")).to_be_visible()
    assert api.ok("GET", path).get(field) == made.get(field)
    assert tab.axe() == []
    # Another one changes it before it is read.
    api.ok("PATCH", path, json=theirs)
    page.unroute(f"**{path}")
    form.get_by_role("button", name="Try again").click()
    expect(form.get_by_text("The server is starting.")).to_have_count(0)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("heading", name=f"This {what} was changed meanwhile")).to_be_visible()
    assert api.ok("GET", path)[field] == theirs[field]
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    assert str(api.ok("GET", path)[field]) == mine
