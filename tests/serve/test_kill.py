# SPDX-License-Identifier: Apache-2.0
"""fds serve killed by SIGKILL while customers pay: every answer that a customer has received is paid, once.

usage: test_kill.py FDS [--step K] [--random N] [--requests R]     (FDS_TEST_DATA: the committed samples)

First at every K-th system call that writes, syncs, truncates, renames or removes a file of the ledger, by strace,
from the opening of the ledger to its closing, under the load of four customers; then N times at random moments.
After each, the server starts again, and all requests are sent again under their keys:
- one that was answered before gets the same bytes, and costs nothing more
- one that was not is answered now
- each customer has paid for each of its samples once, and fds ledger verify finds nothing
- the log commits to one secret for a day, which is the one on the disk
Prints TAP.
"""
import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

CALLS = "pwrite64,pwritev,write,fsync,fdatasync,ftruncate,fallocate,unlink,unlinkat,rename,renameat,renameat2"
PRICE, CUSTOMERS, FUNDS = 10000, 4, 100000


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("fds")
    parser.add_argument("--step", type=int, default=9)
    parser.add_argument("--random", type=int, default=5)
    parser.add_argument("--requests", type=int, default=8, help="of each customer")
    args = parser.parse_args()
    sys.argv[1:] = [args.fds]  # what harness.py reads
    return args


args = parse()
from server import PATIENCE, Server, Skip, balance, bearer, fds, infer_json, main, make_key, test, the_run  # noqa: E402


def bank_run():
    return the_run("kept", "--keep-models")


def body_of(number):
    return infer_json(*range(number % 3 + 1))


class World:
    """A ledger with customers, what they have asked, and what they were told."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fds-kill-")
        os.chdir(self.folder)
        fds("ledger", "init", "a.ledger", "-q")
        self.names = [f"customer {n}" for n in range(CUSTOMERS)]
        for name in self.names:
            fds("ledger", "topup", "a.ledger", name, f"{FUNDS * PRICE / 1e6:.6f}", "--new", "-q")
        self.keys = [make_key(account=name) for name in self.names]
        self.auditor = make_key("auditor", "anna")
        self.told, self.asked = {}, set()

    def serve(self, prefix=()):
        return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", "--drain-s", "0", "-q",
                      "--audit-share", "0.5", prefix=prefix, models={"mnist": bank_run()})

    def ask(self, connection, customer, number, turn):
        name = f"t{turn}n{number}"
        self.asked.add((customer, number, turn))
        reply = connection.ask("POST", "/v2/models/mnist/infer", body_of(number),
                               [bearer(self.keys[customer]), f"Idempotency-Key: {name}"])
        assert reply.status == 200, (reply.status, reply.body)
        first = self.told.setdefault((customer, number, turn), reply.body)
        assert reply.body == first, f"another answer than the first: {reply.body} {first}"

    def load(self, server, turn, requests):
        """Until all is asked, or the server is gone."""
        def work(customer):
            try:
                with server.connect() as connection:
                    for number in range(requests):
                        self.ask(connection, customer, number, turn)
            except (OSError, EOFError):
                return False
            return True
        with concurrent.futures.ThreadPoolExecutor(CUSTOMERS) as pool:
            return all(list(pool.map(work, range(CUSTOMERS))))

    def check_secrets(self, server):
        """What the log commits to is on the disk, and was committed to once."""
        entries = server.get("/api/entries?kind=audit", bearer(self.auditor)).json()["entries"]
        hashes = {e["text"]["day"]: e["text"]["hash"] for e in entries if e["text"]["audit"] == "commit"}
        assert len(hashes) == len(entries) <= 3, entries  # three, if midnight has come
        files = [json.loads(path.read_text()) for path in pathlib.Path(self.folder).glob("a.ledger.audit-*")]
        found = {one["day"]: hashlib.sha256(bytes.fromhex(one["secret"])).hexdigest() for one in files}
        assert found == hashes, (found, hashes)

    def check(self):
        """Everything once more."""
        with self.serve() as server:
            with server.connect() as connection:
                for customer, number, turn in sorted(self.asked):
                    self.ask(connection, customer, number, turn)
            self.check_secrets(server)
        fds("ledger", "verify", "a.ledger", "-q")
        for customer, name in enumerate(self.names):
            samples = sum(number % 3 + 1 for c, number, _ in self.asked if c == customer)
            assert balance(name) == (FUNDS - samples) * PRICE, (name, balance(name), samples)

    def remove(self):
        os.chdir("/")
        shutil.rmtree(self.folder)


def kill_at(call):
    """False: the server came to its end before that system call."""
    world = World()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    secrets = [f".audit-{today + datetime.timedelta(days)}" for days in (0, 1)]
    files = [os.path.join(world.folder, "a.ledger" + end) for end in ("", "-wal", "-journal", "-shm", *secrets)]
    prefix = ["strace", "-D", "-f", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e",
              f"inject={CALLS}:signal=KILL:when={call}", *(w for f in files for w in ("-P", f))]
    try:
        with world.serve(prefix) as server:
            world.load(server, 0, args.requests)
            server.process.terminate()
            server.process.wait(PATIENCE)
        is_killed = server.process.returncode == -9
    except AssertionError as error:
        if "no server" not in str(error):
            raise
        is_killed = True  # before it could listen
    world.check()
    world.remove()
    return is_killed


@test
def killed_at_system_calls_that_write_the_ledger():
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    bank_run()
    call, kills = 1, 0
    while kill_at(call):
        call, kills = call + args.step, kills + 1
        if kills % 20 == 0:
            print(f"# {kills} kills, the last at system call {call - args.step}", flush=True)
    print(f"# {kills} kills at system calls 1 to {call - 1}", flush=True)
    assert kills > 3, "it ended by itself"


@test
def killed_at_random():
    rng = random.Random(7)
    world = World()
    for turn in range(args.random):
        with world.serve() as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            load = pool.submit(world.load, server, turn, 6)
            time.sleep(rng.uniform(0, 0.03))
            server.process.kill()
            load.result(PATIENCE)
            server.process.wait(PATIENCE)
        if turn % 20 == 19:
            world.check()
            print(f"# {turn + 1} kills: {len(world.asked)} requests, each paid once", flush=True)
    world.check()
    world.remove()


sys.exit(main())
