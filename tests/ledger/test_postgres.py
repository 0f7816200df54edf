# SPDX-License-Identifier: Apache-2.0
"""A ledger in PostgreSQL: connections that are lost, servers that die, other writers, and what only the database could do.

usage: test_postgres.py DRIVER
Prints TAP. Needs postgresql (scripts/deps postgres).
"""
import os
import random
import sys
import time

from drive import DRIVER, SHA, Driver, Refused, Skip, main, schema_of, test
from postgres import Postgres, why_not
from proxy import Proxy

PATIENCE = 60
server = None


def schema():
    """That of the ledger l.db in this folder; drive.py makes it."""
    return schema_of("l.db")


def sql(text):
    return server.sql(text, schema())


def make(charges=0, keep=False):
    driver = Driver()
    driver.ask("create l.db")
    driver.ask("open l.db write")
    driver.ask("account customer acme")
    driver.ask("topup acme 1000000000 t")
    driver.ask(f"run m {SHA} clip 1000 north south west")
    for i in range(charges):
        driver.charge([order(f"k{i}", 100000 + i)])
    return driver if keep else done(driver)


def done(driver):
    driver.ask("close")
    driver.end()


def order(key, amount=100):
    return (0, "acme", amount, key, 0, "six", f"answer-{key}", [0.5, 0.25, 0.125])


def refused(call, status, *parts):
    try:
        call()
    except Refused as refusal:
        assert refusal.status == status, refusal
        for part in parts:
            assert part in str(refusal), refusal
        return str(refusal)
    raise AssertionError("it was not refused")


class Through:
    """A driver whose connections go through a proxy, until the end of a with block."""

    def __enter__(self):
        self.proxy = Proxy(server.folder)
        base = os.environ["FDS_TEST_POSTGRES"]
        self.driver = Driver()
        os.environ["FDS_TEST_POSTGRES"] = server.uri(host=self.proxy.folder)
        self.driver.ask("open l.db write")
        os.environ["FDS_TEST_POSTGRES"] = base
        return self.driver, self.proxy

    def __exit__(self, *_):
        self.driver.end()
        self.proxy.close()


# ---- lost connections ----


@test
def a_commit_whose_answer_is_lost_has_happened_once():
    make()
    with Through() as (driver, proxy):
        size = int(driver.ask("size"))
        for i in range(3):
            proxy.plan("after")
            assert driver.charge([order(f"k{i}")]) == [("OK", size + i, False, "")]
            assert proxy.has_cut.wait(PATIENCE)
        assert driver.charge([order("k1")]) == [("OK", size + 1, True, "answer-k1")]
        assert driver.balances()["acme"] == 1000000000 - 300
        driver.ask("verify")


@test
def a_commit_that_does_not_arrive_changes_nothing():
    make()
    with Through() as (driver, proxy):
        size = int(driver.ask("size"))
        proxy.plan("before")
        refused(lambda: driver.charge([order("k")]), "ERR_IO", "the connection was lost")
        assert int(driver.ask("size")) == size and driver.balances()["acme"] == 1000000000
        assert driver.charge([order("k")]) == [("OK", size, False, "")]
        driver.ask("verify")


@test
def an_outcome_that_is_unknown_is_found_out_by_the_next_call():
    """The server cannot be reached after the commit: the call fails, although the entries are there."""
    for has_happened in (True, False):
        os.mkdir(str(has_happened))
        os.chdir(str(has_happened))
        make(charges=3)
        with Through() as (driver, proxy):
            size = int(driver.ask("size"))
            proxy.plan("after" if has_happened else "before", close_then=True)
            refused(lambda: driver.charge([order("k", 12345678)]), "ERR_IO")
            refused(lambda: driver.ask("payout north 0 p"), "ERR_IO", "cannot connect")
            proxy.is_closed = False
            # a payout depends on the balance, which memory does not have yet
            units, index = map(int, driver.ask("payout north 0 p").split())
            assert index == size + has_happened and (units > 7000000) == has_happened, (units, index)
            assert driver.charge([order("k", 12345678)])[0][:3] == ("OK", size + 1 - has_happened, has_happened)
            assert int(driver.ask("size")) == size + 2
            driver.ask("verify")
        os.chdir("..")


