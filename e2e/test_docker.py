"""Workers in containers: a private daemon, a private registry, and an image that is made of this machine's files."""

import hashlib
import io
import json
import os
import subprocess
import tarfile

from harness.client import Api, unique
from harness.docker import PASSWORD, StallingProxy
from harness.docker_endpoint import IMAGE, api, cause, config, daemon, docked, end, endpoint, needs_docker, registry  # noqa: F401
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until

pytestmark = needs_docker

LARGE = "longshore-test-large:1"


def test_a_container_gets_what_images_expect(api, daemon):
    volume = api.ok("POST", "/v1/networkvolumes", json={"name": unique("volume"), "size": 1})["id"]
    mine = endpoint(api, template={"env": {"MODEL": "tiny"}}, networkVolumeId=volume, memoryBytes=64 << 20, maxRetries=0)
    names = ["MODEL", "RUNPOD_ENDPOINT_ID", "RUNPOD_VOLUME_ID", "LONGSHORE_VOLUME_PATH", "NVIDIA_VISIBLE_DEVICES"]
    job = {"do": "write", "path": "/runpod-volume/weights", "text": "w", "env": names}
    output = mine.runsync(job, wait_ms=60000)["output"]
    assert output["cwd"] == "/tmp", "the image's own folder"
    assert list(output["env"].values()) == ["tiny", mine.id, volume, "/runpod-volume", "void"]
    assert (api.server.data / "volumes" / volume / "weights").read_text() == "w"
    (name,) = [name for name in daemon.containers() if name.endswith(output["pod"])]
    (made,) = json.loads(daemon.docker("inspect", name).stdout)
    host = made["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 64 << 20 and host["PidsLimit"] == 4096
    assert host["SecurityOpt"] == ["no-new-privileges"] and host["RestartPolicy"]["Name"] == "no"
    assert made["Image"].startswith("sha256:") and "RUNPOD_AI_API_KEY" not in json.dumps(made["Config"]["Labels"])
    log = api.call("GET", f"/v1/endpoints/{mine.id}/workers/{output['pod']}/logs").text
    assert "ready" in log and "handling" in log
    # Out of memory is told, with the limit.
    failed = mine.runsync({"do": "eat memory", "bytes": 500 << 20}, wait_ms=90000)
    assert failed["status"] == "FAILED" and "out of memory, the limit is 64 MiB" in failed["error"], failed


def test_a_container_outlives_a_killed_server(daemon):
    # The worker of these images sends no pings: its lease is long.
    server = Server(config=config(daemon).replace("ping_interval_ms = 3000", "ping_interval_ms = 60000")).start()
    foreign = daemon.docker("create", "--network=host", IMAGE).stdout.decode().strip()
    try:
        mine = endpoint(Api(server))
        job = mine.run({"do": "wait", "path": "/tmp/go"})
        mine.wait_for(job, "IN_PROGRESS", timeout_s=60)
        pods = Api(server).ok("GET", "/v1/pods")
        (worker,) = [name for name in daemon.containers() for pod in pods if name.endswith(pod["id"])]
        server.kill()
        server.start()
        daemon.docker("exec", worker, "/bin/sh", "-c", ": > /tmp/go")
        done = mine.wait_for(job, timeout_s=60)
        assert done["status"] == "COMPLETED" and worker.endswith(done["output"]["pod"]), "the same container did it"
        assert worker in daemon.containers()
        end(mine)
        until(lambda: worker not in daemon.containers(), "the container is removed", 60)
        assert daemon.docker("inspect", foreign).returncode == 0, "other containers are left alone"
    finally:
        server.close()
        daemon.docker("rm", foreign)


def load_image_of(daemon, architecture: str, name: str) -> None:
    """An image with an empty layer that says which processors it is for."""
    layer = io.BytesIO()
    tarfile.open(fileobj=layer, mode="w").close()
    layers = [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]
    image = {"architecture": architecture, "os": "linux", "rootfs": {"type": "layers", "diff_ids": layers}, "config": {}}
    manifest = [{"Config": "image.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"image.json": json.dumps(image), "manifest.json": json.dumps(manifest), "layer.tar": layer.getvalue()}
    saved = io.BytesIO()
    with tarfile.open(fileobj=saved, mode="w") as archive:
        for path, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    daemon.docker("load", input=saved.getvalue())


def test_what_cannot_start_is_told(api, registry, daemon):
    image = registry.push(daemon, IMAGE)
    cases = [
        (f"127.0.0.1:{registry.port}/none:1", None, "registry asks for credentials"),
        (image, ("ada", "wrong"), "refuses the credentials"),
        (f"{image}-missing", ("ada", PASSWORD), "image not found"),
    ]
    for name, login, words in cases:
        template = {}
        if login:
            auth = {"name": unique("auth"), "username": login[0], "password": login[1]}
            template = {"containerRegistryAuthId": api.ok("POST", "/v1/containerregistryauth", json=auth)["id"]}
        mine = endpoint(api, name, template)
        mine.run({})
        assert words in cause(mine, "start_failed")["text"], name
        end(mine)
    load_image_of(daemon, "arm64", "longshore-test-arm:1")
    foreign = endpoint(api, "longshore-test-arm:1")
    foreign.run({})
    assert "is for arm64 processors, and this computer has amd64" in cause(foreign, "start_failed")["text"]
    end(foreign)
    broken = endpoint(api, template={"dockerEntrypoint": ["/no/such/program"]})
    broken.run({})
    assert "command not found in the image" in cause(broken, "start_failed")["text"]
    end(broken)


def test_a_pull_is_shown_and_a_stop_cancels_it(api, registry, daemon):
    # Of another image the daemon would have the layers already.
    daemon.make_image(LARGE, os.urandom(6_000_000))
    image = registry.push(daemon, LARGE)
    daemon.docker("rmi", LARGE)
    proxy = StallingProxy(registry.port, 3_000_000)
    auth = {"name": unique("auth"), "username": "ada", "password": PASSWORD}
    template = {"containerRegistryAuthId": api.ok("POST", "/v1/containerregistryauth", json=auth)["id"]}
    try:
        mine = endpoint(api, image.replace(str(registry.port), str(proxy.port)), template)
        job = mine.run({})
        shown = lambda: mine.ok("GET", "/explain")["cause"]
        told = until(lambda: "MB" in (cause := shown())["title"] and cause, "the progress of the pull", 20)
        assert told["details"]["stage"] == "pulling" and told["title"].startswith("Pulling the image, "), told
        mine.patch(workersMax=0)
        pods = lambda: [pod for pod in api.ok("GET", "/v1/pods") if pod["endpointId"] == mine.id]
        until(lambda: not pods(), "no worker is left", 10)
        assert mine.status(job)["status"] == "IN_QUEUE"
        proxy.released.set()
        mine.patch(workersMax=1)
        assert mine.wait_for(job, timeout_s=60)["status"] == "COMPLETED", "the next pull succeeds"
        end(mine)
    finally:
        proxy.close()


def test_without_a_daemon_the_provider_is_refused():
    with_none = Server(config=QUICK + '[docker]\nsocket = "off"\n').start()
    try:
        refused = Api(with_none).call("POST", "/v1/endpoints", json={"template": {"name": "x", "imageName": IMAGE}, "provider": "docker"})
        assert refused.status_code == 400 and "no Docker daemon" in refused.text
    finally:
        with_none.close()


def test_a_daemon_that_is_away_is_named_and_its_jobs_run_when_it_is_back(daemon, tmp_path):
    server = Server(config=config(daemon)).start()
    try:
        mine = endpoint(Api(server))
        assert server.terminate() == 0
        server.config.write_text(QUICK + f'[docker]\nsocket = "unix://{tmp_path}/away.sock"\n')
        server.start()
        job = mine.run({"n": 1})
        told = cause(mine, "provider_unavailable")
        assert told["blocking"] and "away.sock" in told["text"], told
        [problem] = mine.api.ok("GET", "/v1/attention")
        assert (problem["code"], problem["severity"], problem["jobs"]) == ("provider_unavailable", "bad", 1), problem
        assert server.terminate() == 0
        server.config.write_text(config(daemon))
        server.start()
        assert mine.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
        end(mine)
    finally:
        server.close()


def test_dev_and_deploy_run_an_image(docked, daemon, tmp_path):
    (tmp_path / "test_input.json").write_text('{"input": {"prompt": "hi"}}')
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DOCKER_HOST": f"unix://{daemon.socket}"}
    command = [docked.program, "dev", "--image", IMAGE, "--once", "--no-color", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=tmp_path)
    assert ran.returncode == 0 and '"prompt": "hi"' in ran.stdout + ran.stderr, ran.stdout + ran.stderr
    environment |= {"LONGSHORE_URL": docked.url, "LONGSHORE_API_KEY": ADMIN_KEY}
    command = [docked.program, "deploy", "--image", IMAGE, "--name", "deployed", "--env", "A=b", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=tmp_path)
    assert ran.returncode == 0 and "COMPLETED" in ran.stdout + ran.stderr, ran.stdout + ran.stderr
