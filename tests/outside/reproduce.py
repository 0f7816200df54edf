#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Plays the game of fds in another program, written from docs/ alone, and compares the results.

1. Sub-models: ten coalitions of a run (LeNet-5) and of each of three tables (MLP, linear) are
   trained again in PyTorch, from the exported initial network and in the order of docs/game.md. At
   least 99 % of all probabilities must agree to 1e-4.
2. Values: those of cs-shapley, and of tmc and exact under the utilities kernel and entk, are
   computed again as docs/baselines.md defines them. Each must agree to 1e-6.

PyTorch must agree in double precision, where its last bits do not matter: in single precision they
depend on the processor, and a bit can decide on which side of 0 a ReLU is. What single precision
gives is printed beside it.

Usage, from the root of the tree:  tests/outside/reproduce.py build/cli/fds
Prints TAP, with what was measured in the lines that begin with #. Skips where PyTorch is missing.
"""
import functools
import itertools
import math
import os
import pathlib
import subprocess
import sys

try:
    import numpy as np
    import torch
except ImportError:
    print("1..0 # SKIP PyTorch is not installed")
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from game import (MNIST, SHOPS, Game, balanced, below, network, philox, read_mnist,  # noqa: E402
                  read_rows, read_shops, read_table, retrain, shuffle, unit)
from tap import main, test  # noqa: E402

FDS = os.path.abspath(sys.argv[1])


def fds(*args):
    subprocess.run([FDS, *map(str, args), "--threads", "1", "-q"], check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


# ---- samples, initial networks and sub-models: docs/game.md ----


def initial(seed, tensor, count, fan_in):
    stream = philox(seed, 1, tensor)
    return np.array([(2 * unit(stream) - 1) / math.sqrt(fan_in) for _ in range(count)], np.float32)


@test
def the_seed_gives_the_samples_and_the_initial_network():
    data, seed = read_mnist(), 3
    fds("fit", MNIST, "--method", "afds", "--model", "cnn", "--players", 35, "--inputs", 50,
        "--coalitions", 20, "--seed", seed, "--explainer", "bank", "-o", "run")
    game, order = Game("run", data), balanced(data["train"][1], seed)
    assert game.sample.tolist() == sorted(order[:35])
    inputs = shuffle(philox(seed, 6), sorted(order[35:85]))
    assert game.input.tolist() == sorted(inputs[:45]) + sorted(inputs[45:])
    for tensor, (name, found) in enumerate(game.initial.items()):
        fan_in = math.prod(game.initial[name.replace("bias", "weight")].shape[1:])
        found = found.reshape(-1)[:500]
        assert (initial(seed, tensor, len(found), fan_in) == found).all(), name


@test
def samples_are_normalised_to_the_same_bits():
    data = read_shops()
    fds("value", SHOPS, "--players", 60, "--utility", "knn:3", "--method", "loo", "--table", "t")
    game, (about, _) = Game("t", data), read_table("t")
    order = balanced(data["train"][1], 0)
    assert game.input.tolist() == sorted(order[:32]), "a fifth of 160 is set aside for testing"
    assert game.sample.tolist() == sorted(order[32:92])
    assert game.checksums() == (about["samples_sha256"], about["inputs_sha256"])


def compare(name, game, folder, coalitions):
    """Trains ten coalitions again; at least 99 % of the probabilities must agree to 1e-4."""
    (about, table), shares = read_table(folder), []
    assert game.checksums() == (about["samples_sha256"], about["inputs_sha256"])
    for dtype in (torch.float64, torch.float32):
        off = np.abs([table[s] - retrain(game, about, s, dtype) for s in ten_of(coalitions)])
        shares.append((off <= 1e-4).mean())
        print(f"# {name}, {about['kind']}, PyTorch in {str(dtype)[6:]}: {100 * shares[-1]:.2f} % "
              f"of {off.size} probabilities within 1e-4, the largest difference {off.max():.1e}")
    assert shares[0] >= 0.99


def ten_of(items):
    return [items[i * len(items) // 10] for i in range(10)]


@test
def lenet5_trains_to_the_same_probabilities():
    """With more digits or epochs PyTorch does not agree with itself to 99 %: see docs/game.md."""
    fds("fit", MNIST, "--method", "afds", "--model", "lenet5", "--players", 40, "--inputs", 100,
        "--coalitions", 200, "--explainer", "bank", "-o", "run")
    rows = [row["players"] for row in read_rows("run/coalitions.csv") if row["role"] == "training"]
    coalitions = [tuple(i for i, bit in enumerate(row) if bit == "1") for row in rows]
    compare("lenet5", Game("run", read_mnist()), "run/utilities", coalitions)


@test
def mlp_converges_to_the_same_probabilities():
    fds("value", MNIST, "--model", "mlp", "--players", 40, "--test", 100, "--coalitions", 200,
        "--utility", "retrain", "--table", "t")
    compare("mlp of digits", Game("t", read_mnist()), "t", list(read_table("t")[1])[2:])


@test
def mlp_of_providers_trains_to_the_same_probabilities():
    fds("value", SHOPS, "--model", "mlp", "--players", "providers", "--coalitions", 200,
        "--utility", "retrain:10", "--table", "t")
    compare("mlp of shops", Game("t", read_shops()), "t", list(read_table("t")[1])[2:])


@test
def training_ends_where_the_loss_no_longer_falls():
    """At a hundred times the usual learning rate a linear model runs out of patience."""
    fds("value", SHOPS, "--model", "logistic", "--players", 60, "--lr", 0.01, "--coalitions", 200,
        "--utility", "retrain", "--table", "t")
    compare("logistic of shops", Game("t", read_shops()), "t", list(read_table("t")[1])[2:])


# ---- utility functions: docs/baselines.md ----


def regression(game, about, kernel, ridge, shift, scale):
    """From a coalition to probabilities; the kernel is that of players' samples, then inputs."""
    owned, target = len(game.label), np.eye(about["classes"])[game.label] - shift

    def answer(coalition):
        own = np.flatnonzero(np.isin(game.player, coalition))
        system = kernel[np.ix_(own, own)] + ridge * np.eye(len(own))
        scores = scale * kernel[owned:, own] @ np.linalg.solve(system, target[own])
        e = np.exp(scores - scores.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True)).astype(np.float32)  # as the table keeps them
    return functools.lru_cache(None)(answer)


