# SPDX-License-Identifier: Apache-2.0
"""Values against their definitions: enumeration of all coalitions, the recursion of Jia et al."""
import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import fds
from reference import Centroids, banzhaf, beta_shapley, games, knn_shapley, semivalue, shapley

PLAYERS = 7


@pytest.fixture(scope="module")
def small(blobs):
    X, y, Xtest, ytest = blobs
    return X[:PLAYERS], y[:PLAYERS], Xtest[:15], ytest[:15]


@pytest.fixture(scope="module")
def logistic(small, tmp_path_factory):
    """All coalitions by scikit-learn: our games, and the table of the library."""
    return games(LogisticRegression, *small), tmp_path_factory.mktemp("logistic") / "table"


def value(small, logistic, **how):
    return fds.value(*small, model=LogisticRegression(), table=logistic[1], random_state=3, n_jobs=1, **how)


def test_exact_values_are_those_of_all_coalitions(small, logistic):
    found = value(small, logistic, method="exact")
    assert np.abs(found.values - shapley(logistic[0][1], PLAYERS)).max() < 1e-9
    assert found.exact and found.status == "exact" and (found.stderr == 0).all()
    assert found.full == pytest.approx(logistic[0][1][frozenset(range(PLAYERS))], abs=1e-9)
    assert found.empty == pytest.approx(logistic[0][1][frozenset()], abs=1e-9)


def test_exact_values_of_each_test_sample(small, logistic):
    found = value(small, logistic, method="exact", per_sample=True, target="true")
    truth = shapley(logistic[0][2], PLAYERS)
    assert np.abs(found.values - truth.T).max() < 1e-9
    assert (found.labels == small[3]).all() and (found.truth == small[3]).all()


def test_leave_one_out(small, logistic):
    found = value(small, logistic, method="loo", scorer="accuracy")
    whole = frozenset(range(PLAYERS))
    assert found.values == pytest.approx([logistic[0][0][whole] - logistic[0][0][whole - {i}] for i in whole], abs=1e-12)


def within(found, truth, sigmas=4.5):
    """Every value within some standard errors, and these are not so large that anything would be."""
    assert (np.abs(found.values - truth) <= sigmas * found.stderr + 1e-12).all()
    assert found.stderr.max() < 0.1
    assert np.corrcoef(found.values, truth)[0, 1] > 0.9


def test_truncated_monte_carlo(small, logistic):
    found = value(small, logistic, method="tmc", truncate=0, until=0, permutations=1500)
    within(found, shapley(logistic[0][0], PLAYERS))
    assert (found.counts == 1500).all() and found.status == "budget"
    assert found.variances == pytest.approx(found.stderr**2 * 1500)


def test_banzhaf(small, logistic):
    within(value(small, logistic, method="banzhaf", coalitions=4000), banzhaf(logistic[0][0], PLAYERS))


@pytest.mark.parametrize("a,b", [(1, 1), (1, 4), (4, 1), (1, 16)])
def test_beta_shapley(small, logistic, a, b):
    found = value(small, logistic, method=f"beta:{a},{b}", until=0, permutations=1500)
    within(found, beta_shapley(logistic[0][0], PLAYERS, a, b))


def test_least_squares_by_all_coalitions_are_exact(small, logistic):
    found = value(small, logistic, method="ls", adjust="none", coalitions=2**PLAYERS - 2)
    assert np.abs(found.values - shapley(logistic[0][1], PLAYERS)).max() < 1e-6


def test_the_scorer_of_confidence(small, logistic):
    found = value(small, logistic, method="tmc", scorer="confidence", truncate=0, until=0, permutations=1000)
    within(found, shapley(logistic[0][1], PLAYERS))


def test_group_testing_and_ame_agree_with_their_values(small, logistic):
    found = value(small, logistic, method="group-testing", coalitions=6000)
    assert (np.abs(found.values - shapley(logistic[0][0], PLAYERS)) <= 5 * found.stderr).all()


def test_providers_are_players(blobs):
    X, y, Xtest, ytest = blobs
    owners = np.array(["Ämter", "B, C", "d\"e", "f"])[np.arange(24) % 4]
    found = fds.value(X[:24], y[:24], Xtest[:10], ytest[:10], model=GaussianNB(), method="exact", providers=owners,
                      n_jobs=1)
    truth = shapley(games(GaussianNB, X[:24], y[:24], Xtest[:10], ytest[:10], owners)[1], 4)
    assert found.names.tolist() == sorted(set(owners)) and (found.providers == found.names).all()
    assert np.abs(found.values - truth).max() < 1e-9
    assert (found.sizes == 6).all()


def test_classes_missing_from_coalitions_have_probability_zero(blobs):
    X, y, Xtest, ytest = blobs
    few = np.array([0, 1, 3, 4, 6])  # of the classes 0, 1, 0, 1, 0; the test samples have 2 as well
    found = fds.value(X[few], y[few], Xtest[:9], ytest[:9], model=Centroids(), method="exact", n_jobs=1)
    game = {}
    for s in itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in range(6)):
        p = np.zeros((9, 3))
        members = few[list(s)]
        if not len(s):
            p += [0.6, 0.4, 0]
        elif len(set(y[members])) == 1:
            p[:, y[members[0]]] = 1
        else:
            p[:, :2] = Centroids().fit(X[members], y[members]).predict_proba(Xtest[:9])
        game[frozenset(s)] = p.astype(np.float32)[np.arange(9), ytest[:9]].astype(float).mean()
    assert np.abs(found.values - shapley(game, 5)).max() < 1e-9


