# SPDX-License-Identifier: Apache-2.0
"""Data of the user's as a problem of the library: players, test samples, inputs of an explainer."""
from __future__ import annotations

import ctypes as c
from typing import Any, Optional

import numpy as np

from . import _lib, models
from ._call import READING, Call, Params, ProgressLike
from .data import (NO_CLASSES, Array, Dataset, _open, create, frame_files, is_frame, is_path, restore_classes, to_array,
                   to_classes, to_labels, to_names, to_samples, to_targets)


class Problem:
    """fds_problem, with the data that it is about."""

    def __init__(self, handle: _lib.Handle, classes: Array, shape: tuple[int, ...], dtype: str,
                 pictures: Optional[Array] = None, tests: Optional[Array] = None) -> None:
        self.handle, self.classes, self.shape, self.dtype = handle, classes, shape, dtype
        self.pictures, self.tests = pictures, tests  # of the players and of the test samples, if they are images


def user_shape(data: Any) -> tuple[tuple[int, ...], str]:
    """Of a sample as the user has it, () for vectors, and the type that a model of the user's sees."""
    array = to_array(data, "X")
    dtype = {"float32": "float32", "uint8": "uint8"}.get(str(array.dtype), "float64")
    return () if array.ndim == 2 else tuple(array.shape[1:]), dtype


def join(parts: list[Array], what: list[str]) -> list[Array]:
    """The same kind of numbers in all; the same shape."""
    for part, name in zip(parts, what):
        if part.shape[1:] != parts[0].shape[1:]:
            raise _lib.ShapeError(f"samples of {name} have the shape {tuple(n for n in part.shape[1:])}, those of X "
                                  f"{tuple(n for n in parts[0].shape[1:])}")
    if len({part.dtype for part in parts}) > 1:
        raise _lib.FormatError("some of X, inputs and the test samples are uint8, which means 0 to 255, and others are "
                               "not: give all in one type")
    return parts


def groups_handle(groups: Any, count: int, by_provider: Optional[list[str]]) -> Optional[_lib.Handle]:
    """fds_groups of an array with the group of each sample, or of each player."""
    if groups is None or isinstance(groups, str):
        return None
    names = to_names(groups, len(np.asarray(groups, dtype=object)), "groups")
    players = len(set(by_provider)) if by_provider is not None else count
    if by_provider is not None and len(names) == len(by_provider):
        of: dict[str, str] = {}
        for owner, group in zip(by_provider, names):
            if of.setdefault(owner, group) != group:
                raise _lib.UsageError(f"groups: samples of provider {owner!r} are in two groups, {of[owner]!r} and "
                                      f"{group!r}")
        names = [of[owner] for owner in sorted(of)]
    if len(names) != players:
        raise _lib.ShapeError(f"groups has {len(names)} entries for {players} players")
    unique, numbers = np.unique(names, return_inverse=True)
    raw, texts = np.ascontiguousarray(numbers, np.uint32), _lib.strings([str(n) for n in unique])
    return _lib.Handle.make("fds_groups_create", "fds_groups_free", raw.ctypes.data, players, texts)


def select(train: _lib.Handle, test: Optional[_lib.Handle], players: int, inputs: int, params: Params,
           groups: Optional[_lib.Handle], progress: ProgressLike) -> _lib.Handle:
    """Samples 0 .. players-1 belong to players, the next ones are inputs."""
    mine = np.arange(players, dtype=np.uint32)
    theirs = np.arange(players, players + inputs, dtype=np.uint32)
    chosen = _lib.Selection(mine.ctypes.data, players, theirs.ctypes.data if inputs else None, inputs,
                            groups.pointer if groups else None)
    with Call(progress) as events:
        return _lib.Handle.make("fds_problem_select", "fds_problem_free", train,
                                test if test else None, c.byref(chosen), params, events,
                                keep=(train, test))


