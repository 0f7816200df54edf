# SPDX-License-Identifier: Apache-2.0
"""--utility command:PROGRAM: answers of other programs, and programs that misbehave.

usage: test_external.py PATH_OF_FDS WORKER_IN_C      (FDS_TEST_DATA: the folder with the committed samples)
Prints TAP. Needs nothing but Python's standard library; where /usr/bin/python3 has scikit-learn, the
example in Python is tested too.
"""
import csv
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/cli"))
from harness import Skip, fds, fds_json, main, refused, start, test, write_csv  # noqa: E402

SHARES = os.path.abspath(sys.argv[2])
PYTHON = "/usr/bin/python3"
WORKERS = ROOT / "examples/workers"
PLAYERS = 6
VALUE = ["value", "shops.csv", "--players", "providers", "--test", 8, "-q"]


def worker(*options):
    return "command:" + " ".join([sys.executable, "-S", "-E", str(HERE / "worker.py"), *map(str, options)])


def value(utility, *options):
    return [*VALUE, "--utility", utility, *options]


def data(providers=PLAYERS):
    """Data, and a folder for temporary files that the test removes, whatever was killed."""
    os.environ["TMPDIR"] = os.getcwd()
    write_csv("shops.csv", rows=60, providers=providers)


def records(folder):
    """From coalition, a text of 0 and 1, to the probabilities of (input, class)."""
    about, found = json.loads(pathlib.Path(folder, "table.json").read_text()), {}
    players, size = about["players"], about["record_size"]
    for path in sorted(pathlib.Path(folder).glob("*.seg")):
        content = path.read_bytes()
        for at in range(64, len(content) - size + 1, size):
            if content[at:at + 8] != bytes(8):
                bits = struct.unpack_from("<Q", content, at + 8)[0]
                values = struct.unpack_from(f"<{about['inputs'] * about['classes']}f", content, at + 16)
                found["".join("01"[bits >> p & 1] for p in range(players))] = values
    return found


def files(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir() if path.is_file()}


