"""Checks that a pickle has not changed since it was uploaded."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def compute_hash(buffer: bytes) -> str:
    """Returns the SHA-256 of a buffer in hexadecimal digits."""
    return hashlib.sha256(buffer).hexdigest()


def perform_integrity_check(buffer: bytes, metadata_path: Path) -> None:
    """Raises ValueError if the metadata is missing or invalid, or contains another hash."""
    if not metadata_path.exists():
        raise ValueError("Path to metadata.json does not exist")
    said = json.loads(metadata_path.read_bytes())
    if said.get("version") != "2023-04-24" or said.get("serialization_module") != "cloudpickle":
        raise ValueError("Cannot read %s: its version or serialization_module is not known." % metadata_path)
    if not hmac.compare_digest(str(said.get("sha256_hash")), compute_hash(buffer)):
        raise ValueError("Integrity check for the serialized function or data failed.")
