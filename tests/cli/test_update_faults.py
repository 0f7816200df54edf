# SPDX-License-Identifier: Apache-2.0
"""fds update and fds forget killed at system calls that write, without room on the disk, and given mistakes.

usage: test_update_faults.py FDS [--step K]     (FDS_TEST_DATA: the committed samples)

Every K-th call of each kind is tried, beginning with the first; K is 11 unless given. After each kill the same command must end
with the bytes of one that was never disturbed, and of a forgotten provider nothing may be left.
"""
import argparse
import sys
import resource
import shutil
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("fds")
PARSER.add_argument("--step", type=int, default=11)
ARGS = PARSER.parse_args()
STEP = ARGS.step
sys.argv[1:] = [ARGS.fds]  # what harness.py reads

from harness import *  # noqa: E402, F403

CALLS = ["pwrite64", "write", "fsync", "fdatasync", "rename", "ftruncate", "mkdir", "unlink", "rmdir", "flock"]
FIT = ["--test-file", "test.csv", "--changing", "yes", "--method", "afds", "--epochs", 1, "--inputs", 12, "--model",
       "logistic", "-q", "--players", "providers", "--coalitions", 20, "--keep-models", "--threads", 1]
GONE = "shop-3"


def rows(count, owner, first=0):
    """Numbers that no other file has by chance."""
    return [f"{i % 3 + (i * 7919 % 1000) / 1000 + .00037:.5f},{-(i % 3) + (i * 104729 % 1000) / 900:.5f},{'abc'[i % 3]},"
            f"{owner(i)}" for i in range(first, first + count)]


def write(name, lines, head="x1,x2,label,provider"):
    pathlib.Path(name).write_text("\n".join([head, *lines]) + "\n")


def setup():
    """Data and a run without and with the provider, made once for a folder."""
    train = rows(36, lambda i: f"shop-{i % 6}")
    write("train.csv", train)
    write("less.csv", [line for line in train if not line.endswith(GONE)])
    write("added.csv", rows(6, lambda i: "new", 100))
    write("test.csv", [line.rsplit(",", 1)[0] for line in rows(30, str, 200)], "x1,x2,label")
    fds("fit", "train.csv", *FIT, "-o", "old.run")
    return [line for line in train if line.endswith(GONE)]


def files(folder):
    found = {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}
    about = json.loads(found.pop("run.json"))
    for key in ("origin", "machine", "checksum"):
        about.pop(key)
    about["data"].pop("source")
    about["results"].pop("seconds")
    return found, about


def same(one, other):
    (a, about_a), (b, about_b) = files(one), files(other)
    assert a.keys() == b.keys(), a.keys() ^ b.keys()
    assert [name for name in a if a[name] != b[name]] == []
    assert about_a == about_b, (about_a, about_b)


def traces(folder, gone):
    """Files with the provider's name or a value of its samples, as text or as 4 or 8 bytes."""
    wanted = [GONE.encode()]
    for line in gone:
        x = [float(v) for v in line.split(",")[:2]]
        wanted += [struct.pack("<2f", *x), struct.pack("<2d", *x), line.split(",")[0].encode()]
    return [str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file()
            if GONE in path.name or any(text in path.read_bytes() for text in wanted)]


def traced(call, action, number, *args):
    """Runs with the numberth such call disturbed; whether it came to that."""
    done = subprocess.run(["strace", "-f", "-o", "log", "-e", f"trace={call}", "-e", f"inject={call}:{action}:when={number}",
                           FDS, *map(str, args)], env=dict(environment(), ASAN_OPTIONS="detect_leaks=0"), capture_output=True)
    if b"ptrace" in done.stderr:
        raise Skip("strace may not trace here")
    log = pathlib.Path("log").read_text(errors="replace")
    return done, "(INJECTED)" in log or "killed by SIGKILL" in log


def need_strace():
    if not shutil.which("strace"):
        raise Skip("strace is missing")


@test
def a_killed_update_is_ended_by_the_same_command():
    need_strace()
    setup()
    words = ["update", "old.run", "--add", "added.csv", "--remove", GONE, "-o", "new.run", "-q", "--threads", 1]
    fds(*words)
    os.rename("new.run", "want.run")
    before, kills = files("old.run"), 0
    for call in CALLS:
        number = 1
        while traced(call, "signal=KILL", number, *words)[1]:
            fds(*words)
            same("want.run", "new.run")
            shutil.rmtree("new.run")
            number, kills = number + STEP, kills + 1
        shutil.rmtree("new.run")
    assert files("old.run") == before
    print(f"# {kills} kills")
    assert kills > 10, kills


