"""The chat of the playground, with the example of an OpenAI-compatible worker."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, key_for, message
from harness.client import unique
from harness.keyboard import press, write
from harness.server import ADMIN_KEY
from harness.wait import until

PARROT = Path(__file__).parent.parent.parent / "examples/openai/handler.py"


@pytest.fixture(scope="module")
def parrot(api):
    """An endpoint whose worker is the example."""
    command = [sys.executable, "-u", str(PARROT)]
    endpoint = api.endpoint(
        name="Parrot", slug=unique("parrot"), models=["parrot-1"], workersMin=1, workersMax=1,
        templateId=api.template(dockerStartCmd=command)["id"],
    )
    endpoint.wait_health("workers", "idle", 1, 60)
    return endpoint


def say(page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def jobs(endpoint) -> list[dict]:
    return endpoint.ok("GET", "/requests")["requests"]


def test_a_conversation_is_streamed_and_measured(console, parrot):
    tab = console().sign_in(path=f"/endpoints/{parrot.id}/playground")
    page = tab.page
    page.get_by_role("button", name="Chat").click()
    expect(page).to_have_url(re.compile(r"\?tab=chat$"))
    assert tab.axe() == []
    page.get_by_label("System text").fill("Repeat.")
    page.get_by_label("Temperature").fill("3")
    expect(page.get_by_text("The temperature is a number from 0 to 2.")).to_be_visible()
    page.get_by_label("Temperature").fill("0.5")
    page.get_by_label("Most tokens").fill("100")
    say(page, "a <b>harbour</b> at dawn")
    messages = page.get_by_role("log", name="Messages")
    # Seen before the end.
    expect(messages).to_contain_text("You said: a <b>harbour</b>")
    expect(messages).to_contain_text("First token after", timeout=60_000)
    expect(messages).to_contain_text("a second.")
    expect(messages.locator("b")).to_have_count(0)
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert tab.axe() == []
    job = jobs(parrot)[0]["id"]
    sent = parrot.ok("GET", f"/jobs/{job}/input")["openai_input"]
    roles = [(message["role"], message["content"]) for message in sent["messages"]]
    assert roles == [("system", "Repeat."), ("user", "a <b>harbour</b> at dawn")], sent
    assert (sent["model"], sent["temperature"], sent["max_tokens"], sent["stream"]) == ("parrot-1", 0.5, 100, True)
    say(page, "and at dusk")
    expect(messages.get_by_role("article")).to_have_count(4)
    expect(messages.get_by_text("You said: and at dusk")).to_be_visible()
    again = parrot.ok("GET", f"/jobs/{jobs(parrot)[0]['id']}/input")["openai_input"]["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("A request for each message")).to_be_visible()
    # Nothing that was said stays in the browser.
    assert "harbour" not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def test_stop_cancels_the_job(console, parrot):
    page = console().sign_in(path=f"/endpoints/{parrot.id}/playground?tab=chat").page
    say(page, "word " * 2_000)
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("You said: word word", timeout=60_000)
    job = jobs(parrot)[0]["id"]
    page.get_by_role("button", name="Stop").click()
    expect(messages).to_contain_text("Stopped. First token after")
    assert parrot.wait_for(job)["status"] == "CANCELLED"
    # The page is ready for the next message, and the focus is there.
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_the_draft_and_the_chat_stay_while_the_other_one_is_shown(console, parrot):
    page = console().sign_in(path=f"/endpoints/{parrot.id}/playground").page
    draft = page.get_by_label("Input, a JSON object")
    draft.fill('{"kept": 1}')
    page.get_by_role("button", name="Chat").click()
    expect(draft).to_be_hidden()
    say(page, "word " * 500)
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("You said: word word", timeout=60_000)
    page.get_by_label("Message", exact=True).fill("next")
    job = jobs(parrot)[0]["id"]
    page.get_by_role("button", name="Job", exact=True).click()
    expect(draft).to_have_value('{"kept": 1}')
    assert parrot.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
    page.get_by_role("button", name="Chat").click()
    expect(messages).to_contain_text("First token after")
    expect(messages.get_by_role("article")).to_have_count(2)
    expect(page.get_by_label("Message", exact=True)).to_have_value("next")


def test_a_conversation_is_found_again_after_another_page(console, parrot):
    page = console().sign_in(path=f"/endpoints/{parrot.id}/playground?tab=chat").page
    page.get_by_label("System text").fill("Repeat.")
    say(page, "word " * 2_000)
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("You said: word word", timeout=60_000)
    page.get_by_label("Message", exact=True).fill("next")
    page.get_by_role("link", name="Logs").click()
    expect(page.get_by_label("Search the logs")).to_be_visible()
    page.go_back()
    # The answer ended with its page.
    expect(messages.get_by_role("article")).to_have_count(2)
    expect(messages).to_contain_text("Stopped. First token after")
    expect(page.get_by_label("System text")).to_have_value("Repeat.")
    expect(page.get_by_label("Message", exact=True)).to_have_value("next")
    say(page, "and again")
    expect(messages.get_by_text("You said: and again")).to_be_visible(timeout=60_000)


def test_a_conversation_is_led_and_stopped_with_the_keyboard_alone(console, parrot):
    page = console().sign_in(path=f"/endpoints/{parrot.id}/playground").page
    expect(page.get_by_role("button", name="Chat")).to_be_visible()
    press(page, "Chat")
    write(page, "Message", "by keys")
    page.keyboard.press("Enter")
    messages = page.get_by_role("log", name="Messages")
    expect(messages).to_contain_text("You said: by keys", timeout=60_000)
    expect(messages).to_contain_text("First token after", timeout=60_000)
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.type("word " * 200)
    page.keyboard.press("Enter")
    expect(messages).to_contain_text("You said: word word", timeout=60_000)
    press(page, "Stop")
    expect(messages).to_contain_text("Stopped. First token after")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_what_the_model_refuses_is_said(console, api):
    endpoint = api.endpoint("outcomes.py", name="No model", models=["none"])
    tab = console(width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/playground?tab=chat")
    tab.forget("500")
    say(tab.page, "Hello")
    # The handler does not know the input of OpenAI's routes.
    expect(tab.page.get_by_role("alert")).to_contain_text("mood", timeout=60_000)
    assert tab.axe() == [] and tab.sideways() <= 0


def test_a_chat_that_waits_says_why(console, api):
    endpoint = api.external(name="Unanswered", models=["far-away"])
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground?tab=chat").page
    say(page, "Hello")
    expect(page.get_by_role("heading", name="No worker is there")).to_be_visible()
    # Other jobs can wait while a worker has this one.
    expect(page.get_by_role("region", name="Conversation")).to_contain_text("This is of the endpoint's queue.")
    # Leaving the page ends the request, and its job.
    page.get_by_role("link", name="Overview").nth(1).click()
    endpoint.wait_for(jobs(endpoint)[0]["id"], "CANCELLED")


def test_a_message_without_an_answer_is_shown_and_not_said_again(console, api):
    endpoint = api.external(name="Strict model", models=["strict"])
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground?tab=chat").page
    messages = page.get_by_role("log", name="Messages")
    for count, text in enumerate(("unanswered", "another"), 1):
        say(page, text)
        until(lambda: len(jobs(endpoint)) == count, "the message is a job")
        page.get_by_role("button", name="Stop").click()
        expect(messages.get_by_text("Stopped.")).to_have_count(count)
    sent = endpoint.ok("GET", f"/jobs/{jobs(endpoint)[0]['id']}/input")["openai_input"]["messages"]
    # Two messages of one role in a row are refused by the templates of many models.
    assert sent == [{"role": "user", "content": "another"}]
    expect(messages.get_by_text("unanswered")).to_be_visible()


def test_what_is_copied_asks_the_same(console, parrot):
    tab = console().sign_in(path=f"/endpoints/{parrot.id}/playground?tab=chat")
    page = tab.page
    text = "It's \"quoted\" $HOME \\ `x` and äöü \N{HORIZONTAL ELLIPSIS}"
    page.get_by_label("Message", exact=True).fill(text)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LONGSHORE_")}
    environment = clean | {"LONGSHORE_API_KEY": ADMIN_KEY, "NO_PROXY": "*"}
    for form, command in (("curl", ["bash"]), ("Python", [sys.executable, "-"])):
        page.get_by_role("button", name="Copy the next request as").click()
        page.get_by_role("menuitem", name=form).click()
        expect(message(page)).to_contain_text(f"Copied as {form}.")
        # A page may not read the clipboard; a person may paste.
        page.get_by_label("System text").fill("")
        page.get_by_label("System text").focus()
        page.keyboard.press("Control+v")
        copied = page.get_by_label("System text").input_value()
        page.get_by_label("System text").fill("")
        assert ADMIN_KEY not in copied
        done = subprocess.run(command, input=copied, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        sent = parrot.ok("GET", f"/jobs/{jobs(parrot)[0]['id']}/input")["openai_input"]["messages"]
        assert sent == [{"role": "user", "content": text}], form


def test_only_a_key_that_runs_jobs_chats(console, api, parrot):
    tab = console().sign_in(key_for(api, {"scope": "read"})["key"], path=f"/endpoints/{parrot.id}/playground?tab=chat")
    expect(tab.page.get_by_text("This key may not run jobs on this endpoint.")).to_be_visible()
    body = {"model": "parrot-1", "messages": [{"role": "user", "content": "before"}]}
    parrot.ok("POST", "/openai/v1/chat/completions", json=body)
    key = key_for(api, {"scope": "jobs", "endpointIds": [parrot.id]})["key"]
    page = console().sign_in(key, path=f"/endpoints/{parrot.id}/playground").page
    # It may not read `models`; a job before shows that the worker answers these routes.
    page.get_by_role("button", name="Chat").click()
    page.get_by_role("textbox", name="Model", exact=True).fill("parrot-1")
    expect(page.get_by_text("The endpoint has no models")).to_have_count(0)
    say(page, "with few rights")
    expect(page.get_by_text("You said: with few rights")).to_be_visible(timeout=60_000)


def test_an_endpoint_without_models_says_so(console, api):
    endpoint = api.external(name="Names no model")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/playground?tab=chat").page
    expect(page.get_by_role("textbox", name="Model", exact=True)).to_have_accessible_description("The endpoint has no models: the worker gets this name.")
