# SPDX-License-Identifier: Apache-2.0
"""Private ledgers by the command: statements once, also when it is killed at any system call; budget; exports.

usage: test_command.py FDS DRIVER
Prints TAP. Needs nothing but Python's standard library; strace, hledger and bean-check where they are installed.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FDS_PATH, DRIVER_PATH = map(os.path.abspath, sys.argv[1:3])
sys.argv[1:3] = [DRIVER_PATH]
sys.path.insert(0, str(ROOT / "ledger"))
from drive import SHA, Driver  # noqa: E402
sys.argv[1:2] = [FDS_PATH]
sys.path.insert(0, str(ROOT / "cli"))
from harness import Skip, fds, main, refused, test  # noqa: E402

CALLS = "pwrite64,write,fsync,fdatasync,ftruncate,unlink,getrandom,?link,?linkat"
PERIOD = "2096-10"  # the ledger's clock is far ahead of this machine's: periods are over by it
ASK = ["ledger", "statement", "shop.db", "north", "--private", "--period", PERIOD]


def make(predictions=40):
    """shop.db: 40 predictions of a cent in October, one in November."""
    fds("ledger", "init", "shop.db", "--origin", "example.com/shop")
    driver = Driver()
    driver.ask("open shop.db write")
    driver.ask("clock 2096-10-05")
    driver.ask("private price_limit=0.01")
    driver.ask("account customer acme")
    driver.ask("topup acme 100000000 -")
    driver.ask(f"run m {SHA} clip 0 north south west")
    for _ in range(predictions):
        driver.charge([(0, "acme", 10000, "-", 0, "six", "answer", [1, 2, 1])])
    driver.ask("clock 2096-11-05")
    driver.charge([(0, "acme", 10000, "-", 0, "six", "answer", [1, 1, 2])])
    driver.ask("close")
    driver.end()


def kinds():
    return json.loads(fds("ledger", "verify", "shop.db", "--json", "-q")[0])["kinds"]


@test
def a_statement_is_drawn_once_and_printed_again():
    make()
    first = fds(*ASK)[0]
    assert re.match(r"north, 2096-10: -?\d+\.\d{6} USD \(entry \d+\)\nnoise: discrete laplace, standard deviation "
                    r"0\.014142; epsilon 1 for a prediction\n$", first), first
    assert fds(*ASK)[0] == first
    os.rename("shop.db.key", "away")  # a reprint needs no key, and no second draw
    assert fds(*ASK)[0] == first
    told = json.loads(fds(*ASK, "--json")[0])
    assert told["period"] == PERIOD and told["last"] == "2096-10-31", told
    assert abs(told["units"] - 100000) < 200000
    count = kinds()
    assert count["release"] == 1 and count["privacy"] == 2, count
    # others are of the same draw
    fds(*ASK[:3], "south", *ASK[4:])
    assert kinds() == count
    out = fds("ledger", "statement", "shop.db", "north")[0]
    assert "prediction" not in out and out.count("release") == 1, out


@test
def the_budget_is_what_was_charged():
    fds("ledger", "init", "plain.db")
    assert fds("privacy", "budget", "plain.db")[0] == "not private: nothing was spent\n"
    make()
    fds(*ASK)
    report = json.loads(fds("privacy", "budget", "shop.db", "--json")[0])
    assert [(r["period"], r["epsilon"], r["released"]) for r in report["releases"]] == [(PERIOD, 1.0, True)], report
    assert report["together"]["epsilon"] == 1 and report["together"]["rho"] == 0.5
    assert report["each"]["epsilon"] == 1 and report["replaced"]["epsilon"] == 2
    assert [(r["predictions"], r["epsilon"]) for r in report["several"]] == [(2, 2), (5, 5), (10, 10)], report
    out = fds("privacy", "budget", "shop.db", "--delta", "1e-5")[0]
    assert "together    epsilon 1, or (1, 1e-05)" in out, out
    assert "replaced    epsilon 2, or (2, 1e-05)" in out and "How many predictions there were" in out, out
    refused(["privacy", "budget", "shop.db", "--delta", "2"], 2, "--delta", "below 1")


@test
def what_cannot_be_private_is_refused_with_a_reason():
    fds("ledger", "init", "plain.db")
    refused(["ledger", "statement", "plain.db", "cash", "--private", "--period", "2096-10"], 2, "is not private")
    refused(["ledger", "statement", "plain.db", "cash", "--private"], 2, "--period")
    refused(["privacy", "on", "plain.db"], 2, "--price-limit")
    out = fds("privacy", "on", "plain.db", "--price-limit", "0.01")[0]
    assert "epsilon 1 for a prediction of at most 0.010000" in out, out
    refused(["privacy", "on", "plain.db", "--price-limit", "1"], 2, "is private already")
    make()
    refused([*ASK[:-1], "2096-11"], 2, "is not over")
    refused([*ASK[:3], "acme", *ASK[4:]], 2, "is not a provider")
    assert kinds()["privacy"] == 1  # nothing was charged for it
    refused(["explain", "run", "--index", "1", "--private"], 2, "--private is refused", "single prediction")
    refused(["pay", "run", "--index", "1", "--private"], 2, "--private is refused", "single prediction")
    refused(["fit", "data", "--private"], 2, "--private is refused", "trained on it")
    refused(["train", "data", "--private"], 2, "--private is refused", "trained on it")


# ---- kill -9 ----

def trace(*options):
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], check=False).returncode:
        raise Skip("strace cannot trace here")
    environment = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    return subprocess.run(["strace", "-f", "-qq", "-o", "trace", *options, FDS_PATH, *ASK], check=False,
                          capture_output=True, env=environment)


@test
def the_charge_is_on_the_disk_before_the_first_random_bit():
    make()
    assert trace("-e", f"trace={CALLS}").returncode == 0
    lines = pathlib.Path("trace").read_text().splitlines()
    # noise takes 256 bytes at a time, salts take 32
    drawn = [i for i, line in enumerate(lines) if re.search(r"getrandom\(.*, 256, ", line)]
    synced = [i for i, line in enumerate(lines) if re.search(r"f(data)?sync\(.*= 0", line)]
    assert drawn and synced
    assert synced[0] < drawn[0] < synced[-1], (synced, drawn)
    # what was drawn is beside the key, and synced, before the release is written
    kept = [i for i, line in enumerate(lines) if re.search(r"\blink(at)?\(.*\.privacy-.*= 0", line)]
    written = [i for i, line in enumerate(lines) if i > drawn[-1] and "pwrite64(" in line]
    assert len(kept) == 1 and drawn[-1] < kept[0] < written[0], (drawn, kept, written)
    assert any(kept[0] < i < written[0] for i in synced), (kept, synced, written)


@test
def killed_at_any_system_call_it_charges_once_and_draws_once():
    make()
    files = {name: pathlib.Path(name).read_bytes() for name in ("shop.db", "shop.db.key")}
    kills = charged = 0
    statements = set()
    for call in range(1, 500):
        for name in os.listdir("."):
            os.remove(name)
        for name, data in files.items():
            pathlib.Path(name).write_bytes(data)
            os.chmod(name, 0o600)
        done = trace("-e", f"trace={CALLS}", "-e", f"inject={CALLS}:signal=KILL:when={call}")
        if "killed by SIGKILL" not in pathlib.Path("trace").read_text():
            break
        kills += 1
        before = kinds()
        charged += before["privacy"] == 2 and before["release"] == 0
        first = fds(*ASK)[0]
        assert done.stdout == b"" or first.encode() == done.stdout, (call, done.stdout, first)
        assert fds(*ASK)[0] == first
        after = kinds()
        assert after["privacy"] == 2 and after["release"] == 1, (call, after)
        spent = json.loads(fds("privacy", "budget", "shop.db", "--json")[0])
        assert spent["together"]["epsilon"] == 1, (call, spent)
        statements.add(first)
    print(f"# {kills} kills; {charged} left a charge without statements, which the next call drew")
    assert kills > 20 and charged > 3, (kills, charged)
    assert len(statements) > 5  # different draws, each the only one of its ledger


@test
def a_restored_backup_draws_nothing_again():
    make()
    backup = pathlib.Path("shop.db").read_bytes()
    first = fds(*ASK)[0].splitlines()[0].split(" (")[0]
    assert os.stat(f"shop.db.key.privacy-{PERIOD}").st_mode & 0o777 == 0o600
    for _ in range(2):
        pathlib.Path("shop.db").write_bytes(backup)
        assert kinds()["release"] == 0
        assert fds(*ASK)[0].splitlines()[0].split(" (")[0] == first
        count = kinds()
        assert count["privacy"] == 2 and count["release"] == 1, count
    # without the file nothing is known of the first draw
    pathlib.Path("shop.db").write_bytes(backup)
    os.remove(f"shop.db.key.privacy-{PERIOD}")
    assert fds(*ASK)[0].splitlines()[0].split(" (")[0] != first


# ---- others' programs ----

@test
def exports_balance():
    make()
    fds(*ASK)
    fds("ledger", "payout", "shop.db", "south")
    balances = {b["account"]: b["units"] for b in json.loads(fds("ledger", "balance", "shop.db", "--json")[0])["balances"]}
    assert sum(balances.values()) == 0 and "reserve" in balances
    has_one = False
    for form, program in (("hledger", ["hledger", "check", "-f"]), ("beancount", ["bean-check"])):
        fds("ledger", "export", "shop.db", "--format", form, "-o", f"out.{form}")
        assert "Equity:Reserve" in pathlib.Path(f"out.{form}").read_text()
        if shutil.which(program[0]):
            has_one = True
            done = subprocess.run([*program, f"out.{form}"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    if not has_one:
        raise Skip("hledger and bean-check are not installed")


sys.exit(main())