def choose(train: _lib.Handle, test: Optional[_lib.Handle], params: Params, progress: ProgressLike) -> _lib.Handle:
    """Players, tests and inputs as the parameters say."""
    with Call(progress) as events:
        return _lib.Handle.make("fds_problem_create", "fds_problem_free", train,
                                test if test else None, params, events, keep=(train, test))


def build(params: Params, given: dict[str, Any], X: Any, y: Any, *, Xtest: Any = None, ytest: Any = None,
          inputs: Any = None, inputs_y: Any = None, providers: Any = None, names: Any = None, groups: Any = None,
          is_fit: bool = False, progress: ProgressLike = None) -> Problem:
    """The problem of the user's data. given: the parameters that the user named; is_fit: an explainer needs inputs, else
    test samples are needed."""
    if is_path(X):
        if any(part is not None for part in (y, Xtest, providers, inputs, names)):
            raise _lib.UsageError("y, Xtest, inputs, providers and names belong to data in memory; for files, name `label`, "
                                  "`test_file`, `provider` and `id`, and give `inputs` as a number")
        return of_files(params, X, progress)
    if isinstance(X, Dataset):
        if any(part is not None for part in (y, ytest, providers, inputs, names)):
            raise _lib.UsageError("X is a Dataset, which has its labels, providers and names; give `inputs` as a number")
        return of_datasets(params, given, X, Xtest, progress)
    if providers is not None and given.get("players") is None:
        params.set("players", "providers")
    by_provider = params.get("players") == "providers"
    if by_provider and providers is None:
        raise _lib.UsageError("players=\"providers\" needs `providers`, one per row of X")
    if is_frame(X):
        return of_frames(params, given, X, y, Xtest, ytest, inputs, inputs_y, providers, names, groups, is_fit, progress)
    return of_arrays(params, given, X, y, Xtest, ytest, inputs, inputs_y, providers, names, groups, is_fit, progress)


def is_chosen(given: dict[str, Any], others: Any) -> bool:
    """Whether the library chooses players among the rows, or all rows are of players. others: the samples that a job
    needs besides those of players, if they are given."""
    return given.get("players") not in (None, "all", "providers") or others is None


def of_files(params: Params, where: Any, progress: ProgressLike) -> Problem:
    params.set("data", where)
    with Call(progress) as events:
        handle = _lib.Handle.make("fds_problem_open", "fds_problem_free", params, events)
    library = _lib.lib()
    train = _lib.lib().fds_problem_train(handle)
    if library.fds_dataset_is_regression(train):
        return Problem(handle, NO_CLASSES, (), "float64")
    names = [_lib.text(library.fds_dataset_class_name(train, i)) for i in range(library.fds_dataset_classes(train))]
    return Problem(handle, restore_classes(names), (), "float64")


def of_datasets(params: Params, given: dict[str, Any], train: Dataset, test: Any, progress: ProgressLike) -> Problem:
    if test is not None and not isinstance(test, Dataset):
        raise _lib.UsageError("X is a Dataset, so Xtest must be one too")
    if train.providers and given.get("players") is None:
        params.set("players", "providers")
    elif given.get("players") is None and given.get("inputs") is None:
        params.set("players", "all")
    handle = choose(train._handle, test._handle if test else None, params, progress)
    return Problem(handle, train.classes, (), "float64")


