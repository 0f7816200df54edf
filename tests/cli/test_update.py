# SPDX-License-Identifier: Apache-2.0
"""Data that changes: updated runs, and runs that forget a provider, have the bytes of a fresh fit."""
import random
import shutil
import time

from harness import *  # noqa: F403

HEAD = "x1,x2,x3,label,provider"
FIT = ["--test-file", "test.csv", "--changing", "yes", "--method", "afds", "--epochs", 2, "--inputs", 20,
       "--model", "logistic", "-q"]
PROVIDERS = [*FIT, "--players", "providers", "--coalitions", 60, "--keep-models"]
POINTS = [*FIT, "--players", "all", "--coalitions", 60]
GONE = "shop-3"


def rows(count, seed, owner):
    chance = random.Random(seed)
    return [f"{i % 3 + chance.gauss(0, .7):.4f},{-(i % 3) + chance.gauss(0, .7):.4f},{chance.gauss(0, 1):.4f},"
            f"{'abc'[i % 3]},{owner(i)}" for i in range(count)]


def write(path, lines, head=HEAD):
    pathlib.Path(path).write_text("\n".join([head, *lines]) + "\n")


def write_data():
    train = rows(48, 1, lambda i: f"shop-{i % 8}")
    train[11] = train[3]  # a sample that its provider has twice
    train[12] = train[2].replace("shop-2", "shop-4")  # and a copy of what another has
    added = rows(12, 3, lambda i: f"new-{i % 2}")
    write("train.csv", train)
    write("less.csv", [line for line in train if not line.endswith(GONE)])
    write("added.csv", added)
    write("more.csv", train + added)
    write("test.csv", [line.rsplit(",", 1)[0] for line in rows(45, 2, str)], HEAD.rsplit(",", 1)[0])
    return [line for line in train if line.endswith(GONE)]


def files(folder):
    """{path: bytes}, without what has times and places."""
    found = {str(path.relative_to(folder)): path.read_bytes()
             for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}
    about = json.loads(found.pop("run.json"))
    for key in ("origin", "machine", "checksum"):
        about.pop(key)
    about["data"].pop("source")
    about["results"].pop("seconds")
    return found, about


def same(one, other):
    (a, about_a), (b, about_b) = files(one), files(other)
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    for name in a:
        assert a[name] == b[name], f"{one} and {other} differ in {name}"
    assert about_a == about_b, (about_a, about_b)


def values(run):
    fds("explain", run, "--index", "0..9", "-o", f"{run}.csv", "-q")
    return pathlib.Path(f"{run}.csv").read_bytes()


def fit(data, run, *more):
    fds("fit", data, *more, "--threads", 1, "-o", run)


def update(run, out, *more):
    report = fds_json("update", run, *more, "-o", out, "-q")
    assert report["reused"] + report["trained"] == report["sub_models"], report
    return report


@test
def without_a_provider_an_updated_run_is_that_of_a_fresh_fit():
    write_data()
    for threads in (1, 2):
        for name, how in (("providers", PROVIDERS), ("points", POINTS)):
            fit("train.csv", f"{name}.old{threads}", *how)
            fit("less.csv", f"{name}.less{threads}", *how)
            report = update(f"{name}.old{threads}", f"{name}.new{threads}", "--remove", GONE,
                            "--threads", threads)
            assert report["reason"] is None and report["trained"] > 0, report
            if name == "providers":  # one of each pair does not have it
                assert report["reused"] == report["sub_models"] // 2, report
            same(f"{name}.less{threads}", f"{name}.new{threads}")
            assert values(f"{name}.less{threads}") == values(f"{name}.new{threads}")


