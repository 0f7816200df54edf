# SPDX-License-Identifier: Apache-2.0
"""The command as its users meet it: help, mistakes, results, progress, interruption.

usage: test_cli.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from harness import (FDS, MNIST, Skip, check_width, environment, fds, fds_json, main, refused,
                     start, test, write_csv)

COMMANDS = [[], ["data"], ["data", "get"], ["data", "show"], ["train"], ["value"], ["fit"],
            ["explain"], ["pay"], ["bench"]]


# ---- help ----


@test
def every_help_fits_80_columns_and_has_an_example():
    for command in COMMANDS:
        for flag in ("--help", "-h"):
            out, err = fds(*command, flag)
            assert err == "" and "Example" in out and "usage: fds" in out, command
            check_width(out)


@test
def help_wins_over_mistakes_on_the_same_line():
    assert fds("train", "--nonsense", "--help")[0] == fds("train", "--help")[0]


@test
def every_command_has_the_common_options():
    for command in COMMANDS[2:]:
        out = fds(*command, "--help")[0]
        for option in ("--json", "--quiet", "--help", "--seed", "--threads"):
            if command == ["data", "get"] and option in ("--seed", "--threads"):
                continue  # it draws and computes nothing
            assert option in out, (command, option)


@test
def version_is_one_line():
    out, _ = fds("--version")
    assert re.fullmatch(r"fds \d+\.\d+\.\d+ \(engine: \w+, processors: \d+\)\n", out), out
    assert fds("version")[0] == fds("-V")[0] == out


@test
def the_word_help_does_what_the_option_does():
    for command in COMMANDS:
        assert fds("help", *command)[0] == fds(*command, "--help")[0], command
    refused(["help", "trian"], 2, 'unknown command "trian"', 'did you mean "train"?')


@test
def manual_pages_have_every_option_of_the_help():
    for command in COMMANDS[2:]:
        page = fds("help", "--man", *command)[0].replace("\\-", "-")
        assert page.startswith('.TH "fds-' + "-".join(command)), page[:40]
        for option in re.findall(r"^ +(?:-., )?(--[a-z-]+)", fds(*command, "--help")[0], re.M):
            assert option in page, (command, option)
    assert "fds fit" in fds("help", "--man")[0]


@test
def completion_offers_commands_and_their_options():
    def complete(*words):
        script = fds("completion", "bash")[0] + f"""
COMP_WORDS=({" ".join(words)} "$1"); COMP_CWORD={len(words)}
_fds; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        return lambda word: subprocess.run(["bash", "-c", script, "bash", word], check=True, text=True,
                                           stdout=subprocess.PIPE).stdout.split()
    assert {"data", "fit", "explain", "pay", "value", "train", "bench", "help"} <= set(complete("fds")(""))
    assert complete("fds")("ex") == ["explain"]
    assert complete("fds", "data")("sh") == ["show"]
    assert complete("fds", "fit", "mnist")("--keep") == ["--keep-models"]
    assert complete("fds", "pay", "run")("--epo") == []
    assert fds("completion", "zsh")[0].startswith("#compdef fds\n")
    assert "-l keep-models" in fds("completion", "fish")[0]
    refused(["completion"], 2, "bash, zsh or fish")


@test
def the_page_of_parameters_is_what_the_command_prints():
    page = pathlib.Path(__file__).parents[2] / "docs/parameters.md"
    assert page.read_text(encoding="utf-8") == fds("help", "--markdown")[0], \
        "write it anew: fds help --markdown > docs/parameters.md"


# ---- usage mistakes: exit code 2 ----


@test
def a_typo_is_answered_with_the_nearest_name():
    refused(["trian"], 2, 'fds: unknown command "trian"', 'did you mean "train"?')
    refused(["dta"], 2, 'did you mean "data"?')
    refused(["data", "shwo"], 2, 'fds data: unknown command "shwo"', 'did you mean "show"?')
    refused(["--verison"], 2, 'did you mean "--version"?')
    refused(["train", "x", "--epoch", "3"], 2, 'fds train: unknown option "--epoch"', '"--epochs"')
    refused(["train", "x", "-epochs", "3"], 2, 'did you mean "--epochs"?')
    refused(["train", "x", "--optimiser=sgd"], 2, 'did you mean "--optimizer"?')
    refused(["train", "x", "--optimizer", "adm"], 2, "adam or sgd", 'did you mean "adam"?')
    refused(["train", "x", "-o", "m.safetensors", "--players", "provider"], 2, 'did you mean "providers"?')
    refused(["train", MNIST, "-o", "m.safetensors", "--model", "lenet"], 2, 'did you mean "lenet5"?')
    refused(["data", "get", "mnits"], 2, 'did you mean "mnist"?', "cifar10")
    refused(["data", "show", "mnits"], 1, "mnits", 'did you mean "mnist"?')


