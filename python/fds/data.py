# SPDX-License-Identifier: Apache-2.0
"""Data for the library: arrays, tensors and DataFrames in, datasets out; and data sets by name or path."""
from __future__ import annotations

import contextlib
import csv
import ctypes as c
import os
import pathlib
import tempfile
from typing import Any, Iterator, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _lib
from ._call import READING, Call, Params, ProgressLike, check_names, quoted

PathLike = Union[str, "os.PathLike[str]"]
Array = npt.NDArray[Any]


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "iloc") and hasattr(data, "dtypes")


# ---- arrays ----

def to_array(data: Any, what: str) -> Array:
    """NumPy array of anything like one; tensors leave their device and their graph."""
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise _lib.UnsupportedError(f"{what} is a sparse matrix: give {what}.toarray()")
    if hasattr(data, "detach") and hasattr(data, "cpu"):
        data = data.detach().cpu().numpy()
    try:
        array = np.asarray(data)
    except ValueError as why:
        raise _lib.ShapeError(f"{what} is not an array: {why}") from None
    if array.dtype == object:
        kinds = sorted({type(item).__name__ for item in array.ravel()[:1000]})
        try:
            array = array.astype(np.float64) if what != "y" and "labels" not in what else np.array(array.tolist())
        except (TypeError, ValueError):
            raise _lib.FormatError(f"{what} has values of the types {', '.join(kinds)}: give numbers, or a "
                                   "DataFrame, whose text columns are prepared") from None
    return array


def check_values(values: Array, what: str) -> None:
    """Refuses NaN, infinity and what no 32-bit float holds, and says where it is."""
    bad = ~np.isfinite(values)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        number = values[place]
        name = "NaN" if np.isnan(number) else "infinity or too large for a 32-bit float"
        advice = ("; fill missing values first, or give a DataFrame, whose missing values are prepared"
                  if np.isnan(number) else "")
        raise _lib.FormatError(f"{what} has {name} at sample {place[0]}, position {place[1:]}{advice}")


def to_samples(data: Any, what: str = "X") -> Array:
    """(n, channels, height, width), or (n, features, 1, 1), C order; uint8 or float32."""
    array = to_array(data, what)
    if array.dtype.kind not in "fiub":
        raise _lib.FormatError(f"{what} has the type {array.dtype}: give numbers, or a DataFrame, whose text columns "
                               "are prepared")
    if array.ndim < 2 or array.ndim > 4:
        raise _lib.ShapeError(f"{what} has the shape {array.shape}: give (samples, features), (samples, height, "
                              "width) or (samples, channels, height, width)")
    if 0 in array.shape:
        raise _lib.ShapeError(f"{what} is empty: its shape is {array.shape}")
    array = arrange(array)
    if array.dtype != np.uint8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        check_values(array, what)
    return np.ascontiguousarray(array)


def is_channels_last(shape: Sequence[int]) -> bool:
    """(n, height, width, channels), as the reader of NPY files decides."""
    return len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3)


def arrange(array: Array) -> Array:
    if array.ndim == 2:
        return array[:, :, None, None]
    if array.ndim == 3:
        return array[:, None]
    return np.moveaxis(array, 3, 1) if is_channels_last(array.shape) else array


