"""A bucket of an S3 stand-in (moto): looked at, emptied and made unreachable by tests."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import boto3
import requests
from botocore.config import Config

from .wait import until

NAME = "jobs"
SECRET = "s3-hidden-0123456789abcdef0123456789abcdef"


class Gate:
    """Forwards connections to a port until it is shut: then its own port refuses connections."""

    def __init__(self, target: int):
        self.target = target
        self.connections: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self._accept_from(self.listener)

    def _accept_from(self, listener: socket.socket) -> None:
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self.connections += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def shut(self) -> None:
        """Ends all connections, and refuses new ones."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
        self.connections.clear()

    def open(self) -> None:
        """Forwards again."""
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._accept_from(self.listener)


class Bucket:
    """A process of moto with one bucket. With `checks_keys`, it refuses keys that it does not know."""

    def __init__(self, checks_keys: bool = False):
        self._own = tempfile.TemporaryDirectory(prefix="longshore-s3-")
        self.folder = Path(self._own.name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        # The bucket, the user, its policy and its key are made before keys are checked.
        environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "4" if checks_keys else "inf"}
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        with (self.folder / "moto.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until(lambda: self._answers(port), "moto answers", 30)
        self.gate = Gate(port)
        self.key = "AKIAIOSFODNN7EXAMPLE"
        self.secret = SECRET
        self._client(port, "s3").create_bucket(Bucket=NAME)
        if checks_keys:
            iam = self._client(port, "iam")
            iam.create_user(UserName="longshore")
            everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
            iam.put_user_policy(UserName="longshore", PolicyName="all", PolicyDocument=json.dumps(everything))
            made = iam.create_access_key(UserName="longshore")["AccessKey"]
            self.key, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        self.s3 = self._client(port, "s3")
        self.credentials_file = self.write_credentials("credentials", self.secret)

    def _answers(self, port: int) -> bool:
        assert self.process.poll() is None, (self.folder / "moto.log").read_text()
        try:
            return requests.get(f"http://127.0.0.1:{port}/moto-api/", timeout=10).status_code == 200
        except requests.ConnectionError:
            return False

    def _client(self, port: int, kind: str):
        return boto3.client(
            kind, endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", aws_access_key_id=self.key,
            aws_secret_access_key=self.secret, config=Config(proxies={}, retries={"max_attempts": 0}),
        )

    def write_credentials(self, name: str, secret: str) -> Path:
        """A file with keys for `blobs_credentials_file`."""
        path = self.folder / name
        path.write_text(f"AWS_ACCESS_KEY_ID={self.key}\nAWS_SECRET_ACCESS_KEY={secret}\n")
        return path

    def url(self, prefix: str) -> str:
        """The address for the setting `blobs`."""
        return f"s3://{NAME}/{prefix}?endpoint=http://127.0.0.1:{self.gate.port}"

    def config(self, prefix: str) -> str:
        """Settings of a server that has its payloads below a prefix of the bucket."""
        return f'blobs = "{self.url(prefix)}"\nblobs_credentials_file = "{self.credentials_file}"\n'

    def names(self, prefix: str) -> list[str]:
        """The names of the objects below a prefix, without it."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix=f"{prefix}/")
        return [found["Key"].removeprefix(f"{prefix}/") for page in pages for found in page.get("Contents", [])]

    def payloads(self, prefix: str) -> list[str]:
        """The names of the large payloads below a prefix."""
        return [name for name in self.names(prefix) if name.startswith("payloads/")]

    def read(self, prefix: str, name: str) -> bytes:
        return self.s3.get_object(Bucket=NAME, Key=f"{prefix}/{name}")["Body"].read()

    def write(self, prefix: str, name: str, body: bytes) -> None:
        self.s3.put_object(Bucket=NAME, Key=f"{prefix}/{name}", Body=body)

    def delete(self, prefix: str, name: str) -> None:
        self.s3.delete_object(Bucket=NAME, Key=f"{prefix}/{name}")

    def close(self) -> None:
        self.gate.shut()
        self.process.kill()
        self.process.wait(60)
        self._own.cleanup()
