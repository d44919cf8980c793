"""Sessions of the console as browsers and their enemies see them: cookies over HTTP, over TLS and behind a proxy; the cookie
without its page; pages of other origins; revoked keys; and where a key must not be left."""

import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import EVIL_NAME, key_for
from harness.certificates import Authority
from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.reverse_proxy import ReverseProxy
from harness.server import ADMIN_KEY, QUICK
from harness.wait import holds, until

PREFIX = "/longshore"
REVOKED_S = 2
# The shortest session that the settings allow.
SHORTEST_MS = 60_000


def the_cookie(tab) -> dict:
    [cookie] = tab.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict"), cookie
    assert len(cookie["value"]) >= 43, "256 bits"
    return cookie


def walk(tab, api, endpoint) -> None:
    """Looks at pages, is told of a job, and follows its stream to the end."""
    page = tab.page
    for path, heading in (("/", "Overview"), ("/endpoints", "Endpoints"), ("/api-keys", "API keys"), ("/health", "Health")):
        tab.go(path)
        expect(page.get_by_role("heading", name=heading, level=1)).to_have_count(1)
    tab.go(f"/endpoints/{endpoint.id}/requests")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    job = endpoint.run({"n": 1})
    page.get_by_role("row").filter(has_text=job[-12:]).click()
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    worker.chunk(job, "a chunk ")
    expect(page.get_by_role("region", name="Stream")).to_contain_text("a chunk")
    worker.done(job, {"output": {"said": "goodbye"}})
    expect(page.get_by_role("region", name="Output")).to_contain_text("goodbye")
    page.reload()
    expect(page.get_by_role("region", name="Output")).to_contain_text("goodbye")
    expect(page.get_by_role("region", name="Input")).to_contain_text('"n"')
    # A read that is in flight at the sign-out is refused.
    tab.forget("401")
    tab.sign_out()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert tab.context.cookies() == []
    # The server may end before the browser does.
    page.goto("about:blank")


def test_over_plain_http_the_cookie_has_a_name_of_the_installation(console, server, api):
    tab = console().sign_in()
    cookie = the_cookie(tab)
    assert re.fullmatch(r"longshore-[0-9a-z]{6}", cookie["name"]), cookie
    assert (cookie["path"], cookie["secure"]) == ("/", False)
    walk(tab, api, api.external())


def test_over_tls_the_cookie_is_bound_to_the_host(tmp_path, fresh_server, console):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server", 7)
    config = QUICK + f'tls_cert = "{certificate}"\ntls_key = "{key}"\n'
    server = fresh_server(config=config, verify=str(authority.path))
    api = Api(server)
    tab = console(server, ignore_https_errors=True).sign_in()
    cookie = the_cookie(tab)
    assert (cookie["name"], cookie["path"], cookie["secure"]) == ("__Host-longshore", "/", True)
    walk(tab, api, api.external())


@pytest.mark.parametrize("names_the_path", ["the proxy", "the server"])
def test_behind_a_proxy_under_a_path_everything_is_found(fresh_server, console, names_the_path):
    is_proxy = names_the_path == "the proxy"
    setting = 'trusted_proxies = "127.0.0.1"\n' if is_proxy else f'console_base = "{PREFIX}"\n'
    server = fresh_server(config=QUICK + setting)
    api = Api(server)
    with ReverseProxy(server.port, PREFIX, headers={"X-Forwarded-Prefix": PREFIX} if is_proxy else {}) as proxy:
        tab = console(proxy).sign_in()
        cookie = the_cookie(tab)
        assert (cookie["path"], cookie["secure"]) == (f"{PREFIX}/", False)
        # What is asked for outside of the path is 404, which the browser prints, and the test fails.
        walk(tab, api, api.external())
        tab.close()


