"""Pictures of a product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
import xarray

from ._program import LacunaError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERPOLATED = "INTERPOLATED"


def plot(product: xarray.Dataset, time: int | str = -1, *, variable: str | None = None) -> Figure:
    """Draw a day of a product: what was observed, the gap-free map, and its uncertainty.

    time is the index of a field, or a date. It needs matplotlib.
    """
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.figure import Figure

    name = variable if variable is not None else variable_of(product)
    day = product.isel(time=time) if isinstance(time, int) else product.sel(time=time, method="nearest")
    _, uncertainty, flags = parts_of(product, name)
    value, sigma = day[name], day[uncertainty]
    filled = (day[flags].astype(int) & flag(day[flags], INTERPOLATED)) != 0
    skewed = ("log" in str(sigma.attrs.get("long_name", "")) or sigma.attrs.get("units") == "%") and float(value.min()) > 0
    low, high = (float(v) for v in numpy.nanquantile(value.values, [0.01, 0.99]))
    norm = LogNorm(low, high) if skewed else Normalize(low, high)
    figure = Figure(figsize=(13, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    value.where(~filled).plot.pcolormesh(ax=left, norm=norm)
    value.plot.pcolormesh(ax=middle, norm=norm)
    sigma.plot.pcolormesh(ax=right, cmap="magma", vmin=0)
    for axes, title in ((left, "observed"), (middle, "filled"), (right, "uncertainty")):
        axes.set_title(f"{title}, {str(day.time.values)[:10]}")
    return figure


def variable_of(product: xarray.Dataset) -> str:
    """The variable that was filled: the one that the product names, or has the uncertainty of."""
    if said := str(product.attrs.get("lacuna_variables", "")).split():
        return said[0]
    names = [str(n) for n in product.data_vars if f"{n}_uncertainty" in product.data_vars]
    if len(names) != 1:
        raise LacunaError(f"which variable is it? {names or 'none'} has an uncertainty; name it by variable=")
    return names[0]


def parts_of(product: xarray.Dataset, name: str) -> tuple[str, str, str]:
    """The names of a variable, its uncertainty and the flags, which depend on the layout of a product."""
    said = str(product.attrs.get("lacuna_variables", "")).split()
    if len(said) == 3 and said[0] == name:
        return said[0], said[1], said[2]
    return name, name + "_uncertainty", "flags"


def flag(flags: xarray.DataArray, meaning: str) -> int:
    """The bit of a meaning, as the file says it."""
    attrs = flags.attrs
    bits = dict(zip(attrs["flag_meanings"].split(), numpy.atleast_1d(attrs["flag_masks"]), strict=True))
    return int(bits[meaning])
