# SPDX-License-Identifier: Apache-2.0
"""fds audit watch: a log in a folder and over HTTP that grows, shrinks, and is rewritten.

usage: test_watch.py FDS WRITE_LOG
Prints TAP. Needs nothing but Python's standard library; over HTTP, curl.
"""
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

WRITE_LOG = os.path.abspath(sys.argv.pop(2))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import Skip, fds, main, refused, test  # noqa: E402

KEPT = pathlib.Path("kept")


def write(*sizes, word="entry", keep_key=False):
    """The log anew, at all of these sizes; by the same key if it is kept."""
    key = pathlib.Path("log/key").read_bytes() if keep_key else None
    shutil.rmtree("log", ignore_errors=True)
    os.mkdir("log")
    if key:
        pathlib.Path("log/key").write_bytes(key)
        os.chmod("log/key", 0o600)
    subprocess.run([WRITE_LOG, "log", word, *map(str, sizes)], check=True)


def words(log="log"):
    vkey = pathlib.Path("log/vkey").read_text().strip()
    return ["audit", "watch", log, "--vkey", vkey, "-o", str(KEPT)]


def watch(log="log"):
    return json.loads(fds(*words(log), "--json")[0])


@test
def a_log_that_grows_is_followed():
    write(3)
    assert watch() == {"entries": 3, "before": 0, "checkpoint": "kept"}
    assert watch() == {"entries": 3, "before": 3, "checkpoint": "kept"}
    for sizes in ([3, 7], [3, 7, 256], [3, 256, 257], [3, 257, 70000], [3, 70000, 70001]):
        write(*sizes, keep_key=True)
        before = sizes[-2]
        if watch()["before"] != before:
            raise AssertionError(sizes)
    out, _ = fds(*words())
    assert out == "70001 entries, which begin with the 70001 of before\n"
    assert not pathlib.Path("kept.conflict").exists()
    assert KEPT.read_bytes() == pathlib.Path("log/checkpoint").read_bytes()


@test
def whole_tiles_stand_for_partial_ones():
    """A log may drop tile/0/000.p/3 once it has tile/0/000."""
    write(3)
    watch()
    write(3, 300, keep_key=True)
    shutil.rmtree("log/tile/0/000.p")
    assert watch()["entries"] == 300


@test
def a_log_that_shrinks_or_is_rewritten_is_told():
    for size, word, phrase in ((4, "entry", "has shrunk: it had 9 entries, and now has 4"),
                               (9, "other", "does not begin with the 9"),
                               (600, "other", "does not begin with the 9")):
        shutil.rmtree("log", ignore_errors=True)
        write(9)
        KEPT.unlink(missing_ok=True)
        watch()
        old = KEPT.read_bytes()
        write(size, word=word, keep_key=True)
        refused(words(), 1, phrase, "kept.conflict")
        assert KEPT.read_bytes() == old
        assert pathlib.Path("kept.conflict").read_bytes() == pathlib.Path("log/checkpoint").read_bytes()


@test
def damage_and_other_keys_are_told():
    write(300)
    watch()
    write(300, 600, keep_key=True)
    tile = pathlib.Path("log/tile/0/001")
    whole = tile.read_bytes()
    tile.write_bytes(whole[:-1])
    refused(words(), 1, "tile/0/001 has 8191 bytes instead of 8192")
    assert not pathlib.Path("kept.conflict").exists()
    tile.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    refused(words(), 1, "or its tiles are damaged")
    note = pathlib.Path("log/checkpoint")
    tile.write_bytes(whole)
    assert watch()["entries"] == 600
    note.write_text(note.read_text().replace("\n600\n", "\n601\n"))
    refused(words(), 1, "log: ")
    KEPT.unlink()
    write(3)  # by a new key
    before = words()
    write(3)
    refused(before, 1, "log: ")
    assert not KEPT.exists()
    refused(["audit", "watch", "log"], 2, "--vkey")
    refused(["audit", "watch", "nowhere", *before[3:]], 1, "nowhere/checkpoint")
    refused(["audit"], 2, "--ledger LEDGER")


@test
def over_http():
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    write(3)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="log")
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        assert watch(address)["entries"] == 3
        write(3, 1000, keep_key=True)
        assert watch(address) == {"entries": 1000, "before": 3, "checkpoint": "kept"}
        write(1000, word="other", keep_key=True)
        refused(words(address), 1, "does not begin with")
        server.shutdown()
    refused(words(address), 1, f"cannot fetch {address}/checkpoint: curl ended with exit code 7")
    assert sorted(os.listdir(".")) == ["kept", "kept.conflict", "log"]


sys.exit(main())
