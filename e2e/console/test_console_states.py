"""The states of endpoints in the console: what the head of a page and the list say is what the cards say."""

import re

from playwright.sync_api import expect

from harness.client import Api, Endpoint
from harness.server import QUICK
from harness.wait import until
from test_gpus import LARGE, MACHINE


def problem_of(api: Api, endpoint: Endpoint) -> dict:
    """What the endpoint needs attention for. It is left out while its queue is slow to answer, which is an AssertionError."""
    problems = [problem for problem in api.ok("GET", "/v1/attention") if problem["endpoint"] == endpoint.id]
    assert len(problems) == 1, problems
    return problems[0]


def test_an_endpoint_whose_gpus_no_machine_has_is_impossible(fresh_server, console):
    api = Api(fresh_server(config=MACHINE))
    endpoint = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMin=0)
    tab = console(api.server).sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    head = page.locator(".head .state")
    expect(head).to_have_text("Asleep")
    # No job waits, and none has to: the change alone is told.
    endpoint.patch(gpuTypeIds=["NVIDIA B200"], gpuCount=4)
    expect(head).to_have_text("Impossible")
    reason = f"A worker asks for 4 × NVIDIA B200; there are 2 × {LARGE}, 2 × NVIDIA L4."
    expect(head).to_have_attribute("title", reason)
    expect(page.get_by_role("main").get_by_text(reason).first).to_be_visible()
    until(lambda: [problem["code"] for problem in api.ok("GET", "/v1/attention")] == ["gpu_impossible"], "it is the only problem")
    # On the page of the endpoint, the problem leads to where one solves it.
    lead = page.get_by_role("region", name="Attention").get_by_role("link")
    expect(lead).to_have_attribute("href", re.compile(rf"/endpoints/{endpoint.id}/settings$"))
    endpoint.patch(gpuTypeIds=[LARGE], gpuCount=1)
    expect(head).to_have_text("Asleep")

    # It is worse than a pause, and stands above it in the list.
    endpoint.patch(gpuTypeIds=["NVIDIA B200"], workersMax=0)
    api.external(name="Paused", workersMax=0)
    tab.go("/endpoints?group=state")
    groups = page.locator("th[scope=rowgroup]")
    expect(groups.nth(0)).to_contain_text("Impossible")
    expect(groups.nth(1)).to_contain_text("Paused")


def test_an_endpoint_that_crashed_says_so_until_the_next_job(console, api):
    endpoint = api.endpoint("crash.py", workersMax=1)
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    page = tab.page
    head = page.locator(".head .state")
    expect(head).to_have_text("Asleep")
    job = endpoint.run()
    expect(head).to_have_text("Workers crash")
    endpoint.ok("POST", f"/cancel/{job}")

    def asleep() -> dict:
        """What the endpoint needs attention for once nothing is held back, and no worker starts."""
        problem = problem_of(api, endpoint)
        assert problem["text"].endswith(" A worker starts with the next job."), problem
        health = endpoint.ok("GET", "/health")
        assert not health["workers"]["unhealthy"], health
        return problem

    # The wait after the crash ends, as does a try that had begun before, and no worker starts.
    problem = until(asleep, "nothing is held back, and no worker starts", 30)
    assert problem["code"] == "workers_crash"
    assert [action["do"] for action in problem["actions"]] == ["openLog"]
    assert problem["title"] == endpoint.ok("GET", "/explain")["also"][0]["title"]
    assert "no model file" in endpoint.ok("GET", "/health")["reasons"]["unhealthy"]
    for path in (f"/endpoints/{endpoint.id}", f"/endpoints/{endpoint.id}/workers"):
        tab.go(path)
        expect(head).to_have_text("Workers crash")
    tab.go(f"/endpoints/{endpoint.id}")
    expect(page.get_by_role("main").get_by_text("A worker starts with the next job.").first).to_be_visible()

    # The next job tries again; after a change of the settings nothing is known to crash.
    endpoint.run()
    until(lambda: "next try" in problem_of(api, endpoint)["text"], "a try is told")
    endpoint.ok("POST", "/purge-queue")
    until(lambda: problem_of(api, endpoint)["text"].endswith("A worker starts with the next job."), "the try has ended", 30)
    endpoint.patch(workersMax=2)
    expect(head).to_have_text("Asleep")


def test_a_worker_without_room_is_not_said_to_wait_for_a_gpu(fresh_server, console):
    api = Api(fresh_server(config=f"{QUICK}workers_max_total = 1\n"))
    api.endpoint("echo.py", workersMin=1, workersMax=1).runsync({})
    endpoint = api.endpoint("echo.py", workersMax=1)
    endpoint.run({})
    until(lambda: endpoint.health()["workers"]["throttled"] == 1, "its worker waits")
    tab = console(api.server).sign_in(path=f"/endpoints/{endpoint.id}")
    expect(tab.page.locator(".head .state")).to_have_text("Waiting for room")
    tab.go(f"/endpoints/{endpoint.id}/workers")
    expect(tab.page.locator(".gauge").filter(has_text="Waiting for room").locator(".value")).to_contain_text("1")
