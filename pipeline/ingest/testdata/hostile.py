"""Writes granules that refer to more than themselves:

    hostile.py DIR SECRET

SECRET is a file whose bytes no granule may bring to light. Beside the hostile
files lies plain.nc, which is what they would be without their trick.
"""

import os
import sys

import h5py
import numpy as np

HEIGHT, WIDTH = 4, 5
CELLS = (1, HEIGHT, WIDTH)
CHL = np.linspace(0.1, 2, HEIGHT * WIDTH, dtype="f4").reshape(CELLS)

folder, secret = sys.argv[1:]
os.chdir(folder)


def granule(name, chlorophyll=None, units="days since 1981-01-01", coordinates=("time", "lat", "lon")):
    """Writes coordinates, and lets chlorophyll put the variable in."""
    with h5py.File(name + ".nc", "w", track_order=True) as f:
        axes = {
            "time": (np.array([15790.0]), "time", units),
            "lat": (np.linspace(40, 43, HEIGHT), "latitude", "degrees_north"),
            "lon": (np.linspace(27, 31, WIDTH), "longitude", "degrees_east"),
        }
        for axis in coordinates:
            values, standard, unit = axes[axis]
            d = f.create_dataset(axis, data=values)
            d.make_scale(axis)
            d.attrs["standard_name"] = np.bytes_(standard)
            d.attrs["units"] = np.bytes_(unit)
        (chlorophyll or stored)(f)
        if isinstance(f.get("CHL", getlink=True), h5py.HardLink):
            describe(f, f["CHL"])


def describe(f, d):
    d.attrs["units"] = np.bytes_("mg m-3")
    d.attrs["standard_name"] = np.bytes_("mass_concentration_of_chlorophyll_a_in_sea_water")
    for i, axis in enumerate(("time", "lat", "lon")[3 - d.ndim:]):
        if axis in f:
            d.dims[i].attach_scale(f[axis])


def stored(f):
    f.create_dataset("CHL", data=CHL)


def external(path):
    return lambda f: f.create_dataset("CHL", CELLS, "f4", external=[(path, 0, CHL.nbytes)])


def link(to):
    def put(f):
        f["CHL"] = to
    return put


def virtual(source):
    def put(f):
        if source == ".":
            f.create_dataset("hidden", data=CHL)
        layout = h5py.VirtualLayout(CELLS, "f4")
        layout[:] = h5py.VirtualSource(source, "hidden", CELLS)
        f.create_virtual_dataset("CHL", layout)
    return put


def filtered(number):
    def put(f):
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk(CELLS)
        made.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (3,))
        space = h5py.h5s.create_simple(CELLS)
        h5py.h5d.create(f.id, b"CHL", h5py.h5t.IEEE_F32LE, space, made)
        f["CHL"][:] = CHL
    return put


def grouped(to):
    def put(f):
        stored(f)
        f.create_group("quality")["flags"] = to
    return put


def through(f):
    f["elsewhere"] = h5py.ExternalLink("other.h5", "/")
    f["CHL"] = h5py.SoftLink("/elsewhere/hidden")


def inside(f):
    f.create_group("inner").create_dataset("CHL", data=CHL)
    describe(f, f["inner/CHL"])
    f["CHL"] = h5py.SoftLink("/inner/CHL")


# The target of links and virtual data sets: the secret in another file.
with h5py.File("other.h5", "w") as f:
    f.create_dataset("hidden", CELLS, "f4", external=[(secret, 0, CHL.nbytes)])

granule("plain")
granule("external-absolute", external(secret))
granule("external-relative", external(os.path.basename(secret)))
granule("external-upwards", external(os.path.relpath(secret, "/tmp/x")))
granule("external-device", external("/dev/zero"))
granule("external-environment", external("/proc/self/environ"))
granule("link-variable", link(h5py.ExternalLink("other.h5", "/hidden")))
granule("link-absolute", link(h5py.ExternalLink(os.path.abspath("other.h5"), "/hidden")))
granule("link-group", grouped(h5py.ExternalLink("other.h5", "/hidden")))
granule("link-remote", link(h5py.ExternalLink("https://127.0.0.1/x.nc#mode=bytes", "/CHL")))
granule("link-through", through)
granule("link-nowhere", link(h5py.SoftLink("/etc/passwd")))
granule("link-inside", inside)
granule("virtual-other", virtual("other.h5"))
granule("virtual-absolute", virtual(os.path.abspath("other.h5")))
granule("virtual-self", virtual("."))
granule("filter-zstd", filtered(32015))
granule("filter-blosc", filtered(32001))
granule("year-53", units="days since 0010-01-01")
granule("year-9000", units="days since 8990-01-01")
granule("dateless", lambda f: f.create_dataset("CHL", data=CHL[0]), coordinates=("lat", "lon"))
