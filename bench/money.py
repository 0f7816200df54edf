#!/usr/bin/python3
"""Accuracy where the money is: the tables "Where the money goes" of docs/accuracy.md.

Usage: bench/money.py BUILD_FOLDER [GAME...] [--truth M] [--tests N] [--coalitions M] [--draws D] [--work FOLDER]

A game is a set of pictures with 100 single pictures as players (mnist, fashion-mnist, cifar10), or one of
  digits            scikit-learn's 8x8 digits, 100 players
  hospitals         breast cancer, divided among 12 hospitals of unequal size
  digit-providers   the 8x8 digits, divided among 20 providers of unequal size
  mnist-providers   MNIST, divided among 20 providers of 50 to 2,000 digits

For each game `fds fit` runs with default settings, and answers for test samples that no model has seen. For tables
it does so with D draws of the coalitions, and the results have the mean over them: one draw has the same errors in all
predictions, whose greatest value is often that of the same player.
Beside the default answer: the bank of all sub-models, and least squares on the same coalitions, with
--adjust counts and none. The truth is the mean of two estimates that shrink nothing (--adjust control), each on
M coalitions drawn apart from the others; half their difference is its own error. With 12 players each has
nearly all coalitions.

  misallocated   of each 100 paid by the policy clip, what goes elsewhere than by the truth
  covered        how often value +- 1.96 errors holds the truth, whose error is added in quadrature, for
                 tenths of the values by size, the smallest first, and for the greatest value of each
                 prediction. Size is that of the stated value; for plain least squares, that of the true
                 value. (Without shrinkage, many values are stated as large because their error is.)
Tables of sub-models stay in the work folder: an interrupted run resumes. Prints Markdown.
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np

import digits

Z95 = 1.96
TESTS = 150  # of a table
TRUTH_DRAWS = (7, 8)
PICTURES = ("mnist", "fashion-mnist", "cifar10")
GAMES = (*PICTURES, "digits", "hospitals", "digit-providers", "mnist-providers")
DEFAULTS = ("mnist", "digits", "hospitals", "digit-providers")


def write_csv(path, x, y, providers):
    """A table of samples; providers: a name for each sample, or None."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([f"x{i}" for i in range(x.shape[1])] + (["provider"] if providers is not None else []) + ["label"])
        for i in range(len(x)):
            out.writerow([f"{v:g}" for v in x[i]] + ([providers[i]] if providers is not None else []) + [y[i]])


def unequal(count, parts, rng):
    """A part for each of count samples; the sizes of parts rise about tenfold."""
    weight = np.geomspace(1, 10, parts)
    return rng.permutation(np.repeat(np.arange(parts), np.ceil(weight / weight.sum() * count).astype(int))[:count])


def make_tables(game, folder, fds):
    """Writes train.csv and test.csv into the folder, unless they are there."""
    rng = np.random.default_rng(7)
    if game == "mnist-providers":  # every picture at half its size
        (x, y), _ = digits.read_digits(fds, "mnist")
        sizes = np.geomspace(50, 2000, 20).astype(int)
        chosen = rng.permutation(len(x))[:sizes.sum() + TESTS]
        x = x[chosen].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
        y, part = y[chosen], np.repeat(np.arange(20), sizes)
    else:
        from sklearn import datasets
        load = datasets.load_breast_cancer if game == "hospitals" else datasets.load_digits
        x, y = load(return_X_y=True)
        chosen = rng.permutation(len(x))
        x, y = x[chosen], y[chosen]
        part = unequal(len(x) - TESTS, 12 if game == "hospitals" else 20, rng)
    names = None if game == "digits" else [f"provider {p + 1:02d}" for p in part]
    write_csv(os.path.join(folder, "train.csv"), x[:-TESTS], y[:-TESTS], names)
    write_csv(os.path.join(folder, "test.csv"), x[-TESTS:], y[-TESTS:], names and ["nobody"] * TESTS)


