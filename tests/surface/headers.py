# SPDX-License-Identifier: Apache-2.0
"""What the public headers declare. As a program, writes the record of the stable one:

usage: headers.py ABI_FILE COMPILER...
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
STABLE = "fds.h"


def public_headers():
    """Names as a program includes them: "fds.h", "fds/version.h"."""
    return sorted(str(path.relative_to(INCLUDE)).removesuffix(".in")
                  for path in INCLUDE.rglob("*.h*") if path.suffix in (".h", ".in"))


def preprocess(header, compiler):
    text = subprocess.run([*compiler, f"-I{INCLUDE}", "-E", "-P", "-x", "c", "-"],
                          input=f"#include <{header}>\n", check=True, capture_output=True,
                          text=True).stdout
    return re.sub(r"__attribute__\s*\(\(.*?\)\)(?!\))|\b__extension__\b", "", text)


def statements(text):
    """The declarations of a text, each on one line, without the bodies of inline functions."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "}" and depth == 0 and re.match(r"[^{]*\)\s*\{", text[begin:at]):
            begin = at + 1
        if letter == ";" and depth == 0:
            yield " ".join(text[begin:at].split())
            begin = at + 1


def functions(header, compiler):
    """{name: prototype} of all functions that a header declares or that it includes."""
    found = {}
    for line in statements(preprocess(header, compiler)):
        name = re.search(r"\b(fds_\w+) ?\(", line)
        if name and "{" not in line and not line.startswith("typedef"):
            found[name[1]] = line.removeprefix("extern ")
    return found


def record(compiler):
    """The stable header's prototypes, sizes of structs that are not opaque, and enumerators."""
    text = preprocess(STABLE, compiler)
    lines = [f"function {line}" for line in functions(STABLE, compiler).values()]
    structs, enumerators = [], []
    for line in statements(text):
        structs += re.findall(r"^(?:typedef )?struct (fds_\w+) ?\{", line)
        if re.match(r"(typedef )?enum (fds_\w+ )?\{", line):
            enumerators += re.findall(r"\bFDS_\w+", line)
    program = [f"#include <{STABLE}>", "#include <stdio.h>", "int main(void) {"]
    program += [f'printf("struct {name} %zu bytes\\n", sizeof(struct {name}));' for name in structs]
    program += [f'printf("enum {name} = %d\\n", (int){name});' for name in enumerators]
    program += ["}"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sizes")
        subprocess.run([*compiler, f"-I{INCLUDE}", "-x", "c", "-", "-o", path], check=True,
                       input="\n".join(program), text=True)
        lines += subprocess.run([path], check=True, capture_output=True,
                                text=True).stdout.splitlines()
    head = f"# What programs compiled against {STABLE} rely on. `make abi` writes this file anew."
    return "\n".join([head, *sorted(lines)]) + "\n"


def undocumented(text):
    """Functions of a header's text without a comment: above, on a line of theirs, or at the head
    of their group. A group ends with an empty line, unless that follows the type it is about."""
    found, has_comment, in_comment = [], False, False
    declaration = last = ""
    for line in text.split("\n"):
        if in_comment or "/*" in line:
            has_comment = True
            in_comment = "*/" not in line[line.rfind("/*") + 2 if "/*" in line else 0:]
        elif not line.strip():
            has_comment &= last.startswith(("typedef", "}"))
        last = line
        if line.startswith("FDS_API") or declaration:
            declaration += line
            if ";" in line:
                name = re.search(r"\b(fds_\w+)\(", declaration)
                if name and not has_comment:
                    found.append(name[1])
                declaration = ""
    return found


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(record(sys.argv[2:]))
