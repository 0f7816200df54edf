# SPDX-License-Identifier: Apache-2.0
"""Explainers and runs."""
import json
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import fds
from reference import Centroids


@pytest.fixture(scope="module")
def own(blobs, tmp_path_factory):
    """An explainer of a model of the user's."""
    X, y, Xtest, ytest = blobs
    return fds.Explainer(Centroids(), coalitions=80, random_state=0, n_jobs=1, run=tmp_path_factory.mktemp("own") / "run",
                         explainer_epochs=30).fit(X[:10], y[:10], inputs=X[10:])


def test_fit_returns_self_and_what_it_learned(fitted, blobs):
    X, y, _, _ = blobs
    assert isinstance(fitted.fit(X[:12], y[:12], inputs=X[12:], Xtest=blobs[2], ytest=blobs[3]), fds.Explainer)
    assert fitted.classes_.tolist() == [0, 1, 2] and len(fitted.players_) == 12 and fitted.n_features_in_ == 2
    assert fitted.report_["resumed"] and fitted.report_["test"]["accuracy"] > 0.5
    assert fitted.report_["service_accuracy"] is None  # labels of the inputs are not known
    assert np.isnan(fitted.agreement_)  # the sub-models answer


def test_values_sum_to_the_difference(fitted, own, blobs):
    for ex in (fitted, own):
        v = ex.explain(blobs[2][:5], blobs[3][:5])
        assert v.values.sum(1) == pytest.approx((v.full - v.empty).astype(float), abs=1e-5)
        assert v.stderr.shape == v.values.shape and (v.stderr > 0).any()
        assert v.truth.tolist() == blobs[3][:5].tolist() and (v.labels == v.predicted).all()
        assert v.inputs[0] == "input 0" and v.method == "fds"


def test_explanations_agree_with_least_squares(fitted, blobs):
    X, y, Xtest, ytest = blobs
    v = fitted.explain(Xtest[:8], ytest[:8], target="true")
    direct = fds.value(X[:12], y[:12], Xtest[:8], ytest[:8], model="logistic", utility="retrain", coalitions=1000,
                       per_sample=True, random_state=0, draw=5, target="true")
    assert np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(v.values, direct.values)]) > 0.9


def test_the_full_value_is_what_the_model_says(own, blobs):
    X, y, Xtest, _ = blobs
    v = own.explain(Xtest[:6])
    p = Centroids().fit(X[:10], y[:10]).predict_proba(Xtest[:6])
    assert v.predicted.tolist() == p.argmax(1).tolist()
    assert v.full.astype(float) == pytest.approx(p.max(1), abs=1e-6)
    assert v.confidence.astype(float) == pytest.approx(p.max(1), abs=1e-6)
    assert own.agreement_ <= 1


@pytest.mark.parametrize("target", [0, "1", "true"])
def test_targets(fitted, blobs, target):
    v = fitted.explain(blobs[2][:3], blobs[3][:3], target=target)
    assert v.labels.tolist() == (blobs[3][:3].tolist() if target == "true" else [int(target)] * 3)


def test_a_wrong_target_is_told(fitted, blobs):
    with pytest.raises(fds.UsageError, match="one of the run's 3 classes"):
        fitted.explain(blobs[2][:3], target="seven")
    with pytest.raises(fds.UsageError, match="needs y"):
        fitted.explain(blobs[2][:3], target="true")


def test_the_kept_sub_models_check(blobs):
    X, y, Xtest, _ = blobs
    ex = fds.Explainer("logistic", coalitions=100, random_state=0, explainer="mlp", keep_models=True,
                       explainer_epochs=5).fit(X[:8], y[:8], inputs=X[8:])
    v = ex.explain(Xtest[:2], check=True)
    assert v.check.shape == v.values.shape and (v.check_stderr >= 0).all()
    assert (ex.explain(Xtest[:2], by="bank").values == v.check).all()
    assert "check" in v.to_dataframe().columns and v[0].check.shape == (8,)


def test_wrong_inputs_are_refused(fitted):
    for X, text in ((np.zeros((2, 3)), "shape"), ([[np.nan, 0]], "NaN"), (None, "give either"), (np.zeros(2), "samples")):
        with pytest.raises(fds.Error, match=text):
            fitted.explain(X)
    with pytest.raises(fds.UsageError, match="not fitted"):
        fds.Explainer().explain([[1.0, 2]])


def test_a_run_is_opened_later(fitted, blobs):
    run = fds.Run(fitted.run)
    assert "12 players, 3 classes" in repr(run) and run.players == fitted.players_
    assert run.explain(blobs[2][:4]).values.tobytes() == fitted.explain(blobs[2][:4]).values.tobytes()
    assert run.samples.shape == (12, 2, 1, 1)
    with pytest.raises(fds.Error):
        fds.Run(fitted.run / "nothing")
    with pytest.raises(fds.UsageError, match="does not apply"):
        fds.Run(fitted.run, model=Centroids())


