# SPDX-License-Identifier: Apache-2.0
"""What the library shows to programs: headers, symbols, sizes.

usage: test_surface.py LIBRARY COMPILER...
Prints TAP. Needs nothing but Python's standard library, nm and compilers.
"""
import difflib
import os
import pathlib
import shutil
import subprocess
import sys

import headers
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tap import Skip, main, test  # noqa: E402

LIBRARY, COMPILER = os.path.abspath(sys.argv[1]), sys.argv[2:]
HERE = pathlib.Path(__file__).resolve().parent
FLAGS = [flag for flag in COMPILER if flag.startswith("-I")]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{headers.INCLUDE}"]


def compile_alone(compilers, *language):
    present = [name for name in compilers if shutil.which(name)]
    if not present:
        raise Skip(f"none of {', '.join(compilers)} is installed")
    for compiler in present:
        for header in headers.public_headers():
            done = subprocess.run([compiler, *FLAGS, *STRICT, *language, "-"], text=True,
                                  input=f"#include <{header}>\ntypedef int not_empty;\n",
                                  capture_output=True)
            assert done.returncode == 0, f"{compiler}: {header}\n{done.stderr}"


@test
def every_header_compiles_alone_as_c11():
    compile_alone(["gcc", "clang"], "-std=c11", "-x", "c")


@test
def every_header_compiles_alone_as_cpp17():
    compile_alone(["g++", "clang++"], "-std=c++17", "-x", "c++")


@test
def what_is_declared_is_exported_and_nothing_else():
    declared = set()
    for header in headers.public_headers():
        declared |= set(headers.functions(header, COMPILER))
    lines = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    exported = {line.split()[-1].partition("@")[0] for line in lines}
    assert len(declared) > 20, "the headers were not understood"
    assert declared <= exported, f"declared but not exported: {sorted(declared - exported)}"
    assert exported <= declared, f"exported but not declared: {sorted(exported - declared)}"


@test
def the_stable_header_is_as_recorded():
    wanted = (HERE / "abi.txt").read_text()
    got = headers.record(COMPILER)
    changes = "\n".join(difflib.unified_diff(wanted.splitlines(), got.splitlines(), "abi.txt",
                                             headers.STABLE, lineterm="", n=0))
    assert wanted == got, ("the stable header changed; if that is meant, run `make abi` and commit "
                           f"tests/surface/abi.txt\n{changes}")


@test
def every_function_is_documented():
    found = []
    for header in headers.public_headers():
        path = headers.INCLUDE / header
        if path.exists():
            found += [f"{header}: {name}" for name in headers.undocumented(path.read_text())]
    assert not found, ("without a comment above, on the line, or at the head of the group:\n" +
                       "\n".join(found))


@test
def the_reader_of_headers_understands_c():
    text = ("/* a group */\nFDS_API int fds_a(void);\nFDS_API int fds_b(int x,\n  int y);\n\n"
            "FDS_API int fds_c(void);\nFDS_API int fds_d(void); /* one line */\n\n"
            "FDS_API int *fds_e(int x, /* a word */\n   int y);\n\n/* apart\n */\n\n"
            "FDS_API void fds_f(void);\n\n/* A type. */\ntypedef struct fds_t fds_t;\n\n"
            "FDS_API int fds_g(void);\n\nFDS_API int fds_h(void);\n")
    assert headers.undocumented(text) == ["fds_c", "fds_f", "fds_h"]
    pathlib.Path("some.h").write_text(
        "#define X(n) FDS_##n,\nenum fds_e { X(A) X(B) };\ntypedef struct fds_s { int a; } fds_s;\n"
        '__attribute__((visibility("default"))) fds_s *fds_get(const char *name,\n'
        "  int (*f)(int));\n"
        "static inline int fds_twice(int x) { return 2 * x; }\nextern int fds_last(void);\n"
        "typedef int (*fds_call)(int);\n")
    found = headers.functions(os.path.abspath("some.h"), COMPILER)
    assert found == {"fds_get": "fds_s *fds_get(const char *name, int (*f)(int))",
                     "fds_last": "int fds_last(void)"}, found


sys.exit(main())
