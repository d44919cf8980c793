"""Fields whose text is searched for when one stops typing: what one types meanwhile stays."""

import re

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