def alive(text):
    """Numbers of processes whose command line has this text."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (path.parent / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text in line and state != "Z" and "--utility" not in line:  # not fds itself
            found.append(int(path.parent.name))
    return found


def gone(text, seconds=5):
    """Whether no such process is left after a while."""
    until = time.monotonic() + seconds
    while alive(text) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(text)


def with_limits(first, least):
    os.environ["FDS_COMMAND_FIRST_S"], os.environ["FDS_COMMAND_LEAST_S"] = str(first), str(least)


def usual_limits():
    os.environ.pop("FDS_COMMAND_FIRST_S", None), os.environ.pop("FDS_COMMAND_LEAST_S", None)


# ---- answers ----


@test
def the_answers_of_a_program_are_in_the_table():
    data()
    fds(*value(worker(), "--method", "exact", "--table", "t"))
    found, rows = records("t"), list(csv.DictReader(open("t/samples.csv")))
    own = [row for row in rows if row["role"] == "player"]
    assert len(found) == 2 ** PLAYERS
    counts = [sum(int(row["label"]) == y for row in own) for y in range(3)]
    prior = [count / len(own) for count in counts]
    assert all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(found["0" * PLAYERS], prior * 8))
    for players, probabilities in found.items():
        chosen = [i for i, row in enumerate(own) if players[int(row["player"])] == "1"]
        if not chosen:
            continue
        for i in range(8):
            row = [0.0] * 3
            for sample in chosen:
                label = int(own[sample]["label"])
                row[label] += 1 + (7 * i + 3 * label + sample) % 5
            wanted = struct.unpack("<3f", struct.pack("<3f", *(x / sum(row) for x in row)))
            assert probabilities[3 * i:3 * i + 3] == wanted, (players, i)


@test
def what_fds_knows_itself_is_not_asked_for():
    """No players, and players of one class: each provider of 3 has a class of its own."""
    data(providers=3)
    fds(*value(worker("--count", "asked"), "--method", "exact", "--table", "t", "--threads", 1))
    found = records("t")
    assert found["100"][:3] == (1, 0, 0) and found["001"][-3:] == (0, 0, 1)
    asked = pathlib.Path("asked").read_text().split()
    assert len(asked) == 2 * 4, asked  # four coalitions of two classes or more, each checked


@test
def values_equal_brute_force():
    data()
    fds(*value(worker(), "--method", "exact", "--table", "t", "-o", "v.json", "--target", "true"))
    found, result = records("t"), json.loads(pathlib.Path("v.json").read_text())
    labels = result["classes"]
    for x, prediction in enumerate(result["results"]):
        y = labels.index(prediction["label"])
        v = {s: p[3 * x + y] for s, p in found.items()}
        for player in range(PLAYERS):
            total = 0
            others = [p for p in range(PLAYERS) if p != player]
            for size in range(PLAYERS):
                weight = math.factorial(size) * math.factorial(PLAYERS - size - 1) / math.factorial(PLAYERS)
                for chosen in itertools.combinations(others, size):
                    without = "".join("01"[p in chosen] for p in range(PLAYERS))
                    joined = without[:player] + "1" + without[player + 1:]
                    total += weight * (v[joined] - v[without])
            assert abs(total - prediction["values"][player]) < 1e-9


@test
def the_number_of_processes_changes_no_bit():
    data()
    for threads in (1, 2, 3):
        fds(*value(worker(), "--coalitions", 40, "--table", f"t{threads}", "--threads", threads))
    assert files("t1") == files("t2") == files("t3")


@test
def baselines_and_least_squares_use_the_same_answers():
    data()
    fds(*value(worker("--count", "asked"), "--method", "exact", "--table", "t"))
    asked = pathlib.Path("asked").read_text()
    for method in ("ls", "loo", "tmc", "banzhaf"):
        options = ["--coalitions", 40] if method == "ls" else []
        fds(*value(worker("--count", "asked"), "--method", method, *options, "--table", "t"))
    assert pathlib.Path("asked").read_text() == asked, "the table had all of them"


@test
def a_changed_program_does_not_mix_with_old_results():
    data()
    fds(*value(worker(), "--method", "exact", "--table", "t"))
    before = files("t")
    refused(value(worker("--fingerprint", 2), "--method", "exact", "--table", "t"), 2, "command", "another")
    out, err = fds(*value(worker("--fault", "changing"), "--method", "exact", "--table", "u"), code=1)
    assert "was the program changed?" in err
    assert files("t") == before


# ---- programs that misbehave ----

FAULTS = {
    "die": ["failed three times", "exit code 3"], "kill": ["signal 9"],
    "close": ["closed its standard output"], "nan": ["class 1", "nan", "from 0 to 1"],
    "range": ["class 0", "1.5", "from 0 to 1"], "sum": ["sum to 1.01", "must sum to 1"],
    "id": ['answered question "99" instead of "1"'], "type": ['type "reply"', 'not "answer"'],
    "shape": ["(3, 8)", "must be (8, 3): inputs, classes"], "tensor": ['no tensor "probabilities"'],
    "huge": ["1152921504606846976 bytes", "print"], "print": ["print anything else to its standard output"],
    "garbage": ["header"], "truncated": ["exit code 0"], "fatal": ["it says: this cannot be learnt"],
    "retry": ["three times", "no licence just now"],
}


@test
def every_fault_is_named_and_loses_nothing():
    data()
    fds(*value(worker(), "--method", "exact", "--table", "whole"))
    expected = records("whole")
    for fault, phrases in FAULTS.items():
        table = f"{fault}.table"
        out, err = fds(*value(worker("--fault", fault), "--method", "exact", "--table", table, "--threads", 1), code=1)
        assert out == ""
        for phrase in ["the coalition of ", "players (shop-", *phrases]:
            assert phrase in err, (fault, phrase, err)
        kept = records(table)
        assert 1 <= len(kept) < 64 and all(expected[s] == kept[s] for s in kept), fault
    assert gone("worker.py")


@test
def a_table_of_a_failed_program_can_be_completed():
    """The same command line, once the program works."""
    data()
    shutil.copy(HERE / "worker.py", "program.py")
    command = value(f"command:{sys.executable} program.py --fault die", "--method", "exact", "--table", "t",
                    "--threads", 1)
    fds(*command, code=1)
    kept = records("t")
    pathlib.Path("program.py").write_text(
        pathlib.Path("program.py").read_text().replace("sys.exit(3)", "pass"))
    fds(*command)
    fds(*value(worker(), "--method", "exact", "--table", "u"))
    assert records("t") == records("u") and len(kept) < 64


@test
def a_program_that_fails_once_is_asked_again():
    data()
    fds(*value(worker(), "--method", "exact", "--table", "whole"))
    for fault in ("die", "kill", "close", "truncated", "garbage", "nan", "retry", "flood"):
        fds(*value(worker("--fault", fault, "--once", f"{fault}.done"), "--method", "exact", "--table", fault))
        assert os.path.exists(f"{fault}.done") and records(fault) == records("whole"), fault


@test
def what_a_program_does_before_it_is_ready_is_named():
    data()
    for fault, phrase in (("exit", "exit code 4"), ("babble", "announced a message"),
                          ("protocol", 'protocol "2"'), ("nameless", '"name" of 1 to 199')):
        out, err = fds(*value(worker("--fault", fault)), code=1)
        assert phrase in err and "a worker begins" in err, (fault, err)
    out, err = fds(*value("command:./no-such-program --depth 3"), code=1)
    assert "exit code 127" in err and "no-such-program" in err and "not found" in err
    refused(value("command:  "), 2, "needs a program")
    refused(value("command:" + "x" * 2000), 2, "at most 1000 bytes")
    assert not os.path.exists("shops.table")


@test
def a_command_line_may_be_any_of_the_shell():
    data()
    program = f"{sys.executable} -S -E '{HERE}/worker.py'"
    fds(*value(f"command:{program}", "--method", "exact", "--table", "t"))
    for number, line in enumerate((f"cd / && {program}", f"A=1 {program}", f"exec {program}", f"{program} 2> log",
                                   f"if true; then {program}; fi")):
        fds(*value(f"command:{line}", "--method", "exact", "--table", f"t{number}"))
        assert records(f"t{number}") == records("t"), line
    assert "a worker begins" in pathlib.Path("log").read_text()


@test
def the_last_lines_of_standard_error_are_shown():
    data()
    program = "for i in $(seq 30); do echo line $i >&2; done; exit 5"
    out, err = fds(*value("command:" + program), code=1)
    assert "line 11\n" in err and "line 10\n" not in err and err.rstrip().endswith("ends with: line 30"), err


@test
def a_flood_on_standard_error_blocks_nothing():
    data()
    began = time.monotonic()
    fds(*value(worker("--fault", "flood"), "--method", "exact", "--table", "t"))
    assert len(records("t")) == 64 and time.monotonic() - began < 60


@test
def silence_ends_at_the_limit():
    """Limits that a busy machine keeps, too, where nothing hangs."""
    data()
    with_limits(60, 1.5)
    out, err = fds(*value(worker("--fault", "hang"), "--method", "exact", "--table", "t", "--threads", 1), code=1)
    assert "did not answer within 1.5 s" in err, err
    fds(*value(worker("--fault", "hang", "--once", "done"), "--method", "exact", "--table", "u"))
    with_limits(0.5, 1.5)
    out, err = fds(*value("command:sleep 100"), code=1)
    assert "did not answer within 0.5 s" in err, err
    usual_limits()
    assert len(records("u")) == 64 and gone("worker.py") and gone("sleep 100")


@test
def probabilities_of_classes_that_a_coalition_lacks_are_refused():
    data(providers=3)
    fds(*value(worker(), "--method", "exact", "--table", "t"))
    out, err = fds(*value(worker("--fault", "missing"), "--method", "exact", "--threads", 1), code=1)
    assert "it must be 0, because the coalition has no sample of that class" in err, err


# ---- noise ----


@test
def a_program_that_changes_its_mind_is_found():
    data()
    out, err = fds(*value(worker("--fault", "noise"), "--method", "exact", "--table", "t"), code=1)
    for phrase in ("other answers when it is asked again", "input 0, class 0", "--allow-noise"):
        assert phrase in err, (phrase, err)


@test
def allowed_noise_is_measured_and_added_to_the_errors():
    data()
    exact = fds_json(*value(worker(), "--method", "exact", "--table", "t", "--global"))
    assert exact["noise"] is None
    for method, options in (("exact", []), ("ls", ["--coalitions", 40])):
        noisy = fds_json(*value(worker("--fault", "noise"), "--method", method, *options, "--table",
                                f"{method}.noisy", "--allow-noise", "--global", "-o", f"{method}.json"))
        errors = json.loads(pathlib.Path(f"{method}.json").read_text())["results"][0]["standard_errors"]
        assert 0 < noisy["noise"] < 1e-2 and all(error > 0 for error in errors), (noisy["noise"], errors)
        if method == "exact":  # the variance of a value over that of an answer, for 6 players
            share = (2 * sum(1 / math.comb(5, k) for k in range(6)) - 1) / 36
            assert all(math.isclose(error, noisy["noise"] * share ** 0.5, rel_tol=1e-9) for error in errors)
    out, err = fds(*value(worker("--fault", "noise"), "--method", "exact", "--table", "exact.noisy"), code=2)
    assert "noise" in err, "a table with noise is not one without"
    loo = fds_json(*value(worker("--fault", "noise"), "--method", "loo", "--allow-noise", "-o", "loo.json"))
    assert json.loads(pathlib.Path("loo.json").read_text())["results"][0]["standard_errors"][0] is None
    refused([*VALUE, "--allow-noise"], 2, "--allow-noise", "command:PROGRAM")
    err = fds(*value(worker("--fault", "noise"), "--allow-noise", "--until-error", 1e-12, "--table", "until"))[1]
    assert "--until-error 1e-12 is not reached: the noise of the program's answers alone" in err, err


# ---- ends of processes ----


@test
def a_killed_worker_is_replaced_and_the_bits_are_the_same():
    data()
    fds(*value(worker(), "--coalitions", 40, "--table", "whole"))
    asked = pathlib.Path("asked")
    slow = value(worker("--sleep", 0.05, "--count", asked.absolute()), "--coalitions", 40, "--table", "t")
    process = start(*slow, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    killed = seen = 0
    while process.poll() is None and killed < 5:
        time.sleep(0.01)
        size = asked.stat().st_size if asked.exists() else 0
        if size <= seen + 4:  # one that does not start at all is not replaced: let them answer first
            continue
        for pid in alive("worker.py")[:1]:
            os.kill(pid, signal.SIGKILL)
            killed += 1
            seen = size
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 0 and killed >= 3, (killed, err)
    assert records("t") == records("whole")


@test
def fds_killed_at_any_time_resumes_with_the_same_bits():
    data()
    command = value(worker("--sleep", 0.02), "--coalitions", 40, "--table", "t")
    fds(*value(worker("--sleep", 0.02), "--coalitions", 40, "--table", "whole"))
    chance = random.Random(1)
    for _ in range(4):
        process = start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 0.8))
        process.kill()
        process.wait()
        assert gone("worker.py"), "workers see the end of their input"
    fds(*command)
    assert files("t") == files("whole")


@test
def interrupted_fds_ends_within_a_second_with_all_its_processes():
    data()
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start(*value(worker("--sleep", 30, "--child"), "--coalitions", 40, "--table", "t"),
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + 10
        while len(alive("sleep 987")) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.2)
        assert len(alive("sleep 987")) >= 2
        began = time.monotonic()
        process.send_signal(number)
        err = process.communicate(timeout=20)[1].decode()
        assert process.returncode == 128 + number and "interrupted" in err, err
        assert time.monotonic() - began < 5, time.monotonic() - began
        assert gone("worker.py", 1) and gone("sleep 987", 1)


@test
def a_program_that_never_gets_ready_can_be_interrupted():
    data()
    process = start(*value("command:sleep 876"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.communicate(timeout=20)
    assert process.returncode == 130 and time.monotonic() - began < 5 and gone("sleep 876", 1)


@test
def nothing_is_left_behind():
    data()
    folder = pathlib.Path("temporary").absolute()
    folder.mkdir()
    os.environ["TMPDIR"] = str(folder)
    fds(*value(worker(), "--method", "exact", "--table", "t"))
    fds(*value(worker("--fault", "die"), "--method", "exact", "--table", "u"), code=1)
    assert not list(folder.iterdir())


# ---- fits ----

FIT = ["fit", "shops.csv", "--players", "providers", "--inputs", 20, "--coalitions", 40, "-q"]


@test
def a_run_is_fitted_and_explains_new_inputs():
    data()
    program = worker()
    report = fds_json(*FIT, "--utility", program, "-o", "r.run")
    assert report["explainer"] == "mlp" and "no sub-models to keep" in report["explainer_reason"]
    assert report["network"] is None and report["weights"] is None
    assert 0 <= report["test"]["accuracy"] <= 1
    refused(["explain", "r.run", "--index", "0", "-q"], 2, "--utility", "command:", "give it again")
    fds("explain", "r.run", "--index", "0..9", "--utility", program, "-q", "-o", "v.json")
    answers = json.loads(pathlib.Path("v.json").read_text())["results"]
    assert len(answers) == 10 and all(len(a["values"]) == PLAYERS for a in answers)
    table, run = records("r.run/utilities"), json.loads(pathlib.Path("r.run/run.json").read_text())
    rows = list(csv.DictReader(open("r.run/samples.csv")))
    asked = [row for row in rows if row["role"] in ("training", "validation")]
    sample = int(asked[0]["sample"])
    out, _ = fds("explain", "r.run", "--index", sample, "--utility", program, "-q", "-o", "w.json")
    assert "v(" not in out
    values = json.loads(pathlib.Path("w.json").read_text())["results"][0]
    y = [c for c in run["data"]["classes"]].index(values["label"])
    # one input alone has number 0 there, as the first input of the fit has in the table
    full, empty = table["1" * PLAYERS][y], table["0" * PLAYERS][y]
    assert math.isclose(sum(values["values"]), full - empty, abs_tol=1e-6)
    money, _ = fds("pay", "r.run", "--index", "0", "--amount", "10.00", "--utility", program, "-q")
    assert "10.00" in money


@test
def a_run_refuses_a_program_that_has_changed():
    data()
    fds(*FIT, "--utility", worker(), "-o", "r.run")
    refused(["explain", "r.run", "--index", "0", "-q", "--utility", worker("--fingerprint", 2)], 2,
            "the program of the run has changed")
    fds(*FIT, "--method", "afds", "-o", "net.run")
    refused(["explain", "net.run", "--index", "0", "-q", "--utility", worker()], 2, "does not apply")


@test
def what_a_program_cannot_do_is_refused():
    data()
    for options, phrases in (
            (["--explainer", "bank"], ["--explainer bank", "weights can be kept"]),
            (["--explainer", "probe"], ["--explainer probe", "weights can be kept"]),
            (["--keep-models"], ["--keep-models", "weights can be kept"]),
            (["--model", "mlp"], ["--model does not apply", "trains no network"]),
            (["--lr", 0.1], ["--lr does not apply"]),
            (["--method", "afds", "--epochs", 5], ["--epochs does not apply"]),
            (["--group", "model"], ["--group model", "needs a network"])):
        refused([*FIT, "--utility", worker(), "-o", "r.run", *options], 2, *phrases)
    refused([*VALUE, "--utility", worker(), "--method", "freeshap"], 2, "freeshap")


@test
def a_killed_fit_resumes_with_the_same_bits():
    data()
    command = [*FIT, "--threads", 1, "--utility", worker("--sleep", 0.01), "-o"]
    fds(*command, "whole.run")
    for seconds in (0.3, 0.6, 1.0):
        process = start(*command, "r.run", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.kill()
        process.wait()
    fds(*command, "r.run")
    for name in ("service.safetensors", "explainer.safetensors", "errors.safetensors", "utilities/00000.seg"):
        assert pathlib.Path("r.run", name).read_bytes() == pathlib.Path("whole.run", name).read_bytes(), name


# ---- the examples ----


def has_sklearn():
    return subprocess.run([PYTHON, "-c", "import sklearn"], capture_output=True).returncode == 0


def framed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<QQ", 8 + len(text) + len(data), len(text)) + text + data


@test
def the_example_in_python_refuses_broken_messages():
    if not has_sklearn():
        raise Skip(f"{PYTHON} has no scikit-learn")

    def says(message, *phrases):
        done = subprocess.run([PYTHON, WORKERS / "logistic.py"], input=message, capture_output=True, timeout=120)
        text = done.stderr.decode()
        assert done.returncode == 1 and not done.stdout, (message[:80], text)
        assert text.startswith("logistic.py: a message of fds cannot be used: ") and "Traceback" not in text, text
        assert all(phrase in text for phrase in phrases), (phrases, text)

    hello = {"__metadata__": {"type": "hello", "folder": "none", "classes": "2"}}
    says(b"\xff" * 8, "its length is 18446744073709551615")
    says(b"abc", "its length")
    says(framed(hello)[:-3], "no hello")
    says(framed(b"[]"), "no hello", "AttributeError")
    says(framed(b"[" * 100000), "no hello")
    says(framed({}), "KeyError")
    says(framed({"__metadata__": {"type": "eval"}}), "it is no hello")
    says(framed({"__metadata__": {**hello["__metadata__"], "task": "regression"}}), "needs classes")
    for change in ({"dtype": "F32"}, {"shape": [9]}, {"shape": [-1]}, {"shape": [1, 1]}, {"data_offsets": [0, 4]},
                   {"data_offsets": [-8, 0]}, {"shape": ["x"]}, {"data_offsets": [2**70, 2**70 + 8]}, {"shape": [2.0]}):
        samples = {"dtype": "I32", "shape": [2], "data_offsets": [0, 8], **change}
        says(framed({**hello, "samples": samples}, bytes(8)), "it is no hello")
    right = {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}
    says(framed({**hello, "samples": right}, struct.pack("<2i", 3, 2)), "not ascending and below 0")


@test
def the_example_in_python_equals_scikit_learn():
    if not has_sklearn():
        raise Skip(f"{PYTHON} has no scikit-learn")
    data()
    program = f"command:{PYTHON} {WORKERS / 'logistic.py'} --C 0.5"
    fds(*value(program, "--method", "exact", "--table", "t"))
    direct = """
