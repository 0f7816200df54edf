# SPDX-License-Identifier: Apache-2.0
"""The rooms of docs/architecture.md: which room includes what, and which names look public.

usage: test_rooms.py COMPILER...
Prints TAP. Needs nothing but Python's standard library and the compiler's preprocessor.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tap import main, test  # noqa: E402

COMPILER = sys.argv[1:]
# headers that other rooms may include besides ROOM/ROOM.h
SECOND_HEADERS = {"base/isa.h"}
# macros that the build defines, and include guards, are no names of the interface
NOT_NAMES = re.compile(r"FDS_(AVX2|AVX512|\w+_H)$")


def read_table(text):
    """{room: [rooms it may use]} from the first table whose head is "room ... may use"."""
    table = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if re.match(r"\| room .*\| may use \|$", line):
            break
    next(lines)  # | --- |
    for line in lines:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split("|")
        room, uses = re.findall(r"`(\w+)`", cells[0]), re.findall(r"`(\w+)`", cells[-1])
        assert len(room) == 1, f"not one room: {line}"
        table[room[0]] = uses
    return table


def includes(path):
    """(line number, delimiter, header) of each #include of a file."""
    for number, line in enumerate(path.read_text().split("\n"), 1):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if found:
            yield number, found[1], found[2]


def wrong_in_room(room, header, table):
    """What is wrong with this header in a file of this room, or None."""
    folder, _, rest = header.partition("/")
    if not rest or folder not in table or folder == room:
        return None if folder != ".." else "goes through .."
    if folder not in table[room]:
        return f"{room} may not use {folder}"
    if header != f"{folder}/{folder}.h" and header not in SECOND_HEADERS:
        return f"only {folder}/{folder}.h is for other rooms"
    return None


def wrong_outside(path, delimiter, header, table):
    """The same for cli/ and examples/, which see the public headers only."""
    public = ROOT / "include" / header
    if ".." not in header:
        if public.exists() or public.with_suffix(".h.in").exists():
            return None
        if delimiter == '"' and "/" not in header and (path.parent / header).exists():
            return None
        if delimiter == "<" and header.partition("/")[0] not in table:
            return None
    return "is neither a public header nor the system's"


def sources(folder):
    return sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h"))


def name_all(found):
    assert not found, "\n".join(["see the table of docs/architecture.md", *found])


TABLE = read_table((ROOT / "docs/architecture.md").read_text())


@test
def every_room_has_a_row_and_uses_rooms_above_it():
    assert set(TABLE) == {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    above = set()
    for room, uses in TABLE.items():
        assert set(uses) <= above, f"{room} uses {set(uses) - above}, not above it"
        above.add(room)


@test
def a_room_includes_the_rooms_of_its_row_by_their_own_header():
    found = []
    for room in TABLE:
        for path in sources(f"src/{room}"):
            for number, _, header in includes(path):
                wrong = wrong_in_room(room, header, TABLE)
                if wrong:
                    found.append(f"{path.relative_to(ROOT)}:{number}: {header}: {wrong}")
    name_all(found)


@test
def the_command_and_the_examples_include_public_headers_only():
    found = []
    for path in sources("cli") + sources("examples"):
        for number, delimiter, header in includes(path):
            wrong = wrong_outside(path, delimiter, header, TABLE)
            if wrong:
                found.append(f"{path.relative_to(ROOT)}:{number}: {header} {wrong}")
    name_all(found)


def names_in(text):
    """All words that look public, comments and texts left out."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)
    return set(re.findall(r"\b(?:fds|FDS)_(?!_)\w+", text))


def public_names():
    """Every name that the public headers declare or define, those made by macros too."""
    headers = [str(path) for path in sources("include")]
    text = ""
    for header in headers:
        text += subprocess.run([*COMPILER, "-E", "-dD", "-I", str(ROOT / "include"), header],
                               check=True, capture_output=True, text=True).stdout
    return names_in(text)


@test
def internal_names_do_not_look_public():
    """They start with fds__, FDS__ or a room's name."""
    public, found = public_names(), []
    for path in sources("src"):
        if path.suffix == ".h":
            for name in sorted(names_in(path.read_text()) - public):
                if not NOT_NAMES.match(name):
                    found.append(f"{path.relative_to(ROOT)}: {name}")
    name_all(found)


@test
def the_checks_themselves_tell_right_from_wrong():
    table = {"base": [], "data": ["base"], "lane": ["base"]}
    for room, header, is_right in (
            ("data", "base/base.h", True), ("data", "base/isa.h", True),
            ("data", "data/inner.h", True), ("data", "names.h", True), ("data", "fds.h", True),
            ("data", "fds/advanced.h", True), ("data", "sys/stat.h", True),
            ("data", "base/file.h", False), ("data", "lane/lane.h", False),
            ("base", "data/data.h", False), ("data", "../base/base.h", False)):
        assert (wrong_in_room(room, header, table) is None) == is_right, (room, header)
    cli = ROOT / "cli/main.c"
    for delimiter, header, is_right in (
            ('"', "fds.h", True), ("<", "fds.h", True), ('"', "cli.h", True),
            ("<", "sys/stat.h", True), ("<", "jansson.h", True), ('"', "base/base.h", False),
            ("<", "base/base.h", False), ('"', "../src/base/base.h", False),
            ('"', "none.h", False)):
        assert (wrong_outside(cli, delimiter, header, table) is None) == is_right, header
    text = 'int fds_a; /* fds_b */ int fds__c; "fds_d" // FDS_E\n FDS_F'
    assert names_in(text) == {"fds_a", "FDS_F"}
    example = "x\n| room (`src/`) | owns | may use |\n| --- | --- | --- |\n" \
              "| `a` | `z` | |\n| `b` | | `a` |\n\n| `c` | | |\n"
    assert read_table(example) == {"a": [], "b": ["a"]}


sys.exit(main())
