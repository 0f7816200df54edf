# SPDX-License-Identifier: Apache-2.0
"""fds bench, as its users meet it: a quick report, resuming, comparing, mistakes.

usage: test_bench.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import time

from harness import MNIST, check_width, fds, fds_json, main, refused, start, test, write_csv

ROWS = ["fds", "afds", "gfds", "gfds+", "bank", "ls", "loo", "tmc", "group-testing", "cs-shapley", "freeshap",
        "freeshap/sample", "knn:5/sample", "same-label", "random"]
# Seconds, not minutes: a network of one layer, ten digits.
SMALL = ["bench", MNIST, "--quick", "--players", 10, "--test", 6, "--inputs", 40, "--coalitions", 60, "--permutations", 4,
         "--truth", 100, "--model", "logistic", "--explainer", "linear", "--remove", "10,50,100"]


def numbers(report):
    """A report without what may differ: timing, the command."""
    for data in report["data"]:
        for row in data["rows"]:
            row.pop("timing")
    return {key: report[key] for key in ("data",)}


def read(folder):
    return json.loads(pathlib.Path(folder, "report.json").read_text())


@test
def a_report_has_every_method_and_every_number():
    out, err = fds(*SMALL)
    check_width(out)
    report = read("mnist.report")
    (data,) = report["data"]
    assert data["name"] == "mnist" and data["players"] == 10 and data["tests"] == 6
    assert [row["method"] for row in data["rows"]] == ROWS
    for row in data["rows"]:
        assert row["auc"]["count"] == 1 and row["agreement"]["correlation"]["count"] == 1, row["method"]
        assert row["lds"][0]["utility"] == row["utility"] and row["lds"][0]["coalitions"] == 40, row["method"]
        assert row["lds_other_seeds"] and row["losses_other_seed"], row["method"]
        assert any(entry["removal"] == "keep_top" for entry in row["losses"]), row["method"]
    page = pathlib.Path("mnist.report/report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "data:image/png;base64," in page
    assert report["command"].startswith("fds bench ") and report["command"] in page.replace("&#39;", "'")
    assert "mnist.report/report.html" in out and "gfds+" in out and "freeshap/sample" in out
    assert "case 1 of 1" in err
    assert " lds " in out and "By models of 10 epochs:" in out
    for finding in data["findings"]:
        assert finding["text"].split("`")[0] in page, finding


@test
def the_same_numbers_again_and_with_other_threads():
    few = [*SMALL, "--methods", "fds,afds,tmc,beta:4,1,random"]
    first = numbers(fds_json(*few, "-q", "-o", "a", "--threads", 1))
    assert numbers(fds_json(*few, "-q", "-o", "b", "--threads", 2)) == first
    when = os.stat("a/mnist-0/case.json").st_mtime_ns
    assert numbers(fds_json(*few, "-q", "-o", "a")) == first
    assert os.stat("a/mnist-0/case.json").st_mtime_ns == when
    out, _ = fds(*few, "-q", "-o", "b", "--compare", "a/report.json")
    assert "0 of" in out and "differ from a/report.json" in out


@test
def what_has_changed_is_shown():
    few = [*SMALL, "--methods", "ls,random", "--truth", 0, "--flipped", 0, "--top-only"]
    fds(*few, "-q", "-o", "a")
    report = read("a")
    for entry in report["data"][0]["rows"][0]["losses"]:
        entry["mean"][0] += 100
    pathlib.Path("old.json").write_text(json.dumps(report))
    out, _ = fds(*few, "-q", "-o", "a", "--compare", "old.json")
    check_width(out)
    assert "ls" in out and " -> " in out and "0 of" not in out.splitlines()[-2]
    report["data"][0]["rows"].pop()
    pathlib.Path("old.json").write_text(json.dumps(report))
    out, _ = fds(*few, "-q", "-o", "a", "--compare", "old.json")
    assert "random" in out and "only after" in out
    refused([*few, "-o", "a", "--compare", "./a/report.json"], 2, "--compare ./a/report.json", "writes that very file")


@test
def mistakes_in_a_later_set_come_first():
    write_csv("shops.csv")
    refused(["bench", MNIST, "shops.csv", "--model", "lenet5", "--methods", "random", "-o", "r"], 2, "shops.csv")
    refused(["bench", MNIST, "shops.csv", "--players", 250, "--methods", "random", "-o", "r"], 2, "--players")
    assert not os.path.exists("r")


@test
def providers_that_come_and_go_with_the_seed_are_refused():
    with open("few.csv", "w", encoding="utf-8") as file:
        file.write("provider,outcome,a,b\n")
        for i in range(60):
            file.write(f"{'small' if i == 7 else 'shop' + str(i % 5)},{i % 2},{i % 7},{(i * 5) % 11}\n")
    many = ["bench", "few.csv", "--label", "outcome", "--provider", "provider", "--players", "providers", "--methods",
            "random", "--model", "logistic", "--seeds", 8, "-o", "r", "--truth", 0, "--flipped", 0]
    refused(many, 2, "few.csv", "providers have samples to learn from with the first seed", "--seeds 1")
    assert not os.path.exists("r")


@test
def several_sets_and_seeds():
    write_csv("shops.csv")
    out, err = fds("bench", "shops.csv", MNIST, "--methods", "ls,knn:5/sample,same-label", "--players", 8, "--test", 4,
                   "--seeds", 2, "--coalitions", 40, "--truth", 0, "--flipped", 0, "--remove", "25,50", "-o", "two",
                   "--model", "logistic", "--inputs", 20)
    assert "case 4 of 4" in err
    names = [data["name"] for data in read("two")["data"]]
    assert names == ["shops", "mnist"] and [d["seeds"] for d in read("two")["data"]] == [[0, 1], [0, 1]]
    assert sorted(os.listdir("two")) == [".lock", "mnist-0", "mnist-1", "report.csv", "report.html", "report.json", "shops-0",
                                         "shops-1"]


@test
def providers_are_players_too():
    write_csv("shops.csv")
    fds("bench", "shops.csv", "--players", "providers", "--quick", "--test", 6, "--coalitions", 40, "--permutations", 3,
        "--truth", 40, "--model", "logistic", "--explainer", "linear", "--remove", "50", "-q", "-o", "r")
    methods = [row["method"] for row in read("r")["data"][0]["rows"]]
    assert "knn:5/sample" not in methods and len(methods) == len(ROWS) - 1


@test
def scores_and_other_seeds_can_be_turned_off():
    few = [*SMALL, "--methods", "ls,random", "--truth", 0, "--flipped", 0, "--top-only", "-q"]
    fds(*few, "--lds", 0, "--loss-seeds", 0, "-o", "none")
    fds(*few, "--lds", 20, "--lds-seeds", 0, "-o", "some")
    row, other = read("none")["data"][0]["rows"][0], read("some")["data"][0]["rows"][0]
    assert row["lds"] == row["lds_other_seeds"] == row["losses_other_seed"] == []
    assert other["lds"][0]["coalitions"] == 20 and other["lds_other_seeds"] == [] and other["losses_other_seed"]
    assert row["losses"][0]["mean"] == other["losses"][0]["mean"]
    assert "datamodeling score</h3>" not in pathlib.Path("none/report.html").read_text()


@test
def labels_are_flipped_as_often_as_asked():
    few = [*SMALL, "--methods", "ls,tmc,random", "--truth", 0, "--lds", 0, "--loss-seeds", 0, "--top-only", "-q"]
    fds(*few, "--seeds", 2, "--flipped-seeds", 3, "-o", "three")
    (data,) = read("three")["data"]
    assert data["settings"]["flipped_seeds"] == 3 and [row["auc"]["count"] for row in data["rows"]] == [3] * 3
    # half of 60 coalitions, and permutations of nine sub-models each
    assert [row["auc_terms"]["sub_models"]["mean"] for row in data["rows"]] == [32, 29, 0]
    assert sorted(name for name in os.listdir("three/mnist-0") if "flipped" in name) == ["flipped", "flipped-1"]


@test
def interrupted_it_goes_on():
    few = [*SMALL, "--methods", "afds,tmc,random", "--flipped", 0]
    whole = numbers(fds_json(*few, "-q", "-o", "whole"))
    for after in (0.3, 0.8):
        process = start(*few, "-o", "part", stdout=-3, stderr=-3)
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
        assert code in (0, 130), code
        shutil.rmtree("killed", ignore_errors=True)
        process = start(*few, "-o", "killed", stdout=-3, stderr=-3)
        time.sleep(after)
        process.kill()
        process.wait()
    for folder in ("part", "killed"):
        assert numbers(fds_json(*few, "-q", "-o", folder)) == whole, folder


@test
def mistakes_are_answered_before_any_work():
    refused(["bench"], 2, "DATA is missing", "fds bench paper --quick")
    refused(["bench", MNIST, "--methods", "afsd"], 2, "afsd", "afds")
    refused(["bench", MNIST, "--methods", "cs-shapley/sample"], 2, "cs-shapley")
    refused(["bench", MNIST, "--methods", ","], 2, "names none")
    refused(["bench", MNIST, "--methods", "ls,ls"], 2, "twice")
    refused(["bench", MNIST, "--remove", "10,5"], 2, "rising", "5,10,20")
    refused(["bench", MNIST, "--remove", "0"], 2, "above 0")
    refused(["bench", MNIST, "--coalitions", "21"], 2, "even")
    refused(["bench", MNIST, "--seeds", "0"], 2, "--seeds")
    refused(["bench", MNIST, "--flipped", "0.9"], 2, "0.5")
    refused(["bench", MNIST, "--flipped-seeds", "0"], 2, "--flipped-seeds")
    refused(["bench", MNIST, "--lds", "10001"], 2, "--lds", "10000")
    refused(["bench", MNIST, MNIST], 2, "same name")
    refused(["bench", "paper"], 1, "mnist", "fds data get")
    refused(["bench", MNIST, "nowhere"], 1, "nowhere")
    refused(["bench", MNIST, "--compare", "nowhere.json", "--methods", "random"], 1, "nowhere.json")
    refused(["bench", MNIST, "-o", "/proc/no"], 1, "-o /proc/no")
    assert not os.path.exists("mnist.report")


@test
def other_settings_in_the_same_folder_are_refused():
    few = [*SMALL, "--methods", "random", "--truth", 0, "--flipped", 0, "-q", "-o", "r"]
    fds(*few)
    refused([*few, "--permutations", 9], 2, "r/mnist-0", "permutations is 4", "9 now")


if __name__ == "__main__":
    sys.exit(main())