def test_a_run_of_a_model_needs_the_model(own, blobs):
    X = blobs[2][:3]
    with pytest.raises(fds.UsageError):
        fds.Run(own.run).explain(X)
    assert fds.Run(own.run, model=Centroids()).explain(X).values.tobytes() == own.explain(X).values.tobytes()
    with pytest.raises(fds.UsageError, match="is not the model"):
        fds.Run(own.run, model=Centroids(3.0))


def test_explainers_travel(own, fitted, blobs):
    for ex in (own, fitted):
        again = pickle.loads(pickle.dumps(ex))
        assert again.explain(blobs[2][:2]).values.tobytes() == ex.explain(blobs[2][:2]).values.tobytes()
    loose = fds.Explainer("logistic", coalitions=20).fit(blobs[0][:4], blobs[1][:4], inputs=blobs[0][4:20])
    with pytest.raises(fds.UsageError, match="temporary run"):
        pickle.dumps(loose)


def test_a_temporary_run_is_removed(blobs):
    ex = fds.Explainer("logistic", coalitions=20).fit(blobs[0][:4], blobs[1][:4], inputs=blobs[0][4:20])
    path = pathlib.Path(ex.run_.path)
    assert path.exists()
    del ex
    assert not path.exists()


def test_manners_of_scikit_learn():
    ex = fds.Explainer(LogisticRegression(C=3), coalitions=50, random_state=2, groups="label")
    params = ex.get_params(deep=False)
    assert params["coalitions"] == 50 and params["random_state"] == 2 and params["n_jobs"] is None
    assert ex.get_params()["model__C"] == 3
    again = clone(ex)
    assert again.get_params(deep=False).keys() == params.keys() and again.model.C == 3 and again.model is not ex.model
    assert ex.set_params(coalitions=60, model__C=4, n_jobs=1) is ex
    assert ex.get_params()["coalitions"] == 60 and ex.model.C == 4
    assert repr(fds.Explainer("mlp", coalitions=5)) == "Explainer(model='mlp', coalitions=5)"
    assert not ex.__sklearn_is_fitted__()


@pytest.mark.parametrize("name,near", [("coaltions", "coalitions"), ("explainr", "explainer"), ("epoch", "epochs")])
def test_unknown_parameters_are_refused_with_the_nearest(name, near):
    with pytest.raises(fds.UsageError, match=f"did you mean `{near}`"):
        fds.Explainer(**{name: 5})
    with pytest.raises(fds.UsageError, match=f"`{name}`"):
        fds.Explainer().set_params(**{name: 5})
    with pytest.raises(fds.UsageError):
        fds.Explainer(completely_unlike_any=1)


def test_wrong_values_of_parameters_are_told_in_fit(blobs):
    X, y, _, _ = blobs
    for how, text in ((dict(coalitions=3), "even"), (dict(lr=0), "`lr`"), (dict(explainer="mpl"), "mlp"),
                      (dict(n_jobs=0), "`n_jobs`"), (dict(groups="lable"), "`groups`")):
        with pytest.raises(fds.Error, match=text):
            fds.Explainer("logistic", **how).fit(X[:8], y[:8], inputs=X[8:])
    with pytest.raises(fds.UsageError, match="`inputs` must be at least"):
        fds.Explainer("logistic").fit(X[:8], y[:8], inputs=X[8:10])


def test_another_fit_in_the_same_folder_is_refused(fitted, blobs):
    X, y, _, _ = blobs
    with pytest.raises(fds.ConflictError):
        clone(fitted).set_params(random_state=1).fit(X[:12], y[:12], inputs=X[12:])


def test_inputs_may_be_a_number(blobs):
    X, y, _, _ = blobs
    ex = fds.Explainer("logistic", coalitions=40).fit(X, y, inputs=20)
    assert len(ex.players_) + 20 + 12 == 60 and ex.report_["service_accuracy"] is not None


def test_without_inputs_some_rows_are_taken(blobs):
    X, y, Xtest, ytest = blobs
    ex = fds.Explainer("logistic", coalitions=40).fit(X, y, Xtest=Xtest, ytest=ytest)
    assert len(ex.players_) == 48 and ex.report_["test"]["count"] == 60
    data = fds.Explainer("logistic", coalitions=40, players=20).fit(fds.Dataset(X, y), inputs=15)
    assert len(data.players_) == 20 and data.report_["inputs"] == 15


def test_a_dataset_takes_no_other_data(blobs):
    X, y, Xtest, _ = blobs
    for how in (dict(inputs=Xtest), dict(y=y), dict(providers=y), dict(names=y)):
        with pytest.raises(fds.UsageError, match="Dataset"):
            fds.Explainer("logistic").fit(fds.Dataset(X, y), **how)


def test_labels_of_inputs_give_the_accuracy(blobs):
    X, y, _, _ = blobs
    ex = fds.Explainer("logistic", coalitions=40).fit(X[:8], y[:8], inputs=X[8:], inputs_y=y[8:])
    assert 0 <= ex.report_["service_accuracy"] <= 1


