# SPDX-License-Identifier: Apache-2.0
"""Parts of a fit and of a table, computed apart and imported: the bytes are those of one machine."""
import fcntl
import shutil
import time

from harness import *  # noqa: F403

FIT = ["--players", 20, "--inputs", 40, "--coalitions", 40, "--method", "afds", "--threads", 1, "-q"]
VALUE = ["--players", 10, "--test", 4, "--coalitions", 30, "--model", "logistic", "-q"]
PARTS = 7
# not in bytes: run.json has times, .lock is empty, metrics.jsonl has seconds
RESULTS = ["explainer.safetensors", "errors.safetensors", "models.bank", "players.safetensors",
           "service.safetensors", "validation.json"]


def folder_bytes(path, suffix=""):
    return {file.name: file.read_bytes() for file in sorted(pathlib.Path(path).iterdir())
            if file.is_file() and file.name.endswith(suffix) and file.name != ".lock"}


def same_runs(one, other):
    assert folder_bytes(f"{one}/utilities") == folder_bytes(f"{other}/utilities")
    for name in RESULTS:
        a, b = pathlib.Path(one, name), pathlib.Path(other, name)
        assert a.exists() == b.exists(), name
        assert not a.exists() or a.read_bytes() == b.read_bytes(), name


def fill(i, folder, *more, of=PARTS):
    fds("table", "fill", MNIST, *FIT, "--part", f"{i}/{of}", "-o", folder, *more)


def kill_in_the_middle(words, is_begun):
    process = start(*words, stderr=subprocess.DEVNULL)
    while process.poll() is None and not is_begun():
        time.sleep(0.001)
    process.kill()
    return process.wait() == -signal.SIGKILL


def fitted_by_parts(*more):
    fds("fit", MNIST, *FIT, *more, "-o", "one.run")
    for i in (3, 7, 1, 2, 6, 4, 5):
        fill(i, f"part.{i}", *more)
    fill(5, "part.5-again", *more, "--threads", 2)
    assert folder_bytes("part.5/utilities") == folder_bytes("part.5-again/utilities")
    # killed in the middle, and resumed
    shutil.rmtree("part.2")
    words = ["table", "fill", MNIST, *FIT, "--part", f"2/{PARTS}", "-o", "part.2", *more]
    kill_in_the_middle(words, lambda: pathlib.Path("part.2/utilities/00000.seg").exists())
    fds(*words)
    report = fds_json("table", "import", "parts.run", "part.6", "part.2", "part.5-again", "part.1")
    assert report["kind"] == "run" and report["imported"] > 0 and report["repeated"] == 0, report
    report = fds_json("table", "import", "parts.run", "part.7", "part.5", "part.4", "part.3")
    assert report["repeated"] > 0
    # already now, before the fit
    assert folder_bytes("parts.run/utilities", ".seg") == folder_bytes("one.run/utilities", ".seg")
    fds("fit", MNIST, *FIT, *more, "-o", "parts.run")
    same_runs("one.run", "parts.run")


@test
def seven_parts_in_any_order_make_the_run_of_one_machine():
    fitted_by_parts()


@test
def parts_carry_the_sub_models_that_a_run_keeps():
    fitted_by_parts("--keep-models")
    shown = fds_json("table", "show", "part.3")
    assert 0 < shown["models"]["records"] < shown["models"]["slots"], shown
    assert fds_json("table", "show", "parts.run")["models"]["records"] == shown["models"]["slots"]


@test
def a_network_is_fitted_by_parts():
    fitted_by_parts("--explainer", "mlp", "--epochs", 3)


@test
def probes_are_fitted_by_parts():
    fitted_by_parts("--explainer", "probe")


@test
def a_missing_part_is_computed_by_the_fit():
    fds("fit", MNIST, *FIT, "-o", "one.run")
    for i in (1, 3):
        fill(i, f"part.{i}", of=3)
    fds("table", "import", "parts.run", "part.3", "part.1")
    fds("fit", MNIST, *FIT, "-o", "parts.run")
    same_runs("one.run", "parts.run")


