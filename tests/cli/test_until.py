# SPDX-License-Identifier: Apache-2.0
"""--until-error: as many coalitions as the standard errors need, and the bytes of a command that was given
their number."""
import random
import shutil
import time

from harness import *  # noqa: F403

VALUE = [MNIST, "--players", 20, "--test", 10, "--model", "logistic", "--utility", "retrain:1"]
FIT = [MNIST, "--players", 20, "--inputs", 40, "--model", "logistic", "--method", "afds", "--epochs", 1, "-q"]
CHANGING = ["--test-file", "test.csv", "--changing", "yes", "--players", "providers", "--method", "afds", "--epochs", 1,
            "--inputs", 20, "--model", "logistic", "-q"]


def greatest(path):
    """The greatest standard error of each prediction in a file of values, sorted."""
    of = {}
    for line in pathlib.Path(path).read_text().splitlines()[1:]:
        cells = line.split(",")
        of[cells[0]] = max(of.get(cells[0], 0), float(cells[-1]))
    return sorted(of.values())


def files(run):
    """{path: bytes} of a run, without what has times; and its coalitions."""
    found = {str(path.relative_to(run)): path.read_bytes() for path in pathlib.Path(run).rglob("*") if path.is_file()}
    about = json.loads(found.pop("run.json"))
    return found, about["coalitions"]["count"], about["results"].get("until_error")


def same(one, other):
    a, b = files(one), files(other)
    assert a[0].keys() == b[0].keys(), (a[0].keys(), b[0].keys())
    for name in a[0]:
        assert a[0][name] == b[0][name], f"{one} and {other} differ in {name}"
    assert a[1] == b[1]


@test
def values_reach_the_error_with_the_bytes_of_a_fixed_number():
    counts = []
    for error in (0.02, 0.003, 0.0008):
        sampling = fds_json("value", *VALUE, "--until-error", error, "--table", "until.table", "-q")["sampling"]
        counts.append(sampling["coalitions"])
        assert sampling["until_error"]["wanted"] == error and sampling["until_error"]["is_reached"], sampling
        fds("value", *VALUE, "--until-error", error, "-o", "until.csv", "--table", "until.table", "-q")
        fds("value", *VALUE, "--coalitions", counts[-1], "-o", "fixed.csv", "-q", "--threads", 1)
        assert pathlib.Path("until.csv").read_bytes() == pathlib.Path("fixed.csv").read_bytes()
        reached = greatest("until.csv")
        assert reached[int(0.95 * len(reached) - 1e-9)] <= error, reached
    assert counts == sorted(counts) and counts[0] < counts[-1], counts
    for path in pathlib.Path("fixed.csv.table").iterdir():
        assert path.read_bytes() == (pathlib.Path("until.table") / path.name).read_bytes(), path


@test
def with_one_value_per_player_and_with_providers_too():
    write_csv("shops.csv", rows=180, providers=6)
    fds("value", *VALUE, "--global", "--until-error", 0.002, "-o", "mean.csv", "-q")
    assert greatest("mean.csv")[-1] <= 0.002
    shops = ["shops.csv", "--players", "providers", "--model", "logistic", "--utility", "retrain:1"]
    about = fds_json("value", *shops, "--until-error", 1e-9)  # six players have 62 coalitions
    assert about["sampling"]["coalitions"] == 62, about["sampling"]
    assert about["sampling"]["until_error"]["greatest"] < 1e-9, about["sampling"]


@test
def the_most_is_kept_and_said():
    out, err = fds("value", *VALUE, "--until-error", 1e-5, "--coalitions", 300)
    assert "warning: --until-error 1e-05 is not reached with 300 coalitions" in err, err
    assert "not reached" in out and "coalitions  300 " in out, out
    out, _ = fds("value", *VALUE, "--until-error", 1e-5, "--estimate")
    assert "more may follow" in out, out
    check_width(out)


@test
def a_fit_has_the_bytes_of_one_with_the_number_it_has_found():
    for name, more in (("kept", ["--keep-models"]), ("probe", ["--explainer", "probe"]), ("mlp", ["--explainer", "mlp"])):
        fds("fit", *FIT, *more, "--threads", 1, "--until-error", 0.004, "-o", f"{name}.until")
        _, count, reached = files(f"{name}.until")
        assert count > 200 and reached["is_reached"] and reached["greatest"] <= 0.004, (count, reached)
        fds("fit", *FIT, *more, "--threads", 1, "--coalitions", count, "-o", f"{name}.fixed")
        same(f"{name}.until", f"{name}.fixed")
        report = fds_json("fit", *FIT, *more, "--threads", 1, "--until-error", 0.004, "-o", f"{name}.until")
        assert report["resumed"] and abs(report["until_error"]["greatest"] - reached["greatest"]) < 1e-9, report
    refused(["fit", *FIT, "--keep-models", "--until-error", 0.005, "-o", "kept.until"], 2, "until_error is 0.004")


