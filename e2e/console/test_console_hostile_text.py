"""What others write is text on every page: names, inputs, outputs, errors, chunks, progress, logs, answers of receivers,
names of browsers, workers and files, and addresses."""

import json
import os
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import expect

from harness.browser import intercept
from harness.client import Endpoint
from harness.fake_worker import FakeWorker
from harness.hostile_text import CORPUS, is_plain
from harness.server import ADMIN_KEY, Server
from harness.wait import until

IS_LONG = os.environ.get("LONGSHORE_PAGES") == "all"
# In an ordinary run, one text of this number has an address of its own.
ADDRESSED = 4 if IS_LONG else 72
PLAIN = [text for text in CORPUS if is_plain(text)]
# Control and bidi characters, which can disguise a text: each is shown as a symbol.
DISGUISES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# The smallest picture.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

# Everything in the page that a text could have become.
ALIEN = """() => {
  const all = [...document.querySelectorAll("#app *")];
  const isOurs = (node) => node.matches("img[src^='blob:'], audio[src^='blob:'], video[src^='blob:']");
  const tags = "script,style,link,meta,base,iframe,frame,object,embed,applet,template,noscript,math,foreignObject,use,set,animate,marquee,img,audio,video,source,plaintext,xmp,isindex";
  const alien = all.filter((node) => node.matches(tags) && !isOurs(node));
  const handled = all.filter((node) => [...node.attributes].some(({ name }) => /^on/i.test(name)));
  const links = all.filter((node) => node.hasAttribute("href") && !/^(https?:|blob:)/.test(node.href.baseVal ?? node.href));
  const unsafe = all.filter((node) => node.matches("a[target]") && !/noopener/.test(node.rel));
  const forms = all.filter((node) => node.matches("form[action], button[formaction]"));
  const polluted = Object.keys({}.__proto__).concat(Object.prototype.pwned ?? [], Object.prototype.polluted ?? []);
  return [...alien, ...handled, ...links, ...unsafe, ...forms].map((node) => node.outerHTML.slice(0, 200)).concat(polluted, window.pwned ?? []);
}"""


# Scrolls on by a window, and from the end to the start: long tables have rows only for what is seen.
SCROLL_ON = "() => { const { scrollTop, clientHeight, scrollHeight } = document.scrollingElement; scrollTo(0, scrollTop + clientHeight + 1 < scrollHeight ? scrollTop + clientHeight : 0); }"