@test
def a_killed_forget_is_refused_until_it_is_ended_and_leaves_nothing():
    need_strace()
    gone = setup()
    shutil.copytree("old.run", "a.run")
    fds("fit", "less.csv", *FIT, "-o", "less.run")
    words = ["forget", "a.run", GONE, "-q", "--threads", 1]
    kills = refusals = 0
    for call in CALLS:
        number = 1
        while traced(call, "signal=KILL", number, *words)[1]:
            refusals += end_killed_forget(words, gone, kills % 4 == 1)
            number, kills = number + STEP, kills + 1
            shutil.rmtree("a.run")
            shutil.copytree("old.run", "a.run")
        shutil.rmtree("a.run")
        shutil.copytree("old.run", "a.run")
    print(f"# {kills} kills, {refusals} runs were asked meanwhile")
    assert kills > 10 and refusals, (kills, refusals)


def end_killed_forget(words, gone, asks):
    """The run is whole, without the provider, or refused; in the end nothing of it is left."""
    path = pathlib.Path("a.run/run.json")
    about = path.read_text() if path.exists() else "{}"
    is_complete = "results" in json.loads(about)
    is_asked = asks and not is_complete
    if is_asked:
        code = 2 if path.exists() else 1
        fds("explain", "a.run", "--index", 0, code=code)
        fds("pay", "a.run", "--index", 0, "--total", 1, "-o", "p.csv", code=code)
        refused(["serve", "--port", 0, "--model", "m=a.run", "-q"], code)
    fds(*words, code=1 if is_complete and GONE not in about else 0)
    assert traces("a.run", gone) == [], traces("a.run", gone)
    same("less.run", "a.run")
    return is_asked


@test
def a_call_that_fails_is_told_and_the_same_command_goes_on():
    need_strace()
    gone = setup()
    for words in (["update", "old.run", "--add", "added.csv", "-o", "a.run"], ["forget", "a.run", GONE]):
        words += ["-q", "--threads", 1]
        is_forget, told = words[0] == "forget", 0
        for call in ("pwrite64", "fsync", "fdatasync", "rename", "mkdir", "rmdir"):
            number, is_disturbed = 1, True
            while is_disturbed:
                shutil.rmtree("a.run", ignore_errors=True)
                if is_forget:
                    shutil.copytree("old.run", "a.run")
                done, is_disturbed = traced(call, "error=ENOSPC", number, *words)
                number += STEP
                assert done.returncode in (0, 1), (call, number, done.returncode, done.stderr)
                if done.returncode == 1:
                    assert done.stderr.startswith(b"fds "), (call, number, done.stderr)
                    told += 1
                    again = start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                    err = again.communicate(timeout=60)[1]
                    assert again.returncode == 0 or b"nothing of it is there" in err, (call, number, err)
                    assert not is_forget or traces("a.run", gone) == []
        assert told > 5, told