def one_per_sample(values: Any, count: int, what: str, noun: str) -> Array:
    """An array of one entry per sample."""
    if hasattr(values, "cat") and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = to_array(values, f"{what} (labels)" if what != "y" else what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise _lib.ShapeError(f"{what} has the shape {array.shape}: give one {noun} per sample, ({count},)")
    if len(array) != count:
        raise _lib.ShapeError(f"{what} has {len(array)} {noun}s for {count} samples")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise _lib.FormatError(f"{what} has NaN or infinity at sample {int(np.argmin(np.isfinite(array)))}")
    return array


def to_labels(labels: Any, count: int, what: str = "y") -> Array:
    """One label per sample: whole numbers, texts or booleans."""
    array = one_per_sample(labels, count, what, "label")
    if array.dtype.kind == "f":
        if not (array == np.round(array)).all():
            raise _lib.UnsupportedError(f"{what} has numbers such as {array[array != np.round(array)][0]}, which are no "
                                        "classes: give labels of classes; fds.value and fds.Explainer take numbers "
                                        "to predict with task=\"regression\"")
        array = array.astype(np.int64)
    if array.dtype.kind not in "iubUS":
        raise _lib.FormatError(f"{what} has the type {array.dtype}: labels are whole numbers, texts or booleans")
    array = array.astype(str) if array.dtype.kind == "S" else array
    if array.dtype.kind == "U":
        for i in np.flatnonzero(np.char.str_len(np.char.strip(array)) == 0):
            raise _lib.FormatError(f"{what} is missing at sample {i}: its label is an empty text")
    return array


# ---- regression: numbers to predict ----

NO_CLASSES: Array = np.empty(0)  # the classes of a regression; where labels have these, they are targets


def to_targets(targets: Any, count: int, what: str = "y") -> Array:
    """One finite number per sample."""
    array = one_per_sample(targets, count, what, "target")
    if array.dtype.kind not in "fiu":
        raise _lib.FormatError(f"{what} has the type {array.dtype}: a regression needs numbers to predict")
    return np.ascontiguousarray(array, np.float64)


def is_regression(task: Optional[str], X: Any, y: Any) -> bool:
    """Whether y has targets: as `task` says, else if it has numbers of which some are not whole."""
    if task not in (None, "classification", "regression"):
        raise _lib.UsageError(f"`task` must be \"classification\" or \"regression\" (got {task!r})")
    if isinstance(X, Dataset):
        if task is not None and (task == "regression") != X.is_regression:
            raise _lib.UsageError(f"`task` is {task}, but X is a Dataset with "
                                  f"{'targets' if X.is_regression else 'labels'}: give the task to fds.Dataset")
        return X.is_regression
    if task is not None or is_path(X):
        return task == "regression"
    if is_frame(X) and isinstance(y, str):
        y = X[y] if y in X.columns else None
    if y is None or hasattr(y, "cat"):
        return False
    array = to_array(y, "y")
    return array.dtype.kind == "f" and bool((np.isfinite(array) & (array != np.round(array))).any())


def to_classes(*labels: Array) -> Array:
    """All classes in order."""
    kinds = {"U" if array.dtype.kind == "U" else "i" for array in labels}
    if len(kinds) > 1:
        raise _lib.UsageError("the labels of training and test samples are of different types: texts and numbers")
    found: Array = np.unique(np.concatenate([np.unique(array) for array in labels]))
    return found


def to_names(values: Any, count: int, what: str) -> list[str]:
    """One text per sample."""
    array = np.asarray(values, dtype=object).ravel() if not isinstance(values, str) else np.array([values])
    if len(array) != count:
        raise _lib.ShapeError(f"{what} has {len(array)} entries for {count} samples")
    for i, value in enumerate(array):
        if value is None or value != value or not str(value).strip():
            raise _lib.FormatError(f"{what} is missing for sample {i}")
    return [str(value).strip() for value in array]


def label_name(label: Any) -> str:
    return str(label.item() if hasattr(label, "item") else label)


# ---- datasets ----

class Dataset:
    """Samples with labels, in the library's memory.

    `Dataset(X, y)` copies arrays, tensors or a DataFrame; `open_data` reads files. Most functions take arrays
    directly; a `Dataset` is for looking, and for data that many calls share.

    >>> data = fds.Dataset([[0.0, 1.0], [2.0, 3.0]], ["cat", "dog"], providers=["A", "B"])
    >>> len(data), data.shape, data.classes.tolist(), data.providers
    (2, (2,), ['cat', 'dog'], ['A', 'B'])

    With numbers to predict (`task="regression"`, or y has numbers that are not whole) `y` has these targets, and there
    are no classes.

    >>> fds.Dataset([[0.0, 1.0], [2.0, 3.0]], [0.5, 1.25]).y.tolist()
    [0.5, 1.25]
    """

    def __init__(self, X: Any, y: Any = None, *, providers: Any = None, names: Optional[Sequence[str]] = None,
                 classes: Any = None, task: Optional[str] = None) -> None:
        has_targets = is_regression(task if classes is None else "classification", X, y)
        if is_frame(X):
            with frame_files(X, y, providers=providers, names=names, has_targets=has_targets) as (path, how):
                self._adopt(_open(path, how, None)[0], how.classes)
            return
        samples = to_samples(X)
        count = len(samples)
        to_y = to_targets if has_targets else to_labels
        labels = np.zeros(count, np.int64) if y is None else to_y(y, count)
        self.classes: Array = (NO_CLASSES if has_targets else to_classes(labels) if classes is None
                               else np.asarray(classes))
        owners = None if providers is None else to_names(providers, count, "providers")
        self._handle = create(samples, labels, self.classes, owners,
                              None if names is None else to_names(names, count, "names"))

    def _adopt(self, handle: _lib.Handle, classes: Any = None) -> None:
        self._handle = handle
        if self.is_regression:
            self.classes = NO_CLASSES
            return
        names = [_lib.text(_lib.lib().fds_dataset_class_name(handle, i))
                 for i in range(_lib.lib().fds_dataset_classes(handle))]
        by_name = {} if classes is None else {label_name(label): label for label in classes}
        self.classes = restore_classes(names) if not by_name else np.array([by_name.get(n, n) for n in names])

    @classmethod
    def _of(cls, handle: _lib.Handle) -> Dataset:
        self = cls.__new__(cls)
        self._adopt(handle)
        return self

    def __len__(self) -> int:
        return int(_lib.lib().fds_dataset_count(self._handle))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a sample: (features,) or (channels, height, width)."""
        s = _lib.lib().fds_dataset_shape(self._handle)
        return (s.channels, s.height, s.width) if self.is_image else (s.channels,)

    @property
    def is_image(self) -> bool:
        return bool(_lib.lib().fds_dataset_is_image(self._handle))

    @property
    def is_regression(self) -> bool:
        """Whether `y` has numbers to predict instead of labels."""
        return bool(_lib.lib().fds_dataset_is_regression(self._handle))

    @property
    def source(self) -> str:
        """Where it was read from, or "memory"."""
        return _lib.text(_lib.lib().fds_dataset_source(self._handle))

    @property
    def providers(self) -> list[str]:
        """The names of all providers; none where the data names none."""
        count = _lib.lib().fds_dataset_providers(self._handle)
        return [_lib.text(_lib.lib().fds_dataset_provider_name(self._handle, i)) for i in range(count)]

    @property
    def features(self) -> Optional[list[str]]:
        """The names of the features of a table, as it was prepared; else None."""
        count = 0 if self.is_image else self.shape[0]
        names = [_lib.text_or_none(_lib.lib().fds_dataset_feature_name(self._handle, i)) for i in range(count)]
        return None if not names or names[0] is None else [name or "" for name in names]

    @property
    def X(self) -> Array:
        """The samples as float32 (bytes as 0 to 1), a copy."""
        out = np.empty((len(self), *self.shape), np.float32)
        for i in range(len(self)):
            _lib.lib().fds_dataset_sample(self._handle, i, out[i].ctypes.data)
        return out

    @property
    def y(self) -> Array:
        """The label of each sample; of a regression its target."""
        if self.is_regression:
            return np.array([_lib.lib().fds_dataset_target(self._handle, i) for i in range(len(self))])
        numbers = [_lib.lib().fds_dataset_label(self._handle, i) for i in range(len(self))]
        found: Array = self.classes[numbers]
        return found

    @property
    def owners(self) -> Optional[Array]:
        """The provider of each sample; None where the data names none."""
        names = self.providers
        if not names:
            return None
        return np.array([names[_lib.lib().fds_dataset_provider(self._handle, i)] for i in range(len(self))])

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        owners = f", {len(self.providers)} providers" if self.providers else ""
        kind = "regression" if self.is_regression else f"{len(self.classes)} classes"
        return f"Dataset({self.source}: {len(self)} samples of {shape}, {kind}{owners})"


def restore_classes(names: Sequence[str]) -> Array:
    """Classes of a file or a run: numbers if all of them are, else texts."""
    if names and all(name.isdecimal() and str(int(name)) == name for name in names):
        return np.array([int(name) for name in names])
    return np.array(list(names))


def create(samples: Array, labels: Array, classes: Array, providers: Optional[Sequence[str]],
           names: Optional[Sequence[str]]) -> _lib.Handle:
    """fds_dataset of arrays, which are copied. Without classes, labels are targets."""
    targets = np.ascontiguousarray(labels, np.float64) if not len(classes) else None
    if targets is not None:
        labels, classes = np.zeros(len(targets), np.int64), np.zeros(1, np.int64)
    if len(classes) > 65535:
        raise _lib.LimitError(f"{len(classes)} classes: at most 65535 are possible")
    numbers = np.searchsorted(classes, labels)
    if not (classes[np.minimum(numbers, len(classes) - 1)] == labels).all():
        unknown = [label for label in np.unique(labels) if label not in set(classes.tolist())]
        raise _lib.UsageError(f"label {label_name(unknown[0])!r} is not among the classes of the training samples")
    raw = np.ascontiguousarray(numbers, np.uint16)
    class_names = _lib.strings([label_name(label) for label in classes])
    owner_names, owner_of = np.unique(np.array(providers if providers is not None else []), return_inverse=True)
    owners, owner_list = np.ascontiguousarray(owner_of, np.uint32), _lib.strings([str(n) for n in owner_names])
    arrays = _lib.Arrays(count=len(samples), shape=_lib.Shape(*samples.shape[1:]), labels=raw.ctypes.data,
                         classes=len(classes), class_names=class_names)
    setattr(arrays, "bytes" if samples.dtype == np.uint8 else "floats", samples.ctypes.data)
    if providers is not None:
        arrays.providers, arrays.provider_count = owners.ctypes.data, len(owner_names)
        arrays.provider_names = owner_list
    made = _lib.Handle.make("fds_dataset_create", "fds_dataset_free", c.byref(arrays))
    if targets is not None:
        _lib.call("fds_dataset_set_targets", made, targets.ctypes.data)
    if names is not None:
        _lib.call("fds_dataset_name_samples", made, _lib.strings(names))
    return made


# ---- files ----

def _open(path: PathLike, how: Any, progress: ProgressLike) -> tuple[_lib.Handle, Optional[_lib.Handle]]:
    given = how.parameters if isinstance(how, Table) else how
    params = Params("show", given)
    train, test = c.c_void_p(), c.c_void_p()
    with Call(progress) as events:
        _lib.call("fds_data_open", _lib.encode(path), params, events, c.byref(train), c.byref(test))
    made = _lib.Handle(train, "fds_dataset_free")
    return made, _lib.Handle(test, "fds_dataset_free") if test.value else None


def open_data(where: PathLike, *, progress: ProgressLike = None,
              **reading: Any) -> tuple[Dataset, Optional[Dataset]]:
    """Opens data by the name of a fetched set ("mnist") or by path; returns (train, test), test or None.

    `reading` says how, as for the command: `label`, `provider`, `owners`, `id`, `drop`, `categorical`,
    `missing`, `sep`, `test_file`, `labels` (docs/data.md), and `task`: "regression" reads numbers to predict.
    """
    check_names(reading, READING | {"task"}, "open_data")
    train, test = _open(where, reading, progress)
    return Dataset._of(train), Dataset._of(test) if test else None


def get_data(name: str, *, source: Optional[PathLike] = None, progress: ProgressLike = None) -> pathlib.Path:
    """Fetches "mnist", "fashion-mnist" or "cifar10", checks it, and returns where it is now. `source`: a folder
    that has the files already."""
    out = c.create_string_buffer(4096)
    with Call(progress) as events:
        _lib.call("fds_data_get", name.encode(), _lib.encode(source), out, len(out), events)
    return pathlib.Path(os.fsdecode(out.value))


# ---- DataFrames: the library prepares them as it does CSV files ----

class Table:
    """How a written table is read."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {"label": "fds.label", "sep": "comma"}
        self.classes: Optional[Array] = None
        self.counts = (0, 0)  # of the rows of X, and of the inputs


def column_names(frame: Any) -> list[str]:
    names = [str(name) for name in frame.columns]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise _lib.FormatError(f"the DataFrame has several columns named {twice[0]!r}")
    return names


def frame_names(frame: Any) -> Optional[list[str]]:
    """The index of a DataFrame as names, unless it just counts the rows, or names two alike."""
    index = frame.index
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    names = [str(name) for name in index]
    return names if len(set(names)) == len(names) else None


def cell(value: Any) -> str:
    """A value as the reader of CSV files takes it; missing ones are empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def frame_columns(frame: Any) -> list[list[str]]:
    found = []
    for name in frame.columns:
        column = frame[name]
        values = column.astype(object).tolist() if hasattr(column, "astype") else list(column)
        found.append([cell(None if type(v).__name__ == "NAType" else v) for v in values])
    return found


def categorical_columns(frame: Any) -> list[str]:
    return [str(name) for name in frame.columns if type(frame[name].dtype).__name__ == "CategoricalDtype"]


def write_table(path: PathLike, frame: Any, extra: Sequence[tuple[str, Sequence[str]]]) -> None:
    columns = [*frame_columns(frame), *(list(values) for _, values in extra)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*column_names(frame), *(name for name, _ in extra)])
        writer.writerows(zip(*columns))


def take_column(frame: Any, given: Any, what: str) -> tuple[Any, Any]:
    """`given` may name a column: the frame without it, and its values."""
    if not isinstance(given, str):
        return frame, given
    if given not in frame.columns:
        import difflib
        near = difflib.get_close_matches(given, [str(n) for n in frame.columns], 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise _lib.UsageError(f"{what}: there is no column {given!r}{hint}; the columns are "
                              f"{', '.join(column_names(frame))}")
    return frame.drop(columns=[given]), frame[given].to_numpy()


class Part:
    """The rows of one frame: X, the inputs of an explainer, or test samples."""

    def __init__(self, what: str, frame: Any, labels: Any, owners: Any = None) -> None:
        self.what, self.frame, self.labels, self.owners = what, frame, labels, owners
        self.names: Optional[list[str]] = None

    def take_columns(self, label: Any, provider: Any) -> None:
        """Labels and owners that are columns leave the frame."""
        if not is_frame(self.frame):
            raise _lib.UsageError(f"X is a DataFrame, so {self.what} must be one too, with the same columns")
        column_names(self.frame)  # two of one name are refused
        is_first = self.what == "X"
        if isinstance(label, str) and (is_first or label in self.frame.columns):
            self.frame, self.labels = take_column(self.frame, label, "y")
        if isinstance(provider, str) and (is_first or provider in self.frame.columns):
            self.frame, owners = take_column(self.frame, provider, "providers")
            self.owners = owners if is_first else None

    def drop_missing(self) -> None:
        whole = self.frame.notna().all(axis=1).to_numpy()
        self.frame = self.frame[whole]
        for name in ("labels", "owners"):
            if getattr(self, name) is not None:
                setattr(self, name, np.asarray(getattr(self, name), dtype=object)[whole].tolist())

    def check(self, columns: list[Any], has_targets: bool) -> None:
        """Its columns in the order of X; one label or target per row."""
        if not len(self.frame):
            raise _lib.ShapeError(f"{self.what} has no rows")
        for name in columns:
            if name not in self.frame.columns:
                raise _lib.ShapeError(f"{self.what} lacks the column {name!r} of X")
        self.frame = self.frame[columns]
        self.names = frame_names(self.frame)
        if self.labels is not None:
            to_y = to_targets if has_targets else to_labels
            self.labels = to_y(np.asarray(self.labels), len(self.frame), "y" if self.what == "X" else self.what)


def frame_parts(parts: list[Part], y: Any, providers: Any, is_dropping: bool, has_targets: bool) -> None:
    """Checks the parts together; those without labels get one of them, as none will be read."""
    for part in parts:
        part.take_columns(y, providers)
        if is_dropping:
            part.drop_missing()
        part.check(list(parts[0].frame.columns), has_targets)
    if parts[0].labels is None:
        parts[0].labels = np.zeros(len(parts[0].frame), np.int64)
    first = parts[0].labels[0]
    if not has_targets:
        first = to_classes(*(part.labels for part in parts if part.labels is not None))[0]
    for part in parts:
        if part.labels is None:
            part.labels = np.full(len(part.frame), first)


def write_parts(path: PathLike, parts: list[Part], table: Table, with_names: bool) -> None:
    """Rows of one table: labels, and owners and names where they are known."""
    import pandas as pd
    extra = [("fds.label", [label_name(label) for part in parts for label in part.labels])]
    if parts[0].owners is not None:
        owners = to_names(parts[0].owners, len(parts[0].frame), "providers")
        extra.append(("fds.provider", owners + owners[:1] * sum(len(part.frame) for part in parts[1:])))
        table.parameters["provider"] = "fds.provider"
    if with_names:
        extra.append(("fds.id", [name for part in parts for name in (
            part.names or [f"{part.what} {i}" for i in range(len(part.frame))])]))
        table.parameters["id"] = "fds.id"
    write_table(path, pd.concat([part.frame for part in parts], ignore_index=True), extra)


@contextlib.contextmanager
def frame_files(X: Any, y: Any, *, Xtest: Any = None, ytest: Any = None, inputs: Any = None, inputs_y: Any = None,
                providers: Any = None, names: Any = None, reading: Optional[dict[str, Any]] = None,
                has_targets: bool = False) -> Iterator[tuple[str, Table]]:
    """Writes frames as tables that the library reads: the training rows, then the inputs of an explainer, in
    one file; test rows in another."""
    table, reading = Table(), dict(reading or {})
    first = [Part("X", X, None if isinstance(y, str) else y, providers)]
    first += [] if inputs is None else [Part("inputs", inputs, inputs_y)]
    tests = [] if Xtest is None else [Part("Xtest", Xtest, ytest)]
    is_dropping = reading.get("missing") == "drop"
    frame_parts(first + tests, y, providers, is_dropping, has_targets)
    if names is not None:
        first[0].names = to_names(names, len(first[0].frame), "names")
    if has_targets:
        table.parameters["task"] = "regression"
    else:
        table.classes = to_classes(*(part.labels for part in first + tests))
    table.counts = (len(first[0].frame), sum(len(part.frame) for part in first[1:]))
    listed = reading.pop("categorical", None)
    levels = [listed] if isinstance(listed, str) else [quoted(str(name)) for name in listed or []]
    levels += [quoted(name) for name in categorical_columns(first[0].frame) if quoted(name) not in levels]
    table.parameters.update({name: v for name, v in reading.items() if not (name == "missing" and is_dropping)})
    if levels and levels != ["auto"]:
        table.parameters["categorical"] = ",".join(levels)
    with tempfile.TemporaryDirectory(prefix="fds-table-") as folder:
        path, test_path = (os.path.join(folder, name) for name in ("train.csv", "test.csv"))
        write_parts(path, first, table, first[0].names is not None)
        if tests:
            write_parts(test_path, tests, table, first[0].names is not None)
            table.parameters["test_file"] = test_path
        yield path, table
