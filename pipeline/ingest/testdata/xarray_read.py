"""Prints the seconds that xarray takes to read one variable of a file.

Usage: xarray_read.py FILE VARIABLE

It reads the file once for every line of standard input and answers with a line.
Everything is loaded, with masks and scales applied, and the file is opened
anew each time. Imports and a first read are not counted.
"""

import sys
import time

import xarray


def read(path, variable):
    with xarray.open_dataset(path, mask_and_scale=True, cache=False) as dataset:
        dataset[[variable]].load()


path, variable = sys.argv[1:]
read(path, variable)
for _ in sys.stdin:
    start = time.perf_counter()
    read(path, variable)
    print(time.perf_counter() - start, flush=True)
