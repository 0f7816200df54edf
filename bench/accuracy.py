#!/usr/bin/python3
"""Accuracy of the estimates: the tables of docs/accuracy.md.

Usage: bench/accuracy.py BUILD_FOLDER small|large [DATA] [--work FOLDER]

small: 12 digits, all 4,096 sub-models: least squares on 1,000 coalitions against the exact values.
large: 100 digits, retrain:10, 200 test images; the truth is plain least squares on 40,000 leverage
       coalitions, sampled independently of those of the estimates.

All sub-models of a game are in one table, so nothing is trained twice. An interrupted run resumes.
Prints Markdown.
"""
import argparse
import csv
import os
import subprocess
import sys

import numpy as np

SAMPLERS = ("kernel", "paired", "leverage")
METHODS = (("kernel", "none"), ("paired", "none"), ("leverage", "none"), ("leverage", "shrink"),
           ("leverage", "counts"), ("leverage", "knn:5"), ("leverage", "kernel"), ("paired", "counts"))
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
            for row in csv.DictReader(file):  # the largest value of a test first
                number = self.players.index(row["player"])
                rows.setdefault(row["test"], [False] * len(self.players))[number] = row["label"] == row["player_label"]
        return np.array(list(rows.values()))

    @property
    def players(self):
        """Their names, in the order of the values."""
        with open(os.path.join(self.folder, "table/samples.csv"), newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["role"] == "player"]
        return [f"sample {row['sample']}" for row in sorted(rows, key=lambda row: int(row["player"]))]


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
    print("| sampler | adjustment | relative error | worst of 10 | correlation | covered |")
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


def large(build, data, work, draws, svg):
    game = Game(build, data, os.path.join(work, "large"), "--players", "100", "--test", "200",
                "--utility", "retrain:10")
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
    print(f"The mean of the true values for the players of the predicted class, 0 for all others: correlation "
          f"{np.mean([correlation(g, t) for g, t in zip(group_mean, truth)]):.4f}.\n")
    results = {}
    for size in SIZES:
        for sampler, adjust in METHODS:
            if adjust == "kernel" and size not in (1000, 2000):
                continue  # its own values need 20 times as many coalitions
            name = f"{sampler}-{adjust.replace(':', '')}-{size}"
            results[sampler, adjust, size] = [
                compare(game.run(f"{name}-{draw}", "--sampler", sampler, "--adjust", adjust, "--draw",
                                 str(draw), "--coalitions", str(size)), truth, same)
                for draw in range(draws)]
    for title, key, form in (("Correlation with the truth", "r", "{:.4f}"),
                             ("Correlation within the predicted class", "within", "{:.4f}"),
                             ("Relative error", "error", "{:.3f}"),
                             ("Covered by the 95 % interval, in %", "cover", "{:.1f}")):
        table(title, key, form, results)
    with open(svg, "w", encoding="utf-8") as file:
        file.write(picture(results))


def table(title, key, form, results):
    scale = 100 if key == "cover" else 1
    print(f"**{title}**\n\n| sampler | adjustment | " + " | ".join(f"M = {m:,}" for m in SIZES) + " |")
    print("| --- | --- |" + " --- |" * len(SIZES))
    for sampler, adjust in METHODS:
        cells = []
        for size in SIZES:
            found = results.get((sampler, adjust, size))
            cells.append(f"{form.format(scale * mean(found)[key])} ± "
                         f"{form.format(scale * spread(found, key))}" if found else "")
        print(f"| {sampler} | {adjust} | " + " | ".join(cells) + " |")
    print(flush=True)


def picture(results):
    """Correlation against the number of coalitions, both axes uneven so that all can be seen."""
    shown = [("leverage", "counts", "#0b6e4f"), ("leverage", "shrink", "#c8553d"),
             ("leverage", "none", "#3d5a80"), ("paired", "none", "#7d8597"), ("kernel", "none", "#b08968")]
    width, height, left, right, top, bottom = 720, 400, 60, 150, 40, 50

    def x(size):
        return left + (width - left - right) * np.log(size / SIZES[0]) / np.log(SIZES[-1] / SIZES[0])

    def y(r):  # 1 - r on a logarithmic scale, from .5 to .99
        return top + (height - top - bottom) * np.log((1 - r) / 0.008) / np.log(0.5 / 0.008)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="22" font-size="15">Correlation with the truth, 100 digits, '
             'by number of sub-models</text>']
    for r in (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99):
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(r):.1f}" y2="{y(r):.1f}" '
                     'stroke="#e3e3e3"/>'
                     f'<text x="{left - 8}" y="{y(r) + 4:.1f}" text-anchor="end">{r:.2f}</text>')
    for size in SIZES:
        parts.append(f'<text x="{x(size):.1f}" y="{height - bottom + 22}" '
                     f'text-anchor="middle">{size:,}</text>')
    for sampler, adjust, colour in shown:
        points = [(x(m), y(mean(results[sampler, adjust, m])["r"])) for m in SIZES]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in points]
    # names beside the last points, pushed apart where they would overlap
    ends = sorted((y(mean(results[s, a, SIZES[-1]])["r"]), s, a, c) for s, a, c in shown)
    at = -np.inf
    for level, sampler, adjust, colour in ends:
        at = max(level, at + 17)
        name = sampler if adjust == "none" else f"{sampler} + {adjust}"
        parts.append(f'<text x="{width - right + 10}" y="{at + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("game", choices=("small", "large"))
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--work", default="build-bench/accuracy", help="where tables and values go")
    parser.add_argument("--draws", type=int, default=3, help="sets of coalitions for each figure")
    parser.add_argument("--svg", default="accuracy.svg", help="large: where the picture goes")
    arguments = parser.parse_args()
    if arguments.game == "small":
        small(arguments.build, arguments.data, arguments.work)
    else:
        large(arguments.build, arguments.data, arguments.work, arguments.draws, arguments.svg)


if __name__ == "__main__":
    main()
