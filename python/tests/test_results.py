# SPDX-License-Identifier: Apache-2.0
"""Results: what they hold, slices, orders, other forms, plots."""
import io
import json
import pickle

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fds

matplotlib.use("agg")
reals = st.floats(-10, 10, allow_nan=False)


@pytest.fixture
def one():
    return fds.Result([0.5, -0.25, 0.0, 0.75], stderr=[0.1, 0.2, 0.3, 0.4], names=["b", "a", "d", "c"],
                      player_labels=[0, 1, 1, 0], providers=["P", "P", "Q", "Q"])


@pytest.fixture
def many():
    return fds.Result([[1.0, 2, 3], [4, 5, 7]], stderr=np.ones((2, 3)), inputs=["x", "y"], labels=[0, 1],
                      player_labels=[0, 1, 0])


def test_one_prediction_is_a_sequence_of_players(one):
    assert len(one) == 4 and one[0].name == "b" and one[-1].value == 0.75
    assert [v.index for v in one] == [0, 1, 2, 3]
    assert one[1].provider == "P" and one[1].label == 1 and one[1].stderr == 0.2 and one[1].count == 0
    assert one[:2].names.tolist() == ["b", "a"] and one[[3, 0]].names.tolist() == ["c", "b"]
    assert one[one.values > 0].names.tolist() == ["b", "c"]
    with pytest.raises(IndexError):
        one[4]
    with pytest.raises(IndexError):
        one[:0]


def test_several_predictions_are_a_sequence_of_results(many):
    assert len(many) == 2 and many.values.shape == (2, 3)
    assert many[1].values.tolist() == [4, 5, 7] and many[1].labels == 1 and many[1].inputs == "y"
    assert [v.inputs for v in many] == ["x", "y"]
    assert many[-1:].values.shape == (1, 3)
    assert many[np.array([True, False])].values.tolist() == [[1, 2, 3]]
    with pytest.raises(IndexError):
        many[2]


def test_sorting(one, many):
    assert one.sort().names.tolist() == ["c", "b", "d", "a"]
    assert one.sort(ascending=True).names.tolist() == ["a", "d", "b", "c"]
    assert one.sort("name").names.tolist() == ["a", "b", "c", "d"]
    assert one.sort("stderr").names.tolist() == ["c", "d", "a", "b"]
    assert one.sort().sort("index").names.tolist() == one.names.tolist()
    assert one.sort().indices.tolist() == [3, 0, 2, 1]
    assert many.sort().values.tolist() == [[3, 2, 1], [7, 5, 4]]
    assert one.names.tolist() == ["b", "a", "d", "c"]  # as it was
    with pytest.raises(fds.UsageError, match="by must be"):
        one.sort("size")


@settings(deadline=None, max_examples=50)
@given(st.lists(reals, min_size=1, max_size=30))
def test_sorting_and_slicing_keep_players_together(values):
    r = fds.Result(values, stderr=np.abs(values), names=[f"n{i}" for i in range(len(values))])
    s = r.sort()
    assert s.values.tolist() == sorted(values, reverse=True)
    for v in s:
        assert values[v.index] == v.value and v.name == f"n{v.index}" and v.stderr == abs(v.value)
    assert (s.sort("index").values == r.values).all()


def test_the_mean(many, one):
    assert many.mean().values.tolist() == [2.5, 3.5, 5] and np.isnan(many.mean().stderr).all()
    assert one.mean() is one


def test_frames(one, many):
    frame = one.to_dataframe()
    assert frame.index.tolist() == ["b", "a", "d", "c"] and frame.columns.tolist() == ["value", "stderr", "label", "provider"]
    assert frame.loc["c", "value"] == 0.75
    long = many.to_dataframe()
    assert long.shape == (6, 5) and long["input"].tolist() == ["x"] * 3 + ["y"] * 3
    shops = fds.Result([0.5, 0.25], names=["P", "Q"], providers=["P", "Q"], player_labels=[0, 1], sizes=[3, 4])
    assert shops.to_dataframe()["samples"].tolist() == [3, 4] and "label" not in shops.to_dataframe()
    assert one.to_dict() == {"b": 0.5, "a": -0.25, "d": 0.0, "c": 0.75}
    with pytest.raises(fds.UsageError, match="choose one"):
        many.to_dict()


def test_texts(one, many):
    assert repr(one).split("\n")[0] == "Result(4 players, method own, estimated)"
    assert repr(one).split("\n")[1] == "c   +0.750000  ± 0.400000"
    assert "mean over the predictions" in repr(many)
    html = fds.Result([1.0], names=["<b>"])._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html
    long = repr(fds.Result(np.arange(50.0)))
    assert "..." in long and len(long.split("\n")) == 12


def test_names_of_other_packages(one):
    assert one.algorithm == one.method and (one.data_values == one.values).all()
    assert np.isnan(one.variances).all() and one.counts.tolist() == [0] * 4


def test_to_shap_says_what_is_missing(one):
    try:
        import shap  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="shap"):
            one.to_shap()
    else:
        assert one.to_shap().values.tolist() == one.values.tolist()


def test_results_travel(one, many, fitted, blobs):
    for r in (one, many, fitted.explain(blobs[2][:2]), one[:2]):
        again = pickle.loads(pickle.dumps(r))
        assert (again.values == r.values).all() and again.names.tolist() == r.names.tolist()
        assert repr(again) == repr(r)


