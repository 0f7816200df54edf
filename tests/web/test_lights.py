# SPDX-License-Identifier: Apache-2.0
"""Each light of the audit, turned red by a planted fault: fds serve, its ledger, and Chromium.

usage: test_lights.py FDS [--shots FOLDER]      (FDS_TEST_DATA: the folder with the committed samples)

A history of predictions is bought once. For each check a copy of the ledger gets its fault: money that was edited, or
rows of audited predictions as if the bank said something else than what was paid. Prints TAP.
"""
import json
import os
import pathlib
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

from browser import HERE, ROOT, missing, modules, skip

REASON = missing("chromium", "playwright-core", "axe-core")
if REASON:
    skip(REASON)
sys.path.insert(0, str(ROOT / "tests/serve"))
from server import FDS, Server, bearer, fds, infer_json, make_key, the_run  # noqa: E402

CUSTOMERS, BOUGHT, AT_ONCE = ("acme", "mallory"), 1200, 100
RNG = random.Random(18)


def serve():
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", "--audit-share", "0",
                  "--audit-groups", "groups.csv", models={"mnist": the_run()})


def login(role, name):
    password = f"the password of {name}"
    subprocess.run([FDS, "serve", "login", "keys.jsonl", "--name", name, "--role", role], input=password + "\n",
                   text=True, check=True, stdout=subprocess.DEVNULL)
    return {"name": name, "password": password}


def buy(server, key, numbers):
    """Shares of the payees in each."""
    shares = []
    for first in range(0, len(numbers), AT_ONCE):
        part = numbers[first:first + AT_ONCE]
        reply = server.infer(infer_json(*part), model="mnist.explain", headers=[bearer(key)])
        assert reply.status == 200, reply.body
        found = reply.outputs()
        width = len(found["payees"])
        shares += [found["shares"][k * width:(k + 1) * width] for k in range(len(part))]
        names = found["payees"]
    return names, shares


def history():
    """Digits at random for one customer; for the other those that pay one provider most."""
    fds("ledger", "init", "a.ledger", "-q")
    for name in CUSTOMERS:
        fds("ledger", "topup", "a.ledger", name, "90.00", "--new", "-q")
    keys = {name: make_key(account=name) for name in CUSTOMERS}
    pathlib.Path("groups.csv").write_text("name,group\n")
    with serve() as server:
        digits = [RNG.randrange(100) for _ in range(BOUGHT)]
        names, shares = buy(server, keys["acme"], digits)
        favourite = sorted(range(BOUGHT), key=lambda k: -shares[k][5])[:BOUGHT // 10]
        buy(server, keys["mallory"], [digits[k] for k in favourite] * 3)
    pathlib.Path("groups.csv").write_text(
        "name,group\n" + "".join(f"{name},{'first' if i < 6 else 'second'} half\n" for i, name in enumerate(names)))


def audit_rows(fault):
    """Adds what a bank would say: what was paid, but for the fault."""
    db = sqlite3.connect("a.ledger")
    if fault == "ledger":
        guard, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'entry_update'").fetchone()
        db.execute("DROP TRIGGER entry_update")
        db.execute("UPDATE entry SET amount = amount + 1 WHERE idx = (SELECT max(idx) - 7 FROM entry)")
        db.execute(guard)
    for index, values, errors in db.execute("SELECT idx, vals, errors FROM entry WHERE kind = 'prediction'").fetchall():
        count = len(values) // 4
        v, e = list(struct.unpack(f"<{count}f", values)), struct.unpack(f"<{count}e", errors)
        score = RNG.choice(SCORES) * RNG.uniform(0.99, 1.01)
        if fault == "truth":
            RNG.shuffle(v)
        elif fault == "provider":
            v[1] = abs(v[1]) * 2 + 0.02
        elif fault == "coverage":
            v = [a + RNG.choice((-3, 3)) * b for a, b in zip(v, e)]
        elif fault == "groups":
            v = [a * (1.3 if i < 6 else 1) if a > 0 else a for i, a in enumerate(v)]
        elif fault == "drift" and index > BOUGHT / 2:  # ranks are among all earlier ones: it must begin
            score *= 3
        db.execute("INSERT INTO audited (entry, vals, errors, score) VALUES (?, ?, ?, ?)",
                   (index, struct.pack(f"<{count}f", *v), struct.pack(f"<{count}f", *(0.2 * x for x in e)), score))
    db.commit()
    db.close()


def look(check, logins):
    with serve() as server:
        command = ["node", str(HERE / "test_lights.mjs"), "--modules", str(modules()), "--chromium", shutil.which("chromium"),
                   "--base", server.address, "--logins", json.dumps(logins), "--check", check, *sys.argv[2:]]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("1..")]
    if done.returncode:
        print("\n".join("# " + line for line in (done.stdout + done.stderr).splitlines()))
    return sum(line.startswith("ok") for line in lines), sum(line.startswith("not ok") for line in lines)


def main():
    global SCORES
    history()
    SCORES = json.loads(pathlib.Path(the_run(), "validation.json").read_text())["drift"]["scores"]
    fds("ledger", "backup", "a.ledger", "-o", "kept.ledger", "-q")
    shutil.copy("a.ledger.key", "kept.key")
    logins = {"auditor": login("auditor", "carol"), "operator": login("operator", "ada")}
    checks = ["ledger", "truth", "provider", "coverage", "groups", "drift", "self"]
    print(f"1..{len(checks)}", flush=True)
    code = 0
    for number, check in enumerate(checks, 1):
        for path in pathlib.Path(".").glob("a.ledger*"):
            path.unlink()
        shutil.copy("kept.ledger", "a.ledger")
        shutil.copy("kept.key", "a.ledger.key")
        audit_rows(check)
        right, wrong = look(check, logins)
        is_right = right == 4 and not wrong
        code |= not is_right
        print(f"{'ok' if is_right else 'not ok'} {number} - a planted fault turns {check} red", flush=True)
    return code


with tempfile.TemporaryDirectory() as folder:
    if "--shots" in sys.argv:
        sys.argv[-1] = os.path.abspath(sys.argv[-1])
    os.chdir(folder)
    try:
        CODE = main()
    finally:
        os.chdir("/")
sys.exit(CODE)
