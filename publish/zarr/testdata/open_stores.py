"""Compare Zarr stores with the NetCDF files that they were made from, and print what is found, as JSON.

usage: open_stores.py FOLDER...

A FOLDER has a store, sea.zarr, and a file wanted.json: the paths of NetCDF files that may
be in it, by their sha256. For each FOLDER the times of the store are printed, with the
revision and the hash that each has; anything that is not as it should be is an error.
"""

import json
import pathlib
import sys
import warnings

import numpy
import xarray

warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")

opened = {}


def product(path):
    if path not in opened:
        with xarray.open_dataset(path) as file:
            opened[path] = file.load()
    return opened[path]


def maps(dataset):
    return [name for name in dataset.data_vars if dataset[name].dims == ("time", "lat", "lon")]


def compare(store, wanted):
    assert "time" in store.indexes and store.indexes["time"].is_monotonic_increasing and store.indexes["time"].is_unique
    for i, revision in enumerate(store.revision.values):
        slot = store.isel(time=[i])
        if revision == 0:
            shown = slot.CHL.notnull().any()
            if shown:  # on its way in or out: then it must be whole, and be one of ours
                assert any(all(slot[n].variable.equals(product(p)[n].variable) for n in maps(product(p))) for p in wanted.values()), slot
            continue
        file = product(wanted[str(slot.product_sha256.values[0])])
        assert slot.time.values[0] == file.time.values[0]
        for name in maps(file) + ["lat", "lon", "mode", "model", "observed_fraction", "window_start", "time_bnds"]:
            got, want = slot[name].variable, file[name].variable
            assert got.dims == want.dims, (name, got.dims)
            if name == "model":  # text, of another type in each format
                assert [str(m) for m in got.values] == [m.decode() if isinstance(m, bytes) else str(m) for m in want.values]
                continue
            assert got.dtype == want.dtype and got.equals(want), (name, got, want)
        for name in maps(file):
            for key in ("units", "standard_name", "long_name", "flag_meanings", "ancillary_variables"):
                assert slot[name].attrs.get(key) == file[name].attrs.get(key), (name, key)
    return {
        "times": [str(t)[:10] for t in store.time.values],
        "revisions": [int(r) for r in store.revision.values],
        "hashes": [str(h) for h in store.product_sha256.values],
        "coords": sorted(store.coords),
        "start": store.attrs.get("time_coverage_start", ""),
        "end": store.attrs.get("time_coverage_end", ""),
    }


out = []
for folder in sys.argv[1:]:
    folder = pathlib.Path(folder)
    wanted = json.loads((folder / "wanted.json").read_text())
    if not (folder / "sea.zarr" / "zarr.json").exists():
        out.append(None)
        continue
    with xarray.open_zarr(folder / "sea.zarr", chunks=None) as store:
        out.append(compare(store.load(), wanted))
    lazy = xarray.open_zarr(folder / "sea.zarr")  # with dask, as most open it
    assert numpy.array_equal(lazy.CHL.isel(time=slice(-1, None)).compute().values, store.CHL.values[-1:], equal_nan=True)
print(json.dumps(out))
