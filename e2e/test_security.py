"""What is around requests: TLS, addresses, browsers, names of requests, and the log of changes."""

import http.client
import json
import os
import shutil
import socket
import ssl
import tempfile
from pathlib import Path

import pytest
import requests

from harness import processes
from harness.certificates import Authority
from harness.client import Api, Endpoint, unique
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY, QUICK
from harness.wait import until

KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}
TRACED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Encrypted:
    """A server's files for TLS, and a client that trusts who signed them."""

    def __init__(self, folder):
        self.authority = Authority(folder)
        self.certificate, self.key = folder / "server.pem", folder / "server.key"
        self.context = ssl.create_default_context(cafile=self.authority.path)
        self.install(*self.authority.issue("first", 1001))

    def install(self, certificate, key) -> None:
        for source, target in ((certificate, self.certificate), (key, self.key)):
            draft = target.with_suffix(".draft")
            shutil.copy(source, draft)
            draft.replace(target)

    @property
    def config(self) -> str:
        return QUICK + f'tls_cert = "{self.certificate}"\ntls_key = "{self.key}"\n'

    def serial(self, port: int) -> int:
        """The serial number of the certificate that a new connection gets."""
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            with self.context.wrap_socket(plain, server_hostname="localhost") as stream:
                return int(stream.getpeercert()["serialNumber"], 16)


@pytest.fixture
def encrypted(tmp_path):
    return Encrypted(tmp_path)


@pytest.fixture
def tls_server(encrypted, fresh_server):
    return fresh_server(config=encrypted.config, verify=str(encrypted.authority.path))


def test_jobs_and_workers_over_tls(tls_server, encrypted):
    assert f"listening on https://127.0.0.1:{tls_server.port}" in tls_server.log()
    api = Api(tls_server)
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    token = endpoint.worker_token()
    assert all("https://" in value for name, value in token["env"].items() if name.startswith("RUNPOD_WEBHOOK"))
    job = endpoint.run({"n": 1}, blob="x" * 300_000)
    assert worker.take()["id"] == job
    worker.done(job, {"output": "y" * 2_000_000})
    assert len(endpoint.wait_for(job)["output"]) == 2_000_000


def test_a_client_without_tls_gets_nothing(tls_server):
    plain = http.client.HTTPConnection("127.0.0.1", tls_server.port, timeout=60)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        plain.request("GET", "/healthz")
        plain.getresponse()
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"https://127.0.0.1:{tls_server.port}/healthz", timeout=60)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", tls_server.port), 10) as stream, pytest.raises(OSError):
        old.wrap_socket(stream)
    assert Api(tls_server).call("GET", "/healthz").status_code == 200


def test_a_new_certificate_is_for_new_connections(tls_server, encrypted):
    old = http.client.HTTPSConnection("localhost", tls_server.port, context=encrypted.context, timeout=60)
    for number in (1001, 1002, 1003):
        encrypted.install(*encrypted.authority.issue(f"number-{number}", number))
        until(lambda: encrypted.serial(tls_server.port) == number, f"certificate {number} is served", 15)
        old.request("GET", "/healthz")
        answer = old.getresponse()
        assert answer.status == 200 and answer.read()
        # What was agreed on with the first certificate goes on.
        assert int(old.sock.getpeercert()["serialNumber"], 16) == 1001


def test_a_broken_certificate_is_not_taken_over(tls_server, encrypted):
    other, _ = encrypted.authority.issue("other", 1002)
    for certificate, said in ((encrypted.authority._key, "holds no certificate"), (other, "cannot be used together")):
        shutil.copy(certificate, encrypted.certificate)
        until(lambda: said in tls_server.log(), "the log says what is wrong", 15)
        assert encrypted.serial(tls_server.port) == 1001
    encrypted.certificate.unlink()
    until(lambda: "certificate files unreadable" in tls_server.log(), "the log says what is wrong", 15)
    assert encrypted.serial(tls_server.port) == 1001


def test_files_that_are_no_good_keep_the_server_from_starting(tls_server, encrypted):
    tls_server.terminate()
    good = encrypted.key.read_text()
    foreign = encrypted.authority.issue("foreign", 7)[1].read_text()
    for text, said in ((good[:60], "holds no private key"), (foreign, "cannot be used together")):
        encrypted.key.write_text(text)
        assert tls_server.spawn().wait(60) == 1
        last = tls_server.reason()
        assert "cannot use TLS" in last and said in last and good[40:60] not in last, last
    encrypted.key.unlink()
    assert tls_server.spawn().wait(60) == 1
    assert "cannot read" in tls_server.reason()


