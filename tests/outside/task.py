#!/usr/bin/python3
"""The round trip of docs/bench.md: fds bench exports a task, NumPy computes values, fds bench compares them.

Usage: tests/outside/task.py PATH_OF_FDS     (prints TAP)
The program is the one in the document. Precision, recall and area are computed again here.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from sklearn.metrics import roc_auc_score
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)

FDS = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ["bench", "shops.csv", "--quick", "--methods", "ls,knn:5/sample,random", "--quiet"]
TASK = "shops.task/shops-0/"


def fds(*words, code=0):
    done = subprocess.run([FDS, *words], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stderr


def load(name):
    return np.load(f"{TASK}{name}.npy")


def export():
    shutil.copy(ROOT / "tests/golden/shops.csv", ".")
    fds(*BENCH, "--export-task", "shops.task")
    task = json.loads(pathlib.Path(TASK, "task.json").read_text())
    with open("shops.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name not in ("label", "provider")]
    for part in ("train", "test"):  # what the file has, in the order of the numbers
        x, y, sample = load(f"x_{part}"), load(f"y_{part}"), load(f"sample_{part}")
        wanted = np.array([[float(rows[i][name]) for name in columns] for i in sample], np.float32)
        assert x.dtype == np.float32 and y.dtype == np.int64 and (x == wanted).all()
        assert [task["classes"][label] for label in y] == [rows[i]["label"] for i in sample]
    assert not set(load("sample_train")) & set(load("sample_test"))
    assert task["player_names"] == [f"sample {i}" for i in load("sample_train")]
    assert (load("player_train") == np.arange(task["players"])).all() and task["flips"] == 1
    wrong = load("is_flipped")
    assert ((load("y_train-flipped") != load("y_train")) == wrong).all() and wrong.sum() == round(0.1 * len(wrong))


def document():
    """The program of the document, with what it has saved."""
    text = (ROOT / "docs/bench.md").read_text()
    (program,) = re.findall(r"```python\n(import numpy.*?)```", text, re.S)
    exec(compile(program, "docs/bench.md", "exec"), {})
    assert len(np.load("mine.npy")) == len(load("y_train"))


def each():
    """knn:5 for each test sample and its predicted label, as the benchmark has it itself."""
    x, y, x_test, label = load("x_train").astype(float), load("y_train"), load("x_test").astype(float), load("predicted_test")
    order = (((x_test[:, None] - x) / x.std(0)) ** 2).sum(2).argsort(1, kind="stable")
    values = np.zeros(order.shape)
    for t, near in enumerate(order):
        match, phi = (y[near] == label[t]).astype(float), 0
        for i in range(len(y) - 1, -1, -1):
            after = match[i + 1] if i + 1 < len(y) else 0
            phi += (match[i] - after) / max(5, i + 1)
            values[t, near[i]] = phi
    np.save("each.npy", values)
    with open("mine.csv", "w", encoding="utf-8") as file:  # the same values as mine.npy, shuffled, by name
        names = json.loads(pathlib.Path(TASK, "task.json").read_text())["player_names"]
        mine = np.load("mine.npy")
        print("player,value", *(f"{names[i]},{mine[i]!r}" for i in reversed(range(len(mine)))), sep="\n", file=file)


def compare():
    fds(*BENCH, "--values", "mine=mine.npy", "--values", "each=each.npy", "--values", "table=mine.csv")
    (data,) = json.loads(pathlib.Path("shops.report/report.json").read_text())["data"]
    rows = {row["method"]: row for row in data["rows"]}
    assert list(rows) == ["ls", "knn:5/sample", "random", "mine", "each", "table"]
    # the same values have the same losses, whoever computed them
    for key in ("losses", "lds"):
        assert [entry["mean"] for entry in rows["mine"][key]] == [entry["mean"] for entry in rows["table"][key]]
    assert rows["mine"]["agreement"] == rows["table"]["agreement"]
    ours, theirs = (next(entry["mean"] for entry in rows[name]["losses"] if entry["removal"] == "top")
                    for name in ("knn:5/sample", "each"))
    assert np.allclose(ours, theirs), (ours, theirs)
    assert rows["each"]["is_per_sample"] and not rows["mine"]["is_per_sample"]
    assert rows["each"]["auc"] is None and rows["mine"]["timing"]["prepare_s"] is None
    return data, rows


def curves(data, rows):
    values, wrong, shares = np.load("mine-flipped.npy"), load("is_flipped"), data["settings"]["shares"]
    assert abs(rows["mine"]["auc"]["mean"] - roc_auc_score(wrong, -values)) < 1e-12
    found = {(entry["measure"], entry["removal"]): entry["mean"] for entry in rows["mine"]["curves"]}
    order = np.argsort(values, kind="stable")
    for k, share in enumerate(shares):
        looked = max(1, int(np.floor(share * len(values) + 0.5)))
        hits = wrong[order[:looked]].sum()
        if len(set(values[order[max(0, looked - 1):looked + 1]])) == 2 or looked == len(values):  # no tie at the end
            assert abs(found["precision", ""][k] - hits / looked) < 1e-12
            assert abs(found["recall", ""][k] - hits / wrong.sum()) < 1e-12
    assert found["recall", ""][-1] == 1 and found["accuracy", "top"][-1] == found["accuracy", "bottom"][-1]
    with open("shops.report/report.csv", encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["method"] == "mine" and line["measure"] == "recall"]
    assert [float(line["mean"]) for line in lines] == found["recall", ""]
    page = pathlib.Path("shops.report/report.html").read_text()
    assert "Accuracy without the most valuable players" in page and "Share of the wrong labels that are found" in page


def mistakes():
    np.save("short.npy", np.zeros(3))
    assert "it must have the shape (30)" in fds(*BENCH, "--values", "a=short.npy", "-o", "x", code=1)
    np.save("short.npy", np.full(30, np.nan))
    assert "not a finite number" in fds(*BENCH, "--values", "a=short.npy", "-o", "x", code=1)
    assert "there is no file" in fds(*BENCH, "--values", "a=none.npy", "-o", "x", code=1)
    assert "must be NAME=FILE" in fds(*BENCH, "--values", "mine.npy", "-o", "x", code=2)
    assert "another method has this name" in fds(*BENCH, "--values", "ls=mine.npy", "-o", "x", code=2)
    assert "a folder with shops-0.npy" in fds(*BENCH, "--seeds", "2", "--values", "a=mine.npy", "-o", "x", code=2)
    pathlib.Path("bad.csv").write_text("player,value\nsample 1,2\nnobody,3\n")
    assert "is no player" in fds(*BENCH, "--values", "a=bad.csv", "-o", "x", code=1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print("1..5")
        export()
        print("ok 1 - a task has the players and test samples of the data, with wrong labels")
        document()
        each()
        print("ok 2 - the program of the document computes values")
        data, rows = compare()
        print("ok 3 - the same values have the same losses, whoever computed them")
        curves(data, rows)
        print("ok 4 - precision, recall and area are those of their definitions")
        mistakes()
        print("ok 5 - mistakes in files of values are named")
        os.chdir("/")


if __name__ == "__main__":
    main()
