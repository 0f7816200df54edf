# SPDX-License-Identifier: Apache-2.0
"""fds value with baselines, as its users meet it: every method, resuming, mistakes.

usage: test_baseline.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import json
import math
import os
import pathlib
import shutil
import struct
import sys

from harness import MNIST, check_width, fds, fds_json, main, refused, test

# Sub-models of a millisecond: six digits, ten test samples.
SMALL = ["value", MNIST, "--players", 6, "--test", 10, "--model", "logistic"]
BY_PERMUTATIONS = ["tmc", "beta:4,1", "cs-shapley"]
BY_TABLE = ["loo", *BY_PERMUTATIONS, "group-testing", "banzhaf"]
WITHOUT_NETWORK = ["knn:3", "random", "same-label"]
FREE = {"gshapley": ["--permutations", 3], "freeshap": ["--permutations", 20], "knn:3": [], "random": [], "same-label": []}
QUICK = {"tmc": ["--permutations", 20], "beta:4,1": ["--permutations", 20], "cs-shapley": ["--permutations", 20],
         "group-testing": ["--coalitions", 60], "banzhaf": ["--coalitions", 40], "loo": []}


def options(method):
    return ["--method", method, *(FREE | QUICK)[method]]


def small(method):
    """The small game with what the method needs."""
    game = SMALL[:-2] if method in WITHOUT_NETWORK else SMALL
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
def permutations_are_told_and_checked():
    assert fds_json(*SMALL, "--method", "tmc", "--permutations", 7)["baseline"]["settings"]["permutations"] == 7
    refused([*SMALL, "--method", "tmc", "--permutations", -7], 2, "--permutations", "from 1", "got -7")


# ---- standard errors ----


def errors_of(method, *extra):
    """As CSV, JSON and NPY have them, the ranking's, and the text."""
    game = [*small(method), *kept(method), *extra]
    for name in ("v.csv", "v.json", "v.npy"):
        fds(*game, "-q", "-o", name)
    in_json = [error for result in json.loads(pathlib.Path("v.json").read_text())["results"]
               for error in result["standard_errors"]]
    data = pathlib.Path("v.npy").read_bytes()
    numbers = [n for n, in struct.iter_unpack("<d", data[-8 * 2 * len(in_json):])]
    return ([row["standard_error"] for row in read("v.csv")], in_json, numbers[len(in_json):],
            [row["standard_error"] for row in fds_json(*game)["ranking"]], fds(*game)[0])


@test
def exact_values_have_errors_of_nought_and_show_none():
    for method in ("loo", "knn:3"):
        for extra in ([], ["--per-sample"]):
            in_csv, in_json, in_npy, ranked, text = errors_of(method, *extra)
            assert set(in_csv) == {"0"} and set(in_json) == set(in_npy) == set(ranked) == {0}
            assert "\u00b1" not in text and "standard error" not in text


@test
def unknown_errors_are_not_taken_for_nought():
    for method, extra in (("tmc", ["--permutations", 1]), ("random", []), ("same-label", ["--per-sample"])):
        in_csv, in_json, in_npy, ranked, text = errors_of(method, *extra)
        assert set(in_csv) == {"nan"} and set(in_json) == set(ranked) == {None}, method
        assert all(math.isnan(error) for error in in_npy), method
        assert "\u00b1" not in text and "standard error" not in text and "nan" not in text, text


@test
def some_errors_may_be_unknown():
    for draw in range(40):  # until some player, not each, is in one coalition or in all but one
        game = [*SMALL, "--method", "banzhaf", "--coalitions", 6, "--draw", draw, "--table", "t", "-q"]
        try:
            fds(*game, "-o", "v.csv")
        except AssertionError:
            continue  # somebody is in none
        errors = [row["standard_error"] for row in read("v.csv")]
        if 0 < errors.count("nan") < 6:
            break
    shown = fds(*game)[0]
    assert shown.count("\u00b1") == 6 - errors.count("nan") and "nan" not in shown, shown


@test
def errors_of_a_mean_over_test_samples_are_not_known():
    in_csv, _, _, ranked, text = errors_of("tmc", "--per-sample")
    assert all(float(error) >= 0 for error in in_csv) and set(ranked) == {None}
    assert "\u00b1" not in text


# ---- tables and models ----


@test
def one_table_serves_all_methods_and_nothing_is_trained_twice():
    for method in BY_TABLE:
        game = [*small(method), "--table", "t"]
        first = fds_json(*game)["baseline"]["found"]
        again = fds_json(*game)["baseline"]["found"]
        assert first["asked"] >= first["trained"] and again["trained"] == 0, method
        assert again["asked"] == first["asked"], method


def segments():
    return {path: path.read_bytes() for path in pathlib.Path("t").glob("*.seg")}


@test
def a_repeated_run_adds_nothing_to_the_table():
    for method in BY_TABLE:
        for extra in ([], ["--per-sample"]):
            if method == "cs-shapley" and extra:
                continue
            fds(*small(method), *extra, "--table", "t", "-q")
            once = segments()
            fds(*small(method), *extra, "--table", "t", "-q")
            assert segments() == once, method
        shutil.rmtree("t")


@test
def a_model_is_trained_only_where_something_asks_it():
    for method in ("gshapley", "random", "same-label"):
        about, text = fds_json(*small(method)), fds(*small(method))[0]
        assert about["game"]["utility"] is None and about["game"]["parameters"] is None
        assert about["correctly_classified"] is None and about["probability_with_all"] is None
        assert "utility" not in text and "correctly" not in text, text
        game = [*small(method), "--per-sample", "--lr", 0.001]  # labels by a model, so trained
        about, text = fds_json(*game), fds(*game)[0]
        assert about["game"]["parameters"]["lr"] == 0.01 and about["correctly_classified"] is not None
        assert "\nlabels by   retrain:10 at learning rate 0.01\n" in text, text
        assert fds_json(*small(method), "--per-sample", "--target", "true")["game"]["utility"] is None
    for method in ("freeshap", "knn:3"):
        assert fds_json(*small(method))["correctly_classified"] is not None


