# SPDX-License-Identifier: Apache-2.0
"""What the bank of a run says about paid predictions: answered beside the service, kept in the ledger.

The program's argument is the path of fds.
"""
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import signal
import shutil
import sqlite3
import struct
import subprocess
import sys

from server import (FDS, Server, Skip, bearer, environment, fds, fds_json, infer_json, main, make_key, pixels, refused,
                    test, the_run, until)


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


def waiting():
    """Sealed inputs by entry, once nobody writes the ledger."""
    with contextlib.closing(sqlite3.connect("a.ledger")) as db:
        return dict(db.execute("SELECT entry, data FROM waiting").fetchall())


def bought_and_killed(key, *numbers):
    """Predictions that are paid, by a server that dies before the bank could answer: its run was not to be had."""
    auditor = make_key("auditor", "anna")
    shutil.copytree(bank_run(), "run")
    with shop("--audit-share", "1", run="run") as s:
        os.rename("run", "away")
        found = buy(s, key, *numbers)["receipt"]
        assert s.metric("fds_audits_waiting", bearer(auditor)) == len(found)
        s.process.kill()
    os.rename("away", "run")
    return found


def change(sql, *values):
    """What an operator does to the database behind the server's back."""
    with contextlib.closing(sqlite3.connect("a.ledger")) as db:
        db.execute(sql, values)
        db.commit()


def tomorrow():
    """An environment in which programs see the time of the next day."""
    if not shutil.which("faketime"):
        raise Skip("faketime is not installed")
    if b"__tsan_init" in pathlib.Path(FDS).read_bytes():
        raise Skip("faketime hides from the thread sanitizer what a thread waits for")
    library = subprocess.run(["faketime", "-f", "+1d", "printenv", "LD_PRELOAD"], capture_output=True, text=True).stdout
    env = dict(environment(), LD_PRELOAD=library.strip(), FAKETIME="+1d")
    if not library or subprocess.run([FDS, "version"], env=env, capture_output=True).returncode:
        raise Skip("faketime does not run this fds")
    return env


def audit_in(env):
    """A server of the next day reveals the secret; then what the check of the ledger says."""
    operator = make_key("operator", "olga")
    with shop("--audit-share", "1", run="run", env=env) as s:
        until(lambda: "reveal" in [n["audit"] for n in notes(s, operator)])
    done = subprocess.run([FDS, "audit", "ledger", "--ledger", "a.ledger", "--json"], env=environment(),
                          capture_output=True, check=False)
    check, = json.loads(done.stdout)["checks"]
    return check["verdict"], check["answer"]


def rows():
    """What the ledger has, once nobody writes it."""
    with contextlib.closing(sqlite3.connect("file:a.ledger?mode=ro", uri=True)) as db:
        found = db.execute("SELECT entry, vals, errors, score FROM audited ORDER BY entry").fetchall()
    floats = lambda blob: struct.unpack(f"<{len(blob) // 4}f", blob)
    return {entry: (floats(values), floats(errors), score) for entry, values, errors, score in found}


def notes(server, key):
    entries = server.get("/api/entries?kind=audit", bearer(key)).json()["entries"]
    return [e["text"] for e in reversed(entries)]


def verify(server, key):
    """Verifies the ledger, and waits for it."""
    assert server.post("/api/audit/verify", {}, bearer(key)).json()["verifying"]
    until(lambda: not server.get("/api/audit", bearer(key)).json()["verifying"])
    return server.get("/api/audit", bearer(key)).json()


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
        assert committed[0] == {"audit": "commit", "day": day, "hash": hashlib.sha256(secret).hexdigest(),
                                "share_ppm": 500000}
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
def what_a_crash_left_unanswered_is_answered_at_the_next_start():
    key, auditor = make_key(), make_key("auditor", "anna")
    receipts = bought_and_killed(key, 0, 1, 2)
    kept = waiting()
    assert sorted(kept) == receipts and rows() == {}
    sample = struct.pack("<784f", *(p / 255 for p in pixels(1)))
    assert all(len(data) == 36 + 16 + len(sample) for data in kept.values()), [len(d) for d in kept.values()]
    assert all(sample[at:at + 16] not in data for data in kept.values() for at in range(1600, 2400, 16)
               if any(sample[at:at + 16]))
    with shop("--audit-share", "0", run="run") as s:
        until(lambda: s.get("/api/audit", bearer(auditor)).json()["audited"] == len(receipts))
        assert s.metric("fds_audits_waiting", bearer(auditor)) == 0
        assert s.metric("fds_audits_missed_total", bearer(auditor)) == 0
    assert sorted(rows()) == receipts and waiting() == {}
    fds("ledger", "verify", "a.ledger", "-q")


@test
def inputs_wait_for_a_run_that_comes_back():
    key, auditor = make_key(), make_key("auditor", "anna")
    receipts = bought_and_killed(key, 0)
    with shop("--audit-share", "1", run=the_run()) as s:
        until(lambda: any("is not served any more" in line.get("error", "") for line in s.lines("audit")))
        assert s.metric("fds_audits_waiting", bearer(auditor)) == 1
    assert sorted(waiting()) == receipts
    with shop("--audit-share", "1", run="run") as s:
        until(lambda: s.get("/api/audit", bearer(auditor)).json()["audited"] == 1)
    assert sorted(rows()) == receipts


@test
def a_crash_does_not_make_the_audit_alarm():
    env = tomorrow()
    receipts = bought_and_killed(make_key(), 0, 1, 2)
    verdict, answer = audit_in(env)
    assert verdict == "ok" and sorted(rows()) == receipts, (verdict, answer)


