#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Regression on scikit-learn's diabetes data: 10 providers, all 1,024 coalitions, against brute force.

The predictions of a table are computed again from docs/game.md and docs/baselines.md alone, and the
values from these predictions in exact arithmetic.

Usage: tests/outside/regression.py FDS     (the command; prints TAP)
"""
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
try:
    import numpy as np
    import torch
    from sklearn.datasets import load_diabetes
    from sklearn.kernel_ridge import KernelRidge

    import game
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)
import tap  # noqa: E402

FDS, PROVIDERS = os.path.abspath(sys.argv[1]), 10
ALL = [s for k in range(PROVIDERS + 1) for s in itertools.combinations(range(PROVIDERS), k)]
FOLDER = tempfile.TemporaryDirectory()
CSV = os.path.join(FOLDER.name, "diabetes.csv")


def write_data():
    frame = load_diabetes(as_frame=True, scaled=False).frame
    frame["clinic"] = [f"clinic {i % PROVIDERS}" for i in range(len(frame))]
    frame.to_csv(CSV, index=False)
    return frame.drop(columns=["target", "clinic"]).to_numpy(np.float32), frame["target"].to_numpy(np.float64)


X, Y = write_data()


def value(name, *options):
    """(values (tests, players), description, the game of the table, {coalition: predictions})"""
    out, table = (os.path.join(FOLDER.name, f"{name}.{end}") for end in ("json", "table"))
    about = subprocess.run([FDS, "value", CSV, "--task", "regression", "--label", "target", "--provider", "clinic",
                            "--players", "providers", "--quiet", "--json", "-o", out, "--table", table, *options],
                           check=True, capture_output=True, text=True).stdout
    results = json.loads(pathlib.Path(out).read_text())["results"]
    parameters, rows = game.read_table(table)
    values = np.array([r["values"] for r in results])
    return values, json.loads(about), Samples(table, parameters), {s: p[:, 0] for s, p in rows.items()}


class Samples:
    """samples.csv with normalised samples and standardised targets, as docs/game.md says."""

    def __init__(self, folder, about):
        rows = game.read_rows(f"{folder}/samples.csv")
        own = [row for row in rows if row["role"] == "player"]
        tests = [row for row in rows if row["role"] == "test"]
        column = lambda name, rows: np.array([int(row[name]) for row in rows])
        self.about, self.sample, self.player = about, column("sample", own), column("player", own)
        self.input = column("sample", tests)
        assert [float(row["label"]) for row in own + tests] == Y[np.append(self.sample, self.input)].tolist()
        x = X[self.sample].astype(np.float64)
        mean, std = x.mean(0).astype(np.float32), x.std(0).astype(np.float32)
        normalise = lambda x: ((x.astype(np.float64) - mean) / std).astype(np.float32)
        self.x, self.x_input = normalise(X[self.sample]), normalise(X[self.input])
        y = Y[self.sample]
        self.mean, self.std = y.mean(), y.std()
        self.z = ((y - self.mean) / self.std).astype(np.float32)
        self.y_input = Y[self.input]
        path = f"{folder}/initial.safetensors"
        self.initial = game.read_tensors(path) if os.path.exists(path) else None


def utilities(g, rows, truth, score):
    """{coalition: v(s) of every input}, exactly for squared errors."""
    mean, std = Fraction(float(g.about["target_mean"])), Fraction(float(g.about["target_std"]))
    predict = lambda z: mean + std * Fraction(float(z))
    full = [predict(z) for z in rows[tuple(range(PROVIDERS))]]
    aim = [Fraction(float(y)) for y in g.y_input] if truth else full
    if score == "squared":
        return {s: [-(predict(z) - y) ** 2 for z, y in zip(rows[s], aim)] for s in ALL}
    return {s: [Fraction(math.exp(-float((predict(z) - y) ** 2 / (2 * std ** 2)))) for z, y in zip(rows[s], aim)]
            for s in ALL}


def brute_force(v, inputs):
    """The definition: a sum over all coalitions without the player."""
    weight = [Fraction(math.factorial(k) * math.factorial(PROVIDERS - 1 - k), math.factorial(PROVIDERS))
              for k in range(PROVIDERS)]
    values = np.zeros((inputs, PROVIDERS))
    for i in range(PROVIDERS):
        pairs = [(weight[len(s)], v[s], v[tuple(sorted((*s, i)))]) for s in ALL if i not in s]
        for x in range(inputs):
            values[x, i] = float(sum(w * (with_i[x] - without[x]) for w, without, with_i in pairs))
    return values


def check_values(name, score, target, *options):
    values, about, g, rows = value(name, "--method", "exact", "--score", score, "--target", target, *options)
    assert len(rows) == 1024 and values.shape == (len(g.input), PROVIDERS)
    assert np.isclose(g.mean, g.about["target_mean"], rtol=1e-14), (g.mean, g.about["target_mean"])
    assert np.isclose(g.std, g.about["target_std"], rtol=1e-14)
    few = 8  # inputs: exact arithmetic takes its time
    cut = {s: p[:few] for s, p in rows.items()}
    g.y_input = g.y_input[:few]
    expected = brute_force(utilities(g, cut, target == "true", score), few)
    error = np.abs(values[:few] - expected).max() / np.abs(expected).max()
    print(f"# {name}, {score}: {few * PROVIDERS} values, relative error at most {error:.1e}")
    assert error < 1e-12
    ends = about["utility_with_all"] - about["utility_with_none"]
    assert np.isclose(values.sum(1).mean(), ends, rtol=1e-9), "values sum to v(N) - v(0)"
    return values, g, rows


@tap.test
def exact_values_of_kernel_regression_are_those_of_brute_force():
    check_values("kernel", "squared", "true", "--utility", "kernel")


@tap.test
def exact_values_of_networks_are_those_of_brute_force():
    check_values("network", "squared", "true")


@tap.test
def exact_values_of_the_kernel_score_and_of_predictions_are_those_of_brute_force():
    check_values("score", "kernel", "true", "--utility", "knn:5")
    check_values("predicted", "squared", "predicted", "--utility", "kernel")


@tap.test
def values_for_all_inputs_follow_from_the_predictions():
    """All inputs in double precision, and their mean."""
    values, about, g, rows = value("all", "--method", "exact", "--utility", "kernel")
    v = np.array([-((g.mean + g.std * rows[s].astype(np.float64)) - g.y_input) ** 2 for s in ALL])
    place = {s: k for k, s in enumerate(ALL)}
    for i in range(PROVIDERS):
        phi = sum((v[place[tuple(sorted((*s, i)))]] - v[place[s]]) / (PROVIDERS * math.comb(PROVIDERS - 1, len(s)))
                  for s in ALL if i not in s)
        assert np.abs(values[:, i] - phi).max() < 1e-7
    error = ((g.mean + g.std * rows[ALL[-1]] - g.y_input) ** 2).mean()
    assert np.isclose(about["mean_squared_error"], error)


def similarity(a, b):
    """The kernel of docs/baselines.md."""
    lengths = lambda x: np.sqrt((x ** 2).sum(1))
    u = np.clip(a @ b.T / np.outer(lengths(a), lengths(b)), -1, 1)
    rest = np.pi - np.arccos(u)
    return (2 * u * rest + np.sqrt(1 - u ** 2)) / np.pi


@tap.test
def predictions_of_kernel_regression_are_those_of_scikit_learn():
    _, _, g, rows = value("kernel", "--method", "exact", "--utility", "kernel")
    x, inputs = g.x.astype(np.float64), g.x_input.astype(np.float64)
    between, across = similarity(x, x), similarity(inputs, x)
    worst = 0
    for s in ALL:
        own = np.flatnonzero(np.isin(g.player, s))
        expected = np.zeros(len(inputs))
        if s:
            model = KernelRidge(alpha=0.5 * np.trace(between) / len(x), kernel="precomputed")
            model.fit(between[np.ix_(own, own)], g.z[own].astype(np.float64))
            expected = model.predict(across[:, own])
        worst = max(worst, np.abs(rows[s] - expected).max())
    print(f"# {len(ALL)} coalitions, largest difference {worst:.1e} standard deviations")
    assert worst < 1e-6


@tap.test
def predictions_of_neighbours_are_their_mean():
    _, _, g, rows = value("score", "--method", "exact", "--utility", "knn:5", "--score", "kernel", "--target", "true")
    far = ((g.x_input[:, None].astype(np.float64) - g.x[None]) ** 2).sum(2)
    for s in ALL:
        own = np.flatnonzero(np.isin(g.player, s))
        near = own[np.argsort(far[:, own], axis=1, kind="stable")[:, :5]]
        expected = g.z[near].astype(np.float64).sum(1) / 5 if s else 0
        assert np.abs(rows[s] - expected).max() < 1e-6


def retrain(g, coalition):
    """The network that is trained on the coalition, by mean squared error, in double precision."""
    about = g.about
    model = game.network(about["network"], about["shape"], g.initial, torch.float64)
    adam = torch.optim.Adam(model.parameters(), about["lr"], (about["beta1"], about["beta2"]), about["epsilon"],
                            about["weight_decay"])
    x, z = torch.tensor(g.x[:, :, None, None], dtype=torch.float64), torch.tensor(g.z, dtype=torch.float64)
    own = np.flatnonzero(np.isin(g.player, coalition)).tolist()
    for epoch in range(about["epochs"] if own else 0):
        order = sorted(own, key=lambda i: next(game.philox(about["seed"], 2, epoch, int(g.sample[i]))))
        for first in range(0, len(order), about["batch"]):
            batch = order[first:first + about["batch"]]
            adam.zero_grad()
            torch.nn.functional.mse_loss(model(x[batch])[:, 0], z[batch]).backward()
            adam.step()
    with torch.no_grad():
        return model(torch.tensor(g.x_input[:, :, None, None], dtype=torch.float64))[:, 0].numpy()


@tap.test
def predictions_of_networks_are_those_of_pytorch():
    _, _, g, rows = value("network", "--method", "exact", "--score", "squared", "--target", "true")
    assert g.about["network"] == "fc:64,relu,fc:1"
    worst = 0
    for s in [(), ALL[-1], *ALL[1:1024:60]]:
        worst = max(worst, np.abs(rows[s] - retrain(g, s)).max())
    print(f"# 20 coalitions, largest difference {worst:.1e} standard deviations")
    assert worst < 1e-4


@tap.test
def tests_are_the_first_samples_of_the_list():
    """A regression has one class: the list is in the order of the keys."""
    _, _, g, _ = value("kernel", "--method", "exact", "--utility", "kernel")
    order = game.balanced([0] * len(Y), 0)
    assert sorted(order[:len(Y) // 5]) == g.input.tolist() and sorted(order[len(Y) // 5:]) == g.sample.tolist()


@tap.test
def answers_of_a_run_are_near_the_exact_values():
    """fds fit and explain: least squares on most coalitions, for what the service model predicts."""
    run = os.path.join(FOLDER.name, "d.run")
    subprocess.run([FDS, "fit", CSV, "--task", "regression", "--label", "target", "--provider", "clinic", "--players",
                    "providers", "--method", "afds", "--quiet", "-o", run], check=True, capture_output=True)
    about, rows = game.read_table(f"{run}/utilities")
    inputs = [row for row in game.read_rows(f"{run}/samples.csv") if row["role"] != "player"]
    mean, std = about["target_mean"], about["target_std"]
    place = {s: k for k, s in enumerate(ALL)}
    f = np.array([mean + std * rows[s][:, 0].astype(np.float64) for s in ALL])
    v = -(f - f[-1]) ** 2  # (coalitions, inputs)
    ask = ",".join(row["sample"] for row in inputs)
    answers = json.loads(subprocess.run([FDS, "explain", run, "--index", ask, "--json", "--quiet"], check=True,
                                        capture_output=True, text=True).stdout)["inputs"]
    got, exact = np.empty((len(inputs), PROVIDERS)), np.empty((len(inputs), PROVIDERS))
    for x, answer in enumerate(answers):
        assert np.isclose(answer["predicted"], f[-1, x], rtol=1e-5)
        for player in answer["ranking"]:
            got[x, int(player["player"][-1])] = player["value"]
    for i in range(PROVIDERS):
        exact[:, i] = sum((v[place[tuple(sorted((*s, i)))]] - v[place[s]]) / math.comb(PROVIDERS - 1, len(s))
                          for s in ALL if i not in s) / PROVIDERS
    correlation = np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(got, exact)])
    print(f"# {len(inputs)} inputs: mean correlation with the exact values {correlation:.5f}")
    assert correlation > 0.99


@tap.test
def a_program_that_fits_the_same_model_gives_the_same_values():
    """command:PROGRAM: linear regression by a worker, and the same in this process."""
    worker = os.path.join(FOLDER.name, "worker.py")
    pathlib.Path(worker).write_text(WORKER)
    _, _, g, rows = value("program", "--method", "exact", "--utility", f"command:/usr/bin/python3 {worker}",
                          "--target", "true")
    for s in ALL[:1024:31]:
        own = np.flatnonzero(np.isin(g.player, s))
        expected = np.zeros(len(g.input))
        if s:
            a = np.c_[np.ones(len(own)), X[g.sample[own]].astype(np.float64)]
            b = np.linalg.lstsq(a, Y[g.sample[own]], rcond=None)[0]
            f = (np.c_[np.ones(len(g.input)), X[g.input].astype(np.float64)] @ b).astype(np.float32)
            expected = (f - g.mean) / g.std
        assert np.abs(rows[s] - expected).max() < 1e-5


WORKER = '''
import json, struct, sys
import numpy as np

def read():
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        sys.exit(0)
    data = sys.stdin.buffer.read(struct.unpack("<Q", head)[0])
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]

def write(meta, name=None, array=None):
    header = {"__metadata__": meta}
    if name:
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [0, array.nbytes]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = struct.pack("<Q", len(text)) + text + (array.tobytes() if name else b"")
    sys.stdout.buffer.write(struct.pack("<Q", len(data)) + data)
    sys.stdout.buffer.flush()

hello = read()[0]["__metadata__"]
assert hello["task"] == "regression" and hello["classes"] == "1"
load = lambda name: np.load(hello["folder"] + "/" + name)
x, y, inputs = load("samples.npy").astype(float), load("targets.npy"), load("inputs.npy").astype(float)
one = lambda x: np.c_[np.ones(len(x)), x]
write({"type": "ready", "protocol": "1", "name": "least squares", "fingerprint": "1"})
while True:
    header, data = read()
    own = np.frombuffer(data, "<i4")
    b = np.linalg.lstsq(one(x[own]), y[own], rcond=None)[0]
    write({"type": "answer", "id": header["__metadata__"]["id"]}, "predictions", (one(inputs) @ b).astype("<f4"))
'''

sys.exit(tap.main())
