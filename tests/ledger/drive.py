# SPDX-License-Identifier: Apache-2.0
"""A ledger in a process of its own, driven by lines (driver.c)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Skip, main, test  # noqa: E402, F401

DRIVER = os.path.abspath(sys.argv[1])
SHA = "a" * 64


class Refused(Exception):
    """status: "ERR_LIMIT"."""

    def __init__(self, line):
        super().__init__(line)
        self.status = line.split()[0] if line else "?"


class Driver:
    def __init__(self):
        self.process = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def tell(self, *lines):
        self.process.stdin.write("\n".join(lines) + "\n")
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
