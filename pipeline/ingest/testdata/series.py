"""Writes one series with xarray as Zarr of both versions and as NetCDF.

    series.py FOLDER
"""
import sys
import numpy as np
import xarray
import zarr

folder = sys.argv[1]
values = (np.arange(3 * 20 * 30) % 97 / 8 + 0.5).reshape(3, 20, 30).astype("f4")
values[1, 2:5, 3:9] = np.nan
data = xarray.Dataset(
    {"CHL": (("time", "lat", "lon"), values, {"standard_name": "mass_concentration_of_chlorophyll_a_in_sea_water", "units": "mg m-3"}),
     "flags": (("time", "lat", "lon"), (np.arange(1800) % 3).reshape(3, 20, 30).astype("i1"), {"long_name": "quality"}),
     "label": (("time",), np.array(["a", "b", "c"]))},
    {"time": np.array(["2024-05-01", "2024-05-02", "2024-05-04"], dtype="datetime64[ns]"),
     "lat": ("lat", np.linspace(40, 49.5, 20), {"units": "degrees_north", "standard_name": "latitude"}),
     "lon": ("lon", np.linspace(-10, 4.5, 30), {"units": "degrees_east", "standard_name": "longitude"})},
    {"title": "sea"})
for packed in (False, True):
    chl = {"dtype": "i2", "scale_factor": 0.125, "_FillValue": -32768} if packed else {}
    time = {"units": "days since 1981-01-01", "dtype": "i8"}
    name = "packed" if packed else "plain"
    data.drop_vars("label").to_netcdf(f"{folder}/{name}.nc", encoding={"CHL": chl, "time": time}, engine="netcdf4")
    for version in (2, 3):
        encoding = {"CHL": {**chl, "chunks": (1, 8, 16)}, "time": time}
        data.to_zarr(f"{folder}/{name}-v{version}.zarr", mode="w", zarr_format=version, encoding=encoding, consolidated=version == 2)
        with zarr.storage.ZipStore(f"{folder}/{name}-v{version}.zarr.zip", mode="w") as store:
            data.to_zarr(store, zarr_format=version, encoding=encoding, consolidated=version == 3)
        data.to_zarr(f"{folder}/{name}-group-v{version}.zarr", mode="w", group="near/real", zarr_format=version, encoding=encoding, consolidated=False)
