"""Filling a dataset in memory."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterable, Sequence

import xarray

from ._program import LacunaError, run


def fill(
    granule: xarray.Dataset,
    *,
    history: xarray.Dataset | str | os.PathLike[str] | Iterable[xarray.Dataset | str | os.PathLike[str]] = (),
    variable: str | None = None,
    model: str | None = None,
    options: Sequence[str] = (),
) -> xarray.Dataset:
    """Fill the gaps of a granule, and return the product: values, uncertainty and flags on the same grid.

    history are other days, as datasets, files or folders. model is what fills: "oi",
    "persistence", "climatology" or "starter"; by default the program decides. options are
    further flags of 'lacuna fill', such as ["--tier", "full"].
    """
    if isinstance(history, (xarray.Dataset, str, os.PathLike)):
        history = [history]
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        source = write(granule, pathlib.Path(folder, "granule.nc"))
        arguments: list[str | os.PathLike[str]] = ["fill", source, "-o", pathlib.Path(folder, "out")]
        for i, days in enumerate(history):
            if isinstance(days, xarray.Dataset):
                days = write(days, pathlib.Path(folder, f"history{i}.nc"))
            arguments += ["--history", days]
        if variable is not None:
            arguments += ["--var", variable]
        if model is not None:
            arguments += ["--model", model]
        product = run([*arguments, *options]).strip().splitlines()
        if len(product) != 1:
            raise LacunaError(f"one product was expected, and the program made {len(product)}")
        with xarray.open_dataset(product[0]) as filled:
            return filled.load()


def write(dataset: xarray.Dataset, path: pathlib.Path) -> pathlib.Path:
    """Write a dataset as a granule, in the types that it was read in."""
    plain = dataset.copy()
    for name in plain.variables:  # the layout of the file that it was read from does not matter here
        for key in ("source", "original_shape", "chunksizes", "preferred_chunks", "unlimited_dims", "contiguous"):
            plain[name].encoding.pop(key, None)
    plain.to_netcdf(path)
    return path
