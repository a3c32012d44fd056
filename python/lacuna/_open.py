"""Opening what a service has published."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile
import urllib.parse
import urllib.request
from typing import Any

import xarray

from ._program import LacunaError


def open(
    dataset: str,
    time: str | slice | None = None,
    *,
    at: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> xarray.Dataset:
    """Open the products of a dataset as one series.

    at is the folder of products, the folder of Zarr stores, or the address of the status page
    (http://127.0.0.1:8087); by default what LACUNA_AT names. time is a time as xarray selects
    it: "2024-04-30", "2024-04", or slice("2024-04-01", "2024-04-30"). Files of a service are
    kept in the folder cache, by default a temporary one, and checked by their sha256.
    """
    where = os.fspath(at) if at is not None else os.environ.get("LACUNA_AT", "")
    if not where:
        raise LacunaError("say where the products are: at=FOLDER or ADDRESS, or LACUNA_AT in the environment")
    store = pathlib.Path(where, dataset + ".zarr")
    if where.startswith(("http://", "https://")):
        series = joined(downloaded(where, dataset, time, cache), dataset)
    elif store.is_dir():
        series = xarray.open_zarr(store)
        series = series.isel(time=(series.revision > 0).values)
    else:
        series = joined(listed(pathlib.Path(where), dataset), dataset)
    if time is None:
        return series
    return series.sel(time=time if isinstance(time, slice) else slice(time, time))


def joined(files: list[str], dataset: str) -> xarray.Dataset:
    if not files:
        raise LacunaError(f"there is no product of {dataset} there")
    by_day: list[str] = sorted(files, key=lambda path: pathlib.Path(path).name)
    return xarray.open_mfdataset(by_day)


def listed(folder: pathlib.Path, dataset: str) -> list[str]:
    """The files of a folder of products that its manifests name."""
    if not (folder / dataset).is_dir():
        raise LacunaError(f"{folder} has no products of {dataset}: it is neither a folder of products nor one of Zarr stores")
    files = []
    for manifest in (folder / dataset).glob("[0-9]*/**/*.manifest.json"):
        for entry in json.loads(manifest.read_text())["products"]:
            if not entry.get("absent") and not entry.get("retracted"):
                files.append(str(manifest.with_name(entry["file"])))
    return files


def downloaded(address: str, dataset: str, time: str | slice | None, cache: str | os.PathLike[str] | None) -> list[str]:
    """The files of a service, in a folder of this machine."""
    folder = pathlib.Path(cache if cache is not None else tempfile.mkdtemp(prefix="lacuna-"))
    folder.mkdir(parents=True, exist_ok=True)
    question = {"format": "json", "limit": "10000"}
    for key, end in zip(("from", "to"), ends(time), strict=True):
        if end:
            question[key] = end
    page: str | None = f"/products/{urllib.parse.quote(dataset)}/?{urllib.parse.urlencode(question)}"
    files = []
    while page:
        answer: dict[str, Any] = json.loads(read(urllib.parse.urljoin(address, page)))
        for product in answer["products"]:
            path = folder / urllib.parse.unquote(product["href"].rsplit("/", 1)[1])
            if not path.exists() or digest(path.read_bytes()) != product["sha256"]:
                content = read(urllib.parse.urljoin(address, product["href"]))
                if digest(content) != product["sha256"]:
                    raise LacunaError(f"{product['href']} was replaced while it was read: try again")
                path.write_bytes(content)
            files.append(str(path))
        page = answer.get("next")
    return files


def ends(time: str | slice | None) -> tuple[str, str]:
    """First and last day of a selection, to ask a service for; empty where it is open or not a whole day."""
    first, last = (time.start, time.stop) if isinstance(time, slice) else (time, time)
    return day(first), day(last)


def day(time: object) -> str:
    return time if isinstance(time, str) and len(time) == len("2024-04-30") else ""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
            return content
    except OSError as error:
        raise LacunaError(f"{address}: {error}") from error
