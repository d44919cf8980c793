"""The stream of a job chunk by chunk: a list of any length, with times, sizes and metrics."""

import re

from playwright.sync_api import expect

from harness.browser import PHONE, intercept
from harness.fake_worker import FakeWorker
from harness.wait import until

CHUNKS = 300
# Rows of the window, and those beyond its edges.
ROWS_MAX = 30
# How many jobs the tabs of a browser follow together.
TURNS = 3


def test_chunks_are_a_list_that_has_only_the_rows_that_are_seen(console, api):
    endpoint = api.external(name="Streaming")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    expect(page.get_by_text("Running").first).to_be_visible()
    for number in range(CHUNKS):
        answer = worker.post("job-stream", job, {"output": f"word {number}", "metrics": {"tokens": 4, "model": "m"}})
        assert answer.status_code == 200
    stream = page.get_by_role("region", name="Stream")
    stream.get_by_role("button", name="Chunks").click()
    rows = stream.get_by_role("grid", name="Chunks").get_by_role("row")
    newest = rows.filter(has_text=f"word {CHUNKS - 1}")
    expect(newest).to_be_visible()
    assert rows.count() <= ROWS_MAX
    # This browser saw it come, and it says what the worker said of it.
    expect(newest).to_contain_text(re.compile(r'(ms|s|min).*tokens 4, model "m"'))
    expect(stream).to_contain_text(re.compile(f"{CHUNKS} chunks, the first after .*s"))
    box = page.locator(".chunks .grid-scroll")
    box.evaluate("(box) => { box.scrollTop = box.scrollHeight }")
    first = rows.filter(has_text='"word 0"')
    expect(first).to_be_visible()
    assert rows.count() <= ROWS_MAX
    # What is being read stays while news comes.
    worker.chunk(job, "one more")
    expect(stream).to_contain_text(f"{CHUNKS + 1} chunks")
    expect(first).to_be_in_viewport()
    worker.done(job, {"output": None})
    expect(page.get_by_role("main").get_by_text("Completed", exact=True)).to_be_visible()


def test_a_chunk_is_opened_by_a_press_and_by_keys(console, api):
    endpoint = api.external(name="Opened chunk")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    long = "a harbour " * 200
    for output in ("first", long, {"deep": [1, 2]}):
        worker.chunk(job, output)
    worker.done(job, {"output": None})
    tab = console(width=PHONE, has_touch=True).sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}")
    page = tab.page
    stream = page.get_by_role("region", name="Stream")
    stream.get_by_role("button", name="Chunks").tap()
    grid = stream.get_by_role("grid", name="Chunks")
    about = "Only the time of the first chunk is the server's: the others are this browser's, if it saw them come."
    expect(stream.get_by_text(about)).to_be_in_viewport()
    expect(grid).to_have_accessible_description(about)
    assert tab.axe() == [] and tab.sideways() <= 0
    grid.get_by_role("row").filter(has_text="a harbour").tap()
    dialog = page.get_by_role("dialog", name="Chunk 1")
    expect(dialog).to_contain_text("It was stored before this page was opened")
    expect(dialog).to_contain_text(long.strip())
    assert tab.axe() == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    # The server knows when the first one came.
    expect(page.get_by_role("dialog", name="Chunk 0")).to_contain_text("It came at")


def test_a_job_that_another_one_retries_is_followed_again(console, api):
    endpoint = api.external(name="Retried elsewhere")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.chunk(job, "of the first attempt")
    worker.done(job, {"error": "the anchor is lost"})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    main = page.get_by_role("main")
    expect(main.get_by_text("the anchor is lost").first).to_be_visible()
    endpoint.ok("POST", f"/retry/{job}")
    expect(page.locator(".job-head")).to_contain_text("Queued")
    expect(main.get_by_text("the anchor is lost")).to_have_count(0)
    assert worker.take()["id"] == job
    worker.chunk(job, "of the second attempt")
    expect(page.get_by_role("log", name="Streamed text")).to_have_text("of the second attempt")
    worker.done(job, {"output": "found again"})
    expect(page.locator(".job-head")).to_contain_text("Completed")
    expect(page.get_by_role("region", name="Output")).to_contain_text("found again")