def kernel_utility(game, about):
    x = np.concatenate([game.x, game.x_input]).astype(np.float64).reshape(-1, game.x[0].size)
    x /= np.sqrt((x * x).sum(1, keepdims=True))  # no sample here has the length 0
    u = np.clip(x @ x.T, -1, 1)
    kernel = (2 * u * (np.pi - np.arccos(u)) + np.sqrt(1 - u * u)) / np.pi
    ridge = about["ridge"] * kernel.diagonal()[:len(game.x)].mean()
    return regression(game, about, kernel, ridge, 1 / about["classes"], 4)


def entk_utility(game, about):
    model = network(about["network"], about["shape"], game.initial, torch.float64)
    weights, kernel = list(model.parameters()), 0
    x = torch.tensor(np.concatenate([game.x, game.x_input])).double()
    for c in range(about["classes"]):
        rows = [torch.autograd.grad(model(one[None])[0, c], weights) for one in x]
        g = torch.stack([torch.cat([part.reshape(-1) for part in row]) for row in rows]).numpy()
        kernel = kernel + g @ g.T / about["classes"]
    kernel = kernel.astype(np.float32).astype(np.float64)
    ridge = first_ridge(kernel[:len(game.x), :len(game.x)])
    assert math.isclose(ridge, about["ridge"])
    return regression(game, about, kernel, ridge, 0, 1)


def first_ridge(kernel):
    for ridge in (10.0**power for power in range(-6, 6)):
        try:
            np.linalg.cholesky(kernel + ridge / 2 * np.eye(len(kernel)))
            return ridge
        except np.linalg.LinAlgError:
            pass
    raise AssertionError("no ridge is large enough")


# ---- methods: docs/baselines.md ----


def confidence(game, probs):
    return probs[np.arange(len(probs)), game.y_input].astype(np.float64).mean()


def permutation(t, n):
    return shuffle(philox(0, 9, t), range(n))


