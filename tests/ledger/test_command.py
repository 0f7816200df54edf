# SPDX-License-Identifier: Apache-2.0
"""fds ledger as operators, providers and auditors meet it.

usage: test_command.py FDS
Prints TAP. Needs nothing but Python's standard library.
"""
import json
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import FDS, Skip, fds, main, refused, test  # noqa: E402


def make(*options):
    out, _ = fds("ledger", "init", "shop.db", "--origin", "example.com/shop", *options)
    return out.strip()


@test
def a_ledger_and_its_key_are_made_once():
    vkey = make()
    assert vkey.startswith("example.com/shop+")
    assert stat.S_IMODE(os.stat("shop.db.key").st_mode) == 0o600
    assert stat.S_IMODE(os.stat("shop.db").st_mode) == 0o600
    refused(["ledger", "init", "shop.db"], 2, "shop.db exists already")
    refused(["ledger", "init", "x.db", "--currency", "XXX"], 2, "--currency", "ISO 4217")
    refused(["ledger", "init", "x.db", "--currency", "BHD", "--decimals", "1"], 2, "--decimals", "3")
    refused(["ledger", "init"], 2, "LEDGER is missing")
    assert sorted(os.listdir(".")) == ["shop.db", "shop.db.key"]


@test
def who_makes_a_ledger_is_told_what_signs_its_log():
    _, err = fds("ledger", "init", "y.db")
    assert 'y.db.key signs the log "fds.local/ledger"' in err and "--origin NAME" in err, err
    _, err = fds("ledger", "init", "z.db", "--origin", "example.com/z", "--signing-key", "own.key")
    assert 'own.key signs the log "example.com/z"' in err and "--origin" not in err, err


@test
def money_goes_in_and_out():
    make()
    refused(["ledger", "topup", "shop.db", "acme", "10.00"], 1, "--new")
    out, _ = fds("ledger", "topup", "shop.db", "acme", "10.005", "--new", "--key", "k")
    assert out == "acme paid in 10.005000 USD; balance 10.005000 (entry 3)\n"
    assert fds("ledger", "topup", "shop.db", "acme", "10.005", "--key", "k")[0] == out
    refused(["ledger", "topup", "shop.db", "acme", "11", "--key", "k"], 2, "another request")
    refused(["ledger", "topup", "shop.db", "acmee", "1"], 1, 'did you mean "acme"?')
    refused(["ledger", "topup", "shop.db", "acme", "0.0000001"], 2, "at most 6 decimals")
    refused(["ledger", "topup", "shop.db", "acme", "-1"], 2, "unknown option")
    refused(["ledger", "topup", "shop.db", "acme", "--", "-1"], 2, "from 1 to")
    refused(["ledger", "topup", "shop.db", "acme"], 2, "too few arguments")
    paid = json.loads(fds("ledger", "payout", "shop.db", "acme", "--json")[0])
    assert paid == {"account": "acme", "units": 10000000, "entry": 4, "balance": 5000}
    out, _ = fds("ledger", "payout", "shop.db", "acme")
    assert out == "acme is paid out 0.000000 USD; balance 0.005000, no entry\n"
    fds("ledger", "topup", "shop.db", "acme", "5")
    out, _ = fds("ledger", "correct", "shop.db", "3", "acme=-1.5", "fees=1.50", "--reason", "typo",
                 "--operators", "ann,bob")
    assert out == "entry 6 corrects entry 3\n"
    refused(["ledger", "correct", "shop.db", "3", "acme=-1", "fees=1"], 2, "--reason")
    refused(["ledger", "correct", "shop.db", "3", "acme=-1", "fees=2", "--reason", "r", "--operators",
             "ann,bob"], 2, "sum to 0")
    refused(["ledger", "correct", "shop.db", "3", "acme=-1", "fees=1", "--reason", "r", "--operators",
             "ann,ann"], 2, "two different")
    balances = json.loads(fds("ledger", "balance", "shop.db", "--json")[0])["balances"]
    assert sum(each["units"] for each in balances) == 0
    assert balances[2] == {"account": "acme", "kind": "customer", "units": 3505000}
    assert fds("ledger", "balance", "shop.db", "acme")[0].split()[-1] == "3.505000"
    lines = fds("ledger", "statement", "shop.db", "acme")[0].splitlines()
    assert len(lines) == 5 and lines[-1].endswith("correction,,-1.500000,,3.505000")
    assert fds("ledger", "statement", "shop.db", "acme", "--to", "2020-01-01")[0].count("\n") == 1
    refused(["ledger", "statement", "shop.db", "acme", "--from", "May"], 2, "--from")
    assert json.loads(fds("ledger", "statement", "shop.db", "acme", "--json")[0]) == {"earnings": []}


