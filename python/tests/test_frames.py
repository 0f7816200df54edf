# SPDX-License-Identifier: Apache-2.0
"""DataFrames: prepared as the command prepares CSV files."""
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

import fds


@pytest.fixture(scope="module")
def shops():
    """Text, numbers with holes, booleans, categories, an index; labels and owners."""
    rng = np.random.default_rng(1)
    n = 90
    frame = pd.DataFrame({
        "price": rng.normal(10, 3, n).round(2), "colour": rng.choice(["red", "green", "blue, dark", "ä\"q\""], n),
        "weight": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), "new": rng.random(n) < 0.5,
        "size": pd.Categorical(rng.choice(["S", "M", "L"], n)), "stars": pd.Categorical(rng.integers(1, 4, n)),
    }, index=[f"order {i}" for i in range(n)])
    labels = np.where(frame["price"] + rng.normal(size=n) > 10, "kept", "returned")
    return frame, labels, rng.choice(["Nord", "Süd", "Ost", "West"], n)


def test_features_are_those_of_scikit_learn(shops):
    frame, labels, _ = shops
    data = fds.Dataset(frame, labels)
    levels = OneHotEncoder(min_frequency=0.01, sparse_output=False).fit_transform(frame[["colour", "size", "stars"]].astype(str))
    filled = frame["weight"].astype(np.float32).fillna(frame["weight"].astype(np.float32).mean())
    expected = np.column_stack([frame["price"], levels[:, :4], filled, frame["weight"].isna(), frame["new"],
                                levels[:, 4:]])
    assert data.features[:2] == ["price", "colour=blue, dark"] and len(data.features) == 14
    assert data.X == pytest.approx(expected.astype(np.float32), abs=1e-6)
    assert data.y.tolist() == labels.tolist()


def test_a_frame_gives_what_the_command_reads(shops, tmp_path):
    frame, labels, _ = shops
    plain = frame.drop(columns=["new", "stars"])
    plain.assign(label=labels).to_csv(tmp_path / "table.csv", index=False)
    theirs, _ = fds.open_data(tmp_path / "table.csv")
    ours = fds.Dataset(plain, labels)
    assert ours.features == theirs.features and (ours.X == theirs.X).all()


def test_rows_are_named_by_the_index(shops):
    frame, labels, _ = shops
    found = fds.value(frame[:20], labels[:20], frame[60:], labels[60:], method="knn:3")
    assert found.names.tolist() == [f"order {i}" for i in range(20)]


def test_an_index_that_counts_names_nothing(shops):
    frame, labels, _ = shops
    found = fds.value(frame[:20].reset_index(drop=True), labels[:20], frame[60:], labels[60:], method="knn:3")
    assert found.names[3] == "sample 3"
    shuffled = frame[:20].reset_index(drop=True).iloc[::-1]
    assert fds.value(shuffled, labels[:20], frame[60:], labels[60:], method="knn:3").names[0] == "19"


def test_columns_are_named_instead_of_values(shops):
    frame, labels, owners = shops
    whole = frame.assign(kind=labels, shop=owners)
    by_name = fds.value(whole[:40], "kind", whole[60:], method="loo", model="logistic", providers="shop")
    by_value = fds.value(frame[:40], labels[:40], frame[60:], labels[60:], method="loo", model="logistic",
                         providers=owners[:40])
    assert by_name.names.tolist() == ["Nord", "Ost", "Süd", "West"]
    assert (by_name.values == by_value.values).all()


def test_a_wrong_column_is_told_with_the_nearest(shops):
    frame, labels, _ = shops
    with pytest.raises(fds.UsageError, match="did you mean 'colour'"):
        fds.value(frame, "color", method="knn:1")
    with pytest.raises(fds.ShapeError, match="lacks the column 'price'"):
        fds.value(frame[:20], labels[:20], frame[20:].drop(columns="price"), labels[20:], method="knn:1")
    with pytest.raises(fds.UsageError, match="must be one too"):
        fds.value(frame[:20], labels[:20], np.zeros((3, 4)), labels[:3], method="knn:1")
    with pytest.raises(fds.FormatError, match="several columns named 'a'"):
        fds.Dataset(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [0, 1])


def test_columns_may_come_in_another_order(shops):
    frame, labels, _ = shops
    one, other = (fds.value(frame[:20], labels[:20], rest, labels[20:], method="knn:3")
                  for rest in (frame[20:], frame[20:][frame.columns[::-1]]))
    assert (one.values == other.values).all()


def test_missing_values_are_dropped_or_refused(shops):
    frame, labels, owners = shops
    kept = frame["weight"].notna().to_numpy()
    dropped = fds.value(frame[:40], labels[:40], frame[40:], labels[40:], method="knn:3", missing="drop")
    assert dropped.names.tolist() == frame.index[:40][kept[:40]].tolist()
    with pytest.raises(fds.FormatError, match="weight"):
        fds.value(frame[:40], labels[:40], frame[40:], labels[40:], method="knn:3", missing="error")


def test_numbers_may_be_levels(shops):
    frame, labels, _ = shops
    numbers = pd.DataFrame({"a": np.arange(90) % 3, "b": frame["price"].to_numpy()})
    found = fds.value(numbers[:40], labels[:40], numbers[40:], labels[40:], method="ls", model="logistic",
                      coalitions=80, categorical="a")
    assert found.about["game"]["parameters"]["shape"] == [4, 1, 1]


def test_dates_are_refused(shops):
    frame, labels, _ = shops
    with pytest.raises(fds.Error, match="day"):
        fds.Dataset(frame[["price"]].assign(day=pd.Timestamp("2024-01-02")), labels)


def test_nullable_types_of_pandas(shops):
    _, labels, _ = shops
    frame = pd.DataFrame({"a": pd.array([1, None, 3] * 30, dtype="Int64"), "b": pd.array(["x", "y", None] * 30,
                                                                                      dtype="string")})
    data = fds.Dataset(frame, labels)
    assert data.features[:2] == ["a", "a=missing"] and data.X[1, 0] == 2 and data.X[1, 1] == 1


def test_series_are_labels_and_owners(shops):
    frame, labels, owners = shops
    found = fds.value(frame[:40], pd.Series(labels[:40]), frame[40:], pd.Series(labels[40:], dtype="category"),
                      method="loo", model="logistic", providers=pd.Series(owners[:40]))
    assert len(found) == 4


def test_new_rows_are_prepared_as_those_of_the_fit(shops, tmp_path):
    frame, labels, owners = shops
    ex = fds.Explainer("logistic", coalitions=30, random_state=0, run=tmp_path / "run")
    ex.fit(frame[:40], labels[:40], inputs=frame[40:80], providers=owners[:40])
    new = frame[80:].copy()
    new.iloc[0, 1] = "never seen"
    v = ex.explain(new)
    assert v.inputs.tolist() == new.index.tolist() and v.truth.tolist() == [None] * 10
    again = fds.Run(tmp_path / "run").explain(new[new.columns[::-1]])
    assert (v.values == again.values).all()
    with pytest.raises(fds.Error, match="price"):
        ex.explain(new.drop(columns="price"))


def test_a_model_of_ones_own_sees_the_prepared_features(shops):
    from reference import Checking
    frame, labels, _ = shops
    model = Checking(shape=(fds.Dataset(frame[:12], labels[:12]).X.shape[1],), labels=("kept", "returned"))
    found = fds.value(frame[:12], labels[:12], frame[60:70], labels[60:70], model=model, method="loo", n_jobs=1)
    assert np.isfinite(found.values).all()