def test_management_has_an_address_of_its_own(fresh_server):
    server = fresh_server(flags=("--management-listen", "127.0.0.1:0"))
    line = next(line for line in server.log().splitlines() if line.startswith("management on "))
    management = line.removeprefix("management on ")
    for path in ("/v1/endpoints", "/v1/openapi.json", "/metrics", "/console"):
        assert requests.get(f"{server.url}{path}", headers=KEY, timeout=60).status_code == 404, path
        assert requests.get(f"{server.url}{path}", timeout=60).status_code == 404, path
    assert requests.get(f"{management}/v1/endpoints", headers=KEY, timeout=60).json() == []
    assert requests.get(f"{management}/metrics", timeout=60).status_code == 401
    assert requests.get(f"{management}/metrics", headers=KEY, timeout=60).status_code == 200
    template = {"name": "t", "imageName": "i"}
    made = requests.post(f"{management}/v1/endpoints", headers=KEY, json={"template": template}, timeout=60).json()
    token = requests.post(f"{management}/v1/endpoints/{made['id']}/worker-token", headers=KEY, timeout=60).json()
    assert server.url in token["env"]["RUNPOD_WEBHOOK_GET_JOB"] and management not in json.dumps(token)
    run = f"/v2/{made['id']}/run"
    for base in (server.url, management):
        assert requests.post(f"{base}{run}", headers=KEY, json={"input": {}}, timeout=60).status_code == 200
        assert requests.get(f"{base}/openai/v1/models", headers=KEY, timeout=60).status_code == 200
        assert requests.get(f"{base}/readyz", timeout=60).status_code == 200
    requests.delete(f"{management}/v1/endpoints/{made['id']}", headers=KEY, timeout=60)
    server.terminate()


def test_a_page_of_a_known_origin_may_call(fresh_server):
    server = fresh_server(config=QUICK + 'cors_origins = "https://app.example"\n')
    endpoint = Api(server).external()
    page = {"Origin": "https://app.example"}
    asked = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    preflight = requests.options(f"{server.url}{endpoint.mount}/run", headers=asked, timeout=60)
    assert preflight.status_code == 204 and preflight.headers["Access-Control-Allow-Headers"] == "authorization"
    answer = endpoint.call("POST", "/run", headers=page, json={"input": {}})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "X-Request-ID" in answer.headers["Access-Control-Expose-Headers"]
    other = endpoint.call("POST", "/run", headers={"Origin": "https://evil.example"}, json={"input": {}})
    assert other.status_code == 200 and "Access-Control-Allow-Origin" not in other.headers


def test_browsers_are_told_nothing_by_default(server, endpoint):
    answer = endpoint.call("POST", "/run", headers={"Origin": "https://app.example"}, json={"input": {}})
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("format", ["pretty", "json"])
def test_a_request_is_found_in_the_log_by_its_name_and_trace(fresh_server, format):
    server = fresh_server(flags=("--log-format", format, "--log-level", "debug"))
    api = Api(server)
    endpoint = api.external()
    name = unique("request")
    named = {"X-Request-ID": name, "traceparent": TRACED}
    for method, path in (("PATCH", f"/v1/endpoints/{endpoint.id}"), ("POST", f"{endpoint.mount}/run"), ("GET", "/v2/x/y")):
        answer = api.call(method, path, headers=named, json={"workersMax": 2} if method == "PATCH" else {"input": {}})
        assert (answer.headers["X-Request-ID"], answer.headers["traceparent"]) == (name, TRACED)
    lines = [line for line in server.log().splitlines() if name in line]
    assert all(TRACED.split("-")[1] in line for line in lines), lines
    assert sum("answered" in line for line in lines) == 3 and any("endpoint changed" in line for line in lines), lines


def test_lines_of_the_json_log_have_plain_values(fresh_server):
    server = fresh_server(flags=("--log-format", "json"))
    endpoint = Api(server).endpoint("crash.py", workersMax=1)
    endpoint.run()
    ended = until(lambda: [line for line in server.log().splitlines() if "worker exited" in line], "a worker crashed")
    fields = json.loads(ended[0])
    assert fields["endpoint"] == endpoint.id and fields["worker"], fields
    assert isinstance(fields["code"], int) and "signal" not in fields and isinstance(fields["ranMs"], int), fields
    assert (fields["event"], fields["level"]) == ("worker.exited", "warn") and fields["ts"].endswith("Z"), fields
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    assert not [line for line in lines if "Some(" in json.dumps(line) or '"None"' in json.dumps(line)]


def entries(api: Api, query: str = "") -> list[dict]:
    return api.ok("GET", f"/v1/audit{query}")