class Game:
    def __init__(self, args, name):
        self.fds = os.path.join(args.build, "cli/fds")
        self.folder = os.path.join(args.work, name)
        self.is_table = name not in PICTURES
        self.data = os.path.join(self.folder, "data") if self.is_table else name
        if self.is_table and not os.path.exists(self.data):
            os.makedirs(self.data)
            make_tables(name, self.data, self.fds)
        self.options = ["--players", "providers" if name.endswith("s") and name != "digits" else "100"]
        self.run, self.report = self.fit(args.coalitions, "--keep-models")
        with open(os.path.join(self.run, "run.json"), encoding="utf-8") as file:
            record = json.load(file)
        self.count, self.coalitions = len(record["players"]), record["coalitions"]["count"]
        tests = args.tests or (TESTS if self.is_table else 200)
        self.index = f"0..{tests - 1}"
        self.draws = [0, *range(11, 10 + args.draws)] if self.is_table else [0]
        self.answered = {0: self.run}  # by draw: the run with default settings
        for draw in self.draws[1:]:
            self.answered[draw] = self.fit(args.coalitions, "--keep-models", "--draw", str(draw))[0]

    def call(self, *command):
        print("#", " ".join(command), file=sys.stderr, flush=True)
        return subprocess.run([self.fds, *command, "--quiet"], check=True, text=True, stdout=subprocess.PIPE).stdout

    def fit(self, coalitions, *options, like=None):
        """(the run, its report). like: a run of the same sub-models, which are not trained again."""
        if coalitions:
            options = (*options, "--coalitions", str(coalitions))
        name = "-".join(["run", *options]).replace("--", "")
        run = os.path.join(self.folder, name)
        if like and not os.path.exists(run):
            shutil.copytree(os.path.join(like, "utilities"), os.path.join(run, "utilities"))
            shutil.copy(os.path.join(like, "models.bank"), run)
        return run, json.loads(self.call("fit", self.data, *self.options, *options, "-o", run, "--json"))

    def explain(self, run, *options):
        path = os.path.join(self.folder, "answer.npy")
        self.call("explain", run, "--index", self.index, *options, "-o", path)
        return np.load(path)

    def estimate(self, coalitions, draw, adjust):
        """Values and errors by least squares on coalitions of their own. Of pictures by fds value. The small
        networks of tables: by a bank, because the inputs that a fit takes from the players are no players."""
        how = ["--draw", str(draw), "--adjust", adjust]
        if self.is_table:
            like = self.answered.get(draw)
            return self.explain(self.fit(coalitions, "--explainer", "bank", *how, like=like)[0])
        path = os.path.join(self.folder, f"{coalitions}.{draw}.{adjust}.npy")
        self.call("value", self.data, *self.options, "--index", self.index, "--utility", "retrain", *how,
                  "--coalitions", str(coalitions), "--table", os.path.join(self.folder, "truth.table"), "-o", path)
        return np.load(path)

    def truth(self, coalitions):
        """(values, their standard errors, the two estimates)."""
        halves = [self.estimate(coalitions, draw, "control") for draw in TRUTH_DRAWS]
        return ((halves[0][0] + halves[1][0]) / 2, np.hypot(halves[0][1], halves[1][1]) / 2,
                (halves[0][0], halves[1][0]))


def correlations(a, b):
    """Of each prediction; values that are all alike correlate with nothing."""
    return np.array([np.corrcoef(x, y)[0, 1] if x.std() > 0 else 0 for x, y in zip(a, b)])


def money(values):
    share = np.maximum(values, 0)
    return 100 * share / share.sum(axis=1, keepdims=True)


def misallocated(a, b):
    return np.abs(money(a) - money(b)).sum(axis=1) / 2


def accuracy_row(name, found, truth):
    r, lost = correlations(found, truth), misallocated(found, truth)
    top = found.argmax(axis=1), np.arange(len(found))
    off = (found - truth)[top[1], top[0]]
    print(f"| {name} | {r.mean():.3f} | {np.quantile(r, 0.05):.3f} | {lost.mean():.1f} | {lost.max():.0f} | "
          f"{np.sqrt((off ** 2).mean()):.3f} |")


