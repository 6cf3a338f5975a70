"""Parses the model, version and method of a request from the header X-Amzn-SageMaker-Custom-Attributes."""

from __future__ import annotations

import re
from typing import NamedTuple

from .errors import ServingError

_PAIR = re.compile(r"tfs-[a-z\-]+=[^,]+")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_VERSION = re.compile(r"[0-9]{1,18}")
METHODS = ("predict", "classify", "regress")


class Target(NamedTuple):
    """The fields of the header; a missing field is None."""

    model: str | None
    version: int | None
    method: str | None

    def uri(self, base: str, model: str) -> str:
        """Returns the URL of this target in TensorFlow Serving's REST API."""
        version = "" if self.version is None else "/versions/%d" % self.version
        return "%s/v1/models/%s%s:%s" % (base, model, version, self.method or METHODS[0])


def parse_target(attributes: str) -> Target:
    """Parses the header. Raises ServingError for invalid values."""
    said = dict(pair.split("=", 1) for pair in _PAIR.findall(attributes))
    model, version, method = (said.get("tfs-" + key) for key in ("model-name", "model-version", "method"))
    if model is not None and not _MODEL.fullmatch(model):
        raise ServingError("invalid tfs-model-name")
    if version is not None and not _VERSION.fullmatch(version):
        raise ServingError("invalid tfs-model-version")
    if method is not None and method not in METHODS:
        raise ServingError("invalid tfs-method")
    return Target(model, None if version is None else int(version), method)
