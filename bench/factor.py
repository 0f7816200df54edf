#!/usr/bin/python3
"""Explainers with factors of the players beside full heads, and values of players never seen.

Usage: bench/factor.py BUILD_FOLDER [--work FOLDER] [--parts points many new]

  points  MNIST, 100 points: agreement of full head and factors with least squares on validation inputs
  many    MNIST, 2,000 points, a cheap utility: the same, with CPU seconds of the whole fit (the sub-models, which both
          share, come from one table) and its greatest memory
  new     100 providers of MNIST digits, of 10 to 200 samples and unequal classes. 80 of them are fitted; values of the
          other 20 are predicted from their samples, or found by sub-models trained with them, and compared with those
          of 32,768 other coalitions of all 100. Then few sets of known players against 1,024, ten seeds: the errors
          in the game of the 80 and one new one

Folders in the work folder that are complete are not made again. Needs fetched mnist. Prints Markdown.
"""
import argparse
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys

import numpy as np

NET = ["--explainer", "mlp"]
POINTS = ["mnist", "--players", "100", "--method", "afds", "--inputs", "3000", *NET]
MANY = ["mnist", "--players", "2000", "--inputs", "1000", "--utility", "retrain:1", "--model", "logistic",
        "--coalitions", "24000", "--adjust", "none", *NET]
NEW = ["--players", "providers", "--inputs-from", "test", "--inputs", "1500", "--method", "afds", "--epochs", "3",
       "--model", "logistic", *NET]
TRUE = ["--explainer", "bank", "--coalitions", "32768", "--draw", "1"]
ASKED = 300


