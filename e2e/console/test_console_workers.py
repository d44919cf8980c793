"""Workers and their logs: by the API, and on the pages of the console."""

import json
import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from harness.browser import PHONE, intercept, key_for, message
from harness.fake_worker import FakeWorker
from harness.keyboard import press_pair
from harness.reverse_proxy import Answer, ReverseProxy
from harness.wait import until
from test_explain import installing


@pytest.fixture(scope="module")
def printed(api):
    """An endpoint whose jobs ended, failed, and ended their worker."""
    # Its worker waits for all tests of the module.
    endpoint = api.endpoint("outcomes.py", name="Printing", workersMax=1, idleTimeout=3600)
    jobs = {}
    for mood, state in (("text", "COMPLETED"), ("raise", "FAILED"), ("list", "COMPLETED")):
        jobs[mood] = endpoint.run({"mood": mood})
        endpoint.wait_for(jobs[mood], state, timeout_s=60)
    endpoint.jobs = jobs
    return endpoint


def search(api, endpoint, **query) -> dict:
    return api.ok("GET", f"/v1/endpoints/{endpoint.id}/logs", params=query)


def paged(api, endpoint, **query) -> list[str]:
    """The ids of the lines of a search, of which each page has three."""
    found, cursor = [], None
    while cursor or not found:
        page = search(api, endpoint, limit=3, **query, **({"cursor": cursor} if cursor else {}))
        found += [line["id"] for line in page["lines"]]
        cursor = page["cursor"]
    return found


def test_the_logs_of_all_workers_are_searched_by_time_text_level_and_job(api, printed):
    everything = search(api, printed)
    lines = everything["lines"]
    assert everything["complete"] and everything["scannedBytes"] > 0 and len(lines) > 5
    times = [datetime.fromisoformat(line["at"]) for line in lines]
    assert times == sorted(times, reverse=True)
    assert all((datetime.now(UTC) - at).total_seconds() < 600 for at in times)
    known = [line["id"] for line in lines]
    assert [line for line in paged(api, printed) if line in known] == known
    assert [line for line in paged(api, printed, order="asc") if line in known] == known[::-1]
    job = printed.jobs["raise"]
    # A line about a heartbeat names the jobs that run, and is about none of them.
    named = [line for line in search(api, printed, q=job)["lines"] if "Heartbeat" not in line["text"]]
    assert named and {line["job"] for line in named} == {job}
    assert all(line["level"] == "ERROR" for line in search(api, printed, level="ERROR")["lines"])
    ran = search(api, printed, job=job)["lines"]
    assert {line["id"] for line in named} <= {line["id"] for line in ran}
    assert search(api, printed, q="no line says this")["lines"] == []
    assert search(api, printed, until="2020-01-01T00:00:00Z")["lines"] == []
    finished = search(api, printed, regex=r"^Finished\.?$", order="desc")["lines"]
    assert finished and all('"message": "Finished.' in line["text"] for line in finished), finished
    assert len(search(api, printed, regex="(?i)^FINISHED")["lines"]) >= len(finished)
    assert search(api, printed, regex="^requestId")["lines"] == [], "the message is looked at, not the object around it"
    for bad, said in [("cursor=evil", "`cursor`"), ("regex=(a", "unclosed group"), ("order=up", "it must be one of desc, asc"), ("worker=!!", "`worker`"), ("job=zz", "`job`")]:
        refused = api.call("GET", f"/v1/endpoints/{printed.id}/logs?{bad}")
        assert refused.status_code == 400 and said in refused.json()["error"], (bad, refused.text)
    refused = api.call("GET", f"/v1/endpoints/{printed.id}/logs?order=asc", headers={"Accept": "text/event-stream"})
    assert refused.status_code == 400 and "`order=asc`" in refused.json()["error"], refused.text
    for path in ("?includeWorkers=maybe", "/workers?ended=2"):
        refused = api.call("GET", f"/v1/endpoints/{printed.id}{path}")
        assert refused.status_code == 400 and "it must be true or false" in refused.json()["error"], (path, refused.text)


