"""Functions that read and write files."""

from __future__ import annotations

import contextlib
import json
import tempfile
from typing import TYPE_CHECKING

from .unavailable import refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextlib.contextmanager
def tmpdir(suffix: str = "", prefix: str = "tmp", directory: str | None = None) -> Iterator[str]:
    """Creates a temporary directory, which is deleted with its content at the end of the `with` block."""
    with tempfile.TemporaryDirectory(suffix=suffix, prefix=prefix, dir=directory) as path:
        yield path


def write_file(path: str, data: str | bytes, mode: str = "w") -> None:
    """Writes a file."""
    with open(path, mode) as file:
        file.write(data)


def read_file(path: str, mode: str = "r") -> str | bytes:
    """Returns a file's content."""
    with open(path, mode) as file:
        return file.read()


def read_json(path: str) -> Any:
    """Returns the value in a JSON file."""
    with open(path) as file:
        return json.load(file)


download_and_extract = refused("files.download_and_extract")
s3_download = refused("files.s3_download")
write_failure_file = refused("files.write_failure_file")
write_success_file = refused("files.write_success_file")