@pytest.mark.parametrize("end", ["csv", "json", "npy"])
def test_files(one, many, tmp_path, end):
    for r in (one, many):
        r.save(tmp_path / f"v.{end}")
        text = (tmp_path / f"v.{end}").read_bytes()
        if end == "npy":
            assert (np.load(io.BytesIO(text))[0] == np.atleast_2d(r.values)).all()
        elif end == "json":
            assert json.loads(text)["results"][0]["values"] == np.atleast_2d(r.values)[0].tolist()
        else:
            assert b"0.75" in text or r is many
    with pytest.raises(fds.UsageError):
        one.save(tmp_path / "v.txt")
    with pytest.raises(fds.UsageError, match="2 of 4 players"):
        one[:2].save(tmp_path / "w.csv")


@pytest.mark.parametrize("values,how,text", [
    ([], {}, "at least one"), ([[[1.0]]], {}, "shape"), ([1.0, 2], dict(names=["a"]), "names has 1"),
    ([1.0, 2], dict(stderr=[1.0]), "stderr has the shape"),
])
def test_wrong_results_are_refused(values, how, text):
    with pytest.raises(fds.ShapeError) as caught:
        fds.Result(values, **how)
    assert text in str(caught.value)


# ---- plots ----

def test_values_for_a_test_set_say_so(blobs):
    X, y, Xtest, ytest = blobs
    values = fds.value(X[:20], y[:20], Xtest, ytest, model="logistic", coalitions=40)
    assert values.plot_bar().get_title().startswith("all test samples: v = ")


def test_bars_are_the_greatest_values(one):
    ax = one.plot_bar(max_display=3)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == [0.75, 0.5, -0.25]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c  (0)", "b  (0)", "a  (1)"]
    assert "1 others are" in ax.get_xlabel()
    with pytest.raises(fds.UsageError, match="max_display"):
        one.plot_bar(max_display=0)


def test_a_waterfall_ends_at_the_full_value(fitted, blobs):
    v = fitted.explain(blobs[2][:1])[0]
    ax = v.plot_waterfall(max_display=5)
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert len(ax.patches) == 6 and ax.patches[0].get_x() == pytest.approx(v.empty)
    assert ends[-1] == pytest.approx(v.full, abs=1e-6)


def test_plots_need_one_prediction(many):
    with pytest.raises(fds.UsageError, match="choose one"):
        many.plot_bar()
    assert many[:1].plot_bar() is not None


def test_axes_may_be_given(one):
    import matplotlib.pyplot as plt
    _, ax = plt.subplots()
    assert one.plot_bar(ax=ax) is ax and one.plot_waterfall(ax=ax) is ax
    plt.close("all")


def test_a_contact_sheet_shows_pictures():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = (rng.random((80, 6, 6)) * 100 + 100 * y[:, None, None]).astype(np.uint8)
    ex = fds.Explainer("logistic", coalitions=60, random_state=0).fit(X[:10], y[:10], inputs=X[10:60])
    v = ex.explain(X[60:63])
    figure = v.plot_contact_sheet(columns=4)
    assert len(figure.axes) == 15
    assert np.allclose(figure.axes[0].images[0].get_array(), X[60] / 255)
    best = np.argmax(np.abs(v[0].values))
    shown = [ax.images[0].get_array() for ax in figure.axes[1:5]]
    assert any(np.allclose(picture, X[best] / 255) for picture in shown)
    assert len(v[0].plot_contact_sheet(columns=3).axes) == 4
    per_sample = fds.value(X[:10], y[:10], X[60:62], y[60:62], model="logistic", coalitions=60, per_sample=True)
    assert len(per_sample.plot_contact_sheet(columns=2).axes) == 6


def test_a_contact_sheet_needs_pictures(one):
    with pytest.raises(fds.UsageError, match="pictures"):
        one.plot_contact_sheet()


def test_a_removal_curve_is_the_accuracy_of_what_remains(blobs):
    from sklearn.naive_bayes import GaussianNB
    from fds.plots import removal_curve
    X, y, Xtest, ytest = blobs
    values = fds.value(X[:30], y[:30], Xtest, ytest, method="knn:3")
    shares, ours, chance = removal_curve(values.sort(), GaussianNB(), X[:30], y[:30], Xtest, ytest, None, 4, False)
    kept = np.sort(np.argsort(-values.values, kind="stable")[int(round(shares[2] * 30)):])
    expected = (GaussianNB().fit(X[kept], y[kept]).predict(Xtest) == ytest).mean()
    assert ours[2] == expected and ours[0] == chance[0] and len(shares) == 4
    ax = values.plot_removal(GaussianNB(), X[:30], y[:30], Xtest, ytest, steps=3, ascending=True)
    assert "least valuable first" in ax.get_legend().get_texts()[0].get_text()
    with pytest.raises(fds.ShapeError, match="providers"):
        values.plot_removal(GaussianNB(), X, y, Xtest, ytest)


def test_a_removal_curve_of_providers(blobs):
    from sklearn.naive_bayes import GaussianNB
    from fds.plots import removal_curve
    X, y, Xtest, ytest = blobs
    owners = np.array(["a", "b", "c", "d"])[np.arange(60) % 4]
    values = fds.Result([0.1, 0.4, 0.2, 0.3], names=["a", "b", "c", "d"])
    _, ours, _ = removal_curve(values.sort(), GaussianNB(), X, y, Xtest, ytest, owners, 2, True)
    kept = [np.ones(60, bool), owners == "b"]  # one player is never removed
    assert ours.tolist() == [(GaussianNB().fit(X[k], y[k]).predict(Xtest) == ytest).mean() for k in kept]
