# SPDX-License-Identifier: Apache-2.0
"""The declarations of _lib.py against the C headers; types against mypy; examples in docstrings."""
import ctypes
import doctest
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import fds
from fds import _lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = "\n".join((ROOT / "include" / name).read_text() for name in ("fds.h", "fds/advanced.h", "fds/eval.h"))
HEADERS = re.sub(r"/\*.*?\*/", " ", HEADERS, flags=re.S)

LETTERS = [  # in this order, by what a type is
    (r"fds_error \*$", "e"), (r"const fds_events \*$", "E"), (r"const fds_arrays \*$", "A"),
    (r"const fds_selection \*$", "L"), (r"const fds_values \*$", "V"), (r"fds_param_info \*$", "D"),
    (r"^char \*\*$", "S"), (r"^const char \*const \*$", "N"), (r"^const char \*$", "s"), (r"^char \*$", "B"),
    (r"^(const )?fds_\w+ \*\*$", "P"), (r"^(const )?fds_(?!status|shape)\w+ \*$", "p"), (r"^fds_shape$", "H"),
    (r"^fds_status$", "i"), (r"^int$", "n"), (r"^bool$", "b"), (r"^uint32_t$", "u"), (r"^size_t$", "z"),
    (r"^int64_t$", "l"), (r"^double$", "d"), (r"^void$", "v"), (r"^float \*$", "F"), (r"^(const )?double \*$", "G"),
    (r"^const uint32_t \*$", "U"),
]
LINES = [line for line in _lib.FUNCTIONS.split("\n") if line]


def letter(text):
    text = " ".join(text.replace("*", " * ").split()).replace("* *", "**").replace("* const *", "*const *")
    return next((found for pattern, found in LETTERS if re.search(pattern, text)), f"?{text}")


def prototype(name):
    found = re.search(r"FDS_API\s+([\w\s\*]+?)\b" + name + r"\s*\(([^;]*?)\)\s*;", HEADERS)
    assert found, f"{name} is not in the headers"
    arguments = [] if found[2].strip() == "void" else found[2].split(",")
    types = [re.sub(r"\w+\s*$", "", a) if not a.strip().endswith("*") else a for a in arguments]
    return [letter(found[1]), *map(letter, types)]


def test_every_function_is_declared_as_in_the_header():
    for line in LINES:
        result, name, *arguments = line.split()
        theirs = prototype(name)
        if name == "fds_text_free":  # takes what came as an address
            theirs = ["p" if t == "B" else t for t in theirs]
        assert [result, *arguments] == theirs, name


STRUCTS = {"fds_error": _lib.ErrorStruct, "fds_progress": _lib.Progress, "fds_events": _lib.Events,
           "fds_param_info": _lib.ParamInfo, "fds_shape": _lib.Shape, "fds_arrays": _lib.Arrays,
           "fds_selection": _lib.Selection, "fds_values": _lib.Values, "fds_audit_row": _lib.AuditRow}


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_structures_have_the_sizes_and_offsets_of_c(tmp_path):
    lines = ["#include <fds/advanced.h>", "#include <fds/eval.h>", "#include <stdio.h>", "int main(void) {"]
    expected = []
    for name, kind in STRUCTS.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        expected.append(ctypes.sizeof(kind))
        for field, *_ in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            expected.append(getattr(kind, field).offset)
    source = tmp_path / "sizes.c"
    source.write_text("\n".join([*lines, "}"]))
    build = pathlib.Path(os.environ.get("FDS_TEST_BUILD", ROOT / "build"))
    subprocess.run(["cc", f"-I{ROOT}/include", f"-I{build}/include", source, "-o", tmp_path / "sizes"], check=True)
    found = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout.split()
    assert [int(word) for word in found] == expected


def test_every_status_has_an_exception():
    names = set(re.findall(r"X\((ERR_\w+),", HEADERS))
    assert names == set(_lib.ERRORS)


@pytest.mark.skipif(not shutil.which("mypy"), reason="mypy is not installed")
def test_types_are_right():
    done = subprocess.run(["mypy", "--no-incremental", "--cache-dir", "/dev/null", "--python-executable", sys.executable,
                           "fds"], cwd=ROOT / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


MODULES = ["_call", "data", "explainer", "models", "payment", "result", "valuation"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"fds.{name}")
    failed, tried = doctest.testmod(module, extraglobs={"fds": fds, "np": np},
                                    optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried and not failed


def test_everything_public_has_a_docstring():
    for name in fds.__all__:
        assert getattr(fds, name).__doc__, name


def test_the_version_is_that_of_the_tree():
    assert f"version: '{fds.version()}'" in (ROOT / "meson.build").read_text()


def test_a_missing_library_says_what_to_do(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import fds; fds.version()"], capture_output=True, text=True,
                          env={**os.environ, "FDS_LIBRARY": str(tmp_path / "none.so")})
    assert done.returncode and "libfds was not found" in done.stderr and "FDS_LIBRARY" in done.stderr