@test
def a_new_account_of_unknown_outcome_is_found():
    make()
    with Through() as (driver, proxy):
        proxy.plan("after", close_then=True)
        refused(lambda: driver.ask("account customer bolt"), "ERR_IO")
        proxy.is_closed = False
        assert driver.ask("account customer bolt") == "6"
        driver.ask("topup bolt 5 -")
        driver.ask("verify")


@test
def a_connection_that_is_cut_anywhere_loses_and_doubles_nothing():
    make()
    with Through() as (driver, proxy):
        failures = 0
        for cut in ("before", "after"):
            for skip in range(8):
                keys = [f"{cut}{skip}-{i}" for i in range(3)]
                orders = [order(key) for key in keys]
                proxy.plan(cut, at=b"BEGIN", skip=skip)
                try:
                    driver.charge(orders)
                except Refused as refusal:
                    assert refusal.status == "ERR_IO", refusal
                    failures += 1
                proxy.plan(None)
                before = int(driver.ask("size"))
                for status, index, is_repeated, _ in driver.charge(orders):
                    assert status == "OK" and is_repeated == (index < before)
        assert 4 <= failures < 16, failures
        assert driver.balances()["acme"] == 1000000000 - 16 * 300
        driver.ask("verify")


@test
def an_idle_connection_that_ends_is_made_again():
    driver = make(keep=True)
    for call in (lambda: driver.charge([order("a")]), lambda: driver.ask("topup acme 1 u"), lambda: driver.ask("verify"),
                 lambda: driver.ask("payout north 0 p"), lambda: driver.ask("dump")):
        assert sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'") == ["t"]
        call()
    driver.ask("verify")
    done(driver)


@test
def another_writer_meanwhile_ends_this_one_for_good():
    make()
    with Through() as (driver, proxy):
        proxy.is_closed = True
        proxy.drop()
        other = Driver()
        other.ask("open l.db write")
        other.ask("topup acme 1 -")
        done(other)
        proxy.is_closed = False
        for _ in range(2):
            refused(lambda: driver.charge([order("k")]), "ERR_CONFLICT", "changed by another process")
            refused(lambda: driver.ask("topup acme 1 -"), "ERR_CONFLICT", "Open it again")
        driver.ask("close")
    driver = Driver()
    driver.ask("open l.db write")
    assert driver.balances()["acme"] == 1000000001
    driver.ask("verify")
    done(driver)


@test
def a_writer_that_holds_the_lock_meanwhile_but_writes_nothing_does_no_harm():
    make()
    with Through() as (driver, proxy):
        proxy.drop()
        other = Driver()
        other.ask("open l.db write")
        refused(lambda: driver.charge([order("k")]), "ERR_CONFLICT", "server process")
        done(other)
        driver.charge([order("k")])
        driver.ask("verify")


# ---- servers that die ----


@test
def what_was_acknowledged_survives_the_death_of_the_server():
    driver, chance = make(keep=True), random.Random(7)
    acknowledged, sent, failures = {}, 0, 0
    for _ in range(6):
        waiting, end = [], time.monotonic() + chance.uniform(0.02, 0.2)
        while time.monotonic() < end or not waiting:
            keys = [f"k{sent + i}" for i in range(chance.randint(1, 5))]
            sent += len(keys)
            driver.tell(f"charge {len(keys)}", *(" ".join(map(str, [*order(key)[:7], 0.5, 0.25, 0.125])) for key in keys))
            waiting.append(keys)
            if len(waiting) > 3:
                failures += note(driver, waiting.pop(0), acknowledged)
        server.kill()
        while waiting:
            failures += note(driver, waiting.pop(0), acknowledged)
        server.start()
    size, paid = int(driver.ask("size")), 0
    for i in range(sent):
        status, index, is_repeated, answer = driver.charge([order(f"k{i}")])[0]
        assert status == "OK"
        paid += 1
        if f"k{i}" in acknowledged:
            assert is_repeated and index == acknowledged[f"k{i}"] and answer == f"answer-k{i}"
    assert len(set(acknowledged.values())) == len(acknowledged) > 20
    assert driver.balances()["acme"] == 1000000000 - 100 * paid
    driver.ask("verify")
    done(driver)
    print(f"# {len(acknowledged)} of {sent} charges were acknowledged, {failures} batches failed; {size} entries")