def of_arrays(params: Params, given: dict[str, Any], X: Any, y: Any, Xtest: Any, ytest: Any, inputs: Any,
              inputs_y: Any, providers: Any, names: Any, groups: Any, is_fit: bool, progress: ProgressLike) -> Problem:
    if y is None:
        raise _lib.UsageError("y is missing: the label of each sample")
    shape, dtype = user_shape(X)
    parts = {"X": to_samples(X)}
    has_targets = params.get("task") == "regression"
    to_y, noun = (to_targets, "targets") if has_targets else (to_labels, "labels")
    labels = {"X": to_y(y, len(parts["X"]))}
    for what, data, known in (("inputs", inputs, inputs_y), ("Xtest", Xtest, ytest)):
        if data is not None:
            parts[what] = to_samples(data, what)
            if known is not None:
                labels[what] = to_y(known, len(parts[what]), f"{what}'s {noun}")
    if Xtest is not None and ytest is None:
        raise _lib.UsageError("ytest is missing: the label of each test sample")
    join(list(parts.values()), list(parts))
    classes = NO_CLASSES if has_targets else to_classes(*labels.values())
    for what in parts:  # those of inputs are not read
        labels.setdefault(what, np.full(len(parts[what]), labels["X"].mean() if has_targets else classes[0]))
    count, extra = len(parts["X"]), len(parts["inputs"]) if "inputs" in parts else 0
    owners = None if providers is None else to_names(providers, count, "providers")
    called = None if names is None else to_names(names, count, "names")
    first = [what for what in ("X", "inputs") if what in parts]
    train = create(np.concatenate([parts[what] for what in first]),
                   np.concatenate([labels[what] for what in first]), classes,
                   None if owners is None else owners + owners[:1] * extra,
                   None if called is None else called + [f"input {i}" for i in range(extra)])
    test = create(parts["Xtest"], labels["Xtest"], classes, None, None) if "Xtest" in parts else None
    if is_chosen(given, inputs if is_fit else Xtest):
        if given.get("players") is None:
            params.set("players", "all")
        if groups is not None and not isinstance(groups, str):
            raise _lib.UsageError("groups as an array needs Xtest or inputs, so that every row is a player's")
        return Problem(choose(train, test, params, progress), classes, shape, dtype)
    handle = select(train, test, count, extra, params, groups_handle(groups, count, owners), progress)
    is_image = parts["X"].shape[2] > 1 or parts["X"].shape[3] > 1
    scale = 255.0 if dtype == "uint8" else 1.0
    pictures = parts["X"] / scale if is_image and owners is None else None
    return Problem(handle, classes, shape, dtype, pictures,
                   parts["Xtest"] / scale if is_image and "Xtest" in parts else None)


def of_frames(params: Params, given: dict[str, Any], X: Any, y: Any, Xtest: Any, ytest: Any, inputs: Any,
              inputs_y: Any, providers: Any, names: Any, groups: Any, is_fit: bool, progress: ProgressLike) -> Problem:
    if y is None:
        raise _lib.UsageError("y is missing: the label of each row, or the name of its column")
    reading = {name: given[name] for name in READING if given.get(name) is not None}
    with frame_files(X, y, Xtest=Xtest, ytest=ytest, inputs=inputs, inputs_y=inputs_y, providers=providers,
                     names=names, reading=reading, has_targets=params.get("task") == "regression") as (path, table):
        train, test = _open(path, table, progress)
        for name, value in table.parameters.items():
            params.set(name, value)
        data = Dataset.__new__(Dataset)
        data._adopt(train, table.classes)
        rows, extra = table.counts
        if is_chosen(given, inputs if is_fit else Xtest):
            if given.get("players") is None:
                params.set("players", "all")
            handle = choose(train, test, params, progress)
        else:
            owners = None if data.owners is None else data.owners.tolist()[:rows]
            handle = select(train, test, rows, extra, params, groups_handle(groups, rows, owners), progress)
    return Problem(handle, data.classes, (), "float64")


def announce_model(params: Params, model: Any, utility: Optional[str], has_targets: bool) -> None:
    """Gives a text of a network as `model`, and says that an object will answer, so that parameters can be checked
    before any data is read. The same for the task."""
    if has_targets:
        params.set("task", "regression")
    if utility is not None:
        params.set("utility", utility)
    if isinstance(model, str):
        params.set("model", model)
    elif model is not None:
        if utility is not None:
            raise _lib.UsageError("`model` is an object, which is the utility function: leave out `utility`")
        models.check_model(model, has_targets)
        params.set("utility", "command:model")


def set_model(params: Params, model: Any, problem_of: Any) -> Optional[str]:
    """Gives an object as `utility`, and returns that."""
    if model is None or isinstance(model, str):
        return None
    utility = models.command(model, problem_of.classes, problem_of.shape, problem_of.dtype)
    params.set("utility", utility)
    return utility
