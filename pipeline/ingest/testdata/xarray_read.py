"""Prints the median seconds that xarray takes to read one variable of a file.

Usage: xarray_read.py FILE VARIABLE

Everything is loaded, with masks and scales applied, and the file is opened
anew each time. Imports and a first read are not counted.
"""

import statistics
import sys
import time

import xarray


def read(path, variable):
    with xarray.open_dataset(path, mask_and_scale=True, cache=False) as dataset:
        dataset[[variable]].load()


path, variable = sys.argv[1:]
read(path, variable)
seconds = []
for _ in range(25):
    start = time.perf_counter()
    read(path, variable)
    seconds.append(time.perf_counter() - start)
print(statistics.median(seconds))
