# SPDX-License-Identifier: Apache-2.0
"""Who may ask fds serve for what: every operation of its OpenAPI document by every role, by key and by cookie; and
that customers and providers see their own data alone.

usage: test_roles.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import json
import pathlib
import re
import subprocess
import sys
from urllib.parse import quote

from server import (FDS, PASSWORD, Server, Skip, Visitor, bearer, fds, infer_json, main, make_key, make_login, refused, test,
                    the_run)

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src/serve/api.c"
ROLES = ["nobody", "customer", "provider", "auditor", "operator"]
# what is sent to operations that need a body; none of these is carried out twice
BODIES = {"/api/login": {"name": "ann", "password": PASSWORD}, "/api/logout": {},
          "/api/topup": {"account": "acme", "amount": "1.00"}, "/api/payout": {"ref": "test"},
          "/api/correct": {"of": 0, "reason": "r", "postings": []}, "/api/proposals/agree": {"id": 0},
          "/api/proposals/refuse": {"id": 0}, "/api/audit/verify": {}, "/api/audit/cancel": {}}


class World:
    """A server with two customers, two providers, an auditor and an operator, and payments of both customers."""

    def __init__(self):
        self.providers = self.find_payees()
        self.people = {"nobody": ("nobody", None), "acme": ("customer", "acme"), "bolt": ("customer", "bolt"),
                       "one": ("provider", self.providers[0]), "two": ("provider", self.providers[1]),
                       "eve": ("auditor", "eve"), "ann": ("operator", "ann")}
        self.keys = {}
        for name, (role, account) in self.people.items():
            if account:
                self.keys[name] = make_key(role, account)
                make_login(name, role, account)
        fds("ledger", "init", "a.ledger", "-q")
        self.server = Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", "--fee", "0.1")

    @staticmethod
    def find_payees():
        """The two who will be paid most."""
        with Server() as s:
            outputs = s.infer(infer_json(*range(5)), "mnist.explain").outputs()
        payees, shares = outputs["payees"], outputs["shares"]
        total = {name: sum(shares[i::len(payees)]) for i, name in enumerate(payees)}
        return sorted(payees, key=total.get, reverse=True)[:2]

    def __enter__(self):
        self.server.__enter__()
        self.by_key = {name: Visitor(self.server, key=self.keys.get(name)) for name in self.people}
        self.by_cookie = {name: Visitor(self.server, name if account else None)
                          for name, (_, account) in self.people.items()}
        self.receipts = {}
        for name in ("acme", "bolt"):
            assert self.by_key["ann"].post("/api/topup", {"account": name, "amount": "5.00"}).status == 200
            reply = self.server.infer(infer_json(*range(5)), headers=[bearer(self.keys[name]), "Idempotency-Key: secret-" + name])
            self.receipts[name] = reply.outputs()["receipt"]
        return self

    def __exit__(self, *error):
        return self.server.__exit__(*error)

    def operations(self):
        """(method, path of the document, path that is asked, roles) of all."""
        document = self.server.get("/openapi.json").json()
        version = self.server.get("/v2/models/mnist").json()["versions"][0]
        for path, item in document["paths"].items():
            for method in ("get", "post"):
                if method in item:
                    asked = path.replace("{model}", "mnist").replace("{version}", version).replace("{file}", "checkpoint")
                    asked = asked.replace("{module}", "app")
                    yield method.upper(), path, asked, item[method]["x-roles"]


def send(visitor, method, path, asked):
    if method == "GET":
        return visitor.get(asked)
    if path.endswith("/infer"):
        body = json.loads(infer_json(0))
    else:
        body = {"instances": [[0] * 784]} if path.startswith("/v1") else BODIES[path]
    return visitor.post(asked, body)


def check(reply, role, roles, what):
    if role in roles:
        assert reply.status not in (401, 403, 500, 503), (what, role, reply.status, reply.body)
    else:
        refused(reply, 401 if role == "nobody" else 403, "")


@test
def every_operation_says_for_whom_it_is():
    with World() as w:
        found = {path for _, path, _, roles in w.operations() if roles and set(roles) <= set(ROLES)}
        assert len(found) == len({path for _, path, _, _ in w.operations()})
        own = re.findall(r'^    \{"([\w/]+)", (?:true|false),', SOURCE.read_text(), re.M)
        assert len(own) > 10 and {f"/api/{path}" for path in own} <= found
        for method, path, asked, _ in w.operations():  # and the other method is none
            other = "POST" if method == "GET" else "GET"
            if (other, path) not in {(m, p) for m, p, _, _ in w.operations()}:
                assert w.server.ask(other, asked, b"{}" if other == "POST" else None).status == 405, path


@test
def the_document_names_every_file_of_the_page():
    files = {f.name for f in (SOURCE.parents[2] / "web").glob("*.*")} - {"package.json"}
    with World() as w:
        paths = w.server.get("/openapi.json").json()["paths"]
        modules = {f"{name}.js" for name in paths["/{module}.js"]["parameters"][0]["schema"]["enum"]}
        assert modules | {"index.html", "style.css"} == files and "/style.css" in paths, modules ^ files
        for name in modules:
            assert w.server.get("/" + name).status == 200, name


@test
def keys_open_what_their_role_may_do_and_nothing_else():
    with World() as w:
        for method, path, asked, roles in w.operations():
            for name, (role, _) in w.people.items():
                check(send(w.by_key[name], method, path, asked), role, roles, f"{method} {path} by key of {name}")


@test
def cookies_open_the_same_on_api_and_nothing_elsewhere():
    with World() as w:
        operations = sorted(w.operations(), key=lambda o: o[1] == "/api/logout")  # which ends the sessions
        for method, path, asked, roles in operations:
            for name, (role, _) in w.people.items():
                seen = role if path.startswith("/api/") else "nobody"
                check(send(w.by_cookie[name], method, path, asked), seen, roles, f"{method} {path} by cookie of {name}")
        for name, visitor in w.by_cookie.items():
            assert visitor.get("/api/me").json()["role"] == "nobody", name


def names_in(text, names):
    """Which of the names stand in a text as JSON or CSV has them."""
    return [name for name in names if f'"{name}"' in text or f",{name}," in text or f"account {name}\n" in text]


@test
def customers_and_providers_see_their_own_alone():
    with World() as w:
        accounts = [a["name"] for a in w.by_key["eve"].get("/api/accounts").json()["accounts"]]
        index = w.receipts["acme"][0]
        for way in (w.by_key, w.by_cookie):
            for name in ("acme", "bolt", "one", "two"):
                role, own = w.people[name]
                others = [a for a in accounts if a not in (own, "cash", "fees")]
                for foreign in (others[0], "bolt" if own != "bolt" else "acme", w.providers[1], "cash", "nobody"):
                    if foreign == own:
                        continue
                    for path in (f"account?name={quote(foreign)}", f"entries?account={quote(foreign)}",
                                 f"statement?account={quote(foreign)}", f"entry?index={index}&account={quote(foreign)}",
                                 f"receipt?index={index}&account={quote(foreign)}", f"samples?account={quote(foreign)}"):
                        reply = way[name].get(f"/api/{path}")
                        text = reply.body.decode()
                        assert reply.status in (200, 403, 404), (name, path, reply.status)
                        # players of a run are called as those who are paid for them
                        assert not names_in(text, others), (name, path, names_in(text, others))
                        assert "a.ledger" not in text and "secret-" + ("bolt" if own == "acme" else "acme") not in text
                for entry in way[name].get("/api/entries?limit=200").json()["entries"]:
                    assert [p["account"] for p in entry["postings"]] == [own], (name, entry)
                    if role == "provider":
                        assert not {"customer", "key", "fingerprint", "input", "confidence", "answer_base64"} & set(entry)


@test
def own_data_is_complete():
    with World() as w:
        for name in ("acme", "bolt"):
            v = w.by_key[name]
            found = [e["index"] for e in v.get("/api/entries?kind=prediction").json()["entries"]]
            assert found == w.receipts[name][::-1]
            assert v.get("/api/account").json()["balance"] == "4.950000"
            entry = v.get(f"/api/entry?index={w.receipts[name][0]}").json()
            assert entry["customer"] == name and entry["key"] == f"secret-{name}" and "answer_base64" in entry
            other = w.receipts["bolt" if name == "acme" else "acme"][0]
            refused(v.get(f"/api/entry?index={other}"), 404, "nothing of yours")
            refused(v.get("/api/entry?index=0"), 404, "nothing of yours")
            refused(v.get("/api/entry?index=99999999"), 404, "nothing of yours")
        v = w.by_key["one"]
        account = v.get("/api/account").json()
        assert account["name"] == w.providers[0] and account["kind"] == "provider"
        entries = v.get("/api/entries").json()["entries"]
        assert sum(p["units"] for e in entries for p in e["postings"]) == round(float(account["balance"]) * 1e6)
        index = entries[0]["index"]
        proof = v.get(f"/api/receipt?index={index}").body.decode()
        assert proof.startswith("c2sp.org/tlog-proof@v1")
        sample, = v.get("/api/samples").json()["samples"]
        assert sample["name"] == w.providers[0] and sample["model"] == "mnist"


@test
def a_key_for_an_account_of_another_kind_sees_nothing():
    wrong = make_key("provider", "acme"), make_key("provider", "cash"), make_key("provider", "nowhere")
    right = make_key("customer", "acme")
    fds("ledger", "init", "a.ledger", "-q")
    fds("ledger", "topup", "a.ledger", "acme", "5.00", "--new", "-q")
    with Server("--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01") as s:
        for key in wrong:
            for path in ("account", "entries", "entry?index=3", "statement", "receipt?index=3", "samples"):
                refused(s.get(f"/api/{path}", bearer(key)), 404, "nothing of yours")
        assert s.get("/api/account", bearer(right)).json()["balance"] == "5.000000"

@test
def a_provider_of_a_private_ledger_sees_released_statements_alone():
    name = World.find_payees()[0]
    key, customer, auditor = make_key("provider", name), make_key(), make_key("auditor", "eve")
    fds("ledger", "init", "a.ledger", "-q")
    words = ["--keys", "keys.jsonl", "--ledger", "a.ledger", "--price", "0.01", "--private"]
    _, err = fds("serve", "--model", f"mnist={the_run()}", "--port", 0, *words, code=2)
    assert "is not private" in err, err
    done = subprocess.run([FDS, "privacy", "on", "a.ledger", "--price-limit", "0.01", "-q"], capture_output=True, text=True)
    if "GMP" in done.stderr:
        raise Skip("no GMP")
    assert done.returncode == 0, done.stderr
    fds("ledger", "topup", "a.ledger", "acme", "5.00", "--new", "-q")
    with Server(*words) as s:
        reply = s.infer(infer_json(*range(5)), "mnist.explain", headers=[bearer(customer)])
        index = reply.outputs()["receipt"][0]
        own, seen = s.get("/api/account", bearer(key)).json(), s.get(f"/api/account?name={quote(name)}", bearer(auditor)).json()
        assert own["balance"] == "0.000000" < seen["balance"], (own, seen)
        assert own["earnings"] == [] and own["total"] == {"amount": "0.000000", "count": 0}, own
        for entry in s.get("/api/entries", bearer(key)).json()["entries"]:
            assert entry["kind"] != "prediction" or not {"amount", "label"} & set(entry), entry
        assert s.get(f"/api/receipt?index={index}", bearer(key)).status in (400, 403, 404, 409)
        assert s.get(f"/api/entry?index={index}", bearer(key)).status == 404
        lines = s.get("/api/statement", bearer(key)).body.decode().splitlines()
        assert not any("prediction" in line for line in lines), lines
        samples = s.get("/api/samples", bearer(key)).json()["samples"]
        assert samples and all(one["value"] is None and one["count"] == 0 for one in samples), samples
        assert all(one["value"] is not None for one in s.get("/api/samples", bearer(auditor)).json()["samples"])


sys.exit(main())
