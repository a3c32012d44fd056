"""Gap-free maps of the ocean, from Python.

    lacuna.open("black-sea-chl", "2024-04", at="/var/lib/lacuna/products")
    lacuna.fill(xarray.open_dataset("granule.nc"))
    for product in lacuna.subscribe("kafka:9092"): ...
    lacuna.plot(product.open())

Everything is done by the program lacuna, by what it wrote, or by xarray: nothing is
implemented here a second time.
"""

from ._fill import fill
from ._open import open
from ._plot import plot
from ._program import LacunaError, program, run
from ._subscribe import Product, subscribe

__all__ = ["LacunaError", "Product", "fill", "open", "plot", "program", "run", "subscribe"]
