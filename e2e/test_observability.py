"""Metrics, rules and the dashboard, with a real Prometheus: it scrapes the server, and every query gets an answer."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import uuid
from pathlib import Path

import pytest
import requests
from test_cli import Cli
from test_gpus import LARGE, MACHINE

from harness.client import Api
from harness.collector import Collector
from harness.fake_worker import FakeWorker
from harness.nodes import METRICS
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "dist/prometheus/longshore.rules.yml"
DASHBOARD = ROOT / "dist/grafana/longshore.json"
MANUAL = ROOT / "docs/manual/metrics.md"


def promtool(*words: object, stdin: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        ["promtool", *map(str, words)], input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def metrics(server: Server) -> str:
    answer = requests.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.fixture
def server(fresh_server) -> Server:
    return fresh_server(config=MACHINE)


def used(server: Server):
    """An endpoint whose jobs have completed, failed, waited and streamed, whose worker has a GPU, and that has a problem."""
    api = Api(server)
    endpoint = api.endpoint("echo.py", workersMax=1, gpuTypeIds=[LARGE])
    for number in range(3):
        endpoint.runsync({"n": number})
    endpoint.cancel(endpoint.run({"n": 9}))
    stuck = api.external()
    stuck.run({})
    return endpoint, stuck


def test_promtool_accepts_the_metrics(server):
    endpoint, stuck = used(server)
    page = metrics(server)
    checked = promtool("check", "metrics", stdin=page)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    assert f'longshore_jobs_finished_total{{endpoint="{endpoint.id}",state="completed"}}' in page
    assert f'longshore_job_retries_total{{endpoint="{endpoint.id}",reason="client"}} 0' in page
    assert f'longshore_worker_starts_total{{endpoint="{endpoint.id}",reason="queued_jobs"}} 1' in page
    assert f'longshore_worker_start_seconds_count{{endpoint="{endpoint.id}"}} 1' in page
    assert f'longshore_attention{{endpoint="{stuck.id}",code="no_external_worker",severity="bad"}} 1' in page
    assert f'longshore_gpus{{type="{LARGE}",state="taken"}} 1' in page


def test_the_manual_has_every_metric_and_no_other(server):
    used(server)
    names = set(re.findall(r"^# TYPE (\S+)", metrics(server), re.M))
    described = set(re.findall(r"`((?:longshore|process)_[a-z_0-9]+)`", MANUAL.read_text()))
    # A server without TLS has no certificate, one without peers is no node, and one alone has no database and no object storage.
    elsewhere = {name for name in described if name.startswith(("longshore_flush_", "longshore_object_storage_"))}
    assert len(elsewhere) == 4 and described - {"longshore_tls_expiry_timestamp_seconds"} - elsewhere - METRICS == names


def test_promtool_accepts_the_rules_and_each_alert_fires_when_it_must():
    for checked in (promtool("check", "rules", RULES), promtool("test", "rules", RULES.with_suffix(".test.yml"))):
        assert checked.returncode == 0 and "SUCCESS" in checked.stdout + checked.stderr, checked
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    tests = RULES.with_suffix(".test.yml").read_text()
    for rule in re.findall(r"record: (\S+)", RULES.read_text()):
        assert re.search(rf"- expr: .*\b{rule}\b.*\n +eval_time: .*\n +exp_samples:", tests), f"no case says what {rule} records"
    for alert in alerts:
        fires = re.search(rf"alertname: {alert}\n +exp_alerts:\n +- exp_labels", tests)
        assert fires, f"no case in which {alert} fires"
        assert f"### {alert}\n" in MANUAL.read_text(), f"the manual does not say what to do about {alert}"


def test_the_program_prints_the_files(tmp_path, server):
    cli = Cli(tmp_path, server.url)
    assert cli.ok("observability", "rules").out == RULES.read_text()
    assert cli.ok("observability", "grafana").out == DASHBOARD.read_text()


@contextlib.contextmanager
def prometheus(folder: Path, server: Server, features: str = "exemplar-storage"):
    """A Prometheus that scrapes the server every second; its address."""
    shutil.copy(RULES, folder)
    (folder / "key").write_text(ADMIN_KEY)
    (folder / "prometheus.yml").write_text(
        json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [RULES.name],
            "scrape_configs": [{
                "job_name": "longshore",
                "authorization": {"credentials_file": "key"},
                "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}],
            }],
        })
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", f"--enable-feature={features}", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", f"--web.listen-address=127.0.0.1:{port}"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def is_up(url: str) -> bool:
    with contextlib.suppress(requests.ConnectionError):
        return requests.get(f"{url}/-/ready", timeout=10).status_code == 200
    return False


def answer(url: str, query: str) -> list[dict]:
    shown = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=30).json()
    assert shown["status"] == "success", (query, shown)
    return shown["data"]["result"]


def queries() -> list[tuple[str, str]]:
    """The title of each panel with each of its queries, as Grafana would ask them for all endpoints."""
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
    filled = lambda text: text.replace("$__rate_interval", "5m").replace("$endpoint", ".*")  # noqa: E731
    return [(panel["title"], filled(target["expr"])) for panel in panels for target in panel["targets"]]


def test_every_panel_of_the_dashboard_has_data(tmp_path, server):
    endpoint, stuck = used(server)
    asked = queries()
    assert len(asked) > 25 and len({title for title, _ in asked}) > 20
    with prometheus(tmp_path, server) as url:
        until(lambda: is_up(url), "Prometheus answers", 60)
        # A rate needs a change after the first scrape: of the starts of workers, too.
        starts = f'longshore_worker_start_seconds_count{{endpoint="{endpoint.id}"}}'
        until(lambda: answer(url, starts), "the first scrape", 60)
        # On a loaded machine the server may have replaced the worker for its silence, and none is needed until the next job.
        for worker in endpoint.workers():
            endpoint.api.call("POST", f"/v1/endpoints/{endpoint.id}/workers/{worker.worker}/stop")

        def all_known() -> bool:
            endpoint.runsync({"n": 1})
            missing = [f"{title}: {query}" for title, query in asked if not is_known(url, query)]
            assert missing == []
            return True

        until(all_known, "every panel has data", 20, 1)
        loaded = requests.get(f"{url}/api/v1/rules", timeout=30).json()["data"]["groups"]
        rules = [rule for group in loaded for rule in group["rules"]]
        assert len(rules) == RULES.read_text().count("- record:") + RULES.read_text().count("- alert:")
        for rule in ("jobs_submitted:rate5m", "jobs_late:ratio_rate5m", "jobs_bad:ratio_rate5m"):
            query = f'longshore:{rule}{{endpoint="{endpoint.id}"}}'
            until(lambda: is_known(url, query), f"the recording rule {rule} has data", 60, 1)
        assert [rule["name"] for rule in rules if rule["health"] == "err"] == []
        assert answer(url, f'longshore_attention{{endpoint="{stuck.id}"}}')


def is_known(url: str, query: str) -> bool:
    """Whether a query has a result that is a number."""
    return any(one["value"][1] != "NaN" for one in answer(url, query))


def test_a_prometheus_with_native_histograms_gets_them(tmp_path, fresh_server):
    endpoint = Api(fresh_server()).external()
    worker = FakeWorker(endpoint)
    for _ in range(3):
        endpoint.run({})
        worker.done(worker.take()["id"], {"output": 1})
    job_times = f'longshore_job_delay_seconds{{endpoint="{endpoint.id}"}}'
    with prometheus(tmp_path, endpoint.api.server, "native-histograms") as url:
        until(lambda: is_up(url), "Prometheus answers", 60)
        until(lambda: answer(url, f"histogram_count({job_times})"), "the first scrape", 60)
        numbers = lambda query: [float(one["value"][1]) for one in answer(url, query)]  # noqa: E731
        assert numbers(f"histogram_count({job_times})") == [3]
        [median], [total] = numbers(f"histogram_quantile(0.5, {job_times})"), numbers(f"histogram_sum({job_times})")
        assert 0 <= median <= 1.1 * total, (median, total)
        # All other metrics are there, too.
        assert numbers(f'sum(longshore_jobs_submitted_total{{endpoint="{endpoint.id}"}})') == [3]
        assert numbers(f'longshore_jobs{{endpoint="{endpoint.id}",state="queued"}}') == [0]
        assert answer(url, 'longshore_commit_seconds_bucket{le="+Inf"}')


def test_a_histogram_leads_to_the_trace_of_a_job(tmp_path, fresh_server):
    with Collector() as collector:
        server = fresh_server(config=f'{QUICK}otlp_endpoint = "{collector.url}"\n')
        endpoint = Api(server).external()
        worker = FakeWorker(endpoint)
        with prometheus(tmp_path, server) as url:
            until(lambda: is_up(url), "Prometheus answers", 60)
            job = endpoint.run({})
            worker.take()
            worker.chunk(job, "a")
            worker.done(job, {"output": 1})
            query = f'{{__name__=~"longshore_job_.*_seconds_bucket",endpoint="{endpoint.id}"}}'

            def traces() -> dict[str, str]:
                asked = {"query": query, "start": time.time() - 600, "end": time.time() + 600}
                shown = requests.get(f"{url}/api/v1/query_exemplars", params=asked, timeout=30).json()
                assert shown["status"] == "success", shown
                return {
                    one["seriesLabels"]["__name__"]: exemplar["labels"]["trace_id"]
                    for one in shown["data"] for exemplar in one["exemplars"]
                }

            kinds = ("delay", "execution", "first_chunk")
            all_three = {f"longshore_job_{kind}_seconds_bucket": uuid.UUID(job).hex for kind in kinds}
            until(lambda: traces() == all_three, "each histogram has an example", 60)
            assert collector.wait_for(uuid.UUID(job).hex, "job", "attempt")
    # Text without examples for all that do not ask.
    assert "trace_id" not in metrics(server)
