#!/usr/bin/python3
"""The cost of the baselines: the tables of docs/speed.md.

Usage: bench/baselines.py BUILD_FOLDER [DATA] [--players 100] [--test 1000] [--methods loo tmc ...]

First table: every method once, with its own settings, from an empty table of sub-models, and again
on the table that it has filled. Seconds are those of the whole command. A method queries coalitions;
gshapley, which trains no sub-models, computes a utility after each step of gradient descent.

Second table: how many sub-models per second TMC-Shapley trains and evaluates, against the same loop
in PyTorch. Both train LeNet-5 from scratch on every prefix of random permutations (10 epochs, Adam,
batch 16) and compute its accuracy on the test images; nothing is truncated. PyTorch gets as many
processes as we use threads, one thread each, denormals flushed, data already in tensors, and the
fastest of several batch sizes for evaluation. It shuffles the prefixes of a permutation, so that a
slice of time has short and long ones, wherever it ends. Each round measures ours, then PyTorch;
ratios are taken within a round. Prints Markdown.
"""
import argparse
import multiprocessing
import os
import shutil
import statistics
import time

import lane  # first: it sets what PyTorch reads from the environment
import numpy as np
import torch

import digits

METHODS = ("loo", "tmc", "gshapley", "group-testing", "group-testing improved", "cs-shapley", "freeshap",
           "knn:5", "knn:5@model", "banzhaf", "beta:4,1", "random", "same-label")
TABLED = ("loo", "tmc", "group-testing", "cs-shapley", "banzhaf", "beta")
PAPER_S = {"tmc": 15731, "group-testing": 9609, "cs-shapley": 9938, "freeshap": 1628}
EPOCHS, BATCH = 10, 16


class Bench:
    def __init__(self, arguments):
        self.fds = os.path.join(arguments.build, "cli/fds")
        self.table = os.path.join(arguments.work, "table")
        self.common = [arguments.data, "--players", arguments.players, "--test", arguments.test, "--quiet"]
        self.threads = arguments.threads
        self.limits = {"--permutations": arguments.permutations, "--coalitions": arguments.coalitions}
        os.makedirs(arguments.work, exist_ok=True)

    def run(self, method, *options, threads=None, fresh=True):
        """One command; those that train have a table, emptied first when it is to be fresh."""
        if fresh:
            shutil.rmtree(self.table, ignore_errors=True)
        name, *form = method.split(" ")
        kept = ["--table", self.table] if name.split(":")[0] in TABLED else []
        return digits.value(self.fds, *self.common, "--method", name, *(["--form", *form] if form else []),
                            *kept, *options, "--threads", threads or self.threads)

    def limited(self, method):
        """The options that make a run shorter, where they belong to the method."""
        wanted = {"--permutations": ("tmc", "beta", "gshapley", "cs-shapley", "freeshap"),
                  "--coalitions": ("group-testing", "banzhaf")}
        name = method.split(" ")[0].split(":")[0]
        return [word for option, value in self.limits.items() if value and name in wanted[option]
                for word in (option, value)]


# ---- the methods ----

def number(value):
    return f"{value:,}" if value else ""


def row(bench, method, title=None, threads=None):
    options = bench.limited(method)
    first = bench.run(method, *options, threads=threads)
    found, wall = first["baseline"]["found"], first["wall_s"]
    cells = [title or method, number(found["permutations"])]
    if method.split(" ")[0].split(":")[0] in TABLED:
        again = bench.run(method, *options, threads=threads, fresh=False)
        assert again["baseline"]["found"]["trained"] == 0, "a full table trains nothing"
        cells += [number(found["asked"]), number(found["trained"]), number(found["asked"] - found["trained"]),
                  f"{wall:.1f}", f"{1e3 * wall / max(1, found['trained']):.1f}", f"{again['wall_s']:.1f}"]
    else:
        cells += [number(found["asked"]), "", "", f"{wall:.1f}", "", ""]
    paper = PAPER_S.get(method, "")
    print("| " + " | ".join(cells + [number(paper)]) + " |", flush=True)


