# SPDX-License-Identifier: Apache-2.0
"""fds value as its users meet it: the values, the files, resuming, mistakes.

usage: test_value.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import MNIST, check_width, fds, fds_json, main, refused, says, start, test, write_csv, write_npy

# Sub-models of a millisecond: six digits, ten test samples.
SMALL = ["value", MNIST, "--players", 6, "--test", 10, "--model", "logistic"]
# Enough of them to be interrupted.
LONG = ["value", MNIST, "--players", 40, "--test", 10, "--model", "mlp", "--coalitions", 800, "-q"]


def read(path):
    return pathlib.Path(path).read_bytes()


def read_npy(path):
    """The shape and the numbers, in C order."""
    data = read(path)
    assert data[:8] == b"\x93NUMPY\x01\x00"
    size, = struct.unpack("<H", data[8:10])
    assert (10 + size) % 64 == 0 and data[9 + size:10 + size] == b"\n"
    header = re.fullmatch(rb"\{'descr': '<f8', 'fortran_order': False, 'shape': \((.*)\), \} *\n",
                          data[10:10 + size])
    assert header, data[10:10 + size]
    shape = [int(n) for n in header[1].split(b",")]
    assert len(data) == 10 + size + 8 * math.prod(shape)
    return shape, [n for n, in struct.iter_unpack("<d", data[10 + size:])]


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def values(*args):
    """(value, standard error) by (test, label, player), as the CSV file has them."""
    fds(*args, "-q", "-o", "values.csv")
    return {(row.get("test"), row.get("label"), row["player"]):
            (float(row["value"]), float(row["standard_error"])) for row in read_table("values.csv")}


def check_close(a, b, limit):
    assert a.keys() == b.keys()
    worst = max(abs(a[key][0] - b[key][0]) for key in a)
    assert worst <= limit, f"they differ by {worst}"


def table_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


# ---- the values ----


@test
def exact_values_are_those_of_least_squares_on_all_coalitions():
    exact = values(*SMALL, "--method", "exact", "--target", "all")
    assert len(exact) == 10 * 10 * 6 and all(error == 0 for _, error in exact.values())
    sampled = values(*SMALL, "--coalitions", 62, "--adjust", "none", "--target", "all")
    check_close(exact, sampled, 1e-9)


@test
def values_sum_to_what_all_players_add():
    for extra in (["--method", "exact"], [], ["--adjust", "none"], ["--adjust", "shrink"],
                  ["--sampler", "kernel", "--coalitions", 33], ["--adjust", "knn:1"],
                  ["--adjust", "kernel"]):
        shutil.rmtree("values.csv.table", ignore_errors=True)
        about = fds_json(*SMALL, *extra, "-o", "values.csv")
        total = about["probability_with_all"] - about["probability_with_none"]
        assert abs(sum(p["value"] for p in about["ranking"]) - total) < 1e-9, extra
        by_test = {}
        for row in read_table("values.csv"):
            by_test.setdefault(row["test"], []).append(float(row["value"]))
        sums = [sum(column) for column in by_test.values()]
        assert len(sums) == 10 and abs(sum(sums) / 10 - total) < 1e-9, extra


@test
def for_exact_values_the_mean_is_the_mean_of_the_values():
    each = values(*SMALL, "--method", "exact", "--target", "true")
    shutil.rmtree("values.csv.table")
    mean = values(*SMALL, "--method", "exact", "--global")
    assert len(mean) == 6
    for (_, _, player), (value, _) in mean.items():
        of_player = [v for key, (v, _) in each.items() if key[2] == player]
        assert abs(sum(of_player) / 10 - value) < 1e-12


@test
def every_sampler_and_adjustment_comes_near_the_exact_values():
    args = ["value", MNIST, "--players", 10, "--test", 10, "--model", "logistic", "--table", "t"]
    exact = values(*args, "--method", "exact", "--global")
    scale = max(abs(value) for value, _ in exact.values())
    for extra in (["--sampler", "kernel"], ["--sampler", "paired"], ["--sampler", "leverage"],
                  ["--adjust", "shrink"], ["--adjust", "none"], ["--adjust", "knn:2"],
                  ["--adjust", "kernel"], ["--group", "model:3"], ["--draw", 7]):
        check_close(exact, values(*args, "--global", "--coalitions", 600, *extra), 0.3 * scale)


@test
def group_wise_values_exact_and_sampled_agree():
    pathlib.Path("groups").write_text("".join(
        f"{row['player']},{'ab'[i % 2]}\n" for i, row in enumerate(ranked())))
    for sampler in ("gfds", "gfds+"):
        args = [*SMALL, "--sampler", sampler, "--group", "groups", "--global", "--table", "t"]
        exact = values(*args, "--method", "exact")
        sampled = values(*args, "--coalitions", 4000)
        scale = max(abs(value) for value, _ in exact.values())
        # those sampled sum to what all players add, the exact ones of gfds need not
        shift = sum(sampled[key][0] - exact[key][0] for key in exact) / 6
        if sampler == "gfds+":
            assert abs(shift) < 1e-9
        check_close({key: (value + shift, 0) for key, (value, _) in exact.items()}, sampled,
                    0.05 * scale)


def ranked():
    return fds_json(*SMALL, "--table", "t")["ranking"]


@test
def another_draw_means_other_coalitions_and_the_same_sub_models():
    args = ["value", MNIST, "--players", 12, "--test", 10, "--model", "logistic", "--table", "t"]
    first = fds_json(*args, "--coalitions", 100)
    other = fds_json(*args, "--coalitions", 100, "--draw", 1)
    assert first["ranking"] != other["ranking"]
    assert first["game"]["missing"] == 102 and 50 < other["game"]["missing"] <= 100
    more = fds_json(*args, "--coalitions", 200)  # its first hundred are those of the first call
    assert more["game"]["missing"] <= 100
    assert fds_json(*args, "--coalitions", 100)["ranking"] == first["ranking"]


@test
def labels_are_those_predicted_or_the_true_ones_or_all():
    args = [*SMALL, "--players", 20, "--table", "t"]
    predicted, true = values(*args), values(*args, "--target", "true")
    everything = values(*args, "--target", "all")
    assert len(predicted) == len(true) == 200 and len(everything) == 2000
    assert predicted.keys() != true.keys()
    for some in (predicted, true):
        assert some.keys() <= everything.keys()
    rows = read_table("values.csv")
    assert {row["label"] for row in rows} == set("0123456789")
    assert fds_json(*args)["target"] == "predicted"
    assert fds_json(*args, "--global")["target"] == "true"


@test
def other_value_functions_need_no_network():
    for kind in ("knn:3", "kernel"):
        about = fds_json("value", MNIST, "--players", 8, "--test", 10, "--utility", kind,
                         "--method", "exact", "--table", kind)
        assert about["network"] is None and about["game"]["coalitions"] == 256
        assert about["game"]["utility"] == kind and len(about["ranking"]) == 8
    text, _ = fds("value", MNIST, "--players", 8, "--test", 10, "--utility", "knn:3", "--table",
                  "knn:3", "--method", "exact")
    assert "network" not in text and "0 computed, 256 were there already" in text


@test
def options_reach_the_sub_models():
    seen = set()
    for extra in ([], ["--lr", 0.001], ["--beta", 3], ["--batch", 4], ["--optimizer", "sgd"],
                  ["--utility", "retrain:2"], ["--utility", "retrain"], ["--seed", 1],
                  ["--model", "mlp"]):
        about = fds_json(*SMALL, "--method", "exact", *extra, "--table", f"t{len(seen)}")
        seen.add(about["ranking"][0]["value"])
    assert len(seen) == 9, "an option made no difference"


@test
def the_learning_rate_shown_is_the_one_trained_with():
    for value, epochs, rate in (("retrain:2", 2, 0.002), ("retrain", 1000, 0.002)):
        args = [*SMALL, "--lr", 0.0002, "--utility", value, "--table", value, "--estimate"]
        assert f"\nutility     {value} at learning rate {rate}\n" in fds(*args)[0]
        parameters = fds_json(*args)["game"]["parameters"]
        assert (parameters["epochs"], parameters["lr"]) == (epochs, rate)


# ---- files and text ----


@test
def the_three_formats_say_the_same():
    for extra, shape in (([], [2, 10, 6]), (["--target", "all"], [2, 10, 10, 6]),
                         (["--global"], [2, 6])):
        for name in ("v.csv", "v.npy", "v.json"):
            fds(*SMALL, *extra, "-q", "--table", "t", "-o", name)
        rows, (got, numbers), about = read_table("v.csv"), read_npy("v.npy"), json.loads(
            read("v.json"))
        names = [p["name"] for p in about["players"]]
        for start_row in range(0, len(rows), 6):  # by rank; the others have the players' order
            ranked_rows = rows[start_row:start_row + 6]
            assert [row["rank"] for row in ranked_rows] == list("123456")
            assert all(float(a["value"]) >= float(b["value"])
                       for a, b in zip(ranked_rows, ranked_rows[1:]))
            rows[start_row:start_row + 6] = sorted(ranked_rows,
                                                   key=lambda row: names.index(row["player"]))
        assert got == shape
        pairs = [(float(row["value"]), float(row["standard_error"])) for row in rows]
        half = len(numbers) // 2
        assert pairs == list(zip(numbers[:half], numbers[half:])), "bit for bit"
        flat = [list(pair) for result in about["results"]
                for pair in zip(result["values"], result["standard_errors"])]
        assert flat == [list(pair) for pair in pairs]
        assert [p["name"] for p in about["players"]] == [row["player"] for row in rows[:6]]
        assert about["classes"] == list("0123456789")
        if "--global" in extra:
            assert list(rows[0]) == ["rank", "player", "player_label", "provider", "samples", "value",
                                     "standard_error"]
            assert list(about["results"][0]) == ["values", "standard_errors"]
        else:
            assert list(rows[0]) == ["test", "label", "rank", "player", "player_label", "provider", "samples", "value",
                                     "standard_error"]
            assert [str(r["test"]) for r in about["results"]] == [r["test"] for r in rows[::6]]
            assert [r["label"] for r in about["results"]] == [r["label"] for r in rows[::6]]


@test
def more_coalitions_where_sub_models_are_quick_and_never_more_than_there_are():
    write_csv("t.csv", rows=200, providers=6)
    quick = fds_json("value", "t.csv", "--players", "providers", "--estimate")
    assert quick["sampling"]["coalitions"] == 2 ** 6 - 2 and quick["groups"] == {"by": "all", "count": 1}
    quick = fds_json("value", "t.csv", "--players", 20, "--estimate")
    assert quick["sampling"]["coalitions"] == 4096 and quick["groups"]["by"] == "label"
    slow = fds_json("value", MNIST, "--players", 30, "--model", "cnn", "--utility", "retrain", "--estimate")
    assert slow["sampling"]["coalitions"] == 1000
    many = fds_json("value", MNIST, "--players", 60, "--model", "cnn", "--utility", "retrain", "--estimate")
    assert many["sampling"]["coalitions"] == 1200  # 20 per player
    none = fds_json("value", MNIST, "--players", 5, "--utility", "knn:3", "--sampler", "kernel", "--estimate")
    assert none["sampling"]["coalitions"] == 1000


@test
def control_shrinks_nothing():
    args = ["value", MNIST, "--players", 30, "--test", 5, "--model", "logistic", "--coalitions", 400, "--table", "t"]
    control = fds_json(*args, "--adjust", "control")
    assert control["fit"]["shrink"] == control["fit"]["shrink_rest"] == 0
    refused([*args, "--sampler", "gfds", "--adjust", "control"], 2, "--adjust control does not apply")


@test
def text_says_what_the_json_says():
    args = ["value", MNIST, "--players", 30, "--test", 20, "--model", "logistic", "--coalitions", 600,
            "-o", "v.csv"]
    out, err = fds(*args, "--top", 5)
    about = fds_json(*args)
    check_width(out.replace(MNIST, "mnist"))
    note = (r"fds value: retrain:10: 602 sub-models to train \(0 are there already\)\n"
            r"fds value: [\d.]+ [kM]B on disk \([\d.]+ \w+ free\), [\d.]+ [kM]B of memory\n")
    assert re.match(note, err), err
    check_width(err)
    for line in ("network     logistic, 7850 weights", "players     30 samples",
                 "groups      10 by label", "coalitions  600 by leverage, in pairs, adjusted by "
                 "counts", "table       v.csv.table", "written     v.csv",
                 "utility     retrain:10 at learning rate 0.001"):
        assert f"\n{line}\n" in out, (line, out)
    trained = r"\nsub-models  602 trained in [\d.]+ s \(\d+ per second\), 0 were there already\n"
    assert re.search(trained, out), out
    assert f"predicts {100 * about['fit']['explained']:.1f} % of" in out
    assert about["game"]["missing"] == 0 and about["game"]["coalitions"] == 602
    shown = re.findall(r"^ *(\d+)  (sample \d+) +(\d) +(-?[\d.]+)  \u00b1 ([\d.]+)$", out, re.M)
    assert [int(row[0]) for row in shown] == [1, 2, 3, 4, 5, 28, 29, 30], out
    ranking = about["ranking"]
    assert [p["value"] for p in ranking] == sorted((p["value"] for p in ranking), reverse=True)
    for rank, name, label, value, error in shown:
        entry = ranking[int(rank) - 1]
        assert (name, label) == (entry["player"], entry["label"])
        assert abs(float(value) - entry["value"]) < 1e-6
        assert abs(float(error) - entry["standard_error"]) < 1e-6


@test
def exact_values_are_shown_without_errors():
    out, _ = fds(*SMALL, "--method", "exact")
    assert "\u00b1" not in out and "standard error" not in out
    assert "coalitions  64, all that exact values need" in out and len(out.split("\n")) > 15
    assert fds_json(*SMALL, "--method", "exact")["fit"] is None
    assert os.listdir(".") == ["mnist.table"]


@test
def few_coalitions_are_warned_of():
    args = ["value", MNIST, "--players", 40, "--test", 10, "--model", "logistic", "--coalitions",
            40, "--adjust", "none"]
    out, err = fds(*args, "-q")
    assert "warning: 40 coalitions are few for 40 players" in err and "\nridge " in out, err


@test
def providers_from_a_table_are_players_or_groups():
    write_csv("t.csv", providers=6)
    args = ["value", "t.csv", "--model", "logistic", "-q"]
    out, _ = fds(*args, "--players", "providers", "--method", "exact", "--global", "-o", "v.csv")
    assert "players     6 providers with 96 samples" in out and "24 samples set aside" in out
    rows = read_table("v.csv")
    assert sorted(row["player"] for row in rows) == [f"shop-{i}" for i in range(6)]
    assert {row["player_label"] for row in rows} <= set("abc")
    out, _ = fds(*args, "--players", 20, "--group", "provider", "--coalitions", 60, "--table", "g")
    check_width(out)
    assert re.search(r"groups +\d by provider", out) and re.search(r"provider +value", out), out
    about = fds_json(*args, "--players", 20, "--sampler", "gfds+", "--group", "provider",
                     "--coalitions", 60, "--table", "g")
    assert all(p["provider"].startswith("shop-") for p in about["ranking"])
    assert about["tests_set_aside"] is True and about["tests"] == 24


@test
def as_many_samples_are_held_back_as_for_train_and_some_of_them_tested():
    write_csv("t.csv", rows=1500)
    args = ["t.csv", "--players", 10]
    valued, err = fds("value", *args, "--utility", "knn:1", "--coalitions", 20)
    assert "300 samples are set aside" in err and "200 samples set aside" in valued
    assert "300 samples are set aside" in fds("train", *args, "--epochs", 1, "-o", "m.safetensors")[1]


@test
def names_with_commas_and_quotes_survive_the_file():
    rows = ["x,label,provider"] + [f'{i % 3 + i / 100},"a, ""{i % 3}""","shop ""{i % 5}"", Ltd"'
                                   for i in range(60)]
    pathlib.Path("t.csv").write_text("\n".join(rows) + "\n")
    args = ["value", "t.csv", "--players", "providers", "--utility", "knn:1", "--method", "exact",
            "-q", "--table", "t"]
    fds(*args, "-o", "v.csv")
    fds(*args, "-o", "v.json")
    table, about = read_table("v.csv"), json.loads(read("v.json"))
    assert {row["player"] for row in table} == {f'shop "{i}", Ltd' for i in range(5)}
    assert {row["label"] for row in table} <= {f'a, "{i}"' for i in range(3)}
    assert [p["name"] for p in about["players"]] == [row["player"] for row in table[:5]]