@test
def a_part_without_its_bank_is_trained_again():
    fds("fit", MNIST, *FIT, "--keep-models", "-o", "one.run")
    for i in (1, 2):
        fill(i, f"part.{i}", "--keep-models", of=2)
    pathlib.Path("part.2/models.bank").unlink()
    fds("table", "import", "parts.run", "part.2", "part.1")
    fds("fit", MNIST, *FIT, "--keep-models", "-o", "parts.run")
    same_runs("one.run", "parts.run")


@test
def values_by_parts_are_those_of_one_machine():
    for store in ("f32", "f16"):
        more = [*VALUE, "--store", store]
        fds("value", MNIST, *more, "--table", f"one.{store}", "-o", f"one.{store}.csv")
        names = [f"value.{store}.{i}" for i in range(1, 5)]
        for i, name in enumerate(names, 1):
            fds("table", "fill-value", MNIST, *more, "--part", f"{i}/4", "-o", name)
        fds("table", "import", f"all.{store}", *reversed(names))
        fds("value", MNIST, *more, "--table", f"all.{store}", "-o", f"all.{store}.csv")
        assert folder_bytes(f"one.{store}") == folder_bytes(f"all.{store}")
        one, other = (pathlib.Path(f"{n}.{store}.csv").read_bytes() for n in ("one", "all"))
        assert one == other


@test
def exact_values_by_parts_are_those_of_one_machine():
    more = ["--players", 6, "--test", 4, "--method", "exact", "--model", "logistic", "-q"]
    fds("value", MNIST, *more, "--table", "one.exact", "-o", "one.exact.csv")
    for i in (1, 2):
        fds("table", "fill-value", MNIST, *more, "--part", f"{i}/2", "-o", f"exact.{i}")
    fds("table", "import", "all.exact", "exact.2", "exact.1")
    assert folder_bytes("one.exact", ".seg") == folder_bytes("all.exact", ".seg")


@test
def a_complete_part_computes_nothing():
    fill(1, "part.1", of=20)
    again = fds_json("table", "fill", MNIST, *FIT, "--part", "1/20", "-o", "part.1")
    assert again["computed"] == 0 and again["sub_models"] > 0, again
    fill(2, "part.1", of=20)  # a folder may have several
    assert fds_json("table", "show", "part.1")["records"] > again["sub_models"]
    more = fds_json("table", "fill", MNIST, *FIT, "--part", "1/20", "-o", "part.1")
    assert more["computed"] == 0


