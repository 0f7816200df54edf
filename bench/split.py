#!/usr/bin/python3
"""What a provider earns by splitting: the table of docs/splitting.md.

Usage: bench/split.py BUILD_FOLDER [DATA ...] [--samples 200] [--test 200] [--seeds 3]

Five providers own 200 samples, drawn at random and dealt out evenly. The first one registers under 1, 2, 5
and 20 names and deals its samples out among them. The table has the share of all money that its names get
together, in per cent (policy clip on the mean value of all test samples; utility knn:5, mean over the
seeds): as players of their own, as one cluster (--cluster), and as the sum of the values of samples
(--group-value points). Up to 20 players are enumerated, more are estimated from 4,096 coalitions.
Prints Markdown.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np

import digits

PROVIDERS, NAMES = 5, (1, 2, 5, 20)


def write_data(fds, data, folder, seed, arguments):
    (x, y), (x_test, y_test) = digits.read_digits(fds, data)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(len(x), arguments.samples, replace=False))
    tested = digits.balanced(y_test, arguments.test, rng)
    for name, array in (("x_train", x[chosen]), ("y_train", y[chosen]), ("x_test", x_test[tested]),
                        ("y_test", y_test[tested])):
        np.save(os.path.join(folder, f"{name}.npy"), array)


def share(fds, folder, names, how, arguments):
    """Of the names of the first provider together, in per cent."""
    owners, clusters = os.path.join(folder, "owners.csv"), os.path.join(folder, "clusters.csv")
    own = lambda i: f"a{i // PROVIDERS % names}" if i % PROVIDERS == 0 else f"other{i % PROVIDERS}"
    with open(owners, "w") as file:
        file.writelines(["sample,provider\n", *(f"{i},{own(i)}\n" for i in range(arguments.samples))])
    with open(clusters, "w") as file:
        file.writelines(["provider,cluster\n", *(f"a{k},a\n" for k in range(names))])
    players = names + PROVIDERS - 1 if how == "player" else PROVIDERS
    options = {"points": ["--method", "knn:5", "--group-value", "points"]}.get(
        how, ["--utility", "knn:5", "--global", "--table", os.path.join(folder, f"{how}{names}.table"),
              *(["--method", "exact"] if players <= 20 else ["--coalitions", "4096", "--adjust", "none"])])
    if how == "cluster":
        options += ["--cluster", clusters]
    out = subprocess.run([fds, "value", folder, "--owners", owners, "--players", "providers", "--test",
                          str(arguments.test), "--json", "-q", *options], check=True, stdout=subprocess.PIPE).stdout
    values = {p["player"]: max(p["value"], 0) for p in json.loads(out)["ranking"]}
    return 100 * sum(v for name, v in values.items() if name.startswith("a")) / sum(values.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("data", nargs="*", default=["mnist", "fashion-mnist"])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    fds = os.path.join(arguments.build, "cli/fds")
    print("| data | names | players | one cluster | points |\n| --- | --- | --- | --- | --- |")
    for data in arguments.data:
        found = {names: [] for names in NAMES}
        for seed in range(arguments.seeds):
            with tempfile.TemporaryDirectory() as folder:
                write_data(fds, data, folder, seed, arguments)
                for names in NAMES:
                    found[names].append([share(fds, folder, names, how, arguments)
                                         for how in ("player", "cluster", "points")])
        for names in NAMES:
            print(f"| {data} | {names} | " + " | ".join(f"{v:.1f}" for v in np.mean(found[names], 0)) + " |", flush=True)


if __name__ == "__main__":
    main()
