"""Puts the program into the package: the one of the checkout, which is built where it can be.

With LACUNA_WITHOUT_PROGRAM=1 the package is installed alone, and finds a program on PATH.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parent / "bin" / "lacuna"
WITHOUT = os.environ.get("LACUNA_WITHOUT_PROGRAM") == "1"


class WithProgram(build_py):
    def run(self) -> None:
        super().run()
        if WITHOUT:
            return
        if not PROGRAM.exists() and (HERE.parent / "go.mod").exists() and shutil.which("make"):
            subprocess.run(["make", "-C", str(HERE.parent), "build"], check=False)
        if not PROGRAM.exists():
            print("lacuna: the program could not be built; lacuna.fill will look for one on PATH", file=sys.stderr)
            return
        target = pathlib.Path(self.build_lib, "lacuna", "bin")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROGRAM, target / "lacuna")


class ForThisMachine(Distribution):
    def has_ext_modules(self) -> bool:
        return not WITHOUT  # a program makes the package one for this kind of machine


setup(cmdclass={"build_py": WithProgram}, distclass=ForThisMachine)