@test
def what_is_like_no_name_points_to_the_help():
    refused([], 2, "a command is missing", "fds help")
    refused(["data"], 2, "a command is missing", "fds data --help")
    refused(["xyzzy"], 2, 'unknown command "xyzzy"', "fds --help")
    refused(["train", "x", "--xyzzy"], 2, 'unknown option "--xyzzy"', "fds train --help")


@test
def a_missing_argument_is_named():
    refused(["train"], 2, "fds train: DATA is missing", "fds train mnist -o")
    refused(["train", MNIST], 2, "-o FILE is missing", "-o model.safetensors")
    refused(["train", MNIST, "-o"], 2, "--output needs a value")
    refused(["train", MNIST, "-o", "--json"], 2, "--output needs a value")
    refused(["train", MNIST, "--output="], 2, "--output is empty")
    refused(["data", "get"], 2, "NAME is missing", "fds data get mnist")
    refused(["data", "show"], 2, "DATA is missing", "fds data show mnist")
    refused(["train", "a", "b"], 2, '"b" is one argument too many')


@test
def numbers_out_of_range_are_refused_with_the_range():
    for option in ("--epochs", "--patience", "--batch", "--test", "--players"):
        for value in ("0", "-1", "1.5", "ten", " 5", "1e3", "99999999999999999999"):
            refused(["train", "x", "-o", "m.safetensors", f"{option}={value}"], 2, option, "whole number")
    for option in ("--lr", "--loss-bound"):
        for value in ("0", "-1", "fast", "nan", "inf", "0x10", ""):
            refused(["train", "x", "-o", "m.safetensors", f"{option}={value}"], 2, option, "number above 0")
    refused(["train", "x", "-o", "m.safetensors", "--epochs", "-5"], 2, "--epochs", "from 1 to 1000000", "got -5")
    refused(["train", "x", "-o", "m.safetensors", "--momentum", "1"], 2, "--momentum", "from 0 to 0.9999", "got 1")
    refused(["train", "x", "-o", "m.safetensors", "--weight-decay", "-1"], 2, "--weight-decay")
    refused(["train", "x", "-o", "m.safetensors", "--seed", "-1"], 2, "--seed", "from 0")
    refused(["train", "x", "-o", "m.safetensors", "--threads", "5000"], 2, "--threads", "to 1024")


@test
def options_that_do_not_go_together_are_refused():
    refused(["train", "x", "-o", "m.safetensors", "--patience", "3"], 2, "--patience needs --converge")
    refused(["train", "x", "-o", "m.safetensors", "--loss-bound", "1"], 2, "--loss-bound needs --converge")
    refused(["train", "x", "-o", "m.safetensors", "--momentum", "0.9"], 2, "needs --optimizer sgd")
    refused(["train", "x", "-o", "m.safetensors", "--json=yes"], 2, "--json takes no value")
    refused(["data", "show", "x", "--count", "3"], 2, "--count needs --png")
    refused(["data", "show", "x", "--columns", "3"], 2, "--columns needs --png")


@test
def more_than_the_data_has_is_refused_with_how_much_there_is():
    train = fds_json("data", "show", MNIST)["train"]["count"]
    test_part = fds_json("data", "show", MNIST)["test"]["count"]
    refused(["train", MNIST, "-o", "m.safetensors", "--players", train + 1], 2, f"at most {train}")
    refused(["train", MNIST, "-o", "m.safetensors", "--test", test_part + 1], 2, f"at most {test_part}")
    refused(["data", "show", MNIST, "--png", "a.png", "--count", 10000], 2, f"to {train}")
    write_csv("t.csv")
    refused(["train", "t.csv", "-o", "m.safetensors", "--players", 97], 2, "at most 96", "besides the test samples")
    refused(["train", "t.csv", "-o", "m.safetensors", "--test", 120], 2, "leave none to learn from")
    refused(["train", MNIST, "-o", "m.safetensors", "--players", "providers"], 2, "provider")
    assert not os.path.exists("m.safetensors")


