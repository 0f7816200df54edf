#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what examples/platform/run has computed, how long it took, and how accurate it is.

usage: summary.py FDS FOLDER
"""
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys

ASKED = 200

fds, folder = sys.argv[1], pathlib.Path(sys.argv[2])
run = json.loads((folder / "mnist.run/run.json").read_text())["results"]
validation = json.loads((folder / "mnist.run/validation.json").read_text())
owned = collections.Counter(line.split(",")[1] for line in (folder / "owners.csv").read_text().splitlines())
balances = json.loads(subprocess.run([fds, "ledger", "balance", folder / "a.ledger", "--json"], check=True,
                                     capture_output=True).stdout)["balances"]
earned = {b["account"]: int(b["units"]) for b in balances if b["kind"] == "provider"}
total = sum(earned.values())


def unseen(most):
    """The first test digits that the fit has not used."""
    with open(folder / "mnist.run/samples.csv", newline="") as file:
        used = {int(row["sample"]) for row in csv.DictReader(file) if row["role"] != "player"}
    return [k for k in range(most + len(used)) if k not in used][:most]


def shares(digits, *more):
    """Of each digit's money, as fds pay divides it: negative values get nothing; if no value is above 0, all the same."""
    answer = folder / "answer.json"
    subprocess.run([fds, "explain", folder / "mnist.run", "--index", ",".join(map(str, digits)), *more, "-q", "-o",
                    answer], check=True, stdout=subprocess.DEVNULL)
    found = [[max(value, 0) for value in result["values"]] for result in json.loads(answer.read_text())["results"]]
    answer.unlink()
    return [[v / sum(values) for v in values] if sum(values) else [1 / len(values)] * len(values) for values in found]


def apart(one, other):
    """Of each 100, how many go elsewhere."""
    return 50 * sum(abs(a - b) for x, y in zip(one, other) for a, b in zip(x, y)) / len(one)


def line(name, text):
    print(f"{name:<14}{text}")


print("\n== result")
service = next(text for text in (folder / "fit.txt").read_text().splitlines() if text.startswith("service"))
line("providers", f"{len(owned)} with {min(owned.values())} to {max(owned.values())} digits, {sum(owned.values())} in all")
line("sub-models", run["sub_models"])
line("service", service.split(maxsplit=1)[1])
against = {"bank": "with all sub-models", "errors": "by their standard errors: all sub-models answer"}[validation["against"]]
line("agreement", f"{validation['agreement']:.3f} {against}, on {validation['inputs']} validation inputs")
line("misallocated", f"{100 * validation['misallocation']:.1f} of each 100 paid")
digits = unseen(min(ASKED, int(re.search(r"([\d,]+) test samples", service)[1].replace(",", ""))))
paid, owed = shares(digits), shares(digits, "--by", "bank")
equal = [[1 / len(values)] * len(values) for values in owed]
line("elsewhere", f"{apart(paid, owed):.1f} of each 100 than by all sub-models, for {len(digits)} digits that nobody has seen")
line("", f"{apart(equal, owed):.1f} if all providers got the same")
line("paid", f"{len(earned)} providers; of each 100:")
for name, units in sorted(earned.items(), key=lambda item: -item[1])[:3]:
    line("", f"{100 * units / total:.2f} to {name}, who has {100 * owned[name] / sum(owned.values()):.2f} % of the digits")
calls, ended = collections.Counter(), {}
for name, event, *seconds in map(str.split, (folder / "times").read_text().splitlines()):
    if event == "begun":
        calls[name] += 1
    else:
        ended[name] = [float(number) for number in seconds]
for name, (wall, user, system) in ended.items():
    more = f", and what {calls[name] - 1} interrupted calls took" if name == "fit" and calls[name] > 1 else ""
    line("time", f"{name}: {wall:.0f} s, processors {user + system:.0f} s{more}")