def walk(v, members, order, full, values, truncate=0.01):
    """Adds to the values what each player of the order adds to those before it."""
    members, near = list(members), 0
    before = v(members)
    for player in order:
        members.append(player)
        now = v(members)
        values[player] += now - before
        before, near = now, near + 1 if abs(now - full) <= truncate * abs(full) else 0
        if near == 6:
            break


def tmc(game, answer, permutations):
    v = lambda members: confidence(game, answer(tuple(sorted(members))))
    values = np.zeros(game.n)
    for t in range(permutations):
        walk(v, [], permutation(t, game.n), v(range(game.n)), values)
    return values / permutations


def exact(game, answer):
    """The Shapley value as it is defined, over all coalitions."""
    n, values = game.n, np.zeros(game.n)
    v = {s: confidence(game, answer(s)) for k in range(n + 1)
         for s in itertools.combinations(range(n), k)}
    for s in v:
        for i in set(range(n)) - set(s):
            marginal = v[tuple(sorted((*s, i)))] - v[s]
            values[i] += marginal / n / math.comb(n - 1, len(s))
    return values


def environment(t, c, classes):
    """Of every class but c, a random number of its players; classes has the players of each."""
    stream, members = philox(0, 10, t, c + 1), []
    for own in classes[:c] + classes[c + 1:]:
        left = 1 + below(stream, len(own)) if own else 0
        for j, player in enumerate(own):
            if below(stream, len(own) - j) < left:
                members.append(player)
                left -= 1
    return members


def cs_shapley(game, answer, permutations):
    """For players of one sample each; every class has players and inputs."""
    is_right = lambda members: answer(tuple(sorted(members))).argmax(1) == game.y_input
    classes = [np.flatnonzero(game.label == c).tolist() for c in range(game.label.max() + 1)]
    values = np.zeros(game.n)
    for c, own in enumerate(classes):
        is_in = game.y_input == c

        def v(members):
            right = is_right(members)
            return (right & is_in).mean() * math.exp((right & ~is_in).mean())

        for t in range(permutations):
            others = environment(t, c, classes)
            order = [player for player in permutation(t, game.n) if player in own]
            walk(v, others, order, v(others + own), values)
        values[own] /= permutations
        total = values[own].sum()
        if total > 0 and total >= 0.05 * np.abs(values[own]).sum():
            values[own] *= (is_right(range(game.n)) & is_in).mean() / total
    return values


def agree(name, ours):
    theirs = np.load("v.npy")[0]
    off = np.abs(ours - theirs).max()
    print(f"# {name}: {len(ours)} values from {theirs.min():.4f} to {theirs.max():.4f} agree to "
          f"{off:.1e}", flush=True)
    assert off <= 1e-6


def check_regression(utility, make):
    """tmc of 40 digits, and exact values of twelve shops."""
    for name, path, data, rebuild, options in (
            ("tmc", MNIST, read_mnist(), lambda *game: tmc(*game, 20),
             ["--players", 40, "--scorer", "confidence", "--permutations", 20]),
            ("exact", SHOPS, read_shops(), exact, ["--players", "providers", "--global"])):
        fds("value", path, *options, "--method", name, "--utility", utility, "--test", 30,
            "--table", name, "-o", "v.npy")
        game, (about, table) = Game(name, data), read_table(name)
        answer = make(game, about)
        off = max(np.abs(answer(s) - table[s]).max() for s in table)
        print(f"# {name}, {utility}: probabilities of {len(table)} coalitions within {off:.1e}")
        agree(f"{name}, {utility}", rebuild(game, answer))


@test
def values_under_kernel_regression_agree():
    check_regression("kernel", kernel_utility)


@test
def values_under_the_tangent_kernel_agree():
    check_regression("entk", entk_utility)


@test
def class_wise_values_agree():
    """Of networks, from the table; of kernel regression, from nothing but the samples."""
    for utility, options in (("retrain:10", ["--model", "mlp"]), ("kernel", [])):
        fds("value", SHOPS, *options, "--players", 60, "--method", "cs-shapley",
            "--permutations", 30, "--utility", utility, "--table", utility, "-o", "v.npy")
        game, (about, table) = Game(utility, read_shops()), read_table(utility)
        answer = kernel_utility(game, about) if utility == "kernel" else table.get
        agree(f"cs-shapley, {utility}", cs_shapley(game, answer, 30))


torch.set_num_threads(1)
sys.exit(main())
