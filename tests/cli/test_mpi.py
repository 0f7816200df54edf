# SPDX-License-Identifier: Apache-2.0
"""One fit by several processes (mpirun): the bytes of one process, whatever happens to a rank.

FDS_MPI names the module; without it, or without mpirun, everything is skipped.
"""
import shutil
import time

from harness import *  # noqa: F403

FIT = ["--players", 20, "--inputs", 40, "--coalitions", 100, "--method", "afds", "--threads", 1, "-q"]
WORKER = pathlib.Path(__file__).resolve().parents[1] / "utility/worker.py"


def slow_value(seconds, rows=400, players=12):
    """Values by a program that sleeps before each answer."""
    return ["value", MNIST, "--players", players, "--test", 4, "--coalitions", rows, "--threads", 1, "-q",
            "--utility", f"command:{sys.executable} {WORKER} --sleep {seconds}"]


def mpirun(ranks, *args, program=FDS, **more):
    if not shutil.which("mpirun") or not os.environ.get("FDS_MPI"):
        raise Skip("no mpirun, or the module for it was not built")
    env = dict(environment(), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)
    env.pop("MALLOC_PERTURB_", None)  # Open MPI 4.1 reads memory that it has freed
    env["ASAN_OPTIONS"] = "detect_leaks=0"  # and keeps some to the end
    words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks, program, *args]
    return subprocess.Popen([*map(str, words)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def mpi(ranks, *args, code=0, **more):
    process = mpirun(ranks, *args, **more)  # more: variables, and another program; code None: any but 0
    out, err = process.communicate(timeout=200)
    assert process.returncode == code or (code is None and process.returncode != 0), (process.returncode, out, err)
    return out, err


def same(one, other, *names):
    for name in names:
        assert pathlib.Path(one, name).read_bytes() == pathlib.Path(other, name).read_bytes(), name


def same_runs(one, other):
    same(one, other, "utilities/00000.seg", "utilities/table.json", "service.safetensors", "validation.json",
         "players.safetensors")
    for name in ("models.bank", "explainer.safetensors", "errors.safetensors"):
        assert pathlib.Path(one, name).exists() == pathlib.Path(other, name).exists()
        if pathlib.Path(one, name).exists():
            same(one, other, name)


def rank_of(job, rank):
    """The process of a rank, once it is there."""
    for _ in range(1000):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (path / "environ").read_bytes().split(b"\0")
                if (path / "comm").read_text().strip() == "fds" and b"OMPI_COMM_WORLD_RANK=%d" % rank in variables and \
                        f"MARK={job}".encode() in variables:
                    return int(path.name)
            except OSError:
                pass
        time.sleep(0.01)
    raise AssertionError(f"rank {rank} did not start")


def wait_for_records(path, size):
    for _ in range(2000):
        if os.path.exists(path) and os.path.getsize(path) > size:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} does not grow")


@test
def any_number_of_ranks_fits_the_run_of_one_process():
    fds("fit", MNIST, *FIT, "-o", "one.run")
    for ranks in (1, 2, 4, 8):
        out, err = mpi(ranks, "fit", MNIST, *FIT, "--mpi", "-o", f"{ranks}.run")
        assert out.count("next  ") == 1, out  # rank 0 alone reports
        same_runs("one.run", f"{ranks}.run")


@test
def ranks_train_the_sub_models_of_probes_and_networks():
    for more in (["--explainer", "probe"], ["--explainer", "mlp", "--epochs", 2], ["--keep-models"]):
        shutil.rmtree("one.run", ignore_errors=True)
        shutil.rmtree("3.run", ignore_errors=True)
        fds("fit", MNIST, *FIT, *more, "-o", "one.run")
        mpi(3, "fit", MNIST, *FIT, *more, "-o", "3.run")
        same_runs("one.run", "3.run")


@test
def ranks_train_what_an_update_lacks():
    fds("fit", MNIST, "--players", "all", "--changing", "yes", "--inputs", 40, "--coalitions", 100, "--method", "afds",
        "--epochs", 1, "--model", "logistic", "--threads", 1, "-q", "-o", "old.run")
    fds("update", "old.run", "--coalitions", 140, "--threads", 1, "-q", "-o", "one.run")
    mpi(3, "update", "old.run", "--coalitions", 140, "--threads", 1, "-q", "-o", "3.run")
    same_runs("one.run", "3.run")


@test
def ranks_compute_the_values_of_one_process():
    for store in ("f32", "f16"):
        more = ["--players", 10, "--test", 4, "--coalitions", 60, "--model", "logistic", "--store", store, "-q"]
        fds("value", MNIST, *more, "--table", f"one.{store}", "-o", f"one.{store}.csv")
        mpi(3, "value", MNIST, *more, "--threads", 2, "--table", f"3.{store}", "-o", f"3.{store}.csv")
        same(f"one.{store}", f"3.{store}", "00000.seg", "table.json")
        same(".", ".", f"one.{store}.csv")
        assert pathlib.Path(f"one.{store}.csv").read_bytes() == pathlib.Path(f"3.{store}.csv").read_bytes()


@test
def ranks_take_the_cases_of_a_comparison_in_turn():
    words = ["bench", MNIST, "--quick", "--seeds", 3, "--methods", "ls,afds,random", "--players", 10, "--test", 6, "--inputs",
             40, "--coalitions", 40, "--truth", 0, "--model", "logistic", "--explainer", "linear", "--threads", 1, "-q"]
    fds(*words, "-o", "one.report")
    out, err = mpi(2, *words, "-o", "two.report")
    assert out.count("two.report/report.html") == 1, out  # rank 0 alone reports
    one, two = (json.loads(pathlib.Path(f"{name}.report/report.json").read_text())["data"] for name in ("one", "two"))
    for data in (*one, *two):
        for row in data["rows"]:
            row.pop("timing")
    assert one == two


@test
def a_frozen_rank_has_its_rows_computed_by_others():
    fds(*slow_value(0), "--table", "one", "-o", "one.csv")
    words = [*slow_value(0.02), "--table", "frozen", "-o", "frozen.csv"]
    process = mpirun(4, *words, MARK="frozen", FDS_MPI_PATIENCE_S="1")
    wait_for_records("frozen/00000.seg", 2000)
    os.kill(rank_of("frozen", 2), signal.SIGSTOP)
    out, err = process.communicate(timeout=60)  # mpirun then ends the frozen one
    # when it kills a rank, mpirun of Open MPI 4.1 sometimes crashes
    assert process.returncode in (0, -signal.SIGSEGV), (process.returncode, err)
    # --sleep is in the command, so in table.json and headers too
    compare_records("one", "frozen")
    assert pathlib.Path("frozen.csv").exists()


@test
def a_rank_frozen_in_the_middle_of_a_message_holds_nothing_up():
    # none: else the receiver copies a large message from the memory of the sender, frozen or not
    mpi(2, os.environ.get("FDS_MPI"), program=os.environ.get("FDS_TEST_TRANSPORT"),
        OMPI_MCA_btl_vader_single_copy_mechanism="none")


def compare_records(one, other):
    """The probabilities of two tables whose descriptions differ."""
    a, b = (pathlib.Path(name, "00000.seg").read_bytes()[64:] for name in (one, other))
    assert a == b


def value_by(name, before, *more):
    """Values by the worker of the tests, which does something before each answer."""
    pathlib.Path(name).write_text(WORKER.read_text().replace("    time.sleep(args.sleep)\n", before))
    return ["value", MNIST, "--players", 5, "--test", 4, "--coalitions", 8, "--threads", 1, "-q", "--utility",
            f"command:{sys.executable} {os.path.abspath(name)} --fault noise", "--allow-noise", "--table", f"{name}.table"]


@test
def a_late_answer_with_noise_is_as_good_as_the_first():
    # rank 1 keeps its first answer until rank 0, which is asked instead, has given it and is at work on the next
    words = value_by("late.py", """
    rank, path = os.environ["OMPI_COMM_WORLD_RANK"], os.path.dirname(__file__) + "/"
    if rank == "1" and not os.path.exists(path + "asked"):
        open(path + "asking", "w").write(repr(chosen))
        os.rename(path + "asking", path + "asked")
    while not os.path.exists(path + ("late" if rank == "1" else "asked")):
        time.sleep(0.01)
    if rank == "0" and os.path.exists(path + "answered"):
        open(path + "late", "w")
        time.sleep(2)
    if rank == "0" and os.path.exists(path + "asked") and open(path + "asked").read() == repr(chosen):
        open(path + "answered", "w")
""")
    mpi(2, *words, FDS_MPI_PATIENCE_S="1")
    assert os.path.exists("late")


@test
def a_rank_that_still_computes_at_the_end_is_not_waited_for():
    words = value_by("slow.py", """
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        time.sleep(90)
""")
    start_s = time.monotonic()
    process = mpirun(2, *words, FDS_MPI_PATIENCE_S="1")
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGSEGV), (process.returncode, err)
    assert time.monotonic() - start_s < 60