def run(*command):
    print("#", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Fit:
    """A fit with another's table of sub-models, and what it took."""

    def __init__(self, fds, work, name, options, table=None):
        self.folder = os.path.join(work, name)
        notes = self.folder + ".json"
        if not os.path.exists(notes):
            shutil.rmtree(self.folder, ignore_errors=True)
            if table:
                os.makedirs(self.folder)
                shutil.copytree(os.path.join(table.folder, "utilities"), os.path.join(self.folder, "utilities"))
            print("#", name, *options, file=sys.stderr, flush=True)
            silence = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
            pid = os.posix_spawn(fds, [fds, "fit", *options, "--quiet", "-o", self.folder], os.environ,
                                 file_actions=silence)
            _, status, used = os.wait4(pid, 0)
            if status:
                sys.exit(f"{name} failed")
            with open(notes, "w", encoding="utf-8") as file:
                json.dump({"cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024 / 1e6}, file)
        with open(notes, encoding="utf-8") as file:
            self.used = json.load(file)
        with open(os.path.join(self.folder, "run.json"), encoding="utf-8") as file:
            self.results = json.load(file)["results"]
        explainer = os.path.join(self.folder, "explainer.safetensors")
        self.size = os.path.getsize(explainer) / 1e6 if os.path.exists(explainer) else float("nan")

    def row(self, name):
        r = self.results
        return (f"| {name} | {100 * r['energy']:.1f} % " if "energy" in r else f"| {name} | ") + \
            f"| {r['agreement']:.3f} | {r['within'] or float('nan'):.3f} | {self.used['cpu']:.0f} " \
            f"| {self.used['memory']:.0f} | {self.size:.1f} |"


HEAD = ("| outputs per label | energy | agreement | within the class | CPU s of the fit | memory, MB | file, MB |\n"
        "| --- | --- | --- | --- | --- | --- | --- |")


def compare(fds, work, name, options, ranks):
    print(HEAD)
    full = Fit(fds, work, f"{name}-table", [*options, "--rank", "full"])
    for rank in ("full", *ranks):
        print(Fit(fds, work, f"{name}-{rank}", [*options, "--rank", rank], full).row(rank), flush=True)
    print()


def idx(name):
    path = os.path.expanduser(f"~/.local/share/fds/mnist/{name}")
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def providers(folder):
    """Three data sets: all 100 providers, the 80 that are fitted, the 20 that are not."""
    x, y = idx("train-images-idx3-ubyte"), idx("train-labels-idx1-ubyte").astype(np.int64)
    rng = np.random.default_rng(0)
    left = {c: list(rng.permutation(np.flatnonzero(y == c))) for c in range(10)}
    rows, owners = [], []
    for p in range(100):
        size, mix = int(round(np.exp(rng.uniform(np.log(10), np.log(200))))), rng.dirichlet(np.full(10, 0.5))
        for c in rng.choice(10, size, p=mix):
            rows.append(left[c].pop())
            owners.append(f"provider {p:02d}")
    rows, owners = np.array(rows), np.array(owners)
    is_new = np.array([int(name[-2:]) % 5 == 4 for name in owners])
    for name, some in (("all", is_new | True), ("known", ~is_new), ("new", is_new)):
        path = os.path.join(folder, f"providers-{name}")
        os.makedirs(path, exist_ok=True)
        np.save(f"{path}/x_train.npy", x[rows[some]])
        np.save(f"{path}/y_train.npy", y[rows[some]])
        np.save(f"{path}/provider_train.npy", owners[some])
        if name != "new":
            np.save(f"{path}/x_test.npy", idx("t10k-images-idx3-ubyte")[:4000])
            np.save(f"{path}/y_test.npy", idx("t10k-labels-idx1-ubyte")[:4000].astype(np.int64))
        yield path


def fresh(*folders):
    """Test images from which neither explainer learned."""
    used = set()
    for folder in folders:
        with open(os.path.join(folder, "samples.csv"), newline="", encoding="utf-8") as file:
            used |= {int(row["sample"]) for row in csv.DictReader(file) if row["role"] != "player"}
    return [k for k in range(4000) if k not in used][:ASKED]


def ask(fds, folder, images, *options):
    """Values and standard errors by player, for each image, and the labels."""
    path = folder.rstrip("/") + "-asked.json"
    run(fds, "explain", folder, "--index", ",".join(map(str, images)), "--quiet", *options, "-o", path)
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    names = [player["name"] for player in found["players"]]
    return [dict(zip(names, zip(r["values"], r["standard_errors"]))) for r in found["results"]], \
        [r["label"] for r in found["results"]]


def correlation(a, b):
    return np.mean([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b)])


def errors(name, guess, error, true):
    """Root mean square errors and stated ones, by the size of the value that is stated."""
    print(f"\n| {name}: absolute value | root mean square error | mean stated error |\n| --- | --- | --- |")
    edges = np.quantile(abs(guess), np.linspace(0, 1, 5))
    for low, high in zip(edges, edges[1:]):
        some = (abs(guess) >= low) & (abs(guess) <= high)
        print(f"| {low:.4f} to {high:.4f} | {np.sqrt(np.mean((guess - true)[some] ** 2)):.4f} "
              f"| {error[some].mean():.4f} |")


def new_players(fds, work):
    everyone, known, new = providers(work)
    whole = Fit(fds, work, "new-all", [everyone, *NEW, "--rank", "full"])
    part = Fit(fds, work, "new-known", [known, *NEW, "--rank", "48", "--rank-from", "samples"])
    exact = Fit(fds, work, "new-true", [everyone, *NEW[:-2], *TRUE])
    images = fresh(whole.folder, part.folder)
    ways = {"predicted from samples": ask(fds, part.folder, images, "--new-player", new)}
    for models in (8, 16, 32):
        ways[f"trained with {models} sub-models each"] = ask(
            fds, part.folder, images, "--new-player", new, "--new-models", str(models), "--data", known)
    truth, labels = ask(fds, exact.folder, images)
    head, of = ask(fds, whole.folder, images)
    same = [k for k, label in enumerate(labels) if label == of[k] and all(label == way[1][k] for way in ways.values())]
    names = sorted(ways["predicted from samples"][0][0])
    table = lambda found: np.array([[found[k][p] for p in names] for k in same])  # (images, players, value and error)
    true = table(truth)[:, :, 0]
    full = correlation(table(head)[:, :, 0], true)
    sizes = np.load(os.path.join(new, "provider_train.npy"))
    size = np.broadcast_to([(sizes == p).sum() for p in names], true.shape)
    print(f"{len(same)} test images, of {len(images)} those with the same predicted label in all fits.\n")
    print("| 20 providers never seen | correlation with true values | of the full head's | within one stated error | "
          "within two |\n| --- | --- | --- | --- | --- |")
    for name, (found, _) in ways.items():
        guess = table(found)
        off, r = abs(guess[:, :, 0] - true), correlation(guess[:, :, 0], true)
        print(f"| {name} | {r:.3f} | {r / full:.2f} | {np.mean(off <= guess[:, :, 1]):.2f} "
              f"| {np.mean(off <= 2 * guess[:, :, 1]):.2f} |")
    r = correlation(size, true)
    print(f"| number of their samples alone | {r:.3f} | {r / full:.2f} | | |")
    print(f"| full head of a fit of all 100 | {full:.3f} | 1 | | |")
    for name in ("predicted from samples", "trained with 32 sub-models each"):
        guess = table(ways[name][0])
        errors(name, guess[:, :, 0], guess[:, :, 1], true)
    print()


def few_sets(fds, work):
    """Values by few sub-models against values by many, in the game that both are about."""
    _, known, new = providers(work)
    folder = os.path.join(work, "new-known")
    images = fresh(os.path.join(work, "new-all"), folder)[:100]

    def values(models, seed):
        found, _ = ask(fds, folder, images, "--new-player", new, "--new-models", str(models), "--data", known,
                       "--seed", str(seed))
        return np.array([[each[name] for name in sorted(each)] for each in found])  # (images, players, value and error)

    true = values(1024, 1000)[:, :, 0]
    print("| sets | root mean square error | stated | within 1.96 stated errors |\n| --- | --- | --- | --- |")
    for models in (8, 16, 32):
        found = np.array([values(models, seed) for seed in range(1, 11)])
        off, stated = found[..., 0] - true, found[..., 1]
        print(f"| {models} | {np.sqrt(np.mean(off ** 2)):.4f} | {np.sqrt(np.mean(stated ** 2)):.4f} "
              f"| {np.mean(abs(off) <= 1.96 * stated):.3f} |")
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--work")
    parser.add_argument("--parts", nargs="*", default=["points", "many", "new"])
    args = parser.parse_args()
    fds = os.path.abspath(os.path.join(args.build, "cli/fds"))
    work = os.path.abspath(args.work or os.path.join(args.build, "factor"))
    os.makedirs(work, exist_ok=True)
    if "points" in args.parts:
        print("### 100 points of MNIST\n")
        compare(fds, work, "points", POINTS, ("16", "32", "64"))
    if "many" in args.parts:
        print("### 2,000 points of MNIST\n")
        compare(fds, work, "many", MANY, ("256",))
    if "new" in args.parts:
        print("### New players\n")
        new_players(fds, work)
        few_sets(fds, work)


if __name__ == "__main__":
    main()
