# SPDX-License-Identifier: Apache-2.0
"""What all tests share. Ends with a line that .ci/run counts: `N passed, N failed`."""
import os

import hypothesis
import numpy as np
import pytest

import fds

hypothesis.settings.register_profile("fds", database=None, deadline=None)  # nothing is written beside the sources
hypothesis.settings.load_profile("fds")

os.environ.setdefault("FDS_COMMAND_FIRST_S", "120")  # a worker that hangs must not stop the tests for an hour
counts = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        counts[report.outcome] += 1


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput") and sum(counts.values()):
        skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
        print(f"\n{counts['passed']} passed, {counts['failed']} failed{skipped}")


@pytest.fixture(autouse=True)
def names_for_doctests(doctest_namespace):
    doctest_namespace.update(fds=fds, np=np)


@pytest.fixture(scope="session")
def blobs():
    """Three classes, overlapping a little: (X, y, Xtest, ytest), float32 values that are exact."""
    rng = np.random.default_rng(7)
    y = np.arange(120) % 3
    X = (rng.normal(size=(120, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y]).astype(np.float32).astype(float)
    return X[:60], y[:60], X[60:], y[60:]


@pytest.fixture(scope="session")
def fitted(blobs, tmp_path_factory):
    """An explainer of 12 players with a built-in network."""
    X, y, Xtest, ytest = blobs
    folder = tmp_path_factory.mktemp("fitted") / "blobs.run"
    return fds.Explainer("logistic", coalitions=200, random_state=0, run=folder, keep_models=True, n_jobs=1).fit(
        X[:12], y[:12], inputs=X[12:], Xtest=Xtest, ytest=ytest)
