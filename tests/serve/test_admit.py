# SPDX-License-Identifier: Apache-2.0
"""Which runs fds serve takes: those that were validated and are good enough, or that an operator answers for.

The program's argument is the path of fds.
"""
import json
import os
import pathlib
import shutil
import signal
import sys

from server import (MNIST, Server, bearer, fds, infer_json, main, make_key, test, the_run, until)

GOOD = ["--players", 12, "--inputs", 60, "--coalitions", 1000, "--model", "logistic", "--threads", 1, "--method",
        "afds", "--epochs", 3, "--explainer", "bank"]


POOR = [20 if word == 1000 else word for word in GOOD]  # coalitions


def a_run(name, words):
    path = os.path.join(os.path.dirname(the_run()), name)
    if not os.path.exists(path):
        fds("fit", MNIST, *words, "-o", path, "-q")
    return path


def good_run():
    return a_run("good", GOOD)


def poor_run():
    return a_run("poor", POOR)


def refuse(*args, run=None, code=2):
    out, err = fds("serve", "--port", 0, "--model", f"mnist={run or poor_run()}", *args, code=code)
    assert out == ""
    return err


def figures(run):
    return json.loads(pathlib.Path(run, "validation.json").read_text())


def make_ledger():
    fds("ledger", "init", "a.ledger", "-q")
    fds("ledger", "topup", "a.ledger", "acme", "1.00", "--new", "-q")
    key = make_key()
    return key, ["--ledger", "a.ledger", "--keys", "keys.jsonl", "--price", "0.01"]


@test
def a_good_run_serves():
    found = figures(good_run())
    assert found["agreement"] > 0.9 and found["misallocation"] < 0.25, found
    with Server(models={"mnist": good_run()}, any_run=False) as s:
        assert s.infer(infer_json(0)).status == 200


@test
def a_poor_run_is_refused_with_every_reason():
    found = figures(poor_run())
    assert found["agreement"] < 0.9, found
    err = refuse()
    assert "may not serve" in err and f"agreement {found['agreement']:.3f} is below 0.9" in err, err
    assert "--force-run mnist" in err and "--force-reason" in err, err
    for option, value, phrase in (("--min-agreement", 0.999, "agreement"), ("--max-misallocation", 0.0001, "misallocation"),
                                  ("--min-coverage", 1, "coverage")):
        others = {"--min-agreement": 0, "--max-misallocation": 1, "--min-coverage": 0, option: value}
        err = refuse(*(w for pair in others.items() for w in pair), run=the_run())
        assert f"{phrase} 0." in err and err.count(" is below ") + err.count(" is above ") == 1, err


@test
def a_run_that_was_not_validated_is_refused_until_the_same_fit():
    run = shutil.copytree(good_run(), "old.run")
    text = json.loads(pathlib.Path(run, "run.json").read_text())
    assert "validation.json" in text["results"]["sha256"]
    os.remove(os.path.join(run, "validation.json"))
    err = refuse(run=run, code=1)
    assert "validation.json was lost, damaged or changed" in err, err
    fds("fit", MNIST, *GOOD, "-o", run, "-q")
    with Server(models={"mnist": run}, any_run=False) as s:
        assert s.get("/v2/health/ready").status == 200


@test
def a_changed_validation_is_refused():
    run = shutil.copytree(poor_run(), "changed.run")
    path = pathlib.Path(run, "validation.json")
    path.write_text(json.dumps(dict(figures(run), agreement=0.99, misallocation=0.01)))
    err = refuse(run=run, code=1)
    assert "validation.json was lost, damaged or changed" in err, err


@test
def who_forces_a_run_answers_for_it_in_the_log():
    key, words = make_ledger()
    operator = make_key("operator", "olga")

    def notes(server):
        """The texts of such entries, the oldest first."""
        entries = server.get("/api/entries?kind=audit", bearer(operator)).json()["entries"]
        return [e["text"] for e in reversed(entries) if e["text"].get("audit") == "force"]

    force = ["--force-run", "mnist", "--force-reason", "a pilot of two days"]
    for _ in range(2):  # a second start says nothing new
        with Server(*words, *force, models={"mnist": poor_run()}, any_run=False) as s:
            assert s.lines("force")
            assert s.infer(infer_json(0), headers=[bearer(key)]).status == 200
            s.process.send_signal(signal.SIGHUP)
            until(lambda: s.lines("reload"))
            note, = notes(s)
            assert note["reason"] == "a pilot of two days" and note["by"] and len(note["run"]) == 64, note
            assert any(text.startswith("agreement 0.") for text in note["fails"]), note
    with Server(*words, *force[:3], "for ever", models={"mnist": poor_run()}, any_run=False) as s:
        assert [n["reason"] for n in notes(s)] == ["a pilot of two days", "for ever"]
    fds("ledger", "verify", "a.ledger", "-q")


@test
def a_force_needs_a_reason_and_a_model():
    for words, phrase in ((["--force-run", "mnist"], "--force-reason"), (["--force-reason", "x"], "--force-run"),
                          (["--force-run", "mnist", "--force-reason", ""], "--force-reason"),
                          (["--force-run", "other", "--force-reason", "x"], "no --model has that name")):
        assert phrase in refuse(*words), words


@test
def a_poor_run_does_not_replace_a_good_one():
    os.symlink(good_run(), "now.run")
    with Server(models={"mnist": "now.run"}, any_run=False) as s:
        version = s.get("/v2/models/mnist").json()["versions"]
        os.remove("now.run")
        os.symlink(poor_run(), "now.run")
        s.process.send_signal(signal.SIGHUP)
        until(lambda: s.lines("reload"))
        assert "may not serve" in s.lines("reload")[0]["error"], s.lines("reload")
        assert s.get("/v2/models/mnist").json()["versions"] == version
        assert s.infer(infer_json(0)).status == 200


sys.exit(main())
