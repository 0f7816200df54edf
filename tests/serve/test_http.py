# SPDX-License-Identifier: Apache-2.0
"""fds serve as clients meet it: every endpoint, statuses, framing, limits, load, signals.

usage: test_http.py FDS      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP.
"""
import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

from server import (FDS, PATIENCE, Connection, Server, Skip, bearer, environment, fds, fds_json, infer_json, main,
                    make_key, pixels, refused, test, the_run, until)

POST = "POST /v2/models/mnist/infer HTTP/1.1\r\nHost: a\r\n"


# ---- endpoints ----

@test
def health_server_models_and_documents_are_public():
    make_key()
    with Server("--keys", "keys.jsonl") as s:
        for path in ("live", "ready"):
            reply = s.get(f"/v2/health/{path}")
            assert (reply.status, reply.json()) == (200, {"live": True, "ready": True})
        for path in ("/v2", "/v2/"):
            about = s.get(path).json()
            assert about["name"] == "fds" and about["extensions"] == ["binary_tensor_data"]
        model = s.get("/v2/models/mnist").json()
        assert model["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 1, 28, 28]}]
        assert [o["name"] for o in model["outputs"]] == ["label", "probabilities"]
        version, = model["versions"]
        assert s.get(f"/v2/models/mnist/versions/{version}").json() == model
        assert s.get(f"/v2/models/mnist/versions/{version}/ready").json() == {"name": "mnist", "ready": True}
        assert s.get("/v2/models/mnist.explain/ready").json() == {"name": "mnist.explain", "ready": True}
        assert s.get("/v1/models/mnist").json()["ready"]
        document = s.get("/openapi.json").json()
        assert document["openapi"].startswith("3.") and len(document["paths"]) > 10
        head = s.ask("HEAD", "/v2")
        assert head.status == 200 and head.body == b""


@test
def answers_equal_those_of_fds_explain():
    answers = fds_json("explain", the_run(), "--index", "0..4")["inputs"]
    with Server() as s:
        outputs = s.infer(infer_json(0, 1, 2, 3, 4), "mnist.explain").outputs()
        assert outputs["label"] == [a["predicted"] for a in answers]
        n = len(outputs["players"])
        for k, answer in enumerate(answers):
            values = dict(zip(outputs["players"], outputs["values"][k * n:]))
            errors = dict(zip(outputs["players"], outputs["errors"][k * n:]))
            assert abs(max(outputs["probabilities"][k * 10:k * 10 + 10]) - answer["confidence"]) < 1e-7
            for player in answer["ranking"]:
                assert abs(values[player["player"]] - player["value"]) < 1e-9
                assert abs(errors[player["player"]] - player["standard_error"]) < 1e-9
            shares = outputs["shares"][k * n:k * n + n]
            assert abs(sum(shares) - 1) < 1e-9 and min(shares) >= 0


@test
def json_raw_tensors_and_version_1_agree():
    with Server() as s:
        wanted = s.infer(infer_json(0, 1), "mnist.explain").outputs()
        again = s.infer(infer_json(0, 1, parameters={"binary_data_output": True}), "mnist.explain")
        assert again.headers["content-type"] == "application/octet-stream"
        raw = again.outputs()
        assert raw["label"] == wanted["label"]
        assert [float(f"{v:.9g}") for v in raw["values"]] == wanted["values"]  # JSON has nine digits
        assert all(struct.pack("f", a) == struct.pack("f", b)
                   for a, b in zip(raw["probabilities"], wanted["probabilities"]))
        # a client of Triton: no Content-Type, JSON and raw tensors both ways
        head = json.dumps({"id": "x", "inputs": [{"name": "input", "shape": [2, 1, 28, 28], "datatype": "UINT8",
                           "parameters": {"binary_data_size": 1568}}], "parameters": {"binary_data_output": True}},
                          separators=(",", ":")).encode()
        body = head + bytes(pixels(0) + pixels(1))
        sizes = [f"Inference-Header-Content-Length: {len(head)}"]
        assert s.infer(body, "mnist.explain", sizes).outputs() == raw
        assert s.infer(head, "mnist.explain").status == 400
        instances = json.dumps({"instances": [[p / 255 for p in pixels(n)] for n in (0, 1)]}).encode()
        explained = s.ask("POST", "/v1/models/mnist:explain", instances).json()
        assert [e["label"] for e in explained["explanations"]] == wanted["label"]
        assert explained["players"] == wanted["players"]
        assert explained["explanations"][1]["values"] == wanted["values"][12:]
        predicted = s.ask("POST", "/v1/models/mnist:predict", instances).json()["predictions"]
        assert [p["label"] for p in predicted] == wanted["label"] and set(predicted[0]) == {"label", "probabilities"}


@test
def a_table_of_features_and_a_regression_are_served():
    rows = ["x1,x2,y,provider"] + [f"{i % 7},{i % 5},{2 * (i % 7) - (i % 5) + i / 1000},shop-{i % 6}" for i in range(150)]
    pathlib.Path("a.csv").write_text("\n".join(rows) + "\n")
    fds("fit", "a.csv", "--label", "y", "--task", "regression", "--players", "providers", "--inputs", 30, "--model",
        "fc:1", "--coalitions", 40, "--method", "afds", "--epochs", 3, "--explainer", "bank", "--threads", 1, "-o",
        "r.run", "-q")
    with Server(models={"tab": "r.run", "mnist": the_run()}) as s:
        assert [o["name"] for o in s.get("/v2/models/tab").json()["outputs"]] == ["prediction"]
        body = json.dumps({"inputs": [{"name": "input", "shape": [1, 2], "datatype": "FP64", "data": [3, 4]}]}).encode()
        outputs = s.infer(body, "tab.explain").outputs()
        pathlib.Path("new.csv").write_text("x1,x2\n3,4\n")
        answer = fds_json("explain", "r.run", "--rows", "new.csv")["inputs"][0]
        assert abs(outputs["prediction"][0] - float(answer["predicted"])) < 1e-6
        values = dict(zip(outputs["players"], outputs["values"]))
        assert all(abs(values[p["player"]] - p["value"]) < 1e-9 for p in answer["ranking"])
        assert s.infer(body, "tab").outputs() == {"prediction": outputs["prediction"]}
        assert s.infer(infer_json(0)).status == 200


# ---- statuses ----

@test
def mistakes_have_their_status_and_a_reason():
    with Server("--max-batch", 2, "--max-bytes", 20000) as s:
        refused(s.infer(b"{"), 400, "JSON: line 1")
        refused(s.infer(infer_json(0, outputs=[{"name": "values"}])), 400, "no output")
        refused(s.infer(infer_json(0), headers=["Inference-Header-Content-Length: x"]), 400, "must be a number")
        refused(s.infer(infer_json(0), headers=["Idempotency-Key: a b"]), 400, "Idempotency-Key")
        refused(s.infer(infer_json(0), headers=["Content-Encoding: gzip"]), 400, "Content-Encoding")
        refused(s.infer(infer_json(0, 1, 2)), 413, "at most 2")
        refused(s.infer(infer_json(0), "minst"), 404, 'no model "minst"')
        refused(s.infer(infer_json(0), "mnist/versions/7"), 404, "no version")
        refused(s.get("/nothing"), 404, "nothing")
        refused(s.get("/v2/models/"), 404, "/v2/models/")
        refused(s.get("/v2/models/mnist/versions//infer"), 404, "")
        refused(s.get("/log/checkpoint"), 404, "predictions are free")
        wrong = s.ask("DELETE", "/v2/models/mnist")
        refused(wrong, 405, "use GET")
        assert wrong.headers["allow"] == "GET, HEAD"
        refused(s.get("/v2/models/mnist/infer"), 405, "use POST")
        with s.connect() as c:
            c.send(f"{POST}Content-Length: 20001\r\n\r\n".encode())
            refused(c.receive(), 413, "at most 20000")
            assert c.is_closed()


@test
def keys_decide_who_may_do_what():
    customer, auditor, operator = make_key(), make_key("auditor", "bob"), make_key("operator", "alice")
    with Server("--keys", "keys.jsonl") as s:
        body = infer_json(0)
        assert s.infer(body).headers["www-authenticate"] == "Bearer"
        refused(s.infer(body), 401, "a key is needed")
        refused(s.infer(body, headers=["Authorization: Digest x"]), 401, "must be")
        refused(s.infer(body, headers=[bearer(customer[:-1] + "x")]), 401, "damaged")
        refused(s.infer(body, headers=[bearer("fds_x_" + "0" * 64)]), 401, "damaged")
        refused(s.infer(body, headers=[bearer(auditor)]), 403, "auditor")
        basic = base64.b64encode(f"acme:{customer}".encode()).decode()
        for key, infer, metrics in ((customer, 200, 403), (auditor, 403, 200), (operator, 200, 200)):
            assert s.infer(body, headers=[bearer(key)]).status == infer
            assert s.get("/metrics", bearer(key)).status == metrics
        assert s.infer(body, headers=[f"Authorization: Basic {basic}"]).status == 200
        refused(s.get("/metrics"), 401, "a key is needed")
        refused(s.infer(body, headers=[bearer(customer), bearer(operator)]), 400, "once")
        log = pathlib.Path("server.log").read_text()
        assert "acme" in log and customer[20:60] not in log
    # withdrawn
    pathlib.Path("keys.jsonl").write_text(pathlib.Path("keys.jsonl").read_text().split("\n", 1)[1])
    with Server("--keys", "keys.jsonl") as s:
        refused(s.infer(body, headers=[bearer(customer)]), 401, "not known")


@test
def rates_of_keys_and_addresses_are_limited():
    first, second = make_key(), make_key(account="other")
    with Server("--keys", "keys.jsonl", "--rate", 3) as s:
        with s.connect() as c:
            codes = [c.ask("POST", "/v2/models/mnist/infer", infer_json(0), [bearer(first)]) for _ in range(12)]
        assert [r.status for r in codes[:3]] == [200] * 3
        late = [r for r in codes if r.status == 429]
        assert late and late[0].headers["retry-after"] == "1"
        refused(late[0], 429, "too many")
        assert s.infer(infer_json(0), headers=[bearer(second)]).status == 200
    with Server("--rate-each", 2) as s:
        codes = [s.get("/v2").status for _ in range(10)]
        assert 429 in codes and codes[0] == 200
        assert s.get("/v2/health/live").status == 200


# ---- framing ----

@test
def requests_whose_end_is_in_doubt_are_refused_and_the_connection_closed():
    body = infer_json(0)
    n = len(body)
    cases = [(f"{POST}Content-Length: {n}\r\nContent-Length: {n}\r\n", 411),
             (f"{POST}Content-Length: {n}\r\nContent-Length: 5\r\n", 411),
             (f"{POST}Transfer-Encoding: chunked\r\n", 411),
             (f"{POST}Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n", 400),
             (f"{POST}Transfer-Encoding: chunked\r\nContent-Length: {n}\r\n", 400),
             (f"{POST}Content-Length: {n}\r\nTransfer-Encoding: identity\r\n", 400),
             (f"{POST}Content-Length: {n}\r\nTransfer-Encoding:\r\n chunked\r\n", 400),
             (f"{POST}Content-Length: {n}\r\nTransfer-Encoding: x\r\n chunked\r\n", 400),
             (f"{POST}Content-Length:\r\n {n}\r\n", 400),
             (f"{POST}Content-Length : {n}\r\n", 400),
             (f"{POST}X-A: b\r\n Content-Length: 5\r\nContent-Length: {n}\r\n", 400),
             (f"{POST}", 411),
             (f"{POST}Content-Length: -1\r\n", 400),
             (f"{POST}Content-Length: +{n}\r\n", 400),
             (f"{POST}Content-Length: {n}, {n}\r\n", 400),
             (f"{POST}Content-Length: 0x10\r\n", 400),
             (f"{POST}Content-Length: 99999999999999999999\r\n", 413),
             (f"{POST}Host: b\r\nContent-Length: {n}\r\n", 400),
             (f"POST /v2/models/mnist/infer HTTP/1.1\r\nContent-Length: {n}\r\n", 400),
             (f"GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: {n}\r\n", 400)]
    with Server() as s:
        for head, status in cases:
            with s.connect() as c:
                c.send(head.encode() + b"\r\n")
                reply = c.receive()
                assert reply.status == status, (head, reply.status, reply.body)
                assert c.is_closed(), head
        # a second request in a body that is dropped stays unseen
        with s.connect() as c:
            hidden = b"GET /v2/models/none HTTP/1.1\r\nHost: a\r\n\r\n"
            first = c.ask("POST", "/v2/models/none/infer", hidden)
            assert first.status == 404
            assert c.ask("GET", "/v2").status == 200
        paths = [line["path"] for line in s.lines("request")]
        assert "/v2/models/none" not in paths


@test
def requests_may_follow_each_other_without_waiting():
    body = infer_json(0)
    with Server() as s, s.connect() as c:
        c.send((f"{POST}Content-Length: {len(body)}\r\n\r\n".encode() + body +
                b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n") * 3)
        assert [c.receive().status for _ in range(6)] == [200] * 6


@test
def heads_and_paths_that_are_odd_do_no_harm():
    with Server() as s:
        for path in ("/../../etc/passwd", "/v2/models/..%2f..%2fetc/ready", "/log/../../etc/passwd", "/%00", "//v2",
                     "/v2/models/" + "a" * 5000, "/v2/models/%ff%fe", "*", "/v2?x=" + "y" * 2000, "/v2%20"):
            with s.connect() as c:
                try:
                    status = c.ask("GET", path).status
                except EOFError:
                    continue
                assert status in (200, 400, 404, 414, 431), (path, status)
        with s.connect() as c:
            c.send(b"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100000 + b"\r\n\r\n")
            try:
                assert c.receive().status in (400, 413, 431)
            except (EOFError, ConnectionError):
                pass
        for data in (b"\0" * 100, b"\r\n" * 1000, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"x" * 70000):
            with s.connect(timeout=1) as c:
                try:
                    c.send(data)
                    c.is_closed()
                except ConnectionError:
                    pass
        assert s.get("/v2").status == 200


# ---- slowness and load ----

@test
def slow_and_endless_requests_are_cut_off():
    with Server("--idle-s", 1, "--request-s", 2) as s:
        begin = time.monotonic()
        idle, head, body = s.connect(), s.connect(), s.connect()
        head.send(b"GET /v2 HT")
        body.send(f"{POST}Content-Length: 5000\r\n\r\n".encode())

        def trickle():
            for _ in range(200):
                time.sleep(0.1)
                for c in (head, body):
                    try:
                        c.send(b"x")
                    except OSError:
                        pass
        threading.Thread(target=trickle, daemon=True).start()
        assert idle.is_closed() and head.is_closed() and body.is_closed()
        assert time.monotonic() - begin > 0.9
        assert s.get("/v2").status == 200
        until(lambda: s.metric("fds_requests_open") == 1)
    with Server("--request-s", 3600, "--min-rate", 1000000) as s:
        with s.connect() as c:
            c.send(f"{POST}Content-Length: 5000\r\n\r\n".encode() + b"x" * 100)
            assert c.is_closed()  # after five seconds


@test
def two_hundred_connections_are_served_at_once():
    body = infer_json(3)
    with Server() as s:
        wanted = s.infer(body, "mnist.explain").body
        connections = [s.connect() for _ in range(200)]
        try:
            for c in connections:
                c.send(f"POST /v2/models/mnist.explain/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
                       .encode() + body)
            for c in connections:
                assert c.receive().body == wanted
            for c in connections:  # kept alive
                assert c.ask("GET", "/v2/health/live").status == 200
        finally:
            for c in connections:
                c.socket.close()
        assert s.metric("fds_predictions_total") == 201
        assert s.metric("fds_batches_total") < 201


@test
def connections_beyond_the_limit_wait_or_are_closed():
    with Server("--connections-each", 4) as s:
        connections = [s.connect() for _ in range(4)]
        assert all(c.ask("GET", "/v2").status == 200 for c in connections)
        with s.connect() as c:
            assert c.is_closed()
        connections.pop().socket.close()
        until(lambda: connect_and_ask(s))
        for c in connections:
            c.socket.close()


def connect_and_ask(s):
    try:
        return s.get("/v2").status == 200
    except (EOFError, ConnectionError):
        return False


@test
def a_client_that_leaves_harms_nobody():
    with Server() as s:
        for _ in range(50):
            c = s.connect()
            c.send(f"{POST}Content-Length: 5000\r\n\r\n".encode() + b"x" * 100)
            c.socket.close()
            c = s.connect()
            body = infer_json(0)
            c.send(f"{POST}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            c.socket.close()
        assert s.infer(infer_json(0)).status == 200
        until(lambda: s.metric("fds_requests_open") == 1)
        assert s.metric("fds_body_bytes") == 0


@test
def pythons_own_client_works():
    with Server() as s:
        client = http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)
        for _ in range(3):
            client.request("POST", "/v2/models/mnist/infer", infer_json(0), {"Content-Type": "application/json"})
            reply = client.getresponse()
            assert reply.status == 200 and json.loads(reply.read())["model_name"] == "mnist"
        client.close()


# ---- signals ----

@test
def sigterm_answers_what_has_begun_and_ends_with_0():
    with Server("--drain-s", 1.5) as s:
        body = infer_json(0)
        begun, other = s.connect(), s.connect()
        begun.send(f"{POST}Content-Length: {len(body)}\r\n\r\n".encode() + body[:100])
        assert other.ask("GET", "/v2/health/ready").status == 200
        until(lambda: s.metric("fds_requests_open") == 2)  # it has begun; the other is ours
        s.process.terminate()
        until(lambda: other.ask("GET", "/v2/health/ready").status == 503)
        assert other.ask("GET", "/v2/health/live").json() == {"live": True, "ready": False}
        late = other.ask("POST", "/v2/models/mnist/infer", body)
        refused(late, 503, "about to stop")
        assert "retry-after" in late.headers
        begun.send(body[100:])
        assert begun.receive().status == 200
        assert s.process.wait(PATIENCE) == 0
        begun.socket.close()
        other.socket.close()
        assert [line["event"] for line in s.lines()][-1] == "stop"


@test
def sighup_exchanges_runs_under_load_without_losing_a_request():
    shutil.copytree(the_run(), "a.run")
    with Server(models={"mnist": "a.run"}) as s:
        old = s.get("/v2/models/mnist").json()["versions"]
        stop, codes = threading.Event(), []

        def load():
            with s.connect() as c:
                while not stop.is_set():
                    codes.append(c.ask("POST", "/v2/models/mnist.explain/infer", infer_json(1)).status)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(load) for _ in range(8)]
            try:
                shutil.rmtree("a.run")
                shutil.copytree(the_run("other", "--seed", 5), "a.run")
                for _ in range(3):
                    before = len(codes)
                    s.process.send_signal(signal.SIGHUP)
                    until(lambda: len(codes) > before + 20)
                until(lambda: s.get("/v2/models/mnist").json()["versions"] != old)
                shutil.rmtree("a.run")  # a run that is gone: the old one goes on
                s.process.send_signal(signal.SIGHUP)
                until(lambda: any("error" in line for line in s.lines("reload")))
            finally:
                stop.set()
            for job in jobs:
                job.result(PATIENCE)
        assert set(codes) == {200}, set(codes)
        assert s.infer(infer_json(0)).status == 200


@test
def sockets_of_systemd_are_used():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(16)
    port = listening.getsockname()[1]

    def pass_socket():
        os.dup2(listening.fileno(), 3)
        os.environ["LISTEN_PID"] = str(os.getpid())
    script = f"LISTEN_PID=$$ LISTEN_FDS=1 exec {FDS} serve --model mnist={the_run()} --port 1"
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment(), pass_fds=(3,) if listening.fileno() == 3 else (),
                               preexec_fn=None if listening.fileno() == 3 else pass_socket,
                               close_fds=listening.fileno() == 3)
    try:
        assert process.stdout.readline().decode().strip() == f"http://127.0.0.1:{port}"
        listening.close()
        with Connection(port) as c:
            assert c.ask("GET", "/v2").status == 200
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
        process.stdout.close()


@test
def https_needs_a_certificate_and_other_addresses_need_consent():
    for words, phrase in ((["--host", "0.0.0.0"], "loopback"), (["--host", "example.org"], "numeric"),
                          (["--tls-cert", "c.pem"], "go together"), (["--ledger", "l"], "keys"),
                          (["--price", "1"], "ledger"), (["--keys", "none.jsonl"], "none.jsonl")):
        out, err = fds("serve", "--model", f"mnist={the_run()}", "--port", 0, *words, code=2 if phrase != "none.jsonl" else 1)
        assert phrase in err, err
    if not shutil.which("openssl"):
        raise Skip("no openssl to make a certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", "k.pem", "-out",
                    "c.pem"], check=True, capture_output=True, timeout=PATIENCE)
    os.chmod("k.pem", 0o600)
    with Server("--tls-cert", "c.pem", "--tls-key", "k.pem") as s:
        assert s.address.startswith("https://")
        context = ssl.create_default_context(cafile="c.pem")
        client = http.client.HTTPSConnection("127.0.0.1", s.port, timeout=PATIENCE, context=context)
        client.request("POST", "/v2/models/mnist/infer", infer_json(0))
        assert client.getresponse().status == 200
        client.close()


@test
def mistakes_of_the_command_are_named():
    for words, code, phrase in (([], 2, "--model is missing"), (["--model", "x"], 2, "(got x)"),
                                (["--model", "a/b=x"], 2, "NAME=RUN"), (["--model", "a.explain=x"], 2, "reserved"),
                                (["--model", "a=none"], 1, "none"), (["extra"], 2, "is no option"),
                                (["--model", f"a={the_run()}", "--model", f"a={the_run()}"], 2, "twice")):
        out, err = fds("serve", "--port", 0, *words, code=code)
        assert out == "" and phrase in err, (words, err)
    out, err = fds("serve", "key", "k.jsonl", code=2)
    assert "--account" in err
    out, err = fds("serve", "key", "k.jsonl", "--account", "a", "--role", "king", code=2)
    assert "customer, provider, auditor or operator" in err


sys.exit(main())
