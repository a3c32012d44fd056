"""Products from Kafka, as they are published."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import xarray

from ._program import LacunaError, environment, program


@dataclass(frozen=True)
class Product:
    """A product that was received: its file, whole and verified, and the event that announced it."""

    path: pathlib.Path
    event: dict[str, Any]

    def open(self) -> xarray.Dataset:
        """The content of the file."""
        return xarray.open_dataset(self.path)


def subscribe(
    brokers: str,
    *,
    to: str | os.PathLike[str] | None = None,
    prefix: str = "lacuna",
    group: str = "lacuna-python",
    once: bool = False,
    options: Sequence[str] = (),
) -> Iterator[Product]:
    """Yield every product that is published to Kafka, each revision once.

    It is received by 'lacuna consume', which goes on where the group has ended the last time.
    Files are kept in the folder to, by default a temporary one. With once it ends when all that
    is there was received; else it waits for the next. options are further flags of the command,
    such as ["--tls"].
    """
    folder = os.fspath(to) if to is not None else tempfile.mkdtemp(prefix="lacuna-")
    command = [program(), "consume", "--brokers", brokers, "--to", folder, "--prefix", prefix, "--group", group, *options]
    if once:
        command.append("--once")
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=said, text=True
    ) as consumer:
        try:
            assert consumer.stdout is not None
            for line in consumer.stdout:
                path = pathlib.Path(line.rstrip("\n"))
                yield Product(path, json.loads(pathlib.Path(f"{path}.json").read_text()))
        finally:
            consumer.terminate()  # of a consumer that has ended, nothing
        if consumer.wait() > 0:
            said.seek(0)
            raise LacunaError(said.read().strip())