@test
def with_added_data_an_updated_run_is_that_of_a_fresh_fit():
    write_data()
    for threads, (name, how) in enumerate((("providers", PROVIDERS), ("points", POINTS)), 1):
        fit("train.csv", f"{name}.old", *how)
        fit("more.csv", f"{name}.more", *how)
        report = update(f"{name}.old", f"{name}.new", "--add", "added.csv", "--threads", threads)
        assert 0 < report["reused"] < report["sub_models"], report
        same(f"{name}.more", f"{name}.new")
        assert values(f"{name}.more") == values(f"{name}.new")
        # and back again: the added file is no longer named
        report = update(f"{name}.new", f"{name}.back", "--remove", "new-0", "--remove", "new-1")
        assert report["reused"] > 0, report
        same(f"{name}.old", f"{name}.back")
        assert "added.csv" not in pathlib.Path(f"{name}.back/run.json").read_text()


@test
def more_coalitions_train_only_those_that_are_new():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    fit("train.csv", "more.run", *PROVIDERS, "--coalitions", 100)
    report = update("old.run", "new.run", "--coalitions", 100)
    assert report["reused"] == 60 + 20 + 2 and report["trained"] == 40, report
    same("more.run", "new.run")


@test
def fewer_inputs_reuse_all_and_more_inputs_say_why_none():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    for inputs in (12, 30):
        fit("train.csv", f"fresh.{inputs}", *PROVIDERS, "--inputs", inputs)
        report = update("old.run", f"new.{inputs}", "--inputs", inputs)
        assert (report["trained"] == 0) == (inputs == 12), report
        assert (report["reason"] is None) == (inputs == 12), report
        same(f"fresh.{inputs}", f"new.{inputs}")
    assert "16 bits" in report["reason"]


@test
def rows_in_another_order_are_the_same_players():
    write_data()
    fit("train.csv", "one.run", *PROVIDERS)
    lines = pathlib.Path("train.csv").read_text().split("\n")[1:-1]
    random.Random(5).shuffle(lines)
    write("train.csv", lines)
    report = update("one.run", "two.run", "--coalitions", 62)
    assert report["reason"] is None and report["trained"] == 2, report


@test
def a_provider_whose_samples_changed_is_trained_again():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    write("more-of-0.csv", rows(3, 9, lambda i: "shop-0"))
    report = update("old.run", "new.run", "--add", "more-of-0.csv")
    assert report["reused"] == report["sub_models"] // 2, report
    train = pathlib.Path("train.csv").read_text() + "\n".join(rows(3, 9, lambda i: "shop-0")) + "\n"
    pathlib.Path("all.csv").write_text(train)
    fit("all.csv", "all.run", *PROVIDERS)
    same("all.run", "new.run")


