# SPDX-License-Identifier: Apache-2.0
"""fds fit, fds explain and fds pay as their users meet them: runs, answers, money, mistakes.

usage: test_fit.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import gzip
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from harness import (MNIST, check_width, digit, fds, fds_json, main, refused, start, test,
                     write_csv, write_png)

# A fit of about a second: 12 digits, sub-models of a millisecond.
SMALL = ["--players", 12, "--inputs", 60, "--coalitions", 100, "--model", "logistic", "--threads",
         1]
AFDS = ["--method", "afds", "--epochs", 3]
LINEAR = ["--explainer", "linear", "--explainer-epochs", 3]
QUICK = [*SMALL, *AFDS, *LINEAR]
KEPT = tempfile.TemporaryDirectory()


def fit(*args, out="run", data=MNIST):
    return fds("fit", data, *QUICK, *args, "-o", out, "-q")


def the_run():
    """One run that many tests look at; none changes it."""
    path = os.path.join(KEPT.name, "run")
    if not os.path.exists(path):
        fit("--keep-models", out=path)
    return path


def write_npy(path, shape, values, code="f"):
    """code: f for float32, B for bytes."""
    kind = {"f": "<f4", "B": "|u1"}[code]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                   header.encode() + struct.pack(f"<{len(values)}{code}", *values))


def contents(folder):
    """What is the same for the same fit: everything but how long it took."""
    result = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file() and path.name != ".lock":
            data = path.read_bytes()
            if path.name == "run.json":
                about = json.loads(data)
                about.get("results", {}).pop("seconds", None)
                about.get("results", {}).pop("was_resumed", None)
                about.pop("checksum", None)
                data = json.dumps(about)
            result[str(path.relative_to(folder))] = data
    return result


# ---- fitting ----


@test
def a_fit_says_what_it_did_and_what_comes_next():
    out, err = fds("fit", MNIST, *QUICK, "-o", "run")
    check_width(out.replace(MNIST, "mnist"))
    assert "error" not in err.lower(), err
    for line in ("network     logistic, 7850 weights", "players     12 samples",
                 "groups      10 by label", "method      afds: retrain:3, coalitions by leverage, "
                 "adjusted by counts", "inputs      60 samples that no player owns",
                 "next        fds explain run --index 0"):
        assert f"\n{line}\n" in out, f"no {line!r} in {out}"
    for pattern in (r"service     accuracy [\d.]+ % on the inputs, [\d.]+ % on 200 test samples",
                    r"explainer   linear, 3 epochs, best epoch: [1-3]",
                    r"agreement   -?[\d.]+ correlation with least squares", r"  total +[\d.]+ s"):
        assert re.search(pattern, out), f"no {pattern!r} in {out}"
    about = fds_json("fit", MNIST, *QUICK, "-o", "run")  # it is there: nothing is done again
    assert about["resumed"] and about["method"] == "afds" and about["explainer"] == "linear"
    assert about["players"] == {"kind": "samples", "count": 12, "samples": 12}
    assert about["inputs"] == 60 and about["test"]["count"] == 200 and about["run"] == "run"
    assert not about["models_kept"] and about["sub_models"] > 100
    assert abs(sum(v for k, v in about["seconds"].items() if k != "total") -
               about["seconds"]["total"]) < 1e-9


@test
def a_plan_says_what_it_would_take_and_writes_nothing():
    out, _ = fds("fit", MNIST, *QUICK, "--estimate", "-q")
    check_width(out.replace(MNIST, "mnist"))
    for word in ("sub-models ", "memory ", "disk ", "accuracy ", "total "):
        assert f"\n{word}" in out or f"\n  {word}" in out, out
    about = fds_json("fit", MNIST, *QUICK, "--estimate", "-q")
    assert about["sub_models"] > 100 and about["disk"] > 0 and about["memory"] > 0
    assert about["seconds"]["total"] > 0
    assert about["accuracy"] is None  # nothing like it was measured
    assert os.listdir(".") == []


@test
def a_mistake_about_the_explainer_shows_before_any_work():
    refused(["fit", MNIST, *SMALL, "--explainer", "resnet18", "--weights", "none.safetensors",
             "-o", "run"], 1, "none.safetensors")
    assert os.listdir(".") == []


@test
def a_correlation_that_is_not_defined_is_left_out():
    args = ["fit", MNIST, *SMALL, "--method", "gfds+", *LINEAR, "-o", "run", "-q"]
    out, _ = fds(*args)
    assert "agreement   " in out and "of the predicted label" not in out, out
    assert fds_json(*args)["agreement_within_class"] is None


@test
def every_method_and_explainer_gives_answers_that_add_up():
    for number, args in enumerate((
            [*LINEAR],  # fds
            ["--method", "gfds", *LINEAR],
            ["--method", "gfds+", *LINEAR],
            ["--method", "gfds+", "--form", "penalty", "--gamma", 0.5, *LINEAR],
            [*AFDS, "--explainer", "mlp", "--explainer-epochs", 2],
            [*AFDS, *LINEAR, "--objective", "paper", "--draws", 4],
            [*AFDS, *LINEAR, "--sampler", "paired", "--adjust", "shrink"],
            [*AFDS, *LINEAR, "--adjust", "none", "--seed", 3])):
        fds("fit", MNIST, *SMALL, *args, "-o", f"r{number}", "-q")
        about = fds_json("explain", f"r{number}", "--index", "0..2")
        for one in about["inputs"]:
            total = one["probability_with_all"] - one["probability_with_none"]
            assert abs(sum(p["value"] for p in one["ranking"]) - total) < 1e-6, args
            assert len(one["ranking"]) == 12


def with_variable(name, value, call):
    os.environ[name] = value
    try:
        return call()
    finally:
        del os.environ[name]


@test
def threads_that_openmp_withholds_are_missed_before_the_work_and_not_by_answers():
    threads = ["--threads", 2]
    limited = lambda call: with_variable("OMP_THREAD_LIMIT", "1", call)
    limited(lambda: refused(["fit", MNIST, *QUICK, *threads, "-o", "run", "-q"], 1,
                            "grants 1 of 2 threads", "OMP_THREAD_LIMIT"))
    fit(*threads)
    whole = fds_json("explain", "run", "--index", 0)
    assert whole["inputs"] == limited(lambda: fds_json("explain", "run", "--index", 0))["inputs"]


@test
def what_onednn_would_print_does_not_spoil_results():
    for name in ("DNNL_VERBOSE", "ONEDNN_VERBOSE"):
        with_variable(name, "2", lambda: fds_json("fit", MNIST, *QUICK, "-o", name))
        answer = with_variable(name, "2", lambda: fds_json("explain", name, "--index", 0))
        assert len(answer["inputs"]) == 1


@test
def openmp_waits_briefly_while_an_explainer_is_fitted_unless_told_otherwise():
    def variables(name, wanted):
        process = start("fit", MNIST, *QUICK, "--coalitions", 3000, "-o", name, "-q")
        path = pathlib.Path(f"/proc/{process.pid}/environ")
        for _ in range(1000):
            if wanted in (found := path.read_bytes().decode().split("\0")):
                break
            time.sleep(0.01)
        process.kill()
        process.wait()
        return found
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        os.environ.pop(name, None)
    assert "GOMP_SPINCOUNT=10000" in variables("r1", "GOMP_SPINCOUNT=10000")
    told = with_variable("OMP_WAIT_POLICY", "active",
                         lambda: variables("r2", "OMP_WAIT_POLICY=active"))
    assert not any(each.startswith("GOMP_SPINCOUNT") for each in told)


@test
def a_fit_that_is_interrupted_goes_on_and_ends_with_the_same_bits():
    args = ["fit", MNIST, *QUICK, "--coalitions", 3000, "-q"]
    fds(*args, "-o", "whole")
    process = start(*args, "-o", "broken", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.time() + 30
    while not os.path.exists("broken/run.json") and time.time() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode != 0:  # it had not yet ended
        assert process.returncode == 130, err
        assert b"interrupted: finished work is kept in broken; run the same command again" in err, err
        refused(["explain", "broken", "--index", 0], 2, "interrupted", "fds fit")
        refused(["pay", "broken", "--index", 0, "--amount", 1], 2, "interrupted")
        about = json.loads(fds(*args, "-o", "broken", "--json")[0])
        assert about["resumed"]
    assert contents("whole") == contents("broken")


@test
def a_folder_with_another_run_is_left_alone():
    shutil.copytree(the_run(), "run")
    before = contents("run")
    refused(["fit", MNIST, *QUICK, "--keep-models", "--seed", 1, "-o", "run", "-q"], 2,
            "use another folder")
    assert contents("run") == before


@test
def a_run_may_lie_in_a_folder_whose_name_is_no_text():
    folder = os.fsdecode(b"run \xff")
    assert fds_json("fit", MNIST, *QUICK, "-o", folder, "-q")["run"] == "run ?"
    about = fds_json("explain", folder, "--index", 0)
    assert about["run"] == "run ?" and len(about["inputs"]) == 1


@test
def inputs_of_the_test_part_leave_providers_all_of_their_samples():
    with open("owners.csv", "w", encoding="ascii") as file:
        file.writelines(f"{i},clinic {i % 6}\n" for i in range(300))
    fds("fit", MNIST, *AFDS, "--owners", "owners.csv", "--players", "providers", "--coalitions", 40, "--inputs-from",
        "test", "--inputs", 100, "--explainer", "bank", "--model", "logistic", "-o", "run", "-q")
    about = json.loads(pathlib.Path("run/run.json").read_text(encoding="utf-8"))
    assert about["inputs"] == {"count": 100, "validation": 10, "from": "test"}
    assert sum(len(player["samples"]) for player in about["players"]) == 300
    with open("run/samples.csv", encoding="ascii") as file:
        rows = [line.split(",") for line in file.read().split()[1:]]
    inputs = [int(row[2]) for row in rows if row[0] != "player"]
    assert len(inputs) == len(set(inputs)) == 100 and max(inputs) < 200
    # the answers are those of samples of the test part
    labels = gzip.decompress(pathlib.Path(MNIST, "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    assert all(labels[int(row[2])] == int(row[3]) for row in rows if row[0] != "player")
    fds("explain", "run", "--index", 0, "-q")


@test
def players_leave_samples_for_the_explainer():
    write_csv("t.csv", rows=200, providers=4)
    options = ["--coalitions", 14, "--method", "afds", "--explainer", "linear",
               "--explainer-epochs", 2, "--threads", 1]
    about = json.loads(fds("fit", "t.csv", "--players", "providers", *options, "-o", "p", "--json",
                           "-q")[0])
    assert about["players"] == {"kind": "providers", "count": 4, "samples": 128}
    assert about["inputs"] == 32 and about["test"] == {**about["test"], "count": 40,
                                                       "set_aside": True}
    assert about["group"] == "all" and about["groups"] == 1  # labels say little of providers
    refused(["pay", "p", "--index", 0, "--amount", 1, "--by", "group", "-q"], 2,
            "--by group: all players are one group")
    about = json.loads(fds("fit", "t.csv", "--players", 10, "--inputs", 50, *options, "-o", "n",
                           "--json", "-q")[0])
    assert about["inputs"] == 50 and about["players"]["count"] == 10
    refused(["fit", "t.csv", "--players", 150, "--inputs", 50, "-o", "x", "-q"], 2, "--inputs",
            "at most 10")
    refused(["fit", "t.csv", "--players", "all", "--inputs", 160, "-o", "x", "-q"], 2,
            "--inputs", "below 160")


@test
def the_next_command_works_as_printed_and_from_elsewhere():
    os.mkdir("data")
    write_csv("data/t.csv", rows=200, providers=4)
    text = pathlib.Path("data/t.csv").read_text().replace("label", "outcome", 1).replace("provider", "shop", 1)
    pathlib.Path("data/t.csv").write_text(text)
    out, _ = fds("fit", "data/t.csv", "--label", "outcome", "--provider", "shop", "--players", "providers",
                 "--coalitions", 14, "--method", "afds", "--explainer", "linear", "--explainer-epochs", 2,
                 "-o", "a run", "-q")
    words = shlex.split(re.search(r"^next +fds (.*)$", out, re.M)[1])
    here = fds_json(*words)
    assert here["inputs"][0]["ranking"][0]["player"].startswith("shop-")
    run = os.path.abspath("a run")
    os.chdir("data")
    assert fds_json("explain", run, *words[2:])["inputs"] == here["inputs"]


@test
def a_fit_leaves_a_foreign_folder_alone():
    os.mkdir("photos")
    pathlib.Path("photos/cat.jpg").write_text("cat")
    refused(["fit", MNIST, *QUICK, "-o", "photos"], 2, "photos")
    assert contents("photos") == {"cat.jpg": b"cat"}


# ---- explaining ----


@test
def samples_are_explained_by_index_in_any_order():
    run = the_run()
    about = fds_json("explain", run, "--index", "7,0..2")
    assert [one["sample"] for one in about["inputs"]] == [7, 0, 1, 2]
    assert [one["true"] for one in about["inputs"]] == [str(digit(i)[1]) for i in (7, 0, 1, 2)]
    alone = fds_json("explain", run, "--index", 7)
    assert alone["inputs"] == about["inputs"][:1], "it does not matter what is asked together"
    for one in about["inputs"]:
        values = [p["value"] for p in one["ranking"]]
        assert values == sorted(values, reverse=True)
        assert all(p["standard_error"] >= 0 for p in one["ranking"])
        total = one["probability_with_all"] - one["probability_with_none"]
        assert abs(sum(values) - total) < 1e-6
        assert one["label"] == one["predicted"]
        assert abs(one["confidence"] - one["probability_with_all"]) < 1e-6


@test
def pictures_are_explained_as_the_samples_they_show():
    run = the_run()
    for i in range(3):
        pixels, _ = digit(i)
        write_png(f"gray{i}.png", 28, 28, pixels)
        write_png(f"colour{i}.png", 28, 28, bytes(p for p in pixels for _ in range(3)), colours=3)
    by_index = fds_json("explain", run, "--index", "0..2")["inputs"]
    for kind in ("gray", "colour"):
        names = [f"{kind}{i}.png" for i in range(3)]
        by_file = fds_json("explain", run, *names)["inputs"]
        assert [one["input"] for one in by_file] == names
        for a, b in zip(by_index, by_file):
            assert a["ranking"] == b["ranking"] and a["predicted"] == b["predicted"]
            assert b["true"] is None and b["sample"] is None


@test
def text_and_files_say_what_the_json_says():
    run = the_run()
    out, err = fds("explain", run, "--index", "0,4", "--top", 2, "-o", "v.csv", "--png", "f.png")
    check_width(out.replace(run, "run").replace(MNIST, "mnist"))
    assert err == ""
    about = fds_json("explain", run, "--index", "0,4", "-o", "v.json")
    rows = list(csv.DictReader(open("v.csv", newline="")))
    assert len(rows) == 24 and [r["test"] for r in rows[::12]] == ["0", "4"]
    for one in about["inputs"]:
        assert f"test sample {one['sample']}: label {one['predicted']} with " in out
        by_player = {r["player"]: r for r in rows if r["test"] == str(one["sample"])}
        for place in one["ranking"]:
            row = by_player[place["player"]]
            assert abs(float(row["value"]) - place["value"]) < 1e-9
            assert row["label"] == one["label"] and row["player_label"] == place["label"]
        for place in one["ranking"][:2] + one["ranking"][-2:]:
            assert re.search(rf"^ *{place['rank']}  {place['player']} +{place['label']} +"
                             rf"{place['value']:.6f}  ± {place['standard_error']:.6f}$", out, re.M)
        assert f"{one['ranking'][5]['value']:.6f}" not in out
    assert pathlib.Path("f.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    results = json.loads(pathlib.Path("v.json").read_text())["results"]
    assert [r["test"] for r in results] == [0, 4]


@test
def another_label_can_be_explained():
    run = the_run()
    one = fds_json("explain", run, "--index", 1, "--target", 3)["inputs"][0]
    assert one["label"] == "3" and one["probability_with_all"] < one["confidence"] + 1e-6
    one = fds_json("explain", run, "--index", 1, "--target", "true")["inputs"][0]
    assert one["label"] == one["true"]
    refused(["explain", run, "--index", 1, "--target", "prediced"], 2, "--target prediced",
            'did you mean "predicted"?')
    write_png("0.png", 28, 28, digit(0)[0])
    refused(["explain", run, "0.png", "--target", "true"], 2, "not known")
    refused(["explain", run, "0.png", "--label", "3"], 2, "--target LABEL")


@test
def the_sub_models_check_the_explainer():
    run = the_run()
    out, _ = fds("explain", run, "--index", 0, "--check")
    check_width(out.replace(run, "run").replace(MNIST, "mnist"))
    assert "correlation with the sub-models' answer" in out and "bank" in out
    checked = fds_json("explain", run, "--index", "0..3", "--check")["inputs"]
    plain = fds_json("explain", run, "--index", "0..3")["inputs"]
    bank = fds_json("explain", run, "--index", "0..3", "--by", "bank")
    assert bank["by"] == "bank"
    for a, b, c in zip(checked, plain, bank["inputs"]):
        assert -1 <= a["correlation"] <= 1
        of_bank = {p["player"]: (p["value"], p["standard_error"]) for p in c["ranking"]}
        for p, q in zip(a["ranking"], b["ranking"]):
            assert p["value"] == q["value"]
            assert of_bank[p["player"]] == (p["bank_value"], p["bank_standard_error"])
        total = c["probability_with_all"] - c["probability_with_none"]
        assert abs(sum(p["value"] for p in c["ranking"]) - total) < 1e-6
    fit(out="bare")
    refused(["explain", "bare", "--index", 0, "--check"], 2, "--check", "--keep-models")
    refused(["explain", "bare", "--index", 0, "--by", "bank"], 2, "--by bank", "--keep-models")


@test
def a_bank_answers_without_an_explainer():
    out, _ = fds("fit", MNIST, *SMALL, *AFDS, "--explainer", "bank", "-o", "run", "-q")
    assert "explainer   bank: all sub-models answer" in out
    about = fds_json("explain", "run", "--index", 0)
    assert about["by"] == "bank" and about["explainer"] == "bank"
    refused(["explain", "run", "--index", 0, "--check"], 2, "--check", "sub-models answer")
    refused(["explain", "run", "--index", 0, "--by", "explainer"], 2, "--by explainer")


@test
def data_without_a_test_part_is_counted_itself():
    write_csv("t.csv", rows=120)
    fds("fit", "t.csv", "--players", 8, "--coalitions", 60, "--method", "afds", "--explainer",
        "linear", "--explainer-epochs", 2, "-o", "run", "-q")
    out, err = fds("explain", "run", "--index", 119)
    assert "no test part: --index counts all of its samples" in err
    assert out.startswith("sample 119: label ") and "provider" in out
    refused(["explain", "run", "--index", 120, "-q"], 2, "--index 120", "0 to 119")
    fds("explain", "run", "--index", 0, "--png", "f.png", "-q")  # bars
    assert pathlib.Path("f.png").read_bytes().startswith(b"\x89PNG")
    write_png("0.png", 28, 28, digit(0)[0])
    refused(["explain", "run", "0.png"], 2, "feature vectors", "--index")
    os.rename("t.csv", "moved.csv")
    refused(["explain", "run", "--index", 0], 1, "t.csv", "say where it is: --data")
    fds("explain", "run", "--index", 0, "--data", "moved.csv")
    write_csv("other.csv", rows=120, classes="cba")
    pathlib.Path("other.csv").write_text(
        pathlib.Path("other.csv").read_text().replace("0.0", "0.5"))
    refused(["explain", "run", "--index", 0, "--data", "other.csv"], 2, "other data")


# ---- mistakes ----


@test
def mistakes_in_the_options_are_answered_before_any_work():
    for args, phrases in (
            (["fit", "none"], ["-o RUN is missing"]),
            (["fit", "none", "-o", "r", "--method", "afd"], ['did you mean "afds"?']),
            (["fit", "none", "-o", "r", "--method", "shapley"], ["fds, afds, gfds or gfds+"]),
            (["fit", "none", "-o", "r", "--explainer", "resnet"], ['did you mean "resnet18"?']),
            (["fit", "none", "-o", "r", "--epochs", 3], ["--epochs does not apply to method fds; it applies to afds"]),
            (["fit", "none", "-o", "r", "--coalitions", 101], ["must be even"]),
            (["fit", "none", "-o", "r", "--draws", 4], ["--draws needs --objective paper"]),
            (["fit", "none", "-o", "r", "--objective", "paper", "--draws", 5], ["even number"]),
            (["fit", "none", "-o", "r", "--gamma", 1], ["--gamma needs --form penalty"]),
            (["fit", "none", "-o", "r", "--form", "groups"], ["it applies to gfds+"]),
            (["fit", "none", "-o", "r", "--method", "gfds", "--sampler", "kernel"],
             ["it applies to fds or afds"]),
            (["fit", "none", "-o", "r", "--method", "gfds", "--adjust", "counts"],
             ["use none or shrink"]),
            (["fit", "none", "-o", "r", "--adjust", "none", "--group", "label"],
             ["--group needs method gfds or gfds+"]),
            (["fit", "none", "-o", "r", "--explainer", "bank", "--warm-up"],
             ["--warm-up needs --explainer auto, mlp,"]),
            (["fit", "none", "-o", "r", "--inputs", 3], ["--inputs 3", "from 10"]),
            (["fit", "none", "-o", "r", "--players", "sum"], ["--players sum"]),
            (["explain"], ["RUN is missing"]),
            (["explain", "run"], ["give an image", "--index 0"]),
            (["explain", "run", "a.png", "--index", 0], ["only one of them"]),
            (["explain", "run", "a.png", "--data", "d"], ["--data needs --index"]),
            (["explain", "run", "--index", 0, "-o", "v.txt"], ["-o v.txt"]),
            (["explain", "run", "--indx", 0], ['did you mean "--index"?'])):
        refused(args, 2, f"fds {args[0]}: ", *phrases)
    assert os.listdir(".") == []
    run = the_run()
    for text in ("x", "-1", "1..", "..3", "5..2", "1,,2", "1,", "99999999999", "1.5"):
        refused(["explain", run, f"--index={text}"], 2, f"--index {text}")
    refused(["explain", run, "--index", 0, "--by", "bank", "--check"], 2, "--check")
    refused(["explain", run, "--index", "0,200"], 2, "--index 200", "0 to 199")


@test
def folders_that_cannot_be_written_are_known_before_any_work():
    pathlib.Path("file").write_text("mine")
    refused(["fit", MNIST, *QUICK, "-o", "file", "-q"], 1, "-o file", "not a folder")
    refused(["fit", MNIST, *QUICK, "-o", "file/run", "-q"], 1, "-o file/run")
    os.mkdir("closed", 0o500)
    if os.geteuid() != 0:
        refused(["fit", MNIST, *QUICK, "-o", "closed/run", "-q"], 1, "-o closed/run")
    refused(["explain", the_run(), "--index", 0, "-o", "no/v.csv"], 1, "-o no/v.csv")
    refused(["pay", the_run(), "--index", 0, "--amount", 1, "-o", "no/p.csv"], 1, "-o no/p.csv")
    write_png("0.png", 28, 28, digit(0)[0])
    refused(["explain", the_run(), "0.png", "--png", "0.png"], 2, "--png 0.png")
    fit(out="new/deep/run")
    assert os.path.exists("new/deep/run/run.json")


@test
def pictures_that_do_not_fit_are_named():
    run = the_run()
    write_png("good.png", 28, 28, digit(0)[0])
    write_png("large.png", 30, 28, bytes(840))
    pathlib.Path("letter.png").write_text("dear")
    pathlib.Path("cut.png").write_bytes(pathlib.Path("good.png").read_bytes()[:60])
    refused(["explain", run, "good.png", "large.png"], 1, "large.png: 30 x 28 pixels", "28 x 28")
    refused(["explain", run, "good.png", "letter.png"], 1, "letter.png", "neither PNG nor JPEG")
    refused(["explain", run, "cut.png"], 1, "cut.png")
    refused(["explain", run, "none.png"], 1, "none.png")
    refused(["pay", run, "large.png", "--amount", 1], 1, "large.png")


@test
def damaged_runs_are_refused():
    refused(["explain", "none", "--index", 0], 1, "none", "no run")
    os.mkdir("empty")
    refused(["explain", "empty", "--index", 0], 1, "empty", "no run")
    for name in ("explainer.safetensors", "service.safetensors", "players.safetensors",
                 "errors.safetensors", "run.json"):
        for keep in (0.5, 0.0):
            shutil.rmtree("run", ignore_errors=True)
            shutil.copytree(the_run(), "run")
            path = pathlib.Path("run", name)
            data = path.read_bytes()
            path.write_bytes(data[:int(len(data) * keep)])
            refused(["explain", "run", "--index", 0], 1, f"run/{name}")
        os.unlink(path)
        refused(["explain", "run", "--index", 0], 1, "run")


@test
def other_data_and_values_that_are_no_numbers_are_refused():
    run = the_run()
    values = [0.0] * (40 * 28 * 28)
    write_npy("zeros.npy", (40, 28, 28), values)
    write_npy("zeros_labels.npy", (40,), [i % 4 for i in range(40)], "B")
    refused(["explain", run, "--index", 0, "--data", "zeros.npy", "--labels", "zeros_labels.npy"],
            2, "other data", "zeros.npy")
    values[3 * 784 + 5] = math.nan
    write_npy("nan.npy", (40, 28, 28), values)
    for args in (["fit", "nan.npy", "-o", "r"], ["explain", run, "--index", 0, "--data", "nan.npy"],
                 ["pay", run, "--index", 0, "--amount", 1, "--data", "nan.npy"]):
        refused([*args, "--labels", "zeros_labels.npy", "-q"], 1, "nan.npy", "sample 3", "NaN")
    assert not os.path.exists("r")


@test
def help_has_an_example_of_every_command():
    for command in ("fit", "explain", "pay"):
        out, _ = fds(command, "--help")
        check_width(out)
        assert f"\nExamples:\n  fds {command} " in out


try:
    code = main()
finally:
    KEPT.cleanup()
sys.exit(code)
