"""Fields whose text is searched for when one stops typing: what one types meanwhile stays, and times are in the zone that is shown."""

import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import expect

# Types a text; in the moment in which it gets into the address, types another one.
TYPE_ON = """(label) => {
  const field = document.querySelector(`[aria-label="${label}"]`);
  const type = (text) => {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const replace = history.replaceState;
  history.replaceState = function (...given) {
    history.replaceState = replace;
    replace.apply(this, given);
    type("second");
  };
  field.focus();
  type("first");
}"""


@pytest.mark.parametrize(("path", "label", "name"), [
    ("/endpoints/{}/requests", "Search requests", "q"),
    ("/endpoints/{}/logs", "Search the logs", "q"),
    ("/audit", "Resource", "resource"),
])  # fmt: skip
def test_what_is_typed_while_the_text_before_is_searched_for_stays(console, api, path, label, name):
    endpoint = api.external()
    page = console().sign_in(path=path.format(endpoint.id)).page
    field = page.get_by_label(label, exact=True)
    expect(field).to_be_visible()
    page.evaluate(TYPE_ON, label)
    expect(page).to_have_url(re.compile(f"{name}=second"))
    expect(field).to_have_value("second")
    # The address decides when it changes in another way.
    page.evaluate("history.replaceState(null, '', location.pathname); dispatchEvent(new PopStateEvent('popstate'))")
    expect(field).to_have_value("")
    expect(page).not_to_have_url(re.compile("second"))


# In Tokyo, which is 9 h ahead of UTC all year: the text, the moment by local time, and the moment by UTC.
TIMES = [
    ("2020-01-31T12:00", "2020-01-31T03:00:00.000Z", "2020-01-31T12:00:00.000Z"),
    ("2020-01-31", "2020-01-30T15:00:00.000Z", "2020-01-31T00:00:00.000Z"),
    ("2020-01-31T12:00:30+02:00", "2020-01-31T10:00:30.000Z", "2020-01-31T10:00:30.000Z"),
]


@pytest.mark.parametrize("part", ["requests", "logs"])
def test_a_time_without_a_zone_is_in_the_zone_that_is_shown(console, api, part):
    endpoint = api.external()
    tab = console(timezone_id="Asia/Tokyo").sign_in(path=f"/endpoints/{endpoint.id}/{part}")
    page, zone = tab.page, tab.page.get_by_title("Switch between local time and UTC")

    def since(moment: str):
        return page.expect_request(lambda request: [moment] == parse_qs(urlsplit(request.url).query).get("since"))

    for text, local, utc in TIMES:
        with since(local):
            page.goto(f"{tab.root}/endpoints/{endpoint.id}/{part}?q=after:{quote(text)}")
        expect(zone).to_have_text("Local")
        if utc == local:
            continue
        with since(utc):
            zone.click()
        with since(local):
            zone.click()
