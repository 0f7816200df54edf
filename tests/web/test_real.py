# SPDX-License-Identifier: Apache-2.0
"""The page against fds serve itself: test_page.mjs with a run, a ledger, logins and some predictions.

usage: test_real.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from browser import ROOT, missing, page_test, skip

REASON = missing("chromium", "playwright-core", "axe-core")
if REASON:
    skip(REASON)
sys.path.insert(0, str(ROOT / "tests/serve"))
from server import FDS, Server, bearer, fds, fds_json, infer_json, make_key, the_run  # noqa: E402

PAID = 40  # predictions before anybody looks


def serve():
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "1", "--fee", "0.1",
                  models={"mnist": the_run()})


def login(role, name, account):
    password = f"the password of {name}"
    subprocess.run([FDS, "serve", "login", "keys.jsonl", "--name", name, "--role", role, "--account", account],
                   input=password + "\n", text=True, check=True, stdout=subprocess.DEVNULL)
    return {"name": name, "account": account, "password": password}


def prepare():
    """A ledger with predictions; the provider that earned most."""
    fds("ledger", "init", "a.ledger", "-q")
    fds("ledger", "topup", "a.ledger", "acme", "500.00", "--new", "-q")
    key = make_key()
    with serve() as server:
        for number in range(PAID):
            assert server.infer(infer_json(number), headers=[bearer(key)]).status == 200
    balances = fds_json("ledger", "balance", "a.ledger")["balances"]
    return max((b for b in balances if b["kind"] == "provider"), key=lambda b: b["units"])["account"]


def main():
    provider = prepare()
    logins = {"customer": login("customer", "acme", "acme"), "provider": login("provider", "pat", provider),
              "operator": login("operator", "ada", "ada"), "second": login("operator", "bob", "bob"),
              "auditor": login("auditor", "carol", "carol")}
    with serve() as server:
        code = subprocess.run(page_test("--base", server.address, "--logins", json.dumps(logins),
                                        *sys.argv[2:]), check=False).returncode
    fds("ledger", "verify", "a.ledger", "-q")
    return code


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    try:
        CODE = main()
    except Exception:
        log = pathlib.Path("server.log")
        print(log.read_text()[-2000:] if log.exists() else "", file=sys.stderr)
        raise
    finally:
        os.chdir("/")
sys.exit(CODE)
