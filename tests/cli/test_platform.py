# SPDX-License-Identifier: Apache-2.0
"""examples/platform/run in a small form: 300 digits of ten providers, from the data to audited payments."""
import re
import shutil
import time

from harness import *  # noqa: F403

RUN = pathlib.Path(__file__).resolve().parents[2] / "examples/platform/run"
OPTIONS = "--model mlp --epochs 10 --coalitions 100 --inputs 100"
FIT = "--owners owners.csv --players providers --inputs-from test --method afds --keep-models " + OPTIONS
SOLD = 60


def start_platform():
    if not shutil.which("parallel"):
        raise Skip("GNU parallel is not installed: scripts/deps cluster")
    os.makedirs("my files", exist_ok=True)
    program = pathlib.Path("my files/fds").resolve()  # not a link, which the script would follow
    program.write_text(f'#!/bin/sh\nexec "{FDS}" "$@"\n')
    program.chmod(0o755)
    env = dict(environment(), FDS=str(program), DATA=MNIST, PROVIDERS="10", OPTIONS=OPTIONS, PARTS="4", SOLD=str(SOLD), OUT="out",
               MIN_AGREEMENT="0")
    return subprocess.Popen([RUN], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True)


def end(process):
    out = process.communicate(timeout=100)[0]
    assert process.returncode == 0, out
    return out


@test
def one_command_fits_sells_pays_and_audits_also_after_an_interruption():
    process = start_platform()
    while process.poll() is None and not os.path.exists("out/mnist.run.parts/1"):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    os.killpg(process.pid, signal.SIGTERM)  # programs in the background ignore the first
    process.communicate(timeout=60)
    assert process.returncode != 0 and not os.path.exists("out/a.ledger")

    out = end(start_platform())
    assert "no check alarms" in out, out
    assert re.search(r"^providers +10 with \d+ to \d+ digits, 300 in all$", out, re.M), out
    assert re.search(r"^agreement +0\.\d{3} .*10 validation inputs$", out, re.M), out
    assert re.search(r"^misallocated +\d+\.\d of each 100 paid$", out, re.M), out
    assert re.search(r"^elsewhere +\d+\.\d of each 100 than by all sub-models, for 100 digits", out, re.M), out
    assert re.search(r"^ +\d+\.\d if all providers got the same$", out, re.M), out
    assert re.search(r"^time +fit: .*interrupted calls", out, re.M), out
    os.chdir("out")
    for name in ("logins.txt", "customer.key", "operator.key", "keys.jsonl", "a.ledger.key"):
        assert os.stat(name).st_mode & 0o77 == 0, name
    fds("fit", MNIST, *FIT.split(), "-o", "one.run", "-q")
    for name in ("utilities/00000.seg", "models.bank", "service.safetensors"):
        assert pathlib.Path("one.run", name).read_bytes() == pathlib.Path("mnist.run", name).read_bytes(), name

    balances = fds_json("ledger", "balance", "a.ledger")["balances"]
    units = {b["account"]: int(b["units"]) for b in balances}
    assert sum(b["kind"] == "provider" for b in balances) == 10, balances
    assert units["acme"] == 100_000_000 - SOLD * 10_000, units  # a cent each
    os.chdir("..")
    assert "== fit" not in end(start_platform())  # nothing is fitted or paid twice
    os.chdir("out")
    assert fds_json("ledger", "balance", "a.ledger")["balances"] == balances


@test
def providers_are_of_unequal_size_and_prefer_a_digit():
    out = subprocess.run([RUN.parent / "owners.py", MNIST, "10"], check=True, capture_output=True, text=True).stdout
    owners = [line.split(",")[1] for line in out.splitlines()]
    with gzip.open(os.path.join(MNIST, "train-labels-idx1-ubyte.gz")) as file:
        labels = file.read()[8:]
    assert len(owners) == len(labels) == 300
    assert owners.count("clinic 10") > 2 * owners.count("clinic 02") > 0
    own = [owners[i] == f"clinic {label:02}" for i, label in enumerate(labels) if label]
    assert sum(own) / len(own) > 0.2, sum(own) / len(own)  # about 4/13 of them; 1/10 if nobody had preferences


sys.exit(main())
