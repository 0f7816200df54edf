# SPDX-License-Identifier: Apache-2.0
"""fds pay as its users meet it: shares, totals, currencies, files, what is carried, mistakes.

usage: test_pay.py PATH_OF_FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import csv
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import (FDS, MNIST, Skip, check_width, digit, fds, fds_json, main, refused, start,
                     test, write_csv, write_png)

KEPT = tempfile.TemporaryDirectory()
AFDS = ["--method", "afds", "--explainer", "linear", "--explainer-epochs", 2]
# the committed sample has 200 test digits; they may be asked about again and again
TESTS = 200


def the_run():
    """One run that all tests look at: 12 digits, sub-models of a millisecond."""
    path = os.path.join(KEPT.name, "run")
    if not os.path.exists(path):
        fds("fit", MNIST, "--players", 12, "--inputs", 60, "--coalitions", 100, "--model",
            "logistic", "--threads", 1, "--epochs", 3, *AFDS, "-o", path, "-q")
    return path


def many(count):
    """An --index of that many inputs."""
    return ",".join([f"0..{TESTS - 1}"] * (count // TESTS))


def pay(*args, run=None):
    return fds("pay", run or the_run(), *args)


def pay_json(*args, run=None):
    return fds_json("pay", run or the_run(), *args)


def pay_lines(*args):
    """(inputs, totals) of --jsonl"""
    *inputs, totals = map(json.loads, pay(*args, "--jsonl")[0].splitlines())
    return inputs, totals


def units(text, decimals):
    whole, _, part = text.lstrip("-").partition(".")
    assert len(part) == decimals
    return (-1 if text[0] == "-" else 1) * int(whole + part)


# ---- shares ----


@test
def payments_add_up_to_the_last_unit():
    for amount, decimals, expected in (("100.00", 2, 10000), ("100", 2, 10000), ("0.07", 2, 7),
                                       ("0", 2, 0), ("1.005", 3, 1005), ("0.1", 2, 10),
                                       ("90071992547409.91", 2, 9007199254740991)):
        for policy in ("clip", "signed"):
            about = pay_json("--index", "0..4", "--amount", amount, "--policy", policy)
            assert about["units"] == expected and about["decimals"] == decimals
            assert about["total_units"] == 5 * expected and about["predictions"] == 5
            together = {}
            for one in about["inputs"]:
                assert sum(share["units"] for share in one["shares"]) == one["units"] == expected
                assert len(one["shares"]) == 12
                for share in one["shares"]:
                    assert units(share["amount"], decimals) == share["units"]
                    assert one["rule"] == "signed" or share["units"] >= 0
                    together[share["player"]] = together.get(share["player"], 0) + share["units"]
            assert together == {s["player"]: s["units"] for s in about["together"]}


@test
def shares_are_the_explained_values_in_proportion():
    values = {p["player"]: p["value"]
              for p in fds_json("explain", the_run(), "--index", 2)["inputs"][0]["ranking"]}
    one = pay_json("--index", 2, "--amount", "1000.00")["inputs"][0]
    total = sum(v for v in values.values() if v > 0)
    for share in one["shares"]:
        exact = 100000 * max(0, values[share["player"]]) / total
        assert abs(share["units"] - exact) <= 1 and abs(share["value"] - values[share["player"]]) < 1e-11


BITS = 200  # of the fractions with which exact totals are computed here


def exact_shares(one):
    """{player: units times 2^BITS}, from the values alone, as docs/pay.md has it."""
    values = {s["player"]: s["value"].as_integer_ratio() for s in one["shares"]}
    common = math.lcm(*(below for _, below in values.values()))
    values = {player: above * (common // below) for player, (above, below) in values.items()}
    if one["rule"] != "signed":
        values = {player: max(0, value) for player, value in values.items()}
    if one["rule"] == "evenly":
        values = dict.fromkeys(values, 1)
    total = sum(values.values())
    return {player: (one["units"] * value << BITS) // total for player, value in values.items()}


def follow(inputs):
    """What each player is owed after all inputs, in units, and the greatest difference on the way."""
    owed, worst = {}, 0
    for one in inputs:
        exact = exact_shares(one)
        assert sum(s["units"] for s in one["shares"]) == one["units"]
        for share in one["shares"]:
            assert share["units"] >= exact[share["player"]] >> BITS
            owed[share["player"]] = (owed.get(share["player"], 0) + exact[share["player"]] -
                                     (share["units"] << BITS))
        worst = max(worst, *map(abs, owed.values()))
    return {player: units / (1 << BITS) for player, units in owed.items()}, worst / (1 << BITS)


@test
def totals_stay_near_the_exact_ones_and_end_within_one_unit():
    for options in (["--amount", "0.01"], ["--amount", "0.05", "--policy", "signed"],
                    ["--total", "3.33"], ["--amount", "0.000000003"]):
        inputs, _ = pay_lines("--index", many(1000), *options)
        assert len(inputs) == 1000
        owed, worst = follow(inputs)
        assert worst <= 1 + math.log(12), (options, worst)
        assert max(map(abs, owed.values())) < 1, (options, owed)


@test
def one_sum_is_divided_over_all_inputs():
    about = pay_json("--index", "0..6", "--total", "1.00")
    amounts = [one["units"] for one in about["inputs"]]
    assert sum(amounts) == 100 == about["total_units"] and set(amounts) == {14, 15}
    assert about["units"] is None and about["total_amount"] == "1.00"
    assert [sum(amounts[:k]) for k in range(8)] == [100 * k // 7 for k in range(8)]
    out, _ = pay("--index", "0..6", "--total", "1.00")
    assert re.search(r"^total +1\.00 for all inputs$", out, re.M)


@test
def money_is_counted_as_its_currency_is():
    for code, amount, shown, decimals in (("JPY", "1500", "1500", 0), ("usd", "15", "15.00", 2),
                                          ("BHD", "0.5", "0.500", 3), ("CLF", "1", "1.0000", 4)):
        about = pay_json("--index", 0, "--amount", amount, "--currency", code)
        assert about["currency"] == code.upper() and about["decimals"] == decimals
        assert about["amount"] == shown and about["units"] == units(shown, decimals)
        out, _ = pay("--index", 0, "--amount", amount, "--currency", code, "-o", "p.csv")
        assert f"amount      {shown} {code.upper()} for each input\n" in out
        rows = list(csv.DictReader(open("p.csv", newline="")))
        assert {row["currency"] for row in rows} == {code.upper()}
        assert sum(units(row["amount"], decimals) for row in rows) == about["units"]


# ---- what it knows ----


@test
def shares_have_errors():
    about = pay_json("--index", "0..1", "--amount", "100")
    for one in about["inputs"]:
        errors = [s["amount_error"] for s in one["shares"]]
        assert min(errors) > 0
        assert 0 < one["misallocated"] < 100
    signed = pay_json("--index", "0", "--amount", "100", "--policy", "signed")["inputs"][0]
    errors = sum(s["amount_error"] for s in signed["shares"])
    assert math.isclose(signed["misallocated"], errors * math.sqrt(2 / math.pi) / 2)
    assert math.isclose(about["misallocated"], sum(one["misallocated"] for one in about["inputs"]))
    out, _ = pay("--index", "0..1", "--amount", "100")
    assert f"about {about['misallocated'] / 2:.1f} of each 100 are probably misallocated" in out
    best = about["inputs"][0]["shares"][0]
    assert re.search(rf"^   1 .* {best['amount']}  ± {best['amount_error']:.2f}$", out, re.M), out
    check_width(out.replace(the_run(), "run").replace(MNIST, "mnist"))
    none, _ = pay("--index", 0, "--amount", 0)
    assert "misallocated" not in none


# ---- outputs ----


@test
def payments_as_text_and_in_files():
    run = the_run()
    out, _ = pay("--index", "0,1", "--amount", "12.50", "--top", 3, "-o", "p.csv")
    check_width(out.replace(run, "run").replace(MNIST, "mnist"))
    assert len(re.findall(r"^      sum +12\.50$", out, re.M)) == 2
    assert re.search(r"^All 2 inputs together:$", out, re.M)
    assert re.search(r"^      sum +25\.00$", out, re.M)
    assert "... and 9 others" in out
    everybody, _ = pay("--index", 0, "--amount", "12.50", "--all")
    assert "others" not in everybody and "  12  sample" in everybody
    rows = list(csv.DictReader(open("p.csv", newline="")))
    assert list(rows[0]) == ["input", "label", "rule", "rank", "player", "player_label", "provider",
                             "group", "samples", "value", "units", "amount", "amount_error",
                             "currency"]
    assert len(rows) == 24 and sum(int(r["units"]) for r in rows) == 2500
    pay("--index", "0,1", "--amount", "12.50", "-o", "p.json", "-q")
    saved = json.loads(pathlib.Path("p.json").read_text())
    shown = pay_json("--index", "0,1", "--amount", "12.50")
    by_player = {(one["input"], s["player"]): s["units"]
                 for one in saved["inputs"] for s in one["shares"]}
    assert by_player == {(one["input"], s["player"]): s["units"]
                         for one in shown["inputs"] for s in one["shares"]}
    assert by_player == {(r["input"], r["player"]): int(r["units"]) for r in rows}
    pathlib.Path("usual").write_text("")
    assert os.stat("p.csv").st_mode == os.stat("usual").st_mode


@test
def lines_of_json_say_what_one_document_says():
    options = ["--index", many(600), "--amount", "0.02"]
    inputs, totals = pay_lines(*options, "-o", "p.jsonl")
    about = pay_json(*options)
    assert inputs == about.pop("inputs")
    for one in (about, totals):
        assert one.pop("seconds") > 0
    assert totals == about
    saved = [json.loads(line) for line in open("p.jsonl")]
    assert saved[:-1] == inputs and saved[-1]["together"] == totals["together"]


@test
def a_summary_has_totals_only():
    options = ["--index", many(400), "--amount", "0.01"]
    whole = pay_json(*options)
    short = pay_json(*options, "--summary")
    assert "inputs" not in short and short["together"] == whole["together"]
    inputs, totals = pay_lines(*options, "--summary", "-o", "p.csv")
    assert inputs == [] and totals["together"] == whole["together"]
    rows = list(csv.DictReader(open("p.csv", newline="")))
    assert [int(row["units"]) for row in rows] == [s["units"] for s in whole["together"]]
    assert {row["input"] for row in rows} == {"all"}
    out, _ = pay(*options, "--summary")
    assert out.startswith("All 400 inputs together:\n") and out.count("rank") == 1
    one, _ = pay("--index", 0, "--amount", 1, "--summary")
    assert one.startswith("All 1 input together:\n")


def peak_kb(run, count, *args):
    """Of a command that succeeds."""
    process = start("pay", run, "--index", many(count), "--amount", "0.01", *args,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, error
    return usage.ru_maxrss


@test
def memory_does_not_grow_with_the_number_of_inputs():
    program = pathlib.Path(FDS).read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        raise Skip("sanitizers keep freed memory")
    for options in (["-o", "p.csv"], ["--jsonl"], ["--json"], ["--carry", "c.json"]):
        few, lots = (peak_kb(the_run(), count, *options) for count in (800, 8000))
        assert lots < few + 6000, (options, few, lots)  # their text has 20 MB
    fds("fit", MNIST, "--players", 60, "--inputs", 60, "--coalitions", 122, "--model", "logistic",
        "--threads", 1, "--epochs", 1, *AFDS, "-o", "large", "-q")
    # more than are kept between the two passes; the answers to 15,000 inputs have 15 MB
    few, lots = (peak_kb("large", count, "--summary") for count in (16000, 31000))
    assert lots < few + 4000, (few, lots)


# ---- who is paid ----


@test
def providers_are_paid_for_all_of_their_players():
    write_csv("t.csv", rows=120, providers=3)
    fds("fit", "t.csv", "--players", 12, "--coalitions", 60, *AFDS, "-o", "run", "-q")
    about = pay_json("--index", 5, "--amount", 10, "--by", "provider", "-q", run="run")
    players = fds_json("explain", "run", "--index", 5, "-q")["inputs"][0]["ranking"]
    shares = about["inputs"][0]["shares"]
    assert {s["provider"] for s in shares} == {p["provider"] for p in players}
    assert sum(s["units"] for s in shares) == 1000
    for share in shares:
        value = sum(p["value"] for p in players if p["provider"] == share["provider"])
        assert abs(share["value"] - value) < 1e-12
    out, _ = pay("--index", 5, "--amount", 10, "--by", "provider", "-q", run="run")
    assert "rank  provider" in out
    refused(["pay", the_run(), "--index", 0, "--amount", 1, "--by", "provider"], 2,
            "--by provider", "no providers")


@test
def groups_are_those_of_the_run():
    players = fds_json("explain", the_run(), "--index", 5)["inputs"][0]["ranking"]
    about = pay_json("--index", 5, "--amount", 10, "--by", "group")
    shares = about["inputs"][0]["shares"]
    assert about["paid_by"] == "group"
    assert {s["group"] for s in shares} == {p["label"] for p in players}  # the default groups
    for share in shares:
        value = sum(p["value"] for p in players if p["label"] == share["group"])
        assert abs(share["value"] - value) < 1e-12
    out, _ = pay("--index", 5, "--amount", 10, "--by", "group")
    assert "rank  group" in out
    write_csv("t.csv", rows=120, providers=3, classes="ab")
    fds("fit", "t.csv", "--players", 12, "--coalitions", 60, *AFDS, "--group", "provider", "-o",
        "run", "-q")
    by_group = pay_json("--index", 5, "--amount", 10, "--by", "group", "-q", run="run")
    by_provider = pay_json("--index", 5, "--amount", 10, "--by", "provider", "-q", run="run")
    assert ([(s["group"], s["units"]) for s in by_group["together"]] ==
            [(s["provider"], s["units"]) for s in by_provider["together"]])


# ---- what is carried ----


@test
def commands_go_on_where_the_last_one_ended():
    inputs = []
    for k in range(0, 60, 20):
        part, _ = pay_lines("--index", f"{k}..{k + 19}", "--amount", "0.01", "--carry", "c.json")
        inputs += part
    owed, worst = follow(inputs)
    assert worst <= 1 + math.log(12)
    kept = json.loads(pathlib.Path("c.json").read_text())
    assert kept["predictions"] == 60 and sum(kept["units"]) == 60
    names = [payee["player"] for payee in kept["of"]["payees"]]
    for name, text in zip(names, kept["owed"]):
        whole, _, part = text.partition(".")
        assert abs(int(whole) + int(part, 16) / 2 ** 64 - owed[name]) < 1e-12
    out, _ = pay("--index", 0, "--amount", "0.01", "--carry", "c.json")
    assert re.search(r"^carry +c\.json: 61 predictions so far$", out, re.M)
    before = pathlib.Path("c.json").read_bytes()
    refused(["pay", the_run(), "--index", 0, "--amount", "0.01", "--carry", "c.json", "--policy",
             "signed"], 2, "c.json", 'policy is "clip" in the carry, "signed" now')
    refused(["pay", the_run(), "--index", 0, "--amount", "0.01", "--carry", "c.json", "-o",
             "none/p.csv"], 1, "none")
    assert pathlib.Path("c.json").read_bytes() == before
    pathlib.Path("c.json").write_bytes(before.replace(b'"predictions": 61', b'"predictions": 60'))
    refused(["pay", the_run(), "--index", 0, "--amount", "0.01", "--carry", "c.json"], 1,
            "c.json is damaged")


# ---- failures ----


@test
def a_failure_on_the_way_leaves_the_old_files():
    write_png("good.png", 28, 28, digit(0)[0])
    pathlib.Path("cut.png").write_bytes(pathlib.Path("good.png").read_bytes()[:60])
    for options in ([], ["--carry", "c.json"]):
        pathlib.Path("p.csv").write_text("old")
        refused(["pay", the_run(), *["good.png"] * 600, "cut.png", "--amount", 1, "-o", "p.csv",
                 "--summary", *options], 1, "cut.png")
        assert pathlib.Path("p.csv").read_text() == "old" and not os.path.exists("c.json")
    assert set(os.listdir(".")) == {"good.png", "cut.png", "p.csv", "c.json.lock"}
    about = pay_json(*["good.png"] * 600, "--amount", "0.01", "--summary")
    assert about["predictions"] == 600


@test
def a_full_output_is_told_and_leaves_the_old_file():
    if not os.path.exists("/dev/full"):
        return
    pathlib.Path("p.csv").write_text("old")
    for kind in ("--jsonl", "--json"):
        with open("/dev/full", "w") as full:
            _, err = fds("pay", the_run(), "--index", many(600), "--amount", 1, kind, "-o", "p.csv",
                         code=1, stdout=full)
        assert err.startswith("fds pay: cannot write"), err
        assert pathlib.Path("p.csv").read_text() == "old"
    assert os.listdir(".") == ["p.csv"]


@test
def mistakes_are_answered_before_any_work():
    for args, *phrases in (
            ([], "--amount is missing", "--total"),
            (["--amount", "1,50"], "--amount 1,50"),
            (["--amount", "1e3"], "--amount 1e3"),
            (["--amount", "1."], "--amount 1."),
            (["--amount", ".5"], "--amount .5"),
            (["--amount", "1.0123456789"], "at most 9 decimals"),
            (["--amount=-1"], "--amount -1"),
            (["--amount", "90071992547409.92"], "at most 90071992547409.91"),
            (["--total", "x"], "--total x"),
            (["--total", 1, "--amount", 1], "not both"),
            (["--amount", "1.5", "--currency", "JPY"], "--amount", "0 decimals, as JPY has (got 1.5)"),
            (["--amount", 1, "--currency", "JYP"], 'did you mean "JPY"?'),
            (["--amount", 1, "--policy", "sign"], 'did you mean "signed"?'),
            (["--amount", 1, "--by", "groups"], 'did you mean "group"?'),
            (["--amount", 1, "-o", "p.npy"], ".csv, .json or .jsonl"),
            (["--amount", 1, "--carry", "c.txt"], "--carry c.txt", ".json"),
            (["--amount", 1, "--carry", "c.json", "-o", "c.json"], "-o and --carry"),
            (["--amount", 1, "--json", "--jsonl"], "--json and --jsonl"),
            (["--amount", 1, "--all", "--top", 3], "--all")):
        refused(["pay", "run", "--index", 0, *args], 2, "fds pay: ", *phrases)
    assert os.listdir(".") == []


try:
    code = main()
finally:
    KEPT.cleanup()
sys.exit(code)
