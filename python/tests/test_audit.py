# SPDX-License-Identifier: Apache-2.0
"""fds.audit: wrong labels of scikit-learn's breast cancer data, and what is refused."""
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score

import fds


@pytest.fixture(scope="module")
def flipped():
    X, y = load_breast_cancer(return_X_y=True)
    wrong = np.zeros(len(y), bool)
    wrong[np.random.default_rng(5).choice(len(y), 46, replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


def test_flipped_labels_have_the_lowest_values(flipped):
    X, y, wrong = flipped
    found = fds.audit(X, y, random_state=0)
    assert len(found) == len(y) and sorted(found.rows.index) == list(range(len(y)))
    assert (np.diff(found.rows["value"]) >= 0).all() and (found.rows["stderr"] > 0).all()
    assert roc_auc_score(wrong[found.rows.index], -found.rows["value"]) >= 0.97
    assert (found.suspects["value"] < 0).all()
    assert found.rows["label"].tolist() == y[found.rows.index].tolist()
    assert found.accuracy == pytest.approx(np.mean(found.rows["label"] == found.rows["predicted"]))


def test_threads_and_seeds(flipped):
    X, y, _ = flipped
    one, two = (fds.audit(X, y, random_state=3, n_jobs=n).rows for n in (1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert not one["value"].equals(fds.audit(X, y, random_state=4).rows["value"])


def test_providers_names_and_frames(flipped):
    X, y, wrong = flipped
    owners = np.where(wrong, "Careless", np.where(np.arange(len(y)) % 2, "A", "B"))
    found = fds.audit(pd.DataFrame(X), y, providers=owners, names=[f"patient {i}" for i in range(len(y))])
    assert found.rows["id"].iloc[0].startswith("patient ")
    by_name = found.providers.set_index("name")
    assert by_name["samples"].sum() == len(y) and by_name["share_of_suspects"].idxmax() == "Careless"
    assert by_name["value_per_sample"].idxmin() == "Careless"


def test_pictures_and_report(tmp_path):
    X, y = load_digits(return_X_y=True)
    found = fds.audit((X[:300].reshape(-1, 8, 8) * 15).astype(np.uint8), y[:300], folder=tmp_path / "audit")
    assert {path.name for path in (tmp_path / "audit").iterdir()} >= {"rows.csv", "report.html", "audit.json"}
    rows = pd.read_csv(tmp_path / "audit" / "rows.csv")
    assert len(rows) == 300 and rows["value"].tolist() == pytest.approx(found.rows["value"].tolist(), rel=1e-6)


def test_files(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40.0) % 2 + np.arange(40) / 100, "kind": np.where(np.arange(40) % 2, "u", "v")})
    frame.loc[0, "kind"] = "u"
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = fds.audit(tmp_path / "t.csv", label="kind")
    assert found.suspects.index[0] == 0 and found.suspects["reason"].iloc[0]


@pytest.mark.parametrize("how, words", [
    ({"utility": "retrain"}, "knn"), ({"folds": 1000}, "at most 4"), ({"fold": 3}, "did you mean"),
    ({"label": "x"}, "memory"), ({"random_state": "a"}, "whole number")])
def test_refusals(how, words):
    with pytest.raises(fds.Error, match=words):
        fds.audit([[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1], **how)


def test_one_class_and_other_folders(tmp_path):
    with pytest.raises(fds.Error, match="two classes"):
        fds.audit([[0.0], [1.0]], [0, 0])
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(fds.ConflictError):
        fds.audit([[0.0], [1.0]], [0, 1], folder=tmp_path)