def note(driver, keys, acknowledged):
    """Whether the batch failed."""
    try:
        line = driver.hear()
    except Refused as refusal:
        assert refusal.status == "ERR_IO", refusal
        return True
    for key, word in zip(keys, line.split()):
        status, index, *_ = word.split(":")
        assert status == "OK", word
        acknowledged[key] = int(index)
    return False


# ---- several processes ----


@test
def one_writes_while_others_read_one_moment():
    writer, second, reader = make(keep=True), Driver(), Driver()
    holder = sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")[0]
    refused(lambda: second.ask("open l.db write"), "ERR_CONFLICT", "is open for writing in another process", holder)
    reader.ask("open l.db read")
    size = int(reader.ask("size"))
    writer.charge([order("a"), order("b")])
    assert int(reader.ask("size")) == size
    reader.ask("verify")
    dumped = reader.ask("dump")
    second.ask("open l.db read")
    assert int(second.ask("size")) == size + 2
    second.ask("verify")
    assert reader.ask("dump") == dumped
    refused(lambda: reader.ask("topup acme 1 -"), "ERR_USAGE", "reading only")
    for driver in (reader, second, writer):
        done(driver)


@test
def ledgers_of_several_schemas_are_written_at_once():
    first = make(keep=True)
    os.mkdir("other")
    os.chdir("other")
    second = make(keep=True)
    for driver in (first, second):
        driver.charge([order("a")])
        driver.ask("verify")
        done(driver)


# ---- making and opening ----


@test
def a_ledger_is_made_once_and_needs_a_key_of_its_own():
    make()
    with open("l.db.key") as file:
        key = file.read()
    driver = Driver()
    uri = server.uri(schema=schema())
    refused(lambda: driver.ask(f"create {uri} signing_key=new.key"), "ERR_CONFLICT", "has a ledger already")
    assert os.listdir(".") == ["l.db.key"]
    driver.ask("open l.db read")
    driver.ask("close")
    for line in (f"create {uri}", f"open {uri} write"):
        refused(lambda: driver.ask(line), "ERR_USAGE", "`signing_key`")
    server.sql("CREATE SCHEMA fresh")
    # somebody's key; nothing is left of the ledger
    refused(lambda: driver.ask(f"create {server.uri(schema='fresh')} signing_key=l.db.key"), "ERR_CONFLICT")
    assert server.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'fresh'::regnamespace") == ["0"]
    driver.end()
    with open("l.db.key") as file:
        assert file.read() == key


def open_raw(uri, access="read"):
    driver = Driver()
    try:
        return driver.ask(f"open {uri} {access} l.db.key")
    finally:
        driver.end()


@test
def databases_that_cannot_keep_a_ledger_are_refused():
    make()
    read_only = server.uri(options=f"-csearch_path={schema()} -cdefault_transaction_read_only=on")
    refused(lambda: open_raw(read_only, "write"), "ERR_CONFLICT", "can only be read")
    open_raw(read_only)
    refused(lambda: open_raw(server.uri(schema="absent")), "ERR_NOT_FOUND", "search_path")
    refused(lambda: open_raw(server.uri()), "ERR_NOT_FOUND", "has no ledger")
    server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    refused(lambda: open_raw(server.uri().replace("/postgres?", "/latin?")), "ERR_UNSUPPORTED", "UTF8")
    refused(lambda: open_raw(server.uri(user="nobody-there")), "ERR_IO", "nobody-there")
    for word in ("postgresql:nonsense", "postgres://host:port/x", "postgresql://u:p/ss@h/db"):
        refused(lambda: open_raw(word), "ERR_USAGE", "percent-encoded")


@test
def a_password_is_never_told():
    for status, uri in (
            ("ERR_IO", "postgresql://acme:sesame@127.0.0.1:1/x"),
            ("ERR_IO", "postgresql://acme:ses%61me@127.0.0.1:1/x"),
            ("ERR_IO", "postgresql://127.0.0.1:1/x?user=a&password=sesame"),
            ("ERR_IO", "postgresql://127.0.0.1:1/x?p%61ssword=sesame"),
            ("ERR_USAGE", "postgresql://acme:se/same@127.0.0.1/x"),
            ("ERR_USAGE", "postgresql://127.0.0.1:1/x?password=sesame&nonsense=1"),
            ("ERR_USAGE", "postgresql:password=sesame")):
        said = refused(lambda: open_raw(uri), status)
        assert "same" not in said and "61me" not in said, said