def table_of_methods(bench, methods):
    print("| method | permutations | queried | trained | reused | seconds | ms per sub-model | again, seconds | the paper's "
          "seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for method in methods:
        row(bench, method)
        if method == "freeshap" and bench.threads != 1:
            row(bench, method, "freeshap, one thread", threads=1)
    print(flush=True)


# ---- TMC-Shapley against PyTorch ----

def ours(bench, permutations):
    """Sub-models per second over whole permutations, none truncated."""
    found = bench.run("tmc", "--permutations", permutations, "--until", 0, "--truncate", 0)
    return found["baseline"]["found"]["trained"] / found["wall_s"]


def evaluate(model, x, y, batch):
    with torch.no_grad():
        right = sum(int((model(x[i:i + batch]).argmax(1) == y[i:i + batch]).sum())
                    for i in range(0, len(x), batch))
    return right / len(x)


def train(x, y):
    torch.manual_seed(0)  # all sub-models start from one network
    model = lane.NETWORKS["lenet5"]()
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        order = torch.randperm(len(x))
        for first in range(0, len(x), BATCH):
            batch = order[first:first + BATCH]
            optimizer.zero_grad(set_to_none=True)
            loss(model(x[batch]), y[batch]).backward()
            optimizer.step()
    return model


def fastest_batch(model, x, y):
    sizes = [size for size in (16, 64, 250, 1000) if size <= len(x)] or [len(x)]
    return min(sizes, key=lambda size: lane.best_time(lambda: evaluate(model, x, y, size), 0.3))


def torch_process(seed, arrays, seconds, gate, rates):
    """Prefixes of random permutations, one after the other, for this many seconds."""
    x, y, x_test, y_test = (torch.from_numpy(a) for a in arrays)
    rng = np.random.default_rng(seed)
    batch = fastest_batch(train(x, y), x_test, y_test)
    gate.wait()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        order = rng.permutation(len(x))
        for size in rng.permutation(len(x)) + 1:
            prefix = torch.from_numpy(np.sort(order[:size]))
            evaluate(train(x[prefix], y[prefix]), x_test, y_test, batch)
            done += 1
            if time.perf_counter() - start >= seconds:
                break
    rates.put(done / (time.perf_counter() - start))


def theirs(arrays, processes, seconds, seed):
    """Sub-models per second of all processes together."""
    context = multiprocessing.get_context("spawn")
    gate, rates = context.Barrier(processes), context.Queue()
    started = [context.Process(target=torch_process, args=(seed * processes + i, arrays, seconds, gate, rates))
               for i in range(processes)]
    for process in started:
        process.start()
    total = sum(rates.get() for _ in started)
    for process in started:
        process.join()
    return total


def arrays_of(fds, data, players, tests):
    (x, y), (x_test, y_test) = digits.read_digits(fds, data)
    rng = np.random.default_rng(0)
    chosen, tested = digits.balanced(y, players, rng), digits.balanced(y_test, tests, rng)
    mean, std = (x[chosen] / 255).mean(), (x[chosen] / 255).std()

    def scale(images):
        return ((images[:, None] / 255 - mean) / std).astype(np.float32)
    return (scale(x[chosen]), y[chosen].astype(np.int64), scale(x_test[tested]), y_test[tested].astype(np.int64))


def table_of_rates(bench, arguments):
    arrays = arrays_of(bench.fds, arguments.data, arguments.players, arguments.test)
    print("| round | ours, sub-models per second | PyTorch | ratio |\n| --- | --- | --- | --- |")
    rows = []
    for number_of_round in range(arguments.rounds):
        a = ours(bench, arguments.rate_permutations)
        b = theirs(arrays, bench.threads, arguments.slice, number_of_round)
        rows.append((a, b, a / b))
        print(f"| {number_of_round + 1} | {a:.1f} | {b:.2f} | {a / b:.1f} |", flush=True)
    a, b, ratio = (statistics.median(column) for column in zip(*rows))
    print(f"| median | {a:.1f} | {b:.2f} | **{ratio:.1f}** |\n")
    print(f"{bench.threads} threads or processes; {arguments.players} players, {arguments.test} test images; PyTorch "
          f"{torch.__version__}, {arguments.slice:g} s per round, ours {arguments.rate_permutations} permutations.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default="mnist", help="a set in IDX format")
    parser.add_argument("--players", type=int, default=100)
    parser.add_argument("--test", type=int, default=1000, help="test images")
    parser.add_argument("--methods", nargs="*", default=METHODS, help="for the first table; none: leave it out")
    parser.add_argument("--permutations", type=int, default=200, help="at most; 0: each method's own number")
    parser.add_argument("--coalitions", type=int, help="the same for methods that sample coalitions")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3, help="of the second table; 0: leave it out")
    parser.add_argument("--slice", type=float, default=40, help="seconds of PyTorch per round")
    parser.add_argument("--rate-permutations", type=int, default=20, help="of ours per round")
    parser.add_argument("--work", default="build-bench/baselines", help="where the table goes")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    if arguments.methods:
        table_of_methods(bench, arguments.methods)
    if arguments.rounds:
        table_of_rates(bench, arguments)
    shutil.rmtree(bench.table, ignore_errors=True)


if __name__ == "__main__":
    main()
