"""Writes stores by the reference implementation, for the tests of the reader.

    write.py FOLDER

Element i of every array, in row-major order, is (7 i mod 251) - 100 / 2, whole
in whole types, 0 below 0 in unsigned ones. The last chunk of a column is never written.
"""
import sys
import numcodecs
import numpy as np
import xarray
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

folder = sys.argv[1]
SHAPE, CHUNKS = (5, 31, 47), (2, 16, 20)


def values(shape, dtype):
    v = (7 * np.arange(np.prod(shape)) % 251 - 100) / 2
    if np.dtype(dtype).kind == "u":
        v = np.maximum(v, 0)
    if np.dtype(dtype).kind == "b":
        v = v > 0
    return np.trunc(v).astype(dtype).reshape(shape) if np.dtype(dtype).kind in "iu" else v.astype(dtype).reshape(shape)


def write(name, version, dtype="<f4", shape=SHAPE, chunks=CHUNKS, fill=0, **how):
    group = zarr.open_group(f"{folder}/{name}", mode="w", zarr_format=version)
    if version == 3:
        how["dimension_names"] = [f"d{i}" for i in range(len(shape))]
    a = group.create_array("x", shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, **how)
    a[...] = values(shape, dtype)
    if version == 2:
        a.attrs["_ARRAY_DIMENSIONS"] = [f"d{i}" for i in range(len(shape))]
    zarr.consolidate_metadata(f"{folder}/{name}")


for dtype in ["<f4", ">f4", "<f8", ">i2", "<i2", "|i1", "|u1", "<u2", "<i4", "<u4", "<i8", "<u8", "|b1"]:
    for version in (2, 3):
        write(f"v{version}-type-{dtype[1:]}-{'big' if dtype[0] == '>' else 'little'}", version, dtype)
write("v2-none", 2, compressors=None)
write("v3-none", 3, compressors=None)
for codec in [numcodecs.Zlib(6), numcodecs.GZip(5), numcodecs.Zstd(3), numcodecs.LZ4(), numcodecs.BZ2(5)]:
    write(f"v2-{codec.codec_id}", 2, compressors=codec)
for compressor in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
    for shuffle in (0, 1, 2):
        for level in (1, 9):
            write(f"v2-blosc-{compressor}-{shuffle}-{level}", 2, compressors=numcodecs.Blosc(compressor, level, shuffle))
            write(f"v2-bloscbig-{compressor}-{shuffle}-{level}", 2, "<f8", (1, 301, 403), (1, 301, 403),
                  compressors=numcodecs.Blosc(compressor, level, shuffle))
        write(f"v3-blosc-{compressor}-{shuffle}", 3,
              compressors=BloscCodec(cname=compressor, clevel=5, shuffle=["noshuffle", "shuffle", "bitshuffle"][shuffle]))
write("v2-shuffle", 2, filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zlib(6))
write("v2-fortran", 2, order="F")
write("v2-slash", 2, chunk_key_encoding={"name": "v2", "separator": "/"})
write("v3-gzip", 3, compressors=GzipCodec(level=5))
write("v3-zstd", 3, compressors=[ZstdCodec(level=3), Crc32cCodec()])
write("v3-zstd-checksum", 3, compressors=[ZstdCodec(level=3, checksum=True)])
write("v3-transpose", 3, filters=[TransposeCodec(order=(2, 0, 1))])
write("v3-dots", 3, chunk_key_encoding={"name": "default", "separator": "."})
write("v3-big", 3, serializer=BytesCodec(endian="big"))
write("v3-shards", 3, chunks=(1, 8, 10), shards=(2, 16, 20))
write("v3-shards-start", 3, chunks=(1, 8, 10),
      serializer=None or "auto", shards={"shape": (2, 16, 20), "index_location": "start"})
write("v3-scalar", 3, shape=(), chunks=())
write("v2-scalar", 2, shape=(), chunks=())

for version in (2, 3):
    chl = values((3, 20, 30), "f4")
    chl[1, 2:5, 3:9] = np.nan
    data = xarray.Dataset(
        {"CHL": (("time", "lat", "lon"), chl, {"standard_name": "mass_concentration_of_chlorophyll_a_in_sea_water",
                                               "units": "mg m-3", "valid_min": np.float32(0.01), "flag_values": [1, 2]}),
         "packed": (("time", "lat", "lon"), chl, {"units": "1"}),
         "label": (("time",), np.array(["a", "b", "c"]))},
        {"time": np.array(["2024-05-01", "2024-05-02", "2024-05-04"], dtype="datetime64[ns]"),
         "lat": ("lat", np.linspace(40, 49.5, 20), {"units": "degrees_north", "standard_name": "latitude"}),
         "lon": ("lon", np.linspace(-10, 4.5, 30), {"units": "degrees_east", "standard_name": "longitude"})},
        {"title": "sea", "version": 3})
    encoding = {"CHL": {"chunks": (1, 8, 16)},
                "packed": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -32768, "chunks": (1, 20, 30)},
                "time": {"units": "days since 1981-01-01", "dtype": "i8"}}
    data.to_zarr(f"{folder}/xarray-v{version}", mode="w", zarr_format=version, encoding=encoding, consolidated=True)
    data.to_zarr(f"{folder}/xarray-v{version}-plain", mode="w", zarr_format=version, encoding=encoding, consolidated=False)
    data.to_zarr(zarr.storage.ZipStore(f"{folder}/xarray-v{version}.zip", mode="w"), zarr_format=version, encoding=encoding, consolidated=True)
