"""Imported before workers are forked: what every archive's worker needs. No graph is made here (see `tensorflow/warm.py`)."""

import base64  # noqa: F401

from . import program  # noqa: F401
