#!/usr/bin/python3
"""How cost and error grow with players and coalitions: a table of docs/results.md.

Usage: bench/growth.py BUILD_FOLDER [DATA] [--work FOLDER]

Digits of MNIST, LeNet-5, retrain:10, 100 test images, predicted label, leverage coalitions, the
default adjustment. Seconds are the time to train and evaluate the sub-models, from an empty table.
The error is |values - truth| / |truth| over all players and images. The truth is the mean of two
least-squares solutions, a and b, on 8,000 other coalitions each; their difference estimates its own
error, which is subtracted: error^2 = |values - truth|^2 / |truth|^2 - |a - b|^2 / |a + b|^2.
Exponents are fitted by least squares on logarithms. In theory, seconds grow as M^1 and, because a
sub-model has half of the players, as n^1 at equal M and n^2 at 20 coalitions per player; errors of a
mean grow as M^-0.5. Prints Markdown.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import numpy as np

from accuracy import compare

PLAYERS = (50, 100, 200, 400)
SIZES = (500, 1000, 2000, 4000, 8000)
HALF, FEW = 8000, 2000


class Growth:
    def __init__(self, arguments):
        self.fds = os.path.join(arguments.build, "cli/fds")
        self.data, self.work = arguments.data, arguments.work
        os.makedirs(self.work, exist_ok=True)

    def run(self, players, coalitions, draw, table):
        """Values with errors, (2, tests, players), and what the command says."""
        out = os.path.join(self.work, f"n{players}-m{coalitions}-d{draw}")
        print("#", out, file=sys.stderr, flush=True)
        told = subprocess.run([self.fds, "value", self.data, "--players", str(players), "--test", "100", "--coalitions",
                               str(coalitions), "--draw", str(draw), "--table", table, "-o", out + ".npy", "--quiet",
                               "--json"], check=True, text=True, stdout=subprocess.PIPE).stdout
        return np.load(out + ".npy"), json.loads(told)

    def truth(self, players):
        """Two halves; kept, so that an interrupted run resumes."""
        table = os.path.join(self.work, f"truth-{players}")
        return [self.run(players, HALF, draw, table)[0][0] for draw in (1000, 1001)]

    def measure(self, players, coalitions):
        table = os.path.join(self.work, "table")
        shutil.rmtree(table, ignore_errors=True)
        found, told = self.run(players, coalitions, 1, table)
        a, b = self.truth(players)
        result = compare(found, (a + b) / 2)
        noise = np.linalg.norm(a - b) / np.linalg.norm(a + b)
        shutil.rmtree(table, ignore_errors=True)
        return {"players": players, "coalitions": coalitions, "seconds": told["game"]["seconds"],
                "error": np.sqrt(max(result["error"]**2 - noise**2, 0)), "r": result["r"]}


def exponent(rows, by, what):
    x, y = (np.log([row[key] for row in rows]) for key in (by, what))
    return np.polyfit(x, y, 1)[0]


def show(title, rows, by):
    print(f"**{title}**\n\n| players | coalitions | seconds | ms per sub-model | relative error | correlation |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['players']} | {row['coalitions']:,} | {row['seconds']:.1f} | "
              f"{1e3 * row['seconds'] / (row['coalitions'] + 2):.1f} | {row['error']:.3f} | {row['r']:.4f} |")
    print(f"\nseconds ∝ {by}^{exponent(rows, by, 'seconds'):.2f}, error ∝ {by}^{exponent(rows, by, 'error'):.2f}\n",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--work", default="build-bench/growth", help="where tables and values go")
    parser.add_argument("--players", type=int, nargs="*", default=PLAYERS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    arguments = parser.parse_args()
    growth = Growth(arguments)
    show("Coalitions, 100 players", [growth.measure(100, m) for m in arguments.sizes], "coalitions")
    show(f"Players, {FEW:,} coalitions", [growth.measure(n, FEW) for n in arguments.players], "players")
    show("Players, 20 coalitions each", [growth.measure(n, 20 * n) for n in arguments.players], "players")


if __name__ == "__main__":
    main()