def coverage_row(name, found, truth, truth_errors):
    values, errors = found
    held = np.abs(values - truth) <= Z95 * np.hypot(errors, truth_errors)
    by = truth if name.endswith("`none`") else values
    size = np.argsort(np.argsort(np.abs(by), axis=None)).reshape(by.shape) * 10 // by.size
    tenths = [f"{100 * held[size == d].mean():.0f}" for d in range(10)]
    top = held[np.arange(len(by)), by.argmax(axis=1)].mean()
    print(f"| {name} | {100 * held.mean():.1f} | {100 * top:.1f} | {' | '.join(tenths)} |")


def latency(build, game):
    """p50 of single answers of a loaded process, in milliseconds; only for pictures."""
    if game.is_table:
        return ""
    out = subprocess.run([os.path.join(build, "bench/bench-answer"), game.run, game.data, "explainer", "300", "1"],
                         check=True, text=True, stdout=subprocess.PIPE).stdout
    return f" One answer takes {out.split()[0]} ms (p50, one thread)."


def expected(game):
    """What `fds pay` expects to be misallocated by the default answer (the first draw), of 100."""
    about = json.loads(game.call("pay", game.run, "--index", game.index, "--amount", "100", "--summary", "--json"))
    return 100 * about["misallocated"] / float(about["total_amount"])


def measure(args, name):
    game = Game(args, name)
    coalitions = min(args.truth, 2 ** min(game.count, 40) - 2)
    truth, truth_errors, halves = game.truth(coalitions)
    over = lambda answer: np.concatenate([answer(draw) for draw in game.draws], axis=1)
    answers = {"default: " + game.report["explainer"]: over(lambda draw: game.explain(game.answered[draw]))}
    if game.report["explainer"] != "bank":
        answers["bank"] = over(lambda draw: game.explain(game.answered[draw], "--by", "bank"))
    for adjust in ("counts", "none"):
        count = args.coalitions if game.is_table else game.coalitions  # a table's run has them by default
        answers[f"least squares, `{adjust}`"] = over(lambda draw: game.estimate(count, draw, adjust))
    draws = f"{len(game.draws)} draws, " if len(game.draws) > 1 else ""
    print(f"\n**{name}**: {game.count} players, {game.coalitions:,} coalitions, {draws}{len(truth)} test samples, truth "
          f"from twice {coalitions:,}. The fit took {game.report['seconds']['total']:.0f} s.{latency(args.build, game)} "
          f"`fds pay` expects {expected(game):.1f} of 100 to be misallocated.\n")
    print("| answer | correlation | worst 5 % | misallocated, of 100 | worst | error of the top player (rms) |\n"
          "| --- | --- | --- | --- | --- | --- |")
    truth, truth_errors = (np.tile(x, (len(game.draws), 1)) for x in (truth, truth_errors))
    for key, found in answers.items():
        accuracy_row(key, found[0], truth)
    print(f"| the truth's own error | {1 - (1 - correlations(*halves).mean()) / 4:.3f} |  | "
          f"{misallocated(*halves).mean() / 2:.1f} |  |  |")
    print("\n| covered, in % | all | top player | " + " | ".join(f"{d + 1}" for d in range(10)) + " |\n| "
          + " | ".join(["---"] * 13) + " |")
    for key, found in answers.items():
        coverage_row(key, found, truth, truth_errors)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("games", nargs="*", metavar="GAME", help=", ".join(GAMES))
    parser.add_argument("--truth", type=int, default=12000, help="coalitions of each of the two estimates")
    parser.add_argument("--tests", type=int, help="test samples [200; of a table 150]")
    parser.add_argument("--coalitions", type=int, help="of the fit [the default of fds fit]")
    parser.add_argument("--draws", type=int, default=8, help="draws of the coalitions of a table [8]")
    parser.add_argument("--work", default="build-bench/money", help="keeps runs and tables")
    args = parser.parse_args()
    for name in args.games or DEFAULTS:
        if name not in GAMES:
            parser.error(f"{name}: a game is one of {', '.join(GAMES)}")
        measure(args, name)


if __name__ == "__main__":
    main()
