#!/usr/bin/python3
"""fds serve under load, beside a FastAPI service that does the same work (bench/serve_peer.py).

Usage: bench/serve.py BUILD_FOLDER [--seconds 10] [--rounds 3] [--explainers mlp auto] [--soak S] [--crowd] [--audit]

For MNIST with 100 players and each explainer, wrk asks with 64 connections: predictions that are free, and
predictions that are paid and on the disk before they are answered. Rounds alternate between fds and the
peer; the median of each is printed, with its range. A request has one digit, as raw bytes; both sides
predict, explain and divide the money. The peer runs with one and with two processes, and the better one
counts. Load, server and disk share one machine.

  fsync    milliseconds of one fsync after 4 kB, the median of 200: what a durable payment waits for at least
  alone    one connection, paid: milliseconds of an answer
  --crowd  the same beside 1,000 idle connections and 500 that send a byte per second
  --soak S paid at full rate for S seconds: resident memory, every tenth of it
  --audit  instead of all this: paid, of a run with a bank, with --audit-share 0, 0.05 and 1 in alternating rounds;
           how many audits the bank has answered in the end, and how many wait
Needs wrk, python3-fastapi, uvicorn (scripts/deps serve-bench). Prints Markdown.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import numpy as np

import digits

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTIONS = 64


def fsync_ms(folder):
    times = []
    with open(os.path.join(folder, "fsync"), "wb") as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def journal_ms(folder, *pragmas):
    """Milliseconds of a transaction like a batch's: 20 rows of 1 kB, and 100 balances."""
    path = os.path.join(folder, "journal.db")
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("locking_mode=EXCLUSIVE", *pragmas):
        db.execute(f"PRAGMA {pragma}")
    db.execute("CREATE TABLE entry(idx INTEGER PRIMARY KEY, data BLOB)")
    db.execute("CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER)")
    db.executemany("INSERT INTO account VALUES(?, 0)", [(i,) for i in range(100)])
    times = []
    for _ in range(200):
        start = time.perf_counter()
        db.execute("BEGIN")
        db.executemany("INSERT INTO entry(data) VALUES(?)", [(os.urandom(1000),) for _ in range(20)])
        db.executemany("UPDATE account SET balance = balance + 1 WHERE id = ?", [(i,) for i in range(100)])
        db.execute("COMMIT")
        times.append(1e3 * (time.perf_counter() - start))
    db.close()
    os.remove(path)
    return statistics.median(times)


def tensor_request(picture):
    """As Triton's client writes it: JSON, then the raw tensor."""
    head = json.dumps({"inputs": [{"name": "input", "shape": [1, 784], "datatype": "UINT8",
                                   "parameters": {"binary_data_size": 784}}]}).encode()
    return head, picture.tobytes()


def write_script(path, body, headers):
    """What wrk sends; bytes as Lua escapes."""
    lua = "".join(f"\\{b:03d}" for b in body)
    lines = ['wrk.method = "POST"', f'wrk.body = "{lua}"', *(f'wrk.headers["{k}"] = "{v}"' for k, v in headers.items())]
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def wrk(url, script, seconds, connections=CONNECTIONS):
    """(requests per second, p50 and p99 in ms)."""
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "20s",
                          "-s", script, url], check=True, text=True, stdout=subprocess.PIPE).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"bench/serve.py: wrk: {out}")
    unit = {"us": 1e-3, "ms": 1, "s": 1e3}
    at = {p: float(x) * unit[u] for p, x, u in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)\b", out)}
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), at["50"], at["99"]


class Fds:
    name = "fds"

    def __init__(self, args, run, is_paid, picture, folder, share=0):
        fds = os.path.join(args.build, "cli/fds")
        options, headers = ["--model", f"mnist={run}", "--port", "0", "--quiet", "--connections", "4000",
                            "--connections-each", "0"], {}
        if is_paid:
            ledger, keys = os.path.join(folder, "a.ledger"), os.path.join(folder, "keys.jsonl")
            call = lambda *words: subprocess.run([fds, *words, "-q"], check=True, text=True, stdout=subprocess.PIPE).stdout
            call("ledger", "init", ledger)
            call("ledger", "topup", ledger, "acme", "1000000000", "--new")
            headers["Authorization"] = "Bearer " + call("serve", "key", keys, "--account", "acme").strip()
            options += ["--ledger", ledger, "--keys", keys, "--price", "0.01", "--audit-share", str(share)]
        head, raw = tensor_request(picture)
        headers["Inference-Header-Content-Length"] = str(len(head))
        self.process = subprocess.Popen([fds, "serve", "--min-agreement", "0", "--max-misallocation", "1", "--min-coverage",
                                         "0", *options], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip() + "/v2/models/mnist" + ("" if is_paid else ".explain") + "/infer"
        self.script = os.path.join(folder, "fds.lua")
        write_script(self.script, head + raw, headers)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            sys.exit(f"bench/serve.py: fds serve ended with {self.process.returncode}")


class Peer:
    name = "FastAPI"

    def __init__(self, explainer, is_paid, picture, folder, workers):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        env = {**os.environ, **explainer, "OMP_NUM_THREADS": "1"}
        if is_paid:
            env["PEER_LEDGER"] = os.path.join(folder, "peer.db")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "--app-dir", HERE, "serve_peer:app", "--port", str(port), "--workers",
             str(workers), "--log-level", "critical", "--no-access-log"], env=env, start_new_session=True)
        self.url = f"http://127.0.0.1:{port}/infer"
        self.script = os.path.join(folder, "peer.lua")
        write_script(self.script, picture.tobytes(), {})
        for _ in range(600):
            try:
                urllib.request.urlopen(urllib.request.Request(self.url, picture.tobytes(), method="POST"), timeout=20).read()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit("bench/serve.py: the peer does not answer")

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


