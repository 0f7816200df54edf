# SPDX-License-Identifier: Apache-2.0
"""fds serve's logins and sessions: passwords, cookies, requests that other pages forge.

usage: test_login.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import json
import os
import pathlib
import signal
import ssl
import subprocess
import sys
import threading

from server import (FDS, PASSWORD, Server, Skip, Visitor, bearer, environment, fds, infer_json, main, make_key,
                    make_login, refused, test, until)

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def ledger_server(*args, **options):
    if not os.path.exists("a.ledger"):
        fds("ledger", "init", "a.ledger", "-q")
    return Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", *args, **options)


def log_in(s, name="ann", password=PASSWORD, *headers):
    return s.post("/api/login", {"name": name, "password": password}, *headers)


@test
def a_login_is_a_line_with_a_slow_hash():
    make_key()
    path = pathlib.Path("keys.jsonl")
    path.write_bytes(path.read_bytes().rstrip())  # an editor that ends no line
    make_login("ann@example.com", "operator", "ann")
    make_login("north", "provider")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 3 and "sha256" in lines[0]
    assert lines[1]["role"] == "operator" and lines[1]["account"] == "ann" and lines[1]["login"] == "ann@example.com"
    assert lines[1]["argon2id"].startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert PASSWORD not in path.read_text() and path.stat().st_mode & 0o777 == 0o600
    assert lines[2]["account"] == "north"
    assert "has a login" in make_login("north", "provider", code=2)
    assert "8 to 1024" in make_login("bob", password="short", code=2)
    assert "customer, provider" in make_login("bob", "king", code=2)
    done = subprocess.run([FDS, "serve", "login", "keys.jsonl", "--name", "bob"], stdin=subprocess.DEVNULL,
                          env=environment(), capture_output=True, text=True)
    assert done.returncode == 2 and "password is missing" in done.stderr


@test
def a_visitor_logs_in_and_out():
    make_login("ann@example.com", "operator", "ann")
    with ledger_server() as s:
        me = s.get("/api/me").json()
        assert me["role"] == "nobody" and me["account"] is None and me["token"] is None
        assert me["currency"] == "USD" and me["decimals"] == 6 and me["price"] == "0.010000"
        assert me["vkey"].startswith(s.get("/log/checkpoint").body.decode().split("\n")[0] + "+")
        model, = me["models"]
        assert model["name"] == "mnist" and model["shape"] == [1, 28, 28] and len(model["classes"]) == 10
        reply = log_in(s, "ann@example.com")
        cookie = reply.headers["set-cookie"]
        name, _, value = cookie.partition(";")[0].partition("=")
        assert name == "fds" and len(value) == 64
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
        assert reply.headers["cache-control"] == "no-store"
        about = reply.json()
        assert (about["role"], about["account"], about["name"]) == ("operator", "ann", "ann@example.com")
        assert len(about["token"]) == 64 and about["token"] != value
        v = Visitor(s, "ann@example.com")
        assert v.get("/api/me").json()["token"] == v.token
        assert v.get("/api/overview").status == 200
        out = v.post("/api/logout", {})
        assert out.status == 200 and out.json() == {} and "Max-Age=0" in out.headers["set-cookie"]
        assert v.get("/api/me").json()["role"] == "nobody"
        refused(v.get("/api/overview"), 401, "login")
        refused(v.post("/api/logout", {}), 401, "login")
    assert value not in pathlib.Path("server.log").read_text() and PASSWORD not in pathlib.Path("server.log").read_text()


@test
def wrong_names_and_passwords_are_told_apart_by_nobody():
    make_login("ann", "operator")
    with Server("--keys", "keys.jsonl") as s:
        for name, password in (("ann", "wrong password"), ("bob", PASSWORD), ("", PASSWORD), ("ann", ""),
                               ("ann", PASSWORD + " "), ("Ann", PASSWORD), ("ann", "x" * 2000)):
            refused(log_in(s, name, password), 401, "name or password is wrong")
        for body in ({}, {"name": "ann"}, {"name": 1, "password": 2}):
            refused(s.post("/api/login", body), 400, "is needed")
        refused(s.post("/api/login", []), 400, "object")
        refused(s.ask("POST", "/api/login", b"{"), 400, "body")
        refused(s.ask("POST", "/api/login", b" " * 70000), 413, "65536")
        refused(s.get("/api/login"), 405, "use POST")
        assert log_in(s).status == 200


@test
def many_failures_slow_a_guesser_down():
    make_login("ann", "operator")
    make_login("bob", "operator")
    with Server("--keys", "keys.jsonl") as s:
        found = [log_in(s, "ann", f"guess {n}").status for n in range(8)]
        assert found[:5] == [401] * 5 and 429 in found[5:], found
        late = log_in(s)
        refused(late, 429, "too many failures")  # the right one, too: else a guess would be told
        assert int(late.headers["retry-after"]) > 0
        assert log_in(s, "bob").status == 200


@test
def many_names_from_one_place_are_slowed_down_too():
    make_login("ann", "operator")
    with Server("--keys", "keys.jsonl") as s:
        found = []
        with s.connect() as c:  # the limit is fifty, and five per second
            while 429 not in found and len(found) < 1000:
                body = json.dumps({"name": f"n{len(found)}", "password": PASSWORD}).encode()
                found.append(c.ask("POST", "/api/login", body).status)
        if 429 not in found:
            raise Skip("hashes are too slow here to reach the limit")
        assert set(found[:50]) == {401}, found[:50]


@test
def a_cookie_from_before_is_never_taken_over():
    make_login("ann", "operator")
    with ledger_server() as s:
        planted = "0" * 64
        reply = log_in(s, "ann", PASSWORD, f"Cookie: fds={planted}")
        assert reply.status == 200 and planted not in reply.headers["set-cookie"]
        assert s.get("/api/me", f"Cookie: fds={planted}").json()["role"] == "nobody"
        first, second = Visitor(s, "ann"), Visitor(s, "ann")
        assert first.cookie != second.cookie and first.token != second.token
        both = f"Cookie: {first.cookie}; {second.cookie}"
        assert s.get("/api/me", both).json()["role"] == "nobody"  # of two, one may be planted
        assert s.get("/api/me", f"Cookie: a=b; {first.cookie}; c").json()["role"] == "operator"
        assert s.get("/api/me", f"Cookie: {first.cookie}x").json()["role"] == "nobody"
        assert s.get("/api/me", f"Cookie: x{first.cookie}").json()["role"] == "nobody"


@test
def other_pages_cannot_change_anything():
    make_login("ann", "operator")
    key = make_key("operator", "bob")
    body = {"account": "acme", "amount": "1.00", "new": True}
    with ledger_server() as s:
        v = Visitor(s, "ann")
        cookie, token = f"Cookie: {v.cookie}", f"X-FDS-Token: {v.token}"
        refused(s.post("/api/topup", body, cookie), 403, "own page")
        refused(s.post("/api/topup", body, cookie, "X-FDS-Token: " + "0" * 64), 403, "own page")
        refused(s.post("/api/topup", body, cookie, "X-FDS-Token: "), 403, "own page")
        for foreign in ("Origin: http://evil.example", "Origin: null", "Origin: http://localhost.evil.example",
                        "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none"):
            refused(s.post("/api/topup", body, cookie, token, foreign), 403, "own page")
        refused(s.post("/api/logout", {}, cookie), 403, "own page")
        refused(log_in(s, "ann", PASSWORD, "Origin: http://evil.example"), 403, "own page")
        refused(s.post("/api/topup", body), 401, "login")
        assert s.get("/api/overview", cookie).json()["money"]["in"] == "0.000000"
        own = ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"]  # the Host of these tests
        assert s.post("/api/topup", body, cookie, token, *own).status == 200
        assert s.post("/api/topup", body, bearer(key), "Sec-Fetch-Site: cross-site").status == 200
        refused(s.post("/api/topup", body, bearer(key + "0"), cookie, token), 401, "key")  # a key comes first
        refused(s.post("/api/topup", body, cookie, cookie, token), 400, "given once")
        assert s.get("/api/overview", cookie).json()["money"]["in"] == "2.000000"


@test
def cookies_count_on_api_alone():
    make_login("ann", "operator")
    make_login("acme", "customer")
    with ledger_server() as s:
        ann, acme = Visitor(s, "ann"), Visitor(s, "acme")
        refused(s.get("/metrics", f"Cookie: {ann.cookie}"), 401, "a key is needed")
        refused(s.infer(infer_json(0), headers=acme.headers(True)), 401, "a key is needed")
        assert ann.post("/api/topup", {"account": "acme", "amount": "1.00"}).status == 200
        reply = s.ask("POST", "/api/models/mnist/infer", infer_json(0), acme.headers(True))
        assert reply.status == 200 and len(reply.outputs()["receipt"]) == 1
        refused(s.ask("POST", "/api/models/mnist/infer", infer_json(0), [f"Cookie: {acme.cookie}"]), 403, "own page")
        refused(s.ask("POST", "/api/models/mnist/infer", infer_json(0), ann.headers(True)), 403, "may not")
        refused(s.ask("POST", "/api/models/mnist/infer", infer_json(0),
                      acme.headers(True) + ["Inference-Header-Content-Length: 5"]), 400, "JSON")
        assert acme.get("/api/account").json()["balance"] == "0.990000"


@test
def a_changed_login_ends_its_sessions():
    make_login("ann", "operator")
    make_login("bob", "operator")
    make_login("cat", "operator")
    path = pathlib.Path("keys.jsonl")
    with ledger_server() as s:
        ann, bob, cat = (Visitor(s, name) for name in ("ann", "bob", "cat"))
        lines = path.read_text().splitlines()
        lines[1] = lines[1].replace("operator", "auditor")
        path.write_text("\n".join([lines[1], lines[2]]) + "\n")
        s.process.send_signal(signal.SIGHUP)
        until(lambda: ann.get("/api/me").json()["role"] == "nobody")
        assert bob.get("/api/me").json()["role"] == "nobody"
        assert cat.get("/api/me").json()["role"] == "operator"
        refused(log_in(s, "ann"), 401, "wrong")
        assert log_in(s, "bob").json()["role"] == "auditor"
    with ledger_server() as s:
        assert s.get("/api/me", f"Cookie: {cat.cookie}").json()["role"] == "nobody"  # a restart ends them all


@test
def logins_do_not_hold_up_others():
    make_login("ann", "operator")
    with Server("--keys", "keys.jsonl") as s:
        replies = []
        threads = [threading.Thread(target=lambda n=n: replies.append(log_in(s, f"n{n}").status)) for n in range(60)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            assert s.get("/v2/health/live").status == 200
        for thread in threads:
            thread.join()
        assert set(replies) <= {401, 429, 503} and 401 in replies, set(replies)


@test
def the_page_and_api_have_headers_for_browsers():
    make_login("ann", "operator")
    with ledger_server() as s:
        for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"), ("/style.css", "text/css"),
                           ("/api/me", "application/json"), ("/api/nothing", "application/json"),
                           ("/nothing", "application/json"), ("/api/overview", "application/json")):
            reply = s.get(path)
            assert reply.headers["content-type"].startswith(kind), (path, reply.headers)
            assert reply.headers["content-security-policy"] == POLICY, path
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["referrer-policy"] == "no-referrer"
            assert reply.headers["cache-control"] == "no-store"
        assert s.get("/").status == 200 and b"<html" in s.get("/").body
        refused(s.get("/api/nothing"), 404, "/api/nothing")
        refused(s.get("/../etc/passwd"), 404, "")


@test
def without_a_ledger_there_is_only_the_login():
    make_login("ann", "operator")
    with Server("--keys", "keys.jsonl") as s:
        v = Visitor(s, "ann")
        me = v.get("/api/me").json()
        assert me["role"] == "operator" and me["currency"] is None and me["price"] is None
        refused(v.get("/api/overview"), 404, "there is no ledger")
        refused(v.post("/api/topup", {}), 404, "there is no ledger")
        assert v.post("/api/logout", {}).status == 200
    with Server() as s:
        assert s.get("/api/me").json()["role"] == "nobody"
        refused(log_in(s), 401, "wrong")


@test
def under_tls_the_cookie_is_secure():
    if subprocess.run(["which", "openssl"], stdout=subprocess.DEVNULL).returncode:
        raise Skip("no openssl")
    subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out "
                   "cert.pem -days 2 -subj /CN=localhost".split(), check=True, stderr=subprocess.DEVNULL)
    os.chmod("key.pem", 0o600)
    make_login("ann", "operator")
    with Server("--keys", "keys.jsonl", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as s:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with s.connect() as c:
            c.socket = context.wrap_socket(c.socket)
            body = json.dumps({"name": "ann", "password": PASSWORD}).encode()
            cookie = c.ask("POST", "/api/login", body).headers["set-cookie"]
            assert cookie.startswith("__Host-fds=") and "Secure" in cookie and "Path=/" in cookie
            own = cookie.partition(";")[0]
            assert c.ask("GET", "/api/me", headers=[f"Cookie: {own}"]).json()["role"] == "operator"
            plain = own.removeprefix("__Host-")
            assert c.ask("GET", "/api/me", headers=[f"Cookie: {plain}"]).json()["role"] == "nobody"


@test
def refused_requests_count_for_their_address():
    make_key()
    with Server("--keys", "keys.jsonl", "--rate-each", 5) as s:
        for ask in (lambda: s.get("/nothing"), lambda: s.ask("DELETE", "/v2"), lambda: s.infer(infer_json(0)),
                    lambda: s.infer(infer_json(0), headers=[bearer("fds_x")]), lambda: s.get("/api/nothing"),
                    lambda: s.ask("POST", "/v2", b"", ["Content-Length: 0"]), lambda: s.get("/v2", "Host: b")):
            found = [ask().status for _ in range(12)]
            assert 429 in found, found
        assert s.get("/v2/health/live").status == 200

sys.exit(main())
