"""The package, against the program."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy
import pytest
import xarray

import lacuna

HERE = pathlib.Path(__file__).resolve().parent


def test_fill_keeps_what_was_seen_and_leaves_no_gap(filled: xarray.Dataset, granules: list[pathlib.Path]) -> None:
    with xarray.open_dataset(granules[2]) as granule:
        seen = granule.CHL.notnull().values
        assert seen.any() and not seen.all()
        assert numpy.array_equal(filled.CHL.values[seen], granule.CHL.values[seen])
    flags = filled.flags.values.astype(int)
    sea = (flags & 1) == 0
    assert numpy.isfinite(filled.CHL.values[sea]).all() and numpy.isfinite(filled.CHL_uncertainty.values[sea]).all()
    assert ((flags & 2) != 0).sum() == (sea & ~seen).sum()


def test_fill_is_what_the_program_does(filled: xarray.Dataset, granules: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    made = lacuna.run(["fill", granules[2], "-o", tmp_path, "--var", "CHL", "--model", "oi", "--history", granules[0], "--history", granules[1]])
    with xarray.open_dataset(made.strip()) as product:
        assert numpy.array_equal(product.CHL.values, filled.CHL.values, equal_nan=True)


def test_fill_says_what_the_program_says() -> None:
    nothing = xarray.Dataset({"a": ("x", [1.0, 2.0])})
    with pytest.raises(lacuna.LacunaError, match="(?i)lat|coordinate|variable"):
        lacuna.fill(nothing)


def test_files_and_store_are_the_same_series(archive: pathlib.Path) -> None:
    files = lacuna.open("sea", at=archive / "products").load()
    store = lacuna.open("sea", at=archive / "zarr").load()
    assert files.sizes["time"] >= 4 and numpy.array_equal(files.time.values, store.time.values)
    for name in ("CHL", "CHL_uncertainty", "flags"):
        assert numpy.array_equal(files[name].values, store[name].values.astype(files[name].dtype), equal_nan=True), name


def test_a_time_is_selected(archive: pathlib.Path) -> None:
    whole = lacuna.open("sea", at=archive / "zarr")
    day = str(whole.time.values[2])[:10]
    one = lacuna.open("sea", day, at=archive / "zarr")
    assert [str(t)[:10] for t in one.time.values] == [day]
    two = lacuna.open("sea", slice(str(whole.time.values[1])[:10], day), at=archive / "products")
    assert two.sizes["time"] == 2


@pytest.mark.parametrize(("where", "words"), [(None, "say where"), ("nowhere", "no products of sea")])
def test_open_says_what_is_wrong(where: str | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LACUNA_AT", raising=False)
    with pytest.raises(lacuna.LacunaError, match=words):
        lacuna.open("sea", at=where)


@contextlib.contextmanager
def running(config: pathlib.Path, said: str) -> Iterator[str]:
    """A service, and the address that it says under a word of its log."""
    with subprocess.Popen([lacuna.program(), "run", "--config", config, "--log", "json"], stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            for line in service.stderr:
                entry = json.loads(line)
                if said in entry:
                    threading.Thread(target=service.stderr.read, daemon=True).start()  # so that it does not wait for a reader
                    yield entry[said]
                    return
            raise AssertionError(f"the service ended without an address {said}")
        finally:
            service.terminate()
            service.wait()


def test_a_service_is_opened_by_its_address(archive: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files = lacuna.open("sea", at=archive / "products").load()
    with running(archive / "lacuna.yaml", "url") as page:
        served = lacuna.open("sea", at=page, cache=tmp_path / "cache").load()
        assert numpy.array_equal(files.CHL.values, served.CHL.values, equal_nan=True)
        day = str(files.time.values[0])[:10]
        assert lacuna.open("sea", slice(day, day), at=page).sizes["time"] == 1
        with pytest.raises(lacuna.LacunaError, match="404"):
            lacuna.open("lake", at=page)


def test_products_are_received_as_they_are_published(archive: pathlib.Path, granules: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    text = (archive / "lacuna.yaml").read_text().replace(str(archive), str(tmp_path))
    (tmp_path / "lacuna.yaml").write_text(text.replace("publish:", "publish:\n  kafka: {embedded: true}"))
    (tmp_path / "archive").mkdir()
    for granule in granules[:2]:
        shutil.copy2(granule, tmp_path / "archive")
    with running(tmp_path / "lacuna.yaml", "kafka") as brokers:
        received = list(itertools.islice(lacuna.subscribe(brokers, to=tmp_path / "incoming"), 2))
    for product in received:
        with product.open() as content:
            assert content.CHL.notnull().any() and int(content.revision.values[0]) == product.event["revision"]
    assert len({product.path for product in received}) == 2


def test_plot_shows_observed_filled_and_uncertainty(filled: xarray.Dataset, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    figure = lacuna.plot(filled)
    maps = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title().split(",")[0] for axes in maps] == ["observed", "filled", "uncertainty"]
    shown = [numpy.ma.masked_invalid(axes.collections[0].get_array()).count() for axes in maps]
    assert shown[0] < shown[1] == int(filled.CHL.notnull().sum())
    figure.savefig(tmp_path / "map.png")
    with pytest.raises(lacuna.LacunaError, match="which variable"):
        lacuna.plot(filled.drop_vars("CHL_uncertainty"))


def test_plot_knows_the_names_of_a_layout(filled: xarray.Dataset) -> None:
    pytest.importorskip("matplotlib")
    product = filled.rename(CHL="analysed_sst", CHL_uncertainty="analysis_error").assign_attrs(lacuna_variables="analysed_sst analysis_error flags")
    maps = [axes for axes in lacuna.plot(product).axes if axes.get_title()]
    assert numpy.ma.masked_invalid(maps[2].collections[0].get_array()).count() == int(filled.CHL_uncertainty.notnull().sum()) > 0


def test_the_notebook_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent))
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(HERE.parent / "first_map.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    said = "".join(output.get("text", "") for output in outputs)
    assert "observed" in said and "8 products, 0 granules set aside" in said and "2024-04-08" in said
    share = re.search(r"90 % interval at (\d+)%", said)
    assert share is not None and 70 <= int(share[1]) <= 100  # one simulated day


def test_types_hold() -> None:
    pytest.importorskip("mypy")
    # No cache: a folder that appears here is news to the Go tests that look at every folder.
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", os.devnull]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
