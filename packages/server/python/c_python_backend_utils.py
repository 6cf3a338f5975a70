"""The `__module__` of pb_utils' classes, which pickles contain. In Triton this module is compiled."""

from triton_python_backend_utils import *  # noqa: F403
from triton_python_backend_utils import (  # noqa: F401
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