@test
def an_update_that_is_killed_is_resumed():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    fit("more.csv", "more.run", *PROVIDERS)
    chance = random.Random(1)
    for _ in range(4):
        shutil.rmtree("new.run", ignore_errors=True)
        process = start("update", "old.run", "--add", "added.csv", "-o", "new.run", "-q",
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.wait()
        update("old.run", "new.run", "--add", "added.csv", "--threads", 2)
        same("more.run", "new.run")


@test
def parts_and_imports_make_such_runs_too():
    write_data()
    fit("train.csv", "one.run", *PROVIDERS)
    for i in (1, 2):
        fds("table", "fill", "train.csv", *PROVIDERS, "--part", f"{i}/2", "-o", f"part.{i}")
    fds("table", "import", "parts.run", "part.2", "part.1")
    fit("train.csv", "parts.run", *PROVIDERS)
    same("one.run", "parts.run")


@test
def what_cannot_be_updated_says_why():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    fds("fit", MNIST, "--players", 20, "--inputs", 40, "--coalitions", 40, "--method", "afds", "-q", "-o", "plain.run")
    refused(["update", "plain.run", "--coalitions", 60, "-o", "new.run"], 2, "--changing yes", "depends on everybody")
    refused(["update", "old.run", "-o", "new.run"], 2, "nothing changes")
    refused(["update", "old.run", "--remove", "shop-99", "-o", "new.run"], 1, "no provider \"shop-99\"")
    refused(["update", "old.run", "--remove", GONE, "-o", "old.run"], 2, "its own place")
    refused(["fit", "train.csv", *FIT, "--players", 20, "-o", "new.run"], 2, "--changing", "--players")
    refused(["fit", "train.csv", *PROVIDERS, "--sampler", "paired", "-o", "new.run"], 2, "--sampler")
    refused(["fit", "train.csv", *PROVIDERS, "--normalise", "players", "-o", "new.run"], 2, "--normalise")
    write("test.csv", rows(45, 2, lambda i: "shop-0"))
    refused(["fit", "train.csv", *PROVIDERS, "-o", "new.run"], 2, "belongs to no player", "shop-0")


# ---- forgetting ----


def traces(folder, gone):
    """Files that have the provider's name or one of its samples: as text, bytes of floats, or doubles."""
    wanted = [GONE.encode()]
    for line in gone:
        x = [float(v) for v in line.split(",")[:3]]
        wanted += [line.encode(), struct.pack("<3f", *x), struct.pack("<3d", *x)]
        wanted += [v.encode() for v in line.split(",")[:3] if len(v) > 5]
    return [(path, text) for path in pathlib.Path(folder).rglob("*") if path.is_file()
            for text in wanted if text in path.read_bytes()]


@test
def a_forgotten_provider_leaves_no_trace_and_the_bytes_of_a_fresh_fit():
    gone = write_data()
    for threads in (1, 2):
        for name, how in (("providers", PROVIDERS), ("points", [*POINTS, "--keep-models"])):
            run = f"{name}.run{threads}"
            fit("train.csv", run, *how)
            fit("less.csv", f"{name}.less{threads}", *how)
            assert traces(run, gone)
            before = fds_json("table", "show", run)
            report = fds_json("forget", run, GONE, "-q", "--threads", threads)
            assert report["removed"]["samples"] == 6 and report["provider"] == GONE, report
            assert report["removed"]["records"] == before["records"] - report["reused"], report
            assert report["removed"]["models"] > 0 and report["reused"] > 0, report
            assert traces(run, gone) == [], traces(run, gone)
            same(f"{name}.less{threads}", run)
            assert values(run) == values(f"{name}.less{threads}")
            refused(["forget", run, GONE], 1, "nothing of it is there")


def write_digits(folder, keep):
    """MNIST's samples keep of 300 digits, and who owns them."""
    os.makedirs(folder)
    for name in (f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")):
        data = gzip.open(f"{MNIST}/{name}.gz").read()
        head, size = (16, 784) if "idx3" in name else (8, 1)
        if name.startswith("train"):
            kept = b"".join(data[head + size * i:head + size * (i + 1)] for i in keep)
            data = data[:4] + struct.pack(">I", len(keep)) + data[8:head] + kept
        pathlib.Path(folder, name).write_bytes(data)
    write(f"{folder}.csv", [f"{row},shop-{i % 6}" for row, i in enumerate(keep)], "sample,provider")


@test
def a_provider_of_pictures_is_forgotten_by_either_scale():
    write_digits("all", range(300))
    write_digits("rest", [i for i in range(300) if i % 6 != 3])
    for scale in ("fixed", "public"):
        more = ["--players", "providers", "--changing", "yes", "--normalise", scale, "--inputs-from", "test", "--inputs",
                60, "-q", "--coalitions", 60, "--method", "afds", "--epochs", 2, "--keep-models"]
        fit("all", f"{scale}.run", "--owners", "all.csv", *more)
        fit("rest", f"fresh-{scale}.run", "--owners", "rest.csv", *more)
        fds("forget", f"{scale}.run", GONE, "--threads", 1, "-q")
        same(f"{scale}.run", f"fresh-{scale}.run")


@test
def a_provider_can_be_forgotten_when_its_rows_are_gone_already():
    gone = write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    fit("less.csv", "less.run", *PROVIDERS)
    shutil.copy("less.csv", "train.csv")
    fds("forget", "old.run", GONE, "-q")
    assert traces("old.run", gone) == []
    same("less.run", "old.run")


@test
def samples_as_players_are_forgotten_when_their_rows_are_gone_already():
    gone = write_data()
    fit("train.csv", "old.run", *POINTS)
    fit("less.csv", "less.run", *POINTS)
    shutil.copy("less.csv", "train.csv")
    assert fds_json("forget", "old.run", GONE, "-q")["removed"]["samples"] == 6
    assert traces("old.run", gone) == []
    same("less.run", "old.run")


@test
def rows_of_a_removed_provider_stay_out_when_it_comes_back_with_a_file():
    gone = write_data()
    write("back.csv", rows(5, 6, lambda i: GONE if i < 3 else "shop-0"))
    write("less-and-back.csv", pathlib.Path("less.csv").read_text().split("\n")[1:-1] +
          pathlib.Path("back.csv").read_text().split("\n")[1:-1])
    fit("train.csv", "old.run", *PROVIDERS)
    fit("less-and-back.csv", "want.run", *PROVIDERS)
    update("old.run", "1.run", "--remove", GONE)
    update("1.run", "2.run", "--add", "back.csv")
    same("want.run", "2.run")
    update("2.run", "3.run", "--coalitions", 62)
    update("3.run", "4.run", "--coalitions", 60)
    same("want.run", "4.run")
    about = json.loads(pathlib.Path("4.run/run.json").read_text())
    sources = {p["name"]: s for p, s in zip(about["players"], about["origin"]["sources"])}
    assert sources.pop(GONE) == [1] and sources.pop("shop-0") == [0, 1], sources
    assert all(s == [0] for s in sources.values()), sources
    forgotten = [line for line in gone if line.endswith(GONE)]
    assert not any(line.split(",")[0].encode() in data for line in forgotten for data in files("4.run")[0].values())


@test
def added_data_names_its_own_providers():
    write_data()
    train = [line.rsplit(",", 1) for line in pathlib.Path("train.csv").read_text().split("\n")[1:-1]]
    write("plain.csv", [row for row, _ in train], HEAD.rsplit(",", 1)[0])
    write("owners.csv", [f"{i},{owner}" for i, (_, owner) in enumerate(train)], "sample,provider")
    fit("plain.csv", "old.run", *PROVIDERS, "--owners", "owners.csv")
    fit("more.csv", "more.run", *PROVIDERS)
    update("old.run", "new.run", "--add", "added.csv")
    same("more.run", "new.run")
    update("new.run", "back.run", "--remove", "new-0", "--remove", "new-1")
    same("old.run", "back.run")


@test
def of_equal_samples_without_providers_the_last_goes():
    write_data()
    lines = [line.rsplit(",", 1)[0] for line in pathlib.Path("train.csv").read_text().split("\n")[1:-1]]
    lines[20] = lines[10] = lines[3]  # three of them, which nothing tells apart
    head = HEAD.rsplit(",", 1)[0]
    write("train.csv", lines, head)
    write("less.csv", lines[:20] + lines[21:], head)
    write("least.csv", lines[:10] + lines[11:20] + lines[21:], head)
    for name in ("train", "less", "least"):
        fit(f"{name}.csv", f"{name}.run", *POINTS, "--keep-models")
    names = [player["name"] for player in json.loads(pathlib.Path("train.run/run.json").read_text())["players"]]

    def is_fresh(run, fresh):  # but for the names, which say the rows
        assert all(files(run)[0][name] == data for name, data in files(fresh)[0].items()
                   if name in ("models.bank", "explainer.safetensors") or name.startswith("utilities/0"))
    for i, at in enumerate((3, 10, 20)):
        update("train.run", f"{i}.run", "--remove", names[at])
        is_fresh(f"{i}.run", "less.run")
        update(f"{i}.run", f"{i}.again", "--coalitions", 62)
        update(f"{i}.again", f"{i}.back", "--coalitions", 60)
        same(f"{i}.run", f"{i}.back")
    update("train.run", "both.run", "--remove", names[20], "--remove", names[3], "--remove", names[3])
    is_fresh("both.run", "least.run")
    shutil.copy("less.csv", "train.csv")  # its row is gone already
    fds("forget", "train.run", names[3], "-q")
    is_fresh("train.run", "less.run")


@test
def a_class_that_only_the_forgotten_provider_has_goes_with_its_rows():
    write_data()
    lines = [line.replace(",a,", ",secret,") if line.endswith(GONE) else line
             for line in pathlib.Path("train.csv").read_text().split("\n")[1:-1]]
    write("train.csv", lines)
    write("less.csv", [line for line in lines if not line.endswith(GONE)])
    fit("train.csv", "old.run", *PROVIDERS)
    fit("less.csv", "less.run", *PROVIDERS)
    refused(["update", "old.run", "--remove", GONE, "-o", "new.run"], 2, "secret", "remove its rows")
    said = fds("forget", "old.run", GONE, code=2)[1]
    assert "secret" in said and "remove its rows" in said, said
    assert "results" in json.loads(pathlib.Path("old.run/run.json").read_text())
    shutil.copy("less.csv", "train.csv")
    report = fds_json("forget", "old.run", GONE, "-q")
    assert report["reused"] == 0 and "classes" in report["reason"], report
    assert not any(b"secret" in data for data in files("old.run")[0].values())
    same("less.run", "old.run")


@test
def an_added_provider_is_forgotten_with_the_name_of_its_file():
    write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    write(f"{GONE}-file.csv", rows(6, 4, lambda i: "guest"))
    update("old.run", "new.run", "--add", f"{GONE}-file.csv")
    assert f"{GONE}-file" in pathlib.Path("new.run/run.json").read_text()
    fds("forget", "new.run", "guest", "-q")
    assert f"{GONE}-file" not in pathlib.Path("new.run/run.json").read_text()
    same("old.run", "new.run")


@test
def a_killed_forget_is_ended_by_the_same_command():
    gone = write_data()
    fit("train.csv", "old.run", *PROVIDERS)
    fit("less.csv", "less.run", *PROVIDERS)
    before = files("old.run")
    shutil.copytree("old.run", "a.run")
    begin = time.monotonic()
    fds("forget", "a.run", GONE, "-q")
    lasts = time.monotonic() - begin
    chance, killed = random.Random(7), 0
    for _ in range(10):
        shutil.rmtree("a.run")
        shutil.copytree("old.run", "a.run")
        process = start("forget", "a.run", GONE, "-q", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, lasts))
        process.kill()
        killed += process.wait() != 0
        about = pathlib.Path("a.run/run.json")
        if about.exists() and "results" in json.loads(about.read_text()):
            # complete: not yet begun (but for a temporary file beside run.json), or all done
            now = files("a.run")
            is_old = now[1] == before[1] and all(now[0].get(name) == data for name, data in before[0].items())
            assert is_old or traces("a.run", gone) == []
        elif about.exists() and "forgetting" in json.loads(about.read_text()):
            refused(["explain", "a.run", "--index", 0], 2, "fds forget")
        out = start("forget", "a.run", GONE, "-q", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = out.communicate(timeout=120)[1].decode()
        assert out.returncode == 0 or "nothing of it is there" in said, said
        assert traces("a.run", gone) == []
        same("less.run", "a.run")
    assert killed > 0


@test
def a_forget_that_is_killed_at_each_step_is_ended():
    gone = write_data()
    if not shutil.which("strace"):
        raise Skip("strace is missing")
    fit("train.csv", "old.run", *PROVIDERS)
    fit("less.csv", "less.run", *PROVIDERS)
    for call in ("rename", "rmdir", "unlink"):
        for number in range(1, 40, 1 if call != "unlink" else 4):
            shutil.rmtree("a.run", ignore_errors=True)
            shutil.copytree("old.run", "a.run")
            done = subprocess.run(["strace", "-f", "-o", "log", "-e", f"trace={call}", "-e",
                                   f"inject={call}:signal=KILL:when={number}", FDS, "forget", "a.run", GONE, "-q",
                                   "--threads", "1"], env=environment(), capture_output=True)
            if done.returncode == 0:
                break
            if "ptrace" in done.stderr.decode():
                raise Skip("strace may not trace here")
            fds("forget", "a.run", GONE, "-q")
            assert traces("a.run", gone) == [], (call, number)
            same("less.run", "a.run")


main()
