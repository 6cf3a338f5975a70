"""The module that the classes of pb_utils say they are of: in Triton it is compiled, and pickles name it."""

from triton_python_backend_utils import *  # noqa: F403
from triton_python_backend_utils import (  # noqa: F401
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