@test
def a_receipt_is_proven_without_the_ledger():
    vkey = make()
    fds("ledger", "topup", "shop.db", "acme", "10", "--new")
    proof = fds("ledger", "receipt", "shop.db", "3", "acme")[0]
    pathlib.Path("r.txt").write_text(proof)
    os.rename("shop.db", "elsewhere.db")
    says = json.loads(fds("ledger", "verify-receipt", "r.txt", "--vkey", vkey, "--json")[0])
    assert says["account"] == "acme" and says["units"] == 10000000 and says["index"] == 3
    assert "units     10000000\n" in fds("ledger", "verify-receipt", "r.txt", "--vkey", vkey)[0]
    refused(["ledger", "verify-receipt", "r.txt"], 2, "--vkey")
    refused(["ledger", "verify-receipt", "none.txt", "--vkey", vkey], 1, "none.txt")
    pathlib.Path("bad.txt").write_text(proof.replace("index 3", "index 2"))
    refused(["ledger", "verify-receipt", "bad.txt", "--vkey", vkey], 1)
    refused(["ledger", "receipt", "elsewhere.db", "3", "fees"], 1, "no posting of fees")
    refused(["ledger", "receipt", "elsewhere.db", "three", "acme"], 2, "by its number")


@test
def verification_finds_a_changed_balance():
    vkey = make()
    fds("ledger", "topup", "shop.db", "acme", "10", "--new")
    assert fds("ledger", "verify", "shop.db", "-q")[0].startswith("right: 4 entries, 3 accounts")
    assert json.loads(fds("ledger", "verify", "shop.db", "--vkey", vkey, "--json")[0])["entries"] == 4
    fds("ledger", "backup", "shop.db", "-o", "copy.db")
    refused(["ledger", "backup", "shop.db", "-o", "shop.db"], 2, "is an input")
    refused(["ledger", "backup", "shop.db"], 2, "-o FILE")
    with sqlite3.connect("shop.db") as file:
        file.execute("UPDATE account SET balance = balance + 1 WHERE name = 'acme'")
    file.close()
    refused(["ledger", "verify", "shop.db", "-q"], 1, "balance of acme")
    fds("ledger", "verify", "copy.db", "-q")


@test
def exports_are_named_by_format():
    make()
    fds("ledger", "topup", "shop.db", "acme", "10", "--new")
    for form, part in (("hledger", "Liabilities:Customers:acme  -10.000000 USD"),
                       ("ledger", "Assets:Cash  10.000000 USD"),
                       ("beancount", "balance Assets:Cash  10.000000 USD"),
                       ("csv", "acme,customer,10.000000,USD")):
        fds("ledger", "export", "shop.db", "--format", form, "-o", f"out.{form}")
        assert part in pathlib.Path(f"out.{form}").read_text()
    refused(["ledger", "export", "shop.db", "--format", "hleger", "-o", "x"], 2, "hledger")
    refused(["ledger", "export", "none.db", "-o", "x"], 1, "none.db")


@test
def a_disk_that_fails_to_sync_changes_nothing_or_says_so():
    """The nth sync fails, for every n: what the command reports is what is there afterwards."""
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], check=False).returncode:
        raise Skip("strace cannot trace here")
    make()
    fds("ledger", "topup", "shop.db", "acme", "1", "--new", "-q")
    balance, failures = 1000000, 0
    for n in range(1, 40):
        done = subprocess.run(["strace", "-f", "-qq", "-o", "trace", "-e", "trace=fsync,fdatasync",
                               "-e", f"inject=fsync,fdatasync:error=EIO:when={n}",
                               FDS, "ledger", "topup", "shop.db", "acme", "1", "-q"], check=False, capture_output=True,
                              # under a tracer the search for leaks fails
                              env=dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"))
        balance += 1000000 if done.returncode == 0 else 0
        failures += done.returncode != 0
        shown = json.loads(fds("ledger", "balance", "shop.db", "acme", "--json")[0])
        assert str(balance) in json.dumps(shown), (n, done.returncode, done.stderr, balance, shown)
        fds("ledger", "verify", "shop.db", "-q")
        if "INJECTED" not in pathlib.Path("trace").read_text():
            break
    assert failures > 0

sys.exit(main())
