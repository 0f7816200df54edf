#!/usr/bin/python3
"""Whether private tknn still finds mislabelled data: the table of docs/tknn.md.

Usage: bench/tknn.py BUILD_FOLDER [DATA ...] [--players 2000] [--test 200] [--seeds 5] [--epsilons 0.1 0.5 1 ...]

For each seed 2,000 training samples, of which a tenth get another label, chosen uniformly; all of them
are players, valued for 200 correctly labelled test samples by tknn with the distance that it finds by
itself. The table has the area under the ROC curve of finding the wrong labels by the lowest values
(the probability that a wrong label is valued below a correct one, where ties count half): exact, with
the noise of each epsilon (delta 1e-6, over all test samples together), and of knn:5 for comparison.
Noise is drawn anew for each command: the last digit is not reproducible. Prints Markdown.
"""
import argparse
import csv
import os
import subprocess
import tempfile

import numpy as np

import digits
from mislabelled import write_game


def area(values, flipped):
    """The probability that a wrong label has a lower value than a correct one, ties counting half."""
    wrong, right = values[flipped], np.sort(values[~flipped])
    below, above = np.searchsorted(right, wrong, "left"), np.searchsorted(right, wrong, "right")
    return float(np.mean(1 - (below + above) / 2 / len(right)))


def values_of(fds, folder, method, *options):
    path = os.path.join(folder, "values.csv")
    subprocess.run([fds, "value", folder, "--players", "all", "--method", method, "-q", "-o", path,
                    *map(str, options)], check=True, stdout=subprocess.DEVNULL)
    with open(path, newline="") as file:
        rows = {row["player"]: float(row["value"]) for row in csv.DictReader(file)}
    return np.array([rows[f"sample {i}"] for i in range(len(rows))])


def measure(fds, data, seed, arguments):
    with tempfile.TemporaryDirectory() as folder:
        flipped = write_game(fds, data, folder, seed, arguments.players, arguments.test, 0.1)
        test = ["--test", arguments.test]
        exact = area(values_of(fds, folder, "tknn", *test), flipped)
        private = [area(values_of(fds, folder, "tknn", *test, "--private", "--private-epsilon", e), flipped)
                   for e in arguments.epsilons]
        return [exact, *private, area(values_of(fds, folder, "knn:5", *test), flipped)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("data", nargs="*", default=["mnist", "fashion-mnist"])
    parser.add_argument("--players", type=int, default=2000)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    arguments = parser.parse_args()
    fds = os.path.join(arguments.build, "cli/fds")
    heads = ["exact", *(f"ε = {e:g}" for e in arguments.epsilons), "`knn:5`"]
    print(f"| {arguments.players:,} samples, a tenth mislabelled | " + " | ".join(heads) + " |")
    print("| --- " * (len(heads) + 1) + "|")
    for data in arguments.data:
        found = np.array([measure(fds, data, seed, arguments) for seed in range(arguments.seeds)])
        cells = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(found.mean(0), found.std(0))]
        print(f"| {data} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