def test_an_answer_that_is_older_than_the_end_plays_nothing_again(console, api):
    endpoint = api.external(name="Answered late")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.chunk(job, "told once")
    tab = console()
    streams, asked, late = [], [], []

    def hold_first(route) -> None:
        asked.append(route.request)
        if len(asked) > 1:
            route.continue_()
        else:
            late.append((route, route.fetch()))

    def is_held() -> bool:
        # Playwright receives its events while it waits for an answer.
        tab.page.evaluate("1")
        assert late
        return True

    record = re.compile(f"/jobs/{job}$")
    intercept(tab.page, record, hold_first)
    tab.page.on("request", lambda request: streams.append(request.url) if f"/stream/{job}" in request.url else None)
    page = tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    head, said = page.locator(".job-head"), page.get_by_role("log", name="Streamed text")
    expect(said).to_have_text("told once")
    expect(head).to_contain_text("Running")
    until(is_held, "the job was asked for", 20)
    assert late[0][1].json()["status"] == "IN_PROGRESS"
    worker.done(job, {"output": None})
    expect(head).to_contain_text("Completed")
    # The page takes the late answer, and then reads the job again, because an event came meanwhile.
    route, answer = late[0]
    with page.expect_response(lambda one: record.search(one.url) and one.request != asked[0]):
        route.fulfill(response=answer)
    expect(page.get_by_role("region", name="Input")).to_be_visible()
    expect(said).to_have_text("told once")
    assert len(streams) == 1, streams


def test_a_damaged_stream_says_so_and_the_job_still_ends(console, api):
    endpoint = api.external(name="Damaged stream")
    job = endpoint.run()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    events = f'event: status\ndata: {{"id":"{job}","status":"IN_PROGRESS"}}\n\nevent: error\ndata: {{"error":"a chunk is damaged"}}\n\n'
    tab = console()
    intercept(tab.page, re.compile(f"/stream/{job}"), lambda route: route.fulfill(content_type="text/event-stream", body=events))
    page = tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    expect(page.get_by_role("main").get_by_text("A chunk is damaged")).to_be_visible()
    expect(page.locator(".job-head")).to_contain_text("Running")
    worker.done(job, {"output": "all the same"})
    expect(page.locator(".job-head")).to_contain_text("Completed")
    expect(page.get_by_role("main").get_by_text("A chunk is damaged")).to_be_visible()
    expect(page.get_by_role("region", name="Output")).to_contain_text("all the same")


def test_a_job_that_ends_while_other_tabs_are_told_has_its_output(console, api):
    endpoint = api.external(name="Told in turns")
    workers = [FakeWorker(endpoint) for _ in range(TURNS + 1)]
    jobs = [endpoint.run() for _ in workers]
    taken = {worker.take()["id"]: worker for worker in workers}
    tab = console()
    pages = [tab.page, *(tab.open_page() for _ in range(TURNS))]
    tab.sign_in(path=f"/endpoints/{endpoint.id}/requests/{jobs[0]}")
    for page, job in zip(pages, jobs):
        if page != tab.page:
            page.goto(f"{tab.root}/endpoints/{endpoint.id}/requests/{job}")
        expect(page.locator(".job-head")).to_contain_text("Running")
    # The first tab has no turn of following its job: what it shows of it is read again.
    taken[jobs[0]].done(jobs[0], {"output": {"small": "result"}})
    expect(tab.page.locator(".job-head")).to_contain_text("Completed")
    expect(tab.page.get_by_role("region", name="Output")).to_contain_text("result")


def test_a_large_output_is_that_of_the_last_attempt(console, api):
    endpoint = api.external(name="Large twice")
    job, worker = endpoint.run(), FakeWorker(endpoint)
    large = ["x" * 100] * 60_000
    assert worker.take()["id"] == job
    worker.done(job, {"error": "no ship", "output": ["the first", *large]})
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    shown = page.get_by_role("region", name="Output")
    shown.get_by_role("button", name="Show it").click()
    shown.get_by_role("button", name="Text").click()
    expect(shown).to_contain_text("the first")
    endpoint.ok("POST", f"/retry/{job}")
    assert worker.take()["id"] == job
    worker.done(job, {"output": ["the second", *large]})
    shown.get_by_role("button", name="Show it").click()
    shown.get_by_role("button", name="Text").click()
    expect(shown).to_contain_text("the second")


def test_an_output_is_shown_as_it_came(console, api):
    endpoint = api.external(name="As it came")
    job, worker = endpoint.run(), FakeWorker(endpoint)
    assert worker.take()["id"] == job
    output = r'{"b": 1.0, "a":"\u00e9","b":12345678901234567890}'
    worker.done(job, f'{{"output":{output}}}')
    page = console().sign_in(path=f"/endpoints/{endpoint.id}/requests/{job}").page
    shown = page.get_by_role("region", name="Output")
    expect(shown).to_contain_text(f"{len(output)} B")
    shown.get_by_role("button", name="Text").click()
    expect(shown.locator("pre")).to_have_text(output)
