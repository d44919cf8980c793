"""What "Copy as" writes is run: it sends exactly the bytes of the request, also for texts that try to leave their quotes."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from harness.hostile_text import CORPUS
from harness.server import ADMIN_KEY, binary

KEY = "ls_copied"
# Texts that mean something in a shell or in a literal, beside those that mean something in a page.
QUOTING = ["'", "''", "'\\''", '"', "\\", "\\\\'", "\\n", "\n", "\r\n", "\t", "$HOME", "${HOME}", "!!", "`id`", "$(id)", "@/etc/passwd", "%0a", "\x7f", "é", "🜨", "\u2028", "EOF\n", "\\u0041", "'''", '"""', "*", "~", "#", "a;b|c&d>e", "", " "]
# More than one argument of a command of Linux holds.
LONG = "it's \N{LATIN SMALL LETTER E WITH ACUTE}\n" * 20_000
TEXTS = list(dict.fromkeys([*QUOTING, LONG, *CORPUS]))

# The calls of the texts, as the pages make them: a value alone, and a whole body as it was written.
CALLS = """async ([module, texts]) => {
  const { FORMS } = await import(module);
  const bodyOf = (text) => `{ "input":  ${JSON.stringify({ [text]: text })},\\n "policy": {"ttl": 60000} }`;
  const calls = texts.flatMap((text) => [
    { endpoint: "copied", input: { text } },
    { endpoint: "copied", input: JSON.stringify({ [text]: text }), body: bodyOf(text), route: "runsync" },
  ]);
  const bodies = calls.map(({ input, body }) => body ?? JSON.stringify({ input }));
  return { bodies, codes: Object.fromEntries(FORMS.map(({ name, of }) => [name, calls.map(of)])) };
}"""


# A conversation for each few texts, as the chat writes them.
CHATS = """async ([module, parts]) => {
  const { CHAT_FORMS } = await import(module.replace("copy_as", "chat_forms"));
  const bodies = parts.map((texts) => JSON.stringify({ model: "m", messages: texts.map((content) => ({ role: "user", content })), stream: true, stop: null }));
  const calls = bodies.map((body) => ({ endpoint: "copied", input: null, body }));
  return { bodies, codes: Object.fromEntries(CHAT_FORMS.map(({ name, of }) => [name, calls.map(of)])) };
}"""


class Stub:
    """Keeps what it is sent, in order."""

    def __init__(self):
        self.got: list[tuple[str, str, str, bytes]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                stub.got.append((self.path, self.headers["Authorization"], self.headers["Content-Type"], body))
                is_stream = "/openai/" in self.path
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
                self.end_headers()
                self.wfile.write(b"data: [DONE]\n\n" if is_stream else b"{}")

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def stub():
    stub = Stub()
    yield stub
    stub.close()


def copied(page: Page, calls: str, texts: list) -> dict:
    """What each form writes for the calls of the texts, and the bodies that it must send."""
    module = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name).find((name) => name.endsWith('/ui/copy_as.js'))")
    assert module, "the page has loaded the forms"
    return page.evaluate(calls, [urlsplit(module).path, texts])


def in_bash(folder: Path, codes: list[str]) -> list[str]:
    file = folder / "copied.sh"
    file.write_text("".join(f"{code} || exit 1\n" for code in codes))
    return ["bash", str(file)]


def in_python(folder: Path, codes: list[str]) -> list[str]:
    file = folder / "copied.json"
    file.write_text(json.dumps(codes))
    return [sys.executable, "-c", "import json, sys\nfor code in json.load(open(sys.argv[1])): exec(compile(code, 'copied', 'exec'), {})", str(file)]


def in_javascript(folder: Path, codes: list[str]) -> list[str]:
    file = folder / "copied.mjs"
    file.write_text("".join(f"{{\n{code}\n}}\n" for code in codes))
    return ["node", str(file)]


def run(folder: Path, command, codes: list[str]) -> None:
    """Runs what was copied, and fails if it does, or leaves anything."""
    environment = {**os.environ, "LONGSHORE_API_KEY": KEY, "HOME": "/nowhere"}
    ran = subprocess.run(command(folder, codes), env=environment, cwd=folder, capture_output=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert not Path("/tmp/pwned").exists() and len(list(folder.iterdir())) == 1


@pytest.fixture
def tab(console, api):
    endpoint = api.external(name="Copied")
    tab = console().sign_in(path=f"/endpoints/{endpoint.id}")
    tab.page.get_by_role("button", name="Copy as").wait_for()
    return tab


@pytest.mark.parametrize("form, program, command", [("curl", "curl", in_bash), ("Python", sys.executable, in_python), ("JavaScript", "node", in_javascript)])
def test_what_is_copied_sends_the_same_bytes(tab, api, stub, tmp_path, form, program, command):
    if shutil.which(program) is None:
        pytest.skip(f"NOT TESTED: {program} is not installed, so what is copied as {form} is not run")
    found = copied(tab.page, CALLS, TEXTS)
    codes = [code.replace(api.server.url, stub.url) for code in found["codes"][form]]
    # No code has a key in it: it is read from the environment.
    assert all("LONGSHORE_API_KEY" in code and stub.url in code for code in codes)
    stub.got.clear()
    run(tmp_path, command, codes)
    routes = ["/v2/copied/run", "/v2/copied/runsync"] * len(TEXTS)
    expected = [(route, f"Bearer {KEY}", "application/json", body.encode()) for route, body in zip(routes, found["bodies"])]
    wrong = [pair for pair in zip(stub.got, expected) if pair[0] != pair[1]]
    assert len(stub.got) == len(expected) and not wrong, wrong[:3]


@pytest.mark.parametrize("form, command", [("curl", in_bash), ("Python", in_python)])
def test_what_is_copied_from_a_chat_sends_the_same_conversation(tab, api, stub, tmp_path, form, command):
    found = copied(tab.page, CHATS, [TEXTS[at : at + 20] for at in range(0, len(TEXTS), 20)])
    stub.got.clear()
    run(tmp_path, command, [code.replace(api.server.url, stub.url) for code in found["codes"][form]])
    assert {(path, key) for path, key, _, _ in stub.got} == {("/v2/copied/openai/v1/chat/completions", f"Bearer {KEY}")}
    # OpenAI's client writes the JSON in its own way.
    assert [json.loads(body) for _, _, _, body in stub.got] == [json.loads(body) for body in found["bodies"]]


def test_a_long_input_is_copied_for_the_command_line_too(tab, api, tmp_path):
    endpoint = api.external(name="Copied at length")
    calls = CALLS.replace('"copied"', json.dumps(endpoint.id))
    code = copied(tab.page, calls, [LONG])["codes"]["longshore"][0].replace("longshore run", f"{shlex.quote(binary())} run").removesuffix(" --wait")
    file = tmp_path / "copied.sh"
    file.write_text(code)
    environment = {**os.environ, "LONGSHORE_API_KEY": ADMIN_KEY, "HOME": "/nowhere", "NO_PROXY": "*"}
    ran = subprocess.run(["bash", str(file)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    job = endpoint.ok("GET", "/requests")["requests"][0]["id"]
    assert endpoint.ok("GET", f"/jobs/{job}/input") == {"text": LONG}