def test_every_change_is_in_the_audit_log_without_its_values(fresh_server):
    server = fresh_server()
    api = Api(server)
    template = api.template(env={"TOKEN": "hush-7d1"})["id"]
    endpoint = Endpoint(api, api.ok("POST", "/v1/endpoints", json={"templateId": template, "provider": "external"}))
    key = api.ok("POST", "/v1/apikeys", json={"name": "boss", "scopes": [{"scope": "manage", "endpointIds": [endpoint.id]}]})
    boss = Api(server, key["key"])
    boss.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": 7}, headers={"X-Request-ID": "change-1"})
    assert boss.call("POST", "/v1/templates", json={"name": "no"}).status_code == 401
    assert api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMax": "hush-7d1"}).status_code == 400
    # Requests without a valid key and reading requests are not in the audit log.
    assert Api(server, "ls_x").call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 401
    boss.ok("GET", f"/v1/endpoints/{endpoint.id}")

    log = entries(api)
    seen = [(entry["event"], entry["key"]["id"], entry.get("method"), entry.get("resource"), entry["outcome"]) for entry in log]
    assert seen == [
        ("change", "admin", "PATCH", f"endpoints/{endpoint.id}", "refused"),
        ("change", key["id"], "POST", "templates", "refused"),
        ("change", key["id"], "PATCH", f"endpoints/{endpoint.id}", "done"),
        ("newAddress", key["id"], None, None, "done"),
        ("change", "admin", "POST", f"apikeys/{key['id']}", "done"),
        ("change", "admin", "POST", f"endpoints/{endpoint.id}", "done"),
        ("change", "admin", "POST", f"templates/{template}", "done"),
        ("newAddress", "admin", None, None, "done"),
    ], log
    change = log[2]
    assert (change["requestId"], change["fields"], change["status"]) == ("change-1", ["workersMax"], 200)
    assert (change["address"], change["key"]["name"]) == ("127.0.0.1", "boss")
    text = json.dumps(log)
    assert "hush-" not in text and key["key"].rsplit("_", 1)[1] not in text

    assert [entry["id"] for entry in entries(api, f"?resource=endpoints/{endpoint.id}")] == [log[at]["id"] for at in (0, 2, 5)]
    assert len(entries(api, "?resource=endpoints")) == 3 and len(entries(api, "?resource=endpoint")) == 0
    assert len(entries(api, f"?key={key['id']}")) == 3
    assert len(entries(api, f"?since={log[2]['at']}")) == 3 + sum(entry["at"] == log[2]["at"] for entry in log[3:])
    for refused in (boss, Api(server, api.ok("POST", "/v1/apikeys", json={"name": "r", "scopes": [{"scope": "read"}]})["key"])):
        assert refused.call("GET", "/v1/audit").status_code == 401


def test_a_slug_with_slashes_is_the_id_of_its_endpoint_in_the_audit_log(fresh_server):
    api = Api(fresh_server())
    endpoint = api.external(name="Sea", slug="org/model")
    api.ok("PATCH", "/v1/endpoints/org%2Fmodel", json={"workersMax": 5})
    assert api.call("DELETE", "/v1/endpoints/org%2Fmodel").status_code == 204
    about = entries(api, f"?resource=endpoints/{endpoint.id}")
    assert [entry["method"] for entry in about] == ["DELETE", "PATCH", "POST"], entries(api)


def test_changes_over_graphql_are_in_the_audit_log_one_by_one(fresh_server):
    api = Api(fresh_server())
    reader = Api(api.server, api.ok("POST", "/v1/apikeys", json={"name": "r", "scopes": [{"scope": "read"}]})["key"])

    def ask(by: Api, query: str):
        return by.call("POST", "/graphql", json={"query": query}, headers={"X-Request-ID": "asked"})

    assert ask(api, "{ myself { id } }").status_code == 200
    made = ask(api, """mutation {
        saveTemplate(input: { name: "t", imageName: "i", env: [{ key: "TOKEN", value: "hush-7d1" }] }) { id }
        deleteTemplate(templateName: "t")
    }""").json()["data"]["saveTemplate"]
    assert "errors" in ask(api, 'mutation { saveEndpoint(input: { templateId: "nosuch", workersMax: 1 }) { id } }').json()
    assert ask(reader, 'mutation { deleteEndpoint(id: "x") }').status_code == 401

    log = [entry for entry in entries(api, "?since=2020-01-01T00:00:00Z") if entry.get("requestId") == "asked"]
    log = [entry for entry in log if entry["path"] != "/graphql"]
    assert [(entry["method"], entry["resource"], entry.get("fields"), entry["status"]) for entry in log] == [
        ("DELETE", "endpoints/x", None, 401),
        ("POST", "endpoints", ["templateId", "workersMax"], 400),
        ("DELETE", f"templates/{made['id']}", None, 204),
        ("POST", f"templates/{made['id']}", ["env", "imageName", "name"], 200),
    ], log
    assert "hush" not in json.dumps(log)


