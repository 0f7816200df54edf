#!/usr/bin/python3
"""How near the estimates come to the truth: the tables of docs/accuracy.md.

Usage: bench/accuracy.py BUILD_FOLDER small|large [DATA] [--work FOLDER]

small: 12 digits, all 4,096 sub-models: least squares on 1,000 coalitions against the exact values.
large: 100 digits, retrain:10, 200 test images; the truth is plain least squares on 40,000 leverage
       coalitions, drawn apart from those of the estimates.

All sub-models of a game go into one table, so that nothing is trained twice; a run that was broken
off goes on where it was. Prints Markdown.
"""
import argparse
import csv
import os
import subprocess
import sys

import numpy as np

SAMPLERS = ("kernel", "paired", "leverage")
SIZES = (250, 500, 1000, 2000, 4000)
Z95 = 1.96


class Game:
    """`fds value` on one game, all results kept in a folder."""

    def __init__(self, build, data, folder, *options):
        self.fds = os.path.join(build, "cli/fds")
        self.folder = folder
        self.common = [data, *options, "--table", os.path.join(folder, "table")]
        os.makedirs(folder, exist_ok=True)

    def run(self, name, *options, ending="npy"):
        """Values and standard errors, (2, tests, players)."""
        path = os.path.join(self.folder, f"{name}.{ending}")
        print("#", name, file=sys.stderr, flush=True)
        subprocess.run([self.fds, "value", *self.common, *options, "-o", path], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(path) if ending == "npy" else path

    def labels(self, *options):
        """Whether a player's label is the one that was predicted: (tests, players)."""
        rows = {}
        with open(self.run("labels", *options, ending="csv"), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                rows.setdefault(row["test"], []).append(row["label"] == row["player_label"])
        return np.array(list(rows.values()))


def correlation(a, b):
    return np.corrcoef(a, b)[0, 1] if len(a) > 2 and a.std() > 0 and b.std() > 0 else np.nan


def compare(found, truth, same=None):
    """Means over the test images of the correlations; relative error; how many are covered."""
    values, errors = found
    result = {"r": np.mean([correlation(v, t) for v, t in zip(values, truth)]),
              "error": np.linalg.norm(values - truth) / np.linalg.norm(truth),
              "cover": np.mean(np.abs(values - truth) <= Z95 * errors)}
    if same is not None:
        within = [correlation(v[s], t[s]) for v, t, s in zip(values, truth, same)]
        result["within"] = np.nanmean(within)
    return result


def mean(results):
    return {key: float(np.mean([r[key] for r in results])) for key in results[0]}


def spread(results, key):
    return float(np.std([r[key] for r in results], ddof=1)) if len(results) > 1 else float("nan")


def small(build, data, work):
    game = Game(build, data, os.path.join(work, "small"), "--players", "12", "--test", "50", "--quiet")
    truth = game.run("exact", "--method", "exact")[0]
    print("| sampler | adjustment | relative error | worst of 10 draws | correlation | covered |")
    print("| --- | --- | --- | --- | --- | --- |")
    for sampler in SAMPLERS:
        for adjust in ("none", "shrink", "counts"):
            results = [compare(game.run(f"{sampler}-{adjust}-{draw}", "--sampler", sampler, "--draw",
                                        str(draw), "--adjust", adjust, "--coalitions", "1000"), truth)
                       for draw in range(10)]
            r = mean(results)
            worst = max(x["error"] for x in results)
            print(f"| {sampler} | {adjust} | {r['error']:.4f} | {worst:.4f} | {r['r']:.5f} | "
                  f"{100 * r['cover']:.1f} % |", flush=True)


def large(build, data, work, draws):
    game = Game(build, data, os.path.join(work, "large"), "--players", "100", "--test", "200",
                "--value", "retrain:10")
    plain = ("--sampler", "leverage", "--adjust", "none")
    first = game.run("half", *plain, "--draw", "1001", "--coalitions", "20000")
    truth = game.run("truth", *plain, "--draw", "1000", "--coalitions", "40000")
    half = game.run("first-half", *plain, "--draw", "1000", "--coalitions", "20000")
    same = game.labels(*plain, "--draw", "1000", "--coalitions", "20000")
    r = compare(half, first[0], same)
    print(f"Two disjoint sets of 20,000 coalitions: correlation {r['r']:.4f}, within the predicted "
          f"class {r['within']:.4f}, relative difference {r['error']:.3f}.\n")
    truth = truth[0]
    group_mean = np.array([np.where(s, t[s].mean() if s.any() else 0, 0) for s, t in zip(same, truth)])
    print(f"The mean of the truth over the predicted class alone: correlation "
          f"{np.mean([correlation(g, t) for g, t in zip(group_mean, truth)]):.4f}.\n")
    columns = [("kernel", "none"), ("paired", "none"), ("leverage", "none"), ("leverage", "shrink"),
               ("leverage", "counts"), ("leverage", "knn:5"), ("leverage", "kernel"),
               ("paired", "counts")]
    print("| M | sampler | adjustment | correlation | ± | within the class | ± | relative error | covered |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in SIZES:
        for sampler, adjust in columns:
            if adjust == "kernel" and size not in (1000, 2000):
                continue
            results = [compare(game.run(f"{sampler}-{adjust.replace(':', '')}-{size}-{draw}", "--sampler",
                                        sampler, "--adjust", adjust, "--draw", str(draw), "--coalitions",
                                        str(size)), truth, same)
                       for draw in range(1 if adjust == "kernel" else draws)]
            r = mean(results)
            print(f"| {size:,} | {sampler} | {adjust} | {r['r']:.4f} | {spread(results, 'r'):.4f} | "
                  f"{r['within']:.4f} | {spread(results, 'within'):.4f} | {r['error']:.3f} | "
                  f"{100 * r['cover']:.1f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("game", choices=("small", "large"))
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--work", default="build-bench/accuracy", help="where tables and values go")
    parser.add_argument("--draws", type=int, default=3, help="sets of coalitions for each figure")
    arguments = parser.parse_args()
    if arguments.game == "small":
        small(arguments.build, arguments.data, arguments.work)
    else:
        large(arguments.build, arguments.data, arguments.work, arguments.draws)


if __name__ == "__main__":
    main()
