# SPDX-License-Identifier: Apache-2.0
"""fds value --method of others, as its users meet it: every method, resuming, mistakes.

usage: test_baseline.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import math
import pathlib

from harness import MNIST, check_width, fds, fds_json, main, refused, test

# Sub-models of a millisecond: six digits, ten test samples.
SMALL = ["value", MNIST, "--players", 6, "--test", 10, "--model", "logistic"]
BY_ORDERS = ["tmc", "beta:4,1", "cs-shapley"]
BY_TABLE = ["loo", *BY_ORDERS, "group-testing", "banzhaf"]
FREE = {"gshapley": ["--orders", 3], "freeshap": ["--orders", 20], "knn:3": [], "random": [], "same-label": []}
QUICK = {"tmc": ["--orders", 20], "beta:4,1": ["--orders", 20], "cs-shapley": ["--orders", 20],
         "group-testing": ["--coalitions", 60], "banzhaf": ["--coalitions", 40], "loo": []}


def options(method):
    return ["--method", method, *(FREE | QUICK)[method]]


def small(method):
    """The small game with what the method needs; knn trains no network."""
    game = SMALL[:-2] if method.startswith("knn") else SMALL
    return [*game, *options(method)]


def kept(method):
    return ["--table", "t"] if method in QUICK else []


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@test
def every_method_values_every_player():
    for method in [*QUICK, *FREE]:
        fds(*small(method), "-q", "-o", "v.csv", *kept(method))
        rows = read("v.csv")
        assert len(rows) == 6, method
        assert all(math.isfinite(float(row["value"])) for row in rows), method


@test
def every_method_but_class_wise_values_every_test_sample():
    for method in [*QUICK, *FREE]:
        if method == "cs-shapley":
            refused([*small(method), "--per-sample"], 2, "cs-shapley", "accuracy")
            continue
        fds(*small(method), "-q", "--per-sample", "-o", "v.csv", *kept(method))
        assert len(read("v.csv")) == 60, method


@test
def one_table_serves_all_methods_and_nothing_is_trained_twice():
    for method in BY_TABLE:
        game = [*small(method), "--table", "t"]
        first = fds_json(*game)["baseline"]["found"]
        again = fds_json(*game)["baseline"]["found"]
        assert first["asked"] >= first["trained"] and again["trained"] == 0, method
        assert again["asked"] == first["asked"], method


@test
def methods_without_sub_models_leave_no_table():
    for method in FREE:
        assert fds_json(*small(method))["game"]["table"] is None, method
        assert not pathlib.Path("fds.table").exists(), method


@test
def bits_do_not_depend_on_threads():
    for method in [*QUICK, *FREE]:
        files = []
        for threads in (1, 3):
            name = f"v{threads}.csv"
            fds(*small(method), "-q", "--threads", threads, "-o", name)
            files.append(pathlib.Path(name).read_bytes())
        assert files[0] == files[1], method


@test
def the_result_fits_a_terminal():
    for method in [*QUICK, *FREE]:
        check_width(fds(*small(method))[0])
    check_width(fds("value", "--help")[0])
    check_width(fds(*small("tmc"), "--dry-run")[0])


@test
def values_by_orders_sum_to_what_all_players_add():
    found = fds_json(*SMALL, "--method", "tmc", "--orders", 30, "--truncate", 0, "--utility", "confidence")
    total = sum(row["value"] for row in found["ranking"])
    assert abs(total - (found["probability_with_all"] - found["probability_with_none"])) < 1e-6


@test
def mistakes_are_told_with_what_would_be_right():
    refused([*SMALL, "--method", "tmcc"], 2, "tmcc", "did you mean", "tmc")
    refused([*SMALL, "--method", "knn"], 2, "knn")
    refused([*SMALL, "--method", "beta:0,1"], 2, "beta")
    refused([*SMALL, "--method", "tmc", "--orders", -5], 2, "--orders")
    refused([*SMALL, "--method", "group-testing", "--epsilon", 0], 2, "--epsilon", "above 0")
    refused([*SMALL[:-2], "--method", "knn:7"], 2, "7", "6 players")
    refused([*SMALL, "--method", "loo", "--orders", 5], 2, "--orders", "loo", "tmc")
    refused([*SMALL, "--method", "tmc", "--adjust", "none"], 2, "--adjust", "ls")
    refused([*SMALL, "--method", "ls", "--orders", 5], 2, "--orders", "ls")
    refused([*SMALL, "--method", "tmc", "--per-sample", "--utility", "accuracy"], 2, "--utility", "--per-sample")
    refused([*SMALL, "--method", "tmc", "--per-sample", "--global"], 2, "--global", "--per-sample")
    refused([*SMALL, "--method", "tmc", "--target", "all"], 2, "--target", "all")
    refused([*SMALL, "--method", "freeshap", "--value", "retrain:3"], 2, "entk")
    refused([*SMALL[:-2], "--method", "knn:3", "--utility", "accuracy"], 2, "knn", "accuracy")


main()
