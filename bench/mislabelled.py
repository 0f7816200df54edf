#!/usr/bin/python3
"""Whether low values find mislabelled data: a table of docs/accuracy.md.

Usage: bench/mislabelled.py BUILD_FOLDER [DATA] [--players 100] [--seeds 5] [--methods loo tmc ...]

For each seed 100 digits, ten of each; a tenth of them get another label, chosen uniformly. Every
method values them for 200 correctly labelled test digits, scored by accuracy and by confidence; least
squares (ls) by the confidence in the true label, mean over the test samples. The table has the area
under the ROC curve of finding the wrong labels by the lowest values: the probability that a wrong
label is valued below a correct one, where ties count half. All methods have the same number of
permutations and of coalitions, and share the sub-models of their seed. An interrupted run resumes.
Prints Markdown.
"""
import argparse
import hashlib
import json
import os

import numpy as np

import digits

METHODS = ("loo", "tmc", "gshapley", "group-testing", "group-testing improved", "cs-shapley", "freeshap",
           "knn:5", "knn:5@model", "banzhaf", "beta:4,1", "beta:16,1", "ls", "same-label", "random")
BY_ORDERS, BY_COALITIONS = ("tmc", "gshapley", "cs-shapley", "freeshap", "beta"), ("group-testing", "banzhaf", "ls")
TABLED = ("loo", "tmc", "group-testing", "cs-shapley", "banzhaf", "beta", "ls")
ONLY = {"cs-shapley": "accuracy", "knn": "confidence", "ls": "confidence"}
UTILITIES = ("accuracy", "confidence")


def write_game(fds, data, folder, seed, players, tests, share):
    """A folder of NPY files with some labels flipped; returns which."""
    (x, y), (x_test, y_test) = digits.read_digits(fds, data)
    rng = np.random.default_rng(seed)
    chosen, tested = digits.balanced(y, players, rng), digits.balanced(y_test, tests, rng)
    labels = y[chosen].copy()
    flipped = np.zeros(players, bool)
    flipped[rng.permutation(players)[:max(1, round(share * players))]] = True
    classes = int(y.max()) + 1
    labels[flipped] = (labels[flipped] + rng.integers(1, classes, flipped.sum())) % classes
    os.makedirs(folder, exist_ok=True)
    for name, array in (("x_train", x[chosen]), ("y_train", labels), ("x_test", x_test[tested]),
                        ("y_test", y_test[tested])):
        np.save(os.path.join(folder, f"{name}.npy"), array)
    return flipped


def options_of(method, utility, arguments, folder, seed):
    name, *form = method.split(" ")
    kind = name.split(":")[0]
    options = ["--players", arguments.players, "--test", arguments.test, "--seed", seed, "--threads",
               arguments.threads, "--method", name, *(["--form", *form] if form else [])]
    if kind in TABLED:
        options += ["--table", os.path.join(folder, "table")]
    if kind in BY_ORDERS:
        options += ["--permutations", arguments.permutations, "--until", 0]
    if kind in BY_COALITIONS:
        options += ["--coalitions", arguments.coalitions]
    return options + (["--global"] if kind == "ls" else ["--scorer", utility])


def digest(*paths):
    """Of the files' bytes."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def values_of(fds, folder, method, utility, options):
    """(players), by the number of the sample; kept beside the data, for a run that goes on. What is
    kept counts only for the same options, data and command: another build may compute otherwise."""
    path = os.path.join(folder, f"{method}-{utility}.json".replace(" ", "-").replace(":", "").replace(",", "-"))
    data = os.path.join(folder, "data")
    made_by = digest(fds, *(os.path.join(data, name) for name in sorted(os.listdir(data))))
    words = [str(word) for word in options]
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["options"] == words and kept["made_by"] == made_by:
            return np.array(kept["values"])
    ranking = digits.value(fds, data, *options, "--quiet")["ranking"]
    values = [0.0] * len(ranking)
    for entry in ranking:
        values[int(entry["player"].split()[-1])] = entry["value"]  # "sample 12"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"options": words, "made_by": made_by, "values": values}, file)
    return np.array(values)


def area(values, flipped):
    wrong, right = values[flipped][:, None], values[~flipped][None, :]
    return float(np.mean((wrong < right) + 0.5 * (wrong == right)))


def exists(method, utility):
    return ONLY.get(method.split(" ")[0].split(":")[0], utility) == utility


def cell(areas):
    if not areas:
        return ""
    spread = f" ± {np.std(areas, ddof=1):.3f}" if len(areas) > 1 else ""
    return f"{np.mean(areas):.3f}{spread}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default="mnist", help="a set in IDX format")
    parser.add_argument("--players", type=int, default=100)
    parser.add_argument("--test", type=int, default=200, help="test images")
    parser.add_argument("--share", type=float, default=0.1, help="of the labels that are flipped")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--permutations", type=int, default=100)
    parser.add_argument("--coalitions", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--work", default="build-bench/mislabelled", help="where data, tables and values go")
    arguments = parser.parse_args()
    fds = os.path.join(arguments.build, "cli/fds")
    areas = {}
    for seed in range(arguments.seeds):
        folder = os.path.join(arguments.work, f"seed{seed}")
        flipped = write_game(fds, arguments.data, os.path.join(folder, "data"), seed, arguments.players,
                             arguments.test, arguments.share)
        for method in arguments.methods:
            for utility in UTILITIES:
                if exists(method, utility):
                    options = options_of(method, utility, arguments, folder, seed)
                    found = values_of(fds, folder, method, utility, options)
                    areas.setdefault((method, utility), []).append(area(found, flipped))
    print(f"{arguments.players} digits, {100 * arguments.share:g} % of the labels flipped, {arguments.test} test "
          f"images, {arguments.permutations} permutations or {arguments.coalitions} coalitions; mean ± standard deviation over "
          f"{arguments.seeds} seeds.\n")
    print("| method | accuracy | confidence |\n| --- | --- | --- |")
    for method in arguments.methods:
        print(f"| {method} | " + " | ".join(cell(areas.get((method, utility))) for utility in UTILITIES) + " |")


if __name__ == "__main__":
    main()