@test
def a_fit_that_is_killed_in_any_round_is_resumed():
    command = ["fit", *FIT, "--keep-models", "--threads", 2, "--until-error", 0.004, "-o"]
    fds(*command, "whole.run")
    chance = random.Random(1)
    for _ in range(6):
        shutil.rmtree("killed.run", ignore_errors=True)
        for _ in range(3):
            process = start(*command, "killed.run", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.02, 0.4))
            process.kill()
            process.wait()
        fds(*command, "killed.run")
        same("whole.run", "killed.run")


@test
def an_update_goes_on_from_the_coalitions_of_the_run():
    write_csv("shops.csv", rows=180, providers=12)
    lines = pathlib.Path("shops.csv").read_text().splitlines()
    pathlib.Path("test.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in [lines[0], *lines[1::3]]) + "\n")
    changing = ["shops.csv", "--test-file", "test.csv", "--changing", "yes", "--players", "providers", "--method", "afds",
                "--epochs", 1, "--inputs", 20, "--model", "logistic", "--keep-models", "-q"]
    fds("fit", *changing, "--coalitions", 100, "-o", "old.run")
    report = fds_json("update", "old.run", "--until-error", 0.00005, "-o", "new.run", "-q")
    count = files("new.run")[1]
    assert count > 100 and report["reused"] + report["trained"] == report["sub_models"], report
    assert report["reused"] >= 102 and report["until_error"]["greatest"] <= 0.00005, report
    fds("fit", *changing, "--coalitions", count, "-o", "fixed.run")
    same("new.run", "fixed.run")
    chance = random.Random(2)
    for _ in range(5):
        shutil.rmtree("new.run")
        for _ in range(3):
            process = start("update", "old.run", "--until-error", 0.00005, "-o", "new.run", stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.02, 0.4))
            process.kill()
            process.wait()
        fds("update", "old.run", "--until-error", 0.00005, "-o", "new.run", "-q")
        same("new.run", "fixed.run")
    # the number that was found stays when the data changes
    fds("update", "new.run", "--remove", "shop-3", "-o", "less.run", "-q")
    assert files("less.run")[1] == count and files("less.run")[2] is None


@test
def a_damaged_header_of_kept_sub_models_is_repaired():
    write_csv("shops.csv", rows=180, providers=12)
    lines = pathlib.Path("shops.csv").read_text().splitlines()
    pathlib.Path("test.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in [lines[0], *lines[1::3]]) + "\n")
    fds("fit", "shops.csv", *CHANGING, "--keep-models", "--coalitions", 100, "-o", "old.run")
    words = ["update", "old.run", "--until-error", 0.0005, "-o", "new.run"]
    fds(*words, "-q")
    path = pathlib.Path("new.run/models.bank")
    whole = path.read_bytes()
    for damaged in (bytes(72) + whole[72:], whole[:50] + b"????" + whole[54:], whole[:30], b""):
        path.write_bytes(damaged)
        fds(*words, "-q")
        assert path.read_bytes() == whole
    # renamed, and then lost to a power failure
    path.rename("new.run/models.bank.earlier")
    pathlib.Path("new.run/models.bank.earlier").write_bytes(bytes(72) + whole[72:])
    assert "trained again" in fds(*words)[1]
    assert path.read_bytes() == whole and not os.path.exists("new.run/models.bank.earlier")


@test
def a_small_game_is_asked_for_all_of_its_coalitions():
    write_csv("shops.csv", rows=120, providers=8)
    lines = pathlib.Path("shops.csv").read_text().splitlines()
    pathlib.Path("test.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in [lines[0], *lines[1::3]]) + "\n")
    fds("fit", "shops.csv", *CHANGING, "--coalitions", 236, "-o", "old.run")
    fds("update", "old.run", "--until-error", 1e-12, "-o", "new.run", "-q")
    count, reached = files("new.run")[1:]  # of 254, a twentieth validates
    assert count == 242 and reached["most"] == 242, (count, reached)


@test
def what_it_does_not_go_with_is_said():
    refused(["value", *VALUE, "--until-error", 0], 2, "--until-error")
    refused(["value", *VALUE, "--until-error", "nan"], 2, "--until-error")
    refused(["value", *VALUE, "--method", "tmc", "--until-error", 0.1], 2, "--until-error", "tmc")
    refused(["value", *VALUE, "--method", "exact", "--until-error", 0.1], 2, "--until-error", "exact")
    refused(["table", "fill", *FIT, "--until-error", 0.1, "--part", "1/2", "-o", "part"], 2, "cannot be divided")
    refused(["table", "fill-value", *VALUE, "--until-error", 0.1, "--part", "1/2", "-o", "part"], 2,
            "cannot be divided")


main()
