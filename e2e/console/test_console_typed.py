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


@pytest.mark.parametrize(("line", "asked"), [
    ("/worker:a1 job:.*/i", {"regex": ["(?i)worker:a1 job:.*"]}),
    ("level:error /after:x/ worker:a1", {"regex": ["after:x"], "level": ["ERROR"], "worker": ["a1"]}),
    ("GET /a/ worker:a1", {"q": ["GET /a/"], "worker": ["a1"]}),
])  # fmt: skip
def test_a_regex_of_logs_is_searched_for_as_it_is_typed(console, api, line, asked):
    endpoint = api.external()
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/logs").page

    def is_asked(request) -> bool:
        query = parse_qs(urlsplit(request.url).query)
        return urlsplit(request.url).path.endswith("/logs") and asked == {name: query[name] for name in ("regex", "q", "level", "worker", "job", "since") if name in query}

    with page.expect_request(is_asked):
        page.get_by_label("Search the logs").fill(line)


@pytest.mark.parametrize("text", ["after:200000000d", "after:2000000d", f"after:{'9' * 190}s"])
@pytest.mark.parametrize(("part", "label"), [("requests", "Search requests"), ("logs", "Search the logs")])
def test_a_time_that_no_year_has_is_a_fault(console, api, part, label, text):
    endpoint = api.external()
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/{part}").page
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    expect(page.get_by_text(re.compile("after:.? takes a duration")).first).to_be_visible()
    field.fill("after:1h")
    expect(page.get_by_text(re.compile("after:.? takes a duration"))).to_have_count(0)
