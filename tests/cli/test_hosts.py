# SPDX-License-Identifier: Apache-2.0
"""Several hosts, each a network namespace with a name of its own, joined by a bridge: a job of mpirun over TCP, whose
links are cut and whose ranks are frozen and killed. Skipped where namespaces are not allowed."""
import contextlib
import shutil
import time

from harness import *  # noqa: F403

WORKER = pathlib.Path(__file__).resolve().parents[1] / "utility/worker.py"
HOSTS = 3
NET = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
NAME = f"fds{os.getpid()}"


def call(*words):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def hosts():
    """Hosts 1, 2, 3 have the addresses NET.1, NET.2, NET.3; a fourth namespace is the switch."""
    if not shutil.which("mpirun") or not os.environ.get("FDS_MPI"):
        raise Skip("no mpirun, or the module for it was not built")
    names = [f"{NAME}-{i}" for i in range(HOSTS + 1)]
    made = []
    try:
        try:
            for name in names:
                call("ip", "netns", "add", name)
                made.append(name)
            call("ip", "-n", names[0], "link", "add", "name", "bridge0", "type", "bridge")
            call("ip", "-n", names[0], "link", "set", "dev", "bridge0", "up")
            for i in range(1, HOSTS + 1):
                call("ip", "-n", names[i], "link", "add", "name", "eth0", "type", "veth", "peer", "name", f"p{i}", "netns", names[0])
                call("ip", "-n", names[0], "link", "set", f"p{i}", "master", "bridge0", "up")
                call("ip", "-n", names[i], "addr", "add", f"{NET}.{i}/24", "dev", "eth0")
                call("ip", "-n", names[i], "link", "set", "eth0", "up")
                call("ip", "-n", names[i], "link", "set", "lo", "up")
            call("ip", "netns", "exec", names[1], "unshare", "-u", "hostname", names[1])
        except (OSError, subprocess.CalledProcessError) as why:
            raise Skip(f"no network namespaces: {getattr(why, 'stderr', why)}".strip())
        # what mpirun calls in place of ssh: AGENT HOST COMMAND...
        pathlib.Path("agent").write_text(f"""#!/bin/sh
host={NAME}-${{1##*.}}
shift
exec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"
""")
        os.chmod("agent", 0o755)
        yield
    finally:
        end_all()
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def start_job(mark, *args):
    env = dict(environment(), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MARK=mark,
               FDS_MPI_PATIENCE_S="1")
    env.pop("MALLOC_PERTURB_", None)  # Open MPI 4.1 reads memory that it has freed
    keep = [word for name in ("MARK", "FDS_MPI", "FDS_MPI_PATIENCE_S", "FDS_DATA") for word in ("-x", name)]
    words = ["mpirun", "--host", ",".join(f"{NET}.{i}" for i in range(1, HOSTS + 1)), "--mca", "plm_rsh_agent",
             os.path.abspath("agent"), "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca",
             "oob_tcp_if_include", "eth0", "--bind-to", "none", *keep, FDS, *map(str, args)]
    inside = f'hostname {NAME}-1; exec "$@"'
    return subprocess.Popen(["ip", "netns", "exec", f"{NAME}-1", "unshare", "-u", "sh", "-c", inside, "sh", *words],
                            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def slow_value(table, seconds="0.02"):
    return ["value", MNIST, "--players", 12, "--test", 4, "--coalitions", 400, "--threads", 1, "-q", "--utility",
            f"command:{sys.executable} {WORKER} --sleep {seconds}", "--table", table, "-o", f"{table}.csv"]


def wait_for_records(table, size=2000):
    path = f"{table}/00000.seg"
    for _ in range(3000):
        if os.path.exists(path) and os.path.getsize(path) > size:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} does not grow")


def rank_on(host):
    for pid in subprocess.run(["ip", "netns", "pids", f"{NAME}-{host}"], capture_output=True, text=True).stdout.split():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "fds":
                return int(pid)
    raise AssertionError(f"no rank on host {host}")


def finish(process, seconds=90):
    """Its exit code; None: it had to be ended, as an operator would."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        end_all()
        process.wait()
        return None


def end_all():
    """Ends all processes of all hosts."""
    for i in range(HOSTS + 1):
        for pid in subprocess.run(["ip", "netns", "pids", f"{NAME}-{i}"], capture_output=True, text=True).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def same_records(table):
    fds(*slow_value("one", "0"))
    a, b = (pathlib.Path(name, "00000.seg").read_bytes()[64:] for name in ("one", table))
    assert a == b


@test
def hosts_compute_the_table_of_one():
    with hosts():
        assert finish(start_job("all", *slow_value("all"))) == 0
        same_records("all")


@test
def a_frozen_host_does_not_stop_the_job():
    with hosts():
        job = start_job("frozen", *slow_value("frozen"))
        wait_for_records("frozen")
        os.kill(rank_on(3), signal.SIGSTOP)
        # when it kills a rank, mpirun of Open MPI 4.1 sometimes crashes
        assert finish(job) in (0, -signal.SIGSEGV, 128 + signal.SIGSEGV)
        same_records("frozen")


@test
def a_killed_rank_ends_the_job_and_the_command_goes_on():
    with hosts():
        job = start_job("killed", *slow_value("killed"))
        wait_for_records("killed")
        os.kill(rank_on(2), signal.SIGKILL)
        assert finish(job) not in (0, None)
        assert finish(start_job("again", *slow_value("killed"))) == 0
        same_records("killed")


@test
def after_a_cut_link_the_command_ends_with_the_same_bytes():
    with hosts():
        job = start_job("cut", *slow_value("cut"))
        wait_for_records("cut")
        call("ip", "-n", f"{NAME}-3", "link", "set", "eth0", "down")
        code = finish(job, 30)  # rank 0 may have finished; Open MPI waits for the host that it cannot reach
        end_all()
        call("ip", "-n", f"{NAME}-3", "link", "set", "eth0", "up")
        print(f"# the job ended with {code}; values were {'' if os.path.exists('cut.csv') else 'not '}written")
        assert finish(start_job("again", *slow_value("cut"))) == 0
        same_records("cut")


main()
