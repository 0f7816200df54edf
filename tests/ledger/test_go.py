# SPDX-License-Identifier: Apache-2.0
"""A log as files, verified by Go's packages for transparency logs.

usage: test_go.py WRITE_LOG
Prints TAP. Needs Go and Debian's golang-golang-x-mod-dev (scripts/deps go).
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from tap import Skip, main, test  # noqa: E402

WRITE_LOG = os.path.abspath(sys.argv[1])
SIZES = [1, 2, 3, 7, 8, 255, 256, 257, 600, 1000]
BUILT = tempfile.TemporaryDirectory()


def verifier():
    """The compiled verifier; made once."""
    program = pathlib.Path(BUILT.name) / "verify"
    if program.exists():
        return program
    if not shutil.which("go"):
        raise Skip("Go is not installed")
    if not os.path.isdir("/usr/share/gocode/src/golang.org/x/mod/sumdb"):
        raise Skip("golang-golang-x-mod-dev is not installed")
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode",
           "GOCACHE": os.path.join(BUILT.name, "cache"), "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", program, HERE / "verify.go"], check=True, env=env)
    return program


def write(*sizes, word="entry"):
    verifier()
    subprocess.run([WRITE_LOG, "log", word, *map(str, sizes)], check=True)


def verify(*older, step=1):
    return subprocess.run([verifier(), "log", str(step), *older], capture_output=True, text=True)


def expect_refused(reasons, *older):
    """Go names one of the reasons."""
    done = verify(*older)
    assert done.returncode != 0, "Go accepted it"
    assert any(reason in done.stderr for reason in reasons), done.stderr


PROOF, TILE = "invalid transparency proof", "downloaded inconsistent tile"


@test
def go_verifies_the_log_at_every_size():
    for count, size in enumerate(SIZES):
        write(*SIZES[:count + 1])
        done = verify(*(f"checkpoint.{old}" for old in SIZES[:count]))
        assert done.returncode == 0, f"size {size}: {done.stderr}"
        assert done.stdout == f"{size}\n", done.stdout
        shutil.rmtree("log")


@test
def go_verifies_a_log_with_three_levels():
    write(65535, 65536, 65537, 65800)
    done = verify("checkpoint.65535", "checkpoint.65536", "checkpoint.65537", step=47)
    assert done.returncode == 0 and done.stdout == "65800\n", done.stderr


@test
def go_finds_a_changed_entry():
    write(300)
    path = pathlib.Path("log/tile/entries/000")
    path.write_bytes(path.read_bytes().replace(b"entry 7\n", b"entry 8\n", 1))
    expect_refused([PROOF])


@test
def go_finds_a_changed_tile():
    write(300)
    path = pathlib.Path("log/tile/0/000")
    data = bytearray(path.read_bytes())
    data[77] ^= 1
    path.write_bytes(data)
    expect_refused([PROOF, TILE])


@test
def go_finds_a_changed_checkpoint():
    write(300)
    path = pathlib.Path("log/checkpoint")
    path.write_text(path.read_text().replace("\n300\n", "\n301\n"))
    expect_refused(["invalid signature"])


@test
def go_finds_a_history_that_was_written_anew():
    """By the log itself, with its own key."""
    write(200, 300)
    kept, before = pathlib.Path("log/checkpoint.200").read_text(), verify("checkpoint.200")
    assert before.returncode == 0, before.stderr
    shutil.rmtree("log/tile")
    write(200, 300, word="other")
    after = verify("checkpoint.200")
    assert after.returncode == 0, after.stderr
    pathlib.Path("log/checkpoint.200").write_text(kept)
    expect_refused([PROOF], "checkpoint.200")


@test
def go_knows_the_key_of_another_log():
    write(5)
    pathlib.Path("log/vkey").write_text(
        "log.example/pay+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    expect_refused(["invalid verifier hash"])
    shutil.copy("log/checkpoint", "kept")
    shutil.rmtree("log")
    write(5)
    shutil.copy("kept", "log/checkpoint")
    expect_refused(["no verifiable signatures"])


sys.exit(main())
