"""Imported by the zygote before workers are forked.

Imports modules that every archive needs. No graph is created here, because TensorFlow would start a thread (see `tensorflow/warm_up.py`).
"""

import base64  # noqa: F401

from . import program  # noqa: F401
