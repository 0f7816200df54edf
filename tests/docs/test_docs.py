# SPDX-License-Identifier: Apache-2.0
"""The documents agree with the tree and with the command: links, commands, options, files, programs.

usage: test_docs.py FDS
Prints TAP. Needs nothing but Python's standard library.
"""
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tap import main, test  # noqa: E402

FDS = pathlib.Path(sys.argv[1]).resolve()  # tests run in folders of their own
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests/README.md"])
HISTORY = ROOT / "CHANGELOG.md"  # names options and files as they were
WIDTH = 120
# options of other programs, and those that the text makes up
FOREIGN = {"--abbrev", "--cflags", "--epoch", "--format", "--libs", "--man", "--markdown", "--name",
           "--options", "--tags", "--verbose"}
# files that the text makes up
INVENTED = {"room/room.h", "src/room/room.h", "src/baseline/NAME.c"}
COMMANDS = ["data get", "data show", "data audit", "fit", "explain", "pay", "value", "train", "bench", "serve key", "serve login",
            "serve", "ledger init", "ledger topup", "ledger balance", "ledger statement", "ledger payout", "ledger correct", "ledger export",
            "ledger backup", "ledger verify", "ledger receipt", "ledger verify-receipt", "audit duplicates", "audit labels", "audit watch",
            "audit",
            "privacy on", "privacy budget", "table fill-value", "table fill", "table import", "table show", "update", "forget"]


def lines_of(page):
    """(number, line, whether it is in a code block)"""
    is_code = False
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        yield number, line, is_code


def at(page, number):
    return f"{page.relative_to(ROOT)}:{number}"


def anchors(page):
    """The names that GitHub gives to headings."""
    heads = [line.lstrip("#").strip() for _, line, is_code in lines_of(page)
             if line.startswith("#") and not is_code]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@functools.lru_cache(None)
def options(command):
    text = subprocess.run([FDS, *command.split(), "--help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return set(re.findall(r"(?:^  -\w, |^      )(--[\w-]+)", text, re.M))


def name_all(found):
    assert not found, "\n".join(found)


@test
def links_lead_somewhere():
    wrong = []
    for page in PAGES:
        for number, line, is_code in lines_of(page):
            for target in [] if is_code else re.findall(r"\]\(([^)]+)\)", line):
                path, _, anchor = target.partition("#")
                if "://" in target:
                    continue
                other = (page.parent / path).resolve() if path else page
                if not other.exists() or (anchor and anchor not in anchors(other)):
                    wrong.append(f"{at(page, number)}: {target}")
    name_all(wrong)


@test
def commands_in_examples_have_only_known_options():
    wrong = []
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        for call in re.findall(r"^(?:\$ )?fds (.*)$", text, re.M) if page != HISTORY else []:
            command = next((name for name in COMMANDS if call.startswith(name)), None)
            for option in re.findall(r"(?<!\S)--[a-z][\w-]*", call.partition("#")[0]):
                if command and option not in options(command) | FOREIGN:
                    wrong.append(f"{page.relative_to(ROOT)}: fds {call}: {option}")
    name_all(wrong)


@test
def options_in_the_text_exist():
    known = set().union(FOREIGN, *map(options, COMMANDS))
    name_all([f"{at(page, number)}: {option}" for page in PAGES if page != HISTORY
              for number, line, is_code in lines_of(page) if not is_code
              for option in re.findall(r"`[^`]*?(--[a-z][\w-]*)", line) if option not in known])


@test
def files_of_the_tree_that_are_named_exist():
    folders = ("src", "cli", "include", "tests", "examples", "bench", "python")
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.*")]
    wrong = []
    for page in PAGES:
        for number, line, is_code in lines_of(page):
            for name in re.findall(r"`([\w./-]+\.(?:c|h|py|def))`", line):
                is_there = any(file.endswith("/" + name) for file in files)
                if not (is_code or is_there or name in INVENTED or page == HISTORY):
                    wrong.append(f"{at(page, number)}: {name}")
    name_all(wrong)


@test
def lines_that_can_be_broken_are_not_too_long():
    """All but the rows of tables, and messages of the command."""
    name_all([f"{at(page, number)}: {len(line)} columns" for page in PAGES
              for number, line, is_code in lines_of(page)
              if len(line) > WIDTH and not line.startswith("fds " if is_code else "|")])


@test
def programs_of_the_definitions_compute_what_they_say():
    """Those of a page use the ones before them, and game.md's."""
    known = {}
    for name in ("game.md", "baselines.md"):
        text = (ROOT / "docs" / name).read_text()
        for program in re.findall(r"```python\n(.*?)```", text, re.S):
            exec(compile(program, name, "exec"), known)
    assert known["ame"](0, 3, 5) and known["normal"](known["philox"](0, 11))


sys.exit(main())
