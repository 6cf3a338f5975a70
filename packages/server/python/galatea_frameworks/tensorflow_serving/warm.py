"""Imported before workers are forked: the modules of every archive's worker.

No graph is created here (see `tensorflow/warm.py`).
"""

import base64  # noqa: F401

from . import program  # noqa: F401
