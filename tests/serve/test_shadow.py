# SPDX-License-Identifier: Apache-2.0
"""What the bank of a run says about paid predictions: answered beside the service, kept in the ledger.

The program's argument is the path of fds.
"""
import datetime
import hashlib
import json
import os
import pathlib
import sqlite3
import struct
import sys

from server import Server, bearer, fds, fds_json, infer_json, main, make_key, refused, test, the_run, until


def bank_run():
    return the_run("kept", "--keep-models")


def shop(*args, run=None, **options):
    if not os.path.exists("a.ledger"):
        fds("ledger", "init", "a.ledger", "-q")
        fds("ledger", "topup", "a.ledger", "acme", "9.00", "--new", "-q")
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", *args,
                  models={"mnist": run or bank_run()}, **options)


def buy(server, key, *numbers):
    reply = server.infer(infer_json(*numbers), model="mnist.explain", headers=[bearer(key)])
    assert reply.status == 200, reply.body
    return reply.outputs()


def rows():
    """What the ledger has, once nobody writes it."""
    with sqlite3.connect("file:a.ledger?mode=ro", uri=True) as db:
        found = db.execute("SELECT entry, vals, errors, score FROM audited ORDER BY entry").fetchall()
    floats = lambda blob: struct.unpack(f"<{len(blob) // 4}f", blob)
    return {entry: (floats(values), floats(errors), score) for entry, values, errors, score in found}


def notes(server, key):
    entries = server.get("/api/entries?kind=audit", bearer(key)).json()["entries"]
    return [e["text"] for e in reversed(entries)]


def secret_of(day):
    return bytes.fromhex(json.loads(pathlib.Path(f"a.ledger.audit-{day}").read_text())["secret"])


def is_chosen(secret, index, share):
    digest = hashlib.sha256(secret + struct.pack(">Q", index)).digest()
    return struct.unpack(">Q", digest[:8])[0] < share * 2 ** 64


@test
def the_bank_answers_the_chosen_predictions_and_no_others():
    key, auditor = make_key(), make_key("auditor", "anna")
    with shop("--audit-share", "0.5") as s:
        found = [buy(s, key, *range(n, n + 5)) for n in range(0, 40, 5)]
        committed = notes(s, auditor)
        day, = {str(datetime.datetime.now(datetime.timezone.utc).date())} & {n["day"] for n in committed}
        assert [n["audit"] for n in committed] == ["commit", "commit"], committed
        secret = secret_of(day)
        assert committed[0] == {"audit": "commit", "day": day, "hash": hashlib.sha256(secret).hexdigest()}
        receipts = [index for one in found for index in one["receipt"]]
        wanted = [index for index in receipts if is_chosen(secret, index, 0.5)]
        assert 8 < len(wanted) < 32, wanted
        until(lambda: s.get("/api/audit", bearer(auditor)).json()["audited"] == len(wanted))
        assert s.metric("fds_audited_total", bearer(auditor)) == len(wanted)
        assert os.stat(f"a.ledger.audit-{day}").st_mode & 0o777 == 0o600
    kept = rows()
    assert sorted(kept) == wanted
    answers = fds_json("explain", bank_run(), "--index", "0..39", "--by", "bank")["inputs"]
    payees = found[0]["payees"]
    for answer, index in zip(answers, receipts):
        by_name = {line["player"]: (line["value"], line["standard_error"]) for line in answer["ranking"]}
        for name, value, error in zip(payees, *kept.get(index, [(), ()])[:2]):
            assert abs(value - by_name[name][0]) < 1e-6 and abs(error - by_name[name][1]) < 1e-6, (index, name)
    assert all(score > 0 for _, _, score in kept.values())
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_run_without_a_bank_commits_to_nothing():
    key, operator = make_key(), make_key("operator", "olga")
    with shop(run=the_run()) as s:
        buy(s, key, 0)
        assert notes(s, operator) == []
        assert s.get("/api/audit", bearer(operator)).json()["audit_share"] == 0
    with shop("--audit-share", "0") as s:
        buy(s, key, 0)
        assert notes(s, operator) == []


@test
def a_killed_server_goes_on_with_the_same_secret():
    key, operator = make_key(), make_key("operator", "olga")
    with shop("--audit-share", "1") as s:
        buy(s, key, 0)
        before = notes(s, operator)
        s.process.kill()
    secrets = {p.name: p.read_bytes() for p in pathlib.Path(".").glob("a.ledger.audit-*")}
    assert len(secrets) == 2
    with shop("--audit-share", "0.01") as s:
        index, = buy(s, key, 1)["receipt"]
        assert notes(s, operator) == before
        until(lambda: s.get("/api/audit", bearer(operator)).json()["audited"] >= 1)
    assert {p.name: p.read_bytes() for p in pathlib.Path(".").glob("a.ledger.audit-*")} == secrets
    assert index in rows()


@test
def lights_are_for_auditors_and_operators():
    key, auditor, provider = make_key(), make_key("auditor", "anna"), make_key("provider", "north")
    with shop() as s:
        buy(s, key, 0, 1, 2)
        refused(s.get("/api/audit"), 401, "")
        for other in (key, provider):
            refused(s.get("/api/audit", bearer(other)), 403, "")
        report = s.get("/api/audit", bearer(auditor)).json()
        assert [c["check"] for c in report["checks"]] == ["ledger", "truth", "provider", "coverage", "groups", "drift",
                                                          "self"]
        assert report["checks"][0]["verdict"] == "unknown" and report["verified_at"] is None
        report = s.get("/api/audit?verify=true", bearer(auditor)).json()
        assert report["checks"][0]["verdict"] == "ok" and report["verified_at"], report["checks"][0]
        buy(s, key, 3)
        assert s.get("/api/audit", bearer(auditor)).json()["predictions"] == 4


@test
def groups_are_compared_by_a_file():
    auditor = make_key("auditor", "anna")
    pathlib.Path("g.csv").write_text("name,group\nnorth,a\n")
    with shop("--audit-groups", "g.csv") as s:
        groups = s.get("/api/audit", bearer(auditor)).json()["checks"][4]
        assert groups["check"] == "groups" and groups["evidence"][0]["name"] == "a", groups


sys.exit(main())
