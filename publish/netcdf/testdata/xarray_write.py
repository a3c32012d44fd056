"""Write the variables of a NetCDF file again with xarray and print how long it takes.

usage: xarray_write.py FILE OUT TIMES

Types, attributes, chunks and compression are those of FILE. Prints the
quickest of TIMES writes in seconds; imports and reading are not counted.
"""

import os
import sys
import time

import xarray

path, out, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
dataset = xarray.load_dataset(path, mask_and_scale=False, decode_times=False, decode_coords=False)
kept = ("zlib", "shuffle", "complevel", "chunksizes", "contiguous")
encoding = {
    name: {k: v for k, v in variable.encoding.items() if k in kept and v is not None}
    for name, variable in dataset.variables.items()
}
seconds = []
for _ in range(times):
    if os.path.exists(out):
        os.remove(out)
    start = time.perf_counter()
    dataset.to_netcdf(out, engine="netcdf4", encoding=encoding)
    seconds.append(time.perf_counter() - start)
print(min(seconds))
