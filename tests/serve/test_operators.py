# SPDX-License-Identifier: Apache-2.0
"""What operators do through fds serve: top-ups, and payouts and corrections that need two of them.

usage: test_operators.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import json
import os
import pathlib
import sys
import threading
from urllib.parse import quote

from server import (Server, Visitor, balance, bearer, fds, fds_json, infer_json, main, make_key, make_login, refused,
                    test)

PRICE = 0.5


def ledger_server(*args):
    if not os.path.exists("a.ledger"):
        fds("ledger", "init", "a.ledger", "-q")
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", PRICE, "--fee", "0.1", *args)


def people():
    """Keys of two operators, an auditor and a customer."""
    return [make_key(role, name) for role, name in
            (("operator", "ann"), ("operator", "bob"), ("auditor", "eve"), ("customer", "acme"))]


def visitors(server, keys):
    return [Visitor(server, key=key) for key in keys]


def in_balance(staff):
    """What came in minus what was paid out is owed to somebody; returns the parts, in units."""
    money = {name: round(float(text) * 1e6) for name, text in staff.get("/api/overview").json()["money"].items()}
    assert money["difference"] == 0, money
    assert money["in"] - money["out"] == money["customers"] + money["providers"] + money["fees"], money
    accounts = staff.get("/api/accounts").json()["accounts"]
    assert sum(round(float(a["balance"]) * 1e6) for a in accounts) == 0, accounts
    return money


def predict(server, key, *numbers):
    reply = server.infer(infer_json(*numbers), headers=[bearer(key)])
    assert reply.status == 200, reply.body
    return reply.outputs()["receipt"]


@test
def a_topup_names_the_operator_and_happens_once():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, acme = visitors(s, keys)
        first = ann.post("/api/topup", {"account": "acme", "amount": "10.00", "ref": "invoice 7", "key": "i7"}).json()
        again = bob.post("/api/topup", {"account": "acme", "amount": "10.00", "ref": "invoice 7", "key": "i7"}).json()
        assert first == again
        entry = eve.get(f"/api/entry?index={first['index']}").json()
        assert entry["text"] == {"ref": "invoice 7", "operators": ["ann"]} and entry["kind"] == "topup"
        assert entry["customer"] == "acme" and entry["amount"] == 10000000
        refused(ann.post("/api/topup", {"account": "acme", "amount": "11.00", "key": "i7"}), 409, "another request")
        refused(ann.post("/api/topup", {"account": "bolt", "amount": "1.00"}), 404, "no account")
        assert ann.post("/api/topup", {"account": "bolt", "amount": "1.00", "new": True}).status == 200
        for body, phrase in (({}, "account"), ({"account": "acme"}, "amount"), ({"account": "acme", "amount": "x"}, "money"),
                             ({"account": "acme", "amount": "-1"}, "above 0"), ({"account": "acme", "amount": "0"}, "above 0"),
                             ({"account": "acme", "amount": 5}, "amount"), ({"account": "cash", "amount": "1"}, "customer"),
                             ({"account": "acme", "amount": "0.0000001"}, "decimals"),
                             ({"account": "acme", "amount": "1", "ref": "a\nb"}, "control")):
            refused(ann.post("/api/topup", body), 400, phrase)
        assert in_balance(eve)["in"] == 11000000
        assert acme.get("/api/account").json()["balance"] == "10.000000"
        own = acme.get(f"/api/entry?index={first['index']}").json()
        assert own["postings"][0]["units"] == 10000000 and own["text"] == {"ref": "invoice 7"}  # not who did it
    assert balance() == 10000000
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_proposal_under_a_key_is_one():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, acme = visitors(s, keys)
        topup = ann.post("/api/topup", {"account": "acme", "amount": "10.00"}).json()["index"]
        body = {"of": topup, "postings": [{"account": "acme", "amount": "-1.00"}, {"account": "fees", "amount": "1.00"}],
                "reason": "typo", "key": "c1"}
        first = ann.post("/api/correct", body).json()["proposal"]
        assert ann.post("/api/correct", body).json()["proposal"] == first
        refused(ann.post("/api/correct", {**body, "reason": "other"}), 409, "another proposal")
        assert len(eve.get("/api/proposals").json()["proposals"]) == 1
        predict(s, keys[3], 0, 1)
        payout = ann.post("/api/payout", {"key": "p1", "ref": "May"}).json()["proposal"]
        predict(s, keys[3], 2, 3)  # more is owed by now
        assert ann.post("/api/payout", {"key": "p1", "ref": "May"}).json()["proposal"] == payout
    with ledger_server() as s:  # also after a restart
        ann, bob, eve, acme = visitors(s, keys)
        assert ann.post("/api/correct", body).json()["proposal"] == first
        assert bob.post("/api/proposals/agree", {"id": first}).status == 200
        refused(ann.post("/api/correct", body), 409, "waits no longer")
        assert len(eve.get("/api/proposals").json()["proposals"]) == 1
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_payout_needs_two_operators_and_pays_what_was_proposed():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, acme = visitors(s, keys)
        refused(ann.post("/api/payout", {"ref": "none"}), 409, "nothing to pay")
        ann.post("/api/topup", {"account": "acme", "amount": "100.00"})
        predict(s, keys[3], *range(20))
        proposed = ann.post("/api/payout", {"minimum": "0.01", "ref": "May"}).json()
        number, payouts = proposed["proposal"], proposed["payouts"]
        assert payouts and all(p["amount"].endswith("0000") for p in payouts)  # whole cents
        waiting, = eve.get("/api/proposals").json()["proposals"]
        assert (waiting["id"], waiting["kind"], waiting["by"]) == (number, "payout", "ann")
        assert waiting["what"] == {"payouts": payouts, "minimum": "0.010000", "ref": "May"} and waiting["at"].endswith("Z")
        provider = payouts[0]["account"]
        assert eve.get(f"/api/account?name={quote(provider)}").json()["pending"] == payouts[0]["amount"]
        before = in_balance(eve)
        refused(ann.post("/api/proposals/agree", {"id": number}), 403, "another operator")
        refused(eve.post("/api/proposals/agree", {"id": number}), 403, "auditor")
        predict(s, keys[3], 1, 2, 3)  # more is owed meanwhile: what was proposed is paid
        done = bob.post("/api/proposals/agree", {"id": number}).json()["indexes"]
        assert len(done) == len(payouts)
        for index, payout in zip(done, payouts):
            entry = eve.get(f"/api/entry?index={index}").json()
            assert entry["text"] == {"ref": "May", "operators": ["ann", "bob"], "proposal": number}
            assert entry["account"] == payout["account"] and entry["amount"] == round(float(payout["amount"]) * 1e6)
        after = in_balance(eve)
        assert after["out"] - before["out"] == sum(round(float(p["amount"]) * 1e6) for p in payouts)
        assert eve.get("/api/proposals").json() == {"proposals": []}
        refused(bob.post("/api/proposals/agree", {"id": number}), 404, "no proposal")
        assert eve.get(f"/api/account?name={quote(provider)}").json()["pending"] == "0.000000"
        file = eve.get("/api/payouts?ref=May")
        assert file.headers["content-type"].startswith("text/csv") and "attachment" in file.headers["content-disposition"]
        lines = file.body.decode().splitlines()
        assert lines[0] == "date,account,amount,entry,ref" and len(lines) == 1 + len(payouts)
        assert {tuple(line.split(",")[1:]) for line in lines[1:]} == {
            (p["account"], p["amount"], str(i), "May") for p, i in zip(payouts, done)}
        assert eve.get("/api/payouts?ref=June").body.decode().splitlines() == lines[:1]
        refused(ann.post("/api/payout", {"minimum": "x"}), 400, "money")
    fds("ledger", "verify", "a.ledger", "-q")


@test
def proposals_outlive_a_restart_and_are_carried_out_once():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, _ = visitors(s, keys)
        ann.post("/api/topup", {"account": "acme", "amount": "100.00"})
        predict(s, keys[3], *range(10))
        pay = ann.post("/api/payout", {"ref": "May"}).json()["proposal"]
        gone = bob.post("/api/payout", {"ref": "gone"}).json()["proposal"]
        old = ann.post("/api/correct", {"of": 3, "reason": "r", "postings": [
            {"account": "acme", "amount": "-1.00"}, {"account": "fees", "amount": "1.00"}]}).json()["proposal"]
        assert bob.post("/api/proposals/refuse", {"id": gone}).json() == {"indexes": []}
        assert bob.post("/api/proposals/agree", {"id": old}).status == 200
        s.process.kill()
    with ledger_server() as s:
        ann, bob, eve, _ = visitors(s, keys)
        assert [p["id"] for p in eve.get("/api/proposals").json()["proposals"]] == [pay]
        refused(ann.post("/api/proposals/agree", {"id": pay}), 403, "another operator")
        refused(ann.post("/api/proposals/agree", {"id": gone}), 404, "no proposal")
        assert len(bob.post("/api/proposals/agree", {"id": pay}).json()["indexes"]) > 0
        refused(bob.post("/api/proposals/agree", {"id": pay}), 404, "no proposal")
        in_balance(eve)
        notes = [e["text"] for e in eve.get("/api/entries?kind=audit").json()["entries"]]
        assert {"refuse": gone, "by": "bob"} in notes and [n["propose"] for n in notes if "propose" in n] == [
            "correct", "payout", "payout"]
    with ledger_server() as s:
        assert Visitor(s, key=keys[2]).get("/api/proposals").json() == {"proposals": []}
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_payout_that_no_longer_fits_pays_nobody():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, _ = visitors(s, keys)
        ann.post("/api/topup", {"account": "acme", "amount": "100.00"})
        predict(s, keys[3], *range(10))
        one, two = (ann.post("/api/payout", {"ref": ref}).json() for ref in ("one", "two"))
        assert one["payouts"] == two["payouts"]
        assert bob.post("/api/proposals/agree", {"id": one["proposal"]}).status == 200
        before = in_balance(eve)
        refused(bob.post("/api/proposals/agree", {"id": two["proposal"]}), 409, "too low")
        assert in_balance(eve) == before
        assert ann.post("/api/proposals/refuse", {"id": two["proposal"]}).status == 200
        assert eve.get("/api/proposals").json() == {"proposals": []}
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_correction_needs_two_operators():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, acme = visitors(s, keys)
        ann.post("/api/topup", {"account": "acme", "amount": "5.00"})
        index, = predict(s, keys[3], 0)
        shares = {p["account"]: p["units"] for p in eve.get(f"/api/entry?index={index}").json()["postings"]}
        rich = max((name for name in shares if name not in ("acme", "fees")), key=shares.get)
        postings = [{"account": rich, "amount": "-0.000010"}, {"account": "acme", "amount": "0.000010"}]
        body = {"of": index, "postings": postings, "reason": "paid twice"}
        for change, phrase in (({"of": 10**6}, "number of an entry"), ({"reason": ""}, "reason"), ({"postings": postings[:1]}, "2 to"),
                               ({"postings": [postings[0], postings[0]]}, "twice"), ({"postings": "x"}, "2 to"),
                               ({"postings": [postings[0], {"account": "acme", "amount": "1"}]}, "sum to 0"),
                               ({"postings": [{}, {}]}, "posting must be")):
            refused(ann.post("/api/correct", {**body, **change}), 400, phrase)
        refused(ann.post("/api/correct", {**body, "postings": [postings[0], {"account": "x", "amount": "1"}]}), 404, "no account")
        number = ann.post("/api/correct", body).json()["proposal"]
        waiting, = eve.get("/api/proposals").json()["proposals"]
        assert waiting["kind"] == "correct" and waiting["what"] == body
        refused(ann.post("/api/proposals/agree", {"id": number}), 403, "another")
        done, = bob.post("/api/proposals/agree", {"id": number}).json()["indexes"]
        entry = eve.get(f"/api/entry?index={done}").json()
        assert entry["text"] == {"reason": "paid twice", "operators": ["ann", "bob"], "proposal": number}
        assert entry["ref"] == index and {p["account"]: p["units"] for p in entry["postings"]} == {rich: -10, "acme": 10}
        in_balance(eve)
        assert acme.get("/api/account").json()["balance"] == "4.500010"
        assert [e["index"] for e in eve.get("/api/entries?kind=correction").json()["entries"]] == [done]
    fds("ledger", "verify", "a.ledger", "-q")


@test
def one_person_with_two_logins_is_one_operator():
    key = make_key("operator", "ann")
    make_login("ann@home", "operator", "ann")
    make_login("bob", "operator")
    make_key()
    with ledger_server() as s:
        by_key, home, bob = Visitor(s, key=key), Visitor(s, "ann@home"), Visitor(s, "bob")
        by_key.post("/api/topup", {"account": "acme", "amount": "5.00"})
        number = home.post("/api/correct", {"of": 0, "reason": "r", "postings": [
            {"account": "acme", "amount": "-1"}, {"account": "fees", "amount": "1"}]}).json()["proposal"]
        refused(by_key.post("/api/proposals/agree", {"id": number}), 403, "another operator")
        refused(home.post("/api/proposals/agree", {"id": number}), 403, "another operator")
        assert bob.post("/api/proposals/agree", {"id": number}).status == 200


@test
def lists_and_statements_page_through_all_entries():
    keys = people()
    with ledger_server() as s:
        ann, bob, eve, acme = visitors(s, keys)
        ann.post("/api/topup", {"account": "acme", "amount": "100.00"})
        ann.post("/api/topup", {"account": "bolt", "amount": "1.00", "new": True})
        receipts = predict(s, keys[3], *range(30))
        found, before = [], ""
        while True:
            page = acme.get(f"/api/entries?limit=7{before}").json()
            assert len(page["entries"]) <= 7
            found += page["entries"]
            if not page["more"]:
                break
            before = f"&before={page['before']}"
        assert [e["index"] for e in found if e["kind"] == "prediction"] == sorted(receipts, reverse=True)
        assert [e["kind"] for e in found] == ["prediction"] * 30 + ["topup"]
        for e in found:
            assert all(p["account"] == "acme" for p in e["postings"]), e
        assert [e["index"] for e in eve.get("/api/entries?kind=topup&account=bolt").json()["entries"]] == [
            e["index"] for e in eve.get("/api/entries?kind=topup").json()["entries"]][:1]
        assert [e["index"] for e in eve.get("/api/entries?limit=3").json()["entries"]] == receipts[:-4:-1]
        refused(eve.get("/api/entries?kind=x"), 400, "kind")
        refused(eve.get("/api/entries?before=x"), 400, "number")
        statement = acme.get("/api/statement").body.decode().splitlines()
        assert statement[0].startswith("date,entry,kind") and len(statement) == 32
        assert statement[-1].endswith(f",{100 - 30 * PRICE:.6f}")
        assert len(acme.get("/api/statement?to=2020-01-01").body.decode().splitlines()) == 1
        refused(acme.get("/api/statement?from=May"), 400, "day")
        entry = eve.get(f"/api/entry?index={receipts[0]}").json()
        payee = entry["postings"][1]
        assert {"account", "units", "value", "error", "unit_error"} == set(payee)
        proof = eve.get(f"/api/receipt?index={receipts[0]}&account={quote(payee['account'])}").body.decode()
        assert proof.startswith("c2sp.org/tlog-proof@v1")
        pathlib.Path("proof.txt").write_text(proof)
        vkey = eve.get("/api/overview").json()["vkey"]
        assert fds_json("ledger", "verify-receipt", "proof.txt", "--vkey", vkey)["units"] == payee["units"]
        account = eve.get(f"/api/account?name={quote(payee['account'])}").json()
        earnings = account["earnings"]
        assert account["kind"] == "provider" and sum(e["count"] for e in earnings) == account["total"]["count"]
        assert abs(sum(float(e["amount"]) for e in earnings) - float(account["total"]["amount"])) < 1e-9
        errors = {}
        for index in receipts:
            e = eve.get(f"/api/entry?index={index}").json()
            p = next(p for p in e["postings"] if p["account"] == payee["account"])
            if p["units"]:
                errors[e["label"]] = errors.get(e["label"], 0) + p["unit_error"]
        for e in earnings:
            assert abs(float(e["error"]) - errors[e["label"]] / 1e6) < 2e-6, (e, errors)
        row = next(a for a in eve.get("/api/accounts?kind=provider").json()["accounts"] if a["name"] == payee["account"])
        assert row["earned"] == account["total"]["amount"] and row["predictions"] == account["total"]["count"]
        refused(eve.get("/api/accounts?kind=king"), 400, "kind")
        samples = eve.get(f"/api/samples?account={quote(payee['account'])}").json()["samples"]
        assert samples and samples[0]["picture"].startswith("data:image/png;base64,") and samples[0]["count"] == 30
        everybody = [p["value"] for p in eve.get("/api/samples").json()["samples"]]
        assert everybody == sorted(everybody, reverse=True) and len(everybody) == 12
        about = eve.get("/api/overview").json()
        assert about["paid"] == 30 and about["failures"] == 0 and about["checkpoint"].startswith("fds.local/ledger\n")
        assert about["p99_ms"] >= about["p50_ms"] > 0 and about["uptime_s"] > 0 and about["models"][0]["name"] == "mnist"
        refused(eve.get("/api/account"), 400, "whose account")
        refused(eve.get("/api/account?name=nobody"), 404, "no account")
        refused(eve.get("/api/entry"), 400, "index")
        refused(eve.get("/api/entry?index=999999"), 404, "no entry")


@test
def slow_questions_do_not_hold_up_payments():
    """Predictions are answered while others ask for all they can."""
    keys = people()
    with ledger_server() as s:
        ann, _, eve, _ = visitors(s, keys)
        ann.post("/api/topup", {"account": "acme", "amount": "1000.00"})
        is_over, wrong = threading.Event(), []

        def ask(path):
            while not is_over.is_set():
                if eve.get(path).status != 200:
                    wrong.append(path)
        paths = ["/api/statement?account=acme", "/api/accounts", "/api/payouts", "/api/entries?limit=200", "/log/checkpoint"]
        threads = [threading.Thread(target=ask, args=(path,)) for path in paths * 2]
        for thread in threads:
            thread.start()
        for n in range(60):
            predict(s, keys[3], n % 10)
        is_over.set()
        for thread in threads:
            thread.join()
        assert not wrong, wrong
        assert in_balance(eve)["in"] == 1000000000
    assert balance() == 1000000000 - 60 * 500000
    fds("ledger", "verify", "a.ledger", "-q")

sys.exit(main())