def patch(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


@test
def a_part_may_be_read_by_several_but_not_while_it_is_written():
    fill(1, "part.1", "--keep-models", of=20)
    for name in ("utilities/.lock", "models.bank"):
        with open(f"part.1/{name}") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # as another import
            fds("table", "import", "new.run", "part.1")
            fcntl.flock(file, fcntl.LOCK_EX)  # as the process that computes it
            refused(["table", "import", "new.run", "part.1"], 1, "in use")


@test
def damage_is_counted_where_a_part_is_shown():
    fill(1, "part.1", "--keep-models", of=20)
    whole = fds_json("table", "show", "part.1")
    assert (whole["damaged"], whole["models"]["damaged"]) == (0, 0), whole
    with open("part.1/models.bank", "rb") as file:
        record_size = int.from_bytes(file.read(32)[24:], "little")
    patch("part.1/models.bank", 72 + record_size // 2, b"\xff\xff\xff")
    hurt = fds_json("table", "show", "part.1")
    assert hurt["models"] == dict(whole["models"], damaged=1, records=whole["models"]["records"] - 1), hurt
    assert "some are damaged" in fds("table", "show", "part.1")[0]
    refused(["table", "import", "new.run", "part.1"], 1, "part.1/models.bank: record 0 ", "is damaged")


@test
def what_does_not_belong_together_is_refused_by_name():
    for i in (1, 2):
        fill(i, f"part.{i}", of=2)
    fill(2, "seed.2", "--seed", 5, of=2)
    refused(["table", "import", "new.run", "part.1", "seed.2"], 2, "part.1/utilities", "seed.2/utilities",
            "seed is 0 in the first, 5 in the second")
    assert not os.path.exists("new.run")
    refused(["table", "import", "new.run", "part.1", "nothing"], 1, "nothing is neither")
    fds("table", "import", "new.run", "part.1")
    refused(["table", "import", "new.run", "seed.2"], 2, "seed is 5 in the first, 0 in the second")
    size = fds_json("table", "show", "part.2")["record_size"]
    # part 2 of 2 has records 1, 3, ...: damage one, then make it another good one
    shutil.copytree("part.2", "hurt.2")
    patch("hurt.2/utilities/00000.seg", 64 + 3 * size + 40, b"\xff")
    refused(["table", "import", "new.run", "hurt.2"], 1, "hurt.2/utilities/00000.seg: record 3 ", "damaged")
    fds("table", "fill", MNIST, *FIT, "--part", "2/2", "-o", "hurt.2")  # repairs it
    assert folder_bytes("hurt.2/utilities") == folder_bytes("part.2/utilities")
    fds("table", "import", "new.run", "part.2")
    refused(["table", "import", "new.run", "new.run"], 1, "in use")


@test
def records_that_differ_are_refused_by_file_and_record():
    # the same description, but other answers: a program that has changed and does not say so
    worker = pathlib.Path(__file__).resolve().parents[1] / "utility/worker.py"
    for name, prime in (("a", "7"), ("b", "11")):
        pathlib.Path("worker.py").write_text(worker.read_text().replace("(7 * i", f"({prime} * i"))
        fds("table", "fill-value", MNIST, "--players", 6, "--test", 4, "--method", "exact",
            "--utility", f"command:{sys.executable} {os.path.abspath('worker.py')}", "--part", "2/3",
            "-o", f"differ.{name}", "-q")
    fds("table", "import", "differ.all", "differ.a")
    refused(["table", "import", "differ.all", "differ.b"], 1, "differ.b/00000.seg: record ", "bytes differ",
            "differ.all/00000.seg")


@test
def the_plan_of_a_part_must_be_that_of_the_table():
    common = ["--players", 10, "--test", 4, "--coalitions", 30, "--model", "logistic", "-q"]
    fds("table", "fill-value", MNIST, *common, "--part", "1/2", "-o", "draw.1")
    refused(["table", "fill-value", MNIST, *common, "--draw", 2, "--part", "2/2", "-o", "draw.1"], 2,
            "draw.1 has parts of another plan: draw is 0 in the folder, 2 now", "another folder")
    fds("table", "fill-value", MNIST, *common, "--draw", 2, "--part", "1/2", "-o", "draw.2")
    refused(["table", "import", "draws", "draw.1", "draw.2"], 2, "draw.1 and draw.2 have parts of different plans")
    # parts that an older version computed have no part.json: their records tell
    os.remove("draw.1/part.json")
    refused(["table", "fill-value", MNIST, *common, "--draw", 2, "--part", "1/2", "-o", "draw.1"], 2,
            "draw.1: record ", "another folder")
    os.remove("draw.1/part.json")
    refused(["table", "import", "draws", "draw.1", "draw.2"], 2, "draw.2/00000.seg: record ",
            "different plans")


@test
def parts_of_other_plans_are_refused_even_if_they_share_no_place():
    # part 2 of 2 has none of the places of part 1
    for more, what in ((["--draw", 2], "draw is 0 in the first, 2 in the second"),
                       (["--sampler", "paired"], 'sampler is "leverage" in the first, "paired" in the second')):
        for name, command, words in (("run", "fill", FIT), ("bank", "fill", [*FIT, "--keep-models"]),
                                     ("table", "fill-value", VALUE)):
            fds("table", command, MNIST, *words, "--part", "1/2", "-o", f"{name}.1")
            shutil.rmtree(f"{name}.2", ignore_errors=True)
            fds("table", command, MNIST, *words, *more, "--part", "2/2", "-o", f"{name}.2")
            refused(["table", "import", f"{name}.all", f"{name}.1", f"{name}.2"], 2, f"{name}.1", f"{name}.2", what)
            assert not os.path.exists(f"{name}.all")
            refused(["table", "import", f"{name}.1", f"{name}.2"], 2, f"{name}.1", f"{name}.2", what)


@test
def banks_of_other_plans_are_refused_before_anything_is_written():
    for i, more in ((1, []), (2, ["--draw", 2])):
        fds("table", "fill", MNIST, *FIT, "--keep-models", *more, "--part", f"{i}/2", "-o", f"part.{i}")
        os.remove(f"part.{i}/utilities/part.json")  # as an older version left them
    refused(["table", "import", "new.run", "part.1", "part.2"], 2, "part.1/models.bank and part.2/models.bank",
            "of other coalitions")
    assert not os.path.exists("new.run")
    fds("table", "import", "new.run", "part.1")
    before = folder_bytes("new.run/utilities")
    refused(["table", "import", "new.run", "part.2"], 2, "new.run/models.bank and part.2/models.bank")
    assert folder_bytes("new.run/utilities") == before


@test
def parts_of_a_longer_plan_go_with_those_of_a_shorter_one():
    fds("table", "fill-value", MNIST, *VALUE, "--part", "1/2", "-o", "part.1")
    more = [40 if word == 30 else word for word in VALUE]
    for i in (1, 2):
        fds("table", "fill-value", MNIST, *more, "--part", f"{i}/2", "-o", f"more.{i}")
    fds("table", "import", "all", "part.1", "more.1", "more.2")
    fds("value", MNIST, *more, "--table", "one", "-o", "one.csv")
    assert folder_bytes("one", ".seg") == folder_bytes("all", ".seg")


@test
def a_damaged_note_of_a_plan_is_named():
    fill(1, "part.1", of=2)
    note = pathlib.Path("part.1/utilities/part.json")
    note.write_text(note.read_text().replace('"draw": 0', '"draw": 1'))
    refused(["table", "import", "new.run", "part.1"], 1, "part.1/utilities/part.json is damaged")


@test
def mistakes_are_told_before_any_work():
    for part in ("0/3", "4/3", "3", "1/", "/3", "a/b", "1/3x", "-1/3"):
        refused(["table", "fill", MNIST, f"--part={part}", "-o", "x"], 2, "--part must be I/K")
    refused(["table", "fill", MNIST, "-o", "x"], 2, "--part I/K is missing")
    refused(["table", "fill", MNIST, "--part", "1/2"], 2, "-o FOLDER is missing")
    refused(["table", "fill-value", MNIST, "--method", "tmc", "--part", "1/2", "-o", "x"], 2, "ls or exact")
    refused(["table", "import", "x"], 2, "name the parts")
    refused(["table", "show", "nothing"], 1, "nothing is neither")
    fill(1, "part.1", of=20)
    fds("table", "fill-value", MNIST, *VALUE, "--part", "1/20", "-o", "table.1")
    refused(["table", "import", "x", "part.1", "table.1"], 2, "one kind at a time")
    refused(["table", "import", "table.1", "part.1"], 2, "table.1 is a table")
    check_width(fds("table", "show", "part.1")[0])
    fds("fit", MNIST, *FIT, "-o", "one.run")
    refused(["table", "fill", MNIST, *FIT, "--part", "1/2", "-o", "one.run"], 2, "one.run is a run")


main()