@pytest.mark.parametrize("k", [1, 3, 5, 60])
def test_nearest_neighbours(blobs, k):
    X, y, Xtest, ytest = blobs
    found = fds.value(X, y, Xtest, ytest, method=f"knn:{k}")
    assert np.abs(found.values - knn_shapley(X, y, Xtest, ytest, k)).max() < 1e-9
    assert found.exact


def test_nearest_neighbours_of_each_test_sample(blobs):
    X, y, Xtest, ytest = blobs
    found = fds.value(X, y, Xtest[:5], ytest[:5], method="knn:3", per_sample=True, target="true")
    for j in range(5):
        assert np.abs(found[j].values - knn_shapley(X, y, Xtest[j:j + 1], ytest[j:j + 1], 3)).max() < 1e-9


def test_a_semivalue_of_a_linear_game_is_its_weights():
    weights = np.array([1.0, -2, 3])
    game = {frozenset(s): weights[list(s)].sum() for s in itertools.chain.from_iterable(
        itertools.combinations(range(3), k) for k in range(4))}
    for found in (shapley(game, 3), banzhaf(game, 3), beta_shapley(game, 3, 1, 4), semivalue(game, 3, lambda s: 0.25)):
        assert found == pytest.approx(weights)


@pytest.mark.parametrize("method", ["ls", "exact", "tmc", "banzhaf", "loo", "knn:3"])
def test_the_same_seed_gives_the_same_bits(blobs, method):
    X, y, Xtest, ytest = blobs
    how = {"coalitions": 60} if method in ("ls", "banzhaf") else {"permutations": 30} if method == "tmc" else {}
    model = None if method == "knn:3" else "logistic"
    first, second = (fds.value(X[:8], y[:8], Xtest, ytest, model=model, method=method, random_state=5, n_jobs=jobs,
                               **how) for jobs in (1, 2))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.stderr.tobytes() == second.stderr.tobytes()


def test_another_seed_gives_other_values(blobs):
    X, y, Xtest, ytest = blobs
    one, other = (fds.value(X[:8], y[:8], Xtest, ytest, model="logistic", coalitions=60, random_state=s) for s in (1, 2))
    assert (one.values != other.values).any()


def test_a_table_is_used_by_other_methods(blobs, tmp_path):
    X, y, Xtest, ytest = blobs
    how = dict(model="logistic", random_state=0, table=tmp_path / "t")
    fds.value(X[:8], y[:8], Xtest, ytest, method="exact", **how)
    found = fds.value(X[:8], y[:8], Xtest, ytest, method="loo", **how)
    assert found.about["baseline"]["found"]["trained"] == 0


def test_a_table_of_other_data_is_refused(blobs, tmp_path):
    X, y, Xtest, ytest = blobs
    fds.value(X[:8], y[:8], Xtest, ytest, model="logistic", method="loo", table=tmp_path / "t")
    with pytest.raises(fds.ConflictError):
        fds.value(X[1:9], y[1:9], Xtest, ytest, model="logistic", method="loo", table=tmp_path / "t")


def test_values_without_test_samples_set_some_aside(blobs):
    X, y, _, _ = blobs
    found = fds.value(X, y, model="logistic", coalitions=200)
    assert len(found.names) == 48 and found.about["tests_set_aside"]


def test_values_of_files(tmp_path, blobs):
    X, y, Xtest, ytest = blobs
    for name, samples, labels in (("train", X[:9], y[:9]), ("test", Xtest, ytest)):
        np.save(tmp_path / f"x_{name}.npy", samples)
        np.save(tmp_path / f"y_{name}.npy", labels)
    from_files = fds.value(tmp_path, method="knn:3", players="all", test=60)
    assert from_files.values == pytest.approx(fds.value(X[:9], y[:9], Xtest, ytest, method="knn:3").values, abs=1e-12)


def test_methods_are_listed():
    assert {"ls", "exact", "tmc", "loo"} <= set(fds.methods())
    assert all(fds.methods().values())


@pytest.mark.parametrize("how,text", [
    (dict(method="tcm"), "did you mean \"tmc\""), (dict(coaltions=5), "did you mean `coalitions`"),
    (dict(coalitions=0), "`coalitions` must be"), (dict(method="exact", coalitions=10), "coalitions"),
    (dict(model=5), "fit and predict_proba"), (dict(model=LogisticRegression), "give an object"),
    (dict(random_state=-1), "`random_state`"), (dict(random_state="x"), "`random_state`"), (dict(n_jobs=0), "`n_jobs`"),
    (dict(method="knn:0"), "knn"), (dict(model="lenet6"), "lenet"), 
    (dict(method="beta:0,1"), "beta"), (dict(sampler="levrage"), "leverage"),
])
def test_wrong_parameters_are_refused_with_advice(blobs, how, text):
    X, y, Xtest, ytest = blobs
    with pytest.raises(fds.UsageError) as caught:
        fds.value(X[:8], y[:8], Xtest, ytest, **{"model": "logistic", **how})
    assert text in str(caught.value)


def test_mistakes_are_told_before_any_work(blobs):
    X, y, _, _ = blobs
    with pytest.raises(fds.UsageError, match="`coalitions`"):
        fds.value("no-such-file.csv", coalitions=1, model="logistic")
    with pytest.raises(fds.NotFoundError):
        fds.value("no-such-file.csv", model="logistic")
