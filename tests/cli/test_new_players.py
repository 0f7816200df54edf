# SPDX-License-Identifier: Apache-2.0
"""fds explain --new-player: players that a run has never seen, valued by sub-models trained with them."""
import random
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
    assert "by 9 sub-models trained with each new player" in out and "spread over the coalitions" in out, out
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
