"""Join the NetCDF files of a folder along time with xarray and print what is found, as JSON.

usage: open_folder.py FOLDER VARIABLE
"""

import json
import sys

import numpy
import xarray

folder, variable = sys.argv[1], sys.argv[2]
with xarray.open_mfdataset(folder + "/*.nc") as year:
    steps = numpy.diff(year.time.values)
    values, sigma = year[variable], year[variable + "_uncertainty"]
    days = lambda name: [str(t)[:10] for t in year[name].values]
    print(json.dumps({
        "sizes": dict(values.sizes),
        "times": days("time"),
        "step_days": sorted({float(s / numpy.timedelta64(1, "D")) for s in steps}),
        "bounds": [[str(t)[:10] for t in pair] for pair in year[year.time.attrs["bounds"]].values],
        "mode_meanings": year["mode"].attrs["flag_meanings"].split(),
        "mode_dims": list(year["mode"].dims),
        "modes": [int(m) for m in year["mode"].values],
        "models": [str(m) for m in year["model"].values],
        "revisions": [int(r) for r in year["revision"].values],
        "observed": [float(o) for o in year["observed_fraction"].values],
        "window_start": days("window_start"),
        "window_end": days("window_end"),
        "values_without_sigma": int((values.notnull() & sigma.isnull()).sum()),
        "values": [int(n) for n in values.notnull().sum(["lat", "lon"]).values],
    }))