def test_the_audit_log_is_read_in_pages_and_outlives_the_server(fresh_server):
    server = fresh_server()
    api = Api(server)
    for number in range(25):
        api.ok("POST", "/v1/templates", json={"name": f"t{number}", "imageName": "i"})
    # Killed, not stopped: what was answered is in the log.
    server.kill()
    server.start()
    read, path = [], "/v1/audit?limit=7&resource=templates"
    while path:
        answer = api.call("GET", path)
        assert answer.status_code == 200 and len(answer.json()) <= 7
        read += answer.json()
        path = answer.links.get("next", {}).get("url")
    assert len(read) == 25 == len({entry["id"] for entry in read})
    assert read == sorted(read, key=lambda entry: -entry["id"])
    assert sum(entry["event"] == "newAddress" for entry in entries(api)) <= 2


def test_the_audit_log_has_a_bound(fresh_server):
    server = fresh_server(config=QUICK + "audit_file_bytes_max = 2000\naudit_files_max = 3\n")
    api = Api(server)
    for number in range(40):
        api.ok("POST", "/v1/templates", json={"name": f"t{number}", "imageName": "i"})
    files = sorted(path.name for path in (server.data / "audit").iterdir())
    assert files == ["audit.1.jsonl", "audit.2.jsonl", "audit.jsonl"]
    assert sum(path.stat().st_size for path in (server.data / "audit").iterdir()) < 3 * 2500
    newest = entries(api)
    assert 5 < len(newest) < 40 and newest[0]["fields"] == ["imageName", "name"]


# What workers can see of the server


UNPRIVILEGED = 65_534


def environment(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")


@pytest.fixture
def confined(fresh_server):
    """A server that runs as an ordinary user, whose rights its workers have. Run by root, it may still read root's files,
    for the interpreter may be one of them; that does not open other processes."""
    with tempfile.TemporaryDirectory(prefix="longshore-e2e-") as folder:
        prefix = ()
        if os.geteuid() == 0:
            os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
            user = (f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups")
            reads = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
            prefix = ("setpriv", *user, *reads, "env", f"HOME={folder}")
        server = fresh_server(folder=Path(folder), prefix=prefix)
        yield server
        server.close()


def test_a_handler_of_the_same_user_reads_no_key(confined):
    endpoint = Api(confined).endpoint("spy.py", workersMin=1, workersMax=1)
    record = endpoint.runsync({"server": confined.process.pid}, wait_ms=60000)
    assert record["status"] == "COMPLETED", record
    seen = record["output"]
    assert seen["uid"] != 0, "root sees everything: this would show nothing"
    refused = {"environ": "PermissionError", "memory": "PermissionError", "files": "PermissionError"}
    assert (seen["server"], seen["shim"]) == (refused, refused)
    if os.geteuid() == 0:
        for pid in (confined.process.pid, seen["pid"]):
            assert ADMIN_KEY not in environment(pid), "not even root finds it there"
            assert "PATH=" in environment(pid)
    metrics = requests.get(f"{confined.url}/metrics", headers=KEY, timeout=60).text
    for name in ("process_resident_memory_bytes", "process_open_fds"):
        assert any(line.startswith(name + " ") for line in metrics.splitlines()), "the server still sees itself"
    # Who cannot be looked into is found all the same.
    before = processes.worker_pids(confined.port)
    confined.kill()
    confined.start()
    assert endpoint.runsync({"server": confined.process.pid}, wait_ms=60000)["status"] == "COMPLETED"
    assert processes.worker_pids(confined.port).keys() == before.keys(), "the same worker"


def test_metrics_take_a_key_and_show_what_it_may_see(fresh_server):
    server = fresh_server()
    api = Api(server)
    here, elsewhere = api.external(name="here"), api.external(name="elsewhere")
    assert api.call("GET", "/metrics", headers={"Authorization": None}).status_code == 401
    assert api.call("GET", "/metrics", headers={"Authorization": "Bearer nonsense"}).status_code == 401
    whole = api.call("GET", "/metrics").text
    assert here.id in whole and elsewhere.id in whole and "longshore_commits_failed_total" in whole
    scopes = [{"scope": "read", "endpointIds": [here.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": "here", "scopes": scopes})["key"]
    page = Api(server, key).call("GET", "/metrics").text
    assert f'longshore_jobs{{endpoint="{here.id}",state="queued"}} 0' in page
    assert elsewhere.id not in page and "elsewhere" not in page
    for name in ("longshore_commit", "longshore_http", "longshore_build", "process_"):
        assert name not in page, name
    jobs = api.ok("POST", "/v1/apikeys", json={"name": "jobs", "scopes": [{"scope": "jobs"}]})["key"]
    assert Api(server, jobs).call("GET", "/metrics").status_code == 401
    server.terminate()


def test_metrics_can_be_public(fresh_server):
    server = fresh_server(flags=("--metrics-public",))
    api = Api(server)
    endpoint = api.external()
    answer = api.call("GET", "/metrics", headers={"Authorization": None})
    assert answer.status_code == 200 and endpoint.id in answer.text
    server.terminate()