def test_groups_may_be_an_array(blobs, tmp_path):
    X, y, _, _ = blobs
    ex = fds.Explainer("logistic", coalitions=40, method="gfds", run=tmp_path / "r")
    ex.fit(X[:8], y[:8], inputs=X[8:], groups=["u", "v"] * 4)
    assert json.loads((tmp_path / "r" / "run.json").read_text())["groups"] == [0, 1] * 4
    v = ex.explain(X[20:22])
    paid = fds.pay(v[0], "1.00", by="group")
    assert len(paid) == 2 and sum(paid["share"]) == 1
    with pytest.raises(fds.ShapeError, match="groups has 3"):
        fds.Explainer("logistic").fit(X[:8], y[:8], inputs=X[8:], groups=[1, 2, 3])


def test_groups_of_providers(blobs):
    X, y, _, _ = blobs
    owners = np.array(["a", "b", "c", "d"])[np.arange(20) % 4]
    kind = np.array(["x", "y"])[np.arange(20) % 2]
    found = fds.value(X[:20], y[:20], X[20:], y[20:], model="logistic", providers=owners, groups=kind, coalitions=14)
    assert len(found) == 4
    with pytest.raises(fds.UsageError, match="two groups"):
        fds.value(X[:20], y[:20], X[20:], y[20:], model="logistic", providers=owners, groups=kind[::-1].tolist()[:10] +
                  kind.tolist()[10:], coalitions=14)


def test_a_run_of_the_command(tmp_path):
    mnist = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "mnist"
    ex = fds.Explainer("logistic", coalitions=60, players=20, method="afds", epochs=2, run=tmp_path / "run").fit(mnist,
                                                                                                                inputs=50)
    v = ex.explain(index="0..3")
    assert v.values.shape == (4, 20) and v.truth.tolist() == [7, 2, 1, 0] and v.inputs[0] == "test sample 0"
    assert len(v.plot_bar.__self__.names) == 20
    with pytest.raises(fds.UsageError, match="data in memory"):
        ex.fit(mnist, [1, 2])


def test_pictures_are_explained_from_files(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = (rng.random((60, 8, 8)) * 80 + 150 * y[:, None, None]).astype(np.uint8)
    ex = fds.Explainer("logistic", coalitions=40).fit(X[:8], y[:8], inputs=X[8:50])
    for i in range(2):
        Image.fromarray(X[50 + i]).save(tmp_path / f"{i}.png")
    paths = [tmp_path / "0.png", str(tmp_path / "1.png")]
    assert (ex.explain(paths).values == ex.explain(X[50:52]).values).all()
    assert ex.explain(paths[0]).values.shape == (1, 8)
    Image.fromarray(X[50].repeat(2, 0).repeat(2, 1)).save(tmp_path / "large.png")
    with pytest.raises(fds.Error, match="16"):
        ex.explain(tmp_path / "large.png")
    assert ex.explain(tmp_path / "large.png", resize=True).values == pytest.approx(ex.explain(X[50:51]).values, abs=0.02)


def test_threads_do_not_disturb_each_other(fitted, blobs):
    X, y, Xtest, ytest = blobs
    expected = fitted.explain(Xtest).values
    alone = fds.value(X[:8], y[:8], Xtest, ytest, model="logistic", coalitions=60, n_jobs=1).values
    found, failed = [], []

    def work():
        try:
            for _ in range(5):
                found.append(fitted.explain(Xtest).values)
            assert (fds.value(X[:8], y[:8], Xtest, ytest, model="logistic", coalitions=60, n_jobs=1).values == alone).all()
        except BaseException as why:
            failed.append(why)

    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and len(found) == 15 and all((v == expected).all() for v in found)


def test_a_call_releases_the_gil(blobs):
    X, y, Xtest, ytest = blobs
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1
            stop.wait(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    fds.value(X[:30], y[:30], Xtest, ytest, model="mlp", coalitions=400, n_jobs=1)
    stop.set()
    thread.join()
    assert ticks[0] > 5  # on a busy machine too; if the call held it, none


EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_example_of_the_page_runs(tmp_path):
    """The first program of docs/python.md, with fewer samples and coalitions."""
    text = EXAMPLE.read_text().split("```python\n")[1].split("```")[0]
    small = {"train_size=200": "train_size=20", "coalitions=4000": "coalitions=40", "Xr[:1000]": "Xr[:60]",
             "max_iter=500": "max_iter=20", "n_jobs=2": "n_jobs=1", "Xt, yt, Xr, yr,": "Xt, yt, Xr[:50], yr[:50],",
             'method="banzhaf"': 'method="banzhaf", coalitions=60'}
    for old, new in small.items():
        assert old in text
        text = text.replace(old, new)
    text = "import warnings; warnings.simplefilter('ignore')\n" + text
    (tmp_path / "example.py").write_text(text)
    done = subprocess.run([sys.executable, "-W", "ignore", "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "share" in done.stdout and (tmp_path / "digits.run" / "run.json").exists()