class Crowd:
    """Connections that do nothing, and some that send a byte per second."""

    def __init__(self, url, idle=1000, slow=500):
        host, port = re.match(r"http://([\d.]+):(\d+)", url).groups()
        self.sockets = [socket.create_connection((host, int(port))) for _ in range(idle + slow)]
        self.slow, self.is_over = self.sockets[idle:], threading.Event()
        for s in self.slow:
            s.sendall(b"POST /v2/models/mnist/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        self.thread = threading.Thread(target=self.trickle)
        self.thread.start()

    def trickle(self):
        while not self.is_over.wait(1):
            for s in self.slow:
                try:
                    s.send(b"x")
                except OSError:
                    pass  # the server has closed it: it is too slow

    def stop(self):
        self.is_over.set()
        self.thread.join()
        for s in self.sockets:
            s.close()


def read_tensors(path):
    """Arrays by name from a safetensors file."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        head, data = json.loads(file.read(size)), file.read()
    return {k: np.frombuffer(data[v["data_offsets"][0]:v["data_offsets"][1]], "<f4").reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__" and v["dtype"] == "F32"}


def make_run(args, explainer, work, *more):
    run = os.path.join(work, "-".join(["run", explainer, *(option.strip("-") for option in more)]))
    if not os.path.exists(os.path.join(run, "run.json")):
        subprocess.run([os.path.join(args.build, "cli/fds"), "fit", "mnist", "--players", "100", "--explainer", explainer,
                        *more, "-o", run, "-q"], check=True, stdout=subprocess.DEVNULL)
    return run


def fit(args, explainer, work):
    """(the run, the environment of a peer that does as much work)."""
    run = make_run(args, explainer, work)
    tensors = read_tensors(os.path.join(run, "explainer.safetensors"))
    if "maps" in tensors:  # of answers of sub-models to values: (labels, players, sub-models)
        layers = [(tensors["maps"].reshape(-1, tensors["maps"].shape[2]), tensors["offsets"].ravel())]
    else:  # layers.0.weight, ..., head.fc.weight
        layers = [(tensors[n], tensors[n.replace("weight", "bias")])
                  for n in sorted(tensors, key=lambda n: (n.startswith("head"), n)) if n.endswith("weight")]
    path = os.path.join(work, f"{explainer}.npz")
    np.savez(path, **{f"{kind}{i}": layer[k] for i, layer in enumerate(layers) for k, kind in enumerate("wb")})
    with open(os.path.join(run, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    return run, {"PEER_WEIGHTS": path, "PEER_MODELS": str(record["explainer"]["probes"])}


def text(values):
    return f"{statistics.median(values):,.1f} ({min(values):,.1f} to {max(values):,.1f})"


def measure(args, explainer, is_paid, picture, work):
    run, like = fit(args, explainer, work)
    makers = {"fds": lambda folder: Fds(args, run, is_paid, picture, folder)}
    for workers in (1, 2):
        makers[f"FastAPI, {workers} process{'es' * (workers - 1)}"] = \
            lambda folder, workers=workers: Peer(like, is_paid, picture, folder, workers)
    found = {name: [] for name in makers}
    for _ in range(args.rounds):
        for name, make in makers.items():
            with tempfile.TemporaryDirectory(dir=work) as folder:
                server = make(folder)
                wrk(server.url, server.script, 2)
                found[name].append(wrk(server.url, server.script, args.seconds))
                server.stop()
    best = max(statistics.median(r[0] for r in rows) for name, rows in found.items() if name != "fds")
    for name, rows in found.items():
        rate = statistics.median(r[0] for r in rows)
        print(f"| {explainer} | {'paid' if is_paid else 'free'} | {name} | {text([r[0] for r in rows])} | "
              f"{text([r[1] for r in rows])} | {text([r[2] for r in rows])} | "
              f"{f'{rate / best:.1f}' if name == 'fds' else ''} |", flush=True)


def alone(args, explainer, picture, work):
    """One connection; and with a crowd beside 64."""
    run, _ = fit(args, explainer, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        server = Fds(args, run, True, picture, folder)
        _, p50, p99 = wrk(server.url, server.script, args.seconds, 1)
        print(f"\n{explainer}, paid, one connection: p50 {p50:.2f} ms, p99 {p99:.2f} ms.", flush=True)
        if args.crowd:
            before = wrk(server.url, server.script, args.seconds)
            crowd = Crowd(server.url)
            beside = wrk(server.url, server.script, args.seconds)
            crowd.stop()
            print(f"{explainer}, paid, 64 connections: {before[0]:,.0f} requests/s, p99 {before[2]:.1f} ms; beside 1,000 idle "
                  f"and 500 slow ones {beside[0]:,.0f}, {beside[2]:.1f} ms ({beside[2] / before[2]:.2f} times).", flush=True)
        server.stop()


def count_audits(folder):
    """(answered, waiting), of a server that has stopped."""
    db = sqlite3.connect(os.path.join(folder, "a.ledger"))
    found = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("audited", "waiting")]
    db.close()
    return found


def audit(args, explainer, picture, work):
    """What audits cost those who are served."""
    run = make_run(args, explainer, work, "--keep-models")
    found = {share: [] for share in (0, 0.05, 1)}
    for _ in range(args.rounds):
        for share, rows in found.items():
            with tempfile.TemporaryDirectory(dir=work) as folder:
                server = Fds(args, run, True, picture, folder, share)
                wrk(server.url, server.script, 2)
                load = wrk(server.url, server.script, args.seconds)
                server.stop()
                rows.append((*load, *count_audits(folder)))
    most = statistics.median(r[0] for r in found[0])
    for share, rows in found.items():
        columns = list(zip(*rows))
        print(f"| {explainer} | {share} | {' | '.join(text(column) for column in columns[:3])} | "
              f"{statistics.median(columns[0]) / most:.2f} | {' | '.join(f'{statistics.median(c):,.0f}' for c in columns[3:])}"
              " |", flush=True)


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def soak(args, explainer, picture, work):
    run, _ = fit(args, explainer, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        server = Fds(args, run, True, picture, folder)
        sizes, count = [], 0
        for _ in range(10):
            part = max(args.soak // 10, 1)
            count += int(wrk(server.url, server.script, part)[0] * part)
            sizes.append(resident_mb(server.process.pid))
        server.stop()
        verified = subprocess.run([os.path.join(args.build, "cli/fds"), "ledger", "verify",
                                   os.path.join(folder, "a.ledger"), "-q"]).returncode == 0
    print(f"\n{explainer}, paid, {args.soak} s at full rate, {count:,} requests: resident memory "
          f"{', '.join(f'{s:.0f}' for s in sizes)} MB. The ledger {'verifies' if verified else 'DOES NOT VERIFY'}.", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--explainers", nargs="*", default=["mlp", "auto"])
    parser.add_argument("--work", default="build-bench/serve", help="keeps runs")
    parser.add_argument("--crowd", action="store_true")
    parser.add_argument("--soak", type=int, default=0, metavar="S")
    parser.add_argument("--audit", action="store_true")
    args = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench/serve.py: wrk is missing: scripts/deps serve-bench")
    os.makedirs(args.work, exist_ok=True)
    picture = digits.read_digits(os.path.join(args.build, "cli/fds"), "mnist")[1][0][0]
    if args.audit:
        print(f"fsync: {fsync_ms(args.work):.2f} ms.\n\n| explainer | audit share | requests/s, {CONNECTIONS} connections | "
              "p50, ms | p99, ms | rate over that without audits | audits answered | waiting |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |")
        for explainer in args.explainers:
            audit(args, explainer, picture, args.work)
        return
    wal = journal_ms(args.work, "journal_mode=WAL", "synchronous=FULL")
    rollback = journal_ms(args.work, "journal_mode=DELETE", "synchronous=EXTRA")
    print(f"fsync: {fsync_ms(args.work):.2f} ms. A transaction of SQLite with a write-ahead log {wal:.2f} ms, with a "
          f"rollback journal {rollback:.2f} ms ({rollback / wal:.1f} times).\n")
    print(f"| explainer | predictions | service | requests/s, {CONNECTIONS} connections | p50, ms | p99, ms | times |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for explainer in args.explainers:
        for is_paid in (False, True):
            measure(args, explainer, is_paid, picture, args.work)
    for explainer in args.explainers:
        alone(args, explainer, picture, args.work)
        if args.soak:
            soak(args, explainer, picture, args.work)


if __name__ == "__main__":
    main()
