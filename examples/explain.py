#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fits a run for twelve providers of digits, explains predictions, pays for them, and draws one.

    python3 examples/explain.py [FIGURE.png]
"""
import sys

import numpy as np
from sklearn.datasets import load_digits

import fds

if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 8, 8) / 16
    clinics = np.array([f"clinic {i % 12 + 1}" for i in range(240)])
    explainer = fds.Explainer("mlp", coalitions=400, random_state=0, run="clinics.run")
    explainer.fit(X[:240], y[:240], inputs=X[240:1200], providers=clinics)
    values = explainer.explain(X[1200:1210], y[1200:1210])
    print(values[0])
    print(fds.pay(values, amount="10.00", summary=True))
    if len(sys.argv) > 1:
        import matplotlib
        matplotlib.use("agg")
        values[0].plot_waterfall().figure.savefig(sys.argv[1])
