#!/usr/bin/python3
"""The public anchor of docs/speed.md: Data Banzhaf of 10,000 digits of MNIST from 10,000 half-models.

Usage: bench/anchor.py BUILD_FOLDER [--fraction 0.1] [--epochs 1] [--batch 32] [--rate 0.01] [--work FOLDER]

github.com/opendataval/opendataval/issues/33 (2025-01-28): `DataBanzhaf(num_models=10000)` for about 10,000 training
and 10,000 validation images of MNIST and an MLP of two layers with 0.11 M weights "completed in several hours on A40".
The call has no parameters of training, for which opendataval's own `fit` takes one epoch, batches of 32 and Adam with
the rate 0.01: the defaults here. Each half-model has every digit with probability 1/2; all 10,000 test digits score it.

Computes two halves of the half-models, from coalitions of their own, and prints Markdown: processor seconds, what the
half-models are trained for, the accuracy that they reach, and the correlation of the values between the two halves. A
fraction is extrapolated in proportion to the half-models, and the output says so. An interrupted call goes on, but then
counts only the seconds of its own.
"""
import argparse
import csv
import glob
import json
import os
import resource
import shutil
import subprocess
import time

import numpy as np

PLAYERS, MODELS, TEST = 10000, 10000, 10000
NETWORK = "fc:136,relu,fc:classes"  # 784 · 136 + 136 + 136 · 10 + 10 = 108,130 weights


def value(arguments, half, count, scorer):
    """Values of all players, in the order of their numbers, from one half of the half-models."""
    out = os.path.join(arguments.work, f"{scorer}-{half}.csv")
    subprocess.run([os.path.join(arguments.build, "cli/fds"), "value", arguments.data, "--players", str(PLAYERS), "--test",
                    str(TEST), "--method", "banzhaf", "--scorer", scorer, "--coalitions", str(count), "--draw", str(half),
                    "--model", NETWORK, "--utility", f"retrain:{arguments.epochs}", "--batch", str(arguments.batch),
                    "--lr", str(arguments.rate / 10), "--beta", "10", "--table", table_of(arguments, half), "-o", out,
                    "--threads", str(arguments.threads), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        rows = sorted((row["player"], float(row["value"])) for row in csv.DictReader(file))
    return np.array([v for _, v in rows])


def table_of(arguments, half):
    return os.path.join(arguments.work, f"table-{half}")


def accuracies(folder):
    """Of each half-model on the test digits, and how many digits it was trained on: from the table (docs/table.md)."""
    with open(os.path.join(folder, "table.json"), encoding="utf-8") as file:
        about = json.load(file)
    with open(os.path.join(folder, "samples.csv"), encoding="utf-8") as file:
        labels = np.array([int(row["label"]) for row in csv.DictReader(file) if row["role"] != "player"])
    players, shape = about["players"], (about["inputs"], about["classes"])
    record = np.dtype([("id", "<u8"), ("coalition", "u1", (players + 63) // 64 * 8), ("probs", "<f4", shape),
                       ("padding", "u1", (-shape[0] * shape[1] * 4 % 8,)), ("checksum", "<u8")])
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.seg"))):
        rows = np.fromfile(path, record, offset=64)
        rows = rows[rows["id"] != 0]
        sizes = np.unpackbits(rows["coalition"], axis=1).sum(1)
        right = (rows["probs"].argmax(2) == labels).mean(1)
        found += [(size, share) for size, share in zip(sizes, right) if 0 < size < players]
    return np.array(found)


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--fraction", type=float, default=1, help="of the 10,000 half-models")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--work", default="build-bench/anchor", help="4 GB for all half-models; removed at the end")
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)

    each = max(2, round(arguments.fraction * MODELS / 2))
    start = time.monotonic()
    halves = [value(arguments, half, each, "cross-entropy") for half in (0, 1)]
    seconds, clock = processor_seconds(), time.monotonic() - start
    by_accuracy = [value(arguments, half, each, "accuracy") for half in (0, 1)]  # from the tables
    models = np.concatenate([accuracies(table_of(arguments, half)) for half in (0, 1)])
    assert len(models) == 2 * each, f"{len(models)} half-models, not {2 * each}"
    shutil.rmtree(arguments.work)

    correlation = [np.corrcoef(pair)[0, 1] for pair in (halves, by_accuracy)]
    error = [np.std(pair[0] - pair[1]) / 2 / np.std((pair[0] + pair[1]) / 2) for pair in (halves, by_accuracy)]
    print("| | |\n| --- | --- |")
    print(f"| half-models | {2 * each:,}, of {models[:, 0].mean():,.0f} digits on average |")
    print(f"| training | {arguments.epochs} epoch{'s' * (arguments.epochs > 1)}, Adam at {arguments.rate}, batches of {arguments.batch} |")
    print(f"| accuracy of a half-model on {TEST:,} test digits | {100 * models[:, 1].mean():.1f} % on average, "
          f"{100 * models[:, 1].min():.1f} to {100 * models[:, 1].max():.1f} % |")
    print(f"| processor seconds | {seconds:,.0f}: {1e3 * seconds / (2 * each):.1f} ms per half-model, with its evaluation |")
    print(f"| by the clock | {clock:,.0f} s |")
    if arguments.fraction < 1:
        print(f"| all {MODELS:,}, extrapolated from these | {seconds * MODELS / (2 * each):,.0f} processor seconds |")
    print(f"| correlation of the values between two halves | {correlation[0]:.3f} by cross-entropy, {correlation[1]:.3f} by "
          "accuracy |")
    print(f"| error of the values of both halves, over their spread | {error[0]:.2f} and {error[1]:.2f} |")


if __name__ == "__main__":
    main()
