#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which rows of a table help a classifier, and which harm it: wrong labels have the lowest values.

    python3 examples/value.py
"""
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fds

if __name__ == "__main__":
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    train, test = order[:60], order[200:]
    labels = y[train].copy()
    wrong = rng.choice(60, 6, replace=False)
    labels[wrong] = 1 - labels[wrong]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    result = fds.value(X[train], labels, X[test], y[test], model=model, coalitions=400, random_state=0)
    print(result.sort(ascending=True)[:10].to_dataframe())
    print("flipped:", sorted(wrong.tolist()), "lowest:", sorted(result.sort(ascending=True).indices[:6].tolist()))