@test
def files_that_may_not_grow_leave_a_run_that_goes_on():
    gone = setup()
    fds("update", "old.run", "--add", "added.csv", "-o", "want.run", "-q", "--threads", 1)
    for limit in (100, 1000):
        shutil.rmtree("a.run", ignore_errors=True)
        shutil.copytree("old.run", "a.run")
        for words in (["update", "old.run", "--add", "added.csv", "-o", "new.run"], ["forget", "a.run", GONE]):
            done = subprocess.run([FDS, *words, "-q", "--threads", "1"], env=environment(), capture_output=True, text=True,
                                  preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                                      resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
            assert done.returncode == 1 and done.stderr.startswith("fds "), (limit, words, done)
            fds(*words, "-q", "--threads", 1)
        same("want.run", "new.run")
        assert traces("a.run", gone) == []
        shutil.rmtree("new.run")


@test
def a_closed_output_is_told_and_the_run_is_complete():
    gone = setup()
    for words in (["update", "old.run", "--add", "added.csv", "-o", "new.run"], ["forget", "old.run", GONE]):
        with open("/dev/full", "w") as full:
            fds(*words, "-q", code=1, stdout=full)
    fds("explain", "new.run", "--index", 0)
    fds("explain", "old.run", "--index", 0)
    assert traces("old.run", gone) == []


@test
def a_forget_that_is_killed_keeps_other_commands_away_and_reports_the_same():
    need_strace()
    gone = setup()
    shutil.copytree("old.run", "a.run")
    want, was_done = fds_json("forget", "a.run", GONE, "-q"), 0
    for call in ("rename", "rmdir", "unlink"):
        for number in range(1, 100, 1 if call != "unlink" else 3):
            shutil.rmtree("a.run")
            shutil.copytree("old.run", "a.run")
            if not traced(call, "signal=KILL", number, "forget", "a.run", GONE, "-q", "--threads", 1)[1]:
                break
            about = json.loads(pathlib.Path("a.run/run.json").read_text())
            if "results" in about:
                continue
            assert about.get("forgetting") == GONE or "forgot" in about, (call, number)
            if "forgot" in about:
                refused(["forget", "a.run", "nobody"], 1, "nothing of it is there")
                was_done += 1
            else:
                refused(["fit", "train.csv", *FIT, "-o", "a.run"], 2, "fds forget", "interrupted")
            report = fds_json("forget", "a.run", GONE, "-q")
            for key in ("provider", "removed", "reused", "trained", "sub_models"):
                assert report[key] == want[key], (call, number, key, report)
            assert traces("a.run", gone) == [] and "forgot" not in pathlib.Path("a.run/run.json").read_text()
    assert was_done


@test
def links_are_refused_or_removed_and_never_followed():
    need_strace()
    setup()
    os.mkdir("mine")
    write("mine/utilities", ["keep"])
    for name in ("utilities", "models.bank", "run.json", "mine"):
        shutil.copytree("old.run", "a.run")
        if name != "mine":
            shutil.move(f"a.run/{name}", f"else.{name}")
        os.symlink(os.path.abspath(f"else.{name}" if name != "mine" else "mine"), f"a.run/{name}")
        before = files("a.run")
        refused(["forget", "a.run", GONE], 2, f"a.run/{name} is a link")
        assert files("a.run") == before
        shutil.rmtree("a.run")
    shutil.copytree("old.run", "a.run")
    number = 1
    while not os.path.exists("a.run/forget.made"):
        shutil.rmtree("a.run")
        shutil.copytree("old.run", "a.run")
        traced("unlink", "signal=KILL", number, "forget", "a.run", GONE, "-q", "--threads", 1)
        number += 1
    os.symlink(os.path.abspath("mine"), "a.run/mine")
    fds("forget", "a.run", GONE, "-q")
    assert os.listdir("mine") == ["utilities"] and not os.path.lexists("a.run/mine")


@test
def a_run_whose_table_is_another_is_refused():
    setup()
    fds("update", "old.run", "--remove", GONE, "-o", "less.run", "-q")
    for name in ("players", "inputs"):
        if name == "inputs":
            fds("update", "old.run", "--inputs", 10, "-o", "few.run", "-q")
        shutil.copytree("old.run", f"{name}.run")
        shutil.rmtree(f"{name}.run/utilities")
        shutil.copytree("less.run/utilities" if name == "players" else "few.run/utilities", f"{name}.run/utilities")
        refused(["update", f"{name}.run", "--remove", "shop-1", "-o", "new.run"], 1, "is not the table of")
        refused(["forget", f"{name}.run", "shop-1"], 1, "is not the table of")
        assert "results" in json.loads(pathlib.Path(f"{name}.run/run.json").read_text())


@test
def damaged_kept_sub_models_are_trained_again():
    gone = setup()
    fds("update", "old.run", "--add", "added.csv", "-o", "more.run", "-q")
    fds("update", "old.run", "--remove", GONE, "--threads", 1, "-o", "less.run", "-q")
    whole = pathlib.Path("old.run/models.bank").read_bytes()
    for damaged, said in ((bytes(72) + whole[72:], "is not a bank"), (whole[:50] + b"????" + whole[54:], "damaged"),
                          (whole[:100] + b"????" + whole[104:], "damaged"), (whole[:1000], ""),
                          (pathlib.Path("more.run/models.bank").read_bytes(), "byte 56")):
        shutil.copytree("old.run", "a.run")
        pathlib.Path("a.run/models.bank").write_bytes(damaged)
        err = fds("forget", "a.run", GONE, "--threads", 1)[1]
        assert said in err, err
        assert ("trained again" in err) == bool(said), err  # what is missing is trained without a word
        assert traces("a.run", gone) == []
        same("less.run", "a.run")
        shutil.rmtree("a.run")


@test
def weights_are_found_from_every_folder_and_missing_before_anything_changes():
    setup()
    os.mkdir("digits")
    for name in (f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")):
        pathlib.Path("digits", name).write_bytes(gzip.open(f"{MNIST}/{name}.gz").read())
    write("owners.csv", [f"{i},shop-{i % 4}" for i in range(300)], "sample,provider")
    words = ["fit", "digits", "--owners", "owners.csv", "--players", "providers", "--changing", "yes",
             "--method", "afds", "--epochs", 1, "--inputs", 10, "--coalitions", 10, "--model", "logistic", "-q", "--explainer", "resnet18",
             "--explainer-epochs", 1]
    fds(*words, "-o", "first.run")
    shutil.copy("first.run/explainer.safetensors", "weights.safetensors")
    fds(*words, "--weights", "weights.safetensors", "-o", "net.run")
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    fds("update", "../net.run", "--coalitions", 12, "-o", "more.run", "-q")
    os.rename("../weights.safetensors", "../gone.safetensors")
    refused(["forget", "../net.run", GONE], 1, "weights.safetensors")
    assert "results" in json.loads(pathlib.Path("../net.run/run.json").read_text())


@test
def no_other_provider_is_forgotten_before_the_first():
    need_strace()
    gone = setup()
    done, is_disturbed = traced("pwrite64", "signal=KILL", 4, "forget", "old.run", GONE, "-q")
    assert is_disturbed and json.loads(pathlib.Path("old.run/run.json").read_text())["forgetting"] == GONE
    refused(["forget", "old.run", "shop-4"], 2, f"\"{GONE}\"", "interrupted")
    refused(["update", "old.run", "--remove", "shop-4", "-o", "new.run"], 2, "fds forget")
    refused(["fit", "train.csv", *FIT, "-o", "old.run"], 2, "fds forget", "interrupted")
    fds("forget", "old.run", GONE, "-q")
    fds("forget", "old.run", "shop-4", "-q")
    assert traces("old.run", gone) == []


@test
def a_provider_without_whom_there_is_no_run_is_refused_before_anything_changes():
    setup()
    for i in range(3):
        fds("forget", "old.run", f"shop-{i}", "-q")
    before = files("old.run")
    assert "2 players are too few" in fds("forget", "old.run", GONE, code=2)[1]
    assert files("old.run") == before
    fds("explain", "old.run", "--index", 0)
    names = [word for i in (3, 4, 5) for word in ("--remove", f"shop-{i}")]
    assert "no player left" in fds("update", "old.run", *names, "-o", "new.run", code=2)[1]
    assert not os.path.exists("new.run")


@test
def a_run_in_use_is_not_marked():
    import fcntl
    setup()
    with open("old.run/utilities/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused(["forget", "old.run", GONE], 1, "in use by another process")
        refused(["update", "old.run", "--remove", GONE, "-o", "new.run"], 1, "in use by another process")
    fds("explain", "old.run", "--index", 0)
    folder = os.open("old.run", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    refused(["forget", "old.run", GONE], 1, "in use by another process")
    os.close(folder)
    fds("forget", "old.run", GONE, "-q")


@test
def folders_that_are_no_place_for_the_new_run_are_refused_untouched():
    setup()
    os.symlink("old.run", "link.run")
    for out in ("old.run", "./old.run", "old.run/", "link.run"):
        refused(["update", "old.run", "--coalitions", 24, "-o", out], 2, "own place")
    for out in ("old.run/new", "link.run/a/b"):
        refused(["update", "old.run", "--coalitions", 24, "-o", out], 2, "within old.run")
    shutil.copytree("old.run", "other.run")
    os.mkdir("notes")
    write("notes/a.txt", ["mine"])
    before = files("other.run")
    refused(["update", "old.run", "--remove", GONE, "-o", "other.run"], 2, "another folder")
    refused(["update", "old.run", "--remove", GONE, "-o", "notes"], 2, "a.txt", "empty folder")
    assert files("other.run") == before and os.listdir("notes") == ["a.txt"]


@test
def added_data_that_does_not_fit_is_named():
    setup()
    write("fewer.csv", ["1,a,new"], "x1,label,provider")
    write("other.csv", ["1,2,a,new"], "x1,x9,label,provider")
    write("more.csv", ["1,2,3,a,new"], "x1,x2,x3,label,provider")
    write("class.csv", ["1,2,zz,new"])
    write("text.csv", ["1,tall,a,new", "2,short,b,new"])
    write("hole.csv", ["1,2,a,new", "2,,b,new"])
    write("owned.csv", ["1,2,a"], "x1,x2,label")
    write("empty.csv", [])
    for name, phrase in (("fewer", "1 features"), ("other", "\"x9\""), ("more", "3 features"), ("class", "class \"zz\""),
                         ("text", "numbers"), ("hole", "missing values"), ("owned", "names no providers"),
                         ("empty", "no samples"), ("nowhere", "no such file")):
        code = 2 if name in ("text", "hole") else 1
        err = fds("update", "old.run", "--add", f"{name}.csv", "-o", "new.run", code=code)[1]
        last = err.strip().split("\n")[-1]
        assert last.startswith(f"fds update: {name}.csv") and phrase in last, err
        assert not os.path.exists("new.run")


@test
def names_are_taken_as_they_are():
    odd = ["my shop", "Ünï-çødé", "../x", "\"a,b\"", "--add", "shop-5"]
    setup()
    write("odd.csv", rows(36, lambda i: odd[i % 6]))
    fds("fit", "odd.csv", *FIT, "-o", "odd.run")
    for name in odd[:4]:
        name = name.strip("\"")
        fds("update", "odd.run", f"--remove={name}", "-o", "new.run", "-q")
        shutil.copytree("odd.run", "a.run")
        fds("forget", "a.run", "-q", "--", name)
        same("new.run", "a.run")
        shutil.rmtree("a.run")
        shutil.rmtree("new.run")
    refused(["update", "odd.run", "--remove", "my shop\n../x", "-o", "new.run"], 2, "--remove", "line break")
    refused(["forget", "odd.run", "my shop\n../x"], 2, "control character")
    refused(["update", "odd.run", "--remove", "shop5", "-o", "new.run"], 1, "did you mean \"shop-5\"")
    refused(["forget", "odd.run", "shop5"], 1, "nothing of it is there", "\"shop-5\"")


@test
def changes_one_after_the_other_are_a_fresh_fit():
    setup()
    train, added = (pathlib.Path(name).read_text().split("\n")[1:-1] for name in ("train.csv", "added.csv"))
    write("last.csv", rows(4, lambda i: "last", 300))
    both = [line for line in train if not line.endswith(GONE)] + added
    write("one.csv", both)
    write("two.csv", [line for line in both if not line.endswith("shop-1")] + rows(4, lambda i: "last", 300))
    write("three.csv", [line for line in both if not line.endswith("shop-1") and not line.endswith("new")] +
          rows(4, lambda i: "last", 300))
    fds("update", "old.run", "--add", "added.csv", "--remove", GONE, "-o", "1.run", "-q", "--threads", 1)
    fds("update", "1.run", "--add", "last.csv", "--remove", "shop-1", "-o", "2.run", "-q", "--threads", 1)
    for number, name in enumerate(("one", "two"), 1):
        fds("fit", f"{name}.csv", *FIT, "-o", f"{name}.run")
        same(f"{name}.run", f"{number}.run")
    fds("forget", "2.run", "new", "-q", "--threads", 1)
    fds("fit", "three.csv", *FIT, "-o", "three.run")
    same("three.run", "2.run")
    assert "added.csv" not in pathlib.Path("2.run/run.json").read_text()


@test
def ranks_update_the_run_of_one_process():
    if not shutil.which("mpirun") or not os.environ.get("FDS_MPI"):
        raise Skip("no mpirun, or the module for it was not built")
    setup()
    words = ["update", "old.run", "--add", "added.csv", "--remove", GONE, "-q", "--threads", "1"]
    fds(*words, "-o", "one.run")
    env = dict(environment(), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", ASAN_OPTIONS="detect_leaks=0")
    env.pop("MALLOC_PERTURB_", None)
    done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", FDS, *words, "-o", "two.run"], env=env,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == 0, done.stderr
    same("one.run", "two.run")


@test
def an_interrupted_command_ends_within_a_second_and_is_resumed():
    gone = setup()
    for name, heard in (("update", signal.SIGTERM), ("forget", signal.SIGINT)):
        words = ["update", "old.run", "--coalitions", 40, "-o", "new.run"] if name == "update" else ["forget", "old.run", GONE]
        process = start(*words, "-q", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.03)
        begin = time.monotonic()
        process.send_signal(heard)
        process.communicate(timeout=20)
        assert process.returncode in (0, 128 + heard, -heard, 130), process.returncode
        assert time.monotonic() - begin < 5  # other programs use the processors
        process = start(*words, "-q", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        err = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 0 or "nothing of it is there" in err, err
    assert traces("old.run", gone) == []


sys.exit(main())
