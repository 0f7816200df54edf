# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of its own, for tests: on a socket in a temporary folder, without a network.

usage: postgres.py PROGRAM [ARGUMENT...]
Runs a test program, in C or Python, with FDS_TEST_POSTGRES, the URI of an empty database. Needs postgresql (scripts/deps
postgres); without it, the program is skipped.
"""
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

PATIENCE = 60


def binaries():
    """The folder of initdb and postgres, or None."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb") + [shutil.which("initdb") or ""]
    found = [path for path in found if path and os.path.exists(os.path.join(os.path.dirname(path), "postgres"))]
    found.sort(key=lambda path: [int(part) for part in re.findall(r"\d+", path)])
    return os.path.dirname(found[-1]) if found else None


def why_not():
    """Why there can be no server here, or None."""
    if not binaries():
        return "PostgreSQL is not installed"
    if os.geteuid() == 0 and not unprivileged():
        return "PostgreSQL does not run as root, and there is no user for it"
    return None


def unprivileged():
    """As whom root runs the server."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


def uri_of(folder, **options):
    """The URI of the database postgres on the socket in this folder; a schema sets the search_path."""
    words = {"host": folder, "user": "tester"}
    if "schema" in options:
        words["options"] = f"-csearch_path={options.pop('schema')}"
    words.update(options)
    return "postgresql:///postgres?" + urllib.parse.urlencode(words, quote_via=urllib.parse.quote)


class Postgres:
    """A running server, until the end of a with block."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fds-pg-")
        self.data = os.path.join(self.folder, "data")
        self.options = {}
        if os.geteuid() == 0:
            user = unprivileged()
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.bin = binaries()
        self.process = None
        self.run("initdb", "-D", self.data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # fast: it ends all sessions
            self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, name, *words):
        done = subprocess.run([os.path.join(self.bin, name), *words], capture_output=True, text=True, cwd="/",
                              check=False, **self.options)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self):
        """Returns when it answers."""
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.bin, "postgres"), "-D", self.data, "-k", self.folder, "-c", "listen_addresses=",
                 "-c", "fsync=on", "-c", "max_connections=20", "-c", "shared_buffers=16MB"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **self.options)
        end = time.monotonic() + PATIENCE
        while subprocess.run([os.path.join(self.bin, "pg_isready"), "-q", "-h", self.folder], check=False).returncode:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def kill(self):
        """The server and all its processes die at once, as in a loss of power."""
        children = self.process_ids()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        pid_file = os.path.join(self.data, "postmaster.pid")
        if os.path.exists(pid_file):
            os.remove(pid_file)

    def process_ids(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()[-3000:]

    def sql(self, text, schema="public"):
        """Runs statements; returns the lines of the answer."""
        return self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", uri_of(self.folder, schema=schema),
                        "-c", text).splitlines()

    def uri(self, **options):
        return uri_of(self.folder, **options)


def main():
    reason = why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    words = [sys.executable, "-B"] if sys.argv[1].endswith(".py") else []
    with Postgres() as server:
        return subprocess.run(words + sys.argv[1:], env={**os.environ, "FDS_TEST_POSTGRES": server.uri()},
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
