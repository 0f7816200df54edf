#!/usr/bin/python3
"""The four methods end to end: seconds by stage, and the explainer against the truth.

Usage: bench/explain.py BUILD_FOLDER [DATA...] [--work FOLDER] [--truth M] [--methods ...] [--quick]

For each set (mnist, fashion-mnist, cifar10) and method, `fds fit` is run from scratch, and its
explainer answers for 200 test images that it has not seen. Three things to compare with:
  estimate  least squares, for these images, on the coalitions that the explainer learned from
  truth     plain least squares on M other leverage coalitions (20,000; CIFAR-10, whose sub-models
            take longer, 12,000), with the utility function of the fit
  class     the mean of the truth over the players of each class: the best that classes alone reach
Fits are timed one after the other in one run; the truths are computed before, in tables that stay.
Prints Markdown.
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np

PAPER = {("mnist", "fds"): 2353, ("mnist", "afds"): 590, ("mnist", "gfds"): 352, ("mnist", "gfds+"): 183,
         ("cifar10", "fds"): 4324, ("cifar10", "afds"): 1120, ("cifar10", "gfds"): 396,
         ("cifar10", "gfds+"): 259}
STAGES = ("sub-models", "values", "explainer", "check")
TRUTH = {"cifar10": 12000}
GAME = ("--players", "100", "--test", "200")
Z95 = 1.96


def run(*command):
    print("#", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def correlation(a, b):
    alike = len(a) < 3 or min(a.std() - 1e-6 * abs(a).max(), b.std() - 1e-6 * abs(b).max()) <= 0
    return np.nan if alike else np.corrcoef(a, b)[0, 1]


def mean_correlation(a, b, where=None):
    """The mean over images of the correlation over players (those in where), as text; "" where all are alike."""
    if where is None:
        where = np.ones_like(a, bool)
    each = [correlation(x[s], y[s]) for x, y, s in zip(a, b, where)]
    return "" if np.isnan(each).all() else f"{np.nanmean(each):.4f}"


class Truth:
    """What `fds value` says for the 200 test images under one utility function."""

    def __init__(self, fds, data, kind, work, size):
        self.fds, self.data = fds, data
        self.value = ["--utility", kind]
        self.folder = os.path.join(work, f"{data}-{kind.replace(':', '')}")
        os.makedirs(self.folder, exist_ok=True)
        plain = ("--sampler", "leverage", "--adjust", "none", "--draw", "1000", "--coalitions", str(size))
        self.truth = np.load(self.ask("truth.npy", *plain))[0]
        self.images, labels, label_of = [], [], {}
        with open(self.ask("truth.csv", *plain), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if not self.images or self.images[-1] != row["test"]:
                    self.images.append(row["test"])
                    labels.append(row["label"])
                label_of[row["player"]] = row["player_label"]
        with open(os.path.join(self.folder, "table/samples.csv"), newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["role"] == "player"]
        players = [label_of[f"sample {row['sample']}"] for row in sorted(rows, key=lambda row: int(row["player"]))]
        self.same = np.array(labels)[:, None] == np.array(players)[None]
        of_class = np.array([[p == q for q in players] for p in players], float)
        self.classes = self.truth @ of_class / of_class.sum(0)

    def ask(self, name, *options):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            run(self.fds, "value", self.data, *GAME, *self.value, *options, "--quiet", "--table",
                os.path.join(self.folder, "table"), "-o", path)
        return path

    def estimate(self, name, *options):
        return np.load(self.ask(f"{name}.npy", *options))[0]


ESTIMATE = {"fds": ("leverage", "counts", 2000), "afds": ("leverage", "counts", 2000),
            "gfds": ("gfds", "none", 1000), "gfds+": ("gfds+", "none", 100)}


def fit(fds, data, method, work, options):
    folder = os.path.join(work, f"{data}-{method}")
    shutil.rmtree(folder, ignore_errors=True)
    run(fds, "fit", data, "--method", method, "--players", "100", "--inputs", "3000", "--quiet", *options,
        "-o", folder)
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        return folder, json.load(file)["results"]


def answers(fds, folder, images):
    path = os.path.join(folder, "test.npy")
    run(fds, "explain", folder, "--index", ",".join(images), "-o", path, "--quiet")
    return np.load(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("data", nargs="*", default=["mnist", "fashion-mnist", "cifar10"])
    parser.add_argument("--work")
    parser.add_argument("--truth", type=int, help="coalitions of the truth")
    parser.add_argument("--methods", nargs="*", default=["fds", "afds", "gfds", "gfds+"])
    parser.add_argument("--options", default="", help="more options for fds fit")
    parser.add_argument("--quick", action="store_true",
                        help="a minute: the seconds of afds and gfds+ on mnist, and of an answer")
    args = parser.parse_args()
    if args.quick:
        args.data, args.methods = ["mnist"], ["afds", "gfds+"]
    fds = os.path.join(args.build, "cli/fds")
    work = args.work or os.path.join(args.build, "explain")
    kinds = {m: "retrain" if m == "fds" else "retrain:10" for m in args.methods}
    truths = {(d, k): Truth(fds, d, k, work, args.truth or TRUTH.get(d, 20000))
              for d in args.data for k in set(kinds.values()) if not args.quick}
    rows = []
    for data in args.data:
        for method in args.methods:
            folder, results = fit(fds, data, method, work, args.options.split())
            rows.append((data, method, folder, results))
    print("| data | method | " + " | ".join(STAGES) + " | total | the paper |")
    print("| --- | --- |" + " --- |" * (len(STAGES) + 2))
    for data, method, _, results in rows:
        seconds = [results["seconds"][s] for s in STAGES]
        paper = PAPER.get((data, method))
        ratio = f"{paper} s: {paper / sum(seconds):.1f} times" if paper else ""
        print(f"| {data} | {method} | " + " | ".join(f"{s:.1f}" for s in seconds) +
              f" | **{sum(seconds):.1f} s** | {ratio} |")
    if args.quick:
        answer_time(args.build, rows[0][2], "explainer")
        return
    print("\n| data | method | service model | with its estimate | within class | with the truth | within class "
          "| estimate with the truth | within class | classes alone | covered |")
    print("| --- | --- |" + " --- |" * 9)
    for data, method, folder, results in rows:
        t = truths[data, kinds[method]]
        values, errors = answers(fds, folder, t.images)
        sampler, adjust, size = ESTIMATE[method]
        e = t.estimate(f"estimate-{method}", "--sampler", sampler, "--adjust", adjust, "--coalitions", str(size))
        cover = np.mean(np.abs(values - t.truth) <= Z95 * errors)
        print(f"| {data} | {method} | {100 * results['service_accuracy']:.1f} % "
              f"| {mean_correlation(values, e)} | {mean_correlation(values, e, t.same)} "
              f"| **{mean_correlation(values, t.truth)}** | {mean_correlation(values, t.truth, t.same)} "
              f"| {mean_correlation(e, t.truth)} | {mean_correlation(e, t.truth, t.same)} "
              f"| {mean_correlation(t.classes, t.truth)} | {100 * cover:.1f} % |", flush=True)
    if "mnist" in args.data:
        latency(args.build, fds, work)


def answer_time(build, folder, by):
    p50, p99 = run(os.path.join(build, "bench/bench-answer"), folder, "mnist", by, "1000", "2").split()
    print(f"| {by} | {p50} ms | {p99} ms |")


def latency(build, fds, work):
    """One image to values in a loaded process: the default explainer, and a bank of 2,000 LeNet-5."""
    folder = os.path.join(work, "mnist-bank")
    shutil.rmtree(folder, ignore_errors=True)
    run(fds, "fit", "mnist", "--method", "afds", "--keep-models", "--players", "100", "--inputs", "3000",
        "--quiet", "-o", folder)
    print("\n| one image to values | p50 | p99 |\n| --- | --- | --- |")
    for by in ("explainer", "bank"):
        answer_time(build, folder, by)


if __name__ == "__main__":
    main()
