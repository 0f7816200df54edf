# SPDX-License-Identifier: Apache-2.0
"""An installed fds, as a program outside this tree meets it: `make test-install` installs into an
empty folder, then runs this.

usage: test_install.py INSTALLED EXAMPLES MNIST_SAMPLE
  INSTALLED     the DESTDIR of `make install`
  EXAMPLES      each *.c is compiled with pkg-config alone, and run as its head comment says
  MNIST_SAMPLE  stands for `mnist` there
Prints TAP. Needs nothing but Python's standard library, a compiler and pkg-config.
"""
import os
import pathlib
import re
import subprocess
import sys

INSTALLED, EXAMPLES, MNIST = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
SOURCES = EXAMPLES.parent
os.environ["FDS_TEST_DATA"] = str(MNIST.parent)
sys.path[:0] = [str(SOURCES / "tests"), str(SOURCES / "tests/cli")]
PC = next(INSTALLED.rglob("fds.pc"))
LIBRARIES = PC.parents[1]
sys.argv[1] = str(next(INSTALLED.rglob("bin/fds")))
from harness import fds  # noqa: E402
from tap import main, test  # noqa: E402

ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES), PKG_CONFIG_PATH=str(PC.parent),
                   PKG_CONFIG_SYSROOT_DIR=str(INSTALLED))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(source, *flags):
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(source), "-o", source.stem, *flags)


def flags(*options):
    return run("pkg-config", *options, "fds").split()


def usage(source):
    """The arguments in the head comment's line `build/examples/NAME ARGUMENTS`."""
    found = re.search(rf"^ \* +build/examples/{source.stem}((?: \S+)*)", source.read_text(), re.M)
    assert found, f"{source.name}: its head comment lacks a line `build/examples/{source.stem} ...`"
    return [str(MNIST) if word == "mnist" else word for word in found[1].split()]


@test
def every_public_header_is_installed():
    def names(folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*.h*")
                if path.suffix in (".h", ".in")}

    wanted = {name.removesuffix(".in") for name in names(SOURCES / "include")}
    got = names(next(INSTALLED.rglob("include/fds.h")).parent)
    assert wanted == got, f"in include/: {sorted(wanted)}; installed: {sorted(got)}"


@test
def command_library_and_pkg_config_have_one_version():
    version = run("pkg-config", "--modversion", "fds").strip()
    assert fds("--version")[0].startswith(f"fds {version} ")
    assert (LIBRARIES / f"libfds.so.{version}").exists()
    assert "libfds.so.0" in run("objdump", "-p", str(LIBRARIES / "libfds.so"))


@test
def manual_pages_and_completion_are_installed():
    for path in ("man/man1/fds.1", "man/man1/fds-data-get.1", "man/man1/fds-fit.1", "zsh/site-functions/_fds",
                 "bash-completion/completions/fds.bash", "fish/vendor_completions.d/fds.fish"):
        assert len(list(INSTALLED.rglob(path))) == 1, path


@test
def the_examples_compile_with_pkg_config_and_run():
    sources = sorted(EXAMPLES.glob("*.c"))
    assert sources, f"no examples in {EXAMPLES}"
    for source in sources:
        build(source, *flags("--cflags", "--libs"))
        linked = run("ldd", source.stem)
        assert str(LIBRARIES / "libfds.so.0") in linked, linked
        assert run("./" + source.stem, *usage(source)), f"{source.name} printed nothing"


@test
def an_example_links_to_the_static_library_too():
    source = sorted(EXAMPLES.glob("*.c"))[0]
    build(source, *(flag.replace("-lfds", "-l:libfds.a")
                    for flag in flags("--cflags", "--libs", "--static")))
    assert "libfds" not in run("ldd", source.stem)


sys.exit(main())
