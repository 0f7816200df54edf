# SPDX-License-Identifier: Apache-2.0
"""Numbers to predict: values against brute force, against the command, and what is refused."""
import csv
import io
import json
import os
import pathlib
import pickle
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import fds
import fuzz_worker
from fds import worker
from reference import shapley, subsets

PLAYERS = 5
BUILD = pathlib.Path(os.environ.get("FDS_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))


@pytest.fixture(scope="module")
def plane():
    """Targets near a plane: (X, y, Xtest, ytest), samples that are exact in 32 bits."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(40, 3)).astype(np.float32).astype(float)
    y = 10 + X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=40)
    return X[:PLAYERS], y[:PLAYERS], X[PLAYERS:], y[PLAYERS:]


def similarity(a, b):
    """The kernel of docs/baselines.md."""
    u = np.clip(a @ b.T / np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1)), -1, 1)
    return (2 * u * (np.pi - np.arccos(u)) + np.sqrt(1 - u**2)) / np.pi


def kernel_ridge(X, y, Xtest):
    """{coalition: predictions} of kernel ridge regression on standardised samples and targets."""
    mean, std = X.mean(0), X.std(0)
    A, B = (X - mean) / std, (Xtest - mean) / std
    z = (y - y.mean()) / y.std()
    between, across = similarity(A, A), similarity(B, A)
    ridge = 0.5 * np.trace(between) / len(X)
    found = {}
    for s in subsets(range(len(X))):
        own = list(s)
        weights = np.linalg.solve(between[np.ix_(own, own)] + ridge * np.eye(len(own)), z[own])
        found[frozenset(s)] = y.mean() + y.std() * (across[:, own] @ weights)
    return found


def test_exact_values_of_kernel_ridge_are_those_of_all_coalitions(plane):
    X, y, Xtest, ytest = plane
    predictions = kernel_ridge(X, y, Xtest)
    game = {s: -(f - ytest) ** 2 for s, f in predictions.items()}
    found = fds.value(*plane, utility="kernel", method="exact", per_sample=True, n_jobs=1)
    assert np.abs(found.values - shapley(game, PLAYERS).T).max() < 1e-4
    assert found.task == "regression" and found.exact and (found.stderr == 0).all()
    assert found.truth.tolist() == ytest.tolist() and found.labels.tolist() == ytest.tolist()
    assert found.predicted.astype(float) == pytest.approx(predictions[frozenset(range(PLAYERS))], abs=1e-4)
    assert found.player_labels.tolist() == y.tolist()
    mean = fds.value(*plane, utility="kernel", method="exact", n_jobs=1)
    assert mean.values == pytest.approx(found.values.mean(0), rel=1e-9)
    assert mean.full == pytest.approx(-((predictions[frozenset(range(PLAYERS))] - ytest) ** 2).mean(), rel=1e-5)
    assert mean.empty == pytest.approx(-((y.mean() - ytest) ** 2).mean(), rel=1e-6)


def ridge_game(X, y, Xtest, ytest):
    """Workers send 32-bit predictions, which are kept in standard deviations of the targets."""
    game = {}
    for s in subsets(range(len(X))):
        own = list(s)
        f = Ridge().fit(X[own], y[own]).predict(Xtest) if own else np.full(len(Xtest), y.mean())
        game[frozenset(s)] = float(-((f - ytest) ** 2).mean())
    return game


def test_a_regressor_of_scikit_learn_is_a_utility(plane, caplog):
    found = fds.value(*plane, model=Ridge(), method="exact", n_jobs=1)
    assert found.values == pytest.approx(shapley(ridge_game(*plane), PLAYERS), rel=1e-4, abs=1e-4)
    assert "predict_proba" not in caplog.text
    same = fds.value(*plane, model=Ridge(), method="exact", n_jobs=2)
    assert same.values.tobytes() == found.values.tobytes()


def test_whole_numbers_are_targets_if_the_task_says_so(plane):
    X, y, Xtest, ytest = plane
    y, ytest = np.round(y).astype(int), np.round(ytest).astype(int)
    found = fds.value(X, y, Xtest, ytest, model=Ridge(), method="exact", task="regression", n_jobs=1)
    assert found.values == pytest.approx(shapley(ridge_game(X, y, Xtest, ytest), PLAYERS), rel=1e-4, abs=1e-4)
    assert fds.value(X, y.astype(float), Xtest, np.repeat(y, 7), method="knn:1").task == "classification"


def test_a_frame_and_a_file_give_the_values_of_the_command(plane, tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"area": rng.uniform(40, 200, 60).round(2), "town": np.array(["a", "b", "c"])[np.arange(60) % 3]})
    frame["price"] = 1000.5 * frame["area"] + 100.25 * (np.arange(60) % 3)
    frame["agent"] = [f"agent {i % 4}" for i in range(60)]
    train, test = frame[:40], frame[40:].reset_index(drop=True)
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    how = ["--task", "regression", "--label", "price", "--provider", "agent", "--players", "providers"]
    done = subprocess.run([BUILD / "cli" / "fds", "value", tmp_path, *how, "--method", "exact", "--utility", "kernel",
                           "--global", "--test", "20", "--json", "--table", tmp_path / "t"], check=True,
                          capture_output=True)
    theirs = {place["player"]: place["value"] for place in json.loads(done.stdout)["ranking"]}
    ours = fds.value(train, "price", test, providers="agent", method="exact", utility="kernel")
    assert ours.to_dict() == pytest.approx(theirs, rel=1e-9)
    reread = fds.value(tmp_path, label="price", provider="agent", players="providers", task="regression", method="exact",
                       utility="kernel", test=20)
    assert reread.to_dict() == pytest.approx(theirs, rel=1e-9) and reread.task == "regression"
    data = fds.open_data(tmp_path / "train.csv", label="price", provider="agent", task="regression")[0]
    assert data.is_regression and data.y.tolist() == train["price"].tolist() and len(data.classes) == 0
    assert "regression" in repr(data)


def test_datasets_have_targets(plane):
    X, y, Xtest, ytest = plane
    found = fds.value(fds.Dataset(X, y), None, fds.Dataset(Xtest, ytest), method="exact", utility="kernel", n_jobs=1)
    assert found.values == pytest.approx(fds.value(*plane, method="exact", utility="kernel", n_jobs=1).values, rel=1e-12)
    with pytest.raises(fds.UsageError, match="give the task to fds.Dataset"):
        fds.value(fds.Dataset(X, y), method="exact", task="classification")


@pytest.fixture(scope="module")
def run(plane, tmp_path_factory):
    X, y, Xtest, ytest = plane
    return fds.Explainer("mlp", coalitions=60, random_state=0, n_jobs=1, run=tmp_path_factory.mktemp("r") / "plane.run").fit(
        X, y, inputs=Xtest)


def test_a_run_explains_predictions_and_numbers(run, plane):
    Xtest, ytest = plane[2][:3], plane[3][:3]
    found = run.explain(Xtest)
    assert found.task == "regression" and found.labels.tolist() == found.predicted.tolist()
    assert (found.full == 0).all() and found.values.sum(1) == pytest.approx(-found.empty, rel=1e-6)
    assert found.truth.tolist() == [None] * 3 and np.isnan(found.confidence).all()
    true = run.explain(Xtest, ytest, target="true")
    assert true.truth.tolist() == ytest.tolist()
    assert true.full == pytest.approx(-(true.predicted.astype(float) - ytest) ** 2, rel=1e-6)
    number = run.explain(Xtest, target=12.5)
    assert number.labels.astype(float) == pytest.approx([12.5] * 3)
    assert len(run.classes_) == 0 and run.report_["service_r2"] is None and "regression" in repr(run.run_)
    again = fds.Run(run.run, n_jobs=1).explain(Xtest)
    assert again.values.tobytes() == found.values.tobytes()
    shares = fds.pay(found, amount="10.00")["share"]
    assert sum(shares) == 30


def test_a_saved_result_has_the_targets(run, plane, tmp_path):
    found = pickle.loads(pickle.dumps(run.explain(plane[2][:2])))
    found.save(tmp_path / "v.csv")
    with open(tmp_path / "v.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted({float(row["label"]) for row in rows}) == sorted(found.labels.tolist())
    assert sorted({float(row["player_label"]) for row in rows}) == sorted(plane[1].tolist())
    found.save(tmp_path / "v.json")
    saved = json.loads((tmp_path / "v.json").read_text())
    assert saved["classes"] == [] and [r["label"] for r in saved["results"]] == found.labels.tolist()
    assert "target" in repr(found[0])
    with pytest.raises(fds.UsageError, match="needs classes"):
        found.mean().plot_removal(Ridge(), *plane)


@pytest.mark.parametrize("how,text", [
    (dict(model=LogisticRegression()), "LogisticRegression predicts classes"), (dict(method="knn:3"), "needs classes"),
    (dict(method="tmc", scorer="accuracy"), "needs classes"), (dict(groups="label"), "needs classes"),
    (dict(task="regresion"), "did you mean"),
    (dict(model=fds.torch_model(list)), "TorchModel predicts classes")])
def test_what_needs_classes_says_so(plane, how, text):
    with pytest.raises(fds.UsageError) as caught:
        fds.value(*plane, **{"method": "ls", "n_jobs": 1, **how})
    assert text in str(caught.value)


def test_what_a_regression_cannot_do_says_what_can(plane):
    X, y, Xtest, ytest = plane
    with pytest.raises(fds.UnsupportedError, match="task=\"regression\""):
        fds.value(*plane, task="classification")
    with pytest.raises(fds.UnsupportedError, match="give labels of classes"):
        fds.audit(Xtest, ytest)
    with pytest.raises(fds.UsageError, match="needs classes"):
        fds.audit(fds.Dataset(Xtest, ytest))
    with pytest.raises(fds.UsageError, match="kept sub-models"):
        fds.Explainer(Ridge(), coalitions=60).fit(X, y, inputs=Xtest)
    with pytest.raises(fds.UsageError, match="task=\"regression\""):
        fds.value(X, [0, 1, 0, 1, 0], Xtest, [0] * len(Xtest), model=Ridge())
    with pytest.raises(fds.FormatError, match="NaN or infinity at sample 1"):
        fds.value(X, [0.5, np.nan, 1, 2, 3], Xtest, ytest)
    with pytest.raises(fds.FormatError, match="numbers to predict"):
        fds.value(X, list("abcde"), Xtest, ytest, task="regression")


class Column:
    """Predicts a number per input in a column; or, of a broken one, two."""

    def __init__(self, width=1):
        self.width = width

    def fit(self, X, y):
        self.mean = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full((len(X), self.width), self.mean)


def answers(model, folder, **change):
    header, _ = fuzz_worker.hello(str(folder))
    header["__metadata__"].update({"task": "regression", "classes": "1", **change})
    chosen = np.array([0, 2], "<i4")
    asked = {"__metadata__": {"type": "eval", "id": "1", "seed": "7"},
             "samples": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}
    np.save(folder / "targets.npy", np.arange(12) + 0.5)
    (folder / "column.pickle").write_bytes(pickle.dumps(model))
    out = io.BytesIO()
    worker.serve(io.BytesIO(fuzz_worker.pack(header, b"") + fuzz_worker.pack(asked, chosen.tobytes())), out,
                 str(folder / "column.pickle"))
    return out.getvalue()


def test_a_worker_answers_with_predictions(tmp_path):
    fuzz_worker.data_for_workers(tmp_path)
    raw = answers(Column(), tmp_path)
    assert fuzz_worker.read_answers(raw) == ["ready", "answer"] and b'"predictions"' in raw
    assert raw.endswith(np.float32(1.5).tobytes())  # the mean of 0.5 and 2.5
    assert b"one number per input" in answers(Column(2), tmp_path)
    assert b"its task is 'ranking'" in answers(Column(), tmp_path, task="ranking")
