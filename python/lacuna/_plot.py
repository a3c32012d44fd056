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
    value, sigma = day[name], day[name + "_uncertainty"]
    filled = (day["flags"].astype(int) & flag(product, INTERPOLATED)) != 0
    skewed = "log" in str(sigma.attrs.get("long_name", "")) and float(value.min()) > 0
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
    """The variable that was filled: the one that has an uncertainty beside it."""
    names = [str(n) for n in product.data_vars if f"{n}_uncertainty" in product.data_vars]
    if len(names) != 1:
        raise LacunaError(f"which variable is it? {names or 'none'} has an uncertainty; name it by variable=")
    return names[0]


def flag(product: xarray.Dataset, meaning: str) -> int:
    """The bit of a meaning, as the file says it."""
    attrs = product["flags"].attrs
    bits = dict(zip(attrs["flag_meanings"].split(), numpy.atleast_1d(attrs["flag_masks"]), strict=True))
    return int(bits[meaning])
