# SPDX-License-Identifier: Apache-2.0
"""One game for every command: the same sub-models, and files that say what they are made of.

usage: test_game.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import glob
import json
import math
import os
import pathlib
import struct
import sys

from harness import MNIST, fds, fds_json, main, refused, test, write_csv

PLAYERS, COALITIONS = 12, 60
SHOPS = ["shops.csv", "--players", PLAYERS]  # has no test part: every sample has one number
FIT = ["fit", *SHOPS, "--inputs", 30, "--coalitions", COALITIONS, "--explainer-epochs", 1, "-q"]


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_probabilities(folder):
    """From coalition, a text of 0 and 1, to the probabilities of (input, class)."""
    about, found = json.loads(pathlib.Path(folder, "table.json").read_text()), {}
    players, classes = about["players"], about["classes"]
    size, words = about["record_size"], (players + 63) // 64 * 8
    for path in sorted(glob.glob(f"{folder}/*.seg")):
        data = pathlib.Path(path).read_bytes()
        for at in range(64, len(data), size):
            bits = int.from_bytes(data[at + 8:at + 8 + words], "little")
            row = struct.unpack_from(f"<{about['inputs'] * classes}f", data, at + 8 + words)
            found["".join("01"[bits >> p & 1] for p in range(players))] = [
                row[i:i + classes] for i in range(0, len(row), classes)]
    return found


def samples_of(folder, *roles):
    return [row for row in read_rows(f"{folder}/samples.csv") if row["role"] in roles]


def fit_and_value(method, utility, *options):
    """A run, and a table with the same inputs from fds value; both with the same options."""
    run, table = f"{method}.run", f"{method}.table"
    fds(*FIT, "--method", method, *options, "-o", run)
    index = ",".join(row["sample"] for row in samples_of(run, "training", "validation"))
    fds("value", *SHOPS, "--index", index, "--utility", utility, "--coalitions", COALITIONS,
        *options, "--table", table, "-q")
    return run, table


# ---- the same sub-models ----


@test
def fit_and_value_train_the_same_sub_models():
    write_csv("shops.csv")
    for method, utility, options in (("fds", "retrain", []), ("afds", "retrain:10", []),
                                     ("fds", "retrain", ["--lr", 0.0003, "--beta", 4, "--seed", 5])):
        run, table = fit_and_value(method, utility, *options)
        fitted, valued = read_probabilities(f"{run}/utilities"), read_probabilities(table)
        assert len(valued) == COALITIONS + 2 and valued.keys() <= fitted.keys()
        assert all(valued[s] == fitted[s] for s in valued), "another game"
        settings = [json.loads(pathlib.Path(path, "table.json").read_text())["parameters"]
                    for path in (f"{run}/utilities", table)]
        assert settings[0] == settings[1]
        os.rename(run, f"{run}.{len(options)}"), os.rename(table, f"{table}.{len(options)}")


@test
def a_baseline_uses_the_sub_models_of_least_squares():
    write_csv("shops.csv")
    run, table = fit_and_value("fds", "retrain")
    index = ",".join(row["sample"] for row in samples_of(table, "test"))
    found = fds_json("value", *SHOPS, "--index", index, "--utility", "retrain", "--method", "loo",
                     "--table", table)["baseline"]["found"]
    kept = read_probabilities(table)
    missing = [s for s in kept if s.count("0") == 1]
    assert found["asked"] == PLAYERS + 1 and len(missing) == PLAYERS
    fitted = read_probabilities(f"{run}/utilities")
    assert all(fitted[s] == kept[s] for s in missing if s in fitted)


# ---- what a run lists ----


@test
def a_run_lists_its_samples():
    write_csv("shops.csv")
    fds(*FIT, "-o", "r.run")
    run = json.loads(pathlib.Path("r.run/run.json").read_text())
    rows = read_rows("r.run/samples.csv")
    owned = sorted((sample, p) for p, player in enumerate(run["players"])
                   for sample in player["samples"])
    players = samples_of("r.run", "player")
    assert [(int(row["sample"]), int(row["player"])) for row in players] == owned
    assert [run["players"][int(row["player"])]["label"] for row in players] == [
        int(row["label"]) for row in players]
    training, validation = (samples_of("r.run", role) for role in ("training", "validation"))
    assert len(validation) == run["inputs"]["validation"]
    assert len(training) + len(validation) == run["inputs"]["count"] == 30
    assert [int(row["row"]) for row in training + validation] == list(range(30))
    assert rows == players + training + validation
    assert len({row["sample"] for row in rows}) == len(rows)


@test
def a_run_lists_its_coalitions_with_their_weights():
    write_csv("shops.csv")
    for method, count in (("fds", COALITIONS), ("gfds+", 6)):
        run = f"{method}.run"
        fds(*FIT, "--method", method, "--coalitions", count, "-o", run)
        about = json.loads(pathlib.Path(run, "run.json").read_text())["coalitions"]
        rows = read_rows(f"{run}/coalitions.csv")
        assert [(row["role"], float(row["weight"]), set(row["players"])) for row in rows[:2]] == [
            ("none", 0, {"0"}), ("all", 0, {"1"})]
        training = [row for row in rows if row["role"] == "training"]
        validation = [row for row in rows if row["role"] == "validation"]
        assert len(training) == about["count"] and rows == rows[:2] + training + validation
        assert {row["players"] for row in rows} == set(read_probabilities(f"{run}/utilities"))
        assert all(float(row["weight"]) > 0 for row in training + validation)
    sizes = [row["players"].count("1") for row in read_rows("fds.run/coalitions.csv")[2:2 + COALITIONS]]
    weights = [float(row["weight"]) for row in read_rows("fds.run/coalitions.csv")[2:2 + COALITIONS]]
    shares = [1 / (k * (PLAYERS - k) * sizes.count(k)) for k in sizes]
    for weight, share in zip(weights, shares):  # as docs/game.md has it
        assert math.isclose(weight, COALITIONS * share / sum(shares), rel_tol=1e-12)


@test
def a_changed_list_is_found():
    write_csv("shops.csv")
    fds(*FIT, "-o", "r.run")
    for name in ("samples.csv", "coalitions.csv", "initial.safetensors"):
        path = pathlib.Path("r.run", name)
        before = path.read_bytes()
        path.write_bytes(before[:-1])
        refused(["explain", "r.run", "--index", 0, "-q"], 1, f"r.run/{name} was lost, damaged")
        _, err = fds(*FIT, "-o", "r.run")
        assert "computed again" in err and path.read_bytes() == before


def read_tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    return {name: struct.unpack_from(f"<{math.prod(t['shape'])}f", data,
                                     8 + size + t["data_offsets"][0])
            for name, t in header.items()}


def features(rows, sample):
    return [float(rows[int(sample)][name]) for name in ("x1", "x2")]


@test
def the_initial_network_answers_for_no_players():
    write_csv("shops.csv")
    fds("value", *SHOPS, "--index", "100..109", "--model", "logistic", "--coalitions", 8, "-q",
        "--players", 4, "--table", "t")
    rows, weights = read_rows("shops.csv"), read_tensors("t/initial.safetensors")
    own = [features(rows, row["sample"]) for row in samples_of("t", "player")]
    mean = [sum(column) / len(own) for column in zip(*own)]
    std = [math.sqrt(sum((x - m) ** 2 for x in column) / len(own))
           for m, column in zip(mean, zip(*own))]
    for row, found in zip(samples_of("t", "test"), read_probabilities("t")["0000"]):
        x = [(v - m) / s for v, m, s in zip(features(rows, row["sample"]), mean, std)]
        z = [sum(w * v for w, v in zip(weights["1.weight"][2 * c:2 * c + 2], x)) +
             weights["1.bias"][c] for c in range(3)]
        e = [math.exp(one) for one in z]
        assert all(abs(a / sum(e) - b) < 1e-6 for a, b in zip(e, found))


@test
def a_table_without_a_network_has_no_initial_one():
    fds("value", MNIST, "--players", 6, "--test", 5, "--utility", "knn:3", "--method", "exact",
        "--table", "t", "-q")
    assert not os.path.exists("t/initial.safetensors") and len(samples_of("t", "test")) == 5


# ---- test samples by number ----


@test
def index_names_the_test_samples():
    args = ["value", MNIST, "--players", 6, "--model", "logistic", "--method", "exact", "-q"]
    fds(*args, "--index", "9,3..5,9", "-o", "v.json")
    about = json.loads(pathlib.Path("v.json").read_text())
    assert [one["test"] for one in about["results"]] == [9, 3, 4, 5, 9]
    assert about["results"][0]["values"] == about["results"][4]["values"]
    fds(*args, "--test", 20, "-o", "all.json")
    chosen = json.loads(pathlib.Path("all.json").read_text())["results"]
    index = ",".join(str(one["test"]) for one in chosen)
    fds(*args, "--index", index, "-o", "same.json")
    assert json.loads(pathlib.Path("same.json").read_text())["results"] == chosen


@test
def wrong_indices_are_refused():
    write_csv("shops.csv")
    value = ["value", MNIST, "--players", 6]
    refused([*value, "--index", 3, "--test", 5], 2, "--index and --test exclude each other")
    refused([*value, "--index", 200], 2, "--index 200: the test part has samples 0 to 199")
    for text in ("x", "3,", "5..3", "-1", "1-3"):
        refused([*value, "--index", text], 2, "--index", "a range such as 0..9")
    refused(["value", "shops.csv", "--index", 120, "-q"], 2, "the data has samples 0 to 119")
    fds(*FIT, "-o", "r.run")
    owned = samples_of("r.run", "player")[0]["sample"]
    refused(["value", *SHOPS, "--index", owned, "-q"], 2, f"--index {owned}: the sample belongs to")


sys.exit(main())
