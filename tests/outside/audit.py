#!/usr/bin/python3
"""fds data audit finds wrong labels in scikit-learn's breast cancer table: one command, its defaults.

Usage: tests/outside/audit.py PATH_OF_FDS     (prints TAP)
"""
import csv
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import roc_auc_score
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

FDS = os.path.abspath(sys.argv[1])
SEEDS, WRONG, LEAST = 5, 46, 0.97


def area(seed):
    """The area under the ROC curve of "a low value marks a wrong label", and the values."""
    table = load_breast_cancer()
    wrong = np.zeros(len(table.target), bool)
    wrong[np.random.default_rng(seed).choice(len(wrong), WRONG, replace=False)] = True
    names = table.target_names[table.target ^ wrong]
    with open("cancer.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["patient", *table.feature_names, "diagnosis"])
        for i, (row, name) in enumerate(zip(table.data, names)):
            out.writerow([f"p{i}", *row, name])
    subprocess.run([FDS, "data", "audit", "cancer.csv", "--label", "diagnosis", "--id", "patient", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    with open("cancer.audit/rows.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["id"] for row in rows) == sorted(f"p{i}" for i in range(len(wrong))), "a row has no value"
    assert all(int(row["line"]) == int(row["id"][1:]) + 2 for row in rows)
    values = np.array([float(row["value"]) for row in rows])
    assert np.isfinite(values).all() and (np.diff(values) >= 0).all()
    return roc_auc_score([wrong[int(row["id"][1:])] for row in rows], -values)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        areas = [area(seed) for seed in range(SEEDS)]
        os.chdir("/")
    print(f"# areas {' '.join(f'{a:.4f}' for a in areas)}: {np.mean(areas):.4f} ± {np.std(areas, ddof=1):.4f}")
    print(f"{'ok' if min(areas) >= LEAST else 'not ok'} 1 - wrong labels of breast cancer are found\n1..1")
    return 0 if min(areas) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