@test
def what_it_will_take_is_told_before():
    for method, most in (("loo", 7), ("tmc", 64), ("banzhaf", 40), ("group-testing", 62)):
        out, _ = fds(*small(method), "--estimate")
        assert f"at most {most} sub-models to train (0 are there already)" in out, out
        assert "\ndisk        up to " in out , out
        assert os.listdir(".") == []
        game = fds_json(*small(method), "--estimate")["game"]
        assert game["coalitions"] == game["missing"] == most and game["disk"] > 0, game
    _, err = fds(*small("tmc"), "--table", "t")
    assert "at most 64 sub-models to train (0 are there already)" in err and "on disk" in err, err
    assert "(7 are there already)" in fds(*small("loo"), "--table", "t", "--estimate")[0]
    assert "at most" not in fds(*small("freeshap"), "--estimate")[0].replace("            at most", "")


@test
def a_disk_that_is_too_small_is_told_before_any_work():
    refused(["value", MNIST, "--players", 100, "--test", 50, "--method", "tmc", "--permutations", 100000000, "-q"],
            1, "up to", "the disk has only", "--table")


@test
def a_label_without_test_samples_is_warned_of():
    game = ["value", MNIST, "--players", 20, "--test", 9, "--model", "logistic", "--method", "cs-shapley",
            "--permutations", 5, "-q"]
    _, err = fds(*game, "-o", "v.csv")
    lines = [line for line in err.split("\n") if "no test sample has the label" in line]
    assert len(lines) == 1 and "--" not in lines[0], err
    label = lines[0].split("has the label ")[1].split(":")[0]
    assert all(float(row["value"]) == 0 for row in read("v.csv") if row["player_label"] == label)


@test
def methods_without_sub_models_leave_no_table():
    for method in FREE:
        assert fds_json(*small(method))["game"]["table"] is None, method
        assert not pathlib.Path("mnist.table").exists(), method


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
    check_width(fds(*small("tmc"), "--estimate")[0])


@test
def values_by_orders_sum_to_what_all_players_add():
    found = fds_json(*SMALL, "--method", "tmc", "--permutations", 30, "--truncate", 0, "--scorer", "confidence")
    total = sum(row["value"] for row in found["ranking"])
    assert abs(total - (found["probability_with_all"] - found["probability_with_none"])) < 1e-6


@test
def settings_are_told():
    about = fds_json(*SMALL, "--method", "group-testing", "--form", "improved", "--epsilon", 20, "--draw", 3,
                     "--estimate")
    settings = about["baseline"]["settings"]
    assert (settings["form"], settings["epsilon"], settings["delta"], settings["draw"]) == (
        "improved", 20, 0.1, 3)
    settings = fds_json(*small("banzhaf"), "--estimate")["baseline"]["settings"]
    assert (settings["form"], settings["epsilon"], settings["draw"]) == (None, None, 0)


@test
def mistakes_are_told_with_what_would_be_right():
    refused([*SMALL, "--method", "tmcc"], 2, "tmcc", "did you mean", "tmc")
    refused([*SMALL, "--method", "knn"], 2, "knn")
    refused([*SMALL, "--method", "beta:0,1"], 2, "beta")
    refused([*SMALL, "--method", "tmc", "--permutations", -5], 2, "--permutations")
    refused([*SMALL, "--method", "group-testing", "--epsilon", 0], 2, "--epsilon", "above 0")
    _, err = fds(*SMALL[:-2], "--method", "knn:7", code=2)  # the data shows it
    assert "knn:7: K must be at most 6" in err, err
    refused([*SMALL, "--method", "loo", "--permutations", 5], 2, "--permutations does not apply to method loo")
    refused([*SMALL, "--method", "loo", "--coalitions", 5], 2, "--coalitions does not apply to method loo; it applies to ls or some baselines")
    refused([*SMALL[:-2], "--method", "random", "--table", "t"], 2, "--table does not apply to method random")
    for method in ("gshapley", "random", "same-label"):
        for option, value in (("--lr", 1), ("--beta", 2), ("--batch", 4), ("--optimizer", "sgd")):
            refused([*small(method), option, value], 2, option, method)
    for extra in (["--method", "freeshap"], ["--method", "loo", "--utility", "entk"], ["--utility", "entk"]):
        refused([*SMALL, *extra, "--lr", 1], 2, "--lr", "entk trains no network")
    refused([*SMALL, "--method", "random"], 2, "--model", "random")
    refused([*SMALL, "--method", "tmc", "--adjust", "none"], 2, "--adjust", "ls")
    refused([*SMALL, "--method", "ls", "--permutations", 5], 2, "--permutations", "ls")
    refused([*SMALL, "--method", "tmc", "--per-sample", "--scorer", "accuracy"], 2, "--scorer", "--per-sample")
    refused([*SMALL, "--method", "tmc", "--per-sample", "--global"], 2, "--global", "--per-sample")
    refused([*SMALL, "--method", "tmc", "--target", "all"], 2, "--target", "all")
    refused([*SMALL, "--method", "freeshap", "--utility", "retrain:3"], 2, "entk")
    refused([*SMALL[:-2], "--method", "knn:3", "--scorer", "accuracy"], 2, "knn", "accuracy")


sys.exit(main())
