"""Read what a daemon wrote as its users do, and print what was found, as JSON, a line each.

usage: readers.py (PRODUCTS ZARR DATASET VARIABLE)...

The files are joined by xarray.open_mfdataset, the store is opened by xarray.open_zarr, and
the two must have the same numbers; the catalogue is read and validated by pystac.
"""

import json
import pathlib
import sys
import warnings

import numpy
import pystac
import pystac.validation
import xarray

warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")


def read(products, stores, dataset, variable):
    files = sorted(str(p) for p in pathlib.Path(products, dataset).glob("[0-9]*/[0-9]*/*.nc"))
    joined = xarray.open_mfdataset(files).load()
    store = xarray.open_zarr(pathlib.Path(stores, dataset + ".zarr")).load()
    there = store.where(store.revision > 0, drop=True)
    assert numpy.array_equal(there.time.values, joined.time.values), (there.time.values, joined.time.values)
    for name in joined.data_vars:
        if joined[name].dims == ("time", "lat", "lon"):
            assert numpy.array_equal(there[name].values, joined[name].values.astype(there[name].dtype), equal_nan=True), name
    assert numpy.array_equal(there.revision.values.astype(int), joined.revision.values)

    catalog = pystac.Catalog.from_file(str(pathlib.Path(products, "catalog.json")))
    # By the schemas that pystac brings along; the one of the extension is checked beside the writer of items.
    validator = pystac.validation.RegisteredValidator.get_validator()
    items = {}
    for node, _, own in catalog.walk():
        own = list(own)
        for thing in [node, *own]:
            assert validator.validate_core(thing.to_dict(include_self_link=False), thing.STAC_OBJECT_TYPE, "1.1.0"), thing
        for item in own:
            items[item.id] = item
    listed = sorted(pathlib.Path(i.assets["data"].get_absolute_href()).name for i in items.values())
    assert listed == sorted(pathlib.Path(f).name for f in files), (listed, files)
    for path, sha in zip(files, there.product_sha256.values, strict=True):
        assert items[pathlib.Path(path).stem].assets["data"].extra_fields["file:checksum"] == "1220" + str(sha), path

    collection = catalog.get_child(dataset)
    print(json.dumps({
        "days": [str(t)[:10] for t in there.time.values],
        "slots": int(store.sizes["time"]),
        "revisions": [int(r) for r in there.revision.values],
        "items": len(items),
        "from": collection.extent.temporal.intervals[0][0].strftime("%Y-%m-%d"),
        "to": collection.extent.temporal.intervals[0][1].strftime("%Y-%m-%d"),
        "filled": float(there[variable].notnull().mean()),
    }))


for at in range(1, len(sys.argv), 4):
    read(*sys.argv[at : at + 4])
