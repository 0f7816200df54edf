# SPDX-License-Identifier: Apache-2.0
"""fds serve with a ledger: money, keys of idempotency, the log, crashes.

usage: test_paid.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import threading

from server import (PATIENCE, Server, balance, bearer, fds, infer_json, main, make_key, refused, test,
                    the_run, until)

PRICE = 10000  # units of 0.01 where there are 6 decimals


def paid_server(*args, **options):
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", "--fee", "0.1", *args, **options)


def open_account(units, account="acme"):
    if not os.path.exists("a.ledger"):
        fds("ledger", "init", "a.ledger", "-q")
    if units:
        fds("ledger", "topup", "a.ledger", account, f"{units / 1e6:.6f}", "--new", "-q")
    return make_key(account=account)


@test
def predictions_cost_the_price_and_are_on_the_ledger():
    key = open_account(100 * PRICE)
    with paid_server() as s:
        auth = [bearer(key)]
        assert [o["name"] for o in s.get("/v2/models/mnist").json()["outputs"]] == ["label", "probabilities", "receipt"]
        first = s.infer(infer_json(0), headers=auth).outputs()
        batch = s.infer(infer_json(1, 2, 3), "mnist.explain", auth).outputs()
        more = s.infer(infer_json(4, parameters={"fds_amount": 5 * PRICE}), headers=auth).outputs()
        receipts = first["receipt"] + batch["receipt"] + more["receipt"]
        assert receipts == list(range(receipts[0], receipts[0] + 5)), receipts
        refused(s.infer(infer_json(4, parameters={"fds_amount": 5}), headers=auth), 400, "at least the price")
        raw = s.infer(infer_json(0, parameters={"binary_data_output": True}), headers=auth).outputs()
        assert raw["receipt"] == [receipts[-1] + 1]
        body = json.dumps({"instances": [[0] * 784]}).encode()
        assert s.ask("POST", "/v1/models/mnist:predict", body, auth).json()["predictions"][0]["receipt"] == receipts[-1] + 2
    assert balance() == (100 - 11) * PRICE
    assert balance("fees") == 11 * PRICE // 10
    fds("ledger", "verify", "a.ledger", "-q")


@test
def who_cannot_pay_gets_402_and_pays_nothing():
    key, other = open_account(3 * PRICE), open_account(0, "broke")
    with paid_server() as s:
        refused(s.infer(infer_json(0, 1, 2, 3), headers=[bearer(key)]), 402, "too low")
        assert s.infer(infer_json(0, 1), headers=[bearer(key)]).status == 200
        refused(s.infer(infer_json(0, 1), headers=[bearer(key)]), 402, "too low")
        assert s.infer(infer_json(0), headers=[bearer(key)]).status == 200
        refused(s.infer(infer_json(0), headers=[bearer(key)]), 402, "too low")
        refused(s.infer(infer_json(0), headers=[bearer(other), "Idempotency-Key: a"]), 402, "")
        refused(s.infer(infer_json(0)), 401, "a key is needed")
    assert balance() == 0 and balance("broke") == 0
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_key_is_paid_once_and_its_answer_repeated():
    key, other = open_account(100 * PRICE), open_account(100 * PRICE, "other")
    auth = [bearer(key), "Idempotency-Key: order-1"]
    with paid_server() as s:
        first = s.infer(infer_json(0, 1), "mnist.explain", auth)
        assert first.status == 200 and "idempotent-replayed" not in first.headers
        for _ in range(3):
            again = s.infer(infer_json(0, 1), "mnist.explain", auth)
            assert again.body == first.body and again.headers["idempotent-replayed"] == "true"
        refused(s.infer(infer_json(2, 1), "mnist.explain", auth), 422, "another request")
        refused(s.infer(infer_json(0), "mnist.explain", auth), 422, "another request")
        refused(s.infer(infer_json(0, 1), "mnist", auth), 422, "another request")
        same = s.infer(infer_json(0, 1), "mnist.explain", [bearer(other), auth[1]])
        assert same.status == 200 and same.outputs()["receipt"] != first.outputs()["receipt"]
        raw = infer_json(5, parameters={"binary_data_output": True})
        one = s.infer(raw, headers=[bearer(key), "Idempotency-Key: raw"])
        two = s.infer(raw, headers=[bearer(key), "Idempotency-Key: raw"])
        assert one.body == two.body and one.outputs()["receipt"] == two.outputs()["receipt"]
    with paid_server() as s:  # also after a restart
        again = s.infer(infer_json(0, 1), "mnist.explain", auth)
        assert again.body == first.body
    assert balance() == 97 * PRICE and balance("other") == 98 * PRICE


@test
def a_batch_that_a_low_balance_cut_short_goes_on_under_its_key():
    key = open_account(2 * PRICE)
    auth = [bearer(key), "Idempotency-Key: batch"]
    with paid_server() as s:
        refused(s.infer(infer_json(0, 1, 2), headers=auth), 402, "2 of 3 samples are paid")
    fds("ledger", "topup", "a.ledger", "acme", "0.05", "-q")
    with paid_server() as s:
        assert len(s.infer(infer_json(0, 1, 2), headers=auth).outputs()["receipt"]) == 3
    assert balance() == 4 * PRICE
    fds("ledger", "verify", "a.ledger", "-q")


@test
def the_same_key_at_once_is_one_payment():
    key = open_account(1000 * PRICE)
    with paid_server() as s:
        def ask(number):
            return s.infer(infer_json(7), headers=[bearer(key), f"Idempotency-Key: k{number % 5}"])
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            replies = list(pool.map(ask, range(100)))
        codes = {reply.status for reply in replies}
        assert codes <= {200, 409}, codes
        for reply in replies:
            if reply.status == 409:
                refused(reply, 409, "in flight")
        receipts = {tuple(r.outputs()["receipt"]) for r in replies if r.status == 200}
        assert len(receipts) == 5, receipts
    assert balance() == 995 * PRICE


@test
def a_key_in_flight_is_409():
    key = open_account(100000 * PRICE)
    with paid_server() as s:
        body, found = infer_json(*[n % 100 for n in range(256)]), []

        def ask(_):
            return s.infer(body, "mnist.explain", [bearer(key), "Idempotency-Key: long"]).status
        for _ in range(20):  # a batch takes a while: one of two is refused
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                found += pool.map(ask, range(8))
            if 409 in found:
                return
        raise AssertionError(f"never 409: {set(found)}")


@test
def answers_too_long_to_be_kept_are_refused_before_they_are_paid():
    key = open_account(10000 * PRICE)
    with paid_server() as s:
        body = infer_json(*range(100), *range(100))
        refused(s.infer(body, "mnist.explain", [bearer(key), "Idempotency-Key: a"]), 400, "cannot be kept")
        assert s.infer(body, "mnist.explain", [bearer(key)]).status == 200
    assert balance() == 9800 * PRICE


@test
def the_log_is_public_and_grows():
    key = open_account(100 * PRICE)
    with paid_server() as s:
        first = s.get("/log/checkpoint")
        assert first.status == 200 and first.headers["content-type"].startswith("text/plain")
        size = int(first.body.decode().split("\n")[1])
        assert s.infer(infer_json(0), headers=[bearer(key)]).status == 200
        note = s.get("/log/checkpoint").body.decode()
        assert int(note.split("\n")[1]) == size + 1
        tile = s.get(f"/log/tile/0/000.p/{size + 1}")
        assert tile.status == 200 and len(tile.body) == 32 * (size + 1)
        entries = s.get(f"/log/tile/entries/000.p/{size + 1}")
        assert entries.status == 200 and b"kind prediction" in entries.body and b"acme" not in entries.body
        for path in ("", "x", "tile/0/999", "tile/../a.ledger", "../a.ledger", "tile/0/000.p/9999", "a" * 250):
            assert s.get(f"/log/{path}").status == 404, path


@test
def kill_and_restart_keep_every_acknowledged_payment():
    key, acknowledged = open_account(1000000 * PRICE), {}
    for turn in range(3):
        with paid_server() as s:
            stop = threading.Event()

            def load(worker):
                number = 0
                while not stop.is_set():
                    name = f"t{turn}w{worker}n{number}"
                    try:
                        reply = s.infer(infer_json(number % 10), headers=[bearer(key), f"Idempotency-Key: {name}"])
                    except (OSError, EOFError):
                        return
                    assert reply.status == 200, reply.body
                    acknowledged[name] = (number % 10, reply.body)
                    number += 1
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                jobs = [pool.submit(load, worker) for worker in range(6)]
                before = len(acknowledged)
                until(lambda: len(acknowledged) > before + 40)
                s.process.kill()
                stop.set()
                for job in jobs:
                    job.result(PATIENCE)
            s.process.wait(PATIENCE)
    fds("ledger", "verify", "a.ledger", "-q")
    paid = 1000000 - balance() // PRICE
    assert len(acknowledged) <= paid <= len(acknowledged) + 3 * 6, (len(acknowledged), paid)
    with paid_server() as s, s.connect() as c:
        for name, (number, body) in list(acknowledged.items()):
            reply = c.ask("POST", "/v2/models/mnist/infer", infer_json(number), [bearer(key), f"Idempotency-Key: {name}"])
            assert reply.body == body and reply.headers["idempotent-replayed"] == "true"
    assert 1000000 - balance() // PRICE == paid


@test
def a_ledger_that_cannot_be_written_is_503_and_the_server_recovers():
    key = open_account(1000 * PRICE)
    size = sum(f.stat().st_size for f in pathlib.Path(".").glob("a.ledger*"))

    def shrink():  # writes beyond it fail; SIGXFSZ would end the process
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 65536, resource.RLIM_INFINITY))
    with paid_server("-q", preexec_fn=shrink) as s, s.connect() as c:
        codes = []
        for n in range(400):
            reply = c.ask("POST", "/v2/models/mnist/infer", infer_json(n % 10), [bearer(key)])
            codes.append(reply.status)
            if reply.status != 200:
                break
        refused(reply, 503, "the ledger cannot be written")
        assert reply.headers["retry-after"] == "1"
        assert c.ask("GET", "/v2/health/live").status == 200
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: c.ask("POST", "/v2/models/mnist/infer", infer_json(0), [bearer(key)]).status == 200)
    fds("ledger", "verify", "a.ledger", "-q")
    assert balance() == (1000 - codes.count(200) - 1) * PRICE


@test
def another_fee_or_a_second_server_is_refused():
    key = open_account(100 * PRICE)
    with paid_server() as s:
        assert s.infer(infer_json(0), headers=[bearer(key)]).status == 200
        try:
            paid_server().__exit__(None)
            raise RuntimeError("two servers write one ledger")
        except AssertionError:
            pass
    try:
        paid_server("--policy", "signed").__exit__(None)
        raise RuntimeError("the policy of a run changed")
    except AssertionError:
        pass


@test
def sighup_keeps_paying():
    key = open_account(10000 * PRICE)
    with paid_server() as s, s.connect() as c:
        for n in range(30):
            if n % 10 == 5:
                s.process.send_signal(signal.SIGHUP)
            assert c.ask("POST", "/v2/models/mnist/infer", infer_json(n), [bearer(key)]).status == 200
        fresh = make_key(account="fresh")
        s.process.send_signal(signal.SIGHUP)
        until(lambda: s.infer(infer_json(0), headers=[bearer(fresh)]).status == 402)
    assert balance() == (10000 - 30) * PRICE


@test
def a_batch_without_a_key_pays_all_or_nothing_beside_others():
    """While the worker is busy, one request with a key and one without wait; the balance is enough for either."""
    busy = open_account(100000 * PRICE, "busy")
    keys = [open_account(10 * PRICE, f"acme{n}") for n in range(20)]
    is_over = threading.Event()
    outcomes = []

    def post(number, *headers):
        body = infer_json(*range(number))
        head = ["POST /v2/models/mnist/infer HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {len(body)}"]
        return "\r\n".join(head + ["", ""]).encode() + body

    def keep_busy(s):
        body = infer_json(*[n % 10 for n in range(250)])
        with s.connect() as c:
            while not is_over.is_set():
                assert c.ask("POST", "/v2/models/mnist.explain/infer", body, [bearer(busy)]).status == 200
    with paid_server() as s, concurrent.futures.ThreadPoolExecutor(2) as pool:
        others = [pool.submit(keep_busy, s) for _ in range(2)]
        with s.connect() as one, s.connect() as two:
            for key in keys:
                one.send(post(5, bearer(key), "Idempotency-Key: k"))
                two.send(post(8, bearer(key)))
                outcomes.append((one.receive().status, two.receive().status))
        is_over.set()
        for other in others:
            other.result()
    for n, (keyed, plain) in enumerate(outcomes):
        paid = 10 - balance(f"acme{n}") // PRICE
        assert (keyed, plain, paid) in ((200, 402, 5), (402, 200, 10)), (keyed, plain, paid)


@test
def a_key_can_be_withdrawn_while_a_run_is_broken():
    key, other = open_account(100 * PRICE), open_account(100 * PRICE, "other")
    shutil.copytree(the_run(), "copy")
    with paid_server(models={"mnist": "copy"}) as s:
        assert s.infer(infer_json(0), headers=[bearer(key)]).status == 200
        pathlib.Path("copy/run.json").write_text("{")
        lines = pathlib.Path("keys.jsonl").read_text().splitlines(keepends=True)
        pathlib.Path("keys.jsonl").write_text(lines[1])
        s.process.send_signal(signal.SIGHUP)
        until(lambda: s.infer(infer_json(0), headers=[bearer(key)]).status == 401)
        assert s.infer(infer_json(0), headers=[bearer(other)]).status == 200
        until(lambda: any("run.json" in line.get("error", "") for line in s.lines("reload")))


@test
def a_paid_key_is_repeated_whatever_the_price_and_the_run_are_now():
    key = open_account(5 * PRICE)
    one, cut = [bearer(key), "Idempotency-Key: one"], [bearer(key), "Idempotency-Key: cut"]
    body = infer_json(0, 1, parameters={"fds_amount": PRICE})
    with paid_server() as s:
        first = s.infer(body, headers=one)
        assert first.status == 200
        refused(s.infer(infer_json(0, 1, 2, 3), headers=cut), 402, "3 of 4 samples are paid")
    fds("ledger", "topup", "a.ledger", "acme", "1.00", "-q")
    before = balance()
    with Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.02", "--fee", "0.1",
                models={"mnist": the_run("other", "--seed", 1)}) as s:
        again = s.infer(body, headers=one)
        assert again.body == first.body and again.headers["idempotent-replayed"] == "true"
        refused(s.infer(infer_json(1, 0, parameters={"fds_amount": PRICE}), headers=one), 422, "another request")
        refused(s.infer(infer_json(0, 1, 2, 3), headers=cut), 409, "3 of 4 samples are paid, by another version")
        refused(s.infer(body, headers=[bearer(key), "Idempotency-Key: new"]), 400, "at least the price")
    assert balance() == before
    with paid_server() as s:  # the first run again: the rest is paid
        assert s.infer(infer_json(0, 1, 2, 3), headers=cut).status == 200
    assert balance() == before - PRICE


@test
def samples_that_a_model_cannot_answer_spoil_no_others():
    key = open_account(100000 * PRICE)
    huge = json.dumps({"inputs": [{"name": "input", "shape": [1, 784], "datatype": "FP32",
                                   "data": [(-1) ** n * 3e38 for n in range(784)]}]}).encode()
    with paid_server() as s:
        def ask(number):
            return s.infer(huge if number % 5 == 0 else infer_json(number % 10),
                           "mnist.explain" if number % 2 else "mnist", [bearer(key)])
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            replies = list(pool.map(ask, range(200)))
    for number, reply in enumerate(replies):
        if number % 5 == 0:
            refused(reply, 400, "no answer for these samples")
        else:
            assert reply.status == 200, reply.body
    assert balance() == (100000 - 160) * PRICE
    with Server() as s:  # nor when nobody pays
        refused(s.infer(huge), 400, "no answer for these samples")


@test
def a_class_name_that_the_ledger_cannot_take_is_refused_at_the_start():
    rows = [f"{n % 7},{n % 3},{'long' * 60 if n % 2 else 'short'}" for n in range(60)]
    pathlib.Path("t.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    fds("fit", "t.csv", "--players", 6, "--coalitions", 20, "--model", "logistic", "--explainer", "bank", "-o", "t.run", "-q")
    open_account(PRICE)
    try:
        paid_server(models={"t": "t.run"}).__exit__(None)
        raise RuntimeError("such a class is served")
    except AssertionError as error:
        assert "the name of class" in str(error) and "1 to 200 bytes" in str(error), error

sys.exit(main())
