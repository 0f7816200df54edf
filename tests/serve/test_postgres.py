# SPDX-License-Identifier: Apache-2.0
"""fds serve with a ledger in PostgreSQL: predictions are paid, also after the database was away for a while.

usage: test_postgres.py FDS
Prints TAP. Needs postgresql (scripts/deps postgres).
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "ledger"))
from postgres import Postgres, why_not  # noqa: E402
from server import Server, bearer, fds, fds_json, infer_json, main, make_key, test, the_run  # noqa: E402

server = None


def shop():
    """A new ledger with money of acme; its URI and a key of acme's."""
    schema = "shop_" + os.path.basename(os.getcwd())
    server.sql(f'CREATE SCHEMA "{schema}"')
    uri = server.uri(schema=f'"{schema}"')
    fds("ledger", "init", uri, "--signing-key", "shop.key", "-q")
    fds("ledger", "topup", uri, "acme", "1.00", "--new", "--signing-key", "shop.key", "-q")
    return uri, bearer(make_key())


def serve(uri):
    return Server("--keys", "keys.jsonl", "--ledger", uri, "--signing-key", "shop.key", "--price", "0.01", "--fee", "0.1")


def balance(uri):
    return fds_json("ledger", "balance", uri, "acme")["balances"][0]["units"]


@test
def predictions_are_paid():
    uri, key = shop()
    with serve(uri) as web:
        reply = web.infer(infer_json(0, 1), headers=[key])
        assert reply.status == 200, reply.body
        first, second = reply.outputs()["receipt"]
        assert second == first + 1
        # others read and verify while it serves
        assert balance(uri) == 980000
        fds("ledger", "verify", uri, "-q")
        once = [key, "Idempotency-Key: a"]
        answers = [web.infer(infer_json(3), headers=once) for _ in range(2)]
        assert answers[0].outputs() == answers[1].outputs()
        assert balance(uri) == 970000
        assert web.get("/log/checkpoint").status == 200
    assert fds("ledger", "verify", uri, "-q")[0].startswith("right: ")


@test
def a_database_that_is_away_delays_payments_and_loses_none():
    uri, key = shop()
    with serve(uri) as web:
        assert web.infer(infer_json(0), headers=[key]).status == 200
        server.kill()
        for _ in range(2):
            reply = web.infer(infer_json(1), headers=[key, "Idempotency-Key: b"])
            assert reply.status == 503 and reply.headers["retry-after"] == "1", reply.body
        server.start()
        assert web.infer(infer_json(1), headers=[key, "Idempotency-Key: b"]).status == 200
        assert web.infer(infer_json(2), headers=[key]).status == 200
        assert balance(uri) == 970000
    fds("ledger", "verify", uri, "-q")


if why_not():
    print(f"1..0 # SKIP {why_not()}")
    sys.exit(0)
the_run()
with Postgres() as server:
    code = main()
sys.exit(code)
