#!/usr/bin/python3
"""How well fds data audit finds wrong labels: the tables of docs/data-audit.md.

Usage: bench/audit.py BUILD_FOLDER [--data cancer ...] [--seeds 10] [--utilities knn:5 ...] [--share 0.08]

The tables of Debian's python3-sklearn, with a share of the labels replaced by other ones, for each
seed others: breast cancer (46 of 569), wine, iris, digits of 8 x 8 pixels (as a table, and as
pictures in NPY files), and two tables with text and missing values, which python3-sklearn has for
its own tests: penguins and Titanic. Every sample must get a value. Prints the area under the ROC
curve (the probability that a wrong label is valued below a correct one, ties counting half), mean,
standard deviation and least over the seeds; precision and recall of the suspects; and, to compare
with, the area of the probability that a logistic regression of scikit-learn gives to a sample's
label out of fold, on the same standardised features. Prints Markdown.
"""
import argparse
import csv
import gzip
import json
import os
import shutil
import subprocess
import tempfile
import warnings

import numpy as np
import sklearn.datasets
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ARFF = os.path.join(os.path.dirname(sklearn.datasets.__file__), "tests/data/openml")


def numbers(load):
    """(names of columns, rows of texts, labels) of a table of numbers."""
    loaded = load()
    return [f"x{i}" for i in range(loaded.data.shape[1])], [[repr(float(v)) for v in row] for row in loaded.data], \
        [str(name) for name in loaded.target]


def arff(path, label, keep):
    """The same of an ARFF file; "?" is missing."""
    with gzip.open(os.path.join(ARFF, path), "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    start = next(i for i, line in enumerate(lines) if line.lower() == "@data")
    names = [line.split()[1].strip("'\"") for line in lines[:start] if line.lower().startswith("@attribute")]
    rows = [[field.strip() for field in row] for row in
            csv.reader((line for line in lines[start + 1:] if line and line[0] != "%"), skipinitialspace=True)]
    at = [names.index(name) for name in keep]
    return keep, [["" if row[i] == "?" else row[i] for i in at] for row in rows], \
        [row[names.index(label)] for row in rows]


TABLES = {
    "cancer": lambda: numbers(sklearn.datasets.load_breast_cancer),
    "wine": lambda: numbers(sklearn.datasets.load_wine),
    "iris": lambda: numbers(sklearn.datasets.load_iris),
    "digits": lambda: numbers(sklearn.datasets.load_digits),
    "digit pictures": lambda: numbers(sklearn.datasets.load_digits),
    "penguins": lambda: arff("id_42585/data-v1-dl-21854866.arff.gz", "species",
                             ["island", "culmen_length_mm", "culmen_depth_mm", "flipper_length_mm", "body_mass_g", "sex"]),
    "Titanic": lambda: arff("id_40945/data-v1-dl-16826755.arff.gz", "survived",
                            ["pclass", "sex", "age", "sibsp", "parch", "fare", "embarked"]),
}
FLIPPED = {"cancer": 46}  # of 569, as the issue of wrong labels is usually posed; else a share


def flip(labels, count, seed):
    """Labels with that many replaced by other ones, and which."""
    rng = np.random.default_rng(seed)
    names = sorted(set(labels))
    wrong = np.zeros(len(labels), bool)
    wrong[rng.choice(len(labels), count, replace=False)] = True
    return [names[(names.index(label) + rng.integers(1, len(names))) % len(names)] if is_wrong else label
            for label, is_wrong in zip(labels, wrong)], wrong


def write(folder, kind, columns, rows, labels):
    """The data as files; returns the operand and options of the command."""
    if kind == "digit pictures":
        path = os.path.join(folder, "npy")
        os.makedirs(path)
        np.save(os.path.join(path, "x.npy"), np.array(rows, float).reshape(-1, 8, 8).astype(np.uint8) * 15)
        np.save(os.path.join(path, "y.npy"), np.array(labels, int))
        return [path]
    path = os.path.join(folder, "table.csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*columns, "label"], *([*row, label] for row, label in zip(rows, labels))])
    return [path]


def area(scores, wrong):
    low, high = scores[wrong][:, None], scores[~wrong][None, :]
    return float(np.mean((low < high) + 0.5 * (low == high)))


def audit(fds, words, utility, seed, folder):
    """Values and suspects by number of the sample, and seconds."""
    out = os.path.join(folder, "audit")
    done = subprocess.run([fds, "data", "audit", *words, "--utility", utility, "--seed", str(seed), "--quiet", "--json",
                           "-o", out], check=True, capture_output=True)
    found = json.loads(done.stdout)
    with open(os.path.join(out, "rows.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shutil.rmtree(out)
    values, suspects = np.full(len(rows), np.nan), np.zeros(len(rows), bool)
    for row in rows:
        values[int(row["sample"])] = float(row["value"])
        suspects[int(row["sample"])] = row["suspect"] == "yes"
    assert len(rows) == found["samples"] and np.isfinite(values).all(), "a sample has no value"
    return values, suspects, found["seconds"]


def logistic(columns, rows, labels, seed):
    """The out-of-fold probability of each sample's label by scikit-learn; None for text."""
    try:
        x = np.array(rows, float)
    except ValueError:
        return None
    y = np.unique(labels, return_inverse=True)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probs = cross_val_predict(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), x, y,
                                  cv=StratifiedKFold(10, shuffle=True, random_state=seed), method="predict_proba")
    return probs[np.arange(len(y)), y]


def spread(numbers_):
    return f"{np.mean(numbers_):.3f} ± {np.std(numbers_, ddof=1) if len(numbers_) > 1 else 0:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--data", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.08, help="of the labels that are flipped")
    parser.add_argument("--utilities", nargs="*", default=["knn:5"])
    parser.add_argument("--least", type=float, help="fail if the area of a seed is below this")
    arguments = parser.parse_args()
    fds = os.path.abspath(os.path.join(arguments.build, "cli/fds"))
    print("| data | samples | wrong | utility | area | least | precision | recall | seconds | logistic regression |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.data:
        columns, rows, labels = TABLES[name]()
        count = FLIPPED.get(name, round(arguments.share * len(rows)))
        results, reference = {}, []
        for seed in range(arguments.seeds):
            given, wrong = flip(labels, count, seed)
            probability = logistic(columns, rows, given, seed)
            if probability is not None:
                reference.append(area(probability, wrong))
            for utility in arguments.utilities:
                with tempfile.TemporaryDirectory() as folder:
                    words = write(folder, name, columns, rows, given)
                    values, suspects, seconds = audit(fds, words, utility, seed, folder)
                found = (suspects & wrong).sum()
                results.setdefault(utility, []).append(
                    (area(values, wrong), found / max(suspects.sum(), 1), found / count, seconds))
        for utility, found in results.items():
            areas, precision, recall, seconds = zip(*found)
            print(f"| {name} | {len(rows)} | {count} | `{utility}` | {spread(areas)} | {min(areas):.3f} | "
                  f"{np.mean(precision):.2f} | {np.mean(recall):.2f} | {np.mean(seconds):.2f} | "
                  f"{spread(reference) if reference else ''} |", flush=True)
            assert arguments.least is None or min(areas) >= arguments.least, f"{name}: {min(areas)} is too low"


if __name__ == "__main__":
    main()
