# SPDX-License-Identifier: Apache-2.0
"""fds audit as operators and auditors meet it.

usage: test_command.py FDS MAKE_LEDGER RESEAL
Prints TAP. Needs nothing but Python's standard library.
"""
import json
import os
import pathlib
import shlex
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
MAKE, RESEAL = map(os.path.abspath, sys.argv[2:4])
from harness import MNIST, fds, main, refused, test  # noqa: E402

ALARM = 3


def make(*words):
    subprocess.run([MAKE, "shop.db", *map(str, words)], check=True)


def checks(report):
    return {check["check"]: check for check in report["checks"]}


@test
def an_honest_ledger_passes():
    make(800, 5, 2)
    out, _ = fds("audit", "--ledger", "shop.db", "--quiet")
    assert out.startswith("no check alarms\n"), out
    report = json.loads(fds("audit", "--ledger", "shop.db", "--json")[0])
    assert report["format"] == "fds-audit 1" and report["verdict"] == "ok"
    assert report["predictions"] == 800 and report["audited"] == 400
    found = checks(report)
    assert {name: found[name]["verdict"] for name in found} == {
        "ledger": "ok", "truth": "unknown", "provider": "ok", "coverage": "ok", "groups": "unknown",
        "drift": "unknown", "self": "ok"}
    assert found["provider"]["needed"] == 5 / 0.009 and len(found["provider"]["evidence"]) == 5


@test
def a_robbed_provider_is_named_and_the_proposed_correction_can_be_entered():
    make(2000, 5, 1, 1)
    out, _ = fds("audit", "provider", "self", "--ledger", "shop.db", "--report", "page.html", "--proposal",
                 "mend.json", "--quiet", code=ALARM)
    assert "1 of 2 checks alarms" in out and "provider 1" in out
    with open("mend.json", encoding="utf-8") as file:
        proposal = json.load(file)
    amounts = {p["account"]: round(float(p["amount"]) * 10**6) for p in proposal["postings"]}
    assert sum(amounts.values()) == 0 and amounts["provider 1"] > 0 > amounts["provider 2"], amounts
    # a tenth of a fifth of what was paid
    assert 0.8 < amounts["provider 1"] / (2000 * 10000 / 5 / 10) < 1.2, amounts
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert "provider 1" in page and "What would mend it" in page and "<script" not in page
    command = out[out.index("fds ledger correct"):].replace("\\\n", " ").replace("NAME,NAME", "ann,bob")
    assert fds(*shlex.split(command)[1:])[0].startswith("entry ")
    fds("ledger", "verify", "shop.db", "--quiet")
    out, _ = fds("audit", "provider", "--ledger", "shop.db", "--quiet", code=ALARM)
    assert "fds ledger correct" not in out  # it was corrected


@test
def groups_come_from_a_file():
    make(1500, 4, 1, 3)  # from provider 3 to provider 0
    for name, groups, code in (("alike", "abba", 0), ("apart", "aabb", ALARM)):
        with open("groups.csv", "w", encoding="utf-8") as file:
            file.write("name,group\n" + "".join(f"provider {i},{g}\n" for i, g in enumerate(groups)))
        out, _ = fds("audit", "groups", "--ledger", "shop.db", "--groups", "groups.csv", "--quiet", code=code)
        assert out.startswith("1 of 1 checks alarms" if code else "no check alarms"), (name, out)


@test
def a_changed_ledger_is_an_alarm():
    make(50, 3, 5)
    with sqlite3.connect("shop.db") as connection:
        connection.execute("UPDATE account SET balance = balance + 1 WHERE name = 'provider 2'")
    connection.close()
    out, _ = fds("audit", "ledger", "--ledger", "shop.db", "--quiet", code=ALARM)
    assert "the balance of provider 2" in " ".join(out.split())