def log_events(answer):
    """The server-sent events of a response: name and data."""
    name = ""
    for line in answer.iter_lines(chunk_size=None, decode_unicode=True):
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def told(events, text: str) -> list[dict]:
    """The lines of the next events, until one with this text came."""
    lines = []
    while not lines or lines[-1]["text"] != text:
        name, data = next(events)
        assert name == "lines", (name, data)
        lines += data["lines"]
    return lines


def test_lines_come_as_they_are_printed(api):
    endpoint = api.endpoint("prints.py", name="Followed", workersMax=1)
    endpoint.runsync({"text": "before"})
    until(lambda: search(api, endpoint, q="said")["lines"], "the line is stored")
    events_only = {"Accept": "text/event-stream"}
    path = f"/v1/endpoints/{endpoint.id}/logs"
    with api.call("GET", f"{path}?q=said", headers=events_only, stream=True) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        events = log_events(answer)
        name, page = next(events)
        assert name == "page" and [line["text"] for line in page["lines"]] == ["said before"], page
        worker = page["lines"][0]["worker"]
        endpoint.runsync({"text": "one\nsaid two\nnot three"})
        news = told(events, "said two")
        assert [line["text"] for line in news] == ["said one", "said two"]
        # A worker that ends, and another one, are followed, too.
        api.ok("POST", f"{path.removesuffix('/logs')}/workers/{worker}/stop")
        endpoint.runsync({"text": "four"})
        (last,) = told(events, "said four")
        assert last["worker"] != worker
        searched = search(api, endpoint, q="said")["lines"]
        assert [line["text"] for line in searched] == ["said four", "said two", "said one", "said before"]
        assert searched[:3] == [last, *reversed(news)]
    refused = api.call("GET", f"{path}?cursor=1.1.w", headers=events_only)
    assert refused.status_code == 400 and "cursor" in refused.json()["error"]


def test_a_worker_that_starts_says_what_it_does(console, api, tmp_path):
    endpoint, _, go_on = installing(api, tmp_path)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/workers").page
    expect(page.get_by_role("row").filter(has_text="Starting")).to_contain_text("its packages are installed")
    go_on.touch()
    endpoint.patch(workersMax=0)


def test_the_page_of_logs_shows_and_finds_lines(console, printed):
    tab = console().sign_in(path=f"/endpoints/{printed.id}/logs")
    page = tab.page
    box = page.get_by_role("log", name="Lines")
    expect(box.get_by_role("link", name=printed.jobs["raise"][-12:]).first).to_be_visible()
    expect(box.locator("time").first).to_be_visible()
    assert tab.axe() == []
    page.keyboard.press("/")
    page.keyboard.type(printed.jobs["raise"])
    expect(box.get_by_role("link", name=printed.jobs["text"][-12:])).to_have_count(0)
    page.get_by_role("searchbox").fill("after:soon")
    expect(page.get_by_text("takes a duration such as")).to_be_visible()
    page.get_by_role("searchbox").fill("/Finished\\.?$/")
    expect(box.get_by_text("Finished").first).to_be_visible()
    expect(box.get_by_text("Started", exact=False)).to_have_count(0)
    page.get_by_role("searchbox").fill("/(Fin/")
    expect(page.get_by_text("`regex` is no regular expression that can be searched for: unclosed group")).to_be_visible()
    tab.forget("400")
    page.get_by_role("searchbox").fill("after:10min no line says this")
    expect(page.get_by_text(re.compile(r"No line matches, of those printed since 20\d\d-"))).to_be_visible()


