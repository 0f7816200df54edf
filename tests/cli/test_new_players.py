# SPDX-License-Identifier: Apache-2.0
"""fds explain --new-player: players that a run has never seen, valued by sub-models trained with them."""
import random
import shutil
import time

from harness import *  # noqa: F403

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../utility/worker.py")
HEAD = "x1,x2,x3,label,provider"
FIT = ["--test-file", "test.csv", "--players", "providers", "--method", "afds", "--model", "logistic", "--inputs", 20]


def rows(count, seed, owner):
    chance = random.Random(seed)
    return [f"{i % 3 + chance.gauss(0, .7):.4f},{-(i % 3) + chance.gauss(0, .7):.4f},{chance.gauss(0, 1):.4f},"
            f"{'abc'[i % 3]},{owner(i)}" for i in range(count)]


def write(path, lines, head=HEAD):
    pathlib.Path(path).write_text("\n".join([head, *lines]) + "\n")


def write_tensor(path, kind, shape, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    data = struct.pack(f"<{len(values)}{'f' if kind == '<f4' else 'i'}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)


def write_pictures(folder, pictures):
    """(count, channels, rows, columns) of floats, of two classes."""
    pathlib.Path(folder).mkdir()
    flat = [v for one in pictures for rows in one for row in rows for v in row]
    shape = (len(pictures), len(pictures[0]), len(pictures[0][0]), len(pictures[0][0][0]))
    write_tensor(f"{folder}/x.npy", "<f4", shape, flat)
    write_tensor(f"{folder}/y.npy", "<i4", (len(pictures),), [i % 2 for i in range(len(pictures))])


def write_data(players=5):
    write("train.csv", rows(12 * players, 1, lambda i: f"shop-{i // 3 % players}"))
    write("new.csv", rows(14, 3, lambda i: "new shop"))
    write("two.csv", rows(24, 4, lambda i: f"new-{i % 2}"))
    write("test.csv", [line.rsplit(",", 1)[0] for line in rows(45, 2, str)], HEAD.rsplit(",", 1)[0])


def fit(*more, epochs=4):
    fds("fit", "train.csv", *FIT, "--inputs-from", "test", "--explainer", "bank", *more, "-o", "run", "-q",
        *(["--epochs", epochs] if epochs else []))


def values(about):
    return [{p["player"]: p["value"] for p in asked["ranking"]} for asked in about["inputs"]]


@test
def sub_models_trained_with_a_player_agree_with_a_fit_of_all():
    write_data()
    fit("--changing", "yes", "--coalitions", 32)
    about = fds_json("explain", "run", "--index", "0..9", "--new-player", "new.csv")
    assert about["by"] == "sub-models trained with each new player" and about["new_models"] == 32, about["by"]
    assert all(p["standard_error"] == 0 for asked in about["inputs"] for p in asked["ranking"])
    lines = pathlib.Path("train.csv").read_text().split("\n")[1:-1]
    write("train.csv", lines[::-1])  # the samples of such a run may move
    assert fds_json("explain", "run", "--index", "0..9", "--new-player", "new.csv")["inputs"] == about["inputs"]
    write("train.csv", lines)
    # every coalition of both games: the values of the new player are the same but for 16 bits of weights
    fds("update", "run", "--add", "new.csv", "--coalitions", 64, "-o", "more", "-q")
    label = [asked["label"] for asked in about["inputs"]]
    for i, one in enumerate(values(about)):
        both = fds_json("explain", "more", "--index", i, "--target", label[i])
        assert abs(one["new shop"] - values(both)[0]["new shop"]) < 2e-3, (one, values(both)[0])


@test
def many_inputs_are_answered_by_what_was_trained_once():
    write_data(7)
    fit()
    out, err = fds("explain", "run", "--index", "0..24", "--new-player", "two.csv", "--new-models", 9)
    assert err.count("sub-models are trained") == 1 and "without and with each of 2 new players" in err, err
    assert "by sub-models trained with each new player" in out and "spread over the coalitions" in out, out
    about = fds_json("explain", "run", "--index", 0, "--new-player", "two.csv", "--new-models", 9)
    assert about["players"] == 7 and about["new_players"] == 2 and about["new_player"] == "two.csv", about
    assert about["new_models"] == 9 and 1 < about["trained_models"] <= 9, about
    assert "7 players of train.csv; 2 new players of two.csv" in out, out
    assert f"{about['trained_models']} with each new player, for 9 sets drawn" in out, out
    assert f"for {about['trained_models']} different coalitions" in err, err
    check_width(out)
    write("many.csv", [line.rsplit(",", 2)[0] for line in rows(150, 5, str)], "x1,x2,x3")
    out, err = fds("explain", "run", "--rows", "many.csv", "--new-player", "two.csv", "--new-models", 9, "-o", "v.json")
    assert err.count("sub-models are trained") == 1, err
    batches = json.loads(pathlib.Path("v.json").read_text())["results"]
    ask = ["explain", "run", "--rows", "many.csv", "--new-player", "two.csv", "--new-models", 9]
    whole = fds_json(*ask, "--threads", 2)
    assert len(batches) == 150 and len(whole["inputs"]) == 150
    assert whole["inputs"] == fds_json(*ask, "--threads", 1)["inputs"]
    assert whole["inputs"] != fds_json(*ask, "--seed", 5)["inputs"]
    for name in ("v.csv", "v.npy"):
        fds("explain", "run", "--index", "0..2", "--new-player", "two.csv", "-o", name, "-q")
        assert os.path.getsize(name) > 0
    fds("explain", "run", "--index", "0..2", "--new-player", "two.csv", "--png", "v.png", "-q")


@test
def factors_predict_unless_models_are_asked_for():
    write_data()
    fds("fit", "train.csv", *FIT, "--inputs-from", "test", "--explainer", "mlp", "--explainer-epochs", 2, "--rank", 3,
        "--rank-from", "samples", "-o", "run", "-q")
    about = fds_json("explain", "run", "--index", 0, "--new-player", "two.csv")
    assert about["by"] == "prediction from samples" and "new_models" not in about
    about = fds_json("explain", "run", "--index", 0, "--new-player", "two.csv", "--new-models", 8)
    assert about["new_models"] == 8
    assert "by prediction from samples" in fds("explain", "run", "--index", 0, "--new-player", "two.csv")[0]


@test
def regressions_and_programs_have_new_players_too():
    write_data()
    for name in ("train", "test", "new"):
        lines = pathlib.Path(f"{name}.csv").read_text().replace(",a", ",1.5").replace(",b", ",2").replace(",c", ",4")
        pathlib.Path(f"r-{name}.csv").write_text(lines)
    numbers = [{"test.csv": "r-test.csv"}.get(word, word) for word in FIT]
    fds("fit", "r-train.csv", *numbers, "--inputs-from", "test", "--task", "regression", "--epochs", 4, "-o", "r", "-q")
    about = fds_json("explain", "r", "--index", "0..3", "--new-player", "r-new.csv")
    assert about["task"] == "regression" and all(abs(v["new shop"]) > 1e-9 for v in values(about)), values(about)
    assert 1.5 < about["inputs"][0]["ranking"][0]["label"] < 4
    refused(["explain", "r", "--index", 0, "--new-player", "new.csv", "-q"], 1, "new.csv")
    program = f"command:{sys.executable} {os.path.abspath(WORKER)}"
    plain = [word for word in FIT if word not in ("--model", "logistic")]
    fds("fit", "train.csv", *plain, "--inputs-from", "test", "--utility", program, "--coalitions", 14, "--explainer",
        "linear", "--explainer-epochs", 2, "-o", "p", "-q")
    refused(["explain", "p", "--index", 0, "--new-player", "new.csv", "-q"], 2, "a run starts none by itself")
    about = fds_json("explain", "p", "--index", "0..1", "--new-player", "new.csv", "--utility", program)
    assert about["new_models"] == 32 and len(values(about)) == 2


@test
def values_of_a_noisy_program_are_never_exact():
    write_data(4)
    program = f"command:{sys.executable} {os.path.abspath(WORKER)} --fault noise"
    plain = [word for word in FIT if word not in ("--model", "logistic")]
    fds("fit", "train.csv", *plain, "--inputs-from", "test", "--utility", program, "--allow-noise", "--coalitions", 14,
        "--explainer", "linear", "--explainer-epochs", 2, "-o", "p", "-q")
    ask = ["explain", "p", "--index", "0..3", "--new-player", "new.csv", "--utility", program, "--new-models", 16]
    about = fds_json(*ask)
    assert all(p["standard_error"] > 0 for asked in about["inputs"] for p in asked["ranking"]), about
    out, err = fds(*ask)
    check_width(out)
    assert "noise of the program" in out and "exact" not in out + err and "for 16 coalitions" in err, (out, err)


COLOURS = ("blue", "green", "red")


def colour(lines, few=3, hot=False):
    """Another column: text, or what becomes of it."""
    for i, line in enumerate(lines):
        one = COLOURS[i // 2 % few]
        values, label, rest = line.split(",")[:3], line.split(",")[3], line.split(",")[4:]
        yield ",".join(values + ([str(int(one == c)) for c in COLOURS] if hot else [one]) + [label] + rest)


def write_colours(name, head, hot, few=3):
    lines = pathlib.Path(f"{name}.csv").read_text().split("\n")[1:-1]
    columns = ",".join(f"colour={c}" for c in COLOURS) if hot else "colour"
    write(f"{'hot' if hot else 'text'}-{name}.csv", list(colour(lines, few, hot)), head.replace("x3", f"x3,{columns}"))


@test
def columns_of_new_data_become_features_as_those_of_the_run():
    write_data()
    answers = []
    for hot, name in ((False, "text"), (True, "hot")):
        write_colours("train", HEAD, hot)
        write_colours("test", HEAD.rsplit(",", 1)[0], hot)
        write_colours("new", HEAD, hot, few=2)  # none is red
        words = [{"test.csv": f"{name}-test.csv"}.get(word, word) for word in FIT]
        fds("fit", f"{name}-train.csv", *words, "--inputs-from", "test", "--epochs", 4, "--explainer", "bank", "-o",
            name, "-q")
        answers.append(fds_json("explain", name, "--index", "0..9", "--new-player", f"{name}-new.csv"))
    assert answers[0]["inputs"] == answers[1]["inputs"], answers
    lines = [line.split(",") for line in pathlib.Path("text-new.csv").read_text().split("\n")[:-1]]
    text = [",".join([line[3], *line[:3], "extra", *line[4:]]) for line in lines]  # columns move, and there are more
    write("moved.csv", [line.replace("green", "purple") for line in text[1:]], text[0])
    out, err = fds("explain", "text", "--index", 0, "--new-player", "moved.csv")
    assert 'column "colour": 6 of 14 values are rare or unknown to the run' in err, err
    write("short.csv", [line.split(",", 1)[1] for line in text[1:]], text[0].split(",", 1)[1])
    refused(["explain", "text", "--index", 0, "--new-player", "short.csv", "-q"], 1, 'no column is named "colour"',
            "the data of the run")


@test
def new_data_may_have_all_values_that_the_run_lacked():
    write_data()
    lines = pathlib.Path("train.csv").read_text().split("\n")[1:-1]
    write("train.csv", [",".join(["", *line.split(",")[1:]]) if i % 7 == 0 else line for i, line in enumerate(lines)])
    fit("--missing", "mean")
    about = fds_json("explain", "run", "--index", 0, "--new-player", "new.csv")
    assert about["errors"].startswith("none"), about
    new = pathlib.Path("new.csv").read_text().split("\n")[1:-1]
    write("new.csv", [",".join([line.split(",")[0], "", *line.split(",")[2:]]) for line in new])
    err = fds("explain", "run", "--index", 0, "--new-player", "new.csv")[1]
    assert 'column "x2": 14 of 14 values are missing; the mean takes their place' in err, err


@test
def float_pictures_of_other_values_are_refused():
    bright = [[[[(7 * i + 3 * j) % 11 / 10 + i % 2 for j in range(4)] for _ in range(4)]] for i in range(24)]
    write_pictures("pictures", [[[[v / 2 for v in row] for row in one[0]]] for one in bright])
    write_pictures("bytes", [[[[v * 255 for v in row] for row in one[0]]] for one in bright])
    fds("fit", "pictures", "--players", 6, "--inputs", 12, "--method", "afds", "--epochs", 2, "--model", "logistic",
        "--coalitions", 20, "--explainer", "bank", "-o", "run", "-q")
    fds("explain", "run", "--index", 0, "--new-player", "pictures", "--new-models", 8, "-q")
    refused(["explain", "run", "--index", 0, "--new-player", "bytes", "--new-models", 8, "-q"], 1,
            "those of the run are from 0 to 1")


@test
def what_cannot_be_trained_is_refused():
    write_data()
    fit("--keep-models")
    ask = ["explain", "run", "--index", 0, "-q"]
    refused([*ask, "--new-player", "new.csv", "--new-models", 7], 2, "--new-models", "8")
    refused([*ask, "--new-models", 8], 2, "--new-models needs --new-player")
    refused([*ask, "--new-player", "new.csv", "--by", "bank"], 2, "--by bank and --check do not apply")
    write("wrong.csv", [line.replace(",a,", ",z,") for line in rows(9, 3, lambda i: "x")])
    refused([*ask, "--new-player", "wrong.csv"], 2, 'class "z", which the run does not have')
    write("wrong.csv", ["1,2,b,x", "0,1,a,x"], "x1,x2,label,provider")
    refused([*ask, "--new-player", "wrong.csv"], 1, "wrong.csv")
    lines = pathlib.Path("train.csv").read_text().split("\n")
    write("train.csv", [*lines[1:6], lines[6].replace(",a,", ",b,").replace(",c,", ",b,"), *lines[7:-1]])
    refused([*ask, "--new-player", "new.csv"], 2, "their checksum differs")
    os.rename("train.csv", "moved.csv")
    refused(["explain", "run", "--rows", "two.csv", "--new-player", "new.csv", "-q"], 1, "say where it is: --data")
    write("moved.csv", lines[1:-1])
    fds("explain", "run", "--rows", "two.csv", "--new-player", "new.csv", "--data", "moved.csv", "-q")


@test
def a_provider_whose_rows_are_gone_is_named():
    write_data()
    lines = pathlib.Path("train.csv").read_text().split("\n")[1:-1]
    # rows of a run for changing data may move; those of others stay where they were
    cases = (("yes", [line for line in lines if not line.endswith("shop-1")], "shop-1", 0),
             ("no", lines[:-3], lines[-1].rsplit(",", 1)[1], 9))
    for changing, left, name, samples in cases:
        write("train.csv", lines)
        fit("--changing", changing)
        ask = ["explain", "run", "--rows", "two.csv", "--new-player", "new.csv", "-q"]
        fds(*ask)
        write("train.csv", left)
        refused(ask, 2, "the samples of the players of run are no longer those in",
                f'provider "{name}" has {samples} samples there, and had 12', "bring them back")
        shutil.rmtree("run")


def answer_lines(*args, lines, code=0):
    """(answers, errors) of --jsonl"""
    done = subprocess.run([FDS, "explain", "run", "--jsonl", *map(str, args)], input="\n".join(lines), text=True,
                          capture_output=True, env=environment(), timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@test
def mistakes_of_all_lines_are_told_before_the_first():
    write_data()
    fit()
    ask = ["--new-player", "new.csv", "--new-models", 8]
    wrong = ((["--new-player", "nosuch.csv"], 1, "nosuch.csv"),
             (["--new-models", 8], 2, "--new-models needs --new-player"),
             ([*ask, "--target", "z"], 2, "--target must be predicted"),
             ([*ask, "--by", "bank"], 2, "--by bank and --check do not apply"))
    for options, code, phrase in wrong:
        answers, err = answer_lines(*options, lines=["[1, 2, 3]", "[1, 2, 3]"], code=code)
        assert not answers and phrase in err, (answers, err)
    answers, err = answer_lines(*ask, lines=["[1, 2, 3]", "[1, 2]", "[0, 1, 2]"])
    assert [len(a.get("ranking", [])) for a in answers] == [1, 0, 1] and "2 numbers" in answers[1]["error"], answers
    assert err.count("sub-models are trained") == 1, err


@test
def training_hears_ctrl_c():
    write_data(9)
    fit("--coalitions", 30, epochs=2000)
    process = start("explain", "run", "--index", 0, "--new-player", "two.csv", "--new-models", 4096,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"are trained" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    since = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - since < 5, process.returncode


sys.exit(main())
