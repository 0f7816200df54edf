# SPDX-License-Identifier: Apache-2.0
"""Definitions in plain Python, for tests: games by enumeration, and models that workers can import quickly."""
import itertools
import math
import os
import random
import time

import numpy as np


# ---- games ----

def subsets(players):
    for size in range(len(players) + 1):
        yield from itertools.combinations(players, size)


def semivalue(game, n, weight):
    """sum over S of weight(|S|) (v(S + i) - v(S)), S without i; game: {frozenset: number or array}."""
    values = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        values.append(sum(weight(len(s)) * (game[frozenset(s) | {i}] - game[frozenset(s)]) for s in subsets(others)))
    return np.array(values)


def shapley(game, n):
    return semivalue(game, n, lambda s: 1 / (n * math.comb(n - 1, s)))


def banzhaf(game, n):
    return semivalue(game, n, lambda s: 0.5 ** (n - 1))


def beta_function(a, b):
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)


def beta_shapley(game, n, alpha, beta):
    """Kwon and Zou (2022): w(j) = n B(j + beta - 1, n - j + alpha) / B(alpha, beta), j = |S| + 1, as in pyDVL."""
    def weight(s):
        return beta_function(s + beta, n - s - 1 + alpha) / beta_function(alpha, beta)
    return semivalue(game, n, weight)


def knn_shapley(X, y, Xtest, ytest, k):
    """The recursion of Jia et al. (2019), mean over test samples; distances of normalised features."""
    mean, std = X.mean(0), X.std(0)
    A, B = (X - mean) / std, (Xtest - mean) / std
    n, total = len(X), np.zeros(len(X))
    for x, label in zip(B, ytest):
        order = np.argsort(((A - x) ** 2).sum(1), kind="stable")
        match = (y[order] == label).astype(float)
        s = np.zeros(n)
        s[n - 1] = match[n - 1] / k * min(k, n) / n
        for i in range(n - 2, -1, -1):
            s[i] = s[i + 1] + (match[i] - match[i + 1]) / k * min(k, i + 1) / (i + 1)
        total[order] += s
    return total / len(B)


def probabilities(make, X, y, Xtest, members, classes):
    """What a utility function of a model answers (docs/external.md), in single precision as it is stored."""
    if not len(members):
        prior = np.array([(y == c).mean() for c in classes])
        return np.tile(prior, (len(Xtest), 1)).astype(np.float32).astype(float)
    labels = y[list(members)]
    answer = np.zeros((len(Xtest), len(classes)))
    if len(set(labels)) == 1:
        answer[:, list(classes).index(labels[0])] = 1
    else:
        model = make().fit(X[list(members)], labels)
        answer[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(Xtest)
    return answer.astype(np.float32).astype(float)


def games(make, X, y, Xtest, ytest, owners=None):
    """The game of every score: {frozenset: number}. owners: of each sample, by default itself."""
    owners = np.arange(len(X)) if owners is None else np.asarray(owners)
    names, classes = np.unique(owners), np.unique(y)
    truth = np.searchsorted(classes, ytest)
    accuracy, confidence, single = {}, {}, {}
    for s in subsets(range(len(names))):
        p = probabilities(make, X, y, Xtest, np.flatnonzero(np.isin(owners, names[list(s)])), classes)
        accuracy[frozenset(s)] = float((p.argmax(1) == truth).mean())
        single[frozenset(s)] = p[np.arange(len(p)), truth]
        confidence[frozenset(s)] = float(single[frozenset(s)].mean())
    return accuracy, confidence, single


# ---- models ----

class Centroids:
    """Softmax of minus the squared distances to the means of the classes. Quick to import and to fit, but for
    FDS_TEST_PAUSE in the environment, seconds, which make no other model of it."""

    def __init__(self, scale=1.0, pause=0.0):
        self.scale, self.pause = scale, pause

    def fit(self, X, y):
        X = np.asarray(X, dtype=float).reshape(len(X), -1)
        self.classes_ = np.unique(y)
        self.means = np.array([X[y == c].mean(0) for c in self.classes_])
        time.sleep(self.pause or float(os.environ.get("FDS_TEST_PAUSE", "0")))
        return self

    def predict_proba(self, X):
        X = np.asarray(X, dtype=float).reshape(len(X), -1)
        d = -self.scale * ((X[:, None] - self.means[None]) ** 2).sum(2)
        e = np.exp(d - d.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)


class Predictor(Centroids):
    """The same without probabilities."""

    def predict(self, X):
        return self.classes_[super().predict_proba(X).argmax(1)]

    predict_proba = property()


class Silent(Centroids):
    """Tells no classes: all columns, in order, are of the classes 0, 1 and 2."""

    def predict_proba(self, X):
        found = np.full((len(X), 3), 0.01)
        found[:, self.classes_.astype(int)] = super().predict_proba(X)
        self.__dict__.pop("classes_")
        return found / found.sum(1, keepdims=True)


class Failing(Centroids):
    def fit(self, X, y):
        if len(X) == 5:
            raise RuntimeError("five are too many")
        return super().fit(X, y)


class Noisy(Centroids):
    def predict_proba(self, X):
        found = super().predict_proba(X) + int.from_bytes(os.urandom(2), "little") * 1e-6
        return found / found.sum(1, keepdims=True)


class Seeded(Centroids):
    """Uses the random numbers of NumPy and of Python."""

    def predict_proba(self, X):
        found = super().predict_proba(X) + np.random.rand() + random.random()
        return found / found.sum(1, keepdims=True)


class Nan(Centroids):
    def predict_proba(self, X):
        return super().predict_proba(X) * np.nan


class Suicidal(Centroids):
    """Kills its own process, once for each file that is there."""

    def __init__(self, flag=""):
        super().__init__()
        self.flag = flag

    def fit(self, X, y):
        if len(X) > 2 and os.path.exists(self.flag):
            os.unlink(self.flag)
            os.kill(os.getpid(), 9)
        return super().fit(X, y)


class Checking(Centroids):
    """Refuses samples and labels of another form than these."""

    def __init__(self, shape=(), dtype="float64", labels=()):
        super().__init__()
        self.shape, self.dtype, self.labels = shape, dtype, labels

    def fit(self, X, y):
        assert X.shape[1:] == tuple(self.shape), X.shape
        assert str(X.dtype) == self.dtype, X.dtype
        assert set(y.tolist()) <= set(self.labels), set(y.tolist())
        return super().fit(X, y)