@test
def an_operator_who_deletes_what_waits_makes_it_alarm():
    env = tomorrow()
    receipts = bought_and_killed(make_key(), 0, 1, 2)
    change("DELETE FROM waiting WHERE entry = ?", receipts[1])
    verdict, answer = audit_in(env)
    assert verdict == "alarm" and f"the secret selects entry {receipts[1]}, which has no row" in answer, answer


@test
def an_input_that_was_exchanged_is_not_answered():
    key, auditor = make_key(), make_key("auditor", "anna")
    receipts = bought_and_killed(key, 0, 1)
    kept = waiting()
    for one, other in (receipts, receipts[::-1]):
        change("UPDATE waiting SET data = ? WHERE entry = ?", kept[other], one)
    with shop("--audit-share", "1", run="run") as s:
        until(lambda: any("its input was changed" in line.get("error", "") for line in s.lines("audit")))
        assert s.metric("fds_audits_waiting", bearer(auditor)) == 2
    assert rows() == {}


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
        report = verify(s, auditor)
        assert report["checks"][0]["verdict"] == "ok" and report["verified_at"], report["checks"][0]
        buy(s, key, 3)
        assert s.get("/api/audit", bearer(auditor)).json()["predictions"] == 4


def is_verifying(server, key):
    return server.get("/api/audit", bearer(key)).json()["verifying"] is not None


def many(server, key):
    """Enough entries for a verification that one can see."""
    for _ in range(12):
        buy(server, key, *(n % 100 for n in range(256)))


@test
def predictions_are_answered_while_the_ledger_is_verified():
    key, auditor = make_key(), make_key("auditor", "anna")
    fds("ledger", "init", "a.ledger", "-q")
    fds("ledger", "topup", "a.ledger", "acme", "90.00", "--new", "-q")
    with shop("--audit-share", "0") as s:
        many(s, key)
        overtaken = 0
        for _ in range(50):
            assert s.post("/api/audit/verify", {}, bearer(auditor)).json()["verifying"]
            while is_verifying(s, auditor):
                buy(s, key, 0)
                overtaken += is_verifying(s, auditor)
            if overtaken:
                break
        assert overtaken
        until(lambda: not is_verifying(s, auditor))
        report = s.get("/api/audit", bearer(auditor)).json()
        assert report["checks"][0]["verdict"] == "ok" and report["verified_at"] and not report["verify_error"], report
    fds("ledger", "verify", "a.ledger", "-q")
    assert not os.path.exists("a.ledger.snapshot")


@test
def a_verification_can_be_cancelled():
    key, auditor = make_key(), make_key("auditor", "anna")
    fds("ledger", "init", "a.ledger", "-q")
    fds("ledger", "topup", "a.ledger", "acme", "90.00", "--new", "-q")
    with shop("--audit-share", "0") as s:
        many(s, key)
        for method, path in (("verify", key), ("cancel", key)):
            refused(s.post(f"/api/audit/{method}", {}, bearer(path)), 403, "")
        for _ in range(50):
            s.post("/api/audit/verify", {}, bearer(auditor))
            s.post("/api/audit/cancel", {}, bearer(auditor))
            until(lambda: not is_verifying(s, auditor))
            report = s.get("/api/audit", bearer(auditor)).json()
            if report["verify_error"]:
                break
        assert "cancelled" in report["verify_error"], report
        s.post("/api/audit/verify", {}, bearer(auditor))  # it ends with the server


@test
def an_edited_ledger_is_told_while_serving():
    key, auditor = make_key(), make_key("auditor", "anna")
    with shop("--audit-share", "0") as s:
        index, = buy(s, key, 0)["receipt"]
    with contextlib.closing(sqlite3.connect("a.ledger")) as db:
        guard, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'entry_update'").fetchone()
        db.execute("DROP TRIGGER entry_update")
        db.execute("UPDATE entry SET amount = amount + 1 WHERE idx = ?", (index,))
        db.execute(guard)
        db.commit()
    with shop("--audit-share", "0") as s:
        check = verify(s, auditor)["checks"][0]
        assert check["verdict"] == "alarm" and f"a.ledger: entry {index}" in check["answer"], check
        assert s.get("/api/audit", bearer(auditor)).json()["verdict"] == "alarm"
        buy(s, key, 1)


@test
def another_run_does_not_put_out_the_lights_of_the_one_before():
    key, auditor = make_key(), make_key("auditor", "anna")
    os.symlink(bank_run(), "now.run")
    with shop("--audit-share", "1", run="now.run") as s:
        def truth(count):
            buy(s, key, *range(10))
            until(lambda: s.get("/api/audit", bearer(auditor)).json()["audited"] == count)
            checks = s.get("/api/audit", bearer(auditor)).json()["checks"]
            return next(c["predictions"] for c in checks if c["check"] == "truth")
        assert truth(10) == 10
        os.remove("now.run")
        os.symlink(the_run("other", "--keep-models", "--seed", 1), "now.run")
        s.process.send_signal(signal.SIGHUP)
        until(lambda: s.lines("reload"))
        assert truth(20) == 20


@test
def groups_are_compared_by_a_file():
    auditor = make_key("auditor", "anna")
    pathlib.Path("g.csv").write_text("name,group\nnorth,a\n")
    with shop("--audit-groups", "g.csv") as s:
        groups = s.get("/api/audit", bearer(auditor)).json()["checks"][4]
        assert groups["check"] == "groups" and groups["evidence"][0]["name"] == "a", groups


sys.exit(main())