# ---- what the owner of the database could do ----

UNPROTECTED = "ALTER TABLE entry DISABLE TRIGGER entry_protect; "
PROTECTED = "; ALTER TABLE entry ENABLE ALWAYS TRIGGER entry_protect"


def verified():
    driver = Driver()
    try:
        driver.ask("open l.db read")
        driver.ask("verify")
    finally:
        driver.end()


@test
def triggers_refuse_changes_of_entries():
    make()
    for text in ("UPDATE entry SET amount = 1", "DELETE FROM entry", "TRUNCATE entry CASCADE",
                 "SET session_replication_role = replica; DELETE FROM entry WHERE idx = 3"):
        try:
            sql(text)
        except AssertionError as failure:
            assert "rows of entry are never changed" in str(failure), failure
        else:
            raise AssertionError(f"done: {text}")


@test
def changed_tables_are_found_and_named():
    make()
    verified()
    body = sql("SELECT prosrc FROM pg_proc WHERE proname = 'entry_protect' AND pronamespace = current_schema()::regnamespace")[0]
    trigger = ("CREATE TRIGGER entry_protect BEFORE UPDATE OR DELETE OR TRUNCATE ON entry FOR EACH STATEMENT "
               "EXECUTE FUNCTION entry_protect()")
    function = "CREATE OR REPLACE FUNCTION entry_protect() RETURNS trigger LANGUAGE plpgsql AS $b${}$b$"
    for change, back, part in (
            ("DROP TRIGGER entry_protect ON entry", trigger + PROTECTED, "Missing: trigger entry_protect"),
            (UNPROTECTED, "SELECT 1" + PROTECTED, "trigger entry_protect"),
            (function.format("BEGIN RETURN NULL; END"), function.format(body), "trigger entry_protect"),
            ("CREATE TRIGGER more AFTER INSERT ON entry FOR EACH STATEMENT EXECUTE FUNCTION entry_protect()",
             "DROP TRIGGER more ON entry", "Not of a ledger: trigger more"),
            ("CREATE RULE quiet AS ON INSERT TO tile DO INSTEAD NOTHING", "DROP RULE quiet ON tile", "rule quiet"),
            ("ALTER TABLE tile SET UNLOGGED", "ALTER TABLE tile SET LOGGED", "table tile"),
            ("ALTER TABLE entry DROP CONSTRAINT entry_customer_key_key", "ALTER TABLE entry ADD UNIQUE(customer, key)",
             "UNIQUE (customer, key)"),
            ("ALTER TABLE account ALTER balance DROP NOT NULL", "ALTER TABLE account ALTER balance SET NOT NULL",
             "account.balance"),
            ("ALTER TABLE earning ALTER label TYPE text COLLATE \"default\"",
             "ALTER TABLE earning ALTER label TYPE text COLLATE \"C\"", "earning.label"),
            ("ALTER TABLE meta ADD more text", "ALTER TABLE meta DROP more", "meta.more")):
        sql(change)
        refused(verified, "ERR_CORRUPT", "were changed", part)
        sql(back)
        verified()
    sql("CREATE INDEX of_time ON entry(at)")  # for queries of the owner's
    verified()


