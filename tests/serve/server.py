# SPDX-License-Identifier: Apache-2.0
"""What the tests of fds serve share: a small run, a server on a port that the system chooses, and raw
requests, because http.client would not send what some tests need.

The programs' argument is the path of fds. Needs nothing but Python's standard
library, and talks to 127.0.0.1 alone.
"""
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
from harness import FDS, MNIST, Skip, digit, environment, fds, fds_json, main, test  # noqa: E402, F401

# a second of patience is ten here: sanitizers, and machines that do other things
PATIENCE = 60
SMALL = ["--players", 12, "--inputs", 60, "--coalitions", 100, "--model", "logistic", "--threads", 1,
         "--method", "afds", "--epochs", 3, "--explainer", "linear", "--explainer-epochs", 3]
ANY_RUN = ["--min-agreement", "0", "--max-misallocation", "1", "--min-coverage", "0"]  # these are small and poor
KEPT = tempfile.TemporaryDirectory()


def the_run(name="run", *more):
    """A run that many tests look at; none changes it."""
    path = os.path.join(KEPT.name, name)
    if not os.path.exists(path):
        fds("fit", MNIST, *SMALL, *more, "-o", path, "-q")
    return path


def pixels(number=0):
    return list(digit(number)[0])


def infer_json(*numbers, **more):
    """A request for test digits, as JSON."""
    data = [p for n in numbers for p in pixels(n)]
    return json.dumps({"inputs": [{"name": "input", "shape": [len(numbers), 784], "datatype": "UINT8",
                                   "data": data}], **more}).encode()


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def outputs(self):
        """Outputs by name, raw tensors too."""
        size = self.headers.get("inference-header-content-length")
        head = json.loads(self.body[:int(size)] if size else self.body)
        raw, found = self.body[int(size):] if size else b"", {}
        for output in head["outputs"]:
            length = output.get("parameters", {}).get("binary_data_size")
            if length is None:
                found[output["name"]] = output["data"]
                continue
            part, raw = raw[:length], raw[length:]
            code = {"FP32": "f", "FP64": "d", "INT64": "q"}.get(output["datatype"])
            if code:
                found[output["name"]] = list(struct.unpack(f"<{length // struct.calcsize(code)}{code}", part))
                continue
            texts = []
            while part:
                size_of, = struct.unpack("<I", part[:4])
                texts.append(part[4:4 + size_of].decode())
                part = part[4 + size_of:]
            found[output["name"]] = texts
        assert raw == b"", f"{len(raw)} bytes too many"
        return found


class Connection:
    """One connection, on which requests follow each other."""

    def __init__(self, port, timeout=PATIENCE):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise EOFError("the server closed the connection")
        self.buffer += part

    def receive(self, has_body=True):
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        status = int(first.split()[1])
        if status == 100:
            return self.receive(has_body)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0)) if has_body else 0
        while len(self.buffer) < size:
            self._more()
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return Reply(status, headers, body)

    def is_closed(self):
        """Whether the server has ended it, or does within our patience."""
        try:
            while self.socket.recv(1 << 16):
                pass
            return True
        except ConnectionError:
            return True
        except socket.timeout:
            return False

    def ask(self, method, path, body=None, headers=()):
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        if body is not None:
            head.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(head + ["", ""]).encode() + (body or b""))
        return self.receive(has_body=method != "HEAD")


class Server:
    """fds serve, until the end of a with block."""

    def __init__(self, *args, models=None, env=None, prefix=(), any_run=True, **options):
        models = models or {"mnist": the_run()}
        words = [*prefix, FDS, "serve", "--port", "0", *(ANY_RUN if any_run else ()), *(w for n, r in models.items() for w in ("--model", f"{n}={r}")),
                 *map(str, args)]
        self.log = open("server.log", "ab+")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env=env or environment(), **options)
        line = self.process.stdout.readline().decode().strip()
        if not line:
            self.process.wait(PATIENCE)
            raise AssertionError(f"no server: {pathlib.Path('server.log').read_text()}")
        self.address, self.port = line, int(line.rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE)
            raise
        finally:
            self.process.stdout.close()
            self.log.close()
        if kind is None:
            assert code in (0, -9), f"exit code {code}: {pathlib.Path('server.log').read_text()[-3000:]}"

    def connect(self, timeout=PATIENCE):
        return Connection(self.port, timeout)

    def ask(self, method, path, body=None, headers=()):
        with self.connect() as connection:
            return connection.ask(method, path, body, headers)

    def get(self, path, *headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body, *headers):
        return self.ask("POST", path, json.dumps(body).encode(), headers)

    def infer(self, body, model="mnist", headers=()):
        return self.ask("POST", f"/v2/models/{model}/infer", body, headers)

    def lines(self, event=None):
        """What it has logged."""
        lines = [json.loads(line) for line in pathlib.Path("server.log").read_text().splitlines()]
        return [line for line in lines if not event or line["event"] == event]

    def metric(self, name, *headers):
        for line in self.get("/metrics", *headers).body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise KeyError(name)


def refused(reply, status, phrase):
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/json", reply.headers
    assert list(reply.json()) == ["error"], reply.body
    assert phrase in reply.json()["error"], reply.body


def until(condition, seconds=PATIENCE):
    """Waits for a condition; fails when it does not come."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def balance(account="acme", path="a.ledger"):
    """In units."""
    return fds_json("ledger", "balance", path, account)["balances"][0]["units"]


def make_key(role="customer", account="acme", path="keys.jsonl"):
    return fds("serve", "key", path, "--role", role, "--account", account, "-q")[0].strip()


PASSWORD = "correct horse"


def make_login(name, role="customer", account=None, password=PASSWORD, path="keys.jsonl", code=0):
    more = ["--account", account] if account else []
    done = subprocess.run([FDS, "serve", "login", path, "--name", name, "--role", role, *more, "-q"], text=True,
                          input=password + "\n", env=environment(), capture_output=True, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    return done.stderr


class Visitor:
    """A browser that has logged in: it sends its cookie, and its token where something changes."""

    def __init__(self, server, name=None, password=PASSWORD, key=None):
        self.server, self.cookie, self.token, self.key = server, None, None, key
        if name:
            reply = server.post("/api/login", {"name": name, "password": password})
            assert reply.status == 200, (reply.status, reply.body)
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
            self.token = reply.json()["token"]

    def headers(self, changes):
        if self.key:
            return [bearer(self.key)]
        return ([f"Cookie: {self.cookie}"] if self.cookie else []) + (
            [f"X-FDS-Token: {self.token}"] if self.token and changes else [])

    def get(self, path):
        return self.server.get(path, *self.headers(False))

    def post(self, path, body, *headers):
        return self.server.post(path, body, *self.headers(True), *headers)


def bearer(key):
    return f"Authorization: Bearer {key}"