@test
def a_killed_rank_ends_the_job_and_the_same_command_goes_on():
    fds(*slow_value(0), "--table", "one", "-o", "one.csv")
    words = [*slow_value(0.02), "--table", "killed", "-o", "killed.csv"]
    process = mpirun(3, *words, MARK="killed")
    wait_for_records("killed/00000.seg", 2000)
    os.kill(rank_of("killed", 1), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not os.path.exists("killed.csv")
    mpi(3, *words)
    compare_records("one", "killed")


@test
def a_failure_of_a_rank_is_told():
    words = ["value", MNIST, "--players", 12, "--test", 4, "--coalitions", 200, "-q", "--threads", 1, "--utility",
             f"command:{sys.executable} {WORKER} --fault fatal", "--table", "t"]
    process = mpirun(3, *words)
    out, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "this cannot be learnt" in err, err


@test
def mistakes_are_told():
    if not shutil.which("mpirun") or not os.environ.get("FDS_MPI"):
        raise Skip("no mpirun, or the module for it was not built")
    env = dict(environment(), FDS_MPI="/nowhere.so")
    done = subprocess.run([FDS, "fit", MNIST, *map(str, FIT), "--mpi", "-o", "x.run"], env=env, capture_output=True, text=True)
    assert done.returncode != 0 and "libopenmpi-dev" in done.stderr, done.stderr
    refused(["value", MNIST, "--method", "tmc", "--mpi"], 2, "--mpi needs")


@test
def a_process_that_its_launcher_started_alone_does_not_do_the_work_of_all():
    for name in ("PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        out, err = mpi(1, "fit", MNIST, *FIT, "--mpi", "-o", "x.run", code=None, **{name: "2"})
        assert f"{name} is 2" in err and not os.path.exists("x.run"), err
        mpi(1, "fit", MNIST, *FIT, "--mpi", "-o", f"{name}.run", **{name: "1"})


main()