# ---- estimates ----


@test
def an_estimate_says_what_it_would_take_and_writes_nothing():
    args = [*SMALL, "-o", "v.csv", "--estimate"]
    out, err = fds(*args)
    check_width(out.replace(MNIST, "mnist"))
    assert err.count("\n") == 1 and "classes have no sample" in err, err
    assert "62 by leverage" in out and "64 sub-models to train (0 are there already)" in out
    assert "would write v.csv" in out and os.listdir(".") == []
    about = fds_json(*args, "--table", "a/b/c", "--adjust", "kernel")
    assert about["game"]["missing"] == 64 and about["game"]["seconds"] is None
    assert about["surrogate"]["missing"] == 64
    assert os.listdir(".") == []
    fds(*args[:-1], "-q", "--coalitions", 20)
    before = table_bytes("v.csv.table")
    assert "42 sub-models to train (22 are there already)" in fds(*args)[0]
    assert fds_json(*args)["game"]["missing"] == 42
    assert table_bytes("v.csv.table") == before
    assert sorted(os.listdir(".")) == ["v.csv", "v.csv.table"]


# ---- resuming ----


@test
def a_second_run_trains_nothing_and_gives_the_same_bytes():
    first, _ = fds(*SMALL, "-o", "v.csv")
    once, table = read("v.csv"), table_bytes("v.csv.table")
    second, err = fds(*SMALL, "-o", "v.csv")
    assert "sub-models  64 trained in" in first
    assert "sub-models  0 trained, 64 were there already" in second and "to train" not in err
    assert read("v.csv") == once and table_bytes("v.csv.table") == table
    ranking = lambda text: text[:text.index("\n\n")]
    assert ranking(first) == ranking(second)