# ---- files ----


@test
def an_output_that_cannot_be_written_is_refused_before_any_work():
    os.mkdir("folder")
    pathlib.Path("file").write_text("x")
    write_csv("t.csv")
    data = pathlib.Path("t.csv").read_bytes()
    for command, option, end in ((["train"], "-o", ".safetensors"), (["data", "show"], "--png", ".png")):
        m = f"m{end}"
        # the data does not exist: had it been looked for first, that would be the error
        refused([*command, "none", option, f"nowhere/{m}"], 1, f"{option} nowhere/m", "folder nowhere")
        refused([*command, "none", option, f"file/{m}"], 1, option, "file")
        refused([*command, "none", option, f"/proc/{m}"], 1, option, "folder /proc")
        refused([*command, "none", option, "folder"], 2, "it is a folder")
        refused([*command, "none", option, "folder/"], 2, "it is a folder")
        refused([*command, "none", option, "new/"], 2, "not the name of a file")
        refused([*command, "none", option, "/dev/null"], 2, "not a regular file")
        refused([*command, "t.csv", option, "./t.csv"], 2, f"the name must end in {end}")
        os.link("t.csv", f"t{end}")
        refused([*command, f"t{end}", option, f"./t{end}"], 2, "this file is an input")
    assert os.listdir("folder") == [] and pathlib.Path("t.csv").read_bytes() == data


@test
def data_that_is_not_there_or_not_data_is_said_so():
    pathlib.Path("junk").write_bytes(os.urandom(100))
    pathlib.Path("empty.csv").write_text("")
    os.mkdir("empty")
    for command in (["data", "show"], ["train", "-o", "m.safetensors"]):
        prefix = "fds data show: " if command[0] == "data" else "fds train: "
        refused([*command, "none.csv"], 1, prefix + "none.csv", "no such file")
        refused([*command, "mnist"], 1, prefix, "fds data get mnist")
        refused([*command, "junk"], 1, prefix + "junk", "unknown format")
        refused([*command, "empty.csv"], 1, prefix + "empty.csv")
        refused([*command, "empty"], 1, prefix + "empty", "no data in this folder")
    write_csv("t.csv")
    refused(["data", "show", "t.csv", "--label", "kind"], 1, "t.csv", "kind")
    refused(["data", "get", "mnist", "--from", "nowhere"], 1, "fds data get: ", "nowhere")
    assert not os.path.exists("m.safetensors")


@test
def a_result_that_cannot_be_printed_is_a_failure():
    with open("/dev/full", "w") as full:
        for extra in ([], ["--json"]):
            _, err = fds("data", "show", MNIST, *extra, code=1, stdout=full)
            assert "standard output" in err, err


# ---- fds data ----


@test
def data_show_counts_every_sample_once():
    about = fds_json("data", "show", MNIST)
    for part in ("train", "test"):
        assert about[part]["shape"] == [1, 28, 28] and about[part]["values"] == "bytes"
        assert sum(c["count"] for c in about[part]["classes"]) == about[part]["count"]
        assert [c["name"] for c in about[part]["classes"]] == list("0123456789")
        assert about[part]["providers"] == []
        channel, = about[part]["channels"]
        assert channel["name"] is None and channel["min"] == 0 and channel["max"] == 1
        assert 0.1 < channel["mean"] < 0.16 and 0.28 < channel["std"] < 0.33, channel


@test
def data_show_as_text_says_what_the_json_says():
    out, err = fds("data", "show", MNIST)
    about = fds_json("data", "show", MNIST)
    check_width(out.replace(MNIST, "mnist"))
    assert err == ""
    for i in range(10):
        counts = [about[part]["classes"][i]["count"] for part in ("train", "test")]
        assert re.search(rf"^{i} +{counts[0]} +{counts[1]}$", out, re.M), out


