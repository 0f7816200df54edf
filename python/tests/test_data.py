# SPDX-License-Identifier: Apache-2.0
"""Data of all kinds: what is taken, what is refused, and how that is told."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fds
from fds.data import arrange, to_samples

Y = [0, 1, 1]


@pytest.mark.parametrize("shape,expected", [
    ((3, 5), (3, 5, 1, 1)), ((3, 8, 6), (3, 1, 8, 6)), ((3, 2, 8, 6), (3, 2, 8, 6)), ((3, 8, 6, 3), (3, 3, 8, 6)),
    ((3, 3, 6, 3), (3, 3, 6, 3)), ((3, 8, 6, 1), (3, 1, 8, 6)), ((3, 1, 6, 1), (3, 1, 6, 1)),
])
def test_shapes_are_read_as_those_of_npy_files(shape, expected, tmp_path):
    X = np.arange(np.prod(shape)).reshape(shape).astype(np.float32)
    assert to_samples(X).shape == expected
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", np.array(Y))
    read, _ = fds.open_data(tmp_path / "x.npy")
    assert (read.X == fds.Dataset(X, Y).X).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint16,
                                   np.uint32, np.uint64, bool, ">f4", ">f8", ">i4"])
def test_numbers_of_any_type_keep_their_values(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    assert fds.Dataset(X, Y).X.tolist() == [[0, 1], [1, 0], [1, 1]]


def test_bytes_are_0_to_1():
    data = fds.Dataset(np.array([[0, 255], [51, 102], [1, 2]], np.uint8), Y)
    assert data.X[1].tolist() == pytest.approx([0.2, 0.4])


@settings(deadline=None, max_examples=40)
@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=6),
                  elements=st.floats(-1e6, 1e6, width=32)), st.randoms())
def test_any_memory_layout_gives_the_same_samples(X, chance):
    y = np.arange(len(X)) % 2
    axes = list(range(X.ndim))
    chance.shuffle(axes)
    strange = np.moveaxis(np.ascontiguousarray(np.moveaxis(X, range(X.ndim), axes)), axes, range(X.ndim))
    doubled = np.repeat(X, 2, axis=0)[::2]
    expected = fds.Dataset(np.ascontiguousarray(X), y).X
    assert (fds.Dataset(strange, y).X == expected).all()
    assert (fds.Dataset(doubled, y).X == expected).all()
    assert (fds.Dataset(np.asfortranarray(X), y).X == expected).all()
    assert expected.size == X.size and np.array_equal(np.sort(arrange(X), None), np.sort(expected, None))


def test_lists_are_arrays():
    assert fds.Dataset([[1, 2], [3, 4]], ["a", "b"]).X.tolist() == [[1, 2], [3, 4]]


def test_tensors():
    torch = pytest.importorskip("torch")
    X = torch.arange(6.0, requires_grad=True).reshape(3, 2)
    data = fds.Dataset(X, torch.tensor(Y))
    assert data.X.tolist() == [[0, 1], [2, 3], [4, 5]] and data.y.tolist() == Y


@pytest.mark.parametrize("y,classes", [
    ([2, 5, 5], [2, 5]), ([-1, 1, 1], [-1, 1]), (["no", "yes", "no"], ["no", "yes"]), ([True, False, True], [False, True]),
    ([1.0, 2.0, 1.0], [1, 2]), (["ü", "a b", "\"q\", ,"], ["\"q\", ,", "a b", "ü"]), ([b"x", b"y", b"x"], ["x", "y"]),
    (np.array([[0], [1], [0]]), [0, 1]), (np.array(["a", "b", "a"], dtype=object), ["a", "b"]),
    (np.array([3, 3, 3], np.uint8), [3]), ([10**12, 0, 0], [0, 10**12]),
])
def test_labels_of_any_kind_come_back(y, classes):
    data = fds.Dataset(np.eye(3), y)
    assert data.classes.tolist() == classes
    expected = [v.decode() if isinstance(v, bytes) else v for v in np.asarray(y).ravel().tolist()]
    assert data.y.tolist() == expected


def test_labels_of_results_are_the_users(blobs):
    X, y, Xtest, ytest = blobs
    words = np.array(["ä", "b", "c d"])
    found = fds.value(X[:9], words[y[:9]], Xtest[:4], words[ytest[:4]], method="knn:2", per_sample=True)
    assert found.truth.tolist() == words[ytest[:4]].tolist()
    assert found.player_labels.tolist() == words[y[:9]].tolist()
    numbers = fds.value(X[:9], y[:9] - 7, Xtest[:4], ytest[:4] - 7, method="knn:2", per_sample=True)
    assert numbers.truth.tolist() == (ytest[:4] - 7).tolist()
    assert (numbers.values == found.values).all()


@pytest.mark.parametrize("X,y,kind,text", [
    ([[1, np.nan], [2, 3], [4, 5]], Y, fds.FormatError, "NaN at sample 0, position (1, 0, 0)"),
    ([[1, 2], [np.inf, 3], [4, 5]], Y, fds.FormatError, "sample 1"),
    ([[1, 2], [1e300, 3], [4, 5]], Y, fds.FormatError, "too large for a 32-bit float"),
    ([[1, 2], [3, 4], [5, 6]], [0, 1], fds.ShapeError, "2 labels for 3 samples"),
    ([1, 2, 3], Y, fds.ShapeError, "(samples, features)"),
    (np.zeros((3, 2, 2, 2, 2)), Y, fds.ShapeError, "(samples, features)"),
    (np.zeros((0, 2)), [], fds.ShapeError, "empty"),
    (np.zeros((3, 0)), Y, fds.ShapeError, "empty"),
    ([["a", "b"], ["c", "d"], ["e", "f"]], Y, fds.FormatError, "DataFrame"),
    (np.array([[1, "a"], [2, "b"], [3, "c"]], dtype=object), Y, fds.FormatError, "DataFrame"),
    ([[1, 2], [3], [4, 5]], Y, fds.Error, ""),
    (np.zeros((3, 2), complex), Y, fds.FormatError, "complex"),
    (np.zeros((3, 2), "datetime64[s]"), Y, fds.FormatError, "datetime64"),
    (np.eye(3), [np.nan, 1, 2], fds.FormatError, "NaN"),
    (np.eye(3), [None, 1, 2], fds.Error, ""),
    (np.eye(3), np.zeros((3, 2)), fds.ShapeError, "one label per sample"),
    (np.eye(3), ["a", "", "b"], fds.FormatError, "missing at sample 1"),
    (np.eye(3), ["a", "x\0y", "b"], fds.FormatError, "zero character"),
    (np.eye(3), ["a", "x\ny", "b"], fds.FormatError, "control"),
    (np.zeros((3, 70000, 2)), Y, fds.LimitError, ""),
])
def test_wrong_data_is_refused_with_the_place(X, y, kind, text):
    with pytest.raises(kind) as caught:
        fds.Dataset(X, y)
    assert text in str(caught.value)


def test_sparse_matrices_are_refused_with_advice():
    scipy = pytest.importorskip("scipy.sparse")
    with pytest.raises(fds.UnsupportedError, match="toarray"):
        fds.Dataset(scipy.eye(3).tocsr(), Y)


@pytest.mark.parametrize("providers,text", [
    (["A", "B"], "2 entries for 3"), (["A", None, "B"], "missing for sample 1"), (["A", np.nan, "B"], "missing for sample 1"),
    (["A", " ", "B"], "missing for sample 1"),
])
def test_wrong_providers_are_refused(providers, text):
    with pytest.raises(fds.Error) as caught:
        fds.value(np.eye(3), Y, np.eye(3), Y, method="loo", model="logistic", providers=providers)
    assert text in str(caught.value)


def test_names_are_those_of_the_rows(blobs):
    X, y, Xtest, ytest = blobs
    names = ["α", "b, c", "d\"e", "🙂", "e"]
    found = fds.value(X[:5], y[:5], Xtest, ytest, method="knn:2", names=names)
    assert found.names.tolist() == names
    assert found.to_dataframe().loc["🙂", "value"] == found.values[3]


def test_one_class_is_possible(blobs):
    X, _, Xtest, _ = blobs
    found = fds.value(X[:4], [1] * 4, Xtest[:3], [1] * 3, method="exact", model="logistic")
    assert found.values.tolist() == [0] * 4


def test_a_class_only_in_the_test_samples_counts(blobs):
    X, y, Xtest, _ = blobs
    found = fds.value(X[:4], [0, 1, 0, 1], Xtest[:3], [0, 1, 2], method="knn:2")
    assert len(found.classes) == 3


def test_test_samples_of_another_shape_are_refused(blobs):
    X, y, Xtest, ytest = blobs
    with pytest.raises(fds.ShapeError, match="Xtest"):
        fds.value(X, y, Xtest[:, :1], ytest, method="knn:1")
    with pytest.raises(fds.FormatError, match="uint8"):
        fds.value(X, y, np.zeros((4, 2), np.uint8), ytest[:4], method="knn:1")
    with pytest.raises(fds.UsageError, match="ytest"):
        fds.value(X, y, Xtest, method="knn:1")
    with pytest.raises(fds.UsageError, match="y is missing"):
        fds.value(X, method="knn:1")
    with pytest.raises(fds.UsageError, match="different types"):
        fds.value(X, y, Xtest, ytest.astype(str), method="knn:1")


def test_a_dataset_can_be_looked_at():
    data = fds.Dataset(np.zeros((3, 4, 5)), Y, providers=["B", "A", "B"], names=["x", "y", "z"])
    assert repr(data) == "Dataset(memory: 3 samples of 1 x 4 x 5, 2 classes, 2 providers)"
    assert data.owners.tolist() == ["B", "A", "B"] and data.features is None and data.is_image


def test_datasets_are_data(blobs):
    X, y, Xtest, ytest = blobs
    found = fds.value(fds.Dataset(X, y), Xtest=fds.Dataset(Xtest, ytest), method="knn:3", test=60)
    assert found.values == pytest.approx(fds.value(X, y, Xtest, ytest, method="knn:3").values, abs=1e-12)


def test_files_are_opened_as_by_the_command(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size;colour;kind\n1,5;red;a\n;blue;b\n2,5;red;a\n")
    train, test = fds.open_data(path, label="kind")
    assert test is None and train.features == ["size", "size=missing", "colour=blue", "colour=red"]
    assert train.X.tolist() == [[1.5, 0, 0, 1], [2, 1, 1, 0], [2.5, 0, 0, 1]]
    with pytest.raises(fds.UsageError, match="did you mean `label`"):
        fds.open_data(path, lable="kind")
    with pytest.raises(fds.NotFoundError):
        fds.open_data(tmp_path / "none.csv")


def test_a_known_set_is_checked(monkeypatch, tmp_path):
    monkeypatch.setenv("FDS_DATA", str(tmp_path))
    with pytest.raises(fds.Error):
        fds.get_data("mnist", source=tmp_path / "nothing")
    with pytest.raises(fds.Error):
        fds.get_data("minst")


def test_parameters_describe_themselves():
    names = {p.name: p for p in fds.parameters("fit")}
    assert names["coalitions"].type == "count" and "20 per player" in names["coalitions"].default
    assert "seed" not in names and "utility" not in names
    with pytest.raises(fds.UsageError):
        fds.parameters("fti")