def test_a_level_shows_its_lines_and_those_that_are_worse(console, api):
    endpoint = api.endpoint("prints.py", name="Levelled", workersMax=1)
    endpoint.runsync({"text": "plain\nDEBUG:root:a detail\nINFO:root:a note\nWARNING:root:a warning\nERROR:root:an error"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/logs").page
    box, line = page.get_by_role("log", name="Lines"), page.get_by_role("searchbox")
    every = ["said plain", "a detail", "a note", "a warning", "an error"]
    for level, first in [("level:debug", 0), ("level:error", 4), ("level:warn", 3), ("level:debug", 0), ("level:info", 2), ("level:critical", 4)]:
        line.fill(level)
        expect(box.get_by_text(every[first])).to_be_visible()
        for at, text in enumerate(every):
            is_shown = at >= first or (level == "level:info" and at == 0)
            expect(box.get_by_text(text)).to_have_count(1 if is_shown else 0)
    # The server leaves out the lines, so that a page of them is a page of what is wanted.
    with page.expect_request(lambda request: "level=INFO" in request.url):
        line.fill("level:info")
    for level, left_out in (("INFO", every[1:2]), ("WARNING", every[:3]), ("ERROR", every[:4])):
        lines = api.ok("GET", f"/v1/endpoints/{endpoint.id}/logs", params={"level": level})["lines"]
        shown = [text for text in every if any(text in one["text"] for one in lines)]
        assert shown == [text for text in every if text not in left_out], level
    line.fill("level:loud")
    expect(page.get_by_text("takes error, warning, info or debug")).to_be_visible()
    line.fill("worker:none")
    expect(page.get_by_text("Nothing printed by worker none since 20")).to_be_visible()


def seen(box) -> list[str]:
    """The texts of the lines that are in sight in the box of lines."""
    return box.evaluate("""(box) => {
        const { top, bottom } = box.getBoundingClientRect();
        const isSeen = (node) => node.getBoundingClientRect().bottom > top && node.getBoundingClientRect().top < bottom;
        return [...box.querySelectorAll(".log-row")].filter(isSeen).map((row) => row.querySelector(".log-text").innerText);
    }""")


def test_200_000_lines_scroll(console, api):
    endpoint = api.endpoint("prints.py", name="Talkative", workersMax=1)
    endpoint.runsync({"text": "first", "lines": 30_000})
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/logs")
    page, box = tab.page, tab.page.get_by_role("log", name="Lines")
    expect(box).to_contain_text("said first")
    rows = "(box) => box.querySelectorAll('.log-row').length"

    def count() -> int:
        """The lines that the page holds, by its own words."""
        return int(re.sub(r"\s", "", re.match(r"[\d\s]+", page.get_by_text(re.compile(r"^[\d\s]+ lines")).inner_text())[0]))

    # The newest lines are seen as they come.
    endpoint.runsync({"text": "second", "lines": 3_000})
    until(lambda: any("said second" in text for text in seen(box)), "the last line is in sight")
    until(lambda: count() >= 3_500, "the lines are held")
    assert box.evaluate(rows) < 1_000
    # Older lines come as one scrolls, and what is in sight stays there while others are printed.
    box.evaluate("(box) => (box.scrollTop = 0)")
    until(lambda: count() >= 5_500, "older lines are held")
    before, held = seen(box), count()
    assert held < 7_000, "one page of them"
    assert "of many" in before[3]
    endpoint.runsync({"text": "third", "lines": 100})
    until(lambda: count() >= held + 100, "the lines are held")
    assert seen(box) == before
    # A full list drops no line that is in sight: it reads no newer ones.
    for _ in range(2):
        endpoint.runsync({"text": "more", "lines": 100_000})
    stopped = page.get_by_text("Newer lines are left out while you read older ones.")
    expect(stopped).to_be_visible(timeout=30_000)
    assert seen(box) == before and box.evaluate(rows) < 1_000
    page.get_by_role("button", name="Newest lines").click()
    until(lambda: any("said more" in text for text in seen(box)), "the last line is in sight")
    expect(stopped).to_be_hidden()
    # At the end, the oldest ones make room.
    for number in range(2):
        endpoint.runsync({"text": f"last {number}", "lines": 110_000})
    until(lambda: any("said last 1" in text for text in seen(box)), "the last line is in sight", 30)
    until(lambda: 199_000 < count() <= 200_000, "the list is full")
    assert box.evaluate(rows) < 1_000
    box.evaluate("(box) => (box.scrollTop = box.scrollHeight / 2)")
    until(lambda: any("of many" in text for text in seen(box)), "lines in the middle")
    numbers = [int(re.search(r"(\d{6}) of many", text)[1]) for text in seen(box)]
    assert len(numbers) > 10 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_the_log_of_a_job_has_the_lines_of_its_attempts(console, printed):
    failed = printed.jobs["raise"]
    ended = datetime.fromisoformat(printed.ok("GET", f"/jobs/{failed}")["completedAt"])
    # Lines have their times to about 100 ms.
    until(lambda: (datetime.now(UTC) - ended).total_seconds() > 0.5, "the later job comes later", 5)
    later = printed.run({"mood": "text"})
    printed.wait_for(later, "COMPLETED", timeout_s=30)
    page = console().sign_in(path=f"/endpoints/{printed.id}/requests/{failed}").page
    log = page.get_by_role("region", name="Log")
    expect(log.locator(".log-row.named, .log-row.bad").filter(has_text=failed[-12:]).first).to_be_visible()
    assert log.get_by_text(later[-12:]).count() == 0, "lines of a later job"


def test_the_log_of_a_job_has_what_a_lost_worker_printed(console, api, tmp_path):
    endpoint = api.endpoint("lost_once.py", name="Lost once", workersMax=1)
    job = endpoint.run({"marker": str(tmp_path / "marker")})
    endpoint.wait_for(job, "COMPLETED", timeout_s=60)
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    log = page.get_by_role("region", name="Log")
    for said in ("the first worker ends now", "the second worker has it"):
        expect(log.get_by_text(said)).to_be_visible()


# A part of a log: the lines of two workers, one of them with a traceback and with colours.
TAKEN_APART = """async (folder) => {
  const {joined, pieces} = await import(`${folder}/log_text.js`);
  const line = (worker, text) => ({worker, text});
  const groups = joined([line("a", "Traceback (most recent call last):"), line("b", "between"), line("a", "  File x"), line("a", "ValueError: no"), line("a", "after")]);
  const tones = pieces("\u001b[31mred\u001b[38;5;4mblue\u001b[38;2;0;31;0mgreen\u001b[48;5;31m\u001b[92mlight\u001b[0mnone");
  return [groups.map(({line, rest}) => [line.text, rest.map(({text}) => text)]), tones.map(({text, tone}) => [text, tone])];
}"""


def test_tracebacks_are_joined_between_lines_of_other_workers_and_colours_are_read_whole(console):
    page = console().sign_in(path="/health").page
    folder = page.locator("meta[name=longshore-assets]").get_attribute("content")
    groups, tones = page.evaluate(TAKEN_APART, folder)
    assert groups == [["Traceback (most recent call last):", ["  File x", "ValueError: no"]], ["between", []], ["after", []]]
    assert tones == [["red", "failed"], ["blue", "running"], ["green", ""], ["light", "completed"], ["none", ""]]


def test_a_log_without_lines_says_since_when_nothing_was_printed(console, api):
    for endpoint, said in [
        (api.endpoint("echo.py"), "Nothing printed since 20"),
        (api.external(), "The workers are started elsewhere, and what they print stays there."),
    ]:
        tab = console().sign_in(path=f"/endpoints/{endpoint.id}/logs")
        expect(tab.page.get_by_text(said)).to_be_visible()
        assert tab.axe() == []


def test_a_worker_is_looked_at_and_stopped_by_a_second_press(console, api, printed):
    tab = console().keep_asking().sign_in(path=f"/endpoints/{printed.id}")
    page = tab.page
    failures = page.get_by_role("region", name="Failures")
    expect(failures).to_contain_text("The handler raised ValueError")
    page.get_by_role("navigation", name="Pages of this endpoint").get_by_role("link", name="Workers").click()
    running = page.get_by_role("region", name="Running")
    row = running.get_by_role("row").filter(has_text="Idle")
    expect(row).to_be_visible()
    worker = api.ok("GET", f"/v1/endpoints/{printed.id}/workers")[0]["id"]
    row.get_by_role("link", name=worker[-12:]).click()
    expect(page.get_by_role("heading", name=worker)).to_be_visible()
    expect(page.get_by_text("jobs were waiting")).to_be_visible()
    expect(page.get_by_role("log").get_by_role("link", name=printed.jobs["list"][-12:]).first).to_be_visible()
    assert tab.axe() == []
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Sure?").click()
    until(
        lambda: any(one["id"] == worker for one in api.ok("GET", f"/v1/endpoints/{printed.id}/workers?ended=true") if one["status"] == "EXITED"),
        "the worker has ended",
        30,
    )
    press_pair(page, "g", "w")
    ended = page.get_by_role("region", name="Ended").get_by_role("row").filter(has_text=worker[-12:])
    expect(ended).to_contain_text("Stopped")
    assert tab.axe() == []
    tab.go(f"/endpoints/{printed.id}/workers/none")
    expect(page.get_by_role("heading", name="This worker is not here")).to_be_visible()


def test_all_workers_of_an_endpoint_are_drained_with_the_effect_in_numbers(console, api, tmp_path):
    endpoint = api.endpoint("ignores_cancel.py", name="Drained", workersMin=1, workersMax=1, idleTimeout=600)
    go = tmp_path / "go"
    job = endpoint.run({"seconds": 300, "go": str(go)})
    endpoint.wait_for(job, "IN_PROGRESS", timeout_s=60)
    (worker,) = [one["id"] for one in api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers")]
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/settings")
    page = tab.page
    expect(page.get_by_role("button", name="Drain all")).to_be_enabled()
    tab.go(f"/endpoints/{endpoint.id}/workers")
    page.get_by_role("button", name="Drain all").click()
    dialog = page.get_by_role("dialog", name="Drain 1 worker of Drained?")
    expect(dialog).to_contain_text("It ends after 1 running job and gets no further one. Others start in their place: `workersMin` is 1.")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(message(page)).to_contain_text("1 worker of Drained ends after its jobs.")
    expect(page.get_by_role("row").filter(has_text=worker[-12:])).to_contain_text("Ends after its jobs")
    go.touch()
    assert endpoint.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
    ended = page.get_by_role("region", name="Ended").get_by_role("row").filter(has_text=worker[-12:])
    expect(ended).to_contain_text("by an operator")


# The number of lines that a text has on the screen.
LINES = """(node) => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return new Set([...range.getClientRects()].map(({ top }) => top)).size;
}"""


@pytest.mark.parametrize("width", [1440, PHONE])
def test_workers_that_are_started_elsewhere_get_their_variables_on_their_page(console, api, width):
    endpoint = api.external()
    tab = console(width=width, has_touch=width == PHONE).sign_in(path=f"/endpoints/{endpoint.id}/workers")
    page = tab.page
    token = api.ok("POST", f"/v1/endpoints/{endpoint.id}/worker-token")["token"]
    expect(page.get_by_text("Workers of this endpoint are external: you start them")).to_be_visible()
    card = page.get_by_role("region", name="Worker token")
    assert token not in page.content()
    card.get_by_role("button", name="Show the variables").click()
    expect(card).to_contain_text(f"export RUNPOD_AI_API_KEY='{token}'")
    assert tab.axe() == [] and tab.sideways() <= 0
    # Names and values stay whole: a line that is longer than its box scrolls in it.
    boxes = card.locator("pre")
    assert [box.evaluate(LINES) for box in boxes.all()] == [len(text.splitlines()) for text in boxes.all_text_contents()]
    card.get_by_role("button", name="Hide").click()
    expect(card).not_to_contain_text(token)


def test_workers_of_all_endpoints_have_rows_of_two_lines_on_a_phone(console, api):
    name = "An endpoint whose name is longer than a telephone is wide by far"
    endpoint = api.endpoint("echo.py", name=name, workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1)
    tab = console(width=PHONE, has_touch=True).sign_in(path="/workers")
    page = tab.page
    row = page.get_by_role("region", name="Running").get_by_role("row").filter(has_text=name)
    expect(row.get_by_role("link", name=name).locator("visible=true")).to_have_count(1)
    assert tab.sideways() <= 0
    boxes = page.evaluate("[...document.querySelectorAll('.table-box')].map((box) => box.scrollWidth - box.clientWidth)")
    assert boxes and max(boxes) <= 0, boxes
    assert row.bounding_box()["height"] <= 64
    assert tab.axe() == []


# Whether each line of a text is inside the cell that it stands in.
IS_WHOLE = """(node) => {
  const [cell, range] = [node.closest("td").getBoundingClientRect(), document.createRange()];
  range.selectNodeContents(node);
  return [...range.getClientRects()].every((line) => line.left >= cell.left && line.right <= cell.right && line.bottom <= cell.bottom);
}"""


def test_what_a_worker_waits_for_is_read_in_whole_on_a_phone(console, api, server, printed):
    reasons = [
        "downloads the image registry.example.com/companies/transcription-of-harbour-radio/whisper-large:2, 3 of 12 GB",
        "waits for 2 × NVIDIA H100 80GB HBM3: 6 of 8 are used by other endpoints, 2 are kept for ones of a higher priority",
    ]
    (worker, *_) = api.ok("GET", f"/v1/endpoints/{printed.id}/workers?ended=true")
    listed = [worker | {"id": f"one-{number}", "status": "INITIALIZING", "reason": reason} for number, reason in enumerate(reasons)]
    path = f"/v1/endpoints/{printed.id}/workers"

    def intercept(method: str, asked: str) -> Answer | None:
        return Answer(200, json.dumps(listed).encode(), [("Content-Type", "application/json")]) if asked.startswith(path) else None

    with ReverseProxy(server.port, intercept=intercept) as proxy:
        tab = console(proxy, width=PHONE, has_touch=True).sign_in(path="/workers")
        for reason in reasons:
            shown = tab.page.get_by_text(reason, exact=True)
            expect(shown).to_be_visible()
            assert shown.evaluate(IS_WHOLE), reason
        boxes = tab.page.evaluate("[...document.querySelectorAll('.table-box')].map((box) => box.scrollWidth - box.clientWidth)")
        assert max(boxes) <= 0 and tab.sideways() <= 0, boxes
        assert tab.axe() == []
        tab.close()


def test_a_page_without_workers_says_why_there_is_none(console, api):
    paused = api.endpoint("echo.py", name="Paused", workersMax=0)
    asleep = api.endpoint("echo.py", name="Asleep", workersMax=1)
    tab = console().sign_in(path=f"/endpoints/{paused.id}/workers")
    page = tab.page
    running = page.get_by_role("region", name="Running")
    expect(running).to_contain_text("No worker runs. The endpoint is paused: `workersMax` is 0.")
    paused.run({})
    tab.go(f"/endpoints/{paused.id}")
    expect(page.get_by_role("region", name="Running workers")).to_contain_text("No worker runs. The endpoint is paused: `workersMax` is 0.")
    tab.go(f"/endpoints/{asleep.id}/workers")
    expect(running).to_contain_text("No worker runs. None is needed: one starts when a job comes.")


def test_the_page_of_all_workers_has_crashes_and_tries_now(console, api):
    endpoint = api.endpoint("crash.py", name="Crashing", workersMax=1)
    endpoint.run({})
    page = console().sign_in(path="/workers").page
    problem = page.get_by_role("region", name="Attention").locator(".alert").filter(has_text="Crashing: Every worker crashes while it starts")
    expect(problem).to_contain_text("no model file: giving up", timeout=60_000)
    ended = len(api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers?ended=true"))
    problem.get_by_role("button", name="Try now").click()
    expect(message(page)).to_contain_text("A worker is started now.")
    until(lambda: len(api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers?ended=true")) > ended, "another worker has crashed", 30)
    reader = api.ok("POST", "/v1/apikeys", json={"name": "Reads workers", "scopes": [{"scope": "read"}]})["key"]
    page = console().sign_in(reader, path="/workers").page
    expect(page.get_by_role("heading", name="Crashing: Every worker crashes while it starts")).to_be_visible()
    expect(page.get_by_role("button", name="Try now")).to_have_count(0)
    endpoint.patch(workersMax=0)


def test_the_jobs_of_a_worker_beyond_the_first_are_a_link_to_its_requests(console, api):
    endpoint = api.endpoint("eight_at_once.py", name="Many together", workersMax=1, maxConcurrency=8)
    jobs = [endpoint.run({"seconds": 600}) for _ in range(5)]
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/workers").page
    running = page.get_by_role("region", name="Running")
    expect(running).to_contain_text("5/8", timeout=60_000)
    running.get_by_role("link", name="2 more").click()
    for job in jobs:
        expect(page.get_by_role("row").filter(has_text=job[-12:])).to_be_visible()
    expect(page).to_have_url(re.compile("(?=.*q=worker%3A)(?=.*state=IN_PROGRESS)"))
    endpoint.patch(workersMax=0)


def test_the_workers_of_more_than_50_endpoints_are_on_several_pages(console, api):
    known = len(api.ok("GET", "/v1/endpoints"))
    added = [api.external(name=f"Elsewhere {number}") for number in range(51)]
    tab = console().sign_in(path="/workers")
    page = tab.page
    every = known + len(added)
    expect(page.get_by_text(f"Of endpoints 1 to 50 of {every}.")).to_be_visible()
    page.get_by_role("button", name="Next endpoints").click()
    expect(page.get_by_text(f"Of endpoints 51 to {min(every, 100)} of {every}.")).to_be_visible()
    page.get_by_role("button", name="Endpoints before").click()
    expect(page.get_by_text(f"Of endpoints 1 to 50 of {every}.")).to_be_visible()
    # This page would ask for the workers of endpoints that are gone.
    tab.go("/templates")
    for endpoint in added:
        assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204


def test_the_page_of_a_worker_leads_to_its_requests_and_charts_its_gpus(console, api, printed):
    printed.wait_for(printed.run({"mood": "text"}), "COMPLETED", timeout_s=60)
    (worker,) = [one["id"] for one in api.ok("GET", f"/v1/endpoints/{printed.id}/workers")]
    page = console().sign_in().page

    def with_gpus(route) -> None:
        answer = route.fetch()
        listed = answer.json()
        for one in listed:
            one["gpus"] = [{"id": "0", "type": "L4", "useRatio": 0.25, "memoryUsedBytes": 2_000_000_000, "memoryBytes": 24_000_000_000}]
        route.fulfill(response=answer, json=listed)

    intercept(page, "**/workers?ended=true", with_gpus)
    page.goto(page.url.split("/console")[0] + f"/console/endpoints/{printed.id}/workers/{worker}")
    for title, value in (("GPUs", "busy 25 %"), ("Memory of GPUs", "used 2.0 GB")):
        expect(page.get_by_role("img", name=f"{title}, latest: {value}")).to_be_visible()
    page.get_by_role("link", name="All its requests").click()
    page.wait_for_url(f"**/requests?q=worker%3A{worker}")


def test_an_external_worker_says_when_it_was_heard(console, api):
    endpoint = api.external(name="Heard")
    worker = FakeWorker(endpoint)
    endpoint.run({})
    worker.take()
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/workers").page
    expect(page.get_by_role("region", name="Running").get_by_role("row").filter(has_text="Running").last).to_contain_text(re.compile("heard (just now|\\d+ s ago)"))
    # Its own page has where it asked from, and what such a worker needs.
    page.get_by_title(worker.id).click()
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("127.0.0.1 where it last asked for jobs from")
    page.get_by_role("button", name="Show the variables").click()
    expect(page.get_by_role("region", name="Worker token")).to_contain_text(f"{endpoint.id}/job-take")
    # The list says it, too. A key for the endpoint alone may not know it.
    page.goto(page.url.rsplit("/", 1)[0])
    expect(page.get_by_role("row").filter(has=page.get_by_title(worker.id))).to_contain_text("elsewhere, 127.0.0.1")
    key = key_for(api, {"scope": "read", "endpointIds": [endpoint.id]})["key"]
    reader = console().sign_in(key, path=f"/endpoints/{endpoint.id}/workers/{worker.id}").page
    expect(reader.get_by_role("region", name="Details")).to_contain_text("elsewhere, by someone else")
    expect(reader.get_by_role("region", name="Details")).not_to_contain_text("127.0.0.1")
    expect(reader.get_by_role("region", name="Worker token")).to_have_count(0)


def test_escapes_of_terminals_are_no_text(console, api):
    endpoint = api.external(name="Coloured")
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/logs").page
    expect(page.get_by_role("region", name="Lines")).to_be_visible()
    module = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name).find((name) => name.endsWith('/log_text.js'))")
    lines = ["\x1b]8;;https://a.example\x1b\\a link\x1b]8;;\x1b\\ here", "\x1b]0;title\x07a title", "\x1b[31mred\x1b[0m \x1b[2Kplain", "a \x1b]0;cut off"]
    found = page.evaluate("async ([module, lines]) => { const { pieces } = await import(module); return lines.map((line) => pieces(line).map(({ text, tone }) => tone + text)); }", [urlsplit(module).path, lines])
    assert found == [["a link here"], ["a title"], ["failedred", " plain"], ["a 0;cut off"]]