@test
def threads_do_not_change_a_byte():
    args = ["value", MNIST, "--players", 40, "--test", 60, "--model", "logistic", "--coalitions",
            100, "--target", "all", "-q", "--adjust"]
    for adjust in ("counts", "knn:5"):
        for threads in (1, 2):
            fds(*args, adjust, "--threads", threads, "-o", f"{threads}.npy")
        assert read("1.npy") == read("2.npy"), adjust
        assert table_bytes("1.npy.table") == table_bytes("2.npy.table")


def cut_short(number, moment):
    """Starts the long command, sends it a signal at that moment; gives its exit code and error."""
    process = start(*LONG, "-o", "v.csv", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    moment(process)
    process.send_signal(number)
    err = process.communicate(timeout=120)[1].decode()
    return process.returncode, err


def at_work(process):
    """Waits until records are being written."""
    segment = pathlib.Path("v.csv.table/00000.seg")
    began = segment.stat().st_size if segment.exists() else 0
    while process.poll() is None and not (segment.exists() and
                                          segment.stat().st_size > began + 10000):
        time.sleep(0.002)


@test
def a_run_that_was_killed_and_interrupted_ends_with_the_same_bytes():
    began = time.monotonic()
    fds(*LONG, "-o", "whole.csv")
    took_s = time.monotonic() - began
    pathlib.Path("v.csv").write_text("the old one")
    chance = random.Random(1)
    for _ in range(5):
        delay_s = chance.uniform(0, took_s / 12)
        assert cut_short(signal.SIGKILL, lambda _: time.sleep(delay_s))[0] == -signal.SIGKILL
    code, err = cut_short(signal.SIGINT, at_work)
    assert code == 130, (code, err)
    said = re.fullmatch(r"fds value: interrupted: ([\d,]+) of 802 are kept in v.csv.table; run the "
                        r"same command again to resume\n", err)
    assert said and read("v.csv") == b"the old one", err
    game = fds_json(*LONG, "-o", "v.csv")["game"]
    kept = int(said[1].replace(",", ""))
    assert game["coalitions"] - game["missing"] == kept and 0 < kept < 802
    assert read("v.csv") == read("whole.csv")
    assert table_bytes("v.csv.table") == table_bytes("whole.csv.table")


@test
def a_damaged_record_is_named_and_computed_again():
    fds(*SMALL, "-q", "-o", "v.csv")
    values_before, table = read("v.csv"), table_bytes("v.csv.table")
    segment = pathlib.Path("v.csv.table/00000.seg")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    out, err = fds(*SMALL, "-o", "v.csv")
    assert "warning: v.csv.table/00000.seg: record" in err and "damaged" in err, err
    assert "sub-models  1 trained in" in out and "63 were there already" in out
    assert read("v.csv") == values_before and table_bytes("v.csv.table") == table


@test
def half_precision_takes_half_the_room_and_changes_little():
    full = values(*SMALL, "--method", "exact", "--table", "full")
    half = values(*SMALL, "--method", "exact", "--table", "half", "--store", "f16")
    check_close(full, half, 1e-3)
    size = lambda folder: os.path.getsize(f"{folder}/00000.seg")
    assert size("half") < 0.6 * size("full")


@test
def a_table_of_other_parameters_is_refused_with_the_difference():
    fds(*SMALL, "-q", "-o", "v.csv")
    once, table = read("v.csv"), table_bytes("v.csv.table")
    for extra, difference in ((["--lr", 0.01], "lr is 0.001 in the table, 0.1 now"),
                              (["--seed", 1], "seed is 0"), (["--store", "f16"], "store is"),
                              (["--utility", "retrain:5"], "epochs is 10"),
                              (["--players", 7], "players is 6"), (["--test", 11], "inputs is 10")):
        _, err = fds(*SMALL, *extra, "-q", "-o", "v.csv", code=2)
        *_, last = err.rstrip("\n").split("\n")
        assert last.startswith("fds value: v.csv.table/table.json: "), err
        assert difference in last and "in the table" in last and "use another folder" in last, err
    assert read("v.csv") == once and table_bytes("v.csv.table") == table


@test
def without_names_every_question_has_a_table_of_its_own():
    table = lambda *extra: fds_json(*SMALL, *extra)["game"]["table"]
    assert table() == "mnist.table" and table("--seed", 1) == "mnist.2.table"
    assert table("--seed", 2) == "mnist.3.table"
    once = table_bytes("mnist.table"), table_bytes("mnist.2.table")
    again = fds_json(*SMALL, "--seed", 1)["game"]
    assert again["table"] == "mnist.2.table" and again["missing"] == 0
    assert fds_json(*SMALL)["game"]["missing"] == 0
    assert fds_json(*SMALL, "--seed", 2, "--estimate")["game"]["missing"] == 0
    assert once == (table_bytes("mnist.table"), table_bytes("mnist.2.table"))
    assert sorted(os.listdir(".")) == ["mnist.2.table", "mnist.3.table", "mnist.table"]


# ---- mistakes ----


@test
def mistakes_in_options_are_answered_before_any_work():
    # the data does not exist: had it been looked for first, that would be the error
    for args, phrases in (
            (["-o", "v.txt"], ["-o v.txt", ".csv, .npy or .json"]),
            (["-o", "v"], [".csv, .npy or .json"]),
            (["--method", "exat"], ["must be ls, exact",'did you mean "exact"?']),
            (["--players", "none"], ["--players none"]),
            (["--sampler", "leverge"], ['did you mean "leverage"?']),
            (["--coalitions", 101], ["--coalitions 101", "draws pairs", "even"]),
            (["--coalitions", 101, "--sampler", "gfds"], ["draws pairs"]),
            (["--coalitions", 0], ["--coalitions 0", "from 1"]),
            (["--method", "exact", "--coalitions", 100], ["--coalitions does not apply to method exact"]),
            (["--method", "exact", "--draw", 1], ["--draw does not apply to method exact"]),
            (["--method", "exact", "--adjust", "none"], ["--adjust does not apply to method exact", "applies to ls"]),
            (["--method", "exact", "--sampler", "paired"], ["--sampler paired", "gfds or gfds+"]),
            (["--method", "exact", "--group", "label"], ["--group needs", "--adjust other than none"]),
            (["--adjust", "none", "--group", "label"], ["--group needs", "--adjust other than none"]),
            (["--adjust", "count"], ["--adjust count", 'did you mean "counts"?']),
            (["--adjust", "knn:0"], ["--adjust knn:0", "knn:K"]),
            (["--adjust", "knn"], ["knn:K"]),
            (["--adjust", "counts", "--sampler", "gfds"], ["use none or shrink"]),
            (["--adjust", "knn:3", "--sampler", "gfds+"], ["use none or shrink"]),
            (["--adjust", "knn:3", "--players", "providers"], ["--adjust knn:3", "one sample"]),
            (["--target", "all", "--global"], ["--target all", "predicted or true"]),
            (["--utility", "knn:3", "--lr", 1], ["--lr does not apply: --utility knn:3"]),
            (["--utility", "kernel", "--model", "mlp"], ["--model does not apply: --utility kernel"]),
            (["--store", "f64"], ["f32 or f16"]),
            (["--lr", "nan"], ["--lr nan", "number above 0"]),
            (["--test", 0], ["--test 0"]),
            (["--top", 0], ["--top 0"])):
        refused(["value", "none", *args], 2, "fds value: ", *phrases)
    refused(["value", "none", "-o", "nowhere/v.csv"], 1, "-o nowhere/v.csv", "folder nowhere")
    refused(["value"], 2, "DATA is missing", "fds value mnist -o values.csv")
    assert os.listdir(".") == []


@test
def mistakes_that_the_data_shows_are_answered_before_any_training():
    write_csv("t.csv", classes="a" * 8)
    shown = fds_json("data", "show", MNIST)
    tests, samples = shown["test"]["count"], shown["train"]["count"]
    for args, code, phrases in (
            ([MNIST, "--test", tests + 1], 2, [f"--test {tests + 1}", f"at most {tests}"]),
            ([MNIST, "--players", samples + 1], 2, [f"at most {samples}"]),
            ([MNIST, "--players", "providers"], 2, ["provider"]),
            ([MNIST, "--method", "exact"], 1, ["100 players need 2^100", "use ls"]),
            ([MNIST, "--method", "exact", "--sampler", "gfds", "--players", 200], 1,
             ["exact GFDS values", "use ls"]),
            ([MNIST, "--players", 10, "--coalitions", 1024], 1, ["--coalitions 1024", "only 1022"]),
            ([MNIST, "--utility", "retrian"], 2, ['unknown utility function "retrian"', '"retrain:K"']),
            ([MNIST, "--utility", "knn"], 2, ['"knn:K"']),
            ([MNIST, "--utility", "knn:x"], 2, ["after the colon"]),
            ([MNIST, "--model", "lenet"], 2, ['did you mean "lenet5"?']),
            ([MNIST, "--group", "lable"], 1, ["--group", 'did you mean "label"?']),
            ([MNIST, "--group", "model:x"], 2, ["--group model:N", "whole number", "got model:x"]),
            ([MNIST, "--group", "provider"], 2, ["provider"]),
            (["t.csv", "--sampler", "gfds", "--group", "label"], 2, ["needs two groups or more"])):
        _, err = fds("value", *args, "-q", code=code)
        *_, last = err.rstrip("\n").split("\n")
        for phrase in ["fds value: ", *phrases]:
            assert says(phrase, last), f"{args}: no {phrase!r} in {last!r}"
    refused(["value", MNIST, "--players", 10, "--adjust", "none", "--table", "t.csv"], 1, "t.csv")
    assert os.listdir(".") == ["t.csv"]


@test
def a_single_player_has_a_value():
    args = ["value", MNIST, "--players", 1, "--test", 5, "--model", "logistic", "-q"]
    assert "--method exact" in fds(*args, code=2)[1]
    about = fds_json(*args, "--method", "exact")
    gain = about["probability_with_all"] - about["probability_with_none"]
    assert abs(about["ranking"][0]["value"] - gain) < 1e-9


@test
def groups_from_a_file_must_name_every_player():
    names = [row["player"] for row in ranked()]
    pathlib.Path("few").write_text(f"{names[0]},a\n")
    pathlib.Path("odd").write_text("".join(f"{name},a\n" for name in names) + "nobody,b\n")
    for file in ("few", "odd"):
        _, err = fds(*SMALL, "-q", "--group", file, "--table", "t", code=1)
        assert f"fds value: {file}" in err, err


@test
def a_folder_that_is_no_table_is_left_alone():
    os.mkdir("mine")
    pathlib.Path("mine/letter").write_text("dear")
    for extra in ([], ["--estimate"]):
        _, err = fds(*SMALL, "-q", "--table", "mine", *extra, code=2)
        assert "mine" in err and "no table.json" in err, err
    assert os.listdir("mine") == ["letter"]


@test
def a_diverging_sub_model_is_said_so_and_leaves_the_old_file():
    pathlib.Path("v.csv").write_text("the old one")
    _, err = fds(*SMALL, "-q", "-o", "v.csv", "--model", "mlp", "--optimizer", "sgd", "--lr", 1000,
                 "--beta", 1000000, code=1)
    assert "learning rate" in err, err
    assert read("v.csv") == b"the old one"


@test
def tests_may_follow_the_frequencies_of_classes():
    lines = ["x,label"] + [f"{i / 7},{'b' if i % 10 == 3 else 'a'}" for i in range(100)]
    pathlib.Path("rare.csv").write_text("\n".join(lines) + "\n")
    arguments = ["value", "rare.csv", "--players", 8, "--utility", "knn:1", "--coalitions", 20]
    counts = {}
    for balance in ("yes", "no"):
        about = fds_json(*arguments, "--test", 20, "--test-balance", balance, "-o", f"{balance}.json", "--target", "true")
        assert about["tests_balanced"] == (balance == "yes")
        labels = [r["label"] for r in json.loads(pathlib.Path(f"{balance}.json").read_text())["results"]]
        counts[balance] = labels.count("b")
    assert counts == {"yes": 10, "no": 2}, counts
    refused([*arguments, "--test-balance", "n"], 2, "--test-balance must be yes or no (got n)")


@test
def a_model_that_learnt_nothing_is_warned_about():
    write_csv("t.csv", rows=120)
    untrained = ["value", "t.csv", "--players", 12, "--model", "logistic", "--utility", "retrain:1", "--lr", 1e-9]
    for method in (["--coalitions", 60], ["--method", "loo"]):
        assert "the commonest label alone 8: values of such a model say little" in fds(*untrained, *method)[1]
    assert "commonest label" not in fds("value", "t.csv", "--players", 12, "--utility", "knn:1", "--method", "loo")[1]


sys.exit(main())
