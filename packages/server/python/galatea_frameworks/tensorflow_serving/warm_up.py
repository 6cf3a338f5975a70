"""Imported by the zygote before workers are forked:

modules that every archive needs. No graph is created here (see `tensorflow/warm_up.py`).
"""

import base64  # noqa: F401

from . import program  # noqa: F401