@test
def data_show_draws_a_contact_sheet():
    about = fds_json("data", "show", MNIST, "--png", "a.png", "--count", 20, "--columns", 5)
    assert about["png"] == {"file": "a.png", "count": 20}
    fds("data", "show", MNIST, "--png", "b.png", "--count", 20, "--columns", 10, "--seed", 1)
    sizes = []
    for name in ("a.png", "b.png"):
        data = pathlib.Path(name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        sizes.append(struct.unpack(">II", data[16:24]))
    refused(["data", "show", "none", "--png", "x.jpg"], 2, "--png x.jpg: the name must end in .png")
    (a_width, a_height), (b_width, b_height) = sizes
    assert a_width < b_width and a_height > b_height and a_width >= 5 * 28, sizes


@test
def data_show_lists_all_features_on_request():
    names = [f"f{i:02}" for i in range(14)]
    rows = [",".join([*map(str, range(i, i + 14)), "ab"[i % 2]]) for i in range(6)]
    pathlib.Path("wide.csv").write_text("\n".join([",".join([*names, "label"]), *rows]) + "\n")
    out = fds("data", "show", "wide.csv")[0]
    assert "f09 " in out and "f10 " not in out and "... and 4 more features (all with --all)" in out
    whole = fds("data", "show", "wide.csv", "--all")[0]
    assert all(f"\n{name} " in whole for name in names) and "more" not in whole


@test
def data_show_lists_thirty_providers_and_how_many_more():
    write_csv("t.csv", rows=330, providers=33)
    out, _ = fds("data", "show", "t.csv")
    check_width(out)
    assert re.search(r"^x1 +train .*\nx2 +train ", out, re.M), out
    assert [c["name"] for c in fds_json("data", "show", "t.csv")["train"]["channels"]] == ["x1", "x2"]
    assert re.search(r"^shop-0 +10 +1 +0 +0$", out, re.M), out
    assert out.count("\nshop-") == 30 and "... and 3 more providers (all with --all)" in out
    assert "no test part" in out
    assert len(fds_json("data", "show", "t.csv")["train"]["providers"]) == 33
    refused(["data", "show", "t.csv", "--png", "a.png"], fds_code_of_no_images(), "image")


def fds_code_of_no_images():
    """Feature vectors cannot be drawn: whether that is wrong usage or a failure, never 0."""
    process = start("data", "show", "t.csv", "--png", "a.png", stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
    assert process.wait() in (1, 2)
    return process.returncode


@test
def names_from_data_cannot_touch_the_terminal_nor_break_the_table():
    rows = ["x,label"]
    names = ["a\u200bb", "f\u00fcnf", "long " * 30]
    for i in range(30):
        rows.append(f"{i},{names[i % 3]}")
    pathlib.Path("t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    out, _ = fds("data", "show", "t.csv")
    check_width(out)
    assert "f\u00fcnf" in out and "..." in out
    shown = [c["name"] for c in fds_json("data", "show", "t.csv")["train"]["classes"]]
    assert shown == ["a\u200bb", "f\u00fcnf", ("long " * 30).strip()]
    pathlib.Path("t.csv").write_bytes(b"x,label\n1,a\xff\n2,b\n")
    refused(["data", "show", "t.csv"], 1, 'line 2, column "label": the name is not UTF-8', "iconv")
    pathlib.Path("t.csv").write_bytes(b"x\x1b[31m,label\n1,a\n2,b\n")
    refused(["data", "show", "t.csv"], 1, "line 1, column 1: the name has a control character")
    pathlib.Path("t.csv").write_bytes(b"x,label\n\x1b[31m,a\n2,b\n")
    refused(["data", "show", "t.csv"], 1, '"?[31m" is not a finite number')


# ---- fds train ----


@test
def train_gives_the_same_weights_for_any_number_of_threads():
    one = fds_json("train", MNIST, "-o", "one.safetensors", "--epochs", 2, "--threads", 1)
    two = fds_json("train", MNIST, "-o", "two.safetensors", "--epochs", 2, "--threads", 2)
    other = fds_json("train", MNIST, "-o", "other.safetensors", "--epochs", 2, "--seed", 1)
    assert re.fullmatch("[0-9a-f]{64}", one["sha256"])
    assert one["sha256"] == two["sha256"] != other["sha256"]
    assert (one["train"], one["test"]) == (two["train"], two["test"])
    digests = [hashlib.sha256(pathlib.Path(f).read_bytes()).digest() for f in ("one.safetensors", "two.safetensors")]
    assert digests[0] == digests[1]


@test
def train_learns_and_its_text_says_what_its_json_says():
    args = ["train", MNIST, "-o", "m.safetensors", "--players", 100, "--epochs", 10]
    about = fds_json(*args)
    assert about["players"] == {"kind": "samples", "count": 100, "samples": 100}
    assert about["epochs"] == 10 and about["converged"] is False
    assert about["params"]["lr"] == 0.001 and about["params"]["epochs"] == 10
    assert about["network"] == "lenet5" and about["weights"] == 61706
    assert about["train"]["count"] == 100 and about["train"]["accuracy"] > 0.5
    assert about["test"]["accuracy"] > 0.4 and about["tests_set_aside"] is False
    out, err = fds(*args)
    check_width(out.replace(MNIST, "mnist"))
    assert err == "" and f"sha256 {about['sha256'][:16]}\n" in out
    assert f"accuracy {100 * about['test']['accuracy']:.2f} %" in out
    assert "61706 weights" in out and "10 epochs in" in out and "m.safetensors" in out
    assert os.listdir(".") == ["m.safetensors"]


@test
def converge_stops_by_its_rule_or_at_its_cap():
    args = ["train", MNIST, "-o", "m.safetensors", "--players", 20, "--converge"]
    by_rule = fds_json(*args)
    assert by_rule["converged"] is True
    assert 1 < by_rule["epochs"] < 1000
    at_once = fds_json(*args, "--loss-bound", 99)
    assert at_once["epochs"] == 1 and at_once["converged"] is True
    impatient = fds_json(*args, "--min-delta", 1, "--patience", 3)
    assert impatient["epochs"] < by_rule["epochs"] and impatient["converged"] is True
    capped = fds_json(*args, "--epochs", 2)
    assert capped["epochs"] == 2 and capped["converged"] is False
    assert "not converged" in fds(*args, "--epochs", 2)[0]


@test
def options_reach_the_training():
    args = ["train", MNIST, "-o", "m.safetensors", "--players", 20, "--epochs", 2]
    seen = set()
    for extra in ([], ["--lr", 0.01], ["--batch", 5], ["--optimizer", "sgd"],
                  ["--optimizer=sgd", "--momentum=0.9"], ["--weight-decay", 0.1],
                  ["--model", "logistic"], ["--players", 30], ["--epochs", 3]):
        seen.add(fds_json(*args, *extra)["sha256"])
    assert len(seen) == 9, "an option made no difference"
    assert fds_json(*args, "--test", 30)["test"]["count"] == 30
    everyone = fds_json(*args, "--players", "all", "--epochs", 1)["players"]["count"]
    assert everyone == fds_json("data", "show", MNIST)["train"]["count"]


@test
def without_a_test_part_a_fifth_is_held_back_and_never_learnt_from():
    write_csv("t.csv")
    out, err = fds("train", "t.csv", "-o", "m.safetensors", "--players", "all", "--epochs", 1)
    assert "24 samples are set aside" in err and "set aside" in out
    check_width(out)
    about = fds_json("train", "t.csv", "-o", "m.safetensors", "--players", "all", "--epochs", 1)
    assert about["tests_set_aside"] is True and about["network"] == "mlp"
    assert (about["train"]["count"], about["test"]["count"]) == (96, 24)
    few = fds_json("train", "t.csv", "-o", "m.safetensors", "--players", 9, "--epochs", 1)
    assert (few["train"]["count"], few["test"]["count"]) == (9, 24)


@test
def a_rare_class_is_not_held_back_whole():
    write_csv("t.csv", rows=100, classes="aaaaaaaaab")  # 90 a, 10 b
    out, err = fds("train", "t.csv", "-o", "m.safetensors", "--players", "all", "--epochs", 1)
    assert "warning" not in err and "10 samples are set aside" in err, err


@test
def providers_are_players():
    write_csv("t.csv")
    about = fds_json("train", "t.csv", "-o", "m.safetensors", "--players", "providers", "--converge",
                     "--lr", 0.01)
    assert about["players"] == {"kind": "providers", "count": 12, "samples": 96}
    assert about["test"]["accuracy"] > 0.9
    assert "12 providers with 96 samples" in fds("train", "t.csv", "-o", "m.safetensors", "--epochs", 1,
                                                 "--players", "providers")[0]
    write_csv("t.csv", providers=7, column="owner")
    about = fds_json("train", "t.csv", "-o", "m.safetensors", "--players", "providers", "--provider", "owner",
                     "--epochs", 1)
    assert about["players"]["count"] == 7
    refused(["train", "t.csv", "-o", "m.safetensors", "--provider", "onwer"], 1, "t.csv", "onwer")
    write_csv("t.csv", providers=120)  # one sample each: a fifth of them cannot be players
    about, err = fds("train", "t.csv", "-o", "m.safetensors", "--players", "providers", "--epochs", 1)
    assert "warning: 24 of 120 providers have no sample" in err and "96 providers" in about, err


@test
def classes_without_samples_are_warned_of():
    _, err = fds("train", MNIST, "-o", "m.safetensors", "--players", 4, "--epochs", 1, "--quiet")
    assert "warning: 6 of 10 classes have no sample" in err, err


@test
def quiet_says_nothing_but_the_result():
    write_csv("t.csv")
    out, err = fds("train", "t.csv", "-o", "m.safetensors", "--epochs", 1, "-q")
    assert err == "" and "sha256" in out


@test
def a_failed_training_leaves_the_old_file_alone():
    pathlib.Path("m.safetensors").write_text("the old one")
    args = ["train", MNIST, "-o", "m.safetensors", "--optimizer", "sgd", "--lr", 1000, "--momentum", 0.9]
    _, err = fds(*args, "--epochs", 50, "-q", code=1)
    assert err.startswith("fds train: ") and "learning rate" in err, err
    assert pathlib.Path("m.safetensors").read_text() == "the old one" and os.listdir(".") == ["m.safetensors"]


@test
def what_is_printed_never_lands_in_a_file_where_the_caller_closed_its_descriptors():
    args = ["train", MNIST, "--players", 6, "--epochs", 1, "-o"]  # warns of classes without samples
    fds(*args, "open.safetensors")
    closed = [FDS, *map(str, args), "closed.safetensors"]
    subprocess.run(closed, check=True, env=environment(), preexec_fn=lambda: os.closerange(0, 3))
    files = [pathlib.Path(f"{name}.safetensors").read_bytes() for name in ("open", "closed")]
    assert files[0] == files[1] and len(os.listdir(".")) == 2


# ---- progress and interruption ----


@test
def without_a_terminal_progress_is_plain_lines_and_an_interrupt_keeps_the_old_file():
    pathlib.Path("m.safetensors").write_text("the old one")
    process = start("train", MNIST, "-o", "m.safetensors", "--epochs", 1000000, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
    began = time.monotonic()
    line = process.stderr.readline().decode()
    assert time.monotonic() - began > 4.5, "a line in the first five seconds"
    assert re.fullmatch(r"train: \d+ of 1000000 epochs, [\d.]+/s, \S+( days)? left\n", line), line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, process.returncode
    assert out == b"" and err.startswith(b"fds train: interrupted"), err
    assert pathlib.Path("m.safetensors").read_text() == "the old one" and os.listdir(".") == ["m.safetensors"]


def watch_terminal(columns, *args, silence=30):
    """Runs the command on a terminal, interrupts it 1.5 s after it first drew, or after so many
    seconds of silence; gives what it drew and its exit code."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        raise Skip(f"no terminal to be had: {error}") from error
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = start(*args, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    drawn, began, stopped = b"", time.monotonic(), False
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while True:
            if select.select([master], [], [], 0.1)[0]:
                if not drawn:
                    began = time.monotonic()  # a slow machine may need long to begin
                drawn += os.read(master, 65536)
            elif process.poll() is not None:
                break
            if not stopped and time.monotonic() - began > (1.5 if drawn else silence):
                process.send_signal(signal.SIGINT)
                stopped = True
    os.close(master)
    return drawn.decode(), process.wait(timeout=60)


@test
def on_a_terminal_progress_is_one_line_that_fits_and_goes_away():
    for columns in (120, 80, 40, 12):
        drawn, code = watch_terminal(columns, "train", MNIST, "-o", "m.safetensors", "--epochs", 1000000)
        assert code == 130
        *frames, last = drawn.split("\r\x1b[K")[1:]
        assert 2 <= len(frames) <= 17, f"{len(frames)} frames in 1.5 s"
        assert last == "fds train: interrupted" + last[22:] and last.endswith("\r\n"), last
        for frame in frames:
            assert frame and "\n" not in frame and len(frame) < columns, (columns, frame)
            if columns >= 80:
                pattern = r"train \[[#.]{8,40}\]  \d+/1000000 epochs  [\d.]+/s  \S+( days)? left"
                assert re.fullmatch(pattern, frame), frame


@test
def on_a_terminal_quiet_draws_nothing():
    drawn, code = watch_terminal(80, "train", MNIST, "-o", "m.safetensors", "--epochs", 1000000, "-q",
                                 silence=1.5)
    assert code == 130 and drawn.startswith("fds train: interrupted"), drawn


sys.exit(main())
