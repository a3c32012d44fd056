"""The package, installed: from a checkout, without what that takes, and as a wheel."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

import lacuna

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """The part of a checkout that an installation reads, without a program in its bin."""
    pytest.importorskip("wheel")
    folder = tmp_path / "checkout"
    shutil.copytree(HERE.parent, folder / "python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*"))
    shutil.copytree(ROOT / "daemon" / "version", folder / "daemon" / "version")
    return folder


def install(checkout: pathlib.Path, target: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", target]
    env = {"PATH": "", "HOME": os.environ.get("HOME", "/")} | environment
    return subprocess.run([*command, checkout / "python"], env=env, capture_output=True, text=True, check=False)


def said(target: pathlib.Path, *arguments: str) -> str:
    """What the program of an installed package prints, in an environment that names no other."""
    check = "import lacuna, sys; print(lacuna.program()); print(lacuna.run(sys.argv[1:]))"
    command = [sys.executable, "-c", check, *arguments]
    # The other modules are those that run the test.
    path = os.pathsep.join([str(target), *(p for p in sys.path if p and not (pathlib.Path(p) / "lacuna").exists())])
    done = subprocess.run(command, cwd=target, env={"PYTHONPATH": path, "PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installation_builds_the_program(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "go").write_text("#!/bin/sh\n")
    # make -C CHECKOUT build, which is said to take a program from elsewhere.
    (tools / "make").write_text(f'#!/bin/sh\n[ "$1 $3" = "-C build" ] && /bin/mkdir "$2/bin" && /bin/cp {lacuna.program()} "$2/bin/lacuna"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    done = install(checkout, tmp_path / "site", PATH=str(tools))
    assert done.returncode == 0, done.stderr
    assert said(tmp_path / "site", "version").startswith(str(tmp_path / "site" / "lacuna" / "bin" / "lacuna"))
    assert (tmp_path / "site" / "lacuna" / "py.typed").exists()


def test_package_and_program_are_of_one_version(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = install(checkout, tmp_path / "site", LACUNA_PROGRAM=lacuna.program())
    assert done.returncode == 0, done.stderr
    (package,) = importlib.metadata.distributions(name="lacuna", path=[str(tmp_path / "site")])
    program = lacuna.run(["version"]).split()[1]
    assert package.version == program.split("+")[0].replace("-dev", ".dev0")  # there is no git in the copy, which tells the commit


def test_the_command_of_the_package_is_the_program(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = install(checkout, tmp_path / "site", LACUNA_WITHOUT_PROGRAM="1")
    assert done.returncode == 0, done.stderr
    command, elsewhere = tmp_path / "site" / "bin" / "lacuna", tmp_path / "elsewhere"
    others = os.pathsep.join(p for p in sys.path if p and not (pathlib.Path(p) / "lacuna").exists())
    env = {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{others}", "PATH": f"{command.parent}{os.pathsep}{elsewhere}"}

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, command, *arguments], env=env, capture_output=True, text=True, check=False)

    assert "there is no program lacuna" in typed("version").stderr  # and it does not call itself for ever
    elsewhere.mkdir()
    (elsewhere / "lacuna").symlink_to(lacuna.program())
    assert typed("version").stdout.startswith("lacuna ")
    assert typed("no-such-command").returncode == 2


def test_an_installation_without_go_and_program_says_what_to_do(checkout: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = install(checkout, tmp_path / "site")
    assert done.returncode != 0
    assert "could not be built here" in done.stderr and "make wheel" in done.stderr and "libnetcdf-dev" in done.stderr
    alone = install(checkout, tmp_path / "site", LACUNA_WITHOUT_PROGRAM="1")
    assert alone.returncode == 0, alone.stderr
    assert (tmp_path / "site" / "lacuna" / "__init__.py").exists() and not (tmp_path / "site" / "lacuna" / "bin").exists()


def test_a_wheel_brings_all_that_the_program_loads(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("auditwheel")
    runtime = os.environ.get("LACUNA_ONNXRUNTIME", "")
    if not os.path.exists(runtime):
        pytest.skip("there is no libonnxruntime to put into it: LACUNA_ONNXRUNTIME names none")
    venv = pathlib.Path(sys.executable).parents[1]
    subprocess.run([ROOT / "ops/setup/wheel.sh", venv, lacuna.program(), runtime, ROOT / "LICENSE", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("lacuna-*.whl")
    assert wheel.name.split("-")[2:4] == ["py3", "none"] and "manylinux_2_" in wheel.name
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    program = site / "lacuna" / "bin" / "lacuna"
    program.chmod(0o755)  # which pip does
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in ("netcdf", "hdf5", "curl", "crypto"):
        files = [line.split("=>")[1].strip() for line in loaded if f"lib{name}" in line]
        assert files and all(file.startswith(str(site)) for file in files), (name, files)
    assert "usable  ONNX Runtime" in (engines := said(site, "engines")) and str(site) in engines
    (package,) = importlib.metadata.distributions(name="lacuna", path=[str(site)])
    assert package.version == lacuna.run(["version"]).split()[1].replace("-dev", ".dev0")