import csv, json, sys, numpy as np
from sklearn.linear_model import LogisticRegression
rows = list(csv.DictReader(open("t/samples.csv")))
table = list(csv.DictReader(open("shops.csv")))
def values(role):
    chosen = [row for row in rows if row["role"] == role]
    return (np.array([[table[int(r["sample"])][k] for k in ("x1", "x2")] for r in chosen], np.float32),
            np.array([int(r["label"]) for r in chosen]), [r["player"] for r in chosen])
x, y, owner = values("player")
inputs = values("test")[0]
found = {}
for s in range(64):
    chosen = [i for i, p in enumerate(owner) if s >> int(p) & 1]
    if len(set(y[chosen])) < 2:
        continue
    model = LogisticRegression(C=0.5, max_iter=500, random_state=0).fit(x[chosen], y[chosen])
    answer = np.zeros((len(inputs), 3))
    answer[:, model.classes_] = model.predict_proba(inputs)
    found["".join("01"[s >> p & 1] for p in range(6))] = answer.astype(np.float32).astype(float).ravel().tolist()
print(json.dumps(found))
"""
    done = subprocess.run([PYTHON, "-c", direct], check=True, capture_output=True, text=True,
                          env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONHASHSEED="0"))
    found, wanted = records("t"), json.loads(done.stdout)
    assert len(wanted) > 50
    for players, probabilities in wanted.items():
        assert list(found[players]) == probabilities, players


@test
def the_examples_in_c_and_shell_agree_with_their_definitions():
    data()
    fds(*value(f"command:{SHARES}", "--method", "exact", "--table", "c"))
    fds(*value(f"command:sh {WORKERS / 'majority.sh'}", "--method", "exact", "--table", "sh"))
    own = [row for row in csv.DictReader(open("c/samples.csv")) if row["role"] == "player"]
    shares, majority = records("c"), records("sh")
    for players in shares:
        labels = [int(row["label"]) for row in own if players[int(row["player"])] == "1"]
        counts = [labels.count(y) for y in range(3)]
        if not labels:
            continue
        assert all(math.isclose(a, c / len(labels), rel_tol=1e-5, abs_tol=1e-9)
                   for a, c in zip(shares[players], counts * 8)), players
        best = counts.index(max(counts))
        assert majority[players] == tuple(float(y == best) for y in range(3)) * 8, players


@test
def the_examples_are_short_and_in_the_document():
    text = (ROOT / "docs/external.md").read_text()
    for path in WORKERS.iterdir():
        program = path.read_text()
        assert program.count("\n") <= 60, path.name
        assert program in text, f"docs/external.md does not have {path.name} as it is"


@test
def the_reader_of_the_example_in_c_survives_any_bytes():
    data()
    chance = random.Random(2)
    folder = pathlib.Path("data")
    folder.mkdir()
    (folder / "labels.npy").write_bytes(bytes(128) + struct.pack("<4i", 0, 1, 0, 1))

    def frame(fields, numbers=()):
        text = json.dumps({"__metadata__": fields, "samples": {
            "dtype": "I32", "shape": [len(numbers)], "data_offsets": [0, 4 * len(numbers)]}},
            separators=(",", ":")).encode()
        blob = struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(numbers)}i", *numbers)
        return struct.pack("<Q", len(blob)) + blob

    whole = frame({"type": "hello", "folder": str(folder), "samples": "4", "players": "2", "inputs": "3",
                   "classes": "2", "shape": "2,1,1", "seed": "0"})
    whole += frame({"type": "eval", "id": "1", "seed": "0"}, [0, 1, 3])
    done = subprocess.run([SHARES], input=whole, capture_output=True)
    assert done.returncode == 0 and len(done.stdout) > 150, done
    for _ in range(300):
        bad = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        bad = bytes(bad[:chance.randrange(len(bad))] if chance.random() < 0.3 else bad)
        done = subprocess.run([SHARES], input=bad, capture_output=True, timeout=20)
        assert done.returncode in (0, 1), (done.returncode, bad)


sys.exit(main())
