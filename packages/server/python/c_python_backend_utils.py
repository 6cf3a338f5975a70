"""The module name of pb_utils' classes in pickles. In Triton, a compiled module has this name."""

from triton_python_backend_utils import *  # noqa: F403
from triton_python_backend_utils import (  # noqa: F401
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
