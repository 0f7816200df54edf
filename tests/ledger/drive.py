# SPDX-License-Identifier: Apache-2.0
"""A ledger in a process of its own, driven by lines (driver.c).

Where FDS_TEST_POSTGRES is the URI of a database, a ledger is not a file but a schema of it (postgres.py).
"""
import hashlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import postgres  # noqa: E402
from tap import Skip, main, test  # noqa: E402, F401

DRIVER = os.path.abspath(sys.argv[1])
SHA = "a" * 64


class Refused(Exception):
    """status: "ERR_LIMIT"."""

    def __init__(self, line):
        super().__init__(line)
        self.status = line.split()[0] if line else "?"


def schema_of(path):
    return "d" + hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:20]


def place(line):
    """A line, with a URI instead of the path of a ledger."""
    base, words = os.environ.get("FDS_TEST_POSTGRES"), line.split(" ")
    if not base or words[0] not in ("create", "open") or words[1].startswith("postgres"):
        return line
    path, schema = os.path.abspath(words[1]), schema_of(words[1])
    words[1] = f"{base}&options=-csearch_path%3D{schema}"
    if words[0] == "create":
        psql = os.path.join(postgres.binaries(), "psql")
        subprocess.run([psql, "-X", "-q", "-d", base, "-c", f"CREATE SCHEMA {schema}"], check=True)
    words.append(f"signing_key={path}.key" if words[0] == "create" else f"{path}.key")
    return " ".join(words)


class Driver:
    def __init__(self):
        self.process = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def tell(self, *lines):
        self.process.stdin.write("\n".join(map(place, lines)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline().rstrip("\n")
        if not line.startswith("OK"):
            raise Refused(line)
        return line[3:]

    def ask(self, *lines):
        self.tell(*lines)
        return self.hear()

    def charge(self, orders):
        """orders: (run, customer, amount, key, fingerprint, label, answer, values)."""
        lines = [" ".join(map(str, [*order[:7], *map(repr, order[7])])) for order in orders]
        words = self.ask(f"charge {len(orders)}", *lines).split()
        return [(status, int(index), repeated == "1", answer)
                for status, index, repeated, answer in (word.split(":") for word in words)]

    def balances(self):
        return {name: int(units) for name, _, units in
                (word.rpartition("=") for word in self.ask("balances").split())}

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0, "the driver crashed"
        self.process.stdout.close()