@pytest.fixture(scope="module")
def server():
    server = Server(flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    yield server
    server.close()


@pytest.fixture
def tab(console):
    return console().watch_hosts().sign_in()


def check(tab, path: str, *shown: str, wait: str = "h1", region: str | None = None) -> str:
    """Shows a page, with `shown` in a region of it; nothing on it came from a text but text. Answers the content."""
    tab.go(path)
    expect(tab.page.locator("main").locator(wait).first, path).to_be_visible()
    expect(tab.page.locator(".loading, .loading-page"), path).to_have_count(0)
    part = tab.page.get_by_role("region", name=region, exact=True) if region else tab.page.locator("main")
    missing, faults = set(shown), []
    content = ""

    def there():
        nonlocal content
        content = tab.page.locator("main").evaluate("node => node.textContent")
        disguised = DISGUISES.search(content)
        faults.extend(tab.page.evaluate(ALIEN))
        faults.extend([content[max(0, disguised.start() - 40) : disguised.end() + 40]] if disguised else [])
        seen = part.evaluate("node => node.textContent")
        missing.difference_update([text for text in missing if text in seen])
        if missing:
            tab.page.evaluate(SCROLL_ON)
        assert not missing, sorted(missing)[:5]
        return True

    until(there, f"{path} shows its texts", 20)
    assert faults == [], path
    return content


@pytest.fixture(scope="module")
def endpoint(api):
    return api.external(name="Takes anything")


@pytest.fixture(scope="module")
def worker(endpoint):
    return FakeWorker(endpoint)


def run(endpoint, worker, input) -> str:
    job = endpoint.run(input)
    assert worker.take()["id"] == job
    return job


def test_inputs_outputs_and_progress(tab, endpoint, worker):
    job = run(endpoint, worker, {"texts": CORPUS, **{text: text for text in CORPUS[:80]}})
    worker.progress(job, {"state": CORPUS[:90]})
    path = f"/endpoints/{endpoint.id}/requests/{job}"
    check(tab, path, *PLAIN[:20], region="Input")
    check(tab, path, *[text for text in CORPUS[:90] if text in PLAIN], region="Progress")
    worker.done(job, {"output": {"list": CORPUS, "names": {text: number for number, text in enumerate(CORPUS)}}})
    page = tab.page
    expect(page.get_by_role("region", name="Output")).to_be_visible()
    for more in iter(lambda: page.get_by_role("button", name=re.compile("^[0-9 ]+ more$")), None):
        if more.count() == 0:
            break
        more.first.click()
    content = page.get_by_role("region", name="Output").evaluate("node => node.textContent")
    missing = [text for text in PLAIN if content.count(text) < 2]
    assert not missing, missing
    assert page.evaluate(ALIEN) == [] and not DISGUISES.search(content)
    for region in ("Input", "Output"):
        page.get_by_role("region", name=region).get_by_role("button", name="Text", exact=True).click()
    assert page.evaluate(ALIEN) == []
    check(tab, f"/endpoints/{endpoint.id}/playground?job={job}", *PLAIN[:20], region="Output")
    check(tab, f"/endpoints/{endpoint.id}/playground?from={job}")
    expect(page.get_by_label("Input, a JSON object")).to_have_value(re.compile(re.escape(PLAIN[-1])))


def test_every_text_as_an_output_of_its_own(tab, endpoint, worker):
    """A text alone could be taken for a file."""
    files = [text for text in CORPUS if text.startswith("data:")] + ["<svg xmlns='http://www.w3.org/2000/svg'/>", "%PDF-1.4"]
    for text in files:
        # Long enough for a file.
        job = run(endpoint, worker, {})
        worker.done(job, {"output": {"file": text + "A" * 80, "text": text}})
        content = check(tab, f"/endpoints/{endpoint.id}/requests/{job}", wait="[aria-label=Output]")
        assert tab.page.locator("main img, main audio, main video").count() == 0, text
        assert text in content or not is_plain(text), text


def test_errors(tab, endpoint, worker):
    jobs = []
    for number in range(0, len(CORPUS), 48):
        texts = CORPUS[number : number + 48]
        raised = {"error_type": f"<class '{texts[0]}'>", "error_message": " ".join(texts), "error_traceback": "Traceback (most recent call last):\n" + "\n".join(texts)}
        for error in (json.dumps(raised), "\n".join(texts)):
            job = run(endpoint, worker, {})
            worker.done(job, {"error": error})
            jobs.append((job, [text for text in texts if text in PLAIN]))
    for job, texts in jobs:
        check(tab, f"/endpoints/{endpoint.id}/requests/{job}", *texts)
    # The lists of failures have the messages, too.
    for path in ("/", f"/endpoints/{endpoint.id}", f"/endpoints/{endpoint.id}/requests?state=FAILED"):
        check(tab, path, jobs[-1][0][-12:])


def test_chunks(tab, endpoint, worker):
    joined, apart = run(endpoint, worker, {}), endpoint.run({})
    for text in CORPUS:
        worker.chunk(joined, text)
    worker.done(joined, {"output": None})
    assert worker.take()["id"] == apart
    for text in CORPUS[::3]:
        worker.chunk(apart, {text: [text]})
    worker.done(apart, {"output": None})
    check(tab, f"/endpoints/{endpoint.id}/requests/{joined}", *PLAIN)
    tab.page.get_by_role("button", name="Chunks").click()
    assert len(walked(tab, len(CORPUS))) == len(CORPUS)
    check(tab, f"/endpoints/{endpoint.id}/requests/{apart}")
    shown = "\n".join(walked(tab, len(CORPUS[::3])).values())
    missing = [text for text in CORPUS[::3] if text in PLAIN and text not in shown]
    assert not missing, missing


def walked(tab, count: int) -> dict[str, str]:
    """The texts of a list of chunks by their numbers; it has nodes only for what is seen."""
    box, texts = tab.page.locator(".chunks .grid-scroll"), {}
    for index in range(0, count, 8):
        box.evaluate("(box, top) => { box.scrollTop = top }", index * 32)
        for seen in (index, min(index + 8, count) - 1):
            expect(tab.page.locator(f'.chunk-row[aria-rowindex="{seen + 2}"]')).to_be_visible()
        assert tab.page.evaluate(ALIEN) == []
        texts |= dict(tab.page.evaluate("[...document.querySelectorAll('.chunk-row')].map((row) => [row.querySelector('.c-number').textContent, row.querySelector('.c-text').textContent])"))
    return texts


def test_json_that_no_page_expects(tab, endpoint, worker):
    # The server takes up to 512 levels.
    deep = "[" * 505 + "]" * 505
    large = "n" * 1_000_000
    outputs = {
        '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}': "polluted",
        '{"ref": 1, "key": 2, "children": [3], "dangerouslySetInnerHTML": {"__html": "<img src=x onerror=window.pwned=1>"}}': "dangerouslySetInnerHTML",
        '{"type": "script", "props": {"children": "window.pwned=1"}, "__k": null, "constructor": null}': "window.pwned=1",
        deep: "[[[",
        json.dumps({large: large}): "nnnn",
        "[1e999, -0, 1e-999, 123456789012345678901234567890]": "123456789012345678901234567890",
        '{"a": 1, "a": 2, "": 3}': '"a"',
        '"\\ud800 alone"': "alone",
    }
    for output, shown in outputs.items():
        job = run(endpoint, worker, {})
        if worker.post("job-done", job, '{"output": %s}' % output).status_code != 200:
            # What the server does not take, no page has to show.
            endpoint.cancel(job)
            continue
        tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
        region = tab.page.get_by_role("region", name="Output")
        if len(output) > 1_000_000:
            region.get_by_role("button", name="Unfold").click()
        expect(region).to_contain_text(shown)
        assert tab.page.evaluate(ALIEN) == []
    job = run(endpoint, worker, {})
    worker.post("job-done", job, '{"output": %s}' % ("[" * 10_000 + "]" * 10_000))
    tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
    expect(tab.page.get_by_text("nested deeper than 512 levels").first).to_be_visible()


def test_logs(tab, api, endpoint, worker):
    script = "import json, os, signal\nfor text in json.loads(os.environ['TEXTS']): print(text, flush=True)\nsignal.pause()"
    command = [sys.executable, "-u", "-c", script]
    # No variable holds a zero byte or half of a character.
    texts = [text.replace("\x00", "") for text in CORPUS]
    template = api.template(env={"TEXTS": json.dumps(texts)}, dockerStartCmd=command)
    printing = api.endpoint(templateId=template["id"], workersMin=1, name="Prints")
    logs = f"/v1/endpoints/{printing.id}/logs?limit=1000"
    until(lambda: any("Infinity" in line["text"] for line in api.ok("GET", logs)["lines"]), "everything was printed", 60)
    check(tab, f"/endpoints/{printing.id}/logs", "Infinity")
    box = tab.page.get_by_role("log", name="Lines")
    missing, faults = {text for text in PLAIN if len(text) < 200}, []

    def seen_on_the_way_up() -> bool:
        content = box.evaluate("node => node.textContent")
        missing.difference_update([text for text in missing if text in content])
        faults.extend([*tab.page.evaluate(ALIEN), *DISGUISES.findall(content)])
        box.evaluate("node => (node.scrollTop -= node.clientHeight)")
        assert not missing, sorted(missing)[:5]
        return True

    until(seen_on_the_way_up, "the logs show every text", 60)
    assert faults == []
    worker_id = api.ok("GET", f"/v1/endpoints/{printing.id}/workers")[0]["id"]
    check(tab, f"/endpoints/{printing.id}/workers/{worker_id}", "Infinity")


# What a worker may call itself, and what means something to a script, a shell or a file system.
ODD_WORKERS = [text for text in CORPUS if re.fullmatch(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}", text)] + ["-", ":", "a..", "javascript:window.pwned", "x" * 128]
# A refused poll is answered after a pause.
REFUSED = [text for text in [*CORPUS, ".", ".a", "x" * 129] if text not in ODD_WORKERS and "/" not in text][:: 1 if IS_LONG else 6]


def test_ids_of_workers(tab, api):
    endpoint = api.external(name="Named by others")
    jobs = [endpoint.run({}) for _ in ODD_WORKERS]
    worker = FakeWorker(endpoint)

    def poll(text: str) -> requests.Response:
        address = f"{worker.base}/job-take/{quote(text, safe='').replace('.', '%2e')}?gpu=none&job_in_progress=0"
        return requests.get(address, headers={"Authorization": worker.token}, timeout=90)

    with ThreadPoolExecutor(16) as pool:
        refused = dict(zip(REFUSED, pool.map(poll, REFUSED)))
    assert {answer.status_code for answer in refused.values()} == {400}, {text: answer.status_code for text, answer in refused.items()}
    taken = {text: poll(text).json()["id"] for text in ODD_WORKERS}
    assert sorted(taken.values()) == sorted(jobs)
    shown = check(tab, f"/endpoints/{endpoint.id}/workers", *[text[-12:] for text in ODD_WORKERS])
    assert "<" not in shown, shown
    check(tab, "/workers", "Named by others")
    for text in ODD_WORKERS[:: 1 if IS_LONG else 4]:
        check(tab, f"/endpoints/{endpoint.id}/workers/{quote(text, safe='')}", text)
        check(tab, f"/endpoints/{endpoint.id}/requests/{taken[text]}", text[-12:])
        check(tab, f"/endpoints/{endpoint.id}/requests?q=worker:{quote(text, safe='')}", taken[text][-12:])


def test_names_of_files(tab, api, tmp_path):
    schema = {"type": "object", "properties": {"file": {"type": "string", "format": "data-url", "title": "A file"}}}
    endpoint = api.external(name="../../<img src=x onerror=window.pwned=1>", inputSchema=schema)
    worker, page = FakeWorker(endpoint), tab.page
    names = [text for text in CORPUS if "\x00" not in text]
    for text in names if IS_LONG else [*names[::24], "\u202egnp.exe", "\x1b[31mred"]:
        tab.go(f"/endpoints/{endpoint.id}/playground")
        page.get_by_label("A file").set_input_files({"name": text, "mimeType": "text/html", "buffer": text.encode("utf-8", "replace")})
        expect(page.locator(".input-file")).to_contain_text("as base64")
        content = page.locator("main").evaluate("node => node.textContent")
        assert page.evaluate(ALIEN) == [] and not DISGUISES.search(content), text
    job = run(endpoint, worker, {})
    worker.done(job, {"output": {"name": "../../evil.html", "image": PNG}})
    tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
    links = [page.get_by_role("button", name="Download output"), page.get_by_role("region", name="Output").get_by_role("link", name="Download"), page.get_by_role("button", name="Download", exact=True)]
    for link in links:
        with page.expect_download() as found:
            link.click()
        # The server, not the texts, decides about names of files.
        assert re.fullmatch(r"[\w.-]+\.(json|png|log)", found.value.suggested_filename), found.value.suggested_filename


def test_more_files_than_are_shown_are_counted(tab, api):
    endpoint = api.external(name="Many files")
    worker, page = FakeWorker(endpoint), tab.page
    job = run(endpoint, worker, {})
    worker.done(job, {"output": [PNG] * 30})
    tab.go(f"/endpoints/{endpoint.id}/requests/{job}")
    output = page.get_by_role("region", name="Output")
    expect(output).to_contain_text("The first 24 of 30 files.")
    expect(output.get_by_role("img")).to_have_count(24)


def test_names(tab, api, endpoint):
    taken, refused = [], []
    named = {path: [] for path in ("/v1/apikeys", "/v1/templates", "/v1/networkvolumes", "/v1/containerregistryauth")}
    for number in range(0, len(CORPUS), 6):
        name = " ".join(CORPUS[number : number + 6])[:120]
        made = api.call("POST", "/v1/endpoints", json={"name": name, "provider": "external", "templateId": endpoint.record["templateId"]})
        (taken.append(made.json()) if made.status_code == 200 else refused.append(name))
        slugged = api.call("POST", "/v1/endpoints", json={"name": "s", "slug": name, "provider": "external", "templateId": endpoint.record["templateId"]})
        # A name of letters and digits alone is a slug.
        assert slugged.status_code == 400 or name.isalnum(), name
        for path, body in (
            ("/v1/apikeys", {"name": name, "scopes": [{"scope": "read"}]}),
            ("/v1/templates", {"name": f"{number} {name}", "imageName": name, "dockerStartCmd": [name], "env": {"A": name}}),
            ("/v1/networkvolumes", {"name": name, "size": 1}),
            ("/v1/containerregistryauth", {"name": name, "username": name, "password": name}),
        ):
            answer = api.call("POST", path, json=body)
            assert answer.status_code in (200, 400), (path, name, answer.text)
            if answer.status_code == 200 and is_plain(name):
                named[path].append(body["name"])
    assert len(taken) >= 30 and all(len(names) >= 20 for names in named.values()), (refused, named)
    records = [record for record in taken if is_plain(record["name"])]
    names = [record["name"] for record in records]
    busy = Endpoint(api, records[0])
    called = busy.run({}, webhook="http://127.0.0.1:9/")
    busy.cancel(called)
    until(lambda: busy.ok("GET", f"/webhooks?job={called}")["webhooks"], "the call was made", 30)
    started = busy.run({})
    assert FakeWorker(busy).take()["id"] == started
    metered = {"time": "2026-01-01T00:00:00.000Z", "timeBilledMs": 60_000, "busyMs": None, "amount": 0}
    intercept(tab.page, "**/v1/billing/endpoints?*", lambda route: route.fulfill(json=[metered | {"endpointId": one["id"], "gpuTypeId": one["name"]} for one in records[:10]]))
    keys, templates, volumes, logins = named.values()
    pages = [
        ("/endpoints", "All endpoints", names), ("/", "Endpoints", names), ("/api-keys", "Keys", keys), ("/templates", "Templates", templates), ("/volumes", "Volumes", volumes),
        ("/registries", "Logins", logins), ("/audit", "Entries", keys), ("/workers", "Running", names[:1]), ("/usage", "By endpoint", names[:10]), ("/webhooks", "Calls", names[:1]),
    ]  # fmt: skip
    for path, region, texts in pages:
        begin_anew(tab)
        check(tab, path, *texts, region=region)
    for one in records[:: 8 if IS_LONG else 40]:
        begin_anew(tab)
        for page in ("", "/settings", "/requests", "/playground"):
            check(tab, f"/endpoints/{one['id']}{page}", one["name"])
    begin_anew(tab)
    tab.go("/")
    tab.page.get_by_role("button", name="Find anything").click()
    tab.page.get_by_role("combobox", name="Find anything").fill("<")
    expect(tab.page.get_by_role("listbox").get_by_role("option").first).to_contain_text("<")
    assert tab.page.evaluate(ALIEN) == []


def begin_anew(tab) -> None:
    """Signs in again: the pages of that many endpoints, one after the other, are more than one session may ask for in 10 s."""
    # Signing in ends the session of the page that is left.
    tab.page.goto("about:blank")
    answer = tab.context.request.post(f"{tab.root}/session", data={"key": ADMIN_KEY})
    assert answer.ok, answer.text()


def test_browsers_that_signed_in(tab, server):
    names = [text for text in CORPUS if text.isascii() and text.isprintable() and text == text.strip()][:15]
    for name in names:
        body = {"key": ADMIN_KEY}
        answer = requests.post(f"{server.url}/console/session", json=body, headers={"User-Agent": name, "X-Request-Id": name}, timeout=30)
        assert answer.status_code == 200
    # The beginning of what names no browser that the page knows.
    check(tab, "/api-keys", *[name[:40] for name in names if is_plain(name)], region="Sessions")
    check(tab, "/audit", "Sign in to the console", region="Entries")
    assert tab.page.get_by_role("region", name="Entries").get_by_text("Sign in to the console").count() > len(names)


class EvilReceiver:
    """Answers webhooks with markup in its headers and its body."""

    def __init__(self):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                number = int(self.path.removeprefix("/"))
                # None of these ends a line.
                text = CORPUS[number % 50]
                self.send_response(500, text.encode("ascii", "replace").decode())
                self.send_header("Content-Type", "text/html")
                self.send_header("X-Evil", text.encode("ascii", "replace").decode())
                self.end_headers()
                self.wfile.write("\n".join(CORPUS[number:]).encode("utf-8", "replace"))

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_answers_of_receivers(tab, api, endpoint, worker):
    receiver = EvilReceiver()
    try:
        jobs = {}
        # The server keeps the beginning of an answer.
        for number in range(0, len(CORPUS), 12 if IS_LONG else 30):
            job = endpoint.run({}, webhook=f"{receiver.url}/{number}")
            assert worker.take()["id"] == job
            worker.done(job, {"output": 1})
            jobs[job] = [text for text in CORPUS[number : number + 2] if is_plain(text)]
        until(lambda: {call["job"] for call in endpoint.ok("GET", "/webhooks")["webhooks"]} >= set(jobs), "each was called", 60)
    finally:
        receiver.close()
    check(tab, "/webhooks", *[job[-12:] for job in jobs], region="Calls")
    check(tab, f"/endpoints/{endpoint.id}/webhooks", *[job[-12:] for job in jobs], region="Calls")
    for job, texts in jobs.items():
        tab.page.get_by_role("button", name=f"Show the attempts for {job[-12:]}").click()
        dialog = tab.page.get_by_role("dialog")
        expect(dialog).to_contain_text("It said")
        content = dialog.evaluate("node => node.textContent")
        assert not [text for text in texts if text not in content], (texts, content)
        assert tab.page.evaluate(ALIEN) == [] and not DISGUISES.search(content)
        dialog.get_by_role("button", name="Close").last.click()
    check(tab, f"/endpoints/{endpoint.id}/requests/{job}", "HTTP 500", region="Webhook")


def test_addresses(tab, endpoint):
    tab.forget("404")
    tab.forget("400")
    for text in CORPUS[::ADDRESSED]:
        encoded = quote(text, safe="")
        for path in (f"/endpoints/{endpoint.id}/requests?q={encoded}&state={encoded}", f"/endpoints/{encoded}", f"/endpoints/{endpoint.id}/requests/{encoded}"):
            tab.page.goto(tab.root + path)
            expect(tab.page.locator("h1")).to_have_count(1)
            assert tab.page.evaluate(ALIEN) == [], path
            assert tab.page.url.startswith(tab.root), path


@pytest.mark.parametrize("target", ["//evil.test/", "https://evil.test/", "javascript:window.pwned=1", "/\\evil.test", "/../../evil"])
def test_signing_in_leads_to_the_console_alone(console, target):
    tab = console()
    tab.go(f"/sign-in?to={quote(target, safe='')}")
    tab.page.get_by_label("API key").fill(ADMIN_KEY)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#side")).to_have_count(1)
    assert tab.page.url.startswith(tab.server.url), tab.page.url
    assert tab.page.evaluate("window.pwned") is None
