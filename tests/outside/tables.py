#!/usr/bin/python3
"""The features that fds makes of a table of numbers and text are those of a scikit-learn pipeline.

Usage: tests/outside/tables.py LIBFDS     (the shared library; prints TAP)
"""
import ctypes
import os
import sys
import tempfile

try:
    import numpy as np
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder
except ImportError as missing:
    print(f"1..0 # SKIP {missing}")
    sys.exit(0)


class Shape(ctypes.Structure):
    _fields_ = [("channels", ctypes.c_uint32), ("height", ctypes.c_uint32), ("width", ctypes.c_uint32)]


def load(path):
    lib = ctypes.CDLL(path)
    for name, result in (("fds_params_create", ctypes.c_void_p), ("fds_dataset_count", ctypes.c_size_t),
                         ("fds_dataset_shape", Shape), ("fds_dataset_feature_name", ctypes.c_char_p)):
        getattr(lib, name).restype = result
    return lib


def features(lib, folder):
    """(training features, test features, names)."""
    params = ctypes.c_void_p(lib.fds_params_create(b"show"))
    parts = [ctypes.c_void_p(), ctypes.c_void_p()]
    status = lib.fds_data_open(folder.encode(), params, None, ctypes.byref(parts[0]), ctypes.byref(parts[1]), None)
    assert status == 0, f"fds_data_open: {status}"
    out = []
    for part in parts:
        count, size = lib.fds_dataset_count(part), lib.fds_dataset_shape(part).channels
        values = np.empty((count, size), np.float32)
        for i in range(count):
            lib.fds_dataset_sample(part, ctypes.c_size_t(i), values[i].ctypes.data_as(ctypes.c_void_p))
        out.append(values)
    names = [lib.fds_dataset_feature_name(parts[0], ctypes.c_size_t(f)).decode() for f in range(out[0].shape[1])]
    for part in parts:
        lib.fds_dataset_free(part)
    lib.fds_params_free(params)
    return out[0], out[1], names


def make_table(rng, rows, with_news):
    """Numbers with holes, a text of few levels, one of many rare levels."""
    cities = [f"city {k}" for k in range(60)]
    weights = 1 / np.arange(1, 61) ** 1.5
    table = pd.DataFrame({
        "age": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(18, 90, rows)),
        "colour": rng.choice(["red", "green", "blau"], rows),
        "city": rng.choice(cities, rows, p=weights / weights.sum()),
        "income": rng.normal(1000, 300, rows).round(2),
        "label": rng.choice(["yes", "no"], rows)})
    if with_news:
        table.loc[0, "city"] = "a new city"
        table.loc[1, "colour"] = "a new colour"
    return table


def pipeline():
    levels = OneHotEncoder(min_frequency=0.01, handle_unknown="infrequent_if_exist", sparse_output=False)
    return ColumnTransformer([("age", SimpleImputer(strategy="mean", add_indicator=True), ["age"]),
                              ("text", levels, ["colour", "city"]),
                              ("income", "passthrough", ["income"])])


def main():
    lib = load(sys.argv[1])
    print("1..3")
    for case, (separator, decimal) in enumerate(((",", "."), (";", ","), ("\t", "."))):
        rng = np.random.default_rng(case)
        train, test = make_table(rng, 800, False), make_table(rng, 50, True)
        with tempfile.TemporaryDirectory() as folder:
            for name, table in (("train", train), ("test", test)):
                table.to_csv(os.path.join(folder, f"{name}.csv"), sep=separator, decimal=decimal, index=False)
            x, tx, names = features(lib, folder)
        prepare = pipeline()
        wanted, test_wanted = prepare.fit_transform(train), prepare.transform(test)
        same = (x.shape == wanted.shape and np.allclose(x, wanted, rtol=1e-6) and np.allclose(tx, test_wanted, rtol=1e-6))
        rest = "" if same else f" # {x.shape} {wanted.shape} {names}"
        print(f"{'ok' if same else 'not ok'} {case + 1} - {x.shape[1]} features of {len(x)} rows, separator {separator!r}"
              f"{rest}")


if __name__ == "__main__":
    main()
