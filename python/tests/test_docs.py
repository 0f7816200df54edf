# SPDX-License-Identifier: Apache-2.0
"""The code on the pages for users of other packages runs, and prints what the pages show.

A block that begins with ```python is run; ```python theirs is code of the other package and is not. A block ```text
is what all blocks since the last one have printed.
"""
import contextlib
import io
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.glob("from-*.md"))
BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)^```$", re.M)


def blocks(page):
    """(words after the fence, contents, line) of each block."""
    text = page.read_text()
    return [(m[1].split(), m[2], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def lines(text):
    return [line.rstrip() for line in text.splitlines()]


def test_there_are_pages_and_they_are_linked():
    assert {page.stem for page in PAGES} == {"from-pydvl", "from-opendataval", "from-shap"}
    for page in PAGES:
        assert f"({page.name})" in (DOCS / "python.md").read_text()
        assert f"(docs/{page.name})" in (DOCS.parent / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_code_of_a_page_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, shown = {}, io.StringIO(), 0
    for words, contents, line in blocks(page):
        if words == ["python"]:
            code = compile("\n" * line + contents, str(page), "exec")  # so that a traceback has the line of the page
            with contextlib.redirect_stdout(printed):
                exec(code, names)
        elif words == ["text"]:
            assert lines(printed.getvalue()) == lines(contents), f"{page.name}, line {line}"
            printed, shown = io.StringIO(), shown + 1
        else:
            assert words == ["python", "theirs"], f"{page.name}, line {line}"
    assert shown and not printed.getvalue()