@test
def the_key_of_the_log_may_come_from_its_owner():
    make(50, 3, 5)
    own = json.loads(fds("ledger", "verify", "shop.db", "--json")[0])["vkey"]
    fds("ledger", "init", "other.db", "-q")
    other = json.loads(fds("ledger", "verify", "other.db", "--json")[0])["vkey"]
    fds("audit", "ledger", "--ledger", "shop.db", "--vkey", own, "--quiet")
    fds("audit", "ledger", "--ledger", "shop.db", "--vkey", other, "--quiet", code=ALARM)


def write_validation(**parts):
    """Of the run, which vouches for the file, and of a new ledger for it."""
    with open("run/validation.json", "w", encoding="utf-8") as file:
        json.dump({"format": "fds-validation 1", "agreement": None, "misallocation": None, "covered": None, **parts}, file)
    subprocess.run([RESEAL, "run"], check=True)
    for path in pathlib.Path(".").glob("shop.db*"):
        path.unlink()
    make(600, 5, 1, -1, "run")


@test
def a_forged_file_of_a_run_is_found_where_money_depends_on_it():
    fds("fit", MNIST, "--players", 6, "--inputs", 40, "--coalitions", 20, "--epochs", 1, "--method", "afds",
        "--explainer", "linear", "-o", "forged", "--quiet")
    with open("forged/coalitions.csv", "a", encoding="utf-8") as file:
        file.write(" ")
    subprocess.run([RESEAL, "forged", "quick"], check=True)
    fds("explain", "forged", "--index", 0, "--quiet")  # compares quick checksums
    make(50, 3, 5)
    for words in (["pay", "forged", "--index", 0, "--amount", "1.00"], ["serve", "--model", "mnist=forged", "--port", 0],
                  ["audit", "--ledger", "shop.db", "--run", "forged"]):
        err = fds(*words, code=1)[1]
        assert "coalitions.csv was lost, damaged or changed: its sha256" in err, (words, err)


@test
def the_level_and_the_scores_at_fit_time_come_from_the_run():
    fds("fit", MNIST, "--players", 6, "--inputs", 40, "--coalitions", 20, "--epochs", 1, "--method", "afds",
        "--explainer", "linear", "-o", "run", "--quiet")
    audit = lambda code: checks(json.loads(fds("audit", "truth", "drift", "--ledger", "shop.db", "--run", "run", "--json",
                                               "--quiet", code=code)[0]))
    for level, low, verdicts, code in ((0.012, 0, ("ok", "ok"), 0), (0.0, -1000, ("ok", "alarm"), ALARM)):
        write_validation(misallocation=level, drift={"scores": list(range(low, low + 1000, 2))})
        found = audit(code)
        assert (found["truth"]["verdict"], found["drift"]["verdict"]) == verdicts, found
        assert found["truth"]["predictions"] == found["drift"]["predictions"] == 600
    write_validation(drift={})
    found = audit(0)
    assert found["truth"]["verdict"] == found["drift"]["verdict"] == "unknown"
    for parts, says in (({"misallocation": 2}, '"misallocation" from 0 to 1'),
                        ({"drift": {"scores": ["x"]}}, "drift.scores: entry 0 is no number")):
        write_validation(**parts)
        refused(["audit", "--ledger", "shop.db", "--run", "run", "--quiet"], 1, "run/validation.json", says)


@test
def mistakes_are_named():
    make(5, 2, 1)
    refused(["audit"], 2, "--ledger LEDGER")
    refused(["audit", "truht", "--ledger", "shop.db"], 2, 'no check "truht"', 'did you mean "truth"?')
    refused(["audit", "--ledger", "none.db"], 1, "none.db")
    refused(["audit", "--ledger", "shop.db", "--alpha", "2"], 2, "--alpha")
    refused(["audit", "--ledger", "shop.db", "--run", "none.run"], 1, "none.run")
    refused(["audit", "--ledger", "shop.db", "--groups", "none.csv"], 1, "none.csv")
    refused(["audit", "--ledger", "shop.db", "--report", "none/page.html", "--quiet"], 1, "none/page.html")


sys.exit(main())
