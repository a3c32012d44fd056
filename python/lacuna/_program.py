"""The program lacuna, and what it says."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence


class LacunaError(RuntimeError):
    """The program could not do what it was asked for; the message is its own."""


def program() -> str:
    """The path of the program.

    It is looked for in LACUNA_PROGRAM, in this package, in the checkout that the package lies
    in, and on PATH.
    """
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("LACUNA_PROGRAM")
    if named:
        return named
    for path in (here / "bin" / "lacuna", here.parents[1] / "bin" / "lacuna"):
        if path.is_file():
            return str(path)
    found = on_path()
    if found is None:
        raise LacunaError(
            "there is no program lacuna: run 'make build' in a checkout and put its bin/ on PATH, "
            "or name the file in LACUNA_PROGRAM"
        )
    return found


def on_path() -> str | None:
    """The program on PATH; the command of this package, which only calls it, does not count."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("lacuna", path=folder)
        if found is not None and b"lacuna._program" not in pathlib.Path(found).open("rb").read(1024):
            return found
    return None


def environment() -> dict[str, str]:
    """The environment of the program, with the library of the wheel onnxruntime where that is installed."""
    env = dict(os.environ)
    spec = importlib.util.find_spec("onnxruntime")
    if "LACUNA_ONNXRUNTIME" not in env and spec is not None and spec.origin is not None:
        libraries = sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))
        if libraries:
            env["LACUNA_ONNXRUNTIME"] = str(libraries[0])
    return env


def run(arguments: Sequence[str | os.PathLike[str]]) -> str:
    """Run the program and return what it printed. Where it fails, its message is raised."""
    command = [program(), *(os.fspath(a) for a in arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LacunaError(done.stderr.strip() or f"{' '.join(command)}: exit status {done.returncode}")
    return done.stdout


def main() -> None:
    """The command lacuna of the package: the program, with the libraries of the package."""
    try:
        path = program()
    except LacunaError as problem:
        raise SystemExit(f"lacuna: {problem}") from None
    os.execve(path, ["lacuna", *sys.argv[1:]], environment())