def test_behind_a_proxy_that_ends_tls_the_cookie_is_secure(tmp_path, fresh_server, console):
    certificate = Authority(tmp_path).issue("proxy", 8)
    server = fresh_server(config=QUICK + 'trusted_proxies = "127.0.0.1"\n')
    api = Api(server)
    headers = {"X-Forwarded-Prefix": PREFIX, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    with ReverseProxy(server.port, PREFIX, certificate, headers) as proxy:
        tab = console(proxy, ignore_https_errors=True).sign_in()
        cookie = the_cookie(tab)
        assert (cookie["name"], cookie["path"], cookie["secure"]) == ("__Secure-longshore", f"{PREFIX}/", True)
        walk(tab, api, api.external())
        tab.close()
    # The audit log has the address of the browser, not that of the proxy.
    signed_in = [entry for entry in api.ok("GET", "/v1/audit") if "session" in str(entry)]
    assert signed_in and all("203.0.113.9" in str(entry) for entry in signed_in), signed_in


class Attempt:
    """A client that has a session's cookie, as a page of another origin has it: without knowing what it is."""

    def __init__(self, server):
        self.server = server
        self.session = requests.Session()
        self.session.trust_env = False
        answer = self.session.post(f"{server.url}/console/session", json={"key": ADMIN_KEY}, timeout=30)
        assert answer.status_code == 200
        self.csrf = answer.json()["csrf"]

    def send(self, method: str, path: str, csrf: str | None = None, **headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if csrf is not None:
            sent["X-Longshore-Console"] = csrf
        body = {"input": {}} if method == "POST" else None
        return self.session.request(method, self.server.url + path, headers=sent, json=body, timeout=30).status_code


def sessions_in_the_audit_log(api: Api) -> list[dict]:
    """The entries of sessions, the oldest one first."""
    return [entry for entry in reversed(api.ok("GET", "/v1/audit")) if entry["event"] == "session"]


def test_the_audit_log_says_how_sessions_ended(server, api):
    before = len(sessions_in_the_audit_log(api))
    browser = requests.Session()
    browser.trust_env = False
    csrfs = [browser.post(f"{server.url}/console/session", json={"key": ADMIN_KEY}, timeout=30).json()["csrf"] for _ in range(2)]
    assert browser.delete(f"{server.url}/console/session", headers={"X-Longshore-Console": csrfs[1]}, timeout=30).status_code == 204
    entries = sessions_in_the_audit_log(api)[before:]
    # Who signs in again with a session ends it.
    assert [entry["outcome"] for entry in entries] == ["opened", "replaced", "opened", "ended"], entries
    first, second = entries[0]["session"], entries[2]["session"]
    assert [entry["session"] for entry in entries] == [first, first, second, second] and first != second
    assert {(entry["key"]["name"], entry["address"]) for entry in entries} == {(entries[0]["key"]["name"], "127.0.0.1")}


def test_the_cookie_alone_does_nothing(server, api):
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.chunk(job, "kept")
    attempt = Attempt(server)
    acts = [
        ("GET", "/v1/me"), ("GET", "/v1/endpoints"), ("GET", f"{endpoint.mount}/stream/{job}"), ("GET", "/v1/events"),
        ("POST", f"{endpoint.mount}/run"), ("POST", f"{endpoint.mount}/purge-queue"), ("DELETE", f"/v1/endpoints/{endpoint.id}"),
        ("POST", f"{endpoint.mount}/openai/v1/chat/completions"), ("DELETE", "/console/session"), ("GET", "/metrics"),
    ]
    for method, path in acts:
        assert attempt.send(method, path) == 401, path
        for wrong in ("", "new", "x" * len(attempt.csrf), attempt.csrf[:-1], attempt.csrf + "0", attempt.csrf[::-1]):
            assert attempt.send(method, path, wrong) == 401, (path, wrong)
        for site in ("cross-site", "same-site", "none"):
            assert attempt.send(method, path, attempt.csrf, Sec_Fetch_Site=site) == 401, (path, site)
    assert endpoint.health()["jobs"]["inQueue"] == 0
    assert attempt.send("GET", "/v1/me", attempt.csrf) == 200
    assert attempt.send("GET", "/v1/me", attempt.csrf, Sec_Fetch_Site="same-origin") == 200
    # The chunk was not drained.
    assert [chunk["output"] for chunk in endpoint.ok("GET", f"/stream/{job}")] == ["kept"]
    worker.done(job, {"output": 1})


EVIL_PAGE = """<!doctype html><title>Free coffee</title><body><script>
window.read = [];
const keep = (name) => (answer) => answer.text().then((text) => text && window.read.push(name + ": " + text));
const act = (name, path, options) => fetch("%(victim)s" + path, {credentials: "include", ...options}).then(keep(name)).catch(() => {});
window.done = (async () => {
  for (const mode of ["no-cors", "cors"]) {
    await act(mode, "/v1/me", {mode});
    await act(mode, "/v2/%(endpoint)s/stream/%(job)s", {mode});
    await act(mode, "/v2/%(endpoint)s/purge-queue", {mode, method: "POST"});
    await act(mode, "/v2/%(endpoint)s/run", {mode, method: "POST", body: '{"input":{"evil":true}}'});
    await act(mode, "/v1/endpoints/%(endpoint)s", {mode, method: "DELETE"});
    await act(mode, "/console/session", {mode, method: "POST", body: '{"key":"%(key)s"}'});
    await act(mode, "/console/session", {mode});
  }
  for (const header of ["new", "%(csrf)s"]) {
    await act("header", "/console/session", {headers: {"X-Longshore-Console": header}});
    await act("header", "/v2/%(endpoint)s/run", {method: "POST", body: '{"input":{}}', headers: {"X-Longshore-Console": header, "Content-Type": "application/json"}});
  }
  for (const path of ["/v2/%(endpoint)s/stream/%(job)s", "/console/", "/v1/me"]) {
    await new Promise((resolve) => {
      const image = new Image();
      image.onload = image.onerror = resolve;
      image.src = "%(victim)s" + path;
    });
  }
  const frame = document.createElement("iframe");
  frame.src = "%(victim)s/console/";
  document.body.append(frame);
  await new Promise((resolve) => (frame.onload = resolve));
  try { window.read.push("frame: " + frame.contentDocument.body.innerText); } catch { }
})();
</script>
<form method="post" enctype="text/plain" action="%(victim)s/v2/%(endpoint)s/run"><input name='{"input":{"a":"' value='"}}'><button>Coffee</button></form>
<form method="post" action="%(victim)s/v2/%(endpoint)s/purge-queue"><button>Milk</button></form>
<a href="%(victim)s/v2/%(endpoint)s/stream/%(job)s">Sugar</a>
"""


class EvilSite:
    """Serves one page at every address."""

    def __init__(self, page: str):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


# Another port of the same host is another origin of the same site: browsers send it even strict cookies.
@pytest.mark.parametrize("host", [EVIL_NAME, "127.0.0.1"])
def test_a_page_of_another_origin_does_and_reads_nothing(console, server, api, host):
    endpoint = api.external(name="Coveted")
    worker = FakeWorker(endpoint)
    streaming = endpoint.run()
    assert worker.take()["id"] == streaming
    worker.chunk(streaming, "kept")
    waiting = endpoint.run()
    tab = console().sign_in()
    csrf = Attempt(server).csrf
    sessions = {session["id"] for session in api.ok("GET", "/v1/sessions")}
    cookies = tab.context.cookies(server.url)
    names = {"victim": server.url, "endpoint": endpoint.id, "job": streaming, "key": ADMIN_KEY, "csrf": csrf}
    site = EvilSite(EVIL_PAGE % names)
    try:
        # What the browser prints of refused requests is what should happen here.
        page = tab.context.new_page()
        page.goto(f"http://{host}:{site.port}/")
        page.evaluate("window.done")
        assert page.evaluate("window.read") == []
        assert page.locator("iframe").count() == 1
        for frame in page.frames[1:]:
            assert "Signed in as" not in frame.content() and "Sign in" not in frame.content()
        for click in ("Coffee", "Milk"):
            with page.expect_response(lambda answer: "/v2/" in answer.url) as answered:
                page.get_by_role("button", name=click).click()
            assert answered.value.status == 401, click
            page.goto(f"http://{host}:{site.port}/")
            page.evaluate("window.done")
        with page.expect_response(lambda answer: "/stream/" in answer.url) as answered:
            page.get_by_role("link", name="Sugar").click()
        assert answered.value.status == 401
    finally:
        site.close()
    assert {session["id"] for session in api.ok("GET", "/v1/sessions")} == sessions
    assert tab.context.cookies(server.url) == cookies
    assert (endpoint.health()["jobs"]["inQueue"], endpoint.status(waiting)["status"]) == (1, "IN_QUEUE")
    assert [chunk["output"] for chunk in endpoint.ok("GET", f"/stream/{streaming}")] == ["kept"]
    worker.done(streaming, {"output": 1})
    # The session itself goes on.
    tab.page.reload()
    expect(tab.page.get_by_role("button", name="Signed in as")).to_be_visible()


@pytest.mark.parametrize("path", ["/v1/events", "a job", "a log"])
def test_a_revoked_key_ends_what_its_session_reads(server, api, path):
    endpoint = api.endpoint("generator.py", workersMin=1, idleTimeout=600)
    if path == "a job":
        job = endpoint.run({"count": 10_000, "pause": 0.05})
        endpoint.wait_for(job, "IN_PROGRESS", timeout_s=60)
        path = f"{endpoint.mount}/stream/{job}?offset=0"
    elif path == "a log":
        until(lambda: api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers"), "a worker is there", 30)
        worker = api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers")[0]["id"]
        path = f"/v1/endpoints/{endpoint.id}/workers/{worker}/logs?follow=true"
    key = key_for(api, {"scope": "read"})
    session = requests.Session()
    session.trust_env = False
    answer = session.post(f"{server.url}/console/session", json={"key": key["key"]}, timeout=30)
    headers = {"X-Longshore-Console": answer.json()["csrf"], "Accept": "text/event-stream"}
    with session.get(server.url + path, headers=headers, stream=True, timeout=60) as stream:
        assert stream.status_code == 200
        ended = threading.Event()

        def read():
            try:
                for _ in stream.iter_content(None):
                    pass
            except requests.RequestException:
                pass
            ended.set()

        threading.Thread(target=read, daemon=True).start()
        holds(lambda: not ended.is_set(), "the stream is open", 0.3)
        assert api.call("DELETE", f"/v1/apikeys/{key['id']}").status_code in (200, 204)
        began = time.monotonic()
        until(ended.is_set, "the stream has ended", REVOKED_S, 0.01)
        print(f"a stream of a revoked key ended after {time.monotonic() - began:.2f} s")
    assert session.get(f"{server.url}/v1/me", headers=headers, timeout=30).status_code == 401


def test_a_session_that_expires_while_its_page_is_open_asks_to_sign_in_again(fresh_server, console):
    server = fresh_server(config=QUICK + f"session_max_ms = {SHORTEST_MS}\nsession_idle_ms = {SHORTEST_MS}\nkey_use_interval_ms = 100\n")
    api = Api(server)
    endpoint = api.external()
    tab = console(server).sign_in(path=f"/endpoints/{endpoint.id}/requests")
    began = time.monotonic()
    tab.forget("401")
    expect(tab.page.get_by_text("Your session has ended")).to_be_visible(timeout=SHORTEST_MS + 20_000)
    assert time.monotonic() - began > SHORTEST_MS / 1000 - 5, "not before its time"

    def has_expired() -> bool:
        return [entry["outcome"] for entry in sessions_in_the_audit_log(api)] == ["opened", "expired"]

    until(has_expired, "the end is in the audit log")
    # Who signs in again is at the same place.
    tab.page.get_by_label("API key").fill(ADMIN_KEY)
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("region", name="Requests")).to_be_visible()
    expect(tab.page).to_have_url(re.compile(f"/endpoints/{endpoint.id}/requests$"))


def test_signing_in_leads_to_where_one_wanted_to_go(console):
    tab = console()
    tab.go("/health?range=1h")
    expect(tab.page.get_by_label("API key")).to_be_visible()
    tab.page.reload()
    tab.page.get_by_label("API key").fill(ADMIN_KEY)
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", name="Health", level=1)).to_be_visible()
    expect(tab.page).to_have_url(re.compile(r"/health\?range=1h$"))
    # With a session, one does not sign in again.
    tab.go("/sign-in?to=%2Fwebhooks")
    expect(tab.page.get_by_role("heading", name="Webhooks", level=1)).to_be_visible()


def test_a_tab_goes_on_when_another_one_signs_in_again(console, api):
    endpoint = api.external()
    tab = console().keep_asking().sign_in(path=f"/endpoints/{endpoint.id}/requests")
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    # What it asks first is refused: its session was ended by the new one.
    tab.forget("401")
    assert tab.context.request.post(f"{tab.root}/session", data={"key": ADMIN_KEY}).ok
    tab.page.get_by_role("link", name="Audit log").click()
    expect(tab.page.get_by_role("row").filter(has_text="Sign in to the console").first).to_be_visible()
    tab.page.go_back()
    job = endpoint.run()
    row = tab.page.get_by_role("row").filter(has_text=job[-12:])
    row.click()
    tab.page.get_by_role("button", name="Cancel job").click()
    tab.page.get_by_role("button", name="Sure?").click()
    expect(row).to_contain_text("Cancelled")
    # With another key, nothing stays of what the key before could see.
    key = key_for(api, {"scope": "jobs", "endpointIds": [endpoint.id]}, name="narrow")["key"]
    assert tab.context.request.post(f"{tab.root}/session", data={"key": key}).ok
    # The audit log may be gone from the menu already: the tab also reads the session by itself.
    tab.page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Endpoints").click()
    expect(tab.page.get_by_role("button", name="Signed in as narrow")).to_be_visible()
    expect(tab.page.get_by_role("link", name="Audit log")).to_have_count(0)


def test_another_key_in_the_same_browser_does_not_take_what_is_typed(console, api):
    endpoint = api.external()
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}/playground")
    field = tab.page.get_by_label("Input, a JSON object")
    field.fill('{"long": "text"}')
    refused: list[str] = []
    tab.context.on("response", lambda answer: answer.status == 401 and refused.append(answer.url))
    tab.forget("401")
    tab.forget("dialog: Another key has signed in")
    key = key_for(api, {"scope": "jobs", "endpointIds": [endpoint.id]}, name="other")["key"]
    assert tab.context.request.post(f"{tab.root}/session", data={"key": key}).ok
    asked = lambda: [fault for fault in tab.faults if fault.startswith("dialog")]
    until(lambda: tab.page.evaluate("1") and asked(), "the page asks")
    # It asks once, also when more is refused.
    before = len(refused)
    until(lambda: tab.page.evaluate("1") and len(refused) >= before + 2, "more is refused", 30)
    expect(field).to_have_value('{"long": "text"}')
    assert len(asked()) == 1, asked()
    tab.page.reload()
    expect(tab.page.get_by_role("button", name="Signed in as other")).to_be_visible()


def test_a_cookie_that_was_there_before_is_not_the_sessions(console, server, api):
    first = console().sign_in()
    name = the_cookie(first)["name"]
    planted = "A" * 43
    tab = console()
    tab.context.add_cookies([{"name": name, "value": planted, "url": server.url}])
    tab.sign_in()
    values = [cookie["value"] for cookie in tab.context.cookies()]
    assert len(values) == 1 and values != [planted]
    # Signing in again ends the session before, which the page in this tab still has.
    tab.forget("401")
    before = values[0]
    tab.go("/sign-in")
    tab.page.evaluate("key => fetch('/console/session', {method: 'POST', body: JSON.stringify({key}), headers: {'Content-Type': 'application/json'}})", ADMIN_KEY)
    assert the_cookie(tab)["value"] != before
    old = requests.get(f"{server.url}/console/session", cookies={name: before}, headers={"X-Longshore-Console": "new"}, timeout=30)
    assert old.status_code == 401


def test_too_many_wrong_keys_are_told_so(fresh_server, console):
    tab = console(fresh_server())
    tab.forget("401")
    tab.forget("429")
    page = tab.go("/sign-in")
    for _ in range(10):
        page.get_by_label("API key").fill("ls_wrong")
        with page.expect_response(lambda answer: answer.request.method == "POST"):
            page.keyboard.press("Enter")
        expect(page.get_by_label("API key")).to_have_value("")
    page.get_by_label("API key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("sign-ins")
    assert tab.context.cookies() == []


LEFT = """async () => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href, history.state,
  window.name, await indexedDB.databases(), self.caches ? await caches.keys() : [], document.documentElement.outerHTML,
  performance.getEntries().map((entry) => entry.name)])"""


def test_a_key_is_left_nowhere(console, api, server):
    key = key_for(api, {"scope": "manage"})["key"]
    asked: list[str] = []
    tab = console()
    tab.context.on("request", lambda request: asked.append(f"{request.url} {request.headers}"))
    # Typed into the page, which is not loaded anew afterwards: what it keeps is in its memory.
    page = tab.go("/sign-in")
    expect(page.get_by_label("API key")).to_be_focused()
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Endpoints").click()
    expect(page.get_by_role("heading", name="Endpoints", level=1)).to_be_visible()
    assert key not in tab.page.evaluate(LEFT)
    assert not [request for request in asked if key in request]
    devtools = tab.context.new_cdp_session(tab.page)
    snapshot: list[str] = []
    devtools.on("HeapProfiler.addHeapSnapshotChunk", lambda event: snapshot.append(event["chunk"]))
    devtools.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
    heap = "".join(snapshot)
    assert "Find anything" in heap, "the snapshot has the texts of the page"
    assert key not in heap
    assert key not in server.log() and ADMIN_KEY not in server.log()
    stored = [path for path in server.data.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert stored == []
