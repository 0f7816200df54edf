# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel: compiles libfds by meson and packs it with the package (PEP 517).

The package reaches libfds by ctypes, so that one wheel serves every Python 3 of a machine, and a build
needs no other Python package: `pip install ./python` works without an index. A library that is built
already can be given by FDS_LIBRARY; a build folder, to compile in again, by FDS_BUILD.
"""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
LIBRARY = "libfds.so.0"


def version():
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]


def environment():
    """That of the user: pip hides the packages that meson itself may need."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PIP_BUILD_TRACKER")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def compile_library(folder):
    """The path of libfds.so.0, compiled if no environment variable names one."""
    if os.environ.get("FDS_LIBRARY"):
        return pathlib.Path(os.environ["FDS_LIBRARY"]).resolve()
    if not shutil.which("meson"):
        raise SystemExit("fds: meson is missing. On Debian: scripts/deps build (or apt-get install meson and a "
                         "C compiler); or build the library elsewhere and set FDS_LIBRARY to its path")
    build = pathlib.Path(os.environ.get("FDS_BUILD") or folder).resolve()
    if not (build / "build.ninja").exists():
        subprocess.run(["meson", "setup", build, ROOT, "-Dtests=false"], check=True, env=environment())
    library = build / "src" / f"libfds.so.{version()}"
    subprocess.run(["ninja", "-C", build, str(library.relative_to(build))], check=True, env=environment())
    return library


def metadata():
    return "\n".join([
        "Metadata-Version: 2.1", "Name: fds", f"Version: {version()}",
        "Summary: What each provider of training data contributed to a prediction",
        "License: Apache-2.0", "Requires-Python: >=3.9", "Requires-Dist: numpy",
        'Requires-Dist: pandas; extra == "frames"', 'Requires-Dist: matplotlib; extra == "plots"',
        "Provides-Extra: frames", "Provides-Extra: plots", "Description-Content-Type: text/markdown", "",
        (HERE / "README.md").read_text()])


def tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def wheel_file():
    return f"Wheel-Version: 1.0\nGenerator: fds\nRoot-Is-Purelib: false\nTag: {tag()}\n"


class Wheel:
    """A wheel while it is written."""

    def __init__(self, path):
        self.file, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name, data):
        self.file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, folder):
        name = f"{folder}/RECORD"
        self.file.writestr(name, "\n".join([*self.record, f"{name},,"]) + "\n")
        self.file.close()


def write_wheel(directory, add_package):
    info, name = f"fds-{version()}.dist-info", f"fds-{version()}-{tag()}.whl"
    wheel = Wheel(os.path.join(directory, name))
    add_package(wheel)
    wheel.add(f"{info}/METADATA", metadata().encode())
    wheel.add(f"{info}/WHEEL", wheel_file().encode())
    wheel.add(f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes())
    wheel.close(info)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory, f"fds-{version()}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(metadata())
    (folder / "WHEEL").write_text(wheel_file())
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory(prefix="fds-build-") as folder:
        library = compile_library(folder).read_bytes()

    def add_package(wheel):
        for path in sorted((HERE / "fds").rglob("*")):
            if path.suffix in (".py", ".typed", ".pyi"):
                wheel.add(path.relative_to(HERE).as_posix(), path.read_bytes())
        wheel.add(f"fds/{LIBRARY}", library)

    return write_wheel(wheel_directory, add_package)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Points at this folder; the library is that of the build folder of the tree."""
    return write_wheel(wheel_directory, lambda wheel: wheel.add("fds.pth", f"{HERE}\n".encode()))


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("fds: the package is built from the whole source tree, which git archive packs")