@test
def a_changed_column_is_found_by_its_entry():
    driver = make(charges=4, keep=True)
    driver.ask("payout north 0 p")
    driver.ask("correct 8 c south=-5 west=5")
    done(driver)
    for column, entry, change in (
            ("kind", 8, "'topup'"), ("at", 9, "at + 1"), ("run", 8, "NULL"), ("customer", 3, "0"), ("amount", 3, "amount + 1"),
            ("fee", 9, "fee + 1"), ("label", 8, "label || 'x'"), ("confidence", 10, "0.25"), ("rule", 8, "'evenly'"),
            ("ref", 13, "7"), ("text", 0, "text || ' '"), ("key", 3, "'x'"), ("fingerprint", 8, "sha256('x')"),
            ("answer", 9, "answer || '\\x00'"), ("postings", 12, "postings || '\\x00'"), ("vals", 10, "'\\x000000000000000000000000'"),
            ("errors", 10, "'\\x003c003c003c'"), ("input", 11, "sha256('x')"), ("salt", 1, "sha256('x')"),
            ("leaf", 2, "sha256('x')")):
        old = sql(f"SELECT {column} IS NULL, coalesce(quote_literal({column}), 'NULL') FROM entry WHERE idx = {entry}")[0]
        value = old.partition("|")[2]
        sql(UNPROTECTED + f"UPDATE entry SET {column} = {change} WHERE idx = {entry}" + PROTECTED)
        said = refused(verified, "ERR_CORRUPT")
        assert f"entry {entry}" in said or "run" in said, (column, said)
        sql(UNPROTECTED + f"UPDATE entry SET {column} = {value} WHERE idx = {entry}" + PROTECTED)
    verified()
    sql(UNPROTECTED + "DELETE FROM entry WHERE idx = 9" + PROTECTED)
    refused(verified, "ERR_CORRUPT", "entry 9 is missing")


@test
def a_row_that_a_policy_hides_is_not_passed_over():
    make(charges=2)
    sql("CREATE ROLE auditor LOGIN")
    sql(f"GRANT USAGE ON SCHEMA {schema()} TO auditor; GRANT SELECT ON ALL TABLES IN SCHEMA {schema()} TO auditor")
    uri = server.uri(schema=schema(), user="auditor")
    open_raw(uri)  # rights to read are enough
    sql("ALTER TABLE account ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON account USING (id < 3)")
    refused(lambda: open_raw(uri), "ERR_IO", "row-level security")


@test
def a_role_without_ownership_can_write_but_not_unprotect():
    """The rights that docs/ledger.md names."""
    make()
    sql(f"CREATE ROLE teller LOGIN; GRANT USAGE ON SCHEMA {schema()} TO teller; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA "
        f"{schema()} TO teller; GRANT UPDATE ON account, run, earning, tile, checkpoint TO teller")
    driver = Driver()
    driver.ask(f"open {server.uri(schema=schema(), user='teller')} write l.db.key")
    driver.charge([order("a"), order("a"), order("b")])
    driver.ask("account customer bolt")
    driver.ask("run n " + "b" * 64 + " clip 0 east")
    driver.ask("verify")
    done(driver)
    for text in ("DROP TRIGGER entry_protect ON entry", "ALTER TABLE entry DISABLE TRIGGER ALL", "DELETE FROM entry"):
        try:
            sql("SET ROLE teller; " + text)
        except AssertionError as failure:
            assert "must be owner" in str(failure) or "permission denied" in str(failure), failure
        else:
            raise AssertionError(f"done: {text}")


# ---- size ----


@test
def memory_does_not_grow_with_the_number_of_entries():
    with open(DRIVER, "rb") as file:
        program = file.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        raise Skip("sanitizers keep freed memory")
    driver = Driver()
    driver.ask("create l.db")
    driver.ask("open l.db write")
    driver.ask("account customer acme")
    driver.ask("topup acme 1000000000 t")
    driver.ask(f"run m {SHA} clip 1000 " + " ".join(f"p{i}" for i in range(400)))
    values = [1 + i / 1000 for i in range(400)]
    for _ in range(40):
        driver.charge([(0, "acme", 4000, "-", 0, "six", "a", values)] * 100)
    done(driver)
    driver = Driver()
    driver.ask("open l.db read")

    def peak():
        with open(f"/proc/{driver.process.pid}/status") as file:
            return int(next(line for line in file if line.startswith("VmHWM")).split()[1])

    before = peak()
    driver.ask("export csv out.csv")
    rows = int(sql("SELECT sum(pg_column_size(entry.*)) / 1024 FROM entry")[0])
    grown = peak() - before
    print(f"# {rows} KiB of entries, {grown} KiB of memory more")
    assert rows > 8000 and grown < rows / 4
    done(driver)


if why_not():
    print(f"1..0 # SKIP {why_not()}")
    sys.exit(0)
with Postgres() as server:
    os.environ["FDS_TEST_POSTGRES"] = server.uri()
    code = main()
sys.exit(code)
